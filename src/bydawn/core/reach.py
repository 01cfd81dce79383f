"""How far must a limit be raised before a loop can go on?"""

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
    """A limit that a person sets: a field of `Limits`, and its new value, given the limits in force."""

    field: str
    value: Callable[[Limits], float | datetime]


def replaced(limits: Limits, new: Iterable[NewLimit]) -> Limits:
    """These limits with the new ones in their place."""
    return msgspec.structs.replace(limits, **{each.field: each.value(limits) for each in new})


def used_up(loop: Loop, state: LoopState, fields: Collection[str], now: Now) -> Tripped | None:
    """The first of these limits that would end the loop at once; a new time is always in the future."""
    rows = [row for row in BREAKERS if row.field in fields and row.raising]
    return next(filter(None, (row.tripped(limits_of(loop, state), state, now) for row in rows)), None)


def all_used_up(loop: Loop, state: LoopState, now: Now) -> list[Tripped]:
    """Every total that is used up: raising one does not help while another still stops the loop."""
    rows = [row for row in BREAKERS if row.raising and row.raising.is_total]
    return [*filter(None, (row.tripped(limits_of(loop, state), state, now) for row in rows))]


def asked(limit: Tripped) -> str:
    """The limit as it was typed."""
    how = _raising(limit.name)
    return f"{how.flag} {how.write(limit.limit)}"


def used(limit: Tripped) -> str:
    """What has been used, as the end of a sentence that begins with the loop's name."""
    return _raising(limit.name).used(limit.reading)


def enough(limit: Tripped, state: LoopState) -> str:
    """A new value for this limit that lets the loop go on."""
    how = _raising(limit.name)
    return f"{how.flag} {how.write(_steps(limit, state, 0))}"


def raised(limit: Tripped, state: LoopState) -> str:
    """What to add to this limit so that the loop can go on."""
    how = _raising(limit.name)
    return f"{how.flag} +{how.write(_steps(limit, state, limit.limit))}"


def _raising(rule: Rule) -> Raising:
    how = BY_RULE[rule].raising
    assert how  # noqa: S101 - only breakers with one are ever used up
    return how


def _steps(limit: Tripped, state: LoopState, base: float) -> float:
    """Whole steps above `base`, beyond what is used, with room for another round like those so far."""
    step = _raising(limit.name).step
    room = max(step / 2, limit.reading / max(1, state.round))
    return step * max(1, ceil((limit.reading - base + room) / step))
