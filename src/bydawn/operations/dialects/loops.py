"""Which loops of a dialect there are, and what its original program has left behind."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from bydawn.dialects.follower import digest_at
from bydawn.dialects.seam import Dialect, Place
from bydawn.dialects.written import Written
from bydawn.operations import settings
from bydawn.settings.layers import Settings
from bydawn.store.registry import Registry, Standing

_LONGEST = 16 << 20  # bytes of a file that is read


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


def json_files(folder: Path) -> dict[str, dict[str, Any]]:
    """The JSON objects in the files of a folder, by file name without ending; what is none is left out."""
    found = {}
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LONGEST:
                found[path.stem] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    return found
