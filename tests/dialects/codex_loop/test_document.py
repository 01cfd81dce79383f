"""codex-loop: `state.json` and what `status` shows of it."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from bydawn.core.facts import AnyFact, HookEnded, TasksRead
from bydawn.core.history import EVENTS_KEPT, History
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Changes, End, TaskStatus
from bydawn.dialects.codex_loop.codes import BLOCKED, COMPLETED, INTERRUPTED, RUNNING
from bydawn.dialects.codex_loop.document import Document, document_of, summary_rows, text_of, with_liveness
from bydawn.dialects.codex_loop.history import hook_line
from core.facts_any import HISTORIES
from core.facts_made import NOON, numbered, run_started, started
from dialects.codex_loop_made import (
    COMPLETE,
    DOCS,
    LEXER,
    PARSER,
    PREPARATION,
    a_project,
    an_iteration,
    begun,
    past,
    settled,
    stop,
    tasks,
    verified,
)

GOLDEN = Path(__file__).with_name("golden")
DONE, ASIDE, OPEN, SKIPPED = TaskStatus.DONE, TaskStatus.ASIDE, TaskStatus.OPEN, TaskStatus.SKIPPED
LOST = "Codex no longer knows the session s-001-lexer"
FAILING = "failed 5 times in a row; last: pytest -q: exit 1"


def read(*open_: str, **more: Any) -> AnyFact:
    return TasksRead(tasks=tasks(*open_, **more), tree="tree-1")


def made(*facts: Any) -> Document:
    return document_of(a_project(), *past(*facts))


FINISHED: list[Any] = [
    PREPARATION,
    begun(LEXER, PARSER),
    an_iteration(1),
    verified(1, passed=False),
    an_iteration(2, claim=None, outcome=Outcome.SESSION_LOST, session="s-1", detail=LOST, changes=Changes()),
    an_iteration(3, claim="done", fallback=LOST, changes=Changes(modified=1, paths=("src/lexer.py",))),
    verified(3),
    settled(LEXER, DONE),
    read(PARSER, done=1),
    an_iteration(4, PARSER, claim="done"),
    verified(4),
    settled(PARSER, DONE),
    read(done=2),
    COMPLETE,
]
GIVEN_UP = settled(LEXER, ASIDE, Rule.TASK_FAILURES, FAILING)
STUCK: list[Any] = [
    begun(LEXER, PARSER, DOCS),
    *(fact for number in range(1, 6) for fact in (*an_iteration(number), verified(number, passed=False))),
    GIVEN_UP,
    read(LEXER, PARSER, DOCS, next_=DOCS),
    an_iteration(6, DOCS, claim="blocked", blocked="which license?"),
    verified(6),
    settled(DOCS, ASIDE, Rule.AGENT_BLOCKED, "which license?"),
    read(LEXER, PARSER, DOCS, next_=None),
    stop(End.BLOCKED, Rule.AGENT_BLOCKED, "which license?", ("set aside: Task 001-lexer",)),
]
STORIES: dict[str, list[Any]] = {"empty": [PREPARATION], "finished": FINISHED, "blocked": STUCK}


@pytest.mark.parametrize("story", STORIES)
def test_state_json_and_its_summary_are_as_they_were_read_word_by_word(story: str) -> None:
    """C-003, C-045: every field of the document in its order; `PIN_DOCUMENTS=1` writes the files anew."""
    known = tasks(LEXER, PARSER) if story == "empty" else None  # before a run only the folder has them
    state, history = past(*STORIES[story])
    document = document_of(a_project(), state, history, known)
    summary = "".join(f"{name}: {value}\n" for name, value in summary_rows(document, state))
    for name, text in ((f"{story}.json", text_of(document)), (f"{story}.txt", summary)):
        if os.environ.get("PIN_DOCUMENTS"):
            GOLDEN.mkdir(exist_ok=True)
            (GOLDEN / name).write_text(text)
        assert text == (GOLDEN / name).read_text()


def statuses(document: Document) -> dict[str, str]:
    return {id_: task.status for id_, task in document.tasks.items()}


def test_only_the_task_that_is_worked_on_or_comes_next_is_ready_or_in_progress() -> None:
    facts: list[Any] = [begun(LEXER, PARSER)]
    assert statuses(made(*facts)) == {LEXER: "ready", PARSER: "pending"}
    facts += an_iteration(1)[:1]
    assert statuses(made(*facts)) == {LEXER: "in_progress", PARSER: "pending"}
    facts += [an_iteration(1)[1], verified(1)]
    assert statuses(made(*facts)) == {LEXER: "in_progress", PARSER: "pending"}
    facts += [settled(LEXER, DONE), read(PARSER, done=1)]
    assert statuses(made(*facts)) == {LEXER: "done", PARSER: "ready"}


def test_a_red_final_verification_makes_the_last_task_ready_again_and_says_why() -> None:
    """C-041"""
    why = "pytest -q fails on the whole: exit 1"
    facts = [begun(LEXER), an_iteration(1, claim="done"), verified(1), settled(LEXER, DONE), read(done=1)]
    facts += [verified(1, passed=False), settled(LEXER, OPEN, reason=why), read(LEXER)]
    task = made(*facts).tasks[LEXER]
    assert (task.status, task.last_error) == ("ready", why)
    assert [result.exit_code for result in task.last_verification_results] == [1]
    assert made(*facts).history[-1].event_type == "requeued"
    assert made(*facts, an_iteration(2)[0]).tasks[LEXER].status == "in_progress"


def test_what_was_blocked_stays_so_in_a_plain_run() -> None:
    document = made(*STUCK, run_started(tasks=tasks(LEXER, PARSER, DOCS, next_=None), keeps_aside=True))
    assert statuses(document) == {LEXER: "blocked", PARSER: "pending", DOCS: "blocked"}
    assert (document.tasks[LEXER].blocker_code, document.tasks[LEXER].blocker_reason) == (
        "task_failure_circuit_breaker",
        FAILING,
    )
    assert document.history == made(*STUCK).history


def test_what_was_blocked_is_requeued_if_that_is_asked_for() -> None:
    document = made(*STUCK, begun(LEXER, PARSER, DOCS))
    assert statuses(document) == {LEXER: "ready", PARSER: "pending", DOCS: "pending"}
    assert [(entry.event_type, entry.task_id) for entry in document.history[-2:]] == [
        ("requeued", LEXER),
        ("requeued", DOCS),
    ]
    assert (document.meta.overall_status, document.meta.last_blocker) == (RUNNING, None)
    assert document.tasks[LEXER].consecutive_task_failures == 0
    assert document.meta.iteration == 6


def test_a_blocked_task_is_named_while_the_run_goes_on_with_the_next() -> None:
    """C-047"""
    blocker = made(*STUCK[: STUCK.index(GIVEN_UP) + 1]).meta.last_blocker
    assert blocker
    assert (blocker.task_id, blocker.code, blocker.reason) == (LEXER, "task_failure_circuit_breaker", FAILING)


def test_tasks_that_a_person_skipped_or_whose_file_is_gone_are_archived() -> None:
    facts = [begun(LEXER, PARSER, DOCS), an_iteration(1, claim="done"), verified(1), settled(LEXER, DONE)]
    facts += [an_iteration(2, PARSER), settled(DOCS, SKIPPED, "ada"), read(PARSER, done=1)]
    assert statuses(made(*facts)) == {LEXER: "done", PARSER: "in_progress"}
    assert [*made(*facts).meta.archived_tasks] == [DOCS]
    document = made(*facts, read(absent=(LEXER,)))
    assert (document.tasks, [*document.meta.archived_tasks]) == ({}, [LEXER, PARSER, DOCS])
    unreadable = made(*facts, read(problem="cannot be read"))
    assert ([*unreadable.tasks], [*unreadable.meta.archived_tasks]) == ([LEXER, PARSER], [DOCS])


def test_tasks_are_in_natural_order() -> None:
    assert [*made(begun("10-b", "2-a", "1-c")).tasks] == ["1-c", "2-a", "10-b"]


def test_a_run_whose_process_died_is_shown_as_blocked_and_interrupted() -> None:
    document = made(begun(LEXER, PARSER), an_iteration(1)[0])
    assert with_liveness(document, alive=True) is document
    dead = with_liveness(document, alive=False).meta
    assert (document.meta.overall_status, dead.overall_status) == (RUNNING, BLOCKED)
    assert dead.last_blocker
    assert (dead.last_blocker.task_id, dead.last_blocker.code) == (LEXER, INTERRUPTED)
    finished = made(*FINISHED)
    assert with_liveness(finished, alive=False) is finished


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "ada"])
def test_a_run_that_a_person_or_a_signal_ended_is_blocked_and_interrupted(by: str) -> None:
    meta = made(begun(LEXER), an_iteration(1), stop(End.PAUSED, Rule.ASKED_TO_PAUSE, "paused", by=by)).meta
    assert meta.last_blocker
    assert (meta.overall_status, meta.last_blocker.code) == (BLOCKED, INTERRUPTED)


def test_a_look_at_the_checks_changes_nothing_about_how_it_ended() -> None:
    only = run_started(rounds_allowed=0, tasks=tasks(LEXER, PARSER, DOCS, next_=None))
    again = made(*STUCK, only, stop(End.BLOCKED, Rule.ONLY_CHECKS, "which license?"))
    before = made(*STUCK)
    assert again.meta.last_blocker == before.meta.last_blocker
    assert (again.meta.overall_status, again.history) == (BLOCKED, before.history)


def test_outputs_are_cut_at_their_beginning_and_history_to_the_last_entries() -> None:
    long = "x" * 5_000 + "\nthe reason"
    facts = [fact for number in range(1, EVENTS_KEPT + 20) for fact in an_iteration(number)]
    document = made(begun(LEXER), facts, verified(EVENTS_KEPT + 19, passed=False, stdout=long, stderr=long))
    assert [len(document.history), document.history[0].iteration] == [EVENTS_KEPT, 20]
    [result] = document.tasks[LEXER].last_verification_results
    for output in (result.stdout, result.stderr):
        assert len(output) <= 1_500
        assert output.endswith("the reason")


def test_entries_are_in_the_order_of_the_record_even_if_the_clock_goes_back() -> None:
    facts = [fact for each in STUCK for fact in (each if isinstance(each, list) else [each])]
    at_once = [replace(record, at=NOON) for record in numbered(facts)]
    document = document_of(a_project(), past(*STUCK)[0], History(at_once))
    rows = [(entry.event_type, entry.iteration, entry.task_id) for entry in document.history]
    assert rows[4:] == [
        ("iteration", 5, LEXER),
        ("blocked", 5, LEXER),
        ("iteration", 6, DOCS),
        ("blocked", 6, DOCS),
    ]


def test_an_end_that_only_repeats_why_a_task_is_blocked_is_no_entry_of_its_own() -> None:
    plain_run = run_started(tasks=tasks(LEXER, PARSER, DOCS, next_=None), keeps_aside=True)
    once = made(*STUCK).history
    assert [entry.task_id for entry in once if entry.event_type == "blocked"] == [LEXER, DOCS]
    assert made(*STUCK, plain_run, STUCK[-1]).history == once
    requeued = made(*STUCK, begun(LEXER), STUCK[-1]).history
    assert [entry.event_type for entry in requeued[len(once) :]] == ["requeued", "requeued", "blocked"]
    used_up = stop(End.LIMIT, Rule.ROUNDS_THIS_RUN, "this run was allowed 1 round")
    twice = made(begun(LEXER), an_iteration(1), used_up, begun(LEXER), used_up, begun(LEXER), an_iteration(2), used_up)
    assert [entry.event_type for entry in twice.history] == ["iteration", "blocked", "iteration", "blocked"]


def test_a_run_that_ends_by_a_limit_is_about_the_task_that_was_worked_on_last() -> None:
    facts = [begun(LEXER, PARSER), an_iteration(1), GIVEN_UP, an_iteration(2, PARSER)]
    for rule, task in ((Rule.ROUNDS_THIS_RUN, PARSER), (Rule.TASKS_ASIDE, LEXER)):
        document = made(*facts, stop(End.BLOCKED, rule, "why"))
        assert document.meta.last_blocker
        assert (document.meta.last_blocker.task_id, document.history[-1].task_id) == (task, task)


def test_totals_count_more_than_the_history_has() -> None:
    failures = [fact for number in range(1, EVENTS_KEPT + 20) for fact in an_iteration(number, outcome=Outcome.CRASHED)]
    rows = dict(summary_rows(made(begun(LEXER), failures)))
    assert rows["runner_failures_total"] == str(EVENTS_KEPT + 19)


def test_a_transient_error_is_recorded_and_counts_against_nothing() -> None:
    """C-046"""
    document = made(begun(LEXER), an_iteration(1, claim=None, outcome=Outcome.TRANSIENT, detail="502"))
    [entry] = document.history
    assert (entry.event_type, entry.error) == ("runner_failure", "502")
    assert document.meta.consecutive_runner_failures == 0
    assert document.tasks[LEXER].consecutive_task_failures == 0


def test_what_the_agent_says_it_changed_is_not_what_was_changed() -> None:
    """C-040"""
    document = made(begun(LEXER), an_iteration(1, claim="done", changes=Changes()), verified(1))
    assert (document.history[0].files_changed, document.tasks[LEXER].files_changed) == ((), ())


def test_a_hook_that_ran_is_a_line_of_its_event() -> None:
    """C-065"""
    failed: dict[str, Any] = {"exit_code": 1, "excerpt": "no network", "command": "./notify", "timed_out": False}
    ended = HookEnded(hook="on_complete", round=4, passed=False, detail="exit 1", elapsed=9.0, seconds=1.5, **failed)
    assert hook_line(ended, NOON) == (
        "on_completed",
        {
            "timestamp": "2026-01-06T12:00:00.000Z",
            "event": "on_completed",
            "iteration": 4,
            "command": "./notify",
            "exit_code": 1,
            "timed_out": False,
            "passed": False,
            "seconds": 1.5,
            "output": "no network",
        },
    )


@given(HISTORIES)
def test_over_any_history_the_document_can_be_written_and_never_contradicts_itself(facts: list[AnyFact]) -> None:
    """X-32"""
    document = made(*facts)
    assert msgspec.json.decode(text_of(document), type=Document) == document
    words = [*statuses(document).values()]
    assert words.count("ready") + words.count("in_progress") <= 1
    assert document.meta.overall_status != COMPLETED or "blocked" not in words
    assert all(value for _, value in summary_rows(with_liveness(document, alive=False))[:2])


def test_a_session_that_is_lost_is_no_longer_that_of_its_task() -> None:
    first, lost = an_iteration(1), an_iteration(2, claim=None, outcome=Outcome.SESSION_LOST, session="s-1")
    assert made(begun(LEXER), first).tasks[LEXER].session_id == "s-001-lexer"
    assert made(begun(LEXER), first, lost).tasks[LEXER].session_id is None
    assert made(begun(LEXER), first, lost, an_iteration(3, fallback=LOST)).tasks[LEXER].session_id == "s-001-lexer"


def test_an_open_iteration_has_the_session_that_codex_has_named() -> None:
    opening = started(1, agent="codex", task="Task", task_id=LEXER, session="s-7")
    assert made(begun(LEXER), opening).tasks[LEXER].session_id == "s-7"
