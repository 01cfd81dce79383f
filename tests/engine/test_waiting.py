"""Nights with trouble in them: blips, limits, clocks that jump, a lid that is closed."""

from datetime import timedelta
from itertools import repeat

import pytest

from bydawn.core.breakers import Limits
from bydawn.core.facts import MachineSlept, RoundEnded, RoundStarted, TaskSettled, WaitStarted
from bydawn.core.outcome import Outcome
from bydawn.core.requests import AskPause
from bydawn.core.values import End
from engine.fakes import NOON
from engine.night import DONE, TODO, Night, Play, blip, busy, todo

RESET = NOON + timedelta(hours=5)
LIMITED = Play(outcome=Outcome.LIMITED, detail="5-hour limit reached", wait_until=RESET, seconds=1.0)


def gaps(night: Night) -> list[float]:
    """Seconds of working time from the end of each round to the start of the next."""
    ends = [fact.elapsed for fact in night.facts(RoundEnded)]
    starts = [fact.decided.elapsed for fact in night.facts(RoundStarted)]
    return [start - end for end, start in zip(ends, starts[1:], strict=False)]


def test_back_off_grows_and_is_waited_out() -> None:
    night = Night([*repeat(blip(), 10), DONE])
    assert night.run().end is End.UNVERIFIED
    waited = gaps(night)
    for seconds, wanted in zip(waited, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300], strict=True):
        assert 0.75 * wanted <= seconds <= 1.25 * wanted
    assert [fact.seconds for fact in night.facts(WaitStarted)] == pytest.approx(waited)


def test_a_wait_is_written_down_and_synced_before_it_begins() -> None:
    night = Night([blip(), DONE])
    night.clock.at(2.0, lambda: seen.append(night.ledger.synced == len(night.ledger.records)))
    seen: list[bool] = []
    night.run()
    assert seen == [True]
    assert night.facts(WaitStarted)[0].decided.rule == "back-off"


def test_there_is_a_pause_between_rounds_but_none_before_the_first_or_after_the_last() -> None:
    night = Night(["one", "two", DONE], pause=30.0)
    assert night.run().end is End.UNVERIFIED
    assert all(30.0 <= gap <= 33.0 for gap in gaps(night))
    assert [fact.seconds for fact in night.facts(WaitStarted)] == pytest.approx(gaps(night))
    assert [fact.reason for fact in night.facts(WaitStarted)] == ["pause between rounds"] * 2


def test_a_request_ends_a_pause_between_rounds() -> None:
    night = Night(busy(), pause=3600.0)
    night.clock.at(200.0, lambda: night.ask(AskPause(id="p", run="run-1", by="ada")))
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.PAUSED, 1)
    assert stopped.decided.elapsed < 300


@pytest.mark.parametrize("outcome", [Outcome.HUNG, Outcome.CRASHED, Outcome.LOST_OUTPUT, Outcome.FAILED])
def test_an_agent_that_fails_five_times_in_a_row_over_twenty_minutes_has_failed(outcome: Outcome) -> None:
    night = Night(repeat(Play(outcome=outcome, detail="boom", seconds=1.0), 9))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.FAILED, "agent-failures")
    assert stopped.reason == "the agent failed 5 times in a row; last: boom"
    assert night.agent.turns == 5
    assert 20 * 60 <= stopped.decided.elapsed <= 27 * 60


@pytest.mark.parametrize("outcome", [Outcome.HUNG, Outcome.CRASHED, Outcome.LOST_OUTPUT, Outcome.FAILED])
def test_a_number_of_failures_that_somebody_gave_ends_the_loop_by_itself(outcome: Outcome) -> None:
    """Whatever they changed, and however soon one follows another."""
    plays = [Play(outcome=outcome, detail="boom", writes={"a": str(turn)}) for turn in range(9)]
    night = Night(plays, limits=Limits(agent_failures=3))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.FAILED, "agent-failures")
    assert stopped.reason == "the agent failed 3 times in a row; last: boom"
    assert all(5.0 <= gap <= 6.25 for gap in gaps(night))


CRASH = Play(outcome=Outcome.CRASHED, detail="boom", seconds=1.0)


def test_a_bad_minute_late_in_the_night_does_not_end_it() -> None:
    """Not as a stall either, nor by setting the task aside: that an agent crashes says nothing about the work."""
    does_it = Play(writes={"a": "1", TODO: todo("x one", "x two")})
    plays: list[Play | str] = ["looked", "looked", "looked", *[CRASH] * 4, does_it]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO)
    assert night.run().end is End.UNVERIFIED
    assert night.facts(TaskSettled) == []


@pytest.mark.parametrize("between", [LIMITED, Play(outcome=Outcome.CRASHED, writes={"a": "1"}, seconds=1.0)])
def test_a_usage_limit_or_a_change_starts_a_new_count_of_failures(between: Play) -> None:
    night = Night([CRASH, CRASH, CRASH, CRASH, between, *[CRASH] * 9])
    assert night.run().decided.rule == "agent-failures"
    first = 5 if between is LIMITED else 4  # a crash that changed something is the first of its own row
    assert night.agent.turns == first + 5
    assert [gap < 100 for gap in gaps(night)[first:]] == [True, True, False, False]


def test_failures_that_are_not_in_a_row_do_not_add_up() -> None:
    crash = Play(outcome=Outcome.CRASHED, writes={"a": "1"})
    night = Night([crash, crash, "fine", crash, blip(), crash, DONE])
    assert night.run().end is End.UNVERIFIED


