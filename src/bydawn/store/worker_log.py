"""What a loop without a terminal would have shown, in a file that stays small."""

import os
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from pathlib import Path

_MOST = 1_000_000  # bytes; beyond that the older half goes


class WorkerLog:
    """The file, for the lines of a screen. Only the process that runs the loop opens and shortens it."""

    def __init__(self, path: Path, hide: Callable[[str], str]) -> None:
        self._path, self._hide = path, hide

    @cached_property
    def fd(self) -> int:
        """Opened when the loop is ours: a start that is refused leaves nothing behind."""
        fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.write(fd, f"\n── {datetime.now().astimezone():%Y-%m-%d %H:%M:%S} · pid {os.getpid()}\n".encode())
        return fd

    def write(self, text: str) -> None:
        os.write(self.fd, self._hide(text).encode(errors="replace"))
        if (size := os.fstat(self.fd).st_size) > _MOST:
            kept = os.pread(self.fd, size, size - _MOST // 2).partition(b"\n")[2]  # whole lines
            os.ftruncate(self.fd, 0)
            os.write(self.fd, kept)

    def flush(self) -> None:
        """Every line is written at once."""

    def close(self) -> None:
        """It stays open: standard output leads there too."""
