"""Reach a file step by step through no link: a repository could have brought one that leads out of it."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Folders on the way may be closed to readers; where the system can, they are only gone through.
_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
_AT_ONCE = 64 << 10
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@contextmanager
def open_fd(path: Path | str, flags: int, mode: int = 0o600, *, folder: int | None = None) -> Iterator[int]:
    """A descriptor, closed again in the end."""
    fd = os.open(path, flags, mode, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def read_whole(path: str) -> bytes:
    """A file's bytes in three system calls; `Path.read_bytes` makes nine, which `status` would feel."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, _AT_ONCE)
        if len(data) < _AT_ONCE:
            return data
        parts = [data]
        while part := os.read(fd, _AT_ONCE):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


@contextmanager
def open_folder(
    root: Path | str, names: Iterable[str], *, make: bool = False, mode: int = 0o777, replace_links: bool = False
) -> Iterator[int]:
    """A folder below another as a descriptor for `dir_fd`; `make` creates what is missing on the way, with this mode.

    `replace_links`: a link in the place of a folder makes room for one.
    """
    fd = os.open(root, _THROUGH)
    try:
        for name in names:
            if replace_links and _is_link(fd, name):
                os.unlink(name, dir_fd=fd)
            outer, fd = fd, _step(fd, name, mode if make else None)
            os.close(outer)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def open_parent(root: Path | str, path: str, *, make: bool = False, mode: int = 0o777) -> Iterator[tuple[int, str]]:
    """The folder of a file as a descriptor, and the file's name in it; an absolute path begins at `/`."""
    *folders, name = path.split("/")
    with open_folder("/" if path.startswith("/") else root, filter(None, folders), make=make, mode=mode) as folder:
        yield folder, name


@contextmanager
def open_regular(root: Path | str, path: str) -> Iterator[BinaryIO]:
    """A regular file for reading; raises `OSError` for anything else."""
    with open_parent(root, path) as (folder, name), regular_at(folder, name) as fd:
        yield os.fdopen(fd, "rb", closefd=False)


@contextmanager
def regular_at(folder: int, name: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> Iterator[int]:
    """The same in a folder that is open already; never waits for a pipe."""
    with open_fd(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW, mode, folder=folder) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield fd


def unlink_regular(folder: int, name: str) -> bool:
    """Remove a regular file, and nothing else; was it one?"""
    is_regular = stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode)
    if is_regular:
        os.unlink(name, dir_fd=folder)
    return is_regular


def make_room(folder: int, name: str) -> None:
    """Remove a regular file of that name, if there is one; anything else is refused."""
    with suppress(FileNotFoundError):
        if not unlink_regular(folder, name):
            raise OSError(errno.EEXIST, f"{name} is not a regular file")


def _is_link(folder: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    return False


def _step(outer: int, name: str, mode: int | None) -> int:
    try:
        return os.open(name, _THROUGH, dir_fd=outer)
    except FileNotFoundError:
        if mode is None:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=outer)
    return os.open(name, _THROUGH, dir_fd=outer)


def remove_folder(folder: Path) -> None:
    """Remove what can be removed; a check may have left folders without permissions."""
    import shutil  # slow to load, and few commands remove anything

    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError, RecursionError):
        folder.chmod(0o700)
        for outer, inner, _ in os.walk(folder):
            for path in (Path(outer, name) for name in inner):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
