"""A JSON file of many writers: each changes its own entries under a lock, and no reader ever sees a part of it."""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn.system.paths import NEW_FILE, make_room, open_parent, regular_at
from bydawn.system.writing import replacing, write_all

Entries = dict[str, object]
Changes = Mapping[tuple[str, ...], Mapping[str, object] | None]

PATIENCE = 2.0  # seconds; others hold the lock for about a millisecond
_AT_MOST = 32 << 20  # bytes


def beside(path: str) -> tuple[str, str, str]:
    """The names that a shared file needs beside its own: its lock, its draft, and what is kept if it is damaged."""
    folder, slash, name = path.rpartition("/")
    lock = f"{name.rpartition('.')[0] or name}.lock"
    return f"{folder}{slash}{lock}", f"{folder}{slash}.{name}.tmp", f"{path}.bad"


def read(path: Path) -> Entries | None:
    """What it says; None if there is no such file, or it is damaged."""
    with suppress(FileNotFoundError, ValueError), open_parent("/", str(path)) as (folder, name):
        return _entries(_bytes(folder, name)) or None
    return None


def update(path: Path, changes: Changes, say: Callable[[str], None], *, patience: float = PATIENCE) -> None:
    """Change the entries at these keys: the fields of each are replaced, all others stay; None removes an entry.

    Without keys they are fields of the file itself. The path is absolute and leads through no link. A damaged file is
    kept beside the new one.
    """
    with open_parent("/", str(path), make=True, mode=0o700) as (folder, name):
        lock, draft, bad = beside(name)
        with locked(folder, lock, patience):
            before = _bytes(folder, name)
            try:
                after = _changed(_entries(before), changes)
            except ValueError as error:
                make_room(folder, bad)
                os.rename(name, bad, src_dir_fd=folder, dst_dir_fd=folder)
                say(f"{path} was damaged ({error}), so it starts from scratch; the old one is kept as {bad}")
                after = _changed({}, changes)
            data = msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n"
            if data != before:
                make_room(folder, draft)  # a writer may have been killed
                with replacing(name, draft, NEW_FILE, 0o600, folder=folder) as fd:
                    write_all(fd, data)


@contextmanager
def locked(folder: int, name: str, patience: float, flags: int = 0, mode: int = 0o600) -> Iterator[int]:
    """The descriptor of a file that no other process has locked; never waits longer than that."""
    deadline = time.monotonic() + patience
    while True:
        with regular_at(folder, name, os.O_RDWR | os.O_CREAT | flags, mode) as fd:
            if _is_taken(folder, name, fd):
                yield fd
                return
        if time.monotonic() > deadline:
            raise OSError(errno.EAGAIN, f"another process holds {name}")
        time.sleep(0.005)


def _is_taken(folder: int, name: str, fd: int) -> bool:
    """Is the lock ours now? One that was deleted before we had it is worthless."""
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(fd), os.lstat(name, dir_fd=folder))
    return False


def _bytes(folder: int, name: str) -> bytes:
    with suppress(FileNotFoundError), regular_at(folder, name) as fd:
        return os.read(fd, min(os.fstat(fd).st_size, _AT_MOST))
    return b""


def _entries(data: bytes) -> Entries:
    """The entries of a file, none if it is empty; `ValueError` if it is damaged."""
    try:
        return msgspec.json.decode(data.strip() or b"{}", type=Entries)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error).partition(" - ")[0]) from None


def _changed(entries: Entries, changes: Changes) -> Entries:
    for keys, value in changes.items():
        if not keys:
            entries |= value or {}
            continue
        *outer, key = keys
        inner = entries
        for each in outer:
            found = inner.setdefault(each, {})
            if not isinstance(found, dict):
                raise ValueError(f"{each} is not an object")
            inner = found
        if value is None:
            inner.pop(key, None)
        else:
            known = inner.get(key)
            inner[key] = {**(known if isinstance(known, dict) else {}), **value}
    return entries
