"""What may be spent: before a round, and while it runs."""

import pytest

from bydawn.core import kinds
from bydawn.core.breakers import overspent
from bydawn.core.values import Usage
from bydawn.operations import amounts
from bydawn.settings.setting import looser
from bydawn.settings.table import BY_KEY
from core.facts_made import BORN, NOON, a_round, after_all, limited, run_started


@pytest.mark.parametrize("text", ["", "5", "usd", "0usd", "-1usd", "5eur", "2Gtok", "1.5.2usd", "nan usd"])
def test_what_is_no_budget_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="5usd or 2Mtok"):
        kinds.budget(text)


@pytest.mark.parametrize(
    ("used", "now", "over"),
    [
        (None, None, False),  # nobody has said anything: unknown is not too much
        (Usage(tokens_in=60), Usage(tokens_in=39), False),
        (Usage(tokens_in=60), Usage(tokens_in=39, tokens_out=1), True),
        (None, Usage(tokens_out=100), True),
        (Usage(cost_usd=9.0), Usage(cost_usd=9.0), False),  # dollars do not count here
    ],
)
def test_a_running_round_is_held_to_what_is_left_of_the_budget(
    used: Usage | None, now: Usage | None, over: bool
) -> None:
    state = after_all(BORN, run_started(), *a_round(1, usage=used))
    assert overspent(limited(tokens=100), state, now) is over


def test_dollars_are_added_up_without_the_dust_of_floating_point() -> None:
    assert Usage(cost_usd=0.1).plus(Usage(cost_usd=0.2)).cost_usd == 0.3
    assert Usage(cost_usd=0.3).minus(Usage(cost_usd=0.1)).cost_usd == 0.2
    assert Usage(cost_usd=0.064376250000000001).cost_usd == 0.064376


def test_dollars_are_counted_when_the_budget_is_in_dollars() -> None:
    state = after_all(BORN, run_started(), *a_round(1, usage=Usage(cost_usd=0.7)))
    assert not overspent(limited(usd=1.0), state, Usage(cost_usd=0.2))
    assert overspent(limited(usd=1.0), state, Usage(cost_usd=0.3))


def test_a_repository_may_lower_a_budget_and_not_swap_it_for_another_kind() -> None:
    row = BY_KEY["budget"]
    wanted = {"4usd": False, "5usd": False, "6usd": True, "1tok": True}
    assert {value: looser(row, value, "5usd", NOON) for value in wanted} == wanted


@pytest.mark.parametrize(
    ("used", "unpriced", "shown"),
    [
        (None, False, "—"),
        (Usage(), False, "tokens — · cost —"),
        (Usage(tokens_in=1200, cost_usd=0.0), False, "1,200 in · $0.00"),  # the agent says so itself
        (Usage(tokens_in=1200, cost_usd=0.0), True, "1,200 in · cost —"),  # … and another one says nothing
        (Usage(tokens_in=1200, cost_usd=1.5), True, "1,200 in · at least $1.50"),
    ],
)
def test_what_nobody_names_a_price_for_is_never_nought(used: Usage | None, unpriced: bool, shown: str) -> None:
    assert amounts.used(used, unpriced=unpriced) == shown


def test_a_loop_knows_whether_all_it_used_has_a_price() -> None:
    priced = after_all(BORN, run_started(), a_round(1, usage=Usage(tokens_in=1, cost_usd=0.1)), a_round(2))
    assert not priced.unpriced
    assert after_all(BORN, run_started(), a_round(1, usage=Usage(tokens_in=1))).unpriced
