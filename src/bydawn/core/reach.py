"""How far must a limit be raised before a loop can go on?"""

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Any

import msgspec

from bydawn.core import kinds
from bydawn.core.breakers import Tripped, limits_of, tripped
from bydawn.core.facts import Now
from bydawn.core.loop import Limits, Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import duration

_TOTALS = ("rounds", "seconds", "tokens", "usd")  # what `resume` does not reset


def _count(number: float) -> str:
    return f"{number:.0f}"


class _Row(msgspec.Struct, frozen=True):
    """One kind of limit: its flag, the step to raise it by, and how to say what is used."""

    flag: str
    step: float
    write: Callable[[float], str]
    used: Callable[[float], str]


_ROWS = {
    Rule.ROUNDS: _Row("--rounds", 20, _count, lambda count: f"has used {count:.0f} rounds"),
    Rule.TIME: _Row("--for", 7200, kinds.span_text, lambda seconds: f"has worked for {duration(seconds)}"),
    Rule.TOKENS: _Row("--budget", 1e6, partial(kinds.amount_text, "tok"), lambda used: f"has used {used:,.0f} tokens"),
    Rule.COST: _Row("--budget", 3, partial(kinds.amount_text, "usd"), lambda usd: f"has spent ${usd:.2f}"),
    Rule.NO_PROGRESS: _Row("--max-no-change", 5, _count, lambda count: f"made no progress in {count:.0f} rounds"),
    Rule.AGENT_FAILURES: _Row("--max-failures", 3, _count, lambda count: f"has failed {count:.0f} times in a row"),
    Rule.SAME_FAILURE: _Row("--max-same-failure", 5, _count, lambda count: f"failed the same way {count:.0f} times"),
    Rule.CHECK_FAILURES: _Row("--max-check-failures", 15, _count, lambda count: f"failed checks {count:.0f} times"),
}


def used_up(loop: Loop, state: LoopState, limits: Mapping[str, Any], now: Now) -> Tripped | None:
    """The first of the named limits that would end the loop at once; the others are ignored."""
    off = {name: 0 for name in Limits.__struct_fields__ if getattr(Limits(), name)}
    only = Limits(**{**off, **limits, "until": None})  # a given time is always in the future
    state = msgspec.structs.replace(state, raised=only, rounds_allowed=None)
    return tripped(loop, state, now)


def all_used_up(loop: Loop, state: LoopState, now: Now) -> list[Tripped]:
    """Every total that is used up: raising one does not help while another still stops the loop."""
    limits = limits_of(loop, state)
    found = (used_up(loop, state, {name: getattr(limits, name)}, now) for name in _TOTALS)
    return [each for each in found if each]


def asked(limit: Tripped) -> str:
    """The limit as it was typed."""
    row = _ROWS[limit.name]
    return f"{row.flag} {row.write(limit.limit)}"


def used(limit: Tripped) -> str:
    """What has been used, as the end of a sentence that begins with the loop's name."""
    return _ROWS[limit.name].used(limit.reading)


def enough(limit: Tripped, state: LoopState) -> str:
    """A new value for this limit that lets the loop go on."""
    return f"{_ROWS[limit.name].flag} {_ROWS[limit.name].write(_steps(limit, state, 0))}"


def raised(limit: Tripped, state: LoopState) -> str:
    """What to add to this limit so that the loop can go on."""
    return f"{_ROWS[limit.name].flag} +{_ROWS[limit.name].write(_steps(limit, state, limit.limit))}"


def _steps(limit: Tripped, state: LoopState, base: float) -> float:
    """Whole steps above `base`, beyond what is used, with room for another round like those so far."""
    step = _ROWS[limit.name].step
    room = max(step / 2, limit.reading / max(1, state.round))
    return step * max(1, ceil((limit.reading - base + room) / step))
