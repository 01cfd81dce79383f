"""The limits of a loop: a breaker is one row with what it reads, how the loop ends, and how to raise it."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING

import msgspec

from bydawn.core import kinds
from bydawn.core.rules import Rule
from bydawn.core.text import duration
from bydawn.core.values import MOST_RESTARTS, End, Flag, Moment, Now, Usage

if TYPE_CHECKING:  # both have limits themselves
    from bydawn.core.loop import Loop
    from bydawn.core.state import LoopState

Reading = float | datetime | None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Where the breakers trip; 0 or None switches one off, but for `agent_failures`."""

    rounds: int = 30
    seconds: float | None = None
    until: Moment | None = None
    tokens: int | None = None
    usd: float | None = None
    latest_wake: Moment | None = None  # do not wait for a limit beyond this time
    no_progress: int = 5
    agent_failures: int | None = None  # None: FAILURES in a row, if they are also FAILURES_APART
    check_failures: int = 15  # of checks that have passed before
    same_failure: int = 5
    task_failures: int = 5  # then the task is set aside, and the loop goes on
    no_task_done: int = 20  # where a list has to be done; and rounds in which no red check got better
    iterations: int = 200  # that agents recorded; only where they may


class Tripped(msgspec.Struct, frozen=True):
    """A breaker that has tripped, and the reading that did it."""

    name: Rule
    end: End
    reading: float
    limit: float


class Raising(msgspec.Struct, frozen=True, kw_only=True):
    """How `resume` raises a limit: its flag, the step to raise it by, and how to say what is used."""

    flag: str
    step: float
    used: Callable[[float], str]  # to follow the loop's name
    write: Callable[[float], str] = "{:.0f}".format
    is_total: bool = False  # `resume` does not reset it


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    rule: Rule
    end: End
    label: str  # of its reading in `why`
    key: str = ""  # of its reading in `why --json`, if that differs
    field: str = ""  # of `Limits`
    reading: Callable[["LoopState", Now], Reading]
    reason: Callable[[Tripped, "LoopState"], str]
    trips_at: "Callable[[Limits, LoopState], Reading] | None" = None  # where that is not simply the limit
    raising: Raising | None = None

    def limit(self, limits: Limits, state: "LoopState") -> Reading:
        found: Reading = self.trips_at(limits, state) if self.trips_at else getattr(limits, self.field)
        return found

    def tripped(self, limits: Limits, state: "LoopState", now: Now) -> Tripped | None:
        limit, reading = _amount(self.limit(limits, state)), _amount(self.reading(state, now))
        return Tripped(self.rule, self.end, reading, limit) if 0 < limit <= reading else None


def _amount(reading: Reading) -> float:
    return reading.timestamp() if isinstance(reading, datetime) else reading or 0


def _agent_failed(tripped: Tripped, state: "LoopState") -> str:
    times = f" {tripped.reading:.0f} times in a row" if tripped.reading > 1 else ""
    return f"the agent failed{times}; last: {state.last.ended.detail if state.last else ''}"


def _last(state: "LoopState") -> str:
    return f"; last: {state.last.ended.detail}" if state.last and state.last.ended.detail else ""


def nothing_new(state: "LoopState") -> str:
    unit = "iterations" if state.recording else "rounds"
    return f"{state.rounds_without_progress} {unit} in a row made no new change"


def _same_failure(tripped: Tripped, state: "LoopState") -> str:
    never_ran = any(verdict.never_ran for verdict in state.verdicts)
    how = "a check found no program to run" if never_ran else "the checks failed in exactly the same way"
    return f"{how} {tripped.reading:.0f} times in a row"


def _patience(limits: Limits, state: "LoopState") -> int:
    """Checks that failed before any work get more time: they may be the last to pass.

    Except a check that cannot even be started: its name may be wrong, and no agent can fix that.
    """
    if not state.excused or not limits.same_failure or any(verdict.never_ran for verdict in state.verdicts):
        return limits.same_failure
    return max(limits.same_failure, limits.check_failures) if limits.check_failures else 0


def _failures_allowed(limits: Limits, state: "LoopState") -> int:
    """A number that was given ends the loop by itself; by default, a bad minute must not end the night."""
    if limits.agent_failures is not None:
        return limits.agent_failures
    is_over = state.failing.times >= FAILURES and state.failing.seconds >= FAILURES_APART
    return FAILURES if is_over else max(FAILURES, state.failures_in_a_row + 1)


