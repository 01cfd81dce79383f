"""What has happened, round by round, for views that describe it in another tool's words."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import (
    AnyFact,
    ChecksEnded,
    CommitEnded,
    LoopStopped,
    Record,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TaskSettled,
)
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY
from bydawn.core.replay import after
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState, Settled
from bydawn.core.values import FINISHED, Death, Restart, TaskStatus

EVENTS_KEPT = 500
K = TypeVar("K")


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One round, and its number among those that count: a round that was cut short is retried under the same number."""

    round: int
    counted: int = 0
    cut: int = 0  # how many before it were cut short: for a dialect that numbers those too, its number is the sum
    started_at: datetime
    started: RoundStarted
    ended_at: datetime | None = None
    ended: RoundEnded | None = None
    checks: ChecksEnded | None = None
    commit: CommitEnded | None = None


def begun(state: LoopState) -> Attempt | None:
    """The round that is open in a state."""
    opened = state.open_round
    if opened is None:
        return None
    counted, cut = state.rounds + 1, state.cut_rounds
    return Attempt(round=opened.round, counted=counted, cut=cut, started_at=opened.started_at, started=opened.started)


def grown(attempt: Attempt, fact: AnyFact, at: datetime) -> Attempt:
    """The round, with one more fact about it."""
    match fact:
        case RoundEnded():
            return replace(attempt, ended=fact, ended_at=at)
        case ChecksEnded() if fact.round == attempt.round:
            return replace(attempt, checks=fact)
        case CommitEnded() if fact.round == attempt.round:
            return replace(attempt, commit=fact)
        case _:
            return attempt


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Between rounds: a task came into another state, the run stopped, or it was started again by itself."""

    at: datetime
    attempts: int  # so many before it: its place, whatever the clock says
    round: int
    task: str | None = None
    status: TaskStatus | None = None
    by: str = ""
    reason: str = ""
    stopped: LoopStopped | None = None
    restart: Restart | None = None  # the process had died; with a stop: it had died so too often
    is_repeat: bool = False  # an end that only says again why its task is blocked

    @property
    def blocks(self) -> bool:
        """Does work on its task, or on all of them, no longer go on?"""
        if self.stopped:
            return self.stopped.end not in FINISHED and self.rule != Rule.ONLY_CHECKS
        return self.status is TaskStatus.ASIDE

    @property
    def rule(self) -> str:
        return self.stopped.decided.rule if self.stopped else self.by


class Worked(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened to one task of a folder."""

    rounds: int = 0
    last: Attempt | None = None  # that has ended
    checks: ChecksEnded | None = None
    fallback: str = ""  # why a conversation about it could not be continued, if one ever could not
    moved: Event | None = None  # since its last round began


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over all runs, also of what is no longer kept."""

    failures: int = 0  # attempts in which the agent failed, transient ones too
    red: int = 0  # times that checks failed
    fallbacks: int = 0
    blocks: dict[tuple[str, str], int] = {}  # by rule and, for an obstacle, its kind; without repeats
    restarts: dict[tuple[Death, int | None], int] = {}  # by how the process had died
    restarted: Event | None = None  # the last one, …
    given_up: Event | None = None  # … and the last time that there was no other


class History:
    """Every attempt so far, in order; the last events; and what became of each task of a folder."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.attempts: list[Attempt] = []
        self.events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self.tasks: dict[str, Worked] = {}
        self.totals = Totals()
        self._settled = Settled()
        self._reasons: dict[str | None, tuple[str, str, int]] = {}  # why each task was blocked last
        state = LoopState()
        for record in records:
            state = after(state, record)
            self.saw(record.fact, state)

    def saw(self, fact: AnyFact, state: LoopState) -> None:
        """`state` is the state after the fact."""
        at, last = state.updated_at, self.attempts[-1] if self.attempts else None
        if at is None:
            return
        mine = (last and last.started.task_id) or ""
        event = partial(Event, at=at, attempts=len(self.attempts), round=state.round)
        match fact:
            case RoundStarted() if attempt := begun(state):
                self.attempts.append(attempt)
                self._began(fact)
            case RoundEnded() if last:
                self.attempts[-1] = grown(last, fact, at)
                self._add(mine, last=self.attempts[-1])
                self.totals = replace(self.totals, failures=self.totals.failures + POLICY[fact.outcome].is_trouble)
            case ChecksEnded() if last and fact.round == last.round:
                self.attempts[-1] = grown(last, fact, at)
                self._add(mine, last=self.attempts[-1], checks=fact)
                self.totals = replace(self.totals, red=self.totals.red + (not fact.passed))
            case CommitEnded() if last:
                self.attempts[-1] = grown(last, fact, at)
            case RunStarted() if fact.restart:
                self._note(event(restart=fact.restart))
            case LoopStopped() if not fact.is_preparation:
                died = state.given_up if fact.decided.rule == Rule.RESTARTS else None
                self._note(event(task=blocked_task(fact.decided.rule, state), stopped=fact, restart=died))
            case _:
                pass
        if state.settled is not self._settled:
            for task, status in _moves(self._settled, state.settled):
                by, reason = (fact.by, fact.reason) if isinstance(fact, TaskSettled) else ("", "")
                self._add(task, moved=self._note(event(task=task, status=status, by=by, reason=reason)))
            self._settled = state.settled

    def _note(self, event: Event) -> Event:
        stopped, totals = event.stopped, self.totals
        why = (event.rule, stopped.reason if stopped else event.reason, event.round if stopped else 0)
        if stopped and self._reasons.get(event.task) in (why, (*why[:2], 0)):
            event = replace(event, is_repeat=True)
        elif event.blocks or event.restart or event.status is TaskStatus.OPEN:
            self._reasons[event.task] = why
        if event.blocks and not event.is_repeat:
            is_obstacle = stopped and stopped.evidence and event.rule == Rule.OBSTRUCTED
            key = (event.rule, stopped.evidence[0] if stopped and is_obstacle else "")
            totals = replace(totals, blocks=_one_more(totals.blocks, key))
        if event.restart and stopped:
            totals = replace(totals, given_up=event)
        elif event.restart:
            died = (event.restart.why, event.restart.exit_code)
            totals = replace(totals, restarts=_one_more(totals.restarts, died), restarted=event)
        self.totals = totals
        self.events.append(event)
        return event

    def _began(self, fact: RoundStarted) -> None:
        known = self.tasks.get(fact.task_id or "", Worked())
        self._add(fact.task_id or "", rounds=known.rounds + 1, moved=None, fallback=fact.fallback or known.fallback)
        self.totals = replace(self.totals, fallbacks=self.totals.fallbacks + bool(fact.fallback))

    def _add(self, task: str, **known: Any) -> None:
        if task:
            self.tasks[task] = replace(self.tasks.get(task, Worked()), **known)


