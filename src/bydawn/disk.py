"""Writing for keeps: for the owner's eyes only, and whole after a power cut."""

import os
import stat
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner only."""
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
    """Replace a file so that after a power cut there is either the old one or the new one."""
    draft = path.with_name(path.name + ".tmp")
    write_private(draft, data)
    fd = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    draft.replace(path)
    sync_folder(path.parent)


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
    """Can anybody but the owner, and whoever shares our own group, change it?"""
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid != os.getgid()
    return bool(by_group or status.st_mode & stat.S_IWOTH)
