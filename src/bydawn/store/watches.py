"""Who starts the loops of a workspace again if their process dies? The process that holds the lock of that watch."""

from pathlib import Path

import msgspec

from bydawn.store.lock import Lock, is_held, owner, signature
from bydawn.store.registry import Registry
from bydawn.system.writing import make_private

EVERY = "service"  # bydawn's own, for all loops that no one else watches


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """A process that watches."""

    kind: str  # what it calls itself: daemon, service
    pid: int


def take(registry: Registry, workspace: Path | None, kind: str) -> Lock:
    """Begin to watch one workspace, or everything; raises `Owned` if someone does."""
    make_private(registry.root.watches)
    held = Lock.take(_path(registry, workspace))
    held.sign(kind)
    return held


def of(registry: Registry, workspace: Path | None) -> Watch | None:
    """Who watches it now."""
    path = _path(registry, workspace)
    if not is_held(path):
        return None
    pid = owner(path).removeprefix("pid ")  # nothing if the holder has not signed yet
    return Watch(kind=signature(path).get("run", "watchdog") if pid else "watchdog", pid=int(pid or 0))


def _path(registry: Registry, workspace: Path | None) -> Path:
    return registry.root.watches / (registry.home(workspace).name if workspace else EVERY)
