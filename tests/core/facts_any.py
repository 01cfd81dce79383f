"""Hypothesis strategies for any fact there can be, made from the types themselves: a new fact is covered at once."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from bydawn.core.facts import AnyFact, Record
from bydawn.core.loop import Checkpoint, Loop, OnLimit, OnTamper, Sessions, TaskByTask
from bydawn.core.values import Now
from core.facts_made import CHECKED, FOLDER, LISTED, NOON, PROMISED, PROVABLE, RECORDED, STRICT, a_loop, limited

# Few values, so that they meet each other often and a thousand histories take no time; half of them are odd.
FEW: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(["", "a", "tree-0", "tree-1", "tree-2", "é\x00\u202e\n`#", "x" * 500]),
    int: st.sampled_from([0, 1, 2, 3, 5, -1, 2**53]),
    float: st.sampled_from([0.0, 0.5, 60.0, 3600.0, -1.0, 1e300]),
    bool: st.booleans(),
    datetime: st.sampled_from([NOON, NOON + timedelta(hours=8), NOON - timedelta(days=99999), NOON.replace(year=9000)]),
    NoneType: st.none(),
}
# Whatever there is, for what has to be written down and read back.
ALL = FEW | {
    str: st.text(max_size=20),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


@cache
def values_of(kind: Any, *, few: bool) -> st.SearchStrategy[Any]:
    """Any value of a type that occurs in facts."""
    simple, origin, inner = FEW if few else ALL, get_origin(kind), get_args(kind)
    if kind in simple:
        return simple[kind]
    if origin is Annotated:
        return values_of(inner[0], few=few)
    if origin in (Union, UnionType):
        return st.one_of([values_of(each, few=few) for each in inner])
    if origin is tuple:
        return st.lists(values_of(inner[0], few=few), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(*(values_of(each, few=few) for each in inner), max_size=2)
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    assert issubclass(kind, msgspec.Struct), f"tell the tests how to make a {kind}"
    fields = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: values_of(each, few=few) for name, each in fields.items()})


KINDS = get_args(AnyFact)
FACTS: st.SearchStrategy[AnyFact] = st.one_of([values_of(kind, few=True) for kind in KINDS])
HISTORIES = st.lists(FACTS, max_size=10)
RECORDS = st.builds(
    Record,
    seq=st.integers(1, 2**53),
    at=ALL[datetime],
    fact=st.one_of([values_of(kind, few=False) for kind in KINDS]),
)
LOOPS: st.SearchStrategy[Loop] = st.sampled_from(
    [
        PROMISED,
        CHECKED,
        LISTED,
        PROVABLE,
        STRICT,
        limited(STRICT, rounds=1, no_progress=1, agent_failures=1, seconds=60.0, until=NOON),
        limited(PROVABLE, rounds=0, no_progress=0, agent_failures=0),
        limited(latest_wake=NOON),
        a_loop(agent="a", others=("tree-0", "tree-1")),
        a_loop(agent="a", on_limit=OnLimit.STOP),
        FOLDER,
        limited(FOLDER, task_failures=1, same_failure=1, check_failures=1),
        msgspec.structs.replace(limited(FOLDER, task_failures=1), by_task=TaskByTask()),
        a_loop(tasks="tasks", task_folder=True, sessions=Sessions.PER_TASK, by_task=TaskByTask(fresh_if_lost=False)),
        a_loop(tasks="TODO.md", checkpoint=Checkpoint()),
        a_loop(checks=(CHECKED.checks[0],), on_tamper=OnTamper.REPORT),
        RECORDED,
        limited(a_loop(recording=RECORDED.recording, checks=CHECKED.checks), iterations=2),
    ]
)
CLOCKS: st.SearchStrategy[Now] = st.builds(Now, FEW[datetime], FEW[float])
