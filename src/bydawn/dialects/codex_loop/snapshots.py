"""Evidence that was collected in a folder: its `index.json`, and what can be asked of that."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.document import Blocker
from bydawn.dialects.codex_loop.events import Row, counts
from bydawn.dialects.codex_loop.history import Result
from bydawn.dialects.codex_loop.period import Period
from bydawn.dialects.codex_loop.sessions import Session

INDEX = "index.json"
GROUPS = {"task": "task_id", "status": "overall_status", "blocker": "last_blocker_code"}


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A task for someone else: how it is, what Codex was told, and what it said."""

    project_name: str | None
    project_dir: str
    generated_at: str
    selection: str  # current_task, latest, task_id
    overall_status: str
    last_blocker: Blocker | None
    task_id: str
    session_id: str | None
    session_snapshot: Session
    last_verification_results: tuple[Result, ...]
    recent_events: tuple[Row, ...]
    prompt_preview: str | None  # its first lines
    log_tail: str | None  # its last lines
    run_payload: Any  # the last answer: JSON, or a text


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the index."""

    generated_at: str = ""
    project_name: str | None = None
    task_id: str | None = None
    selection: str | None = None
    overall_status: str | None = None
    last_blocker_code: str | None = None
    snapshot_path: str = ""  # from the folder on

    @property
    def is_blocked(self) -> bool:
        return self.overall_status == codes.BLOCKED or bool(self.last_blocker_code)

    @property
    def line(self) -> str:
        words = (self.generated_at, self.task_id, self.overall_status, self.last_blocker_code, self.snapshot_path)
        return "  ".join(filter(None, words))


def snapshot_of(evidence: Evidence, path: str) -> Snapshot:
    return Snapshot(
        generated_at=evidence.generated_at,
        project_name=evidence.project_name,
        task_id=evidence.task_id,
        selection=evidence.selection,
        overall_status=evidence.overall_status,
        last_blocker_code=evidence.last_blocker.code if evidence.last_blocker else None,
        snapshot_path=path,
    )


def indexed(data: bytes) -> tuple[dict[str, Any], list[Snapshot]]:
    """The index as it is, and what we know of it; raises `msgspec.DecodeError`."""
    index = msgspec.json.decode(data, type=dict[str, Any])
    return index, msgspec.convert(index.get("snapshots"), list[Snapshot])


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which of them, and in which order."""

    task_id: str | None = None
    status: str | None = None
    blocker_code: str | None = None
    period: Period = Period()
    blocked: bool = False
    limit: int | None = None  # the newest ones
    newest_first: bool = False

    def takes(self, each: Snapshot) -> bool:
        asked = {"task_id": self.task_id, "overall_status": self.status, "last_blocker_code": self.blocker_code}
        fits = all(value is None or getattr(each, name) == value for name, value in asked.items())
        return fits and (each.is_blocked or not self.blocked) and self.period.has(each.generated_at)

    def of(self, snapshots: Sequence[Snapshot]) -> tuple[Snapshot, ...]:
        found = sorted(filter(self.takes, snapshots), key=lambda each: each.generated_at)
        found = found[-self.limit :] if self.limit else found
        return tuple(reversed(found) if self.newest_first else found)

    def refuse_unknown(self, snapshots: Sequence[Snapshot]) -> None:
        """What is misspelled would find nothing."""
        tasks = dict.fromkeys(each.task_id for each in snapshots if each.task_id)
        rows = {"--task-id": (self.task_id, [*tasks]), "--blocker-code": (self.blocker_code, [*codes.EVERY])}
        for flag, (given, known) in rows.items():
            if given is not None and given not in known:
                told = ", ".join(shorten(plain(each), 60) for each in known[:20]) or "none"
                hint = f"give one of these, or drop {flag}"
                raise UserError(f"{flag} {given!r} is not known here", cause=f"known are: {told}", hint=hint)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Of these snapshots; grouped, only that group is there."""

    total_snapshots: int
    by_task: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    by_status: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    by_blocker: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    latest_snapshot: Snapshot | None
    latest_blocked: Snapshot | None


def summary_of(snapshots: Sequence[Snapshot], group_by: str | None = None) -> Summary:
    groups = {name: field for name, field in GROUPS.items() if group_by in (None, name)}
    return Summary(
        total_snapshots=len(snapshots),
        **{f"by_{name}": counts(getattr(each, field) for each in snapshots) for name, field in groups.items()},
        latest_snapshot=_latest(snapshots),
        latest_blocked=_latest(each for each in snapshots if each.is_blocked),
    )


def _latest(snapshots: Iterable[Snapshot]) -> Snapshot | None:
    return max(snapshots, key=lambda each: each.generated_at, default=None)
