"""Runs that follow each other by themselves: the pause before each belongs to it, and people are heard in it."""

from itertools import chain

import pytest

from bydawn.core.breakers import Limits
from bydawn.core.decide import next_action
from bydawn.core.facts import Fact, LoopStopped, RoundStarted, RunStarted, WaitStarted
from bydawn.core.loop import Hooks
from bydawn.core.replay import after
from bydawn.core.requests import AskNote, AskPause, AskStop
from bydawn.core.state import LoopState
from bydawn.core.values import End, Now
from engine.night import DONE, TODO, Night, busy, todo

MINUTE = 60.0
STOP = AskStop(id="s", run="", by="ada", now=False)


def a_cycle(night: Night, cycle: int = 2, **more: bool) -> tuple[LoopStopped, list[Fact]]:
    """One that follows another by itself: its end, and what it recorded."""
    known = len(night.facts())
    stopped = night.run(once=True, cycle=cycle, rest=MINUTE, **more)
    return stopped, night.facts()[known:]


def test_a_cycle_begins_with_a_pause_and_says_so() -> None:
    """C-061: each is a resume by the program, recorded as such."""
    night = Night(busy())
    assert night.run(once=True, cycle=1).end is End.LIMIT
    assert night.processes.sleeps == []
    stopped, facts = a_cycle(night)
    assert stopped.end is End.LIMIT
    assert [type(fact).__name__ for fact in facts[:3]] == ["RunStarted", "WaitStarted", "RoundStarted"]
    began, wait = facts[:2]
    assert isinstance(began, RunStarted) and isinstance(wait, WaitStarted)
    assert (began.cycle, wait.seconds, wait.decided.rule) == (2, MINUTE, "cycle")
    assert wait.reason == "pause before cycle 2"
    assert (night.processes.sleeps, night.state.cycle) == ([MINUTE], 2)
    assert_decisions_agree(night)


@pytest.mark.parametrize(
    "night",
    [
        Night([DONE]),
        Night(["…"] * 5, limits=Limits(no_progress=1)),
        Night(busy(), limits=Limits(rounds=1)),
    ],
    ids=["complete", "no progress", "limit"],
)
def test_the_pause_comes_first_even_if_there_is_nothing_to_do_after_it(night: Night) -> None:
    """Otherwise a loop that ends at once would begin again without a pause, all night."""
    night.run()
    for cycle in (2, 3):
        a_cycle(night, cycle)
    assert night.processes.sleeps == [MINUTE, MINUTE]


def test_an_obstacle_does_not_shorten_the_pause_either() -> None:
    night = Night(busy())
    night.obstacle = ("workspace", "the folder is gone")
    assert night.run().end is End.BLOCKED
    assert a_cycle(night)[0].end is End.BLOCKED
    assert night.processes.sleeps == [MINUTE]


@pytest.mark.parametrize(
    ("wanted", "end"),
    [
        (STOP, End.STOPPED),
        (AskPause(id="p", run="", by="ada", now=False), End.PAUSED),
        (AskPause(id="", run="", by="a signal", now=False, signal="SIGINT"), End.PAUSED),
        (AskPause(id="", run="", by="a signal", now=True, signal="SIGTERM"), End.PAUSED),
    ],
)
def test_who_wants_it_to_end_in_the_pause_does_not_have_to_wait(wanted: AskStop | AskPause, end: End) -> None:
    night = Night(busy())
    night.run(once=True, cycle=1)
    night.ask(wanted)
    stopped, facts = a_cycle(night)
    assert stopped.end is end
    assert not any(isinstance(fact, RoundStarted) for fact in facts)
    assert sum(night.processes.sleeps) <= MINUTE
    assert_decisions_agree(night)


def test_a_note_in_the_pause_goes_into_the_next_prompt() -> None:
    night = Night(busy())
    night.run(once=True, cycle=1)
    night.ask(AskNote(id="n", run="", by="ada", text="use tabs"))
    _, facts = a_cycle(night)
    [began] = [fact for fact in facts if isinstance(fact, RoundStarted)]
    assert len(began.notes) == 1
    assert night.processes.sleeps == [MINUTE]


def test_what_a_person_wanted_while_the_last_hook_ran_is_not_forgotten() -> None:
    """The end stays what it was; but no other cycle follows it."""
    night = Night(busy(), hooks=Hooks(on_blocked="help"))
    assert night.run(once=True, cycle=1).end is End.LIMIT
    assert not night.effects.was_hurried
    night.hooks.meanwhile = lambda _: night.ask(STOP)
    assert a_cycle(night)[0].end is End.LIMIT
    assert night.effects.was_hurried


def test_tasks_that_were_set_aside_stay_so_unless_they_are_to_be_tried_again() -> None:
    """C-061: without `--retry-blocked`."""
    night = Night(chain(["BLOCKED: which port?"], busy()), files={TODO: todo("one", "two")}, tasks=TODO)
    night.run(rounds=2)
    assert [*night.state.settled.aside] != []
    _, facts = a_cycle(night, keeps_aside=True)
    assert [fact.task for fact in facts if isinstance(fact, RoundStarted)] == ["two"]
    _, facts = a_cycle(night, 3)
    assert [fact.task for fact in facts if isinstance(fact, RoundStarted)] == ["one"]
    assert not night.state.settled.aside


def assert_decisions_agree(night: Night) -> None:
    """As `bydawn why` does it."""
    state = LoopState()
    for record in night.ledger.records:
        if isinstance(record.fact, RoundStarted | WaitStarted | LoopStopped):
            decided = record.fact.decided
            assert next_action(night.loop, state, Now(decided.at, decided.elapsed)).rule == decided.rule
        state = after(state, record)
