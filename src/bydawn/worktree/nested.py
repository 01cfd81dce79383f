"""The state of repositories inside the workspace; their files are not ours to keep."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.core.digests import sha256
from bydawn.system.git import Git
from bydawn.system.reading import read_regular

# A nested repository's own git does not look into its submodules: that would start a git there on their
# terms. Ours does, one after another.
STATUS = ("--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames")
FIELDS_BEFORE_PATH = {b"1 ": 8, b"u ": 10, b"? ": 1}
READ_AT_MOST = 50 * 1024 * 1024
POINTER_AT_MOST = 4096
DEEPEST = 5  # repositories inside each other; real work is never deeper
MOST_BELOW = 50  # … of all that are not directly in the workspace; each costs two or three git calls
GITLINK = b"160000 "  # the mode of a submodule, as `ls-files` writes it …
GITLINK_IN_INDEX = b"\0\0\xe0\0"  # … and as an index has it; a file of that size costs one useless call


def fingerprint(git: Git, root: Path, nested: list[bytes]) -> str:
    """A short form of their HEAD, status and changes, to append to the id of a tree."""
    if not nested:
        return ""
    digest = sha256()
    level, room = sorted(nested), MOST_BELOW
    for _ in range(DEEPEST):
        below: list[bytes] = []
        for path in level:
            digest.update(path + b"\0")
            folder = root / os.fsdecode(path)
            places = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
            inside = msgspec.structs.replace(git, places=places)
            records = _status(inside)
            for record in records:
                digest.update(record + b"\0" + _changed_content(folder, record))
            below += [path + each for each in _repositories_in(inside, folder, records)]
        level = sorted(below)[:room]
        room -= len(level)
    return f"+{digest.hexdigest()[:12]}"


def _status(git: Git) -> list[bytes]:
    status = git.without_filters().answer("status", "--porcelain=v2", "-z", "--branch", *STATUS)
    return [b"unreadable"] if status is None else [part for part in os.fsencode(status).split(b"\0") if part]


def _repositories_in(git: Git, folder: Path, records: list[bytes]) -> set[bytes]:
    """The repositories right below one, as paths from there on that end with a slash."""
    strangers = {record[2:] for record in records if record.startswith(b"? ") and record.endswith(b"/")}
    return strangers | (_submodules(git, folder) if _may_have_submodules(folder) else set())


def _submodules(git: Git, folder: Path) -> set[bytes]:
    """Those that are there, changed or not; one that a link leads to is somewhere else."""
    listed = os.fsencode(git.answer("ls-files", "-z", "--stage") or "").split(b"\0")
    paths = {row.partition(b"\t")[2] for row in listed if row.startswith(GITLINK)}
    real = Path(os.path.realpath(folder))
    return {path + b"/" for path in paths if _is_there(real / os.fsdecode(path))}


def _is_there(submodule: Path) -> bool:
    return os.path.lexists(submodule / ".git") and os.path.realpath(submodule) == str(submodule)


def _may_have_submodules(folder: Path) -> bool:
    """A look at the index that spares most of them a call of git; where it says too little, git is asked."""
    place = folder / ".git"
    with suppress(OSError, ValueError):
        if not place.is_dir():  # then it says where the directory is
            pointer = read_regular(place, POINTER_AT_MOST) or b""
            place = folder / os.fsdecode(pointer.removeprefix(b"gitdir:").strip())
        index = read_regular(place / "index", READ_AT_MOST) or b""
        return GITLINK_IN_INDEX in index or any(place.glob("sharedindex.*"))  # where the rest of a split one is
    return True


def _changed_content(folder: Path, record: bytes) -> bytes:
    """A digest of the file that a line of `git status` names: the line is the same after a second edit."""
    fields = FIELDS_BEFORE_PATH.get(record[:2])
    if fields is None:
        return b""
    path = folder / os.fsdecode(record.split(b" ", fields)[fields])
    with suppress(OSError):
        content = os.fsencode(path.readlink()) if path.is_symlink() else read_regular(path, READ_AT_MOST)
        return sha256(content or b"").digest()
    return b""
