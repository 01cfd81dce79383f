"""Which loop of waylon-smithers a person means."""

import os
import shlex
from pathlib import Path
from typing import Any

from bydawn.core.errors import UserError
from bydawn.core.text import shorten
from bydawn.dialects.waylon_smithers import DIALECT, files
from bydawn.dialects.waylon_smithers.arguments import NAME
from bydawn.operations.dialects import loops
from bydawn.store.registry import Standing


def find(name: str | None, workspace: Path) -> Standing:
    """The loop that a person means: by its id, or the only one here that is not done."""
    mine = loops.in_workspace(DIALECT, workspace)
    if name is None:
        if only := loops.only_one(mine):
            return only
        if mine:
            names = shorten(", ".join(each.loop.id for each in mine), 400)
            raise UserError("there are several loops here", cause=names, hint="say which: --loop-id ID")
        raise UserError(f"there is no loop in {workspace}", hint=f'start one: {NAME} "…"{elsewhere(workspace)}')
    if found := loops.called(name, mine):
        return found
    refuse_anothers(name, workspace)
    other = loops.called(name, loops.everywhere(DIALECT))
    hint = f"`{typed(workspace, 'list')}` lists them all"
    hint = f"--cd {shlex.quote(other.loop.workspace)}" if other else hint
    raise UserError(f"there is no loop {name!r} here", cause=f"looked in {workspace}", hint=hint)


def refuse_anothers(name: str, workspace: Path) -> None:
    """The state file of a loop that another program began: it is neither shown as ours nor written."""
    path = files.default_state(name)
    if os.path.lexists(workspace / path) and not loops.called(name, loops.in_workspace(DIALECT, workspace)):
        again = f'{NAME} "…" --loop-id {shlex.quote(f"{name}-2")}{elsewhere(workspace)}'
        raise UserError(
            f"the loop {name} is another program's",
            cause=f"{path} is there, and no loop that is on record has that name",
            hint=f"finish or end it there; or start from scratch beside it: {again}",
        )


def state_of(standing: Standing) -> dict[str, Any]:
    """What its state file says. A stored word never says running: whether a loop runs is seen, not read."""
    stopped = standing.state.stopped
    word = DIALECT.word(stopped) if stopped else str(standing.status)
    word = "running" if word == "waiting" else word
    return {**files.state_of(standing.loop, standing.state), "status": word}


def typed(workspace: Path, *words: str) -> str:
    """A command about loops of a workspace, ready to be pasted where the person is."""
    return f"{shlex.join([NAME, *words])}{elsewhere(workspace)}"


def elsewhere(workspace: Path) -> str:
    return f" --cd {shlex.quote(str(workspace))}" if workspace != Path.cwd() else ""
