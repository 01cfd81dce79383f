"""When to wait, how long, and that nothing can make a loop burn the night."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from bydawn.core.decide import Action, StartRound, Stop, Wait, next_action
from bydawn.core.facts import AgentLimited, Fact, WaitStarted
from bydawn.core.loop import Limits, Loop, TaskByTask
from bydawn.core.outcome import Outcome
from bydawn.core.pool import back_off
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End, Now, Usage
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
    pause,
    run_started,
    stop,
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
]


@pytest.mark.parametrize(("outcome", "first", "longest"), BACK_OFF)
def test_a_back_off_doubles_until_it_is_long_enough(outcome: Outcome, first: float, longest: float) -> None:
    loop = limited(agent_failures=0, no_progress=0, rounds=0)
    for times in range(1, 40):
        waited = back_off(loop, trouble(times, outcome), outcome)
        wanted = min(first * 2 ** (times - 1), longest)
        assert 0.75 * wanted <= waited <= 1.25 * wanted


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.HUNG, Outcome.LOST_OUTPUT, Outcome.FAILED])
def test_failures_in_a_row_wait_five_seconds_then_one_five_and_fifteen_minutes(outcome: Outcome) -> None:
    for times, wanted in enumerate([5.0, 60.0, 300.0, 900.0, 900.0, 900.0], 1):
        facts = [fact for number in range(1, times + 1) for fact in idle_round(number, outcome=outcome)]
        assert wanted <= back_off(PROMISED, after_all(run_started(), facts), outcome) <= 1.25 * wanted


def test_whoever_resumes_a_loop_whose_agent_failed_does_not_wait_but_after_a_crash_it_does() -> None:
    crashed = idle_round(1, outcome=Outcome.CRASHED)
    resumed = after_all(run_started(), crashed, stopped(End.FAILED), run_started())
    assert next_action(PROMISED, resumed, at(60)).rule == "next-round"
    assert next_action(PROMISED, after_all(run_started(), crashed, CRASH_AND_RESTART()), at(60)).rule == "back-off"


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


def test_no_wait_outlasts_the_time_of_its_run() -> None:
    state = after_all(run_started(seconds_allowed=60.5), a_round(1, Outcome.TRANSIENT))
    action = next_action(PROMISED, state, at(60))
    assert isinstance(action, Wait)
    assert action.seconds == 0.5


def test_a_round_that_went_well_is_followed_at_once() -> None:
    assert next_action(PROMISED, trouble(1, Outcome.OK), at(60)).rule == "next-round"


# -- a pause between rounds --------------------------------------------------------------------------------------------

PAUSING = a_loop(pause=100.0)


def rest(loop: Loop, *history: Fact | Sequence[Fact], elapsed: float = 60.0) -> tuple[str, float]:
    action = next_action(loop, after_all(*history), at(elapsed))
    return action.rule, action.seconds if isinstance(action, Wait) else 0.0


def test_a_pause_is_between_two_rounds_of_one_run() -> None:
    assert rest(PAUSING, run_started(), elapsed=0)[0] == "next-round"
    rule, seconds = rest(PAUSING, run_started(), a_round(1))
    assert rule == "pause"
    assert 100 <= seconds <= 110
    assert rest(PAUSING, run_started(), a_round(1), elapsed=100.0)[1] == pytest.approx(seconds - 40)
    assert rest(PAUSING, run_started(), a_round(1), elapsed=170.0)[0] == "next-round"
    assert rest(PAUSING, run_started(), a_round(1), stopped(End.PAUSED), run_started())[0] == "next-round"
    assert rest(PAUSING, run_started(), a_round(1), CRASH_AND_RESTART())[0] == "next-round"


def test_a_pause_is_the_same_whenever_it_is_asked_for_and_differs_from_loop_to_loop_and_round_to_round() -> None:
    loops = [a_loop(pause=100.0, uid=f"u-{number}") for number in range(20)]
    waits = [rest(loop, run_started(), a_round(1)) for loop in loops]
    assert waits == [rest(loop, run_started(), a_round(1)) for loop in loops]
    assert len({*waits}) > 10
    assert rest(PAUSING, run_started(), a_round(1)) != rest(PAUSING, run_started(), a_round(2))


def test_how_much_longer_a_pause_may_be_can_be_said() -> None:
    """C-060"""
    assert rest(a_loop(pause=100.0, by_task=TaskByTask()), run_started(), a_round(1)) == ("pause", 100.0)
    loops = [a_loop(pause=2.0, by_task=TaskByTask(pause_jitter=60.0), uid=f"u-{number}") for number in range(20)]
    waits = [rest(loop, run_started(), a_round(1))[1] for loop in loops]
    assert min(waits) >= 2
    assert 30 < max(waits) <= 62
    assert (
        rest(a_loop(by_task=TaskByTask(pause_jitter=60.0)), run_started(), a_round(1))[0] == "pause"
    )  # even without any other rest


def test_a_pause_never_outlasts_a_time_limit() -> None:
    assert rest(a_loop(pause=100.0, limits=Limits(seconds=70.0)), run_started(), a_round(1)) == ("pause", 10.0)
    assert rest(PAUSING, run_started(seconds_allowed=75.0), a_round(1)) == ("pause", 15.0)


def test_an_attempt_that_cost_no_round_has_its_own_wait() -> None:
    assert rest(PAUSING, run_started(), a_round(1, Outcome.TRANSIENT))[0] == "back-off"
    assert rest(PAUSING, run_started(), a_round(1), a_round(2, Outcome.TRANSIENT))[0] == "back-off"
    assert rest(PAUSING, run_started(), a_round(1), a_round(2, Outcome.INTERRUPTED))[0] == "next-round"


def test_of_a_pause_and_a_back_off_the_longer_one_is_waited_for() -> None:
    failed = a_round(1, Outcome.CRASHED)
    assert rest(PAUSING, run_started(), failed)[0] == "pause"
    assert rest(a_loop(pause=0.1), run_started(), failed)[0] == "back-off"


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


# -- turns that cost no round ------------------------------------------------------------------------------------------

PAID = Usage(tokens_in=160_000)
HOUR = 3600.0


def turns(times: int, outcome: Outcome, first: int = 1, every: float = 60.0, **more: Any) -> list[Fact]:
    """So many of these turns, the first of them over at once."""
    more = {"detail": "502", **more}
    return [
        fact
        for turn in range(times)
        for fact in a_round(first + turn, outcome, **{"elapsed": every * (first + turn - 1), **more})
    ]


def rule_after(*facts: Fact | list[Fact], loop: Loop = PROMISED) -> Rule:
    """What decides, once any back-off is over."""
    state = after_all(run_started(), *facts)
    return next_action(loop, state, at(state.elapsed + HOUR)).rule


@pytest.mark.parametrize(
    ("outcome", "more", "most", "rule"),
    [
        (Outcome.INTERRUPTED, {}, 11, Rule.CUT_SHORT),
        (Outcome.INTERRUPTED, {"usage": PAID}, 11, Rule.CUT_SHORT),
        (Outcome.TRANSIENT, {"usage": PAID}, 5, Rule.PAID_TROUBLE),
        (Outcome.TRANSIENT, {"usage": Usage(cost_usd=0.2)}, 5, Rule.PAID_TROUBLE),
        (Outcome.SESSION_LOST, {"usage": PAID}, 5, Rule.PAID_TROUBLE),
        (Outcome.TRANSIENT, {"every": HOUR / 12}, 73, Rule.OUTAGE),  # 6 hours from the first to the last
        (Outcome.TRANSIENT, {"every": HOUR, "usage": Usage(tokens_in=0)}, 7, Rule.OUTAGE),
    ],
)
def test_turns_that_cost_no_round_have_a_cap_of_their_own(
    outcome: Outcome, more: dict[str, Any], most: int, rule: Rule
) -> None:
    """Under `-n 3`, a dying process took 15 agent turns, and trouble 2.4 million tokens in 75 seconds."""
    loop = limited(rounds=3)
    assert rule_after(turns(most - 1, outcome, **more), loop=loop) == Rule.NEXT_ROUND
    assert rule_after(turns(most, outcome, **more), loop=loop) == rule
    restarted = [*turns(most - 1, outcome, **more), CRASH_AND_RESTART(), *turns(1, outcome, most, **more)]
    assert rule_after(restarted, loop=loop) == rule, "a crash resets nothing"
    resumed = [*turns(most, outcome, **more), stopped(End.FAILED), run_started()]
    assert rule_after(resumed, loop=loop) == Rule.NEXT_ROUND, "a person's resume begins anew"
    counted = [*turns(most - 1, outcome, **more), *a_round(most), *turns(1, outcome, most + 1, **more)]
    assert rule_after(counted, loop=loop) == Rule.NEXT_ROUND, "and so does a round that counts"


def test_such_an_end_says_what_happened_each_time() -> None:
    facts = [fact for turn in range(1, 13) for fact in turns(1, Outcome.INTERRUPTED, turn, detail=f"killed by {turn}")]
    stop = next_action(PROMISED, after_all(run_started(), facts), at())
    assert isinstance(stop, Stop)
    assert (stop.end, stop.reason) == (End.FAILED, "12 attempts in a row were cut short; last: killed by 12")
    assert stop.evidence == tuple(f"round {turn}: killed by {turn}" for turn in range(3, 13))


def test_an_outage_and_paid_trouble_say_how_long_and_how_often() -> None:
    outage = next_action(PROMISED, after_all(run_started(), turns(8, Outcome.TRANSIENT, every=HOUR)), at(9 * HOUR))
    paid = next_action(PROMISED, after_all(run_started(), turns(5, Outcome.TRANSIENT, usage=PAID)), at(HOUR))
    assert isinstance(outage, Stop)
    assert outage.reason == "the agent had nothing but trouble for 7 h 00; last: 502"
    assert isinstance(paid, Stop)
    assert paid.reason == "the agent used tokens and had trouble 5 times in a row; last: 502"


@pytest.mark.parametrize("ask", [pause(now=True), pause(now=True, signal="SIGINT"), stop(now=True)])
def test_an_attempt_that_a_person_stopped_is_not_a_death(ask: Fact) -> None:
    begun, over = a_round(10, Outcome.INTERRUPTED)
    state = after_all(run_started(), turns(9, Outcome.INTERRUPTED), begun, ask, over)
    assert state.free.cut_short == 9


def test_a_usage_limit_is_waited_out_whatever_came_before() -> None:
    assert rule_after(turns(50, Outcome.LIMITED)) == Rule.NEXT_ROUND
    blip = turns(1, Outcome.TRANSIENT)
    later = turns(1, Outcome.TRANSIENT, 3, every=4 * HOUR)
    own = turns(1, Outcome.LIMITED, 2)
    told = AgentLimited(agent="demo", until=NOON + timedelta(hours=7), detail="limit", by="another")
    assert rule_after(blip, own, later) == Rule.NEXT_ROUND
    assert rule_after(blip, [told], later) == Rule.AGENT_LIMIT
    assert rule_after(blip, later) == Rule.OUTAGE


def test_trouble_of_two_kinds_is_not_forgotten_by_taking_turns() -> None:
    mixed = [
        fact
        for turn in range(1, 6)
        for fact in (
            *turns(1, Outcome.TRANSIENT, 3 * turn - 2, usage=PAID),
            *turns(1, Outcome.INTERRUPTED, 3 * turn - 1),
            *turns(1, Outcome.TRANSIENT, 3 * turn),
        )
    ]
    assert rule_after(mixed) == Rule.PAID_TROUBLE
