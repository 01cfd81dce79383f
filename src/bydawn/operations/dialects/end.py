"""End a loop of a dialect, and remove the files that were written for it."""

import os
import time
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.values import End
from bydawn.dialects import follower
from bydawn.dialects.seam import Dialect
from bydawn.dialects.written import Written
from bydawn.operations import places, steer
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store import lock
from bydawn.store.registry import Standing, standing_of
from bydawn.system.writing import replace_text

_PATIENCE = 30.0  # seconds that a canceled loop gets to end its agent


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files of a loop."""

    removed: list[str]
    left: dict[str, str]  # and why
    stuck: dict[str, str]  # what could not be removed, and why


def rewrite(workspace: Path, path: str, text: str) -> None:
    """Replace a file of a tool."""
    refuse_inside_a_round()
    follower.refuse_unwritable(workspace, [path])
    replace_text(workspace / path, text, 0o644)


def cancel(standing: Standing) -> Standing:
    """End a loop, running or not, and wait until its agent is gone; one that has ended stays as it is."""
    refuse_inside_a_round()
    stopped = standing.state.stopped
    if not standing.finished and (stopped is None or stopped.end is not End.STOPPED):
        steer.stop(standing, now=True)
        until_it_is_gone(standing)
    return standing_of(standing.folder) or standing


def clean_up(dialect: Dialect, standing: Standing) -> Cleaned:
    """Remove what was written for a loop that has ended; a file that was changed since is the person's."""
    refuse_inside_a_round()
    until_it_is_gone(standing)  # it may have a last hook to run
    workspace, loop = Path(standing.loop.workspace), standing.loop
    files, written = dialect.files(loop), Written(standing.folder.path)
    paths = files.of(range(1, dialect.counted(standing.state) + 1))
    paths = tuple(path for path in paths if path in written or not written)
    theirs = places.of_later_loops(standing, paths)
    mine = [
        path for path in paths if path not in theirs and written.recognizes(path, follower.digest_at(workspace, path))
    ]
    left = {path: "it does not say what was written last" for path in paths if path not in mine}
    left |= {path: f"{name}, which began later, writes there" for path, name in theirs.items()}
    left |= dict.fromkeys(files.grown, "it grew, and may be others' as well")
    follower.sweep(workspace, (*files.of([1]), *files.common, *files.shared), loop)
    removed, stuck = follower.remove(workspace, mine, files.folder)
    there = {path: why for path, why in left.items() if os.path.lexists(workspace / path)}
    return Cleaned(removed=removed, left=there, stuck=stuck)


def until_it_is_gone(standing: Standing) -> None:
    """Its agent is ended and its last fact written before anything is removed."""
    deadline = time.monotonic() + _PATIENCE
    while lock.is_held(standing.folder.lock):
        if time.monotonic() > deadline:
            raise UserError(
                f"the loop {standing.loop.id} was asked to end, and has not yet",
                cause=f"it is {lock.owner(standing.folder.lock)}",
                hint="nothing was removed; ask again in a moment",
                exit_code=1,
            )
        time.sleep(0.05)
