"""Durable, private writes: readers see the old file or the new one, never a part of it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.system.paths import NEW_FILE, open_fd, open_parent, regular_at

_PRIVATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents, for their owner only."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path | str, data: bytes) -> None:
    """Write a file that only its owner can read, whatever the umask."""
    with open_fd(path, _PRIVATE) as fd:
        write_all(fd, data)


def replace_private(path: Path, data: bytes, *, durable: bool = False, shared: bool = False) -> None:
    """Replace such a file: readers see the old one or the new one, even after a power cut if it is `durable`.

    `shared`: other processes may write it at the same time.
    """
    with replacing(path, draft_of(path, shared=shared), _PRIVATE, 0o600) as fd:
        write_all(fd, data)
        if durable:
            os.fsync(fd)
    if durable:
        sync(path.parent)


def replace_text(path: Path, text: str, mode: int) -> None:
    """Replace a person's file, all or nothing, keeping its owner and permissions.

    `mode` is for a new file. Links are not followed: a caller that follows them has checked where they lead.
    """
    try:
        before = path.lstat() if os.path.lexists(path) and not path.is_symlink() else None
        with replacing(path, draft_of(path, shared=True), NEW_FILE, mode) as fd:
            if before:
                _take_after(fd, before)
            write_all(fd, text.encode())
            os.fsync(fd)
    except OSError as error:
        raise UserError(f"{path} cannot be written", cause=str(error.strerror), hint="check its permissions") from None


class _Changed(Exception):
    """The file is no longer what it was."""


def replace_unchanged(path: Path, data: bytes, before: bytes | None, mode: int = 0o644) -> bool:
    """Replace a person's file in the same way, unless it is no longer what it was `before`; was it replaced?

    None: there was no such file. The path is a real one; a link that has come into it since is refused.
    """
    try:
        with open_parent("/", str(path), make=before is None) as (folder, name):
            draft = f".bydawn-{os.urandom(6).hex()}.tmp"  # threads of one process may save at the same time
            with replacing(name, draft, NEW_FILE, mode, folder=folder) as fd:
                if before is not None:
                    _take_after(fd, os.lstat(name, dir_fd=folder))
                write_all(fd, data)
                os.fsync(fd)
                if _bytes_at(folder, name, before) != before:
                    raise _Changed
    except (_Changed, FileNotFoundError):
        return False
    except OSError as error:
        raise UserError(f"{path} cannot be written", cause=str(error.strerror), hint="check its permissions") from None
    return True


def _bytes_at(folder: int, name: str, before: bytes | None) -> bytes | None:
    """What a file has now, if that can be what it had before."""
    try:
        with regular_at(folder, name) as fd, os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(len(before or b"") + 1)
    except FileNotFoundError:
        return None


def draft_of(path: Path, *, shared: bool = False) -> Path:
    """Where a file is written before it takes its place; a `shared` one has a draft for each process."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp" if shared else f"{path.name}.tmp")


def _take_after(fd: int, before: os.stat_result) -> None:
    if (os.getuid(), os.getgid()) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):  # only root can give a file away
            os.fchown(fd, before.st_uid, before.st_gid)
    os.fchmod(fd, stat.S_IMODE(before.st_mode))


@contextmanager
def replacing(
    path: Path | str, draft: Path | str, flags: int, mode: int, *, folder: int | None = None
) -> Iterator[int]:
    """The descriptor of a draft that takes the place of a file when all is written, and goes if anything fails."""
    with open_fd(draft, flags, mode, folder=folder) as fd:
        try:
            yield fd
            os.replace(draft, path, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    with open_fd(path, os.O_RDONLY) as fd:
        os.fsync(fd)


def full_sync(fd: int) -> None:
    """On macOS only F_FULLFSYNC reaches the disk."""
    import fcntl

    fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC", 51))


def others_can_write(status: os.stat_result) -> bool:
    """Can anyone change it besides the owner and our own group?"""
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getgid()
    return bool(by_group or status.st_mode & stat.S_IWOTH)
