"""`state.json`: the whole project as one document, made from the ledger and never read back."""

import shlex
from collections import Counter

import msgspec
from msgspec.structs import replace

from bydawn.core.breakers import limits_of
from bydawn.core.history import Event, History, Totals, Worked, blocked_task, states_of
from bydawn.core.loop import Loop
from bydawn.core.progress import tally_of
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState, known_as
from bydawn.core.text import plain
from bydawn.core.values import FINISHED, TaskReading, TaskStatus
from bydawn.dialects.codex_loop import codes, texts
from bydawn.dialects.codex_loop.history import Entry, Result, entries, error_of, moment, results

PENDING, READY, IN_PROGRESS, DONE = "pending", "ready", "in_progress", "done"
# One that a person skipped is archived, and never was more than pending.
_STATUS = {TaskStatus.DONE: DONE, TaskStatus.ASIDE: codes.BLOCKED, TaskStatus.SKIPPED: PENDING}


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    task_id: str | None = None
    code: str = ""
    reason: str | None = None
    timestamp: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    status: str = PENDING
    session_id: str | None = None
    iterations: int = 0
    last_iteration: int | None = None  # its number
    consecutive_task_failures: int = 0
    last_summary: str | None = None
    files_changed: tuple[str, ...] = ()
    last_error: str | None = None
    blocker_code: str | None = None
    blocker_reason: str | None = None
    resume_fallback_used: bool = False
    resume_failure_reason: str | None = None
    last_verification_results: tuple[Result, ...] = ()
    updated_at: str | None = None


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    project_name: str | None = None
    source_prompt: str | None = None
    iteration: int = 0
    no_progress_iterations: int = 0
    consecutive_runner_failures: int = 0
    consecutive_verification_failures: int = 0
    last_fingerprint: str | None = None
    last_error: str | None = None
    last_blocker: Blocker | None = None
    overall_status: str = codes.INITIALIZED
    archived_tasks: dict[str, Task] = {}  # those that a person skipped, or whose file is gone
    worktree_path: str | None = None
    worktree_branch: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class Died(msgspec.Struct, frozen=True, kw_only=True):
    """The process of a run had died: it was started again, or had died too often for that."""

    timestamp: str
    iteration: int
    restart_reason: str | None
    restart_count: int | None  # in a row


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """What only bydawn knows. Counts include what `history` no longer has."""

    loop: str
    uid: str
    seq: int
    runner_failures_total: int = 0
    verification_failures_total: int = 0
    resume_fallbacks_total: int = 0
    blocked_by_code: dict[str, int] = {}
    watchdog_restart_reasons: dict[str, int] = {}
    watchdog_exhausted_total: int = 0
    latest_watchdog_restart: Died | None = None
    latest_watchdog_exhausted: Died | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    meta: Meta
    tasks: dict[str, Task] = {}
    history: tuple[Entry, ...] = ()
    bydawn: Ours


def document_of(loop: Loop, state: LoopState, history: History, tasks: TaskReading | None = None) -> Document:
    """The document as the ledger has it; `tasks` is a newer reading of the folder than that has."""
    state = replace(state, tasks=tasks) if tasks else state
    words, tree = loop.dialect.words if loop.dialect else {}, loop.worktree
    listed, archived = _tasks(loop, state, history)
    meta = Meta(
        project_name=words.get("project") or loop.id,
        source_prompt=words.get("source_prompt") or loop.prompt,
        iteration=state.round,
        no_progress_iterations=state.rounds_without_progress,
        consecutive_runner_failures=state.failures_in_a_row,
        consecutive_verification_failures=state.check_failures_in_a_row,
        last_fingerprint=known_as(state.tree) or None,
        last_error=error_of(history.attempts[-1]) if history.attempts else None,
        last_blocker=_blocker(state, history),
        overall_status=_overall(state),
        archived_tasks=archived,
        worktree_path=tree.path if tree else None,
        worktree_branch=tree.branch if tree else None,
        created_at=moment(loop.created_at),
        updated_at=moment(state.updated_at or loop.created_at),
    )
    return Document(meta=meta, tasks=listed, history=entries(history), bydawn=_ours(loop, state, history.totals))


