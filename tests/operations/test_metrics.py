"""Figures over all loops: from their states alone, and what is unknown is not zero."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.errors import OwnFailure
from bydawn.core.facts import Fact, TaskSettled
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Death, End, Restart, TaskStatus, Usage
from bydawn.operations.metrics import Metrics, metrics, metrics_fields
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing
from core.facts_made import a_loop, a_round, after_all, decided, run_started, stopped, todo

SPENT = Usage(tokens_in=1000, tokens_out=50, cost_usd=0.5)
UNPRICED = Usage(tokens_in=70, tokens_out=7)


def loop(*facts: Fact | list[Fact], alive: bool = False) -> Standing:
    return standing(after_all(run_started(), *facts), alive=alive)


def standing(state: LoopState, **more: Any) -> Standing:
    return Standing(**{"folder": LoopFolder(Path("x")), "loop": a_loop(), "state": state, "alive": False, **more})


def ended(end: End, rule: Rule) -> Fact:
    return replace(stopped(end), decided=decided(rule))


QUICK = loop(*a_round(1, usage=SPENT), stopped(End.COMPLETE))
HELPED = loop(
    *[*a_round(1), *a_round(2), ended(End.BLOCKED, Rule.NO_PROGRESS), run_started(), *a_round(3)],
    *[ended(End.PAUSED, Rule.ASKED_TO_PAUSE), run_started(), *a_round(4), stopped(End.UNVERIFIED)],
)
CAPPED = loop(*a_round(1), *a_round(2), ended(End.LIMIT, Rule.ROUNDS))
RAISED = loop(*a_round(1), ended(End.LIMIT, Rule.ROUNDS), run_started(), *a_round(2), stopped(End.COMPLETE))
DIED = loop(
    *a_round(1), run_started(restart=Restart(number=1, why=Death.FOUND)), *a_round(2, Outcome.INTERRUPTED), alive=False
)
DAMAGED = standing(LoopState(), trouble=OwnFailure("it is torn"))


def test_how_loops_end_how_many_rounds_they_take_and_how_often_a_person_has_to_help() -> None:
    """W-100."""
    found = metrics([QUICK, HELPED, CAPPED, RAISED])
    assert (found.loops, found.rounds, found.completed) == (4, 1 + 4 + 2 + 2, 3)
    assert found.ends == {"complete": 2, "limit": 2, "blocked": 1, "paused": 1, "unverified": 1}
    assert found.blockers == {"rounds": 2, "asked-to-pause": 1, "no-progress": 1}
    assert found.completed_before_limit == 0.5  # QUICK and HELPED, of all four
    assert found.median_rounds == 2
    assert found.interruptions == 1.0  # 0, 2 and 1


def test_how_often_resume_worked_and_what_is_damaged_or_unverified() -> None:
    """W-101."""
    found = metrics([HELPED, RAISED, DIED, DAMAGED])
    assert (found.resumes, found.resumes_worked, found.restarts) == (4, 0.75, 1)
    assert (found.loops, found.damaged, found.unverified) == (4, 1, 1)


def test_a_resume_that_has_just_begun_is_not_judged_yet() -> None:
    begun = loop(*a_round(1), ended(End.PAUSED, Rule.ASKED_TO_PAUSE), run_started(), alive=True)
    assert (metrics([begun]).resumes, metrics([begun]).resumes_worked) == (1, None)
    assert metrics([replace(begun, alive=False)]).resumes_worked == 0.0  # its process has died


def test_what_is_unknown_is_not_zero() -> None:
    nothing = metrics([])
    assert (nothing.usage, nothing.usd_per_task, nothing.completed_before_limit) == (None, None, None)
    assert (nothing.median_rounds, nothing.interruptions, nothing.resumes_worked) == (None, None, None)
    words = {field.label: field.text for field in metrics_fields(metrics([DIED]))}
    assert (words["Used"], words["Per task"], words["Median"], words["Interrupted"]) == ("—",) * 4
    assert words["Completed"] == "0 loops; — before a limit"


@pytest.mark.parametrize(
    ("others", "is_priced", "words"),
    [
        ([], True, "1,000 in, 50 out · $0.50"),
        ([CAPPED], False, "1,000 in, 50 out · at least $0.50"),  # its agent does not say what it used
        ([loop(*a_round(1, usage=UNPRICED))], False, "1,070 in, 57 out · at least $0.50"),
        ([loop()], True, "1,000 in, 50 out · $0.50"),  # it has not had a round
    ],
)
def test_a_sum_without_some_of_the_prices_says_at_least(others: list[Standing], is_priced: bool, words: str) -> None:
    found = metrics([QUICK, *others])
    assert found.usage_is_priced is is_priced
    assert {field.label: field.text for field in metrics_fields(found)}["Used"] == words


def done(task: str, **more: Any) -> Fact:
    return TaskSettled(task=task, text=task, status=TaskStatus.DONE, by="bydawn", **more)


def a_list(*closed: str, usage: Usage | None = SPENT, tasks_done: int = 9, **more: Any) -> Standing:
    return loop(*a_round(1, tasks=todo(1, tasks_done), closed=closed, usage=usage, **more))


FOLDER = [run_started(tasks=todo(1, 2)), *a_round(1, tasks=todo(1, 2), usage=SPENT)]


@pytest.mark.parametrize(
    ("loops", "usd"),
    [
        ([a_list("one", "two")], 0.25),
        ([a_list("one"), a_list()], 1.0),  # work in vain costs too
        ([a_list("one"), a_list("two", usage=UNPRICED)], 0.5),  # neither side of what has no price
        ([a_list("one", usage=None)], None),
        ([a_list("one", usage=Usage(cost_usd=0.0))], None),
        ([a_list()], None),
        ([QUICK], None),  # it has no list
        ([a_list("one", "two", tasks_done=1)], 0.5),  # one of them is open again
        ([a_list("one", "two", doubted=("two",))], 0.5),  # nothing else was changed for it
        ([standing(after_all(*FOLDER, done("a"), done("b")))], 0.25),
        ([standing(after_all(*FOLDER, done("a"), done("b", doubted=True)))], 0.5),
    ],
)
def test_what_a_proven_task_costs(loops: list[Standing], usd: float | None) -> None:
    assert metrics(loops).usd_per_task == usd


def test_the_figures_are_one_value_that_json_shows_as_it_is() -> None:
    assert metrics([QUICK]) == Metrics(
        loops=1,
        damaged=0,
        rounds=1,
        ends={"complete": 1},
        blockers={},
        unverified=0,
        restarts=0,
        usage=SPENT,
        usage_is_priced=True,
        usd_per_task=None,
        completed=1,
        completed_before_limit=1.0,
        median_rounds=1,
        interruptions=0.0,
        resumes=0,
        resumes_worked=None,
    )
