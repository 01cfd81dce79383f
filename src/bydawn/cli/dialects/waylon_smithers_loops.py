"""Which loop of waylon-smithers a person means: one of ours, or one that the original program left behind."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bydawn.cli.dialects.running import as_line
from bydawn.core.errors import UserError
from bydawn.dialects.waylon_smithers import DIALECT, files
from bydawn.dialects.waylon_smithers.arguments import NAME
from bydawn.operations.dialects import loops
from bydawn.store.registry import Standing
from bydawn.system.reading import read_text


class LoopRow(msgspec.Struct, frozen=True, kw_only=True):
    """One loop; `state` is what its state file says, and `status` what is so."""

    id: str
    status: str
    state: Mapping[str, Any]
    original: bool = False  # begun by the original program, and not taken over yet


def find(name: str | None, workspace: Path) -> Standing:
    """The loop that a person means: by its id, or the only one here that is not done."""
    mine = loops.in_workspace(DIALECT, workspace)
    if name is None:
        if only := loops.only_one(mine):
            return only
        if mine:
            raise _several(each.loop.id for each in mine)
        raise UserError(f"there is no loop in {workspace}", hint=f'start one: {NAME} "…"{elsewhere(workspace)}')
    if found := loops.called(name, mine):
        return found
    if read_text(workspace, path := files.default_state(name)) is not None:
        cause = "it is not a state file, or that of another loop"
        hint = "fix it, or start a loop under another --loop-id"
        raise UserError(f"{path} says nothing of a loop {name}", cause=cause, hint=hint)
    other = loops.called(name, loops.everywhere(DIALECT))
    hint = f"`{typed(workspace, 'list')}` lists them all"
    hint = f"--cd {shlex.quote(other.loop.workspace)}" if other else hint
    raise UserError(f"there is no loop {name!r} here", cause=f"looked in {workspace}", hint=hint)


def _several(names: Iterable[str]) -> UserError:
    cause = as_line(", ".join(names), 400)
    return UserError("there are several loops here", cause=cause, hint="say which: --loop-id ID")


def only_left(name: str | None, workspace: Path) -> LoopRow | None:
    """The original program's loop that a person means: the one of that name, or the only one if none is ours."""
    mine = loops.in_workspace(DIALECT, workspace)
    if mine and (name is None or loops.called(name, mine)):
        return None
    rows = [row for row in left_behind(workspace) if name in (None, row.id)]
    open_ones = [row for row in rows if row.status != "completed"]
    if len(found := open_ones or rows) > 1:
        raise _several(row.id for row in found)
    return found[0] if found else None


def left_behind(workspace: Path) -> list[LoopRow]:
    """What state files say of loops, each of its own; ours have such files as well."""
    folder = (workspace / files.default_state("x")).parent
    return [
        LoopRow(id=name, status=str(state.get("status", "?")), state=state, original=True)
        for name, state in loops.json_files(folder).items()
        if state.get("loop_id") == name
    ]


def row_of(standing: Standing) -> LoopRow:
    """A stored word never says running: whether a loop runs is seen, not read."""
    stopped = standing.state.stopped
    word = DIALECT.word(stopped) if stopped else str(standing.status)
    word = "running" if word == "waiting" else word
    state = files.state_of(standing.loop, standing.state)
    return LoopRow(id=standing.loop.id, status=word, state={**state, "status": word})


def typed(workspace: Path, *words: str) -> str:
    """A command about loops of a workspace, ready to be pasted where the person is."""
    return f"{shlex.join([NAME, *words])}{elsewhere(workspace)}"


def elsewhere(workspace: Path) -> str:
    return f" --cd {shlex.quote(str(workspace))}" if workspace != Path.cwd() else ""
