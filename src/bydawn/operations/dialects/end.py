"""Cancel a loop in a dialect's words, and clean up after it."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.history import History, counted
from bydawn.core.text import plain, shorten
from bydawn.core.values import End
from bydawn.dialects import follower
from bydawn.dialects.seam import Cancel, Copy, Dialect, Replace
from bydawn.operations import places, steer
from bydawn.operations.dialects.loops import Row, find
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store import lock
from bydawn.store.ledger import records
from bydawn.store.registry import Standing, standing_of
from bydawn.system.writing import replace_text

_PATIENCE = 30.0  # seconds that a canceled loop gets to end its agent


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files of a loop."""

    removed: list[str]
    left: dict[str, str]  # and why
    stuck: dict[str, str]  # what could not be removed, and why


def cancel(dialect: Dialect, request: Cancel, workspace: Path) -> tuple[Standing, Cleaned | None]:
    """End a loop wherever it stands; with `cleanup` the files go that were written for it."""
    refuse_inside_a_round()
    standing = find(dialect, request.name, workspace)
    stopped = standing.state.stopped
    kept = {}
    if not standing.finished and (stopped is None or stopped.end is not End.STOPPED):
        kept = _kept(dialect, standing) if request.cleanup and not standing.alive else {}
        steer.stop(standing, now=True)
        _until_it_is_gone(standing)
    elif standing.finished and not request.cleanup:
        raise UserError(
            f"the loop {standing.loop.id} is completed already",
            cause="there is nothing to cancel",
            hint="--cleanup-artifacts removes the files that were written for it",
        )
    if request.cleanup:
        _until_it_is_gone(standing)  # it may have a last hook to run
    standing = standing_of(standing.folder) or standing
    return standing, _cleaned(dialect, standing, kept) if request.cleanup else None


def _kept(dialect: Dialect, standing: Standing) -> dict[str, str]:
    """Canceling writes some files once more; what somebody changed in them stays beside them. The copies, and why."""
    workspace, loop = Path(standing.loop.workspace), standing.loop
    done = max(0, counted(standing.state) - 1)
    again = {*dialect.told(loop), *(places.ahead(dialect, loop, done, 1) if not standing.state.stopped else ())}
    again -= {*places.of_later_loops(standing, again)}
    changed = [path for path, is_same in _written(dialect, standing).items() if path in again and not is_same()]
    there = [path for path in changed if follower.text_of(workspace, path) is not None]
    return {follower.keep(workspace, path): f"what somebody had made of {path}" for path in there}


def _cleaned(dialect: Dialect, standing: Standing, kept: dict[str, str]) -> Cleaned:
    """Remove what was written for a loop and still says what was written; what somebody changed is theirs."""
    workspace, loop = Path(standing.loop.workspace), standing.loop
    written = _written(dialect, standing)
    theirs = places.of_later_loops(standing, written)
    written = {path: is_same for path, is_same in written.items() if path not in theirs}
    mine = [path for path, is_same in written.items() if is_same()]
    left = {path: "it does not say what was written last" for path in written if path not in mine}
    left |= dict.fromkeys(dialect.growing(loop), "it grew, and may be others' as well")
    left |= {path: f"{name}, which began later, writes there" for path, name in theirs.items()}
    follower.sweep(workspace, dialect.written(loop, standing.state), loop)
    removed, stuck = follower.remove(workspace, mine, dialect.original_path(loop.id).removesuffix(".json"))
    there = {path: why for path, why in left.items() if os.path.lexists(workspace / path)}
    return Cleaned(removed=removed, left=there | kept, stuck=stuck)


def _written(dialect: Dialect, standing: Standing) -> dict[str, Callable[[], bool]]:
    """Each file that was written for a loop, and how to find out whether it still says what was written last."""
    workspace, loop, state = Path(standing.loop.workspace), standing.loop, standing.state
    history = History(records(standing.folder))
    found: dict[str, Callable[[], bool]] = {}
    for copy in (view for each in history.attempts if each.ended for view in dialect.copies(each, loop)):
        if isinstance(copy, Copy):
            origin = standing.folder.round_file(copy.source.round, copy.source.name)
            found[copy.path] = partial(follower.is_copy, workspace, copy.path, origin)
    for view in dialect.views(state.stopped, loop, state, history) if state.stopped else ():
        if isinstance(view, Replace):
            found[view.path] = partial(_says, workspace, view)
    return found


def _says(workspace: Path, view: Replace) -> bool:
    return follower.text_of(workspace, view.path) == follower.encoded(view.text)


def cancel_left(dialect: Dialect, row: Row, workspace: Path) -> None:
    """Say in the other program's own file that its loop is canceled; whatever else stands there stays."""
    refuse_inside_a_round()
    if row.status == "completed":
        what = f"the loop {shorten(plain(row.id), 80)} is completed already"
        raise UserError(what, cause="there is nothing to cancel", hint="its files are yours to keep or to delete")
    path = dialect.original_path(row.id)
    follower.refuse_unwritable(workspace, [path])
    text = msgspec.json.format(msgspec.json.encode({**row.state, "status": "canceled"}), indent=2).decode()
    replace_text(workspace / path, f"{text}\n", 0o644)


def _until_it_is_gone(standing: Standing) -> None:
    """Its agent is ended and its last fact written before anything is removed."""
    deadline = time.monotonic() + _PATIENCE
    while lock.is_held(standing.folder.lock):
        if time.monotonic() > deadline:
            raise UserError(
                f"the loop {standing.loop.id} has been told to end, and has not yet",
                cause=f"it is {lock.owner(standing.folder.lock)}",
                hint="nothing was removed; ask again in a moment",
                exit_code=1,
            )
        time.sleep(0.05)
