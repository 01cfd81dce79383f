"""Which Codex session each task has, and how far it has come."""

import msgspec

from bydawn.dialects.codex_loop.document import Document, Task, current_task


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A task, and its conversation with Codex."""

    task_id: str
    status: str
    session_id: str | None
    iterations: int
    last_iteration: int | None
    updated_at: str | None
    last_summary: str | None
    resume_fallback_used: bool
    resume_failure_reason: str | None
    archived: bool

    @property
    def line(self) -> str:
        """`001-lexer  done  01999999-…  3 iterations, the last is 7  2026-01-06T12:00:00.000Z`"""
        count = f"{self.iterations} iteration{'s' if self.iterations != 1 else ''}"
        last = f"{count}, the last is {self.last_iteration}" if self.last_iteration else count
        lost = f"(began again: {self.resume_failure_reason})" if self.resume_fallback_used else ""
        words = (self.task_id, self.status, self.session_id or "no session", last, self.updated_at, lost)
        return "  ".join(filter(None, words))


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    project_name: str | None
    overall_status: str
    current_task: str | None
    current_task_session: str | None
    latest_task: str | None
    tasks: tuple[Session, ...]


def sessions_of(document: Document, task: str | None = None) -> Sessions:
    """Of one task, or of all."""
    current, known = current_task(document), every_task(document)
    return Sessions(
        project_name=document.meta.project_name,
        overall_status=document.meta.overall_status,
        current_task=current,
        current_task_session=document.tasks[current].session_id if current else None,
        latest_task=latest_task(document),
        tasks=tuple(session_of(document, id_) for id_ in known if task in (None, id_)),
    )


def session_of(document: Document, id_: str) -> Session:
    task = every_task(document).get(id_, Task())
    return Session(
        task_id=id_,
        status=task.status,
        session_id=task.session_id,
        iterations=task.iterations,
        last_iteration=task.last_iteration,
        updated_at=task.updated_at,
        last_summary=task.last_summary,
        resume_fallback_used=task.resume_fallback_used,
        resume_failure_reason=task.resume_failure_reason,
        archived=id_ in document.meta.archived_tasks,
    )


def latest_task(document: Document) -> str | None:
    """The task that was worked on last."""
    worked = {id_: task for id_, task in every_task(document).items() if task.iterations}
    return max(worked, key=lambda id_: (worked[id_].last_iteration or 0, worked[id_].updated_at or ""), default=None)


def every_task(document: Document) -> dict[str, Task]:
    return {**document.tasks, **document.meta.archived_tasks}
