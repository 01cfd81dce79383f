"""Write lines to the terminal in a thread, so that a blocked or closed terminal does not hold up the loop."""

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from bydawn.core.text import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from bydawn.store.worker_log import WorkerLog

_ROOM = 2000  # lines waiting for a terminal that does not read; more are dropped and counted
_HEARTBEAT = 300.0  # seconds between signs of life if nothing is redrawn
_REFRESH = 1.0  # seconds: times are shown in seconds


class Screen:
    """Lines that stay and, on a terminal, a block of at most four lines below them that is redrawn."""

    def __init__(
        self,
        block: Callable[[int], list[str]],
        *,
        plain: bool,
        heartbeat: float = _HEARTBEAT,
        out: "WorkerLog | None" = None,
    ) -> None:
        self._block = block
        self._heartbeat = heartbeat
        self._lines: queue.Queue[str | None] = queue.Queue(_ROOM)
        self._dropped = 0
        self.is_live = not plain and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
        # A stream of our own: even if it blocks, the interpreter has nothing to flush when the worker exits.
        self._out: TextIO | WorkerLog = out or os.fdopen(
            os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace"
        )
        self._thread = threading.Thread(target=self._run, daemon=True, name="screen")
        self._thread.start()

    def line(self, text: str) -> None:
        """Show a line; never waits. Escape sequences in names or an agent's words are removed."""
        try:
            self._lines.put_nowait(plain(text))
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Show what is still waiting, for at most two seconds."""
        if self._dropped:
            self.line(f"  ({self._dropped} lines were not shown: the terminal was too slow)")
        try:
            self._lines.put(None, timeout=0.5)
        except queue.Full:
            return
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        try:
            if self.is_live:
                self._redrawing()
            else:
                self._flat()
        except (OSError, ValueError):  # the terminal is gone; the loop goes on
            while self._lines.get() is not None:
                pass
        finally:
            with suppress(OSError):
                self._out.close()

    def _flat(self) -> None:
        """Lines only, and a heartbeat so that a log does not look dead."""
        beat = time.monotonic() + self._heartbeat
        while True:
            try:
                text = self._lines.get(timeout=max(0.01, beat - time.monotonic()))
            except queue.Empty:
                block = " · ".join(line.strip() for line in self._block(100))
                shown = f"  … {block}\n" if block else ""
            else:
                if text is None:
                    return
                shown = f"{text}\n"
            beat = time.monotonic() + self._heartbeat
            self._out.write(shown)
            self._out.flush()

    def _redrawing(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(
            file=cast("TextIO", self._out),  # a terminal: see above
            highlight=False,
            markup=False,
            emoji=False,
            no_color=bool(os.environ.get("NO_COLOR")) or None,
        )
        with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as live:
            while self._step(console, live):
                pass

    def _step(self, console: "Console", live: "Live") -> bool:
        try:
            text = self._lines.get(timeout=_REFRESH)
        except queue.Empty:
            pass  # only the block has changed
        else:
            if text is None:
                live.update(_text([]), refresh=True)
                return False
            console.print(_text([text]), soft_wrap=True)  # also an empty line
        live.update(_text(["", *self._block(console.width)[:3]]), refresh=True)
        return True


def _text(lines: list[str]) -> Any:
    from rich.text import Text

    return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
