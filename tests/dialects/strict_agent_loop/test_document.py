"""The JSON files of a strict-agent-loop task, made from the ledger and from records that it does not have yet."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from bydawn.core.facts import ChecksEnded, EventRecorded, IterationRecorded, LoopStopped
from bydawn.core.progress import recorded
from bydawn.core.records import COMPACTED, Iteration
from bydawn.core.state import LoopState
from bydawn.core.values import End
from bydawn.dialects.strict_agent_loop import DIALECT
from bydawn.dialects.strict_agent_loop import document as documents
from bydawn.dialects.strict_agent_loop.document import (
    begun,
    checks_of,
    fresh,
    if_done,
    records_of,
    registry_entry,
    state_of,
    stop_report,
    unconfirmed,
    with_claim,
)
from bydawn.dialects.strict_agent_loop.formats import State
from bydawn.dialects.strict_agent_loop.texts import status_text
from core.facts_made import NOON, a_round, after_all, checked, decided, raised, run_started, stopped
from dialects.strict_made import BY_HAND, CONTRACT, WORKSPACE, a_task, an_event, an_iteration, verdicts

TASK = a_task()
SESSION = a_task(BY_HAND)
RED, GREEN = verdicts(script=False, report=True), verdicts(script=True, report=True)


def blocked_by(word: str) -> LoopStopped:
    decision = decided("recorded")
    return LoopStopped(end=End.BLOCKED, reason="needs the rules", decided=decision, evidence=(word,))


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (None, "running"),
        (stopped(End.COMPLETE), "completed"),
        (stopped(End.UNVERIFIED), "completed"),
        (stopped(End.BLOCKED), "blocked"),
        (stopped(End.CHECKPOINT), "blocked"),
        (stopped(End.LIMIT), "failed"),
        (stopped(End.FAILED), "failed"),
        (stopped(End.STOPPED), "failed"),
        (stopped(End.PAUSED), "running"),  # by a signal, or prepared and not begun
    ],
)
def test_a_task_has_four_words_for_where_it_stands(stop: LoopStopped | None, word: str) -> None:
    made = state_of(TASK, LoopState(stopped=stop))
    assert (made.status, made.pending) == (word, False)
    assert made.blocker.needs_human_input == (word == "blocked")


def test_a_recorded_end_needs_a_person() -> None:
    """S-041: only the agent knows that it is blocked, or has failed."""
    stuck = after_all(an_iteration(1, status="failed", stop_reason="no rules"), blocked_by("failed"))
    made = state_of(SESSION, stuck)
    assert (made.status, made.blocker.needs_human_input, made.blocker.reason) == ("failed", True, "needs the rules")


def test_what_the_rounds_did_is_in_the_supervisor() -> None:
    """S-060: counted from rounds, not from what agents say of them."""
    state = after_all(run_started(), a_round(1), a_round(2, progress=False, exit_code=1))
    made = state_of(TASK, state)
    assert (made.supervisor.invocation_count, made.supervisor.last_exit_code) == (2, 1)
    assert made.counters.no_progress_rounds == 1
    assert (made.limits.max_iterations, made.supervisor.max_rounds_per_invocation) == (200, 5)
    assert [check.name for check in checks_of(made)] == ["python verify.py", "report.md exists"]


texts = some.text(max_size=300)
words = some.text(some.characters(exclude_categories=["C"]), min_size=1, max_size=20)
moments = some.integers(0, 10**9).map(lambda ms: NOON + timedelta(milliseconds=ms))
iterations = some.builds(
    Iteration,
    task=words,
    local_done_condition=texts,
    result_summary=texts,
    verification_summary=texts,
    announcement=texts,
    progress=some.booleans(),
    status=some.sampled_from(["running", "completed", "blocked", "failed"]),
    stop_met=some.booleans(),
    stop_reason=texts,
    needs_human_input=some.booleans(),
    next_task=texts,
    agent_id=some.sampled_from(["", "a-1"]),
    inherited_context=some.booleans(),
    recovery=some.booleans(),
    evidence=some.lists(texts, max_size=2).map(tuple),
    artifacts=some.lists(texts, max_size=2).map(tuple),
    context_snapshot=some.sampled_from(["", "half of it"]),
)
compactions = some.fixed_dictionaries({"keep_last": some.sampled_from(["0", "1", "8"])})
facts = some.builds(
    IterationRecorded,
    record=words,
    at=moments,
    claim=iterations,
    round=some.integers(0, 3),
    batched=some.sampled_from(["", "too fast"]),
) | some.builds(
    EventRecorded, record=words, at=moments, kind=some.just(COMPACTED) | words, message=texts, data=compactions
)
PLAIN = a_task(replace(BY_HAND, context_chars=1_000_000))


def known(document: State) -> State:
    """The document as a script finds it on disk."""
    return msgspec.json.decode(msgspec.json.encode(document), type=State)


@given(some.lists(facts, max_size=6))
def test_the_document_tells_everything_that_was_recorded(claims: list[EventRecorded | IterationRecorded]) -> None:
    """S-050: a session that has only the file goes on exactly where the ledger would."""
    state, sandboxed = LoopState(), state_of(PLAIN, LoopState())
    for fact in claims:
        state = recorded(state, fact)
        sandboxed = with_claim(known(sandboxed), fact)
    expected = replace(state.records, known=())
    assert records_of(known(state_of(PLAIN, state))) == expected
    assert records_of(sandboxed) == expected


def test_a_record_that_the_ledger_does_not_have_is_pending() -> None:
    taken = state_of(SESSION, after_all(an_iteration(1)))
    made = with_claim(known(taken), an_iteration(2, status="blocked", stop_reason="no rules"))
    assert made.pending
    assert [entry.pending for entry in made.history] == [msgspec.UNSET, True]
    assert (made.status, made.blocker.reason, made.counters.iteration) == ("blocked", "no rules", 2)
    event = with_claim(made, an_event(3))
    assert (event.status, event.bydawn.events if event.bydawn else 0) == ("blocked", 1)
    assert with_claim(event, an_iteration(3)).status == "running"


def test_the_first_task_of_the_contract_is_not_named_again_once_it_is_done() -> None:
    made = begun(BY_HAND, WORKSPACE, NOON)
    assert (made.next_task, with_claim(made, an_event(1)).next_task) == ("write 7", "write 7")
    silent = an_iteration(1, next_task="")
    assert with_claim(made, silent).next_task == ""
    assert state_of(SESSION, after_all(silent)).next_task == ""


def test_ten_thousand_iterations_keep_the_document_small() -> None:
    """S-030: the window is compacted; numbers go on."""
    made = begun(BY_HAND, WORKSPACE, NOON)
    sizes = []
    for number in range(1, 10_001):
        made = with_claim(made, an_iteration(number))
        if number % 500 == 0:
            sizes.append(len(msgspec.json.encode(made)))
    assert made.counters.iteration == 10_000
    assert made.history[-1].iteration == 10_000
    assert "8000. write number 8000" not in made.archive_summary
    assert max(sizes) < 60_000


@pytest.mark.parametrize(
    ("claims", "found", "just_run", "expected"),
    [
        ([], (), True, ("running", 1)),  # nothing has run
        ([], RED, True, ("running", 1)),
        ([], GREEN, True, ("completed", 0)),
        ([], GREEN, False, ("running", 1)),  # the ledger has not decided so: they passed on another tree
        ([{"stop_met": True}], RED, True, ("running", 1)),
        ([{"status": "completed"}], (), True, ("running", 1)),
        ([{"status": "blocked"}], RED, True, ("blocked", 2)),
        ([{"needs_human_input": True}], RED, True, ("blocked", 2)),
        ([{"status": "blocked"}], GREEN, True, ("completed", 0)),  # the checks are the authority
        ([{}] * 200, RED, True, ("failed", 2)),
    ],
)
def test_stop_checks_are_the_authority(
    claims: list[dict[str, Any]], found: Any, just_run: bool, expected: tuple[str, int]
) -> None:
    """S-046, S-062: no record, and no edit of state.json, makes a success of checks that fail."""
    made = state_of(TASK, LoopState())
    for number, claim in enumerate(claims, start=1):
        made = with_claim(made, an_iteration(number, **claim))
    report = stop_report(made, found, NOON, just_run=just_run)
    assert (report.status, report.exit_code) == expected
    assert report.success == (report.exit_code == 0)
    assert report.should_stop == (report.exit_code != 1)
    assert all(report.reasons)


def test_an_edited_status_is_not_believed() -> None:
    """S-046: the original said success with 0 of 2."""
    edited = replace(state_of(TASK, LoopState()), status="completed")
    report = stop_report(edited, RED, NOON, just_run=True)
    assert (report.success, report.stop_checks.passed_checks, report.stop_checks.total_checks) == (False, 1, 2)
    assert report.reasons == ("python verify.py: exit 1",)
    script, file = report.stop_checks.commands[0], report.stop_checks.paths_exist[0]
    assert (script.passed, script.output_tail, file.passed) == (False, "16 numbers, 17 wanted", True)


def test_without_checks_the_recorded_stop_ends_it_and_says_that_nothing_verified_it() -> None:
    """S-046: reported as unverified."""
    made = with_claim(state_of(SESSION, LoopState()), an_iteration(1, stop_met=True))
    report = stop_report(made, (), NOON, just_run=True)
    assert (report.success, report.pending) == (True, True)
    assert report.reasons == ("a stop was recorded; there is no stop check to verify it",)


def test_a_stop_that_was_recorded_too_early_is_said_back() -> None:
    state = after_all(run_started(), an_iteration(1, stop_met=True))
    report = stop_report(state_of(TASK, state), RED, NOON)
    assert report.reasons == ("a stop was recorded, but the stop checks decide", "python verify.py: exit 1")


def test_only_the_ledger_makes_a_success_final() -> None:
    state = after_all(run_started(), a_round(1), ChecksEnded(round=1, tree="t", verdicts=GREEN, elapsed=1.0))
    ended = state_of(TASK, replace(state, stopped=stopped(End.COMPLETE)))
    assert not stop_report(ended, state.verdicts, NOON).pending
    assert stop_report(state_of(TASK, state), GREEN, NOON, just_run=True).pending


def test_a_stop_check_that_reads_the_state_finds_one_where_all_else_is_done() -> None:
    made = state_of(TASK, after_all(run_started(), a_round(1), checked(1, passed=False)))
    assert if_done(made).status == "completed"
    assert replace(if_done(made), status="running") == made


def test_a_recorded_stop_leaves_the_status_to_the_checks() -> None:
    """S-046"""
    assert with_claim(state_of(TASK, LoopState()), an_iteration(1, stop_met=True)).status == "running"


def test_raised_limits_are_shown() -> None:
    state = after_all(raised(iterations=300, no_progress=9))
    limits = state_of(TASK, state).limits
    assert (limits.max_iterations, limits.max_no_progress_rounds) == (300, 9)


def test_an_earlier_report_is_renewed_with_what_the_document_says_now() -> None:
    before = state_of(TASK, LoopState())
    old = stop_report(before, RED, NOON)
    new = fresh(old, with_claim(before, an_iteration(1, status="blocked", stop_reason="no rules")))
    assert (new.iteration, new.status, new.exit_code) == (1, "blocked", 2)
    assert new.stop_checks == old.stop_checks


def test_commands_from_a_sandbox_wait_for_a_person() -> None:
    """What a contract from a sandbox would run is shown, and marked."""
    assert not unconfirmed(TASK)
    assert unconfirmed(a_task(replace(CONTRACT, in_sandbox=True))) == ("python verify.py",)
    made = begun(replace(CONTRACT, in_sandbox=True), WORKSPACE, NOON)
    assert (made.pending, made.stop_checks.commands[0].pending) == (True, True)


def test_the_registry_says_where_everything_is() -> None:
    """S-010"""
    entry = registry_entry(state_of(TASK, after_all(an_iteration(1))))
    assert (entry["id"], entry["iteration"], entry["next_task"]) == ("hailstone", 1, "write number 2")
    assert entry["run_summary_path"] == "/home/ada/app/.codex-loop/tasks/hailstone/run-summary.md"


def test_a_state_of_the_original_can_be_read() -> None:
    """Another program's file lacks what is ours, and has more of its own."""
    theirs = {"schema_version": 3, "skill_name": "strict-agent-loop", "goal": "x", "counters": {"iteration": 4}, "y": 1}
    made = msgspec.convert(theirs, State)
    assert (made.bydawn, made.counters.iteration, made.goal) == (None, 4, "x")
    assert documents.encoded(made).startswith('{\n  "schema_version": 3,\n  "skill_name": "strict-agent-loop",\n')


