"""Nights with more than one agent, and with other loops that know of a limit."""

from datetime import timedelta

from bydawn.core.breakers import Limits
from bydawn.core.facts import AgentLimited, RoundStarted, WaitStarted
from bydawn.core.loop import OnLimit, Sessions
from bydawn.core.outcome import Outcome
from bydawn.core.ports import CoolDown
from bydawn.core.requests import AskPause
from bydawn.core.values import End
from engine.fakes import NOON
from engine.night import DONE, Night, Play

RESET = NOON + timedelta(hours=5)
LIMITED = Play(outcome=Outcome.LIMITED, detail="5-hour limit reached", wait_until=RESET, seconds=1.0)


def workers(night: Night) -> list[str]:
    return [fact.agent for fact in night.facts(RoundStarted)]


def test_another_agent_takes_over_and_the_first_one_comes_back() -> None:
    hour_long = [Play(writes={"a": str(turn)}, seconds=3600.0) for turn in range(9)]
    night = Night([LIMITED, DONE], others={"codex": hour_long})
    assert night.run().end is End.UNVERIFIED
    assert workers(night) == ["demo", *["codex"] * 5, "demo"]
    assert night.facts(WaitStarted) == []


def test_where_everybody_is_limited_the_loop_waits_for_the_first_to_be_free() -> None:
    soon = Play(outcome=Outcome.LIMITED, detail="busy", wait_until=NOON + timedelta(hours=1), seconds=1.0)
    night = Night([LIMITED], others={"codex": [soon, DONE]})
    assert night.run().end is End.UNVERIFIED
    assert workers(night) == ["demo", "codex", "codex"]
    [wait] = night.facts(WaitStarted)
    assert (wait.until, wait.agent, wait.reason) == (NOON + timedelta(hours=1), "codex", "busy")


def test_sessions_are_not_mixed_up() -> None:
    plays = (Play(says=f"turn {turn}", writes={"a": str(turn)}) for turn in range(9))
    night = Night([next(plays), LIMITED, DONE], others={"codex": [next(plays), LIMITED]}, sessions=Sessions.RESUME)
    night.run()
    assert night.agents["codex"].sessions == [None, "codex's"]
    assert night.agent.sessions == [None, "demo's", None]
    assert "Where the previous conversation ended" in night.prompt(3)


def test_a_conversation_that_goes_on_is_not_sent_its_goal_again() -> None:
    full = Play(outcome=Outcome.CONTEXT_FULL, detail="full", writes={"a": "full"})
    one, two, three, four = (Play(says=f"turn {turn}", writes={"a": str(turn)}) for turn in range(4))
    night = Night([one, two, full, three, four, DONE], sessions=Sessions.RESUME, prompt="make it fast")
    night.run()
    assert night.agent.sessions == [None, "demo's", "demo's", None, "demo's", "demo's"]
    assert ["make it fast" in night.prompt(round_) for round_ in range(1, 7)] == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]


def test_a_session_that_cannot_be_named_is_not_taken_for_one_that_goes_on() -> None:
    """As an argument its name would be an option, so the agent begins a new conversation and needs the goal."""
    odd = Play(says="hm", writes={"a": "1"}, session="-rf")
    night = Night([odd, DONE], sessions=Sessions.RESUME, prompt="make it fast")
    night.run()
    assert night.agent.sessions == [None, None]
    assert "make it fast" in night.prompt(2)


def test_a_limit_is_told_to_all_loops_and_each_of_them_believes_it() -> None:
    first = Night([LIMITED, DONE])
    first.run()
    assert first.cool_downs.known["demo"].until == RESET
    second = Night([DONE])
    second.cool_downs = first.cool_downs
    second.run()
    assert [fact.by for fact in second.facts(AgentLimited)] == ["night"]
    assert second.clock.wall >= RESET
    assert second.agent.turns == 1, "nothing was tried in vain"


def test_a_limit_that_another_loop_meets_while_we_wait_is_seen() -> None:
    night = Night([LIMITED, DONE])
    later = CoolDown(agent="demo", until=RESET + timedelta(hours=1), detail="weekly", loop="another")
    night.clock.at(3600.0, lambda: night.cool_downs.known.update(demo=later))
    night.run()
    assert [fact.until for fact in night.facts(WaitStarted)] == [RESET, later.until]


def test_whoever_resumes_a_loop_that_waits_need_not_wait_less() -> None:
    night = Night([LIMITED, DONE])
    night.clock.at(600.0, lambda: night.ask(AskPause(id="1", run="run-1", by="ada")))
    assert night.run().end is End.PAUSED
    assert night.run().end is End.UNVERIFIED
    assert night.agent.turns == 2
    assert night.clock.wall >= RESET


def test_unless_the_limit_is_known_to_be_over() -> None:
    night = Night([LIMITED, DONE])
    night.clock.at(600.0, lambda: night.ask(AskPause(id="1", run="run-1", by="ada")))
    night.run()
    night.cool_downs.known.clear()  # as `agents test` does when the agent works
    assert night.run().end is End.UNVERIFIED
    assert night.clock.wall < NOON + timedelta(minutes=20)


def test_a_loop_that_is_to_stop_at_a_limit_stops_and_stops_again_until_it_is_over() -> None:
    night = Night([LIMITED, DONE], on_limit=OnLimit.STOP)
    assert night.run().decided.rule == "limit-stops"
    assert night.run().decided.rule == "limit-stops"
    assert night.agent.turns == 1
    night.clock.jump(5)
    assert night.run().end is End.UNVERIFIED


def test_a_reset_after_the_latest_wake_ends_the_loop_instead_of_its_rest() -> None:
    night = Night([LIMITED, DONE], limits=Limits(latest_wake=RESET - timedelta(hours=1)))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.LIMIT, "latest-wake")
    assert night.processes.sleeps == []