def _one_more(counts: dict[K, int], key: K) -> dict[K, int]:
    return {**counts, key: counts.get(key, 0) + 1}


def blocked_task(rule: str, state: LoopState) -> str | None:
    """The task that an end by this rule is about: the one set aside last, if that is why, or the one worked on last."""
    if rule in (Rule.AGENT_BLOCKED, Rule.TASKS_ASIDE) and state.settled.aside:
        return state.settled.aside[-1]
    return state.last.task_id if state.last else None


def states_of(settled: Settled) -> dict[str, TaskStatus]:
    """The state of each task that is not open."""
    places = {TaskStatus.DONE: settled.done, TaskStatus.ASIDE: settled.aside, TaskStatus.SKIPPED: settled.skipped}
    return {task: status for status, tasks in places.items() for task in tasks}


def _moves(before: Settled, now: Settled) -> Iterator[tuple[str, TaskStatus]]:
    """The tasks that are in another state than before."""
    was, is_now = states_of(before), states_of(now)
    for task in {**was, **is_now}:
        if (status := is_now.get(task, TaskStatus.OPEN)) is not was.get(task):
            yield task, status


def number(loop: Loop, state: LoopState) -> int:
    """The number of the open or the next round, as its dialect counts them."""
    return state.rounds + 1 + (state.cut_rounds if loop.dialect and loop.dialect.numbers_cut else 0)


def counted(state: LoopState, *, numbers_cut: bool = False) -> int:
    """The number of the running round, or of the last one; it never decreases.

    `numbers_cut`: a round that was cut short has used up its number, and is tried again under the next.
    """
    last = state.last
    tried_again = last is not None and not last.counts and not (numbers_cut and last.cut)
    return state.rounds + state.cut_rounds * numbers_cut + bool(state.open_round or tried_again)
