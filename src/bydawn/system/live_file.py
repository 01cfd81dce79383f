"""A file that grows by whole lines, also by other programs; never through a link, whatever takes its place."""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from typing import BinaryIO, NamedTuple

from bydawn.core.text import fit
from bydawn.system import kernel
from bydawn.system.paths import open_parent, regular_at, unlink_regular

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND
_MODE = 0o644  # before the umask
_LONGEST_LINE = 16_000  # characters
_NUMBERS = range(1, 100)  # of files that were moved away
_AT_ONCE, _NEAR = 1 << 20, 8 << 20  # bytes that a reader takes, and where the last lines are looked for


class Mark(NamedTuple):
    """Where our last line ended, and in which file."""

    inode: int = 0
    end: int = 0


class LiveFile:
    """Stays open, so that a line costs two system calls; found again if another file has taken its place."""

    def __init__(
        self, root: str, path: str, limit: int = 0, days: int = 0, files: int = 0, mark: Mark | None = None
    ) -> None:
        """With a limit in bytes it is moved away in time; so many files are kept, and none for more than these days.

        From its mark on it may have what a killed process was writing. Without one, nothing in it is ours to look at.
        """
        self._root = root
        self._path = path
        self._limit, self._days, self._files = limit, days, files
        self._full = os.path.join(root, path)  # noqa: PTH118 - asked for every line
        self._fd = -1
        self._id = (0, 0)  # device and inode
        self._mark = mark

    @property
    def mark(self) -> Mark:
        """Where the next line of ours goes, unless others add one."""
        if self._mark is None:
            self._mark = Mark()
            with suppress(OSError):
                there = os.lstat(self._full)
                self._mark = Mark(there.st_ino, there.st_size)
        return self._mark

    def add(self, lines: Iterable[str], *, fresh: bool = False) -> bool:
        """Add these lines in one write, or none of them."""
        texts = (fit(line.replace("\n", " "), _LONGEST_LINE) for line in lines)
        return self.append(b"".join(text.encode("utf-8", "replace") + b"\n" for text in texts), fresh=fresh)

    def append(self, data: bytes | mmap, *, fresh: bool = False) -> bool:
        """Add this, or nothing; to another file if it is to be `fresh`. False: a killed process had written it."""
        size = self._found()
        begin = self.mark.end
        text = self._on_a_new_line(data, begin)
        if begin < size:  # a killed process has written it, or a part of it; or others have added lines
            there = os.pread(self._fd, len(text), begin)
            if text[: len(there)] != there:
                text = self._on_a_new_line(data, size)
            elif len(there) == len(text):
                self._mark = Mark(self._id[1], begin + len(text))
                return False
            else:
                os.ftruncate(self._fd, begin)
                size = begin
        if size and (fresh or (self._limit and size + len(text) > self._limit)):
            with suppress(OSError):  # rather too long than without this line
                self.rotate()
            size = self._found()
            text = self._on_a_new_line(data, size)
        written = os.write(self._fd, text)
        if written < len(text):
            if os.fstat(self._fd).st_size == size + written:
                os.ftruncate(self._fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._mark = Mark(self._id[1], size + written)
        return True

    def _on_a_new_line(self, data: bytes | mmap, place: int) -> bytes | mmap:
        """The last writer may have been cut off."""
        return b"\n" + data[:] if place and os.pread(self._fd, 1, place - 1) != b"\n" else data

    def rotate(self) -> None:
        """Move it to `NAME.1`, which moves on to `NAME.2` and so on; links and folders keep their places."""
        with suppress(FileNotFoundError), open_parent(self._root, self._path) as (folder, name):
            there = _there(folder, name)
            if (own := there.pop(name, None)) and own.st_size:
                names = [*there][: self._files]
                gap = next((place for place, each in enumerate(names) if there[each] is None), len(names) - 1)
                for newer, older in reversed([*pairwise((name, *names[: gap + 1]))]):
                    os.rename(newer, older, src_dir_fd=folder, dst_dir_fd=folder)
        self.remove_old()

    def remove_old(self) -> None:
        """Of those that were moved away: what is too old, or one too many."""
        oldest = time.time() - self._days * 86_400
        with suppress(FileNotFoundError), open_parent(self._root, self._path) as (folder, name):
            moved = [(each, status) for each, status in _there(folder, name).items() if status and each != name]
            for place, (each, status) in enumerate(moved if self._files else (), 1):
                if place > self._files or (self._days and status.st_mtime < oldest):
                    unlink_regular(folder, each)

    def _found(self) -> int:
        """Its size; opened again if what has its name is another file. In one that is new, or was cut, we begin."""
        size = -1
        with suppress(FileNotFoundError):
            there = os.lstat(self._full)
            if self._fd >= 0 and (there.st_dev, there.st_ino) == self._id:
                size = there.st_size
        if size < 0:
            self.close()
            with (
                open_parent(self._root, self._path, make=True) as (folder, name),
                regular_at(folder, name, _FLAGS) as fd,
            ):
                found = os.fstat(fd)
                self._fd, self._id, size = os.dup(fd), (found.st_dev, found.st_ino), found.st_size
        if self.mark.inode != self._id[1] or size < self.mark.end:
            self._mark = Mark(self._id[1], 0)
        return size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _there(folder: int, name: str) -> dict[str, os.stat_result | None]:
    """The file and those that were moved away, newest first: None where there is none; only regular ones."""
    found: dict[str, os.stat_result | None] = {}
    for each in (name, *(f"{name}.{number}" for number in _NUMBERS)):
        status = None
        with suppress(FileNotFoundError):
            status = os.lstat(each, dir_fd=folder)
        if status is None or stat.S_ISREG(status.st_mode):
            found[each] = status
    return found


# -- for readers -------------------------------------------------------------------------------------------------------


def follow(root: Path | str, path: str, last: int = 0) -> Iterator[bytes | None]:
    """The last lines, then each that is added, also after the file was moved away; None when there is no other yet.

    After a None it waits for one, but not for long: a caller may want to stop.
    """
    watch, rest = kernel.Watch(), b""
    with open_parent(root, path) as (folder, name):
        file = _opened(folder, name)
        file.seek(_begin_of(file, last))
        try:
            while True:
                newer = _newer(folder, name, file)  # before the file is read: from now on it does not grow
                while part := file.read(_AT_ONCE):
                    *lines, rest = (rest + part).split(b"\n")
                    yield from lines
                if newer:
                    yield from filter(None, [rest])
                    file.close()
                    file, rest = newer, b""
                else:
                    watch.add(f"/proc/self/fd/{file.fileno()}")
                    yield None
                    watch.wait(1.0)
        finally:
            file.close()
            watch.close()


def _begin_of(file: BinaryIO, last: int) -> int:
    """Where the last lines begin, if that is near the end."""
    end = file.seek(0, os.SEEK_END)
    begin = max(0, end - _NEAR)
    lines = os.pread(file.fileno(), end - begin, begin).split(b"\n")[1 if begin else 0 :]
    return end - len(b"\n".join(lines[-1 - last :]))


def _opened(folder: int, name: str) -> BinaryIO:
    with regular_at(folder, name) as fd:
        return os.fdopen(os.dup(fd), "rb", buffering=0)


def _newer(folder: int, name: str, file: BinaryIO) -> BinaryIO | None:
    """The file that came after this one, once this one has been moved away."""
    mine = os.fstat(file.fileno())
    with suppress(OSError):  # it is being moved away right now, or something else has its name
        while not os.path.samestat(mine, os.lstat(name, dir_fd=folder)):
            there = [(each, status) for each, status in _there(folder, name).items() if status]
            place = next((place for place, (_, status) in enumerate(there) if os.path.samestat(mine, status)), 0)
            each, status = there[place - 1] if place else (name, os.lstat(name, dir_fd=folder))
            newer = _opened(folder, each)
            if os.path.samestat(status, os.fstat(newer.fileno())):
                return newer
            newer.close()
    return None
