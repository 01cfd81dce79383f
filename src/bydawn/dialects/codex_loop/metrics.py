"""`metrics.json`: the numbers of a project over its whole life, from the same document as `state.json`."""

import msgspec

from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.document import Died, Document


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    generated_at: str | None
    overall_status: str
    total_iterations: int
    history_entries: int  # that are kept
    tasks_total: int
    tasks_done: int
    tasks_blocked: int
    runner_failures_total: int
    verification_failures_total: int
    resume_fallbacks_total: int
    blocked_events_total: int
    watchdog_restarts_total: int
    watchdog_exhausted_total: int
    watchdog_restart_reasons: dict[str, int]
    latest_watchdog_restart: Died | None
    latest_watchdog_exhausted: Died | None
    blocked_by_code: dict[str, int]
    tasks_skipped_by_circuit_breaker: int  # that failed too often, and are blocked now
    consecutive_runner_failures: int
    consecutive_verification_failures: int
    no_progress_iterations: int
    last_blocker_code: str | None
    last_blocker_reason: str | None
    last_error: str | None


def metrics_of(document: Document) -> Metrics:
    meta, ours, tasks = document.meta, document.bydawn, [*document.tasks.values()]
    blocker = meta.last_blocker
    return Metrics(
        generated_at=meta.updated_at,
        overall_status=meta.overall_status,
        total_iterations=meta.iteration,
        history_entries=len(document.history),
        tasks_total=len(tasks),
        tasks_done=sum(task.status == "done" for task in tasks),
        tasks_blocked=sum(task.status == codes.BLOCKED for task in tasks),
        runner_failures_total=ours.runner_failures_total,
        verification_failures_total=ours.verification_failures_total,
        resume_fallbacks_total=ours.resume_fallbacks_total,
        blocked_events_total=sum(ours.blocked_by_code.values()),
        watchdog_restarts_total=sum(ours.watchdog_restart_reasons.values()),
        watchdog_exhausted_total=ours.watchdog_exhausted_total,
        watchdog_restart_reasons=ours.watchdog_restart_reasons,
        latest_watchdog_restart=ours.latest_watchdog_restart,
        latest_watchdog_exhausted=ours.latest_watchdog_exhausted,
        blocked_by_code=ours.blocked_by_code,
        tasks_skipped_by_circuit_breaker=sum(task.blocker_code == codes.TASK_FAILURES for task in tasks),
        consecutive_runner_failures=meta.consecutive_runner_failures,
        consecutive_verification_failures=meta.consecutive_verification_failures,
        no_progress_iterations=meta.no_progress_iterations,
        last_blocker_code=blocker.code if blocker else None,
        last_blocker_reason=blocker.reason if blocker else None,
        last_error=meta.last_error,
    )
