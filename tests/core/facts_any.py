"""Hypothesis strategies for any fact there can be, made from the types themselves: a new fact is covered at once."""

from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from bydawn.core.facts import AnyFact, Record
from bydawn.core.loop import Loop
from bydawn.core.ports import Now
from core.facts_made import CHECKED, LISTED, NOON, PROMISED, PROVABLE, STRICT, limited

# A few values that meet each other often, and now and then anything at all.
NAMES = st.sampled_from(["", "a", "b", "tree-0", "tree-1", "tree-2"]) | st.text(max_size=8)
NUMBERS = st.integers(-2, 6) | st.integers(-(2**53), 2**53)
LENGTHS = st.sampled_from([0.0, 0.5, 60.0, 3600.0]) | st.floats(allow_nan=False, allow_infinity=False)
MOMENTS = st.sampled_from([NOON, NOON.replace(hour=20)]) | st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(9000, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: NAMES,
    int: NUMBERS,
    float: LENGTHS,
    bool: st.booleans(),
    datetime: MOMENTS,
    NoneType: st.none(),
}


@cache
def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that occurs in facts."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return values_of(inner[0])
    if origin in (Union, UnionType):
        return st.one_of([values_of(each) for each in inner])
    if origin is tuple:
        return st.lists(values_of(inner[0]), max_size=3).map(tuple)
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    assert issubclass(kind, msgspec.Struct), f"tell the tests how to make a {kind}"
    fields = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: values_of(each) for name, each in fields.items()})


FACTS: st.SearchStrategy[AnyFact] = st.one_of([values_of(kind) for kind in get_args(AnyFact)])
HISTORIES = st.lists(FACTS, max_size=12)
RECORDS = st.builds(Record, seq=st.integers(1, 2**53), at=MOMENTS, fact=FACTS)
LOOPS: st.SearchStrategy[Loop] = st.sampled_from(
    [
        PROMISED,
        CHECKED,
        LISTED,
        PROVABLE,
        STRICT,
        limited(STRICT, rounds=1, no_progress=1, agent_failures=1, seconds=60.0, until=NOON),
        limited(PROVABLE, rounds=0, no_progress=0, agent_failures=0),
    ]
)
CLOCKS: st.SearchStrategy[Now] = st.builds(Now, MOMENTS, LENGTHS)
