"""Agents record what they do while a round runs; the engine takes it from the drop folder."""

from datetime import timedelta
from itertools import count

import pytest

from bydawn.core.agent import CommandEnded
from bydawn.core.facts import EventRecorded, IterationRecorded, LoopStopped, RoundEnded, StopRequested
from bydawn.core.loop import Sandbox, Sessions
from bydawn.core.outcome import Outcome
from bydawn.core.records import COMPACTED, Iteration, Recording
from bydawn.core.requests import AskStop
from bydawn.core.values import End
from engine.fakes import NOON
from engine.night import Night, Play

RECORDING = Recording(drop="drop")
STOP = AskStop(id="r-1", run="run-1", by="ada")


def claim(record: str, *, seconds: float = 0.0, **more: object) -> IterationRecorded:
    said = {"task": "halve", "local_done_condition": "half", "result_summary": "7", "verification_summary": "2*7"}
    at = NOON + timedelta(seconds=seconds)
    return IterationRecorded(record=record, at=at, claim=Iteration(**said | more))  # type: ignore[arg-type]


def test_what_is_recorded_in_a_round_belongs_to_it_and_stays_until_it_is_synced() -> None:
    first = [claim(f"a{number}", seconds=number * 2) for number in range(3)]
    last = [claim("end", seconds=99, status="completed")]
    plays = [
        Play(writes={"a": "1"}, meanwhile=lambda: night.drop.waiting.extend(first)),
        Play(writes={"a": "2"}, meanwhile=lambda: night.drop.waiting.extend(last)),
    ]
    night = Night(plays, recording=RECORDING)
    unsynced: list[int] = []
    night.drop.when_done = lambda: unsynced.append(len(night.ledger.records) - night.ledger.synced)
    assert night.run().end is End.UNVERIFIED
    assert night.drop.waiting == []
    assert unsynced == [0] * 4
    taken = night.facts(IterationRecorded)
    assert [(fact.record, fact.round, fact.inside) for fact in taken] == [
        *((f"a{number}", 1, True) for number in range(3)),
        ("end", 2, True),
    ]
    assert night.state.records.iterations == 4


def test_a_claim_is_refused_while_a_check_fails_and_said_back() -> None:
    """S-046"""
    plays = [
        Play(writes={"a": "1"}, meanwhile=lambda: night.drop.waiting.append(claim("early", stop_met=True))),
        Play(writes={"done": "yes"}),
    ]
    night = Night(plays, check=lambda files: "done" in files, recording=RECORDING)
    assert night.run().end is End.COMPLETE
    assert "You recorded that all is done, and it is not" in night.prompt(2)
    assert night.verdicts[-1] is True


@pytest.mark.parametrize("facts", range(1, 14))
def test_after_a_power_cut_at_any_fact_each_record_is_there_once(facts: int) -> None:
    claims = [claim(f"a{number}", seconds=number * 2) for number in range(3)]

    def drop_them() -> None:
        if not night.facts(IterationRecorded):
            night.drop.waiting.extend(claims)

    night = Night([Play(writes={"a": str(n)}, meanwhile=drop_them) for n in range(9)], recording=RECORDING)
    night.ledger.forgets = True
    night.ledger.cut_after = facts
    night.run_until_crash()
    night.drop.waiting.append(claim("end", seconds=99, status="blocked"))
    night.run()
    taken = [fact.record for fact in night.facts(IterationRecorded)]
    assert len(taken) == len(set(taken))
    assert taken[-1] == "end"
    assert night.drop.waiting == []


def test_what_was_recorded_while_nothing_ran_is_taken_before_the_open_round_is_settled() -> None:
    night = Night([Play(writes={"a": "1"}), Play(writes={"a": "2"})], recording=RECORDING)
    night.ledger.cut_after = 2  # the run and its first round have begun
    night.run_until_crash()
    night.drop.waiting.append(claim("late"))
    night.run(rounds=1)
    kinds = [type(record.fact) for record in night.ledger.records]
    assert kinds.index(IterationRecorded) < kinds.index(RoundEnded)
    assert night.state.records.entries[0].round == 1


