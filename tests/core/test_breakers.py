"""Which limit ends the loop? Each trips exactly at its limit, in the order a person would ask."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.breakers import Limits, Tripped, limits_of, readings, time_left, tripped
from bydawn.core.facts import ChecksEnded, Fact, TaskSettled
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Counts, End, Now, TaskStatus
from core.facts_made import (
    BORN,
    CHECKED,
    NOON,
    PROMISED,
    PROVABLE,
    a_loop,
    a_round,
    after_all,
    at,
    checked,
    idle_round,
    limited,
    raised,
    run_started,
    stopped,
    todo,
)

OFF = {"rounds": 0, "no_progress": 0, "agent_failures": 0}


def only(**limit: Any) -> Loop:
    return limited(**{**OFF, **limit})


def rounds(count: int, outcome: Outcome = Outcome.OK) -> Sequence[Fact]:
    return [run_started(), *(fact for number in range(1, count + 1) for fact in a_round(number, outcome))]


def idle(count: int) -> Sequence[Fact]:
    return [run_started(), *(fact for number in range(1, count + 1) for fact in idle_round(number))]


# name, the end it leads to, the loop, a history and clock just before the limit, and at it
TABLE: list[tuple[str, End, Loop, tuple[Sequence[Fact], Now], tuple[Sequence[Fact], Now]]] = [
    (
        "agent-failures",
        End.FAILED,
        only(agent_failures=3),
        (rounds(2, Outcome.CRASHED), at()),
        (rounds(3, Outcome.CRASHED), at()),
    ),
    ("no-progress", End.BLOCKED, only(no_progress=5), (idle(4), at()), (idle(5), at())),
    ("rounds", End.LIMIT, only(rounds=30), (rounds(29), at()), (rounds(30), at())),
    ("time", End.LIMIT, only(seconds=3600.0), (rounds(1), at(3599.999)), (rounds(1), at(3600.0))),
    (
        "until",
        End.LIMIT,
        only(until=NOON + timedelta(hours=8)),
        (rounds(1), at(hours=7.999)),
        (rounds(1), at(hours=8)),
    ),
]


@pytest.mark.parametrize(("name", "end", "loop", "before", "reached"), TABLE, ids=[row[0] for row in TABLE])
def test_a_breaker_trips_at_its_limit_and_not_before(
    name: str, end: End, loop: Loop, before: tuple[Sequence[Fact], Now], reached: tuple[Sequence[Fact], Now]
) -> None:
    assert tripped(loop, after_all(*before[0]), before[1]) is None
    found = tripped(loop, after_all(*reached[0]), reached[1])
    assert found is not None
    assert (found.name, found.end) == (name, end)
    assert found.reading == found.limit


def test_a_breaker_that_is_passed_stays_tripped() -> None:
    assert tripped(only(rounds=3), after_all(*rounds(7)), at()) == Tripped(Rule.ROUNDS, End.LIMIT, 7, 3)


def test_zero_and_none_switch_a_breaker_off() -> None:
    assert tripped(only(), after_all(*rounds(99, Outcome.CRASHED)), at(1e9, hours=1e5)) is None
    assert tripped(only(seconds=0.0), after_all(*rounds(1)), at(1e9)) is None


def test_failures_within_minutes_do_not_end_a_loop_whose_number_nobody_gave() -> None:
    soon = [fact for number in range(1, 8) for fact in idle_round(number, outcome=Outcome.CRASHED)]  # a minute each
    late = idle_round(8, outcome=Outcome.CRASHED, elapsed=7 * 60.0 + 20 * 60)
    assert tripped(a_loop(), after_all(run_started(), soon), at()) is None
    assert tripped(a_loop(), after_all(run_started(), soon, late), at()) is not None
    assert tripped(a_loop(), after_all(run_started(), soon[-8:], late), at()) is not None
    assert tripped(a_loop(), after_all(run_started(), soon[-6:], late), at()) is None  # four are not five


def test_the_limits_that_nobody_set_are_the_documented_ones() -> None:
    assert Limits() == Limits(rounds=30, seconds=None, until=None, no_progress=5, agent_failures=None)


def test_of_several_that_trip_the_most_telling_is_named() -> None:
    everything = limited(rounds=1, no_progress=1, agent_failures=1, seconds=1.0, until=NOON)
    failed = after_all(run_started(rounds_allowed=1), idle_round(1, outcome=Outcome.CRASHED))
    idle_ = after_all(run_started(rounds_allowed=1), idle_round(1))
    busy = after_all(run_started(rounds_allowed=1), a_round(1))
    named = [tripped(everything, state, at(60)) for state in (failed, idle_, busy)]
    assert [each.name for each in named if each] == ["agent-failures", "no-progress", "rounds"]


def test_what_one_run_is_allowed_trips_apart_from_what_the_loop_is() -> None:
    once = [*rounds(4), run_started(rounds_allowed=1)]
    assert tripped(PROMISED, after_all(*once), at()) is None
    assert tripped(PROMISED, after_all(*once, a_round(5)), at()) == Tripped(Rule.ROUNDS_THIS_RUN, End.LIMIT, 1, 1)


def test_the_time_of_one_run_is_counted_from_its_start() -> None:
    history = [*rounds(4), stopped(End.PAUSED), run_started(elapsed=1000.0, seconds_allowed=60.0)]
    state = after_all(*history)
    assert tripped(PROMISED, state, at(1059.0)) is None
    assert tripped(PROMISED, state, at(1060.0)) == Tripped(Rule.TIME_THIS_RUN, End.LIMIT, 60, 60)
    assert time_left(PROMISED, state, at(1045.0)) == 15
    assert tripped(PROMISED, after_all(*history, run_started(elapsed=1060.0)), at(1e6)) is None, "each run has its own"


@pytest.mark.parametrize("outcome", [Outcome.TRANSIENT, Outcome.LIMITED, Outcome.INTERRUPTED, Outcome.SESSION_LOST])
def test_what_counts_for_nothing_trips_nothing_but_its_own_cap(outcome: Outcome) -> None:
    strictest = limited(rounds=1, no_progress=1, agent_failures=1)
    history = [run_started(rounds_allowed=1), *(fact for n in range(1, 10) for fact in idle_round(n, outcome=outcome))]
    assert tripped(strictest, after_all(*history), at()) is None


@pytest.mark.parametrize("hours", [-8, 8])
def test_a_wall_clock_that_jumps_changes_no_limit_but_the_one_on_the_wall(hours: int) -> None:
    loop = limited(rounds=5, seconds=3600.0)
    assert tripped(loop, after_all(*rounds(4)), at(3599.0, hours=hours)) is None
    assert tripped(limited(until=NOON + timedelta(hours=1)), after_all(*rounds(1)), at(hours=8)) is not None
    assert tripped(limited(until=NOON), after_all(*rounds(1)), at(hours=-8)) is None


def test_raised_limits_take_the_place_of_the_first_ones() -> None:
    used_up = rounds(3)
    assert tripped(limited(rounds=3), after_all(*used_up), at()) is not None
    assert tripped(limited(rounds=3), after_all(*used_up, raised(rounds=4)), at()) is None
    assert limits_of(limited(rounds=3), after_all(*used_up, raised(rounds=4), raised(rounds=9))) == Limits(rounds=9)
    assert limits_of(limited(rounds=3), after_all(*used_up)) == Limits(rounds=3)


def test_a_failure_that_was_allowed_more_is_read_against_what_it_was_allowed() -> None:
    baseline = ChecksEnded(round=0, tree="tree-0", verdicts=checked(0, passed=False).verdicts, elapsed=0)
    rounds = [fact for number in range(1, 16) for fact in (*a_round(number), checked(number, passed=False))]
    state = after_all(BORN, run_started(), baseline, *rounds)
    reading, limit = readings(CHECKED, state, at())["rounds in a row with the same failure"]
    assert (reading, limit) == (15, 15)


# -- rounds that change something and finish nothing ---------------------------------------------------------------


def churn(count: int, first: int = 1) -> list[Fact]:
    """Rounds that leave a new tree each time, close no task, and leave the check red as it was before any work."""
    numbers = range(first, first + count)
    return [fact for number in numbers for fact in (*a_round(number), checked(number, passed=False))]


BEGUN = [run_started(tasks=todo(2)), checked(0, passed=False)]


def test_rounds_that_only_change_files_end_a_loop_with_a_list() -> None:
    loop = limited(PROVABLE, rounds=0, same_failure=0)
    assert tripped(loop, after_all(*BEGUN, *churn(19)), at()) is None
    assert tripped(loop, after_all(*BEGUN, *churn(20)), at()) == Tripped(Rule.NO_TASK_DONE, End.BLOCKED, 20, 20)
    more = after_all(*BEGUN, *churn(20), raised(rounds=0, same_failure=0, no_task_done=40))
    assert tripped(loop, more, at()) is None


@pytest.mark.parametrize(
    "done",
    [
        a_round(20, closed=("one",), tasks=todo(1, 1)),
        [*a_round(20), checked(20)],
        [*a_round(20), TaskSettled(task="one", text="one", status=TaskStatus.DONE, by="task-done")],
        [stopped(End.BLOCKED), run_started(tasks=todo(2))],
    ],
    ids=["a task was closed", "a check turned green", "a task of a folder was done", "a person resumed it"],
)
def test_a_task_that_is_done_a_check_that_turns_green_and_a_person_begin_the_count_anew(done: list[Fact]) -> None:
    state = after_all(*BEGUN, *churn(19), *done)
    assert state.rounds_without_result == 0


def test_a_task_that_is_closed_a_second_time_is_no_result() -> None:
    again = a_round(21, closed=("one",), tasks=todo(1, 1))
    state = after_all(*BEGUN, a_round(1, closed=("one",), tasks=todo(1, 1)), *churn(19, first=2), again)
    assert state.rounds_without_result == 20


def red(number: int, failed: int | None) -> list[Fact]:
    """A round that leaves a new tree, and a check that fails in another way each time, with so many failing tests."""
    counts = None if failed is None else Counts(ran=10, failed=failed)
    [verdict] = checked(number, passed=False).verdicts
    verdict = replace(verdict, fingerprint=f"failure {number}", counts=counts)
    return [*a_round(number), replace(checked(number, passed=False), verdicts=(verdict,))]


@pytest.mark.parametrize(
    ("failures", "begun"),
    [([None] * 20, BEGUN), ([None] * 20, [run_started()]), ([5] * 20, [run_started()]), ([5, 6] * 10, [run_started()])],
    ids=["red before any work", "nobody counts", "the same number", "up and down"],
)
def test_red_checks_that_never_get_better_end_a_loop_whatever_they_print(
    failures: list[int | None], begun: list[Fact]
) -> None:
    loop = limited(CHECKED, rounds=0, check_failures=0)
    rounds = [red(number, failed) for number, failed in enumerate(failures, 1)]
    assert tripped(loop, after_all(BORN, *begun, *chain(*rounds[:-1])), at()) is None
    assert tripped(loop, after_all(BORN, *begun, *chain(*rounds)), at()) == Tripped(Rule.STILL_RED, End.BLOCKED, 20, 20)


@pytest.mark.parametrize(
    "better",
    [red(20, 4), [*a_round(20), checked(20)], [stopped(End.BLOCKED), run_started()]],
    ids=["fewer tests fail", "the check turns green", "a person resumed it"],
)
def test_fewer_failures_a_green_check_and_a_person_begin_the_count_of_red_rounds_anew(better: list[Fact]) -> None:
    rounds = [fact for number in range(1, 20) for fact in red(number, 5)]
    assert after_all(BORN, run_started(), *rounds).red_rounds == 19
    assert after_all(BORN, run_started(), *rounds, *better).red_rounds == 0


@pytest.mark.parametrize("loop", [PROMISED, CHECKED, a_loop(tasks="TODO.md", tasks_required=False)])
def test_only_a_loop_whose_list_has_to_be_done_counts_what_it_finishes(loop: Loop) -> None:
    loop = limited(loop, rounds=0, same_failure=0)
    found = tripped(loop, after_all(*BEGUN, *churn(60)), at())
    assert found is None or found.name is Rule.STILL_RED
    assert readings(loop, after_all(*BEGUN, *churn(2)), at())["rounds without a task done or a check fixed"] == (2, 0)
