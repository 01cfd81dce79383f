"""A real terminal for a story: what is shown on its screen, and a keyboard to answer with."""

import os
import select
import time
from contextlib import suppress
from typing import Any, NamedTuple

from driving import Home


class Shown(NamedTuple):
    """How a command in a terminal ended, and all that stood on its screen."""

    code: int
    text: str


class Terminal:
    """The installed command, started in a pseudo-terminal that understands no colours unless TERM says so."""

    def __init__(self, home: Home, *arguments: str, **options: Any) -> None:
        self._keyboard, screen = os.openpty()
        ends = {"stdin": screen, "stdout": screen, "stderr": screen, "start_new_session": False}
        self._process = home.start(*arguments, before=["setsid", "--ctty"], **{"COLUMNS": "200", **ends, **options})
        os.close(screen)
        self._shown = b""

    def see(self, words: str, seconds: float = 60) -> str:
        """Wait until these words are on the screen."""
        assert self._read(seconds, words.encode()), f"waited in vain for {words!r}:\n{self.text}"
        return self.text

    def type(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    def end(self, seconds: float = 60) -> Shown:
        """Wait until the command has ended."""
        ended = self._read(seconds)
        os.close(self._keyboard)
        assert ended, f"it still runs:\n{self.text}"
        return Shown(self._process.wait(10), self.text)

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._keyboard)

    @property
    def text(self) -> str:
        return self._shown.decode(errors="replace").replace("\r\n", "\n")

    def _read(self, seconds: float, until: bytes | None = None) -> bool:
        """Read until some bytes were shown or, without any, until nobody holds the other end."""
        deadline = time.monotonic() + seconds
        while until is None or until not in self._shown:
            if not select.select([self._keyboard], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            data = b""
            with suppress(OSError):
                data = os.read(self._keyboard, 1 << 16)
            if not data:
                return until is None
            self._shown += data
        return True


def answered(home: Home, answer: str, *arguments: str, **options: Any) -> Shown:
    """Run a command that asks, and answer its question."""
    terminal = Terminal(home, *arguments, **options)
    terminal.see("[y/N]")
    terminal.type(answer)
    return terminal.end()
