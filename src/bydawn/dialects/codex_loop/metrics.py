"""`metrics.json`: the numbers of a project over its whole life, from the same document as `state.json`."""

from msgspec.structs import asdict

from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.document import Blocker, Document

_LOOPS = ("loop", "uid", "seq")  # of what is ours: no numbers


def metrics_of(document: Document) -> dict[str, object]:
    meta, ours, tasks = document.meta, document.bydawn, [*document.tasks.values()]
    blocker = meta.last_blocker or Blocker(code="")
    return {
        "generated_at": meta.updated_at,
        "overall_status": meta.overall_status,
        "total_iterations": meta.iteration,
        "history_entries": len(document.history),  # that are kept
        "tasks_total": len(tasks),
        "tasks_done": sum(task.status == "done" for task in tasks),
        "tasks_blocked": sum(task.status == codes.BLOCKED for task in tasks),
        **{name: value for name, value in asdict(ours).items() if name not in _LOOPS},
        "blocked_events_total": sum(ours.blocked_by_code.values()),
        "watchdog_restarts_total": sum(ours.watchdog_restart_reasons.values()),
        # Those that failed too often, and are blocked now.
        "tasks_skipped_by_circuit_breaker": sum(task.blocker_code == codes.TASK_FAILURES for task in tasks),
        "consecutive_runner_failures": meta.consecutive_runner_failures,
        "consecutive_verification_failures": meta.consecutive_verification_failures,
        "no_progress_iterations": meta.no_progress_iterations,
        "last_blocker_code": blocker.code or None,
        "last_blocker_reason": blocker.reason,
        "last_error": meta.last_error,
    }
