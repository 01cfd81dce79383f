"""Which loops of a dialect there are, and how each stands."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.dialects.seam import Dialect, Place, Show
from bydawn.operations import places, settings
from bydawn.settings.layers import Settings
from bydawn.store.registry import Registry, Standing
from bydawn.system.reading import read_text


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One loop of a dialect as it stands; `state` is what its state file says, and true."""

    id: str
    status: str
    state: Mapping[str, Any]
    original: bool = False  # begun by the other program, and not taken over yet


def registry_of(gathered: Settings | None = None) -> Registry:
    """All loops of this user, wherever their own settings keep them."""
    folder = (gathered or settings.gather(None)).text("state_dir")
    return Registry(Path(folder) if folder else None)


def place_of(workspace: Path) -> Place:
    return Place(folder=str(Path.cwd()), workspace=str(workspace), now=datetime.now().astimezone())


def find(dialect: Dialect, name: str | None, workspace: Path) -> Standing:
    """The loop of this dialect that a person means: by its id, or the only one here that is not done."""
    if name is None:
        return _only_one(dialect, _mine(dialect, registry_of().in_workspace(workspace)), workspace)
    if found := look_for(dialect, name, workspace):
        return found
    if read_text(workspace, path := dialect.original_path(name)) is not None:
        cause, hint = "it is no state file, or that of another loop", "mend it, or start a loop under another --loop-id"
        raise UserError(f"{path} says nothing of a loop {name}", cause=cause, hint=hint)
    others = [each for each in _mine(dialect, registry_of().everywhere()) if each.loop.id.casefold() == name.casefold()]
    hint = f"`{places.typed(dialect, workspace, 'list')}` names the ones there are"
    hint = f"--cd {shlex.quote(others[0].loop.workspace)}" if others else hint
    raise UserError(f"there is no loop {name!r} here", cause=f"looked in {workspace}", hint=hint)


def look_for(dialect: Dialect, name: str, workspace: Path) -> Standing | None:
    """The loop of that name in this workspace, and in no other: who cancels one means this one."""
    mine = _mine(dialect, registry_of().in_workspace(workspace))
    return next((each for each in mine if each.loop.id.casefold() == name.casefold()), None)


def _mine(dialect: Dialect, standings: list[Standing]) -> list[Standing]:
    return [each for each in standings if each.loop.dialect and each.loop.dialect.name == dialect.name]


def _only_one(dialect: Dialect, mine: list[Standing], workspace: Path) -> Standing:
    unfinished = [each for each in mine if not each.finished]
    for candidates in (unfinished, mine):
        if len(candidates) == 1:
            return candidates[0]
    if not mine:
        hint = f'start one: {dialect.name} "…"{places.elsewhere(workspace)}'
        raise UserError(f"there is no loop in {workspace}", hint=hint)
    raise _several(each.loop.id for each in mine)


def _several(names: Iterable[str]) -> UserError:
    cause = shorten(plain(", ".join(names)), 400)
    return UserError("there are several loops here", cause=cause, hint="say which: --loop-id ID")


def left(dialect: Dialect, name: str | None, workspace: Path) -> Row | None:
    """The loop of the other program that a person means: the one of that name, or the only one if none is ours."""
    mine = _mine(dialect, registry_of().in_workspace(workspace))
    if mine and (name is None or look_for(dialect, name, workspace)):
        return None
    rows = [row for row in _left_here(dialect, workspace) if name in (None, row.id)]
    open_ones = [row for row in rows if row.status != "completed"]
    if len(found := open_ones or rows) > 1:
        raise _several(row.id for row in found)
    return found[0] if found else None


def row_of(dialect: Dialect, standing: Standing) -> Row:
    """A stored word never says running: that somebody is at work is seen, not read."""
    state = dialect.state(standing.loop, standing.state)
    stopped = standing.state.stopped
    status = dialect.word(stopped) if stopped else standing.status
    status = "running" if status == "waiting" else status
    return Row(id=standing.loop.id, status=status, state={**state, "status": status})


def shown(dialect: Dialect, request: Show, workspace: Path) -> tuple[Row, Standing]:
    standing = find(dialect, request.name, workspace)
    return row_of(dialect, standing), standing


def listed(dialect: Dialect, workspace: Path) -> list[Row]:
    """All loops of this workspace, and what the other program left."""
    rows = [row_of(dialect, standing) for standing in _mine(dialect, registry_of().in_workspace(workspace))]
    known = {row.id for row in rows}
    return [*rows, *(row for row in _left_here(dialect, workspace) if row.id not in known)]


def _left_here(dialect: Dialect, workspace: Path) -> Iterator[Row]:
    """What state files say of loops, each of its own; ours have such files as well."""
    folder = (workspace / dialect.original_path("x")).parent
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        state = places.json_of(path) if path.is_file() and not path.is_symlink() else {}
        if state.get("loop_id") == path.stem:
            yield Row(id=path.stem, status=str(state.get("status", "?")), state=state, original=True)
