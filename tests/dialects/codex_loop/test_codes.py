"""codex-loop: blocker codes and exit codes."""

import re
from pathlib import Path

import pytest

import bydawn
from bydawn.core.facts import BOX, COMMIT, LoopStopped
from bydawn.core.rules import Rule
from bydawn.core.values import End
from bydawn.dialects.codex_loop import codes
from dialects.codex_loop_made import COMPLETE, PREPARATION, stop

# They decide what comes next, and no run of codex-loop ends by them.
GOING_ON = {
    *(Rule.INTERRUPTED_ROUND, Rule.BASELINE, Rule.COMMIT_DUE, Rule.CHECKS_DUE, Rule.TASK_DONE, Rule.COMPLETE),
    *(Rule.CHANGED_TESTS, Rule.FINAL_CHECKS, Rule.AGENT_LIMIT, Rule.BACK_OFF, Rule.CYCLE, Rule.PAUSE, Rule.NEXT_ROUND),
}


def test_every_rule_that_can_end_a_run_has_a_code() -> None:
    """C-063"""
    assert {*codes.BY_RULE} == {*Rule} - GOING_ON
    theirs = {
        *("hook_failure", "agent_blocked", "runner_failure_circuit_breaker", "verification_failure_circuit_breaker"),
        *("task_failure_circuit_breaker", "no_progress_limit", "max_iterations", "no_selectable_task"),
    }
    ours = {"agent_unavailable", "tampering", "task_file", "budget", "workspace_gone", "disk", "interrupted"}
    ours.add("watchdog_exhausted")
    assert {*codes.BY_RULE.values(), *codes.BY_KIND.values()} == theirs | ours


def test_every_kind_of_obstacle_has_a_code() -> None:
    """One without a row is about the workspace, or belongs to a setting that this dialect does not have."""
    sources = Path(bydawn.__file__).parent.rglob("*.py")
    kinds = {kind for path in sources for kind in re.findall(r"Obstructed\(kind=\"(\w+)\"", path.read_text())}
    assert kinds - {*codes.BY_KIND} == {"workspace", "promise"}


@pytest.mark.parametrize(
    ("stopped", "code", "exit_code", "word"),
    [
        (COMPLETE, "", 0, "completed"),
        (PREPARATION, "", 130, "initialized"),
        (stop(End.LIMIT, Rule.ROUNDS_THIS_RUN), "max_iterations", 2, "blocked"),
        (stop(End.FAILED, Rule.AGENT_FAILURES), "runner_failure_circuit_breaker", 2, "blocked"),
        (stop(End.FAILED, Rule.AGENT_STOP, evidence=("auth",)), "agent_unavailable", 2, "blocked"),
        (stop(End.BLOCKED, Rule.TASKS_ASIDE), "no_selectable_task", 2, "blocked"),
        (stop(End.BLOCKED, Rule.OBSTRUCTED, evidence=("hook",)), "hook_failure", 2, "blocked"),
        (stop(End.BLOCKED, Rule.OBSTRUCTED, evidence=("workspace",)), "workspace_gone", 2, "blocked"),
        (stop(End.BLOCKED, Rule.OBSTRUCTED, evidence=("disk",)), "disk", 2, "blocked"),
        (stop(End.BLOCKED, Rule.OBSTRUCTED, evidence=(COMMIT,)), "hook_failure", 2, "blocked"),
        # Only an obstacle has a kind: what a check said is no reason to take it for one.
        (stop(End.BLOCKED, Rule.NO_PROGRESS, evidence=("disk",)), "no_progress_limit", 2, "blocked"),
        (stop(End.STOPPED, Rule.OBSTRUCTED, evidence=(BOX,)), "verification_failure_circuit_breaker", 2, "blocked"),
        (stop(End.BLOCKED, "a-rule-of-tomorrow"), "no_selectable_task", 2, "blocked"),
        (stop(End.PAUSED, Rule.ASKED_TO_PAUSE, by="SIGINT"), "interrupted", 130, "interrupted"),
        (stop(End.STOPPED, Rule.ASKED_TO_STOP, by="ada"), "interrupted", 130, "interrupted"),
    ],
)
def test_an_end_has_a_code_an_exit_code_and_a_word(stopped: LoopStopped, code: str, exit_code: int, word: str) -> None:
    """C-062, X-14"""
    assert (codes.code_of(stopped), codes.exit_code(stopped), codes.word(stopped)) == (code, exit_code, word)
