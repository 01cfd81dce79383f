"""What repositories inside of the workspace say of themselves; their files are not ours to keep."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.files import read_regular
from bydawn.git import Git

# The submodules of a nested repository are not looked into: that would start a git there on their terms.
STATUS = ("--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames")
FIELDS_BEFORE_PATH = {b"1 ": 8, b"u ": 10, b"? ": 1}
READ_AT_MOST = 50 * 1024 * 1024


def fingerprint(git: Git, root: Path, nested: list[bytes]) -> str:
    """Their HEAD, their status and what they changed, in short, to stand behind the id of a tree."""
    if not nested:
        return ""
    digest = hashlib.sha256()
    for path in sorted(nested):
        digest.update(path + b"\0")
        folder = root / os.fsdecode(path)
        for record in _status(git, folder):
            digest.update(record + b"\0" + _changed_content(folder, record))
    return f"+{digest.hexdigest()[:12]}"


def _status(git: Git, folder: Path) -> list[bytes]:
    places = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
    git = msgspec.structs.replace(git, places=places)
    # Its filters are programs that it names itself. No switch turns them all off, so each is emptied by name.
    filters = git.answer("config", "-z", "--name-only", "--get-regexp", r"^filter\.") or ""
    silenced = dict.fromkeys(filters.split("\0")[:-1], "")
    git = msgspec.structs.replace(git, config=git.config | silenced)
    status = git.answer("status", "--porcelain=v2", "-z", "--branch", *STATUS)
    return [b"unreadable"] if status is None else [part for part in os.fsencode(status).split(b"\0") if part]


def _changed_content(folder: Path, record: bytes) -> bytes:
    """A digest of the file that a line of `git status` names: the line is the same after a second edit."""
    fields = FIELDS_BEFORE_PATH.get(record[:2])
    if fields is None:
        return b""
    path = folder / os.fsdecode(record.split(b" ", fields)[fields])
    with suppress(OSError):
        content = os.fsencode(path.readlink()) if path.is_symlink() else read_regular(path, READ_AT_MOST)
        return hashlib.sha256(content or b"").digest()
    return b""
