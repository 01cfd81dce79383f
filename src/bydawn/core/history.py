"""What has happened, round by round, for views that describe it in another tool's words."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

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
from bydawn.core.values import TaskStatus
from bydawn.core.watching import Restart

EVENTS_KEPT = 500


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One round, and its number among those that count: a round that was cut short is retried under the same number."""

    round: int
    counted: int
    cut: int = 0  # how many before it were cut short: for a dialect that numbers those too, its number is the sum
    started_at: datetime
    started: RoundStarted
    ended_at: datetime | None = None
    ended: RoundEnded | None = None
    checks: ChecksEnded | None = None
    commit: CommitEnded | None = None
    stop_requested: bool = False  # did a person ask for its end?


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


class Worked(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened to one task of a folder."""

    rounds: int = 0
    last: Attempt | None = None  # that has ended
    checks: ChecksEnded | None = None
    fallback: str = ""  # why a conversation about it could not be continued, if one ever could not
    moved: Event | None = None  # since its last round began


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts over all runs."""

    failures: int = 0  # of the agent, transient ones too
    red: int = 0  # times that checks failed
    fallbacks: int = 0


class History:
    """Every attempt so far, in order; the last events; and what became of each task of a folder."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.attempts: list[Attempt] = []
        self.events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self.tasks: dict[str, Worked] = {}
        self.totals = Totals()
        self._settled = Settled()
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
            case RoundStarted():
                attempt = Attempt(
                    round=fact.round, counted=state.rounds + 1, cut=state.cut_rounds, started_at=at, started=fact
                )
                self.attempts.append(attempt)
                self._began(fact)
            case RoundEnded() if last:
                self.attempts[-1] = replace(last, ended=fact, ended_at=at, stop_requested=state.stop_now)
                self._add(mine, last=self.attempts[-1])
                self.totals = replace(self.totals, failures=self.totals.failures + POLICY[fact.outcome].is_trouble)
            case ChecksEnded() if last and fact.round == last.round:
                self.attempts[-1] = replace(last, checks=fact)
                self._add(mine, last=self.attempts[-1], checks=fact)
                self.totals = replace(self.totals, red=self.totals.red + (not fact.passed))
            case CommitEnded() if last and fact.round == last.round:
                self.attempts[-1] = replace(last, commit=fact)
            case RunStarted() if fact.restart:
                self.events.append(event(restart=fact.restart))
            case LoopStopped() if not fact.is_preparation:
                died = state.given_up if fact.decided.rule == Rule.RESTARTS else None
                self.events.append(event(task=blocked_task(fact.decided.rule, state), stopped=fact, restart=died))
            case _:
                pass
        if state.settled is not self._settled:
            for task, status in _moves(self._settled, state.settled):
                by, reason = (fact.by, fact.reason) if isinstance(fact, TaskSettled) else ("", "")
                self.events.append(event(task=task, status=status, by=by, reason=reason))
                self._add(task, moved=self.events[-1])
            self._settled = state.settled

    def _began(self, fact: RoundStarted) -> None:
        known = self.tasks.get(fact.task_id or "", Worked())
        self._add(fact.task_id or "", rounds=known.rounds + 1, moved=None, fallback=fact.fallback or known.fallback)
        self.totals = replace(self.totals, fallbacks=self.totals.fallbacks + bool(fact.fallback))

    def _add(self, task: str, **known: Any) -> None:
        if task:
            self.tasks[task] = replace(self.tasks.get(task, Worked()), **known)


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
