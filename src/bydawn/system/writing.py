"""Durable, private writes."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bydawn.core.errors import UserError


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents, for their owner only."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, whatever the umask."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def write_durable(path: Path, data: bytes) -> None:
    """Replace a file so that after a power cut either the old or the new one is there."""
    draft = path.with_name(path.name + ".tmp")
    write_private(draft, data)
    fd = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    draft.replace(path)
    sync_folder(path.parent)


def replace_text(path: Path, text: str, mode: int) -> None:
    """Replace a person's file, all or nothing, keeping its owner and permissions.

    `mode` is for a new file. Links are not followed: a caller that follows them has checked where they lead.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        before = path.lstat() if os.path.lexists(path) and not path.is_symlink() else None
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            if before and (os.getuid(), os.getgid()) != (before.st_uid, before.st_gid):
                with suppress(PermissionError):  # only root can give a file away
                    os.fchown(descriptor, before.st_uid, before.st_gid)
            if before:
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            out.write(text)
            out.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"{path} cannot be written", cause=str(error.strerror), hint="check its permissions") from None


@contextmanager
def real_folder(root: str, *names: str, follow: bool = False) -> Iterator[int]:
    """A folder below another, created if missing; never through a link, which a repository could have brought.

    `follow`: a person named the root, and may well mean a link.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    fd = os.open(root, flags if follow else flags | os.O_NOFOLLOW)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=fd)
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def full_sync(fd: int) -> None:
    """On macOS only F_FULLFSYNC reaches the disk."""
    import fcntl

    fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC", 51))


def others_can_write(status: os.stat_result) -> bool:
    """Can anyone change it besides the owner and our own group?"""
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getgid()
    return bool(by_group or status.st_mode & stat.S_IWOTH)
