"""Where servers are at home: the installed `bydawn serve`, and what those within a test need."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from driving import Home, wait_for


class Site:
    """A server of a home that can be killed, and come back on the same port."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.home = home
        self.port = 0
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = ["serve", "--port", str(self.port), *self._arguments]
        self._process = self.home.start(*words, before=["env"], stderr=subprocess.DEVNULL)
        assert self._process.stdout
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self._process.stdout.readline())
        assert found, "it did not say where it is"
        self.port = int(found[1])
        wait_for(self._answers)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def link(self, kind: str = "Steer") -> str:
        """A new link, as a person asks for it."""
        said = self.home.bydawn("serve", "--link", COLUMNS="200").out
        found = re.search(rf"{kind}:?\s+(http\S+)", said)
        assert found, said
        return found[1]

    def kill(self) -> None:
        """As if the machine had run out of memory."""
        assert self._process
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        self._close()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """It keeps its connections, but says nothing."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def end(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(10)
        self._close()

    def _close(self) -> None:
        if self._process and self._process.stdout:
            self._process.stdout.close()