FAILURES = 5  # of the agent, in a row
FAILURES_APART = 20 * 60  # seconds from the first of them to the last
# Turns that cost no round; there are no flags for these, because more of them would not help.
_CUT_SHORT = MOST_RESTARTS + 1  # what starts it again each time gives up first, and can say how each process died
_PAID_TROUBLE = 5
_OUTAGE = 6 * 3600  # seconds: an outage is waited out, however often it is tried
_IN_VAIN = 3  # rounds; there is no flag for it, because more of them would fail as well

_ROWS = (  # in the order in which `why` shows them
    Breaker(
        rule=Rule.ROUNDS,
        end=End.LIMIT,
        label="rounds",
        field="rounds",
        reading=lambda state, _: state.rounds,
        reason=lambda it, _: f"all {it.limit:.0f} rounds are used up" if it.limit > 1 else "the only round is used up",
        raising=Raising(flag="rounds", step=20, used="has used {:.0f} rounds".format, is_total=True),
    ),
    Breaker(
        rule=Rule.ROUNDS_THIS_RUN,
        end=End.LIMIT,
        label="rounds this run",
        reading=lambda state, _: state.rounds_this_run,
        trips_at=lambda _, state: state.rounds_allowed,
        reason=lambda it, _: f"this run was allowed {it.limit:.0f} {'round' if it.limit == 1 else 'rounds'}",
    ),
    Breaker(
        rule=Rule.ITERATIONS,
        end=End.LIMIT,
        label="iterations that agents recorded",
        field="iterations",
        reading=lambda state, _: state.records.iterations,
        reason=lambda it, _: f"all {it.limit:.0f} iterations are used up",
        raising=Raising(flag="iterations", step=50, used="has recorded {:.0f} iterations".format, is_total=True),
    ),
    Breaker(
        rule=Rule.NO_PROGRESS,
        end=End.BLOCKED,
        label="rounds without progress",
        field="no_progress",
        reading=lambda state, _: state.rounds_without_progress,
        reason=lambda _, state: nothing_new(state),
        raising=Raising(flag="max-no-change", step=5, used="made no progress in {:.0f} rounds".format),
    ),
    Breaker(
        rule=Rule.NO_TASK_DONE,
        end=End.BLOCKED,
        label="rounds without a task done or a check fixed",
        field="no_task_done",
        reading=lambda state, _: state.rounds_without_result,
        reason=lambda it, _: f"in {it.reading:.0f} rounds no task was done and no check turned green",
        raising=Raising(flag="max-no-task-done", step=20, used="did no task in {:.0f} rounds".format),
    ),
    Breaker(
        rule=Rule.STILL_RED,
        end=End.BLOCKED,
        label="rounds with a red check and no fewer failures",
        field="no_task_done",
        reading=lambda state, _: state.red_rounds,
        reason=lambda it, _: f"in {it.reading:.0f} rounds no check turned green, and there were never fewer failures",
        raising=Raising(flag="max-no-task-done", step=20, used="fixed no check in {:.0f} rounds".format),
    ),
    Breaker(
        rule=Rule.SAME_FAILURE,
        end=End.BLOCKED,
        label="rounds in a row with the same failure",
        field="same_failure",
        reading=lambda state, _: state.same_failure,
        trips_at=_patience,
        reason=_same_failure,
        raising=Raising(flag="max-same-failure", step=5, used="failed the same way {:.0f} times".format),
    ),
    Breaker(
        rule=Rule.CHECK_FAILURES,
        end=End.BLOCKED,
        label="rounds in a row with a newly failing check",
        key="rounds in a row with a check red that had been green",
        field="check_failures",
        reading=lambda state, _: state.check_failures_in_a_row,
        reason=lambda it, _: f"checks failed after {it.reading:.0f} rounds in a row",
        raising=Raising(flag="max-check-failures", step=15, used="failed checks {:.0f} times".format),
    ),
    Breaker(
        rule=Rule.AGENT_FAILURES,
        end=End.FAILED,
        label="agent failures in a row",
        field="agent_failures",
        reading=lambda state, _: state.failures_in_a_row,
        trips_at=_failures_allowed,
        reason=_agent_failed,
        raising=Raising(flag="max-failures", step=3, used="has failed {:.0f} times in a row".format),
    ),
    Breaker(
        rule=Rule.COMMANDS_FAILED,
        end=End.FAILED,
        label="rounds in a row in which every command failed",
        reading=lambda state, _: state.vain_rounds,
        trips_at=lambda *_: _IN_VAIN,
        reason=lambda it, state: (
            f"{it.reading:.0f} rounds in a row, {state.last.ended.commands.told if state.last else ''}"
        ),
    ),
    Breaker(
        rule=Rule.CUT_SHORT,
        end=End.FAILED,
        label="attempts in a row that were cut short",
        reading=lambda state, _: state.free.cut_short,
        trips_at=lambda *_: _CUT_SHORT,
        reason=lambda it, state: f"{it.reading:.0f} attempts in a row were cut short{_last(state)}",
    ),
    Breaker(
        rule=Rule.PAID_TROUBLE,
        end=End.FAILED,
        label="times in a row that the agent used tokens and had trouble",
        reading=lambda state, _: state.free.paid,
        trips_at=lambda *_: _PAID_TROUBLE,
        reason=lambda it, state: f"the agent used tokens and had trouble {it.reading:.0f} times in a row{_last(state)}",
    ),
    Breaker(
        rule=Rule.OUTAGE,
        end=End.FAILED,
        label="seconds of nothing but trouble",
        reading=lambda state, _: state.free.seconds,
        trips_at=lambda *_: _OUTAGE,
        reason=lambda it, state: f"the agent had nothing but trouble for {duration(it.reading)}{_last(state)}",
    ),
    Breaker(
        rule=Rule.TIME,
        end=End.LIMIT,
        label="seconds worked",
        field="seconds",
        reading=lambda _, now: now.elapsed,
        reason=lambda it, _: f"the loop has worked for {duration(it.limit)}",
        raising=Raising(
            flag="for",
            step=7200,
            write=kinds.span_text,
            used=lambda seconds: f"has worked for {duration(seconds)}",
            is_total=True,
        ),
    ),
    Breaker(
        rule=Rule.TIME_THIS_RUN,
        end=End.LIMIT,
        label="seconds this run",
        reading=lambda state, now: round(now.elapsed - state.run_elapsed, 3),
        trips_at=lambda _, state: state.seconds_allowed,
        reason=lambda it, _: f"this run was allowed {duration(it.limit)}",
    ),
    Breaker(
        rule=Rule.UNTIL,
        end=End.LIMIT,
        label="until",
        field="until",
        reading=lambda _, now: now.at,
        reason=lambda *_: "the time to stop has come",
    ),
    Breaker(
        rule=Rule.TOKENS,
        end=End.LIMIT,
        label="tokens",
        field="tokens",
        reading=lambda state, _: state.usage.tokens if state.usage else None,
        reason=lambda it, _: f"used {it.reading:,.0f} tokens of a budget of {it.limit:,.0f}",
        raising=Raising(
            flag="budget",
            step=1e6,
            write=partial(kinds.amount_text, "tok"),
            used="has used {:,.0f} tokens".format,
            is_total=True,
        ),
    ),
    Breaker(
        rule=Rule.COST,
        end=End.LIMIT,
        label="dollars",
        field="usd",
        reading=lambda state, _: state.usage.cost_usd if state.usage else None,
        reason=lambda it, _: f"spent ${it.reading:.2f} of a budget of ${it.limit:.2f}",
        raising=Raising(
            flag="budget",
            step=3,
            write=partial(kinds.amount_text, "usd"),
            used="has spent ${:.2f}".format,
            is_total=True,
        ),
    ),
)
# In the order a person would ask: does the agent work, does it get anywhere, is anything used up?
BREAKERS = sorted(_ROWS, key=lambda row: (End.FAILED, End.BLOCKED, End.LIMIT).index(row.end))
BY_RULE = {row.rule: row for row in BREAKERS}
FREE = {Rule.CUT_SHORT, Rule.PAID_TROUBLE, Rule.OUTAGE}  # turns that cost no round
LABELS = {row.key or row.label: row.label for row in BREAKERS}


