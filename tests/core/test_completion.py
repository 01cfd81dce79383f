"""Is the loop done? The same list for the decision and for everybody who looks."""

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.completion import describe, finished, missing, told_of_mention, unproven
from bydawn.core.facts import Fact
from bydawn.core.loop import Loop, Promise
from bydawn.core.outcome import Outcome
from bydawn.core.values import End, Promised
from core.facts_made import (
    CHECKED,
    LISTED,
    MAKE_TEST,
    PROMISE,
    PROMISED,
    PROVABLE,
    STRICT,
    a_loop,
    a_round,
    after_all,
    checked,
    idle_round,
    run_started,
    todo,
)

REQUIRES = [
    (PROMISED, ("promise",)),  # nothing asked for: the promise is all there is
    (LISTED, ("tasks",)),  # a list is enough; the promise is wanted only if asked for
    (CHECKED, ("checks",)),
    (PROVABLE, ("tasks", "checks")),
    (STRICT, ("tasks", "checks", "promise")),
    (a_loop(promise=Promise(text="ALL DONE")), ("promise",)),
]


@pytest.mark.parametrize(("loop", "requires"), REQUIRES)
def test_a_loop_requires_what_it_was_given(loop: Loop, requires: tuple[str, ...]) -> None:
    assert loop.requires == requires
    assert missing(loop, after_all(run_started())) == list(requires)


@pytest.mark.parametrize(("promise", "ticked", "green"), [*product([False, True], repeat=3)])
def test_each_condition_is_missing_until_it_is_met_and_not_a_moment_longer(
    promise: bool, ticked: bool, green: bool
) -> None:
    said = PROMISE if promise else {}
    state = after_all(
        run_started(), a_round(1, tasks=todo(0, 1) if ticked else todo(1), **said), checked(1, passed=green)
    )
    met = {"tasks": ticked, "checks": green, "promise": promise}
    assert missing(STRICT, state) == [condition for condition, is_met in met.items() if not is_met]


def test_a_mention_is_no_promise() -> None:
    assert missing(PROMISED, after_all(run_started(), a_round(1, promise=Promised.MENTIONED))) == ["promise"]


def test_a_list_that_was_never_read_is_not_an_empty_one() -> None:
    assert missing(LISTED, after_all(run_started())) == ["tasks"]


def test_a_list_with_nothing_open_and_a_problem_is_not_done() -> None:
    assert missing(LISTED, after_all(run_started(tasks=todo(0, 3, problem="lost 1 open task")))) == ["tasks"]


def test_green_checks_prove_nothing_before_a_round_went_well() -> None:
    assert missing(CHECKED, after_all(run_started(), checked(0))) == ["checks"]
    assert missing(CHECKED, after_all(run_started(), checked(0), idle_round(1), checked(1, tree="tree-0"))) == [
        "checks"
    ]
    assert missing(CHECKED, after_all(run_started(), a_round(1, Outcome.CRASHED), checked(1))) == ["checks"]
    assert missing(CHECKED, after_all(run_started(), a_round(1), checked(1))) == []


def test_with_a_list_that_is_done_green_checks_are_proof_enough() -> None:
    assert missing(PROVABLE, after_all(run_started(tasks=todo(0, 2)), checked(0))) == []


# What has happened, and whether running the checks now would decide the matter.
WORTH_IT: list[tuple[str, Loop, list[Fact], bool]] = [
    ("nothing yet", PROVABLE, [run_started(tasks=todo(1))], False),
    ("the list is done", PROVABLE, [run_started(tasks=todo(0, 1))], True),
    ("and the checks are red on this tree", PROVABLE, [run_started(tasks=todo(0, 1)), checked(0, passed=False)], False),
    ("on another tree", PROVABLE, [run_started("new", tasks=todo(0, 1)), checked(0, passed=False)], True),
    ("the promise is missing too", STRICT, [run_started(tasks=todo(0, 1))], False),
    ("nobody has worked yet", CHECKED, [run_started()], False),
    ("all there is to require", CHECKED, [run_started(), *a_round(1)], True),
    ("no checks at all", LISTED, [run_started(tasks=todo(0, 1))], False),
]


