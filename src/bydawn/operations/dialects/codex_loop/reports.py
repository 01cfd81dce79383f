"""What an operator asks about a project: `events`, `snapshots`, `sessions`, `logs tail`, `health`."""

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import HookEnded, Record, RoundStarted
from bydawn.core.history import EVENTS_KEPT
from bydawn.core.layout import STDERR, STDOUT
from bydawn.core.text import duration
from bydawn.dialects.codex_loop import codes, texts
from bydawn.dialects.codex_loop import events as rows_of
from bydawn.dialects.codex_loop.config import NAME
from bydawn.dialects.codex_loop.config import Events as Usual
from bydawn.dialects.codex_loop.document import Session, every_task, latest_task, sessions_of
from bydawn.dialects.codex_loop.events import Row, Wanted
from bydawn.dialects.codex_loop.history import Entry
from bydawn.operations import health as native
from bydawn.operations import outputs
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import project
from bydawn.operations.dialects.codex_loop.project import Looked
from bydawn.operations.health import Finding, Level
from bydawn.operations.settings import secrets
from bydawn.store import heartbeat, watches
from bydawn.store.ledger import backwards, records
from bydawn.store.registry import Standing
from bydawn.store.watches import Watch
from bydawn.system.writing import replace_text

_WORKED = (rows_of.ITERATION, rows_of.RUNNER_FAILURE)


# -- events, snapshots -------------------------------------------------------------------------------------------------


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
    looked = project.look(root)
    _refuse_unknown(looked, wanted.task_id)
    rows, kept, since = _recent(looked, wanted), looked.document.history, wanted.period.since
    is_cut = len(rows) < wanted.limit and len(kept) >= EVENTS_KEPT
    is_cut = is_cut and not (since and since >= datetime.fromisoformat(kept[0].timestamp or ""))
    remark = f"only the last {EVENTS_KEPT} entries are kept here" if is_cut else ""
    return Timeline(rows=looked.for_others(rows), remark=remark)


def snapshots(root: Path, task: str | None, limit: int | None) -> tuple[Entry, ...]:
    """What each iteration left, oldest first: of all tasks or of one, the last so many."""
    looked = project.look(root)
    _refuse_unknown(looked, task)
    worked = [each for each in _worked(looked) if task in (None, each.task_id)]
    return looked.for_others(tuple(worked[-limit:] if limit else worked))


def snapshot(root: Path, iteration: int) -> Entry:
    looked = project.look(root)
    worked = _worked(looked)
    if found := next((each for each in worked if each.iteration == iteration), None):
        return looked.for_others(found)
    cause = f"{worked[0].iteration} to {worked[-1].iteration} are kept" if worked else "no iteration has ended"
    raise UserError(f"there is no snapshot {iteration}", cause=cause, hint=f"`{NAME} snapshots` lists them")


def _worked(looked: Looked) -> list[Entry]:
    return [each for each in looked.document.history if each.event_type in _WORKED]


def _refuse_unknown(looked: Looked, task: str | None) -> None:
    known = every_task(looked.document)
    if task is not None and task not in known:
        project.refuse_unknown_task(looked.root, looked.standing, task, known)


def _recent(looked: Looked, wanted: Wanted) -> tuple[Row, ...]:
    """The last rows that are wanted, in order."""
    every = [rows_of.row_of(entry) for entry in looked.document.history]
    rows = [row for row in every if wanted.takes(row)][-wanted.limit :]
    if wanted.has_hooks:
        # What is before the oldest row that can be shown need not be read.
        is_enough, is_cut = len(rows) == wanted.limit, len(every) >= EVENTS_KEPT
        first = rows[0].iteration if is_enough else every[0].iteration if is_cut else 0
        rows = rows_of.in_order(rows, _hooks(looked, wanted, first))
    return tuple(rows[-wanted.limit :])


def _hooks(looked: Looked, wanted: Wanted, first: int) -> list[Row]:
    """The last ones that are wanted, from this iteration on, in order."""
    tasks = {entry.iteration: entry.task_id for entry in _worked(looked)}
    if opened := looked.standing.state.open_round:
        tasks[opened.round] = opened.started.task_id
    found: list[Row] = []
    for record, ended in _ended(looked.standing, first):
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


def write_report(path: Path, text: str) -> None:
    """A file that a person named; what was there is replaced, whole or not at all."""
    if os.path.lexists(path) and not path.is_file():
        raise UserError(f"{path} is not a regular file", cause="it would be replaced", hint="name another file")
    if not (folder := path.absolute().parent).is_dir():
        raise UserError(f"there is no folder {folder}", cause=f"{path} would be in it", hint="make it, or name another")
    replace_text(path, text, 0o644)


# -- sessions ----------------------------------------------------------------------------------------------------------