@pytest.mark.parametrize("outcome", [Outcome.AUTH, Outcome.CONFIG])
def test_what_only_a_person_can_mend_stops_at_once(outcome: Outcome) -> None:
    night = Night([Play(outcome=outcome, detail="run `codex login`"), DONE])
    stopped = night.run()
    assert (stopped.end, stopped.reason, night.agent.turns) == (End.FAILED, "run `codex login`", 1)
    assert night.processes.sleeps == []
    assert night.run().end is End.UNVERIFIED  # once it is mended, `resume` goes on


def test_an_agent_that_says_interrupted_although_nobody_asked_has_failed() -> None:
    night = Night(repeat(Play(outcome=Outcome.INTERRUPTED), 50))
    assert night.run().end is End.FAILED


def test_five_rounds_that_change_nothing_block_and_a_person_can_give_them_another_five() -> None:
    night = Night(repeat("hm", 50))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.BLOCKED, "no-progress", 5)
    assert night.run().end is End.BLOCKED
    assert night.agent.turns == 10


def test_going_round_in_circles_is_no_progress() -> None:
    night = Night([Play(writes={"a": str(turn % 3)}) for turn in range(50)])
    assert night.run().decided.rule == "no-progress"
    assert night.agent.turns == 3 + 5


# -- a provider's limit --------------------------------------------------------------------------------------------


def test_a_limited_agent_is_asked_again_at_its_reset_and_no_round_is_spent() -> None:
    night = Night([LIMITED, DONE], limits=Limits(rounds=1))
    assert night.run().end is End.UNVERIFIED
    assert night.clock.wall - timedelta(seconds=60) == RESET
    [wait] = night.facts(WaitStarted)
    assert (wait.until, wait.reason, wait.decided.rule) == (RESET, "5-hour limit reached", "agent-limit")


def test_a_machine_that_slept_through_the_reset_goes_on_when_it_wakes() -> None:
    night = Night([LIMITED, DONE])
    night.clock.at(600.0, lambda: night.clock.suspend(hours=6))
    night.run()
    assert night.clock.elapsed < 1200  # not five hours more after six hours of sleep
    assert [fact.seconds for fact in night.facts(MachineSlept)] == [6 * 3600.0]


def test_a_wait_ends_with_the_time_the_loop_has() -> None:
    for limits in (Limits(seconds=3600.0), Limits(until=NOON + timedelta(hours=1))):
        night = Night([LIMITED, DONE], limits=limits)
        assert night.run().end is End.LIMIT
        assert night.clock.wall <= NOON + timedelta(hours=1, minutes=2)


def test_a_wait_survives_a_crash_and_begins_again_with_what_is_left_of_it() -> None:
    night = Night([LIMITED, DONE])
    night.clock.at(3600.0, night.crash)
    night.run_until_crash()
    night.run()
    assert night.clock.wall - timedelta(seconds=60) == RESET
    assert night.agent.turns == 2


def test_what_a_person_edits_while_the_loop_waits_is_not_the_agents_progress() -> None:
    night = Night([LIMITED, "nothing to do", DONE])
    night.clock.at(60.0, night.crash)
    night.run_until_crash()
    night.clock.at(3600.0, lambda: night.workspace.edit({"by-hand": "1"}))
    night.run()
    edited = night.workspace.tree
    assert [fact.tree for fact in night.facts(RoundStarted)][1:] == [edited, edited]
    assert [fact.found.progress for fact in night.facts(RoundEnded)][1:] == [False, False]
    assert edited in night.workspace.kept.values()  # and it can be had back


# -- clocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [-8, 8])
def test_a_wall_clock_that_jumps_ends_no_loop_and_lengthens_none(hours: int) -> None:
    night = Night(busy(), limits=Limits(rounds=0, seconds=3600.0))
    night.clock.at(1800.0, lambda: night.clock.jump(hours))
    assert night.run().decided.rule == "time"
    assert night.clock.elapsed == pytest.approx(3600.0, abs=60.0)


@pytest.mark.parametrize("hours", [-8, 8])
def test_a_back_off_is_as_long_as_ever_when_the_wall_clock_jumps(hours: int) -> None:
    night = Night([blip(), DONE])
    night.clock.at(2.0, lambda: night.clock.jump(hours))
    night.run()
    assert gaps(night)[0] <= 2.5


def test_until_is_a_moment_on_the_wall() -> None:
    night = Night(busy(), limits=Limits(rounds=0, until=NOON + timedelta(hours=2)))
    night.clock.at(1800.0, lambda: night.clock.jump(1))
    assert night.run().decided.rule == "until"
    assert night.clock.elapsed == pytest.approx(3600.0, abs=60.0)


def test_time_asleep_is_not_working_time() -> None:
    night = Night(busy(), limits=Limits(rounds=0, seconds=3600.0))
    night.clock.at(1800.0, lambda: night.clock.suspend(hours=8))
    night.run()
    assert night.clock.elapsed == pytest.approx(3600.0, abs=60.0)
    assert [fact.seconds for fact in night.facts(MachineSlept)] == [8 * 3600.0]


def test_a_nap_is_not_worth_a_word() -> None:
    night = Night([Play(meanwhile=lambda: night.clock.suspend(hours=3 / 3600)), DONE])
    night.run()
    assert night.facts(MachineSlept) == []


def test_working_time_goes_on_where_the_run_before_left_it() -> None:
    night = Night(busy(), limits=Limits(rounds=0, seconds=600.0))
    for _ in range(3):
        night.run(once=True)
    assert night.run().decided.rule == "time"
    assert night.agent.turns == 10