def _ours(loop: Loop, state: LoopState, totals: Totals) -> Ours:
    blocked: Counter[str] = Counter()
    for (rule, kind), count in totals.blocks.items():
        blocked[codes.code(rule, kind)] += count
    exhausted = blocked.pop(codes.WATCHDOG_EXHAUSTED, 0)
    reasons: Counter[str] = Counter()
    for (why, exit_code), count in totals.restarts.items():
        reasons[codes.death(why, exit_code)] += count
    return Ours(
        loop=loop.id,
        uid=loop.uid,
        seq=state.seq,
        runner_failures_total=totals.failures,
        verification_failures_total=totals.red,
        resume_fallbacks_total=totals.fallbacks,
        blocked_by_code=dict(blocked),
        watchdog_restart_reasons=dict(reasons),
        watchdog_exhausted_total=exhausted,
        latest_watchdog_restart=_died(totals.restarted),
        latest_watchdog_exhausted=_died(totals.given_up),
    )


def _died(event: Event | None) -> Died | None:
    if event is None or event.restart is None:
        return None
    reason = codes.restart_reason(event.restart)
    return Died(
        timestamp=moment(event.at), iteration=event.round, restart_reason=reason, restart_count=event.restart.number
    )


def _overall(state: LoopState) -> str:
    stopped = codes.last_stop(state)
    if not state.runs:
        return codes.INITIALIZED
    if stopped is None:
        return codes.RUNNING
    # whatever ended it, a project with a blocked task is not complete.
    return codes.COMPLETED if stopped.end in FINISHED and not state.settled.aside else codes.BLOCKED


def _blocker(state: LoopState, history: History) -> Blocker | None:
    """What blocks the whole run now, or else the task that was blocked last."""
    stopped = codes.last_stop(state)
    aside = state.settled.aside[-1] if state.settled.aside else None
    if stopped and (code := codes.code_of(stopped)):
        at, task = moment(stopped.decided.at), blocked_task(stopped.decided.rule, state)
        return Blocker(task_id=task, code=code, reason=texts.reason(stopped), timestamp=at)
    if aside and (moved := history.tasks.get(aside, Worked()).moved):
        return Blocker(task_id=aside, code=codes.of_event(moved), reason=moved.reason, timestamp=moment(moved.at))
    return None


def _tasks(loop: Loop, state: LoopState, history: History) -> tuple[dict[str, Task], dict[str, Task]]:
    """Those that are to be done or are done, and the others that are known, in natural order."""
    from bydawn.core.task_folder import natural  # it brings a parser along, and `status` needs none

    reading, opened, settled = state.tasks, state.open_round, states_of(state.settled)
    there = {id_ for id_, status in settled.items() if status is not TaskStatus.SKIPPED}
    if reading and not reading.problem:
        there = (there - {*reading.absent}) | {*reading.open_ids}
    else:  # nothing can be said about what is gone
        there |= history.tasks.keys() - settled.keys()
    # Only the one that is worked on, or comes next, is ready or in progress.
    following = opened.started.task_id if opened else reading.next_id if reading else None
    words = {id_: _STATUS[status] for id_, status in settled.items()}
    if following and following not in settled:
        known = history.tasks.get(following, Worked())
        words[following] = IN_PROGRESS if known.rounds and known.moved is None else READY
    made = {
        id_: replace(_task(id_, loop, state, history.tasks.get(id_, Worked())), status=words.get(id_, PENDING))
        for id_ in sorted({*there, *history.tasks}, key=natural)
    }
    archived = {id_: task for id_, task in made.items() if id_ not in there}
    return {id_: task for id_, task in made.items() if id_ in there}, archived


def _task(id_: str, loop: Loop, state: LoopState, known: Worked) -> Task:
    last, moved, opened = known.last, known.moved, state.open_round
    ended = last.ended if last else None
    session = next((each.id for each in state.sessions if each.task_id == id_), None)
    number = last.round if last else None
    if opened and opened.started.task_id == id_:
        session, number = opened.session or session, opened.round
    blocked = moved if moved and moved.status is TaskStatus.ASIDE else None
    failures = tally_of(state.tallies, id_).failures
    if blocked and blocked.by == Rule.TASK_FAILURES:  # they no longer count against it; people want to see them
        failures = limits_of(loop, state).task_failures
    return Task(
        session_id=session,
        iterations=known.rounds,
        last_iteration=number,
        consecutive_task_failures=failures,
        last_summary=(ended and ended.said) or None,
        files_changed=ended.found.changes.paths if ended else (),
        last_error=(moved.reason if moved and moved.status is TaskStatus.OPEN else "") or error_of(last),
        blocker_code=codes.of_event(blocked) if blocked else None,
        blocker_reason=blocked.reason if blocked else None,
        resume_fallback_used=bool(known.fallback),
        resume_failure_reason=known.fallback or None,
        last_verification_results=results(known.checks),
        updated_at=moment(moved.at if moved else last.ended_at if last else state.created_at),
    )


