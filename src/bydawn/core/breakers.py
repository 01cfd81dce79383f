"""Which limit ends the loop? Breakers are rows of one table."""

from math import inf

import msgspec

from bydawn.core.loop import Limits, Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End, Now, Usage


class Tripped(msgspec.Struct, frozen=True):
    """A breaker that says stop, with the reading that made it trip."""

    name: Rule
    end: End
    reading: float
    limit: float


def limits_of(loop: Loop, state: LoopState) -> Limits:
    """The limits in force: those the loop started with, unless a person raised them."""
    return state.raised or loop.limits


def tripped(loop: Loop, state: LoopState, now: Now) -> Tripped | None:
    """The first breaker that has tripped, in the order a person would ask."""
    limits = limits_of(loop, state)
    until = limits.until.timestamp() if limits.until else 0
    table: list[tuple[Rule, End, float, float]] = [
        (Rule.AGENT_FAILURES, End.FAILED, state.failures_in_a_row, limits.agent_failures),
        (Rule.NO_PROGRESS, End.BLOCKED, state.rounds_without_progress, limits.no_progress),
        (Rule.SAME_FAILURE, End.BLOCKED, state.same_failure, _patience(state, limits)),
        (Rule.CHECK_FAILURES, End.BLOCKED, state.check_failures_in_a_row, limits.check_failures),
        (Rule.ROUNDS, End.LIMIT, state.rounds, limits.rounds),
        (Rule.ROUNDS_THIS_RUN, End.LIMIT, state.rounds_this_run, state.rounds_allowed or 0),
        (Rule.TIME, End.LIMIT, now.elapsed, limits.seconds or 0),
        (Rule.UNTIL, End.LIMIT, now.at.timestamp(), until),
        (Rule.TOKENS, End.LIMIT, (state.usage and state.usage.tokens) or 0, limits.tokens or 0),
        (Rule.COST, End.LIMIT, (state.usage and state.usage.cost_usd) or 0, limits.usd or 0),
    ]
    return next(
        (Tripped(name, end, reading, limit) for name, end, reading, limit in table if 0 < limit <= reading),
        None,
    )


def _patience(state: LoopState, limits: Limits) -> int:
    """What was red before anybody worked may stay as it is for longer: it may be the last thing to turn green.

    Not a check that cannot even be started: its name may be wrong, and then no agent can mend it.
    """
    if not state.excused or not limits.same_failure or any(verdict.never_ran for verdict in state.verdicts):
        return limits.same_failure
    return max(limits.same_failure, limits.check_failures) if limits.check_failures else 0


def overspent(loop: Loop, state: LoopState, now: Usage | None) -> bool:
    """Would the running round, with what it has used so far, break the budget?"""
    limits = limits_of(loop, state)
    total = now.plus(state.usage) if now else state.usage
    readings = [(total.tokens, limits.tokens), (total.cost_usd, limits.usd)] if total else []
    return any(limit and reading and reading >= limit for reading, limit in readings)


def time_left(loop: Loop, state: LoopState, now: Now) -> float:
    """Seconds until the first of the limits that are about time."""
    limits = limits_of(loop, state)
    until = limits.until.timestamp() if limits.until else 0
    pairs = [(limits.seconds or 0, now.elapsed), (until, now.at.timestamp())]
    ends = [limit - reading for limit, reading in pairs if limit > 0]
    return max(0.0, min(ends, default=inf))
