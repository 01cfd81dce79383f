"""Nights nobody thought of: random agents, wishes, clocks and power cuts, and what must be true of each of them."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.decide import next_action
from bydawn.core.facts import (
    ChecksEnded,
    HookEnded,
    LoopStopped,
    NoteAdded,
    PauseRequested,
    RoundEnded,
    RoundStarted,
    RunStarted,
    StopRequested,
    TaskSettled,
    WaitStarted,
)
from bydawn.core.loop import Hooks, OnHookFailure, Promise
from bydawn.core.outcome import POLICY, Exit, Outcome
from bydawn.core.replay import after, replay
from bydawn.core.requests import AskNote, AskPause, AskStop
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, Now, Promised
from engine.fakes import NOON, PowerCut
from engine.night import DONE, MAKE_TEST, TODO, Night, Play, ScriptedAgent, todo

LISTS = [todo("one", "two"), todo("x one", "two"), todo("x one", "x two"), None]
EVENTS = ["nothing"] * 6 + [
    "pause",
    "pause now",
    "stop",
    "stop now",
    "tell",
    "crash",
    "jump",
    "jump back",
    "sleep",
    "edit",
]
RESETS = [None, NOON - timedelta(hours=1), NOON + timedelta(hours=3)]

PLAYS = st.fixed_dictionaries(
    {
        "says": st.sampled_from(["working on it", DONE, "I will say <promise>TASK_COMPLETE</promise> later"]),
        # half of the turns go well; the rest is everything that can happen
        "outcome": st.one_of(st.just(Outcome.OK), st.sampled_from(Outcome)),
        "writes": st.sampled_from([{}, *({"a": str(n)} for n in range(4)), *({TODO: text} for text in LISTS)]),
        "seconds": st.sampled_from([0.5, 60.0, 1000.0]),
        "wait_until": st.sampled_from(RESETS),
        "event": st.sampled_from(EVENTS),
    }
)
HOOKS = Hooks(pre_round="a", post_round="b", on_complete="c", on_blocked="d", on_pause="e")
LIMITS = st.builds(
    Limits,
    rounds=st.sampled_from([0, 1, 3]),
    no_progress=st.sampled_from([0, 1, 3]),
    agent_failures=st.sampled_from([0, 1, 2]),
    seconds=st.sampled_from([None, 1000.0]),
    until=st.sampled_from([None, NOON + timedelta(hours=2)]),
)
LOOPS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "tasks": st.sampled_from([None, TODO]),
        "checks": st.sampled_from([(), (MAKE_TEST,)]),
        "promise": st.sampled_from([None, Promise()]),
        "limits": LIMITS,
        "hooks": st.sampled_from([Hooks(), HOOKS, replace(HOOKS, on_failure=OnHookFailure.BLOCK)]),
    }
)
# For each run: allowed one round only? the power goes after so many facts, with or without what was not synced
RUNS = st.lists(st.tuples(st.booleans(), st.none() | st.integers(1, 12), st.booleans()), min_size=1, max_size=5)


@st.composite
def nights(draw: st.DrawFn) -> Night:
    """A loop that has been through a few runs, however they ended."""
    verdicts = iter(draw(st.lists(st.booleans(), max_size=6)))
    night = Night(files={TODO: LISTS[0]}, check=lambda _: next(verdicts, True), **draw(LOOPS))
    night.agent = ScriptedAgent(acted(night, draw(st.lists(PLAYS, max_size=8))))
    hooks = iter(draw(st.lists(st.tuples(st.sampled_from([0, 0, 0, 3]), st.sampled_from(EVENTS)), max_size=12)))

    def hooked(name: str) -> None:
        code, event = next(hooks, (0, "nothing"))
        night.hooks.exits[name] = Exit(code=code)
        # What is edited after the last decision is not part of what was proven.
        happen(night, "nothing" if event == "edit" and name.startswith("on_") else event)

    night.hooks.meanwhile = hooked
    for once, cut_after, forgets in draw(RUNS):
        night.ledger.cut_after, night.ledger.forgets = cut_after, forgets
        night.channel.waiting.clear()
        try:
            if night.run(once=once).end in FINISHED:
                break
        except PowerCut:
            pass
        night.ledger.cut_after = None
    return night


def acted(night: Night, plays: list[dict[str, Any]]) -> Iterator[Play]:
    """The plays, each with its event, and then an agent that changes something and says that it is done, for ever."""
    for play in plays:
        event = str(play.pop("event"))
        yield Play(**play, meanwhile=lambda event=event: happen(night, event))  # type: ignore[misc]
    for turn in count():
        yield Play(says=DONE, writes={"b": str(turn), TODO: LISTS[2]})


def happen(night: Night, event: str) -> None:
    name = f"r-{len(night.channel.done_with)}"
    match event:
        case "pause" | "pause now":
            night.ask(AskPause(id=name, run="", by="ada", now="now" in event))
        case "stop" | "stop now":
            night.ask(AskStop(id=name, run="", by="ada", now="now" in event))
        case "tell":
            night.ask(AskNote(id=name, run="", by="ada", text="use tabs"))
        case "crash":
            night.crash()
        case "jump" | "jump back":
            night.clock.jump(8 if event == "jump" else -8)
        case "sleep":
            night.clock.suspend(2)
        case "edit":
            night.workspace.edit({"by-hand": "1", TODO: LISTS[2]})
        case _:
            assert event == "nothing"


# -- what must be true of every night ------------------------------------------------------------------------------


@given(nights())
def test_every_recorded_decision_is_taken_again_from_the_same_facts(night: Night) -> None:
    """This is what `bydawn why` shows."""
    state = LoopState()
    for record in night.ledger.records:
        fact = record.fact
        if isinstance(fact, RoundStarted | WaitStarted | LoopStopped):
            again = next_action(night.loop, state, Now(fact.decided.at, fact.decided.elapsed))
            assert again.rule == fact.decided.rule
            same = [name for name in ("round", "task", "seconds", "end", "reason") if hasattr(again, name)]
            assert all(getattr(again, name) == getattr(fact, name) for name in same if hasattr(fact, name))
        state = after(state, record)
    assert state == night.state == replay(night.ledger.records)


@given(nights())
def test_round_numbers_only_grow_and_no_agent_runs_that_is_not_on_record(night: Night) -> None:
    started = [fact.round for fact in night.facts(RoundStarted)]
    ended = [fact.round for fact in night.facts(RoundEnded)]
    assert started == sorted(set(started))
    assert ended == started[: len(ended)]  # each round that began has ended, but perhaps for the last
    assert len(started) - len(ended) <= 1
    ran = [int(job.env["BYDAWN_ROUND"]) for job in night.processes.jobs]
    assert ran == sorted(set(ran))
    assert set(ran) <= set(started)


@given(nights())
def test_no_loop_is_finished_while_something_is_missing(night: Night) -> None:
    """Judged from the files and the facts themselves, not by the rule under test."""
    for stopped in night.facts(LoopStopped)[-1:]:
        if stopped.end not in FINISHED:
            continue
        if night.loop.tasks:
            assert night.workspace.files[TODO] == LISTS[2]
        if night.loop.checks:
            proof = night.facts(ChecksEnded)[-1]
            assert proof.passed
            assert proof.tree == night.workspace.tree
        if night.loop.promise or not (night.loop.tasks or night.loop.checks):
            assert night.facts(RoundEnded)[-1].promise is Promised.GIVEN


@given(nights())
def test_breakers_trip_exactly_at_their_limits(night: Night) -> None:
    limits = night.loop.limits
    readings = {"rounds": 0, "rounds-this-run": 0, "no-progress": 0, "agent-failures": 0}
    table = {"rounds": limits.rounds, "no-progress": limits.no_progress, "agent-failures": limits.agent_failures}
    stood_still, newly, ever = False, False, set[str]()
    was_red = unknown = False  # of the checks; of a box that was ticked in the last round, without any work
    for fact in night.facts():
        match fact:
            case RunStarted():
                readings["rounds-this-run"] = 0
                table["rounds-this-run"] = fact.rounds_allowed or 0
                readings |= {"no-progress": 0, "agent-failures": 0} if stood_still else {}
                stood_still = False
            case RoundStarted():
                assert all(readings[name] < limit for name, limit in table.items() if limit)
            case RoundEnded() if POLICY[fact.outcome].counts:
                readings["rounds"] += 1
                readings["rounds-this-run"] += 1
                newly, ever = bool({*fact.found.closed} - ever), ever | {*fact.found.closed}
                unknown = bool(fact.found.doubted)
                readings["no-progress"] = 0 if fact.found.progress else readings["no-progress"] + 1
                failed = POLICY[fact.outcome].failure
                readings["agent-failures"] = readings["agent-failures"] + 1 if failed else 0
            case ChecksEnded():
                if fact.passed and fact.round and newly and (was_red or not unknown):
                    readings["no-progress"] = 0  # boxes that were ticked without any other change, and are proven now
                was_red = not fact.passed
            case TaskSettled():
                readings["no-progress"] = 0
            case LoopStopped():
                stood_still = True
                rule = fact.decided.rule
                assert rule not in readings or readings[rule] == table[rule]
            case _:
                pass


@given(nights())
def test_nothing_begins_between_a_wish_and_the_next_run(night: Night) -> None:
    asked = False
    for fact in night.facts():
        asked = isinstance(fact, PauseRequested | StopRequested) or (asked and not isinstance(fact, RunStarted))
        assert not (asked and isinstance(fact, RoundStarted | WaitStarted))


@given(nights())
def test_working_time_never_goes_back(night: Night) -> None:
    # A hook at the end runs after the decision, whose reading is an earlier one.
    facts = [fact for fact in night.facts() if not (isinstance(fact, HookEnded) and fact.hook.startswith("on_"))]
    readings = [getattr(fact, "decided", fact) for fact in facts]
    elapsed = [reading.elapsed for reading in readings if hasattr(reading, "elapsed")]
    assert elapsed == sorted(elapsed)
    known = [replay(night.ledger.records[:count]).elapsed for count in range(len(night.ledger.records))]
    assert known == sorted(known)


@given(nights())
def test_a_note_is_in_exactly_one_prompt_of_a_round_that_counted(night: Night) -> None:
    counted = {fact.round for fact in night.facts(RoundEnded) if POLICY[fact.outcome].counts}
    told: dict[str, int] = {}
    for fact in night.facts():
        if isinstance(fact, NoteAdded):
            told[fact.note] = 0
        if isinstance(fact, RoundStarted) and fact.round in counted:
            assert set(fact.notes) == {note for note, times in told.items() if times == 0}
            told |= dict.fromkeys(fact.notes, 1)


@pytest.mark.parametrize("event", sorted(set(EVENTS)))
def test_every_kind_of_event_can_happen(event: str) -> None:
    """Or the tests above would prove less than they say."""
    night = Night(files={TODO: LISTS[0]})
    before = (night.clock.wall, dict(night.workspace.files), len(night.channel.waiting))
    try:
        happen(night, event)
        happened = before != (night.clock.wall, night.workspace.files, len(night.channel.waiting))
    except PowerCut:
        happened = True
    assert happened == (event != "nothing")
