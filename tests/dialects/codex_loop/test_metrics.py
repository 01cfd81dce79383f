"""codex-loop: `metrics.json`, and what is counted over a whole life."""

from typing import Any

import pytest

from bydawn.core.facts import RestartsUsedUp
from bydawn.core.history import EVENTS_KEPT
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Death, End, Restart, TaskStatus
from bydawn.dialects.codex_loop.document import document_of, summary_rows
from bydawn.dialects.codex_loop.metrics import metrics_of
from dialects.codex_loop_made import (
    COMPLETE,
    LEXER,
    PARSER,
    a_project,
    an_iteration,
    begun,
    past,
    settled,
    stop,
    verified,
)

KILLED, HUNG = Restart(number=1, why=Death.EXITED, exit_code=-9), Restart(number=2, why=Death.HUNG)
TOO_OFTEN = Restart(number=11, why=Death.FOUND)
WHY = "failed 5 times in a row"
FAILED = [begun(LEXER, PARSER), an_iteration(1), verified(1, passed=False)]
GIVEN_UP = settled(LEXER, TaskStatus.ASIDE, Rule.TASK_FAILURES, WHY)
EXHAUSTED = [RestartsUsedUp(restart=TOO_OFTEN), stop(End.FAILED, Rule.RESTARTS, "its process died 11 times")]


def counted(*facts: Any) -> dict[str, Any]:
    return metrics_of(document_of(a_project(), *past(*facts)))


@pytest.mark.parametrize(
    ("facts", "numbers"),
    [
        (
            [begun(LEXER, PARSER)],
            {"overall_status": "running", "tasks_total": 2, "tasks_done": 0, "total_iterations": 0},
        ),
        (
            [begun(LEXER), an_iteration(1), verified(1), settled(LEXER, TaskStatus.DONE), COMPLETE],
            {"overall_status": "completed", "tasks_done": 1, "blocked_by_code": {}, "last_error": None},
        ),
        (
            [begun(LEXER), an_iteration(1, claim=None, outcome=Outcome.CRASHED, session="s", fallback="it is gone")],
            {"runner_failures_total": 1, "resume_fallbacks_total": 1, "consecutive_runner_failures": 1},
        ),
        (FAILED, {"verification_failures_total": 1, "consecutive_verification_failures": 1, "history_entries": 1}),
        (
            [*FAILED, GIVEN_UP],
            {
                "blocked_events_total": 1,
                "blocked_by_code": {"task_failure_circuit_breaker": 1},
                "tasks_blocked": 1,
                "tasks_skipped_by_circuit_breaker": 1,
                "last_blocker_code": "task_failure_circuit_breaker",
                "last_blocker_reason": WHY,
            },
        ),
        # Requeued, it is no longer skipped; the event has happened.
        (
            [*FAILED, GIVEN_UP, settled(LEXER, TaskStatus.OPEN)],
            {"tasks_skipped_by_circuit_breaker": 0, "blocked_events_total": 1},
        ),
        # The end that only says again why its task is blocked is not another block.
        (
            [
                begun(LEXER),
                an_iteration(1),
                settled(LEXER, TaskStatus.ASIDE, Rule.AGENT_BLOCKED, "a key"),
                stop(End.BLOCKED, Rule.AGENT_BLOCKED, "a key"),
            ],
            {"blocked_by_code": {"agent_blocked": 1}},
        ),
        # Nor is it one to be asked again.
        (
            [*FAILED, *[stop(End.LIMIT, Rule.ROUNDS_THIS_RUN, "1 round"), begun(LEXER)] * 3],
            {"blocked_by_code": {"max_iterations": 1}, "history_entries": 2},
        ),
        ([*FAILED, stop(End.BLOCKED, Rule.OBSTRUCTED, "no", ("disk",))], {"blocked_by_code": {"disk": 1}}),
        (
            [*FAILED, begun(LEXER, restart=KILLED), begun(LEXER, restart=HUNG), begun(LEXER, restart=KILLED)],
            {
                "watchdog_restarts_total": 3,
                "watchdog_exhausted_total": 0,
                "watchdog_restart_reasons": {"exit_code:-9": 2, "stale_heartbeat": 1},
                "latest_watchdog_exhausted": None,
            },
        ),
        # Which is counted by itself, and is no other block besides.
        (
            [*FAILED, *EXHAUSTED],
            {"watchdog_exhausted_total": 1, "blocked_by_code": {}, "last_blocker_code": "watchdog_exhausted"},
        ),
    ],
)
def test_the_numbers_follow_from_what_happened(facts: list[Any], numbers: dict[str, Any]) -> None:
    """C-016"""
    found = counted(*facts)
    assert {name: found[name] for name in numbers} == numbers


def test_a_number_is_of_the_whole_life_although_the_history_is_not() -> None:
    """C-016"""
    blocked = settled(LEXER, TaskStatus.ASIDE, Rule.AGENT_BLOCKED, "a key")
    again = [blocked, begun(LEXER, restart=KILLED), settled(LEXER, TaskStatus.OPEN)]
    found = counted(*FAILED, begun(LEXER, restart=HUNG), *EXHAUSTED, *again * EVENTS_KEPT)
    assert (found["history_entries"], found["blocked_by_code"]) == (EVENTS_KEPT, {"agent_blocked": EVENTS_KEPT})
    assert found["watchdog_restart_reasons"] == {"stale_heartbeat": 1, "exit_code:-9": EVENTS_KEPT}
    restart, given_up = found["latest_watchdog_restart"], found["latest_watchdog_exhausted"]
    assert (restart.restart_reason, given_up.restart_reason) == ("exit_code:-9", "process_gone")
    assert given_up.restart_count == 11


def test_the_summary_says_how_often_the_watchdog_had_to_help() -> None:
    """C-014"""
    document = document_of(a_project(), *past(*FAILED, begun(LEXER, restart=KILLED), begun(LEXER, restart=HUNG)))
    rows = dict(summary_rows(document))
    assert (rows["watchdog_restarts_total"], rows["last_watchdog_restart_reason"]) == ("2", "stale_heartbeat")
