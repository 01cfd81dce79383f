"""Which loops a watchdog keeps running by itself, and what happens when it gives one up."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.values import Death, Restart, Status
from bydawn.core.watching import next_restart
from bydawn.operations import many, notices, steer
from bydawn.store import heartbeat, watches
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Registry, Standing, standing_of


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that goes on by itself."""

    standing: Standing
    restart: Restart | None  # None: it was paused in good order, by a shutdown


def due(registry: Registry) -> Iterator[Due]:
    """Every loop that crashed or that a shutdown ended, and that no one else keeps."""
    for each in registry.everywhere():
        if (found := due_of(each)) and not _is_kept_by_others(registry, each):
            yield found


def due_of(standing: Standing) -> Due | None:
    """One loop, if it is to go on by itself."""
    if standing.alive or standing.state.dismissed or not is_lost(standing):
        return None
    return Due(standing=standing, restart=_found_dead(standing) if standing.status is Status.CRASHED else None)


def is_lost(standing: Standing) -> bool:
    """Has it ended although there is work left, and no person wanted that?"""
    return standing.trouble is None and not standing.finished and not many.why_not(standing, stopped=False)


def is_lost_in(folder: LoopFolder) -> bool:
    standing = standing_of(folder)
    return standing is not None and not standing.alive and is_lost(standing)


def give_up(folder: LoopFolder, restart: Restart) -> None:
    """Write down that it is not started again, and tell the person who is away."""
    standing = standing_of(folder)
    if standing and not standing.alive and standing.trouble is None:
        steer.give_up(standing, restart)
        if ended := standing_of(folder):
            notices.tell_of_end(ended)


def _found_dead(standing: Standing) -> Restart:
    """No one saw it die: how long had it run, by its last sign of life?"""
    began, seconds = standing.state.run_since, heartbeat.age(standing.folder)
    lived = (datetime.now(UTC) - began).total_seconds() - seconds if began and seconds is not None else 0.0
    return next_restart(standing.state.restart, Death.FOUND, None, lived)


def _is_kept_by_others(registry: Registry, standing: Standing) -> bool:
    """Does a watchdog of its own dialect keep it, now or after the next boot?"""
    loop = standing.loop
    if loop.dialect is None:
        return False
    from bydawn.host import units

    workspace = Path(loop.workspace)
    is_watched = watches.of(registry, workspace) is not None
    return is_watched or units.is_installed(unit_name(loop.dialect.name, workspace))


def unit_name(tool: str, workspace: Path) -> str:
    """The name of the service of one project.

    >>> unit_name("codex-loop", Path("/home/ada/shop"))
    'codex-loop-5b6e3a9de5a8'
    """
    from bydawn.core.digests import sha256

    return f"{tool}-{sha256(str(workspace).encode()).hexdigest()[:12]}"
