"""When to wait, how long, and that nothing can make a loop burn the night."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from bydawn.core.decide import Action, StartRound, Stop, Wait, next_action
from bydawn.core.facts import Fact, WaitStarted
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.pool import back_off
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End, Now
from core.facts_made import (
    CRASH_AND_RESTART,
    NOON,
    PROMISED,
    a_loop,
    a_round,
    after_all,
    at,
    decided,
    idle_round,
    limited,
    run_started,
    stopped,
)

RESET = NOON + timedelta(hours=5)


def trouble(times: int, outcome: Outcome, *, until: datetime | None = None) -> LoopState:
    """So many rounds of the same trouble, each over a minute after the one before."""
    rounds = [fact for number in range(1, times + 1) for fact in a_round(number, outcome, wait_until=until)]
    return after_all(run_started(), rounds)


# -- back-off ------------------------------------------------------------------------------------------------------

# outcome, the first wait, the longest; each give or take a quarter, so that many loops do not come back at once
BACK_OFF = [
    (Outcome.TRANSIENT, 2.0, 300.0),
    (Outcome.LIMITED, 60.0, 1800.0),
    (Outcome.CRASHED, 1.0, 60.0),
    (Outcome.HUNG, 1.0, 60.0),
    (Outcome.LOST_OUTPUT, 1.0, 60.0),
    (Outcome.FAILED, 1.0, 60.0),
]


@pytest.mark.parametrize(("outcome", "first", "longest"), BACK_OFF)
def test_a_back_off_doubles_until_it_is_long_enough(outcome: Outcome, first: float, longest: float) -> None:
    loop = limited(agent_failures=0, no_progress=0, rounds=0)
    for times in range(1, 40):
        waited = back_off(loop, trouble(times, outcome), outcome)
        wanted = min(first * 2 ** (times - 1), longest)
        assert 0.75 * wanted <= waited <= 1.25 * wanted


def test_a_back_off_is_the_same_whenever_it_is_asked_for_and_differs_from_loop_to_loop() -> None:
    state = trouble(3, Outcome.TRANSIENT)
    assert back_off(PROMISED, state, Outcome.TRANSIENT) == back_off(PROMISED, state, Outcome.TRANSIENT)
    waits = {back_off(a_loop(uid=f"u-{number}"), state, Outcome.TRANSIENT) for number in range(20)}
    assert len(waits) > 10


def test_a_back_off_is_counted_in_working_time_from_the_end_of_the_round() -> None:
    state = trouble(1, Outcome.TRANSIENT)  # it ended at 60
    whole = back_off(PROMISED, state, Outcome.TRANSIENT)
    half = next_action(PROMISED, state, at(60 + whole / 2))
    assert isinstance(half, Wait)
    assert half.seconds == pytest.approx(whole / 2)
    assert half.until is None  # a moment on the wall clock would be wrong after a jump
    over = next_action(PROMISED, state, at(60 + whole))
    assert over == StartRound(rule=Rule.NEXT_ROUND, round=2, agent="demo")


def test_a_wait_names_the_agent_it_is_for_and_knows_its_end() -> None:
    state = after_all(run_started(), a_round(1, Outcome.TRANSIENT))
    action = next_action(PROMISED, state, at(60))
    assert isinstance(action, Wait)
    assert action.agent == "demo"
    wait = WaitStarted(seconds=30.0, reason="", decided=decided())
    assert wait.ends == NOON + timedelta(seconds=30)
    assert msgspec.structs.replace(wait, seconds=5 * 3600.0, until=RESET).ends == RESET
    # The loop's own time is over before the reset.
    assert msgspec.structs.replace(wait, seconds=60.0, until=RESET).ends == NOON + timedelta(minutes=1)


def test_a_loop_that_only_slows_down_waits_for_no_agent() -> None:
    state = after_all(run_started(), *(idle_round(number) for number in range(1, 12)))
    action = next_action(limited(no_progress=0), state, at(state.elapsed))
    assert isinstance(action, Wait)
    assert action.agent == ""


@pytest.mark.parametrize("hours", [-8, 8])
def test_a_wall_clock_that_jumps_does_not_change_a_back_off(hours: int) -> None:
    state = trouble(1, Outcome.TRANSIENT)
    assert next_action(PROMISED, state, at(60, hours=hours)) == next_action(PROMISED, state, at(60))


def test_a_round_that_went_well_is_followed_at_once() -> None:
    assert next_action(PROMISED, trouble(1, Outcome.OK), at(60)).rule == "next-round"


def test_a_loop_that_gets_nowhere_goes_slower_where_no_breaker_ends_it() -> None:
    """It never burns the night: an agent that answers at once and does nothing is not asked a thousand times."""
    loop = limited(no_progress=0, rounds=0)
    waits: dict[int, float] = {}
    for idle in (9, 10, 11, 16, 40):
        rounds = [fact for number in range(1, idle + 1) for fact in idle_round(number, elapsed=float(number))]
        action = next_action(loop, after_all(run_started(), rounds), at(idle))
        waits[idle] = action.seconds if isinstance(action, Wait) else 0.0
        later = next_action(loop, after_all(run_started(), rounds), at(idle + 60))
        assert isinstance(later, StartRound)
    assert waits == {9: 0.0, 10: 1.0, 11: 2.0, 16: 60.0, 40: 60.0}


def test_a_wait_survives_a_crash_and_whoever_resumes_may_know_better() -> None:
    wait = WaitStarted(seconds=9.0, reason="429", decided=decided("agent-limit"), until=RESET)
    waiting = [run_started(), *a_round(1, Outcome.LIMITED, wait_until=RESET), wait]
    assert next_action(PROMISED, after_all(waiting, CRASH_AND_RESTART()), at(60)).rule == "agent-limit"
    resumed = after_all(waiting, stopped(End.PAUSED, elapsed=60.0), run_started())
    assert next_action(PROMISED, resumed, at(60)).rule == "next-round"


# -- a limit with a reset ------------------------------------------------------------------------------------------


def test_a_limited_agent_is_left_alone_until_its_reset() -> None:
    state = trouble(1, Outcome.LIMITED, until=RESET)
    four_hours_in = next_action(PROMISED, state, at(9999, hours=4))
    assert four_hours_in == Wait(rule=Rule.AGENT_LIMIT, seconds=3600.0, until=RESET, agent="demo", reason="")
    assert next_action(PROMISED, state, at(9999, hours=5)).rule == "next-round"
    assert next_action(PROMISED, state, at(9999, hours=13)).rule == "next-round"


def test_a_reset_that_is_past_when_it_is_named_is_no_reason_to_hammer_at_the_door() -> None:
    state = trouble(2, Outcome.LIMITED, until=NOON - timedelta(minutes=1))
    assert isinstance(next_action(PROMISED, state, at(120)), Wait)


# A wait is not worth sitting through when the loop may not start another round after it.
LIMITS = [
    ({"seconds": 3600.0}, 3540.0),  # one minute is used up
    ({"until": NOON + timedelta(hours=2)}, 7200.0),
    ({"seconds": 3600.0, "until": NOON + timedelta(hours=2)}, 3540.0),
    ({"seconds": 999999.0, "until": NOON + timedelta(hours=20)}, 18000.0),
    ({}, 18000.0),
]


@pytest.mark.parametrize(("limits", "seconds"), LIMITS)
def test_no_wait_is_longer_than_the_loop_may_work(limits: dict[str, Any], seconds: float) -> None:
    action = next_action(limited(**limits), trouble(1, Outcome.LIMITED, until=RESET), at(60))
    # Stopping at once would be as good an answer; sitting there for hours, only to stop then, would not.
    assert action.rule in {"time", "until"} or (isinstance(action, Wait) and action.seconds <= seconds)


# -- nothing burns the night ---------------------------------------------------------------------------------------


def play(loop: Loop, outcome: Outcome, rounds: int, until: datetime | None = None) -> tuple[list[Action], float]:
    """An agent that answers at once, and always the same; what was decided, and how long it took."""
    history: list[Fact] = [run_started()]
    actions: list[Action] = []
    now = Now(NOON, 0.0)
    while len(actions) < rounds * 2:
        actions.append(next_action(loop, after_all(*history), now))
        match actions[-1]:
            case StartRound(round=number):
                now = Now(now.at + timedelta(seconds=0.1), now.elapsed + 0.1)
                history += a_round(
                    number, outcome, tree="tree-0", progress=False, elapsed=now.elapsed, wait_until=until
                )
            case Wait(seconds=seconds):
                now = Now(now.at + timedelta(seconds=seconds), now.elapsed + seconds)
            case _:
                break
    return actions, now.elapsed


# Only a request or a crash ends a round as interrupted; tests/engine has the agent that says so unasked.
@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.INTERRUPTED])
def test_an_agent_that_always_answers_the_same_at_once_is_soon_left_alone(outcome: Outcome) -> None:
    actions, seconds = play(limited(rounds=0), outcome, rounds=20)
    assert isinstance(actions[-1], Stop) or seconds > 600


def test_an_agent_whose_limit_reset_in_the_past_is_not_asked_again_and_again() -> None:
    _, seconds = play(PROMISED, Outcome.LIMITED, rounds=20, until=NOON - timedelta(hours=1))
    assert seconds > 600
