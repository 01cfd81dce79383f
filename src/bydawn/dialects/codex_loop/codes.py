"""Why a project or a task is blocked, as a code that scripts can rely on, and what `run` exits with."""

from bydawn.core.facts import BOX, COMMIT, LoopStopped
from bydawn.core.history import Event
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, Death, End, Restart, TaskClaim, TaskStatus

COMPLETED, BLOCKED, INITIALIZED, RUNNING = "completed", "blocked", "initialized", "running"
_CLAIMED = {"done": "complete", "in-progress": "continue", "blocked": "blocked"}
CLAIMS = tuple(_CLAIMED.values())
_BLOCKED_EXIT, _INTERRUPTED_EXIT = 2, 130
_REASONS = {Death.HUNG: "stale_heartbeat", Death.FOUND: "process_gone"}

HOOK_FAILURE, AGENT_BLOCKED, NO_SELECTABLE_TASK = "hook_failure", "agent_blocked", "no_selectable_task"
RUNNER_FAILURES, VERIFICATION_FAILURES, TASK_FAILURES = (
    f"{kind}_failure_circuit_breaker" for kind in ("runner", "verification", "task")
)
NO_PROGRESS, MAX_ITERATIONS = "no_progress_limit", "max_iterations"
# The document has no words for these. `interrupted`: a person or a signal ended the run, or it died; `run` goes on.
AGENT_UNAVAILABLE, TAMPERING, TASK_FILE, BUDGET = "agent_unavailable", "tampering", "task_file", "budget"
WORKSPACE_GONE, DISK, INTERRUPTED = "workspace_gone", "disk", "interrupted"
WATCHDOG_EXHAUSTED = "watchdog_exhausted"

BY_RULE: dict[str, str] = {
    Rule.ASKED_TO_STOP: INTERRUPTED,
    Rule.ASKED_TO_PAUSE: INTERRUPTED,
    Rule.OBSTRUCTED: WORKSPACE_GONE,  # unless its kind says more
    Rule.TAMPERED: TAMPERING,
    Rule.TASK_FILE: TASK_FILE,
    Rule.CHECKPOINT: TASK_FILE,
    Rule.AGENT_STOP: AGENT_UNAVAILABLE,
    Rule.AGENT_DENIED: AGENT_UNAVAILABLE,
    Rule.AGENT_FAILURES: RUNNER_FAILURES,
    Rule.COMMANDS_FAILED: RUNNER_FAILURES,
    Rule.CUT_SHORT: RUNNER_FAILURES,
    Rule.RESTARTS: WATCHDOG_EXHAUSTED,
    Rule.PAID_TROUBLE: RUNNER_FAILURES,
    Rule.OUTAGE: AGENT_UNAVAILABLE,
    Rule.RECORDED_END: AGENT_BLOCKED,
    Rule.AGENT_BLOCKED: AGENT_BLOCKED,
    Rule.TASK_FAILURES: TASK_FAILURES,
    Rule.NO_PROGRESS: NO_PROGRESS,
    Rule.NO_TASK_DONE: NO_PROGRESS,
    Rule.STILL_RED: NO_PROGRESS,
    Rule.SAME_FAILURE: VERIFICATION_FAILURES,
    Rule.CHECK_FAILURES: VERIFICATION_FAILURES,
    Rule.TASKS_ASIDE: NO_SELECTABLE_TASK,
    Rule.ONLY_CHECKS: INTERRUPTED,
    Rule.ITERATIONS: MAX_ITERATIONS,
    Rule.ROUNDS: MAX_ITERATIONS,
    Rule.ROUNDS_THIS_RUN: MAX_ITERATIONS,
    **dict.fromkeys((Rule.TIME, Rule.TIME_THIS_RUN, Rule.TOKENS, Rule.COST, Rule.UNTIL), BUDGET),
    **dict.fromkeys((Rule.LIMIT_STOPS, Rule.LATEST_WAKE), AGENT_UNAVAILABLE),
}
# Of `Obstructed`, by what it is.
BY_KIND = {
    "hook": HOOK_FAILURE,
    COMMIT: HOOK_FAILURE,  # almost always one of git's own
    "disk": DISK,
    "tasks": TASK_FILE,
    "prompt": TASK_FILE,
    "protect": TAMPERING,
    BOX: VERIFICATION_FAILURES,
}
EVERY = tuple(dict.fromkeys((*BY_RULE.values(), *BY_KIND.values())))


def code_of(stopped: LoopStopped) -> str:
    """The code of an end; empty if nothing blocks it."""
    if stopped.end in FINISHED or stopped.is_preparation:
        return ""
    return code(stopped.decided.rule, stopped.evidence[0] if stopped.evidence else "")


def code(rule: str, kind: str = "") -> str:
    """The code of a rule that ended a run, or blocked a task; of one that only a later version has, the vaguest."""
    found = BY_RULE.get(rule, NO_SELECTABLE_TASK)
    return BY_KIND.get(kind, found) if rule == Rule.OBSTRUCTED else found


def of_event(event: Event) -> str:
    """The code of a block between rounds; empty if something was freed."""
    if event.stopped:
        return code_of(event.stopped)
    return code(event.by) if event.status is TaskStatus.ASIDE else ""


def restart_reason(restart: Restart | None) -> str | None:
    """Why the watchdog started a run again, in the document's words where it has one."""
    return death(restart.why, restart.exit_code) if restart else None


def death(why: Death, exit_code: int | None) -> str:
    return _REASONS.get(why) or f"exit_code:{exit_code}"


def agent_status(claim: TaskClaim | None) -> str | None:
    """What the agent said about its task, in the words of its schema; None if that was not understood."""
    return _CLAIMED.get(claim.status) if claim else None


def last_stop(state: LoopState) -> LoopStopped | None:
    """How it ended; a run that only had to check the work has changed nothing about that."""
    stopped = state.stopped
    return state.before if stopped and state.before and stopped.decided.rule == Rule.ONLY_CHECKS else stopped


def word(stopped: LoopStopped) -> str:
    if stopped.is_preparation:
        return INITIALIZED
    return COMPLETED if stopped.end in FINISHED else INTERRUPTED if code_of(stopped) == INTERRUPTED else BLOCKED


def exit_code(stopped: LoopStopped) -> int:
    if stopped.end in FINISHED:
        return 0
    is_asked = stopped.end in (End.PAUSED, End.STOPPED) and not stopped.is_refusal
    return _INTERRUPTED_EXIT if is_asked else _BLOCKED_EXIT