@pytest.mark.parametrize(("loop", "facts", "worth_it"), [row[1:] for row in WORTH_IT], ids=[row[0] for row in WORTH_IT])
def test_checks_are_worth_running_when_they_alone_are_missing(loop: Loop, facts: list[Fact], worth_it: bool) -> None:
    assert unproven(loop, after_all(*facts)) is worth_it


def test_the_good_end_has_two_names() -> None:
    worked = after_all(run_started(), checked(0), a_round(1), checked(1))
    assert [finished(loop, worked) for loop in (CHECKED, PROVABLE, LISTED, PROMISED)] == [
        End.COMPLETE,
        End.COMPLETE,
        End.UNVERIFIED,
        End.UNVERIFIED,
    ]


def test_what_is_missing_is_said_in_words() -> None:
    red = after_all(run_started(tasks=todo(2)), a_round(1), checked(1, passed=False))
    assert [describe(condition, STRICT, red) for condition in missing(STRICT, red)] == [
        "2 tasks are open in TODO.md",
        f"1 of 1 checks failed: {MAKE_TEST.name}",
        "the promise has not been given",
    ]


def test_a_single_task_is_not_tasks_and_a_damaged_list_has_no_number() -> None:
    assert describe("tasks", LISTED, after_all(run_started(tasks=todo(1)))) == "1 task is open in TODO.md"
    gone = after_all(run_started(tasks=todo(0, problem="is gone")))
    assert describe("tasks", LISTED, gone) == "TODO.md is gone"


def test_a_verdict_on_another_tree_is_not_quoted() -> None:
    stale = after_all(run_started(), a_round(1), checked(1, passed=False), a_round(2))
    assert describe("checks", CHECKED, stale) == "the checks have not passed on the current work tree"


def test_a_list_that_nobody_has_read_is_described_as_one() -> None:
    assert "promise" not in describe("tasks", LISTED, after_all(run_started()))


def test_checks_that_turn_green_by_themselves_on_the_same_tree_count() -> None:
    flaky = [run_started(), *a_round(1), checked(1, passed=False), *idle_round(2, tree="tree-1")]
    assert missing(CHECKED, after_all(*flaky, checked(2, tree="tree-1"))) == []


def test_green_checks_before_any_round_went_well_are_not_called_red() -> None:
    state = after_all(run_started(), checked(0), a_round(1, Outcome.FAILED, tree="tree-0"))
    assert missing(CHECKED, state) == ["checks"]
    assert describe("checks", CHECKED, state) == "no round has succeeded yet, so passing checks prove nothing"


MENTION: dict[str, Any] = {"promise": Promised.MENTIONED}


def test_an_agent_is_told_once_that_it_only_mentioned_its_promise() -> None:
    assert not told_of_mention(PROMISED, after_all(run_started()))
    assert not told_of_mention(PROMISED, after_all(run_started(), a_round(1)))
    assert told_of_mention(PROMISED, after_all(run_started(), a_round(1, **MENTION)))
    assert not told_of_mention(PROMISED, after_all(run_started(), a_round(1, **MENTION), a_round(2)))
    assert not told_of_mention(PROMISED, after_all(run_started(), a_round(1, blocked="no key", **MENTION)))
    assert not told_of_mention(LISTED, after_all(run_started(), a_round(1, **MENTION))), "it was not asked for one"


@pytest.mark.parametrize(("open_tasks", "green", "counts"), [(0, True, True), (1, True, False), (0, False, False)])
def test_a_mention_that_was_answered_counts_only_where_nothing_else_is_open(
    open_tasks: int, green: bool, counts: bool
) -> None:
    state = after_all(run_started(), a_round(1, tasks=todo(open_tasks, 1), **MENTION), checked(1, passed=green))
    assert told_of_mention(STRICT, state) is counts


def test_a_check_that_was_red_on_another_tree_is_not_red() -> None:
    """It runs again before the loop is complete."""
    state = after_all(run_started(), a_round(1, tasks=todo(0, 1), **MENTION), checked(1, passed=False))
    assert told_of_mention(STRICT, replace(state, tree="another"))
