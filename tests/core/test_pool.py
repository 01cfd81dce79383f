"""Which agent works next, when a provider's limit stands in the way?"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from bydawn.core.breakers import Limits
from bydawn.core.decide import Action, StartRound, Stop, Wait, next_action
from bydawn.core.facts import AgentLimited, AnyFact, Fact, LimitsRaised
from bydawn.core.loop import OnLimit, Sessions
from bydawn.core.outcome import Outcome
from bydawn.core.prompt import compose
from bydawn.core.rules import Rule
from bydawn.core.values import End, Now
from core.facts_made import CRASH_AND_RESTART, NOON, a_loop, a_round, after_all, at, run_started

POOL = a_loop(agent="claude", others=("codex", "gemini"))
RESET = NOON + timedelta(hours=5)
LATER = NOON + timedelta(hours=7)


def limited(number: int, agent: str, until: datetime | None = RESET) -> list[AnyFact]:
    return a_round(number, Outcome.LIMITED, agent, wait_until=until, detail=f"{agent} has had enough", progress=False)


def who(*facts: Fact | list[AnyFact], now: Now | None = None, **settings: Any) -> Action:
    loop = a_loop(agent="claude", others=("codex", "gemini"), **settings)
    return next_action(loop, after_all(run_started(), *facts), now or at(600))


def name(action: Action) -> str:
    assert isinstance(action, StartRound), action
    return action.agent


def test_the_first_agent_works_while_it_can() -> None:
    assert name(who()) == "claude"
    assert name(who(a_round(1, agent="claude"))) == "claude"


def test_a_limited_agent_is_stood_in_for_at_once_and_returned_to_when_it_is_free() -> None:
    assert name(who(limited(1, "claude"))) == "codex"
    assert name(who(limited(1, "claude"), a_round(2, agent="codex"))) == "codex"
    assert name(who(limited(1, "claude"), limited(2, "codex"))) == "gemini"
    assert name(who(limited(1, "claude"), a_round(2, agent="codex"), now=at(600, hours=5))) == "claude"


def test_where_all_are_limited_the_first_to_be_free_is_waited_for() -> None:
    action = who(limited(1, "claude", LATER), limited(2, "codex"), limited(3, "gemini", LATER))
    assert action == Wait(
        rule=Rule.AGENT_LIMIT, seconds=5 * 3600.0, until=RESET, agent="codex", reason="codex has had enough"
    )
    everybody = [*limited(1, "claude", LATER), *limited(2, "codex"), *limited(3, "gemini", LATER)]
    assert name(who(everybody, now=at(600, hours=5))) == "codex"
    assert name(who(everybody, now=at(600, hours=7))) == "claude"


def test_a_limit_without_a_moment_is_a_guess_that_others_fill() -> None:
    assert name(who(limited(1, "claude", None), now=at(60))) == "codex"
    assert name(who(limited(1, "claude", None), now=at(60 + 75))) == "claude"  # the first guess is a minute


def test_a_reset_that_was_named_and_waited_for_is_not_followed_by_a_longer_wait() -> None:
    """However often; only what is always about to be reset is asked less and less often."""
    for ahead, at_once in ((timedelta(minutes=3), True), (timedelta(seconds=1), False)):
        times = [fact for number in (1, 2, 3, 4) for fact in limited(number, "claude", NOON + ahead)]
        after = at(240 + ahead.total_seconds(), hours=ahead.total_seconds() / 3600)
        assert isinstance(who(times, now=after, on_limit=OnLimit.WAIT), StartRound) is at_once


def test_trouble_that_is_no_limit_is_not_a_reason_to_change_agents() -> None:
    blip = a_round(1, Outcome.TRANSIENT, "claude")
    assert isinstance(who(blip, now=at(60)), Wait)
    assert name(who(blip)) == "claude"


@pytest.mark.parametrize("outcome", [Outcome.INTERRUPTED, Outcome.TRANSIENT])
def test_a_turn_that_was_cut_short_says_nothing_about_a_limit(outcome: Outcome) -> None:
    facts = [*limited(1, "claude"), *a_round(2, outcome, "claude")]
    assert name(who(facts)) == "codex"


def test_an_agent_that_worked_is_limited_no_more() -> None:
    state = after_all(run_started(), limited(1, "claude", NOON), a_round(2, agent="claude"))
    assert state.limited == ()


def test_limits_survive_a_crash() -> None:
    assert name(who(limited(1, "claude"), CRASH_AND_RESTART())) == "codex"


def test_a_loop_can_wait_for_its_first_agent_or_stop() -> None:
    waits = who(limited(1, "claude"), on_limit=OnLimit.WAIT)
    assert isinstance(waits, Wait)
    assert waits.until == RESET
    stops = who(limited(1, "claude"), on_limit=OnLimit.STOP)
    assert isinstance(stops, Stop)
    assert (stops.end, stops.rule) == (End.LIMIT, "limit-stops")
    assert stops.reason == "claude: claude has had enough"
    assert "free again at" in stops.evidence[0]


def test_no_limit_is_waited_out_beyond_the_latest_wake() -> None:
    early = Limits(latest_wake=RESET - timedelta(seconds=1))
    all_limited = [*limited(1, "claude"), *limited(2, "codex", LATER), *limited(3, "gemini", None)]
    late = who(all_limited, limits=early, now=Now(RESET - timedelta(hours=4), 181.0))
    assert isinstance(late, Wait), "the guess for gemini ends in time"
    two = [*limited(1, "claude"), *limited(2, "codex", LATER)]
    state = after_all(run_started(), two)
    pool = a_loop(agent="claude", others=("codex",), limits=early)
    stops = next_action(pool, state, at(600))
    assert isinstance(stops, Stop)
    assert (stops.end, stops.rule) == (End.LIMIT, "latest-wake")
    raised = after_all(run_started(), two, LimitsRaised(limits=Limits(latest_wake=RESET), by="ada"))
    assert isinstance(next_action(pool, raised, at(600)), Wait)


def test_what_another_loop_ran_into_need_not_be_tried() -> None:
    told = AgentLimited(agent="claude", until=RESET, detail="5-hour limit", by="another")
    assert name(who(told)) == "codex"
    assert name(who(told, now=at(600, hours=5))) == "claude"
    alone = next_action(a_loop(agent="claude"), after_all(run_started(), told), at(1))
    assert alone == Wait(rule=Rule.AGENT_LIMIT, seconds=5 * 3600.0, until=RESET, agent="claude", reason="5-hour limit")


def test_whoever_takes_over_has_a_conversation_of_its_own() -> None:
    facts = [*a_round(1, agent="claude", session="s-1"), *limited(2, "claude")]
    action = who(facts, sessions=Sessions.RESUME)
    assert isinstance(action, StartRound)
    assert (action.agent, action.session) == ("codex", None)


def test_whoever_takes_over_is_told_what_the_one_before_left_behind() -> None:
    half = a_round(1, Outcome.LIMITED, "claude", wait_until=RESET)
    assert "cut short" in compose(POOL, after_all(run_started(), half), 2, "f")
    nothing = limited(1, "claude")
    assert "cut short" not in compose(POOL, after_all(run_started(), nothing), 2, "f")
