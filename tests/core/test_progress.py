"""Did it get anywhere, how long will it take, and how people say that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.facts import AnyFact, Fact
from bydawn.core.outcome import Outcome
from bydawn.core.progress import ENOUGH_ROUNDS, made, time_left
from bydawn.core.state import TREE_DIGITS
from bydawn.core.text import duration
from core.facts_made import a_round, after_all, checked, idle_round, run_started, started, todo


def test_a_tree_that_was_never_seen_is_progress() -> None:
    assert made(after_all(run_started("a")), "b", ())


def test_a_tree_that_was_seen_before_is_none_however_long_ago() -> None:
    there_and_back = [run_started("a"), *a_round(1, tree="b"), *a_round(2, tree="c")]
    for tree in "abc":
        assert not made(after_all(*there_and_back), tree, ())


def test_what_a_person_left_in_the_tree_is_not_the_agents_progress() -> None:
    assert not made(after_all(run_started("a"), a_round(1, tree="b"), run_started("by hand")), "by hand", ())


def test_a_task_closed_is_progress_where_git_sees_nothing() -> None:
    assert made(after_all(run_started("a")), "a", ("write the tests",))


def test_a_task_closed_again_is_not() -> None:
    """Ticking a box, unticking it and ticking it again is no way to look busy."""
    assert not made(after_all(run_started("a"), a_round(1, tree="a", closed=("x",))), "a", ("x",))
    assert made(after_all(run_started("a"), a_round(1, tree="a", closed=("x",))), "a", ("x", "y"))


def test_a_tree_is_known_again_by_its_first_digits_and_by_its_nested_repositories() -> None:
    state = after_all(run_started("f" * 40 + "+nested-1"))
    assert not made(state, "f" * TREE_DIGITS + "0" * 24 + "+nested-1", ())
    assert made(state, "f" * 40 + "+nested-2", ())


# -- how long it will take -----------------------------------------------------------------------------------------


def rounds_of(*seconds: float, open_: int = 4) -> list[Fact]:
    """Rounds of these lengths, each closing one task; so many are left open."""
    return [
        fact
        for number, length in enumerate(seconds, 1)
        for fact in a_round(number, seconds=length, tasks=todo(open_, number), closed=(f"task-{number}",))
    ]


def test_it_is_too_early_to_tell_before_a_few_rounds_and_a_closed_task() -> None:
    assert time_left(after_all(run_started())) is None
    assert time_left(after_all(run_started(), *rounds_of(*[60.0] * (ENOUGH_ROUNDS - 1)))) is None
    nothing_closed = [fact for number in range(1, 5) for fact in idle_round(number, seconds=60.0, tasks=todo(4))]
    assert time_left(after_all(run_started(), nothing_closed)) is None


def test_without_a_list_nobody_knows_how_much_is_left() -> None:
    rounds = [fact for number in range(1, 5) for fact in a_round(number, seconds=60.0, closed=("x",))]
    assert time_left(after_all(run_started(), rounds)) is None


def test_even_rounds_give_a_narrow_estimate() -> None:
    assert time_left(after_all(run_started(), *rounds_of(60.0, 60.0, 60.0))) == (240.0, 240.0)


def test_uneven_rounds_give_a_range() -> None:
    estimate = time_left(after_all(run_started(), *rounds_of(60.0, 120.0, 180.0)))
    assert estimate is not None
    assert 4 * 60.0 <= estimate[0] < 4 * 120.0 < estimate[1] <= 4 * 180.0


def test_rounds_that_close_nothing_make_the_rest_longer() -> None:
    half = [*rounds_of(60.0, 60.0, 60.0), *(fact for n in (4, 5, 6) for fact in idle_round(n, seconds=60.0))]
    assert time_left(after_all(run_started(), *half)) == (480.0, 480.0)


def test_nothing_open_takes_no_time() -> None:
    assert time_left(after_all(run_started(), *rounds_of(60.0, 60.0, 60.0, open_=0))) == (0.0, 0.0)


# -- how it is said ------------------------------------------------------------------------------------------------

SAID = [
    (-3.0, "0.0 s"),  # a clock that went back
    (0.0, "0.0 s"),
    (0.42, "0.4 s"),
    (1.0, "1 s"),
    (59.4, "59 s"),
    (59.7, "1 m 00"),  # not "60 s"
    (62.0, "1 m 02"),
    (3599.0, "59 m 59"),
    (3599.9, "1 h 00"),
    (3700.0, "1 h 01"),
    (90000.0, "25 h 00"),
]


@pytest.mark.parametrize(("seconds", "said"), SAID)
def test_a_length_of_time_is_said_as_people_say_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_length_can_be_said(seconds: float) -> None:
    assert duration(seconds)


# -- the strip of the last rounds --------------------------------------------------------------------------------------

# what happened, and the word for each round
STRIPS: list[tuple[list[AnyFact], list[str]]] = [
    ([], []),
    ([*a_round(1)], ["worked"]),
    ([*a_round(1), checked(1)], ["passed"]),
    ([*a_round(1), checked(1, passed=False)], ["red"]),
    ([*idle_round(1)], ["idle"]),
    ([*idle_round(1), checked(1)], ["idle"]),  # they passed before it
    ([*idle_round(1), checked(1, passed=False)], ["red"]),
    ([checked(0, passed=False), *a_round(1)], ["worked"]),  # the baseline is no round's
    ([*a_round(1, Outcome.HUNG), checked(1)], ["failed"]),
    ([*a_round(1, Outcome.AUTH)], ["failed"]),
    ([*a_round(1, Outcome.TRANSIENT), *a_round(2, Outcome.INTERRUPTED), *a_round(3, Outcome.LIMITED)], ["cut"] * 3),
    ([*a_round(1), checked(1), *a_round(2), checked(2, passed=False), started(3)], ["passed", "red"]),
]


@pytest.mark.parametrize(("facts", "words"), STRIPS)
def test_each_round_is_remembered_in_one_word(facts: list[AnyFact], words: list[str]) -> None:
    assert [*after_all(run_started(), facts).strip] == words


def test_only_the_last_rounds_are_remembered() -> None:
    many = after_all(run_started(), *(a_round(number) for number in range(1, 50)), idle_round(50))
    assert [*many.strip] == ["worked"] * 19 + ["idle"]