def test_many_records_are_taken_while_the_round_runs_but_never_keep_a_request_waiting() -> None:
    def drop_many() -> None:
        night.drop.waiting.extend(claim(f"a{number}", seconds=number * 2) for number in range(40))
        asked = iter([False] * 3 + [True])
        night.drop.when_done = lambda: night.ask(STOP) if next(asked, False) else None

    night = Night([Play(writes={"a": "1"}, meanwhile=drop_many)], recording=RECORDING)
    assert night.run().end is End.STOPPED
    [ended] = night.facts(RoundEnded)
    assert ended.outcome is Outcome.INTERRUPTED, "the request was heard between two batches"
    kinds = [type(record.fact) for record in night.ledger.records]
    assert kinds.index(StopRequested) - kinds.index(IterationRecorded) == 4
    assert night.state.records.iterations == 40, "what is there belongs to its round"


def test_an_agent_that_leaves_records_without_end_does_not_keep_its_round_from_ending() -> None:
    night = Night([Play(writes={"a": "1"})], recording=RECORDING)
    numbers = count()
    night.drop.when_done = lambda: night.drop.waiting.append(claim(f"a{next(numbers)}"))
    night.drop.waiting.append(claim("first"))
    night.run(rounds=1)
    assert len(night.facts(RoundEnded)) == 1
    assert len(night.drop.waiting) == 1, "it waits for the next round"


def test_a_long_history_is_shortened_by_an_event_of_our_own() -> None:
    claims = [claim(f"a{number}", seconds=number * 2, result_summary="x" * 5_000) for number in range(12)]
    night = Night(
        [Play(writes={"a": "1"}, meanwhile=lambda: night.drop.waiting.extend(claims))],
        recording=Recording(drop="drop", context_chars=4_000, budget=50),
    )
    night.run(once=True)
    assert {fact.kind for fact in night.facts(EventRecorded)} == {COMPACTED}
    assert len(night.state.records.entries) == 8
    assert night.state.records.iterations == 12


def test_a_run_that_only_checks_starts_no_round_and_tells_no_one() -> None:
    night = Night([], check=lambda files: "done" in files, recording=Recording(drop="drop", by_hand=True))
    night.send = lambda *_: pytest.fail("nothing has changed")
    for _ in range(2):
        stopped = night.run(rounds=0)
        assert (stopped.end, stopped.reason) == (End.PAUSED, "prepared: its own session works on it")
    assert night.agent.turns == 0
    night.workspace.edit({"done": "yes"})
    night.send = None
    assert night.run(rounds=0).end is End.COMPLETE


def test_a_session_whose_work_is_checked_never_gets_it_run_outside_the_box() -> None:
    night = Night([], check=lambda _: True, recording=Recording(drop="drop", by_hand=True))
    night.box = "on"
    night.checks.in_box = lambda _: False  # outside it would pass
    assert night.run(rounds=0).end is End.PAUSED
    assert "outside" not in night.checks.places


def test_a_read_only_file_system_ends_the_resuming_of_conversations() -> None:
    """S-052, X-02"""
    failed = CommandEnded(command="touch x", failed=True, exit_code=1, output="touch: x: Read-only file system\nbye")
    denied = Play(runs=(failed,), outcome=Outcome.DENIED, detail="not allowed: touch x")  # as Codex's reader says
    plays = [Play(writes={"a": "1"}), denied, Play(writes={"a": "2"}), Play(writes={"a": "3"})]
    night = Night(plays, sessions=Sessions.RESUME)
    night.run(rounds=4)
    assert night.agent.sessions == [None, "demo's", None, None]
    assert isinstance(night.ledger.records[-1].fact, LoopStopped)
    for sandbox, asked in ((None, [None, "demo's", None]), (Sandbox.READ_ONLY, [None, "demo's"])):
        night = Night([Play(writes={"a": "1"}), denied, denied], sessions=Sessions.RESUME, sandbox=sandbox)
        stopped = night.run(rounds=4)
        assert (night.agent.sessions, stopped.end) == (asked, End.BLOCKED), "a fresh one cannot write either"
