"""A file that grows by whole lines, also by other programs; never through a link, whatever takes its place."""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress

from bydawn.core.text import fit
from bydawn.system.paths import open_parent, open_regular, regular_at

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND
_MODE = 0o644  # before the umask
_LONGEST_LINE = 16_000  # characters
_LOOKED_AT = 128 << 10  # bytes at the end: at least one line of ours is whole in them


class LiveFile:
    """Stays open, so that a line costs two system calls; found again if another file has taken its place."""

    def __init__(self, root: str, path: str) -> None:
        self._root = root
        self._path = path
        self._full = os.path.join(root, path)  # noqa: PTH118 - asked for every line
        self._fd = -1
        self._id = (0, 0)  # device and inode
        self._end = 0  # where our last line ended

    def last_lines(self) -> tuple[str, ...]:
        """The last lines, whole but perhaps for the very last one; as quick for a large file as for a small one."""
        with suppress(FileNotFoundError), open_regular(self._root, self._path) as file:
            size = os.fstat(file.fileno()).st_size
            begin = max(0, size - _LOOKED_AT)
            data = os.pread(file.fileno(), size - begin, begin)
            data = data.partition(b"\n")[2] if begin else data
            return tuple(data.decode(errors="replace").removesuffix("\n").split("\n")) if data else ()
        return ()

    def add(self, lines: Iterable[str]) -> None:
        """Add these lines in one write, or none of them."""
        texts = (fit(line.replace("\n", " "), _LONGEST_LINE) for line in lines)
        data = b"".join(text.encode("utf-8", "replace") + b"\n" for text in texts)
        size = self._found()
        if size != self._end and size and os.pread(self._fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # the last writer was cut off
        written = os.write(self._fd, data)
        if written < len(data):
            if os.fstat(self._fd).st_size == size + written:
                os.ftruncate(self._fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end = size + written

    def _found(self) -> int:
        """Its size; opened again if what has its name is another file."""
        with suppress(FileNotFoundError):
            there = os.lstat(self._full)
            if self._fd >= 0 and (there.st_dev, there.st_ino) == self._id:
                return there.st_size
        self.close()
        with open_parent(self._root, self._path, make=True) as (folder, name), regular_at(folder, name, _FLAGS) as fd:
            found = os.fstat(fd)
            self._fd, self._id, self._end = os.dup(fd), (found.st_dev, found.st_ino), 0
        return found.st_size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
