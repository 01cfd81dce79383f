"""Which loops of a dialect there are."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bydawn.dialects.follower import digest_at
from bydawn.dialects.seam import Dialect, Place
from bydawn.dialects.written import Written
from bydawn.operations import settings
from bydawn.settings.layers import Settings
from bydawn.store.registry import Registry, Standing


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
