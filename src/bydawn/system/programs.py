"""Programs on the PATH, but never one that a workspace contains: no person has chosen that one."""

import errno
import os
from functools import cache
from pathlib import Path
from shutil import which


def _here() -> Path:
    try:
        return Path(os.path.realpath("."))
    except OSError:  # it was removed
        return Path("/")


_STARTED_IN = _here()  # the process changes folder later


def find(name: str, folder: Path) -> str | None:
    """The program of this name outside a workspace."""
    return which(name, path=path_outside(folder))


def path_outside(folder: Path) -> str:
    """The PATH without folders inside a workspace, or a repository around it or us."""
    return _path_outside(folder, os.environ.get("PATH", os.defpath))


@cache
def _path_outside(folder: Path, path: str) -> str:
    inside = {folder, *_repositories(folder), *_repositories(_STARTED_IN)} - _personal()
    outside = [entry for entry in path.split(":") if entry.startswith("/")]
    return ":".join(
        entry for entry in outside if inside.isdisjoint((real := Path(os.path.realpath(entry)), *real.parents))
    )


def _personal() -> set[Path]:
    """The home folder and what is above it: some people keep it in a repository, and it is not a clone."""
    home = os.environ.get("HOME", "")
    real = Path(os.path.realpath(home))
    return {real, *real.parents} if home else set()


def _repositories(folder: Path) -> list[Path]:
    """The folders from here up that contain a repository; the file system root does not count.

    An empty `.git` does not count: sandboxes of agents leave those behind, in /tmp too.
    """
    return [each for each in (folder, *folder.parents) if _has_repository(each) and each != each.parent]


def _has_repository(folder: Path) -> bool:
    git = folder / ".git"
    return git.is_file() or os.path.lexists(git / "HEAD")


def starting(name: str, path: str) -> tuple[str, ...]:
    """The words that start a program on this PATH. A script is started by an interpreter on it, too:

    `#!/usr/bin/env node` alone would take the first `node` on the PATH that the program gets.
    """
    program = which(name, path=path)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    with open(program, "rb") as file:  # noqa: PTH123 - a plain open costs a tenth
        first = file.readline(200).split()
    if len(first) == 2 and first[0] == b"#!/usr/bin/env" and (interpreter := which(os.fsdecode(first[1]), path=path)):
        return interpreter, program
    return (program,)
