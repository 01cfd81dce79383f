"""The rows of `history` in `state.json`: each iteration, and what happened between them."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from bydawn.core.facts import ChecksEnded, HookEnded
from bydawn.core.history import EVENTS_KEPT, Attempt, Event, History
from bydawn.core.outcome import POLICY
from bydawn.core.state import known_as
from bydawn.core.text import last_part
from bydawn.core.values import TaskStatus
from bydawn.dialects.codex_loop import codes, texts

HOOK_EVENTS = ("pre_iteration", "post_iteration", "on_completed", "on_blocked")  # of a run
_OUTPUT = 1500  # characters of what a command printed, each of stdout and stderr


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification command said."""

    command: str
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    event_type: str = ""
    timestamp: str | None = None
    iteration: int = 0
    task_id: str | None = None
    summary: str | None = None
    fingerprint: str | None = None  # of the work tree
    files_changed: tuple[str, ...] = ()  # says git; the first twenty
    verification_passed: bool | None = None
    agent_status: str | None = None
    session_id: str | None = None
    verification_results: tuple[Result, ...] = ()
    blockers: tuple[str, ...] = ()
    resume_fallback_used: bool = False
    resume_failure_reason: str | None = None
    error: str | None = None
    blocker_code: str | None = None
    blocker_reason: str | None = None
    restart_reason: str | None = None
    restart_count: int | None = None  # in a row


def entries(history: History) -> tuple[Entry, ...]:
    """The last ones, in order."""
    first = max(0, len(history.attempts) - EVENTS_KEPT - 1)
    attempts = enumerate(history.attempts[first:], first + 1)
    rows: list[tuple[int, Attempt | Entry]] = [(place, each) for place, each in attempts if each.ended]
    rows = sorted([*rows, *_events(history)], key=lambda row: row[0])  # an event comes after the attempt before it
    return tuple(_iteration(row) if isinstance(row, Attempt) else row for _, row in rows[-EVENTS_KEPT:])


def _events(history: History) -> Iterator[tuple[int, Entry]]:
    """What happened in between, each with its place. An end that only repeats why its task is blocked is left out."""
    for event in history.events:
        if (event.blocks or event.restart or event.status is TaskStatus.OPEN) and not event.is_repeat:
            yield event.attempts, _event(event)


def _iteration(attempt: Attempt) -> Entry:
    started, ended, checks = attempt.started, attempt.ended, attempt.checks
    assert ended  # noqa: S101 - only these are listed
    claim = ended.claim
    return Entry(
        event_type="runner_failure" if POLICY[ended.outcome].is_trouble else "iteration",
        timestamp=moment(attempt.ended_at),
        iteration=attempt.round,
        task_id=started.task_id,
        summary=ended.said or None,
        fingerprint=known_as(ended.found.tree) or None,
        files_changed=ended.found.changes.paths,
        verification_passed=checks.passed if checks else None,
        agent_status=codes.agent_status(claim),
        session_id=ended.session or started.session,
        verification_results=results(checks),
        blockers=claim.blockers if claim and claim.blockers else (ended.blocked,) if ended.blocked else (),
        resume_fallback_used=bool(started.fallback),
        resume_failure_reason=started.fallback or None,
        error=error_of(attempt),
    )


def _event(event: Event) -> Entry:
    code, restart = codes.of_event(event), event.restart
    reason = texts.reason(event.stopped) if event.stopped else event.reason
    kind = "blocked" if code else "requeued"
    if restart:
        kind, reason = "watchdog_exhausted" if code else "watchdog_restart", reason or restart.words
    return Entry(
        event_type=kind,
        timestamp=moment(event.at),
        iteration=event.round,
        task_id=event.task,
        summary=None if code else reason or "to be tried again",
        blocker_code=code or None,
        blocker_reason=reason if code else None,
        restart_reason=codes.restart_reason(restart),
        restart_count=restart.number if restart else None,
    )


def error_of(attempt: Attempt | None) -> str | None:
    """What went wrong in an iteration: with the agent, or else with the verification."""
    if attempt and attempt.ended and (told := texts.trouble(attempt.ended)):
        return told
    verdicts = attempt.checks.verdicts if attempt and attempt.checks else ()
    return next((f"{verdict.check}: {verdict.told}" for verdict in verdicts if not verdict.passed), None)


def results(checks: ChecksEnded | None) -> tuple[Result, ...]:
    return tuple(
        Result(
            command=verdict.check,
            exit_code=verdict.exit_code,
            stdout=_cut(verdict.stdout if verdict.stdout or verdict.stderr else verdict.excerpt),
            stderr=_cut(verdict.stderr),
            timed_out=verdict.timed_out,
        )
        for verdict in (checks.verdicts if checks else ())
    )


def _cut(output: str) -> str:
    return last_part(output, _OUTPUT - 2)  # and a mark where something is missing


def hook_line(ended: HookEnded, at: datetime) -> tuple[str, dict[str, object]]:
    """The event that a hook ran for, and its line in the file of that event."""
    event = texts.EVENTS.get(ended.hook, ended.hook)
    return event, {
        "timestamp": moment(at),
        "event": event,
        "iteration": ended.round,
        "command": ended.command,
        "exit_code": ended.exit_code,
        "timed_out": ended.timed_out,
        "passed": ended.passed,
        "seconds": ended.seconds,
        "output": ended.excerpt,  # the end of it, if it failed
    }


def moment(at: datetime | None) -> str:
    """A time as the file writes it.

    >>> moment(datetime(2026, 1, 6, 12, tzinfo=UTC))
    '2026-01-06T12:00:00.000Z'
    """
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else ""
