"""`health`: is all well with a project, or does it need a person?"""

from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.text import duration
from bydawn.dialects.codex_loop import codes, events, snapshots, texts
from bydawn.dialects.codex_loop.config import NAME
from bydawn.dialects.codex_loop.document import Document, current_task
from bydawn.dialects.codex_loop.events import Summary as Happened
from bydawn.dialects.codex_loop.snapshots import Snapshot
from bydawn.dialects.codex_loop.snapshots import Summary as Collected
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import evidence, project, reports, standing
from bydawn.operations.dialects.codex_loop.standing import Looked
from bydawn.store import heartbeat, watches

OK, DEGRADED, ERROR = "ok", "degraded", "error"
EXIT_CODES = {OK: 0, DEGRADED: 2, ERROR: 3}
SNAPSHOTS = "snapshots"  # where evidence is looked for, in the project


class Watchdog(msgspec.Struct, frozen=True, kw_only=True):
    """Who starts the run again if it dies."""

    kind: str  # daemon, service; another one is for all loops of a person
    pid: int

    @property
    def line(self) -> str:
        return f"{self.kind} (pid {self.pid})"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, why, and what it rests on."""

    health: str
    problems: tuple[str, ...]
    project: str | None = None
    project_dir: str
    overall_status: str | None = None
    iteration: int = 0
    current_task: str | None = None
    running: bool = False
    heartbeat_age_seconds: float | None = None  # of the run that is at work
    watchdog: Watchdog | None = None
    events: Happened | None = None
    snapshots: Collected | None = None


def health(given: Path, events_limit: int, snapshot_dir: Path | None) -> Health:
    """Of the project in a folder; raises `UserError` only for a folder of snapshots that a person named."""
    try:
        root = project.root_of(given)
    except UserError as error:
        return Health(health=ERROR, problems=(error.sentence,), project_dir=str(given))
    errors = []
    try:
        project.config_of(root)
    except UserError as error:
        errors.append(error.sentence)
    collected, troubles = _collected(root, snapshot_dir)
    found = Health(
        health=ERROR if errors else DEGRADED if troubles else OK,
        problems=(*errors, *troubles),
        project_dir=str(root),
        watchdog=_watchdog(root),
        snapshots=snapshots.summary_of(collected) if collected else None,
    )
    try:
        return _looked_at(found, standing.look(root), events_limit)
    except OwnFailure as failure:
        return msgspec.structs.replace(found, health=ERROR, problems=(*found.problems, failure.sentence))
    except UserError:
        return found  # nothing has run yet; if nothing is set up, the configuration is missing, too


def _watchdog(root: Path) -> Watchdog | None:
    registry = loops.registry_of()
    if watch := watches.of(registry, root):
        return Watchdog(kind=watch.kind, pid=watch.pid)
    every = watches.of(registry, None)  # bydawn's own takes care of what no one else watches
    return Watchdog(kind=f"{every.kind} of all loops", pid=every.pid) if every else None


def _collected(root: Path, snapshot_dir: Path | None) -> tuple[list[Snapshot], list[str]]:
    """What is in the folder that a person named, or else in the usual one; and what is wrong with that."""
    place = snapshot_dir or root / SNAPSHOTS
    if not (place / snapshots.INDEX).exists():
        return evidence.collected(place) if snapshot_dir else [], []  # what a person named is refused
    try:
        return evidence.collected(place), []
    except UserError as error:
        return [], [error.sentence]


def _looked_at(found: Health, looked: Looked, events_limit: int) -> Health:
    document, loop = looked.document, looked.standing
    age = heartbeat.age(loop.folder) if loop.alive else None
    troubles = [*_blocked(document)]
    if found.watchdog and document.meta.last_blocker and document.meta.last_blocker.reason == texts.DIED:
        kind = found.watchdog.kind
        told = f": `{NAME} {kind} status`" if kind in ("daemon", "service") else ""
        troubles = [f"the process that ran it died, and the {kind} has not started it again yet{told}"]
    if loop.alive and heartbeat.is_stale(loop.folder):
        troubles.append(f"the run has given no sign of life for {duration(age or 0)}")
    rows = reports.recent(looked, events.Wanted(limit=events_limit))
    shown = msgspec.structs.replace(
        found,
        health=DEGRADED if troubles and found.health == OK else found.health,
        problems=(*found.problems, *troubles),
        project=document.meta.project_name,
        overall_status=document.meta.overall_status,
        iteration=document.meta.iteration,
        current_task=current_task(document),
        running=loop.alive,
        heartbeat_age_seconds=None if age is None else round(age, 1),
        events=events.summary_of(rows),
    )
    return looked.for_others(shown)


def _blocked(document: Document) -> list[str]:
    """What blocks the project, or else the tasks that are blocked while it goes on."""
    blocker = document.meta.last_blocker
    if document.meta.overall_status == codes.BLOCKED:
        return [f"blocked by {blocker.code}: {blocker.reason}" if blocker else "blocked"]
    blocked = [(id_, task) for id_, task in document.tasks.items() if task.status == codes.BLOCKED]
    return [f"{id_} is blocked by {task.blocker_code}: {task.blocker_reason}" for id_, task in blocked]
