"""Which loops of a dialect there are, and what another program left in their place."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.dialects.follower import digest_at
from bydawn.dialects.seam import Dialect, Place
from bydawn.dialects.written import Written
from bydawn.operations import settings
from bydawn.settings.layers import Settings
from bydawn.store.registry import Registry, Standing
from bydawn.system import kernel
from bydawn.system.reading import read_inside

_PID = re.compile(rb"pid\W{1,4}(\d{1,9})\b|\A\s*(\d{1,9})\s*\Z")
_LONGEST = 1 << 14  # bytes of a file that names a process


def registry_of(gathered: Settings | None = None) -> Registry:
    """All loops of this user, wherever their own settings keep them."""
    folder = (gathered or settings.gather(None)).text("state_dir")
    return Registry(Path(folder) if folder else None)


def place_of(workspace: Path) -> Place:
    return Place(folder=str(Path.cwd()), workspace=str(workspace), now=datetime.now().astimezone())


def in_workspace(dialect: Dialect, workspace: Path) -> list[Standing]:
    return _spoken(dialect, registry_of().in_workspace(workspace))


def everywhere(dialect: Dialect) -> list[Standing]:
    return _spoken(dialect, registry_of().everywhere())


def _spoken(dialect: Dialect, standings: list[Standing]) -> list[Standing]:
    return [each for each in standings if each.loop.dialect and each.loop.dialect.name == dialect.name]


def called(name: str, standings: Sequence[Standing]) -> Standing | None:
    return next((each for each in standings if each.loop.id.casefold() == name.casefold()), None)


def only_one(standings: Sequence[Standing]) -> Standing | None:
    """The one that a person means without naming it: the only unfinished one, or the only one."""
    unfinished = [each for each in standings if not each.finished]
    return next((found[0] for found in (unfinished, standings) if len(found) == 1), None)


def wrote(workspace: Path, path: str) -> bool:
    """Did a loop of ours write a file as it is now?"""
    digest, here = digest_at(workspace, path), registry_of().in_workspace(workspace)
    return any(Written(each.folder.path).recognizes(path, digest) for each in here)


def named_by_another(workspace: Path, path: str) -> int:
    """The process that a file of another program names, if it lives; else 0. What a loop of ours wrote says nothing:
    it has a lock of its own, and after a crash the number is another process's one day."""
    try:
        found = _PID.search(read_inside(workspace, path, _LONGEST) or b"")
    except UserError:
        return 0
    pid = int(found[1] or found[2]) if found else 0
    return pid if pid and kernel.is_alive(pid) and not wrote(workspace, path) else 0