def test_times_that_someone_edited_break_nothing() -> None:
    """Nothing in a task's folder can do more than be shown."""
    made = with_claim(begun(BY_HAND, WORKSPACE, NOON), an_iteration(1))
    for time in ("", "yesterday", "2026-01-06", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        entry = replace(made.history[0], timestamp=time)
        log = replace(made.logging, last_iteration_at=time)
        edited = replace(made, created_at=time, updated_at=time, history=(entry,), logging=log)
        after = with_claim(edited, an_iteration(2))
        assert after.counters.iteration == 2
        assert "Elapsed time: " in status_text(after, stop_report(after, (), NOON))


def test_what_is_recorded_in_a_sandbox_after_the_end_does_not_undo_it() -> None:
    """S-046: checks have passed, and only the ledger knows more than this file."""
    over = state_of(TASK, LoopState(stopped=stopped(End.COMPLETE)))
    for claim in ({}, {"status": "blocked"}, {"stop_met": True}):
        later = with_claim(over, an_iteration(1, **claim))
        assert (later.status, later.counters.iteration, later.pending) == ("completed", 1, True)


@pytest.mark.parametrize("in_sandbox", [False, True])
def test_an_interactive_task_says_how_its_checks_are_run(in_sandbox: bool) -> None:
    """S-046: stop commands from a sandbox wait for a person, who gets the command to agree."""
    task = a_task(replace(BY_HAND, commands=("make 'all'",), in_sandbox=in_sandbox))
    [step] = DIALECT.next_steps(task, LoopState(), stopped(End.PAUSED))
    where = f"{WORKSPACE} --task-id hailstone"
    assert step.command == (
        f"strict-agent-loop init-state --workspace-root {where} --stop-command 'make '\"'\"'all'\"'\"''"
        if in_sandbox
        else f"strict-agent-loop check-stop --state {WORKSPACE}/.codex-loop/tasks/hailstone/state.json"
    )
