"""How far does a limit have to reach, so that a loop can go on?"""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from math import ceil

import msgspec

from bydawn.core.breakers import BREAKERS, BY_RULE, Limits, Raising, Tripped, limits_of
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Now


class NewLimit(msgspec.Struct, frozen=True):
    """A limit that a person sets anew: which field of `Limits`, and what it becomes, given those in force."""

    field: str
    value: Callable[[Limits], float | datetime]


def replaced(limits: Limits, new: Iterable[NewLimit]) -> Limits:
    """These limits with the new ones in their place."""
    return msgspec.structs.replace(limits, **{each.field: each.value(limits) for each in new})


def used_up(loop: Loop, state: LoopState, fields: Collection[str], now: Now) -> Tripped | None:
    """The first of these limits that would end the loop at once; who names a moment names one to come."""
    rows = [row for row in BREAKERS if row.field in fields and row.raising]
    return next(filter(None, (row.tripped(limits_of(loop, state), state, now) for row in rows)), None)


def all_used_up(loop: Loop, state: LoopState, now: Now) -> list[Tripped]:
    """Every total that the loop has used up: raising one of them is of no use while another still holds."""
    rows = [row for row in BREAKERS if row.raising and row.raising.is_total]
    return [*filter(None, (row.tripped(limits_of(loop, state), state, now) for row in rows))]


def asked(limit: Tripped) -> str:
    """The limit as it was typed."""
    how = _raising(limit.name)
    return f"{how.flag} {how.write(limit.limit)}"


def used(limit: Tripped) -> str:
    """What has been used of it, to follow the loop's name."""
    return _raising(limit.name).used(limit.reading)


def enough(limit: Tripped, state: LoopState) -> str:
    """A limit in its place with which the loop can go on."""
    how = _raising(limit.name)
    return f"{how.flag} {how.write(_steps(limit, state, 0))}"


def raised(limit: Tripped, state: LoopState) -> str:
    """What has to be added to it before the loop can go on."""
    how = _raising(limit.name)
    return f"{how.flag} +{how.write(_steps(limit, state, limit.limit))}"


def _raising(rule: Rule) -> Raising:
    how = BY_RULE[rule].raising
    assert how  # noqa: S101 - no other breaker is ever found to be used up
    return how


def _steps(limit: Tripped, state: LoopState, base: float) -> float:
    """Whole steps from `base` on, beyond what is used, with room for another round like those before."""
    step = _raising(limit.name).step
    room = max(step / 2, limit.reading / max(1, state.round))
    return step * max(1, ceil((limit.reading - base + room) / step))