def sessions(root: Path, task: str | None, *, latest: bool) -> tuple[Session, ...]:
    """Of every task, of one, or of the one that was worked on last."""
    looked = project.look(root)
    _refuse_unknown(looked, task)
    if latest and (task := latest_task(looked.document)) is None:
        raise UserError("no task has a session yet", cause="no iteration has run", hint=f"`{NAME} run` begins")
    return looked.for_others(sessions_of(looked.document, task))


# -- logs --------------------------------------------------------------------------------------------------------------


def tail(root: Path, lines: int, task: str | None = None) -> list[str]:
    """The last lines of the newest iteration, or of the newest one of a task; or one that says why there are none."""
    loop = project.standing_of(root)
    number = _newest(root, loop if loop and loop.trouble is None else None, task)
    if loop is None or not number:
        return ["No iteration has run yet." if task is None else f"No iteration has worked on {task} yet."]
    if outputs.is_removed(loop, number):
        return [f"The output of iteration {number} was {outputs.REMOVED}."]
    hidden = secrets().knowing(loop.folder.secret_texts())
    files = (loop.folder.round_file(number, name) for name in (STDOUT, STDERR))  # who fails says why on stderr
    found = next(filter(None, (outputs.masked_lines(each, lines, hidden) for each in files)), [])
    return found or [f"Iteration {number} has printed nothing{' yet' if loop.alive else ''}."]


def _newest(root: Path, loop: Standing | None, task: str | None) -> int:
    """The number of the newest iteration, 0 if there is none; refused for a task that is unknown."""
    if task is None:
        return loop.state.round if loop else 0
    facts = (record.fact for record in (records(loop.folder) if loop else ()))
    worked = {fact.task_id: fact.round for fact in facts if isinstance(fact, RoundStarted) and fact.task_id}
    if task in worked:
        return worked[task]
    project.refuse_unknown_task(root, loop, task, worked)
    return 0


# -- health ------------------------------------------------------------------------------------------------------------


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, why, and what happened last; `status` has the figures."""

    health: Level
    problems: tuple[str, ...]
    project_dir: str
    watchdog: str | None = None  # who starts the run again if it dies: `daemon (pid 4711)`
    events: rows_of.Summary | None = None


def health(given: Path, events_limit: int) -> Health:
    """Of the project in a folder: what bydawn says of its state folder, and what this tool says of the project."""
    try:
        root = project.root_of(given)
    except UserError as error:
        return Health(health=Level.ERROR, problems=(error.sentence,), project_dir=str(given))
    watch, looked, problems = _watch(root), None, list[Finding]()
    try:
        project.config_of(root)
    except UserError as error:
        problems.append(Finding(verdict=Level.ERROR, what=error.sentence))
    try:
        if project.standing_of(root):
            looked = project.look(root)
            problems += (Finding(verdict=Level.DEGRADED, what=each) for each in _troubles(looked, watch))
    except UserError as error:
        problems.append(Finding(verdict=Level.ERROR, what=error.sentence))
    found = native.health(loops.registry_of().root, (), problems)
    answer = Health(
        health=found.verdict,
        problems=tuple(each.what for each in found.findings),
        project_dir=str(root),
        watchdog=f"{watch.kind} (pid {watch.pid})" if watch else None,
        events=rows_of.summary_of(_recent(looked, Wanted(limit=events_limit))) if looked else None,
    )
    return looked.for_others(answer) if looked else answer


def _watch(root: Path) -> Watch | None:
    """Who keeps it running; bydawn's own service takes care of what no one else watches."""
    registry = loops.registry_of()
    every = watches.of(registry, None)
    return watches.of(registry, root) or (Watch(kind=f"{every.kind} of all loops", pid=every.pid) if every else None)


def _troubles(looked: Looked, watch: Watch | None) -> Iterator[str]:
    """What blocks the project, or else the tasks that are blocked while it goes on; and a run that hangs."""
    document, loop = looked.document, looked.standing
    blocker = document.meta.last_blocker
    if watch and blocker and blocker.reason == texts.DIED:
        told = f": `{NAME} {watch.kind} status`" if watch.kind in ("daemon", "service") else ""
        yield f"the process that ran it died, and the {watch.kind} has not started it again yet{told}"
    elif document.meta.overall_status == codes.BLOCKED:
        yield f"blocked by {blocker.code}: {blocker.reason}" if blocker else "blocked"
    else:
        for id_, task in document.tasks.items():
            if task.status == codes.BLOCKED:
                yield f"{id_} is blocked by {task.blocker_code}: {task.blocker_reason}"
    if loop.alive and heartbeat.is_stale(loop.folder):
        yield f"the run has given no sign of life for {duration(heartbeat.age(loop.folder) or 0)}"
