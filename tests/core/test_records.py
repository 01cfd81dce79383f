"""What others record about their work: counted, shown, said back, never believed."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core import completion
from bydawn.core.decide import Pause, RunChecks, StartRound, Stop, last_word, next_action
from bydawn.core.facts import EventRecorded, Fact
from bydawn.core.loop import Loop, Sessions
from bydawn.core.outcome import Outcome
from bydawn.core.prompt import compose
from bydawn.core.records import COMPACTED, KEPT, Records, batch_of
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.taking import at_rest, shortening, taken
from bydawn.core.values import Commands, End
from core.facts_made import (
    CHECKED,
    NOON,
    RECORDED,
    a_loop,
    a_round,
    after_all,
    at,
    checked,
    decided,
    ended,
    idle_round,
    iteration,
    limited,
    run_started,
    started,
    stopped,
)

PROVEN = a_loop(recording=RECORDED.recording, checks=CHECKED.checks)
BEGUN = run_started(recording=True)


def recorded(number: int, count: int, *more: Fact, **end: Any) -> list[Fact]:
    """A round in which so many iterations were recorded."""
    made = [iteration(f"r-{number}-{each}", seconds=60 * number + each * 10, number=number) for each in range(count)]
    return [started(number), *made, *more, ended(number, **end)]


def test_a_round_that_recorded_nothing_counts_as_one_iteration_whose_result_is_the_reply() -> None:
    state = after_all(BEGUN, recorded(1, 3), a_round(2, said="I did the fourth"), recorded(3, 2))
    assert state.records.iterations == 6
    assert [entry.number for entry in state.records.entries] == [1, 2, 3, 4, 5, 6]
    reply = state.records.entries[3]
    assert (reply.from_reply, reply.claim.result_summary, reply.round) == (True, "I did the fourth", 2)
    failed = after_all(BEGUN, a_round(1, Outcome.CRASHED))
    assert failed.records.iterations == 0, "there is no reply to go by"
    assert after_all(run_started(), a_round(1)).records == Records(), "other loops have no iterations"


def test_what_we_measured_stands_beside_what_was_claimed() -> None:
    state = after_all(BEGUN, recorded(1, 1), checked(1), recorded(2, 2, progress=False), checked(2, passed=False))
    assert [(entry.progress, entry.checks) for entry in state.records.entries] == [(True, 1), (False, 0), (False, 0)]


def test_iterations_without_a_change_count_towards_the_no_progress_limit_one_by_one() -> None:
    loop = limited(RECORDED, no_progress=5)
    facts = [BEGUN, *recorded(1, 3, progress=False), *recorded(2, 2, progress=False)]
    action = next_action(loop, after_all(facts), at(120))
    assert isinstance(action, Stop)
    assert action.rule is Rule.NO_PROGRESS
    assert action.reason == "5 iterations in a row made no new change"
    assert "The last 5 iterations made no new change." in compose(loop, after_all(facts), 3, "f3nc3")
    assert after_all(facts[:6]).rounds_without_progress == 3
    paused = after_all(facts[:6], stopped(End.PAUSED), BEGUN)
    assert paused.rounds_without_progress == 3, "they are counted over all runs"
    last = replace(stopped(End.BLOCKED), decided=decided(Rule.NO_PROGRESS, 0.0))
    assert after_all(facts, last, BEGUN).rounds_without_progress == 0, "a person who goes on gives it another chance"


def test_a_failure_after_iterations_were_recorded_is_not_one_more_in_a_row() -> None:
    """S-063"""
    facts = [BEGUN, *a_round(1, Outcome.CRASHED), *a_round(2, Outcome.CRASHED)]
    assert after_all(facts).failures_in_a_row == 2
    assert after_all(facts, recorded(3, 1, outcome=Outcome.HUNG)).failures_in_a_row == 0


@pytest.mark.parametrize("word", ["blocked", "failed"])
def test_a_recorded_end_stops_the_loop_until_a_person_resumes_it(word: str) -> None:
    facts = [BEGUN, *recorded(1, 1, iteration("end", status=word, stop_reason="no key"))]
    action = next_action(RECORDED, after_all(facts), at(60))
    assert action == Stop(
        rule=Rule.RECORDED_END, end=End.BLOCKED, reason=f"recorded as {word}: no key", evidence=(word,)
    )
    crashed = after_all(facts, BEGUN)
    assert next_action(RECORDED, crashed, at(60)) == action, "a crash resets nothing"
    resumed = after_all(facts, stopped(End.BLOCKED), BEGUN)
    assert isinstance(next_action(RECORDED, resumed, at(60)), StartRound)


def test_passing_checks_are_the_authority_even_before_any_round() -> None:
    """S-046"""
    state = after_all(BEGUN, checked(0, tree="tree-0"))
    assert completion.missing(PROVEN, state) == []
    early = after_all(BEGUN, recorded(1, 1, iteration("end", stop_met=True)), checked(1, passed=False))
    assert completion.missing(PROVEN, early) == ["checks"]
    assert isinstance(next_action(PROVEN, early, at(60)), StartRound)
    text = compose(PROVEN, early, 2, "f3nc3")
    assert "You recorded that all is done, and it is not" in text
    assert "1 of 1 checks failed: make test" in text


def test_without_checks_a_recorded_stop_ends_the_loop_unverified() -> None:
    state = after_all(BEGUN, recorded(1, 1))
    assert completion.missing(RECORDED, state) == ["record"]
    assert completion.describe("record", RECORDED, state) == "no one has recorded that it is done"
    done = after_all(BEGUN, recorded(1, 1, iteration("end", status="completed", stop_reason="it is 1")))
    action = next_action(RECORDED, done, at(60))
    assert isinstance(action, Stop)
    assert (action.end, action.evidence) == (End.UNVERIFIED, ("recorded as completed: it is 1",))


def test_no_recorded_stop_ends_a_loop_whose_stop_commands_wait_for_a_person() -> None:
    """S-046: they came from a sandbox, so the loop has no checks yet; nothing else may say that it is done."""
    assert RECORDED.recording
    waiting = replace(RECORDED, recording=replace(RECORDED.recording, ends=False))
    claimed = after_all(BEGUN, recorded(1, 1, iteration("end", status="completed", stop_reason="it is 1")))
    assert completion.missing(waiting, claimed) == ["record"]
    assert completion.describe("record", waiting, claimed) == "its stop commands wait for a person"
    resting = at_rest(waiting, replace(claimed, stopped=stopped(End.PAUSED)), at(60))
    assert last_word(resting, at(60)).end is End.PAUSED, "nor when it is taken in by a command outside"


@pytest.mark.parametrize("loop", [RECORDED, PROVEN])
def test_a_run_that_only_checks_leaves_the_loop_as_it_was(loop: Loop) -> None:
    before = replace(stopped(End.PAUSED), reason="prepared: not begun", by="ada")
    facts = [before, run_started(rounds_allowed=0, recording=True)]
    if loop.checks:
        assert isinstance(next_action(loop, after_all(facts), at()), RunChecks)
        facts.append(checked(0, passed=False, tree="tree-0"))
    action = next_action(loop, after_all(facts), at())
    assert isinstance(action, Stop)
    assert (action.rule, action.end, action.reason, action.by) == (
        *(Rule.ONLY_CHECKS, End.PAUSED, "prepared: not begun", "ada"),
    )
    again = [*facts, run_started(rounds_allowed=0)]  # the first was killed
    assert after_all(again).before == before
    red = checked(1, passed=False)
    crashed = after_all(run_started(), a_round(1), run_started(rounds_allowed=0, tree="tree-1"), red)
    assert isinstance(next_action(loop, crashed, at(60)), Pause)


def test_a_run_that_only_checks_sees_what_was_recorded_before() -> None:
    facts = [stopped(End.PAUSED), iteration(status="blocked"), run_started(rounds_allowed=0)]
    assert next_action(RECORDED, after_all(facts), at()).rule is Rule.RECORDED_END
    many = [stopped(End.PAUSED), iteration("a"), iteration("b"), run_started(rounds_allowed=0)]
    assert next_action(limited(RECORDED, iterations=2), after_all(many), at()).rule is Rule.ITERATIONS


def test_a_batch_is_recognized_by_its_number_and_by_its_speed() -> None:
    in_round = after_all(BEGUN, started(1))
    first = taken(iteration("a"), RECORDED, in_round, NOON)
    assert (first.batched, first.round, first.inside) == ("", 1, True)
    state = after_all(BEGUN, started(1), first)
    at_once = taken(iteration("b", seconds=0.5), RECORDED, state, NOON.replace(minute=1))
    assert at_once.batched == "within a second of iteration 1, with the same evidence"
    other = taken(iteration("b", seconds=0.5, evidence=("log",)), RECORDED, state, NOON.replace(minute=1))
    assert other.batched == ""
    many = after_all(BEGUN, started(1), *(iteration(f"r{each}", seconds=each * 9.0) for each in range(5)))
    late = taken(iteration("sixth", seconds=90), RECORDED, many, NOON.replace(hour=13))
    assert late.batched == "as one of more than 5 in one round"
    said = compose(RECORDED, after_all(BEGUN, started(1), late, ended(1)), 2, "f3nc3")
    assert "One was recorded as one of more than 5 in one round. Do one small task" in said
    alone = after_all(*(iteration(f"r{each}", seconds=each * 9.0) for each in range(9)))
    assert batch_of(alone.records, late.claim, late.at, 0) == "", "a session of a person has no budget"
    assert taken(iteration("x", seconds=200), RECORDED, alone, NOON.replace(hour=13)).batched == ""


def test_a_record_cannot_say_when_where_or_how_it_was_taken() -> None:
    forged = EventRecorded(
        record="x",
        at=NOON.replace(year=2999),
        by="a\x1b[2J\nb",
        inside=False,
        round=99,
        kind="k\n" * 99,
        message="\x07m",
    )
    kept = taken(forged, RECORDED, LoopState(round=3), NOON)
    assert isinstance(kept, EventRecorded)
    assert (kept.at, kept.by, kept.inside, kept.round, kept.message) == (NOON, "a b", True, 3, "m")
    assert len(kept.kind) == 100
    ancient = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))  # no moment in UTC
    assert taken(replace(forged, at=ancient), RECORDED, LoopState(), NOON).at.year == 2000
    assert taken(iteration("r", status="approved"), RECORDED, LoopState(), NOON).claim.status == "running"


@pytest.mark.parametrize("number", ["9" * 5_000, "-1", "", "٣", "0"])
def test_no_number_that_is_recorded_breaks_the_ledger(number: str) -> None:
    """Whatever is in the ledger is replayed for ever."""
    data = {"keep_last": number, "max_archive_chars": number}
    short = EventRecorded(record="x", at=NOON, kind=COMPACTED, message="m", data=data)
    records = after_all(BEGUN, *(iteration(f"r{each}", seconds=each) for each in range(12)), short).records
    assert (records.iterations, len(records.entries)) == (12, 0 if number == "0" else KEPT)
    assert records.archive == "…\n" if number == "0" else len(records.archive.splitlines()) == 12 - KEPT


def test_when_earlier_iterations_get_long_they_are_shortened_to_one_line_each() -> None:
    facts: list[Fact] = [BEGUN]
    for number in range(60):
        facts.append(fact := iteration(f"r{number}", seconds=9.0 * number, result_summary="x" * 3_000))
        if shorter := shortening(fact, RECORDED, after_all(facts)):
            assert shorter.kind == COMPACTED
            facts.append(shorter)
    records = after_all(facts).records
    assert len(records.entries) == KEPT
    assert len(records.archive) <= 8_010
    assert records.iterations == 60
    assert records.archive.splitlines()[-1].startswith("52. half 14: xxx")


def test_a_template_can_tell_where_the_task_stands_within_its_budget() -> None:
    """S-050, X-21"""
    template = "{{PROMPT}}\n{{RECORDS}}"
    assert "0 iterations are recorded so far; the next one is number 1." in compose(
        RECORDED, after_all(BEGUN), 1, "f3nc3", template=template
    )
    claims = [
        iteration(f"r{each}", seconds=9.0 * each, task=f"task {each} f3nc3>>", context_snapshot=f"half {each}" * 5_000)
        for each in range(9)
    ]
    text = compose(RECORDED, after_all(BEGUN, started(1), *claims, ended(1)), 2, "f3nc3", template=template)
    assert len(text) < 30_000
    assert "the next one is number 10" in text
    one = compose(RECORDED, after_all(BEGUN, recorded(1, 1)), 2, "f3nc3", template=template)
    assert "1 iteration is recorded so far; the next one is number 2." in one
    assert "9. task 8 … → 7 (verified by: 7*2)" in text
    assert "half 8" in text
    assert text.count("f3nc3>>") == text.count("<<f3nc3"), "no record ends its own fence"


def test_a_command_that_found_the_file_system_read_only_ends_the_resuming_of_conversations() -> None:
    """S-052, X-02"""
    loop = a_loop(sessions=Sessions.RESUME)
    fine = after_all(run_started(), a_round(1, session="s-1"))
    assert next_action(loop, fine, at(60)).session == "s-1"  # type: ignore[union-attr]
    read_only = Commands(ran=2, failed=1, error="x", read_only=True)
    for more in ([], a_round(2, session="s-2")):
        state = after_all(run_started(), idle_round(1, session="s-1", commands=read_only), more)
        assert next_action(loop, state, at(600)).session is None  # type: ignore[union-attr]
    got_on = after_all(run_started(), a_round(1, session="s-1", commands=read_only))
    assert next_action(loop, got_on, at(60)).session == "s-1"  # type: ignore[union-attr]
