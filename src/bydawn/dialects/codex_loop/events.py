"""What `events` and `snapshots` show: each entry of `history`, and the hooks that ran, with labels for filters."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from operator import itemgetter

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import HookEnded
from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.history import HOOK_EVENTS, Entry, hook_line

ITERATION, RUNNER_FAILURE, HOOK = "iteration", "runner_failure", "hook"
RESTART, EXHAUSTED = "watchdog_restart", "watchdog_exhausted"
# What can follow the type in a label; None: anything.
_LABELS: dict[str, tuple[str, ...] | None] = {
    ITERATION: codes.CLAIMS,
    RUNNER_FAILURE: (),
    codes.BLOCKED: codes.EVERY,
    "requeued": (),
    HOOK: HOOK_EVENTS,
    RESTART: None,
    EXHAUSTED: None,
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened."""

    timestamp: str
    label: str
    event_type: str
    source: str  # history, hook
    iteration: int
    task_id: str | None = None
    summary: str = ""
    agent_status: str | None = None
    verification_passed: bool | None = None
    blocker_code: str | None = None
    restart_reason: str | None = None
    restart_count: int | None = None

    @property
    def line(self) -> str:
        failed = "(verification failed)" if self.verification_passed is False else ""
        said = " ".join([*self.summary.split(), failed]).strip()
        return "  ".join(filter(None, (self.timestamp, self.label, self.task_id, said)))


# -- which of them -----------------------------------------------------------------------------------------------------


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """From the one to the other, both included; without either, always."""

    since: datetime | None = None
    until: datetime | None = None

    def has(self, timestamp: str) -> bool:
        if self.since is None and self.until is None:
            return True
        at = datetime.fromisoformat(timestamp)
        return (self.since is None or self.since <= at) and (self.until is None or at <= self.until)


def period(since: str | None, until: str | None) -> Period:
    """What a person typed; refused if it can be read in two ways."""
    found = Period(since=_typed("--since", since), until=_typed("--until", until))
    if found.since and found.until and found.since > found.until:
        cause = f"nothing is both after {since} and before {until}"
        raise UserError("--since is later than --until", cause=cause, hint="exchange the two")
    return found


def _typed(flag: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        hint = f"write date and time with their zone: {flag} 2026-01-06T12:00Z"
        raise UserError(f"{flag} {text!r} is not a time", cause="expected one as in ISO 8601", hint=hint) from None
    if at.tzinfo is None:
        cause = "the same time is another moment in another zone"
        hint = f"add Z for UTC, or an offset such as +01:00: {flag} {at.isoformat(timespec='minutes')}Z"
        raise UserError(f"{flag} {text!r} has no time zone", cause=cause, hint=hint)
    return at


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which of them: the last ones that fit."""

    limit: int
    task_id: str | None = None
    event_type: str | None = None  # or a label
    period: Period = Period()

    def takes(self, row: Row) -> bool:
        is_meant = self.event_type in (None, row.event_type, row.label)
        return is_meant and self.task_id in (None, row.task_id) and self.period.has(row.timestamp)

    @property
    def has_hooks(self) -> bool:
        return (self.event_type or HOOK).partition(":")[0] == HOOK


def checked_type(given: str | None) -> str | None:
    """A type or a label that there can be."""
    kind, colon, more = (ITERATION if given is None else given).partition(":")
    known = _LABELS.get(kind, ())
    if kind in _LABELS and (not colon or known is None or more in known):
        return given
    labels = [f"{kind}:{each}" for each in known or ()] or [*_LABELS]
    raise UserError(
        f"there is no event type {given!r}",
        cause=f"known are: {', '.join(labels)}",
        hint="give one of these, or drop --event-type",
    )


# -- a row of each -----------------------------------------------------------------------------------------------------


def row_of(entry: Entry) -> Row:
    kind = entry.event_type
    more = {ITERATION: entry.agent_status, codes.BLOCKED: entry.blocker_code}.get(kind, entry.restart_reason)
    said = {
        "timestamp": entry.timestamp or "",
        "label": f"{kind}:{more}" if more else kind,
        "source": "history",
        "summary": entry.summary or entry.blocker_reason or entry.error or "",
    }
    return msgspec.convert(msgspec.structs.asdict(entry) | said, Row)  # the rest of an entry is left out


def row_of_hook(ended: HookEnded, at: datetime, task: str | None) -> Row:
    event, told = hook_line(ended, at)
    how = "passed" if ended.passed else "took too long" if ended.timed_out else f"failed ({ended.detail})"
    return Row(
        timestamp=str(told["timestamp"]),
        label=f"{HOOK}:{event}",
        event_type=HOOK,
        source="hook",
        iteration=ended.round,
        task_id=task,
        summary=f"{ended.command}: {how}",
    )


def in_order(*lists: Sequence[Row]) -> list[Row]:
    """Each list as it is, and both by time where that says more: a clock can be set back."""
    keyed = (zip(accumulate((row.timestamp for row in rows), max), rows, strict=True) for rows in lists)
    return [row for _, row in heapq.merge(*keyed, key=itemgetter(0))]


def snapshot_line(entry: Entry) -> str:
    """`TIME  iteration 3  002-parser  complete  verification passed  2 files  TREE`: what an iteration left."""
    files, passed = len(entry.files_changed), entry.verification_passed
    words = (
        entry.timestamp,
        f"iteration {entry.iteration}",
        entry.task_id,
        entry.agent_status or entry.event_type,
        "" if passed is None else f"verification {'passed' if passed else 'failed'}",
        "no change" if not files else "1 file" if files == 1 else f"{files} files",
        entry.fingerprint,
    )
    return "  ".join(filter(None, words))


# -- the summary -------------------------------------------------------------------------------------------------------


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What there was in some rows."""

    total_events: int
    by_label: dict[str, int]
    by_task: dict[str, int]
    by_source: dict[str, int]
    by_blocker_code: dict[str, int]
    blocked_tasks: tuple[str, ...]
    latest_blocked: Row | None
    latest_runner_failure: Row | None
    latest_verification_failure: Row | None
    latest_watchdog_restart: Row | None
    latest_watchdog_exhausted: Row | None


def summary_of(rows: Sequence[Row]) -> Summary:
    def latest(is_meant: Callable[[Row], bool]) -> Row | None:
        return next(filter(is_meant, reversed(rows)), None)

    blocked = [row for row in rows if row.blocker_code]
    return Summary(
        total_events=len(rows),
        by_label=counts(row.label for row in rows),
        by_task=counts(row.task_id for row in rows),
        by_source=counts(row.source for row in rows),
        by_blocker_code=counts(row.blocker_code for row in blocked),
        blocked_tasks=tuple(dict.fromkeys(row.task_id for row in blocked if row.task_id)),
        latest_blocked=latest(lambda row: bool(row.blocker_code)),
        latest_runner_failure=latest(lambda row: row.event_type == RUNNER_FAILURE),
        latest_verification_failure=latest(lambda row: row.verification_passed is False),
        latest_watchdog_restart=latest(lambda row: row.event_type == RESTART),
        latest_watchdog_exhausted=latest(lambda row: row.event_type == EXHAUSTED),
    )


def counts(words: Iterable[str | None]) -> dict[str, int]:
    """How often each; what is missing is `none`."""
    return dict(sorted(Counter(word or "none" for word in words).items()))