def with_liveness(document: Document, *, alive: bool) -> Document:
    """The same if a process runs it; without one, a run that has not ended has died."""
    meta = document.meta
    if alive or meta.overall_status != codes.RUNNING:
        return document
    task, at = current_task(document), meta.updated_at
    died = Blocker(task_id=task, code=codes.INTERRUPTED, reason=texts.DIED, timestamp=at)
    return replace(document, meta=replace(meta, overall_status=codes.BLOCKED, last_blocker=died))


def current_task(document: Document) -> str | None:
    """The task that is worked on, or comes next."""
    return next((id_ for id_, task in document.tasks.items() if task.status in (READY, IN_PROGRESS)), None)


def text_of(value: object) -> str:
    """A document, or another value, as it is written to a file."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def summary_rows(document: Document, state: LoopState | None = None) -> list[tuple[str, str]]:
    """What `status --summary` shows, by name; `state` knows what the document does not tell."""
    meta, ours, current = document.meta, document.bydawn, current_task(document)
    restarted = ours.latest_watchdog_restart
    has_work, doubted = (bool(state.commit), state.settled.doubted) if state else (False, ())
    said = (entry.summary for entry in reversed(document.history) if entry.summary and entry.event_type != "requeued")
    rows = {
        "project": meta.project_name,
        "overall_status": meta.overall_status,
        "iteration": meta.iteration,
        "no_progress_iterations": meta.no_progress_iterations,
        "current_task": current,
        "current_task_session": document.tasks[current].session_id if current else None,
        "runner_failures_total": ours.runner_failures_total,
        "verification_failures_total": ours.verification_failures_total,
        "resume_fallbacks_total": ours.resume_fallbacks_total,
        "watchdog_restarts_total": sum(ours.watchdog_restart_reasons.values()),
        "last_watchdog_restart_reason": restarted.restart_reason if restarted else None,
        "last_blocker_code": meta.last_blocker.code if meta.last_blocker else None,
        "last_blocker_reason": meta.last_blocker.reason if meta.last_blocker else None,
        "last_summary": next(said, None),
        "branch": meta.worktree_branch,
        "merge": f"git merge {shlex.quote(meta.worktree_branch)}" if meta.worktree_branch and has_work else None,
        **{f"task {id_}": _how(task, unchanged=id_ in doubted) for id_, task in document.tasks.items()},
    }
    return [(name, "none" if value is None else " ".join(plain(str(value)).split())) for name, value in rows.items()]


def _how(task: Task, *, unchanged: bool) -> str:
    """A task's status, and why."""
    if task.status == DONE and unchanged:
        return f"{DONE} without a change of its own"
    why = ": ".join(filter(None, [task.blocker_code, task.blocker_reason] if task.blocker_code else [task.last_error]))
    return f"{task.status} ({why})" if why and task.status != DONE else task.status


# -- its sessions ------------------------------------------------------------------------------------------------------


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A task, and its conversation with Codex."""

    task_id: str
    status: str
    session_id: str | None
    iterations: int
    last_iteration: int | None
    updated_at: str | None
    last_summary: str | None
    resume_fallback_used: bool
    resume_failure_reason: str | None
    archived: bool

    @property
    def line(self) -> str:
        """`001-lexer  done  01999999-…  3 iterations, the last is 7  2026-01-06T12:00:00.000Z`"""
        count = f"{self.iterations} iteration{'s' if self.iterations != 1 else ''}"
        last = f"{count}, the last is {self.last_iteration}" if self.last_iteration else count
        lost = f"(began again: {self.resume_failure_reason})" if self.resume_fallback_used else ""
        words = (self.task_id, self.status, self.session_id or "no session", last, self.updated_at, lost)
        return "  ".join(filter(None, words))


def sessions_of(document: Document, task: str | None = None) -> tuple[Session, ...]:
    """Of one task, or of all."""
    known, archived = every_task(document), document.meta.archived_tasks
    return tuple(
        # What else is known of a task is left out.
        msgspec.convert(msgspec.structs.asdict(known[id_]) | {"task_id": id_, "archived": id_ in archived}, Session)
        for id_ in known
        if task in (None, id_)
    )


def latest_task(document: Document) -> str | None:
    """The task that was worked on last."""
    worked = {id_: task for id_, task in every_task(document).items() if task.iterations}
    return max(worked, key=lambda id_: (worked[id_].last_iteration or 0, worked[id_].updated_at or ""), default=None)


def every_task(document: Document) -> dict[str, Task]:
    return {**document.tasks, **document.meta.archived_tasks}