def limits_of(loop: "Loop", state: "LoopState") -> Limits:
    """The limits in force: the loop's own, unless a person raised them."""
    return state.raised or loop.limits


def _idle(loop: "Loop") -> set[Rule]:
    """Without a list that has to be done, no round can finish a task; not every agent may record iterations."""
    used = {Rule.NO_TASK_DONE: "tasks" in loop.requires, Rule.ITERATIONS: bool(loop.recording)}
    return {rule for rule, is_used in used.items() if not is_used}


def tripped(loop: "Loop", state: "LoopState", now: Now) -> Tripped | None:
    """The first breaker that has tripped."""
    limits, idle, fails = limits_of(loop, state), _idle(loop), is_failing(loop, state)
    rows = (row for row in BREAKERS if row.rule not in idle and not (fails and row.end is End.BLOCKED))
    return next(filter(None, (row.tripped(limits, state, now) for row in rows)), None)


def is_failing(loop: "Loop", state: "LoopState") -> bool:
    """Did nothing but its agent's failure come of the last round? How many of these are too many has a rule of its own,
    and they say nothing about the work."""
    fails = state.failing.times > 0 and state.last is not None and not state.last.ended.found.progress
    return fails and limits_of(loop, state).agent_failures is None


def readings(loop: "Loop", state: "LoopState", now: Now) -> dict[str, tuple[Reading, Reading]]:
    """What every breaker reads and its limit, by key."""
    limits, idle = limits_of(loop, state), _idle(loop)
    found = {
        row.key or row.label: (row.reading(state, now), 0 if row.rule in idle else row.limit(limits, state))
        for row in _ROWS
    }
    apart = round(state.failing.seconds, 1), FAILURES_APART if limits.agent_failures is None else None
    return found | {"seconds from the first agent failure in a row to the last": apart}


