"""`events` and `sessions`: what happened in a project, and which conversation each task has."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import HookEnded, Record, RoundStarted
from bydawn.core.history import EVENTS_KEPT
from bydawn.dialects.codex_loop import events as rows_of
from bydawn.dialects.codex_loop.config import NAME
from bydawn.dialects.codex_loop.config import Events as Usual
from bydawn.dialects.codex_loop.events import Row, Wanted
from bydawn.dialects.codex_loop.sessions import Sessions, every_task, latest_task, sessions_of
from bydawn.operations.dialects.codex_loop import project, standing
from bydawn.operations.dialects.codex_loop.standing import Looked
from bydawn.store.ledger import backwards
from bydawn.store.registry import Standing

_WORKED = (rows_of.ITERATION, rows_of.RUNNER_FAILURE)


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened last, oldest first, and what a person should know about that."""

    rows: tuple[Row, ...]
    remark: str = ""


def default_limit(root: Path) -> tuple[int, str]:
    """How many events a person wants to see, and a remark if the file that says so cannot be read."""
    try:
        return project.config_of(root).operator.events.default_limit, ""
    except UserError as error:
        return Usual().default_limit, f"{error.what}; the last {Usual().default_limit} are shown"


def events(root: Path, wanted: Wanted) -> Timeline:
    looked = standing.look(root)
    refuse_unknown(looked, wanted.task_id)
    rows = recent(looked, wanted)
    return Timeline(rows=looked.for_others(rows), remark=_older(looked, wanted, len(rows)))


def refuse_unknown(looked: Looked, task: str | None) -> None:
    known = every_task(looked.document)
    if task is not None and task not in known:
        project.refuse_unknown_task(looked.root, looked.standing, task, known)


def recent(looked: Looked, wanted: Wanted) -> tuple[Row, ...]:
    """The last rows that are wanted, in order."""
    every = [rows_of.row_of(entry) for entry in looked.document.history]
    rows = [row for row in every if wanted.takes(row)][-wanted.limit :]
    if wanted.has_hooks:
        # What is before the oldest row that can be shown need not be read.
        is_enough, is_cut = len(rows) == wanted.limit, len(every) >= EVENTS_KEPT
        first = rows[0].iteration if is_enough else every[0].iteration if is_cut else 0
        rows = rows_of.in_order(rows, _hooks(looked, looked.standing, wanted, first))
    return tuple(rows[-wanted.limit :])


def _hooks(looked: Looked, loop: Standing, wanted: Wanted, first: int) -> list[Row]:
    """The last ones that are wanted, from this iteration on, in order."""
    worked = (entry for entry in looked.document.history if entry.event_type in _WORKED)
    tasks = {entry.iteration: entry.task_id for entry in worked}
    if opened := loop.state.open_round:
        tasks[opened.round] = opened.task_id
    found: list[Row] = []
    for record, ended in _ended(loop, first):
        row = rows_of.row_of_hook(ended, record.at, tasks.get(ended.round))
        if wanted.takes(row):
            found.append(row)
        if len(found) == wanted.limit:
            break
    return found[::-1]


def _ended(loop: Standing, first: int) -> Iterator[tuple[Record, HookEnded]]:
    """Hooks from this iteration on, newest first."""
    for record in backwards(loop.folder):
        fact = record.fact
        if isinstance(fact, HookEnded | RoundStarted) and fact.round < first:
            return
        if isinstance(fact, HookEnded):
            yield record, fact


def _older(looked: Looked, wanted: Wanted, found: int) -> str:
    """What to say if more may be wanted than `history` has."""
    kept = looked.document.history
    is_all = len(kept) < EVENTS_KEPT or found >= wanted.limit or wanted.period.begins_after(kept[0].timestamp)
    if is_all:
        return ""
    return f"only the last {EVENTS_KEPT} entries are kept here"


def sessions(root: Path, task: str | None, *, latest: bool) -> Sessions:
    """Of every task, of one, or of the one that was worked on last."""
    looked = standing.look(root)
    refuse_unknown(looked, task)
    if latest and (task := latest_task(looked.document)) is None:
        raise UserError("no task has a session yet", cause="no iteration has run", hint=f"`{NAME} run` begins")
    return looked.for_others(sessions_of(looked.document, task))
