"""How far does a limit have to reach, so that a loop can go on?"""

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Any

import msgspec

from bydawn.core import kinds
from bydawn.core.breakers import Tripped, limits_of, tripped
from bydawn.core.loop import Limits, Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import duration
from bydawn.core.values import Now

_TOTALS = ("rounds", "seconds", "tokens", "usd")  # what no `resume` begins anew


def _count(number: float) -> str:
    return f"{number:.0f}"


class _Row(msgspec.Struct, frozen=True):
    """One kind of limit: the flag that raises it, how far in one step, and how people say it."""

    flag: str
    step: float
    write: Callable[[float], str]
    used: Callable[[float], str]


_ROWS = {
    Rule.ROUNDS: _Row("--rounds", 20, _count, lambda count: f"has had {count:.0f} rounds"),
    Rule.TIME: _Row("--for", 7200, kinds.span_text, lambda seconds: f"has worked for {duration(seconds)}"),
    Rule.TOKENS: _Row("--budget", 1e6, partial(kinds.amount_text, "tok"), lambda used: f"has used {used:,.0f} tokens"),
    Rule.COST: _Row("--budget", 3, partial(kinds.amount_text, "usd"), lambda usd: f"has spent ${usd:.2f}"),
    Rule.NO_PROGRESS: _Row("--max-no-change", 5, _count, lambda count: f"got nowhere in {count:.0f} rounds"),
    Rule.AGENT_FAILURES: _Row("--max-failures", 3, _count, lambda count: f"has failed {count:.0f} times in a row"),
    Rule.SAME_FAILURE: _Row("--max-same-failure", 5, _count, lambda count: f"failed {count:.0f} times in the same way"),
    Rule.CHECK_FAILURES: _Row("--max-check-failures", 15, _count, lambda count: f"was red after {count:.0f} rounds"),
}


def used_up(loop: Loop, state: LoopState, limits: Mapping[str, Any], now: Now) -> Tripped | None:
    """The first of these limits, given by name, that would end the loop at once; the others are not looked at."""
    off = {name: 0 for name in Limits.__struct_fields__ if getattr(Limits(), name)}
    only = Limits(**{**off, **limits, "until": None})  # whoever names a moment names one to come
    state = msgspec.structs.replace(state, raised=only, rounds_allowed=None)
    return tripped(loop, state, now)


def all_used_up(loop: Loop, state: LoopState, now: Now) -> list[Tripped]:
    """Every total that the loop has used up: raising one of them is of no use while another still holds."""
    limits = limits_of(loop, state)
    found = (used_up(loop, state, {name: getattr(limits, name)}, now) for name in _TOTALS)
    return [each for each in found if each]


def asked(limit: Tripped) -> str:
    """The limit as it was typed."""
    row = _ROWS[limit.name]
    return f"{row.flag} {row.write(limit.limit)}"


def used(limit: Tripped) -> str:
    """What has been used of it, to follow the loop's name."""
    return _ROWS[limit.name].used(limit.reading)


def enough(limit: Tripped, state: LoopState) -> str:
    """A limit in its place with which the loop can go on."""
    return f"{_ROWS[limit.name].flag} {_ROWS[limit.name].write(_steps(limit, state, 0))}"


def raised(limit: Tripped, state: LoopState) -> str:
    """What has to be added to it before the loop can go on."""
    return f"{_ROWS[limit.name].flag} +{_ROWS[limit.name].write(_steps(limit, state, limit.limit))}"


def _steps(limit: Tripped, state: LoopState, base: float) -> float:
    """Whole steps from `base` on, beyond what is used, with room for another round like those before."""
    step = _ROWS[limit.name].step
    room = max(step / 2, limit.reading / max(1, state.round))
    return step * max(1, ceil((limit.reading - base + room) / step))