def overspent(loop: "Loop", state: "LoopState", now: Usage | None) -> bool:
    """Would the running round, with what it has used so far, exceed the budget?"""
    limits = limits_of(loop, state)
    total = now.plus(state.usage) if now else state.usage
    pairs = [(total.tokens, limits.tokens), (total.cost_usd, limits.usd)] if total else []
    return any(limit and reading and reading >= limit for reading, limit in pairs)


def time_left(loop: "Loop", state: "LoopState", now: Now) -> float:
    """Seconds until the first time limit."""
    limits = limits_of(loop, state)
    this_run = now.elapsed - state.run_elapsed
    pairs: list[tuple[Reading, Reading]] = [
        *((limits.seconds, now.elapsed), (limits.until, now.at), (state.seconds_allowed, this_run)),
    ]
    ends = [_amount(limit) - _amount(reading) for limit, reading in pairs if _amount(limit) > 0]
    return max(0.0, min(ends, default=inf))


# -- how far a limit must be raised before a loop can go on ------------------------------------------------------------


class NewLimit(msgspec.Struct, frozen=True):
    """A limit that a person sets: a field of `Limits`, and its new value, given the limits in force."""

    field: str
    value: Callable[[Limits], float | datetime]


def replaced(limits: Limits, new: Iterable[NewLimit]) -> Limits:
    """These limits with the new ones in their place."""
    given = FAILURES if limits.agent_failures is None else limits.agent_failures
    known = msgspec.structs.replace(limits, agent_failures=given)
    return msgspec.structs.replace(limits, **{each.field: each.value(known) for each in new})


def used_up(loop: "Loop", state: "LoopState", fields: Collection[str], now: Now) -> Tripped | None:
    """The first of these limits that would end the loop at once; a new time is always in the future."""
    rows = [row for row in BREAKERS if row.field in fields and row.raising]
    return next(filter(None, (row.tripped(limits_of(loop, state), state, now) for row in rows)), None)


def all_used_up(loop: "Loop", state: "LoopState", now: Now) -> list[Tripped]:
    """Every total that is used up: raising one does not help while another still stops the loop."""
    rows = [row for row in BREAKERS if row.raising and row.raising.is_total]
    return [*filter(None, (row.tripped(limits_of(loop, state), state, now) for row in rows))]


def asked(limit: Tripped) -> str:
    """The limit as it was typed."""
    how = _raising(limit.name)
    return f"--{how.flag} {how.write(limit.limit)}"


def used(limit: Tripped) -> str:
    """What has been used, as the end of a sentence that begins with the loop's name."""
    return _raising(limit.name).used(limit.reading)


def enough(limit: Tripped, state: "LoopState") -> dict[str, Flag]:
    """The flag of `resume` with a new value for this limit that lets the loop go on."""
    how = _raising(limit.name)
    return {how.flag: how.write(_steps(limit, state, 0))}


def raised(limits: "Iterable[Tripped]", state: "LoopState") -> dict[str, Flag]:
    """The flags of `resume` that add to these limits, so that the loop can go on."""
    found = dict[str, list[str]]()
    for limit in limits:
        how = _raising(limit.name)
        found.setdefault(how.flag, []).append(f"+{how.write(_steps(limit, state, limit.limit))}")
    return {**found}


def _raising(rule: Rule) -> Raising:
    how = BY_RULE[rule].raising
    assert how  # noqa: S101 - only breakers with one are ever used up
    return how


def _steps(limit: Tripped, state: "LoopState", base: float) -> float:
    """Whole steps above `base`, beyond what is used, with room for another round like those so far."""
    step = _raising(limit.name).step
    room = max(step / 2, limit.reading / max(1, state.round))
    return step * max(1, ceil((limit.reading - base + room) / step))
