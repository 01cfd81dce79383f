"""The loops that a server shows: looked up by name, never by a path, and read again only if they changed."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import msgspec

from bydawn.core.errors import NotFound
from bydawn.core.text import shorten
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import is_held
from bydawn.store.registry import Registry, Standing, standing_of

_NAMED = 8  # loops that an error names
_LONGEST = 80  # characters of a name in it


class _Seen(NamedTuple):
    stamp: tuple[int, int, int] | None
    standing: Standing | None


class Loops:
    """What is in the registry; `shown` narrows it for a server that speaks for one tool or one folder."""

    def __init__(self, registry: Registry, shown: Callable[[Standing], bool] | None = None) -> None:
        self.registry = registry
        self.is_narrowed = shown is not None  # then what is started here would not be shown
        self._shown = shown or (lambda _: True)
        self._seen: dict[str, _Seen] = {}
        self._listed: list[Standing] = []
        self._addresses: dict[str, str] = {}  # by folder
        self._lock = Lock()

    def all(self) -> list[Standing]:
        """Every loop as it is now, each of which knows whether its name is unique."""
        with self._lock:
            seen = {path: self._look(path) for path in _folders(str(self.registry.root.loops))}
            if seen == self._seen:
                return [*self._listed]
            found = [each for each in seen.values() if each.standing and self._shown(each.standing)]
            names = Counter(each.standing.folder.name.casefold() for each in found if each.standing)
            for path, each in seen.items():
                standing = each.standing
                if standing and standing.unique != (names[standing.folder.name.casefold()] == 1):
                    seen[path] = _Seen(each.stamp, msgspec.structs.replace(standing, unique=not standing.unique))
            self._seen = seen
            self._listed = [each.standing for each in seen.values() if each.standing and self._shown(each.standing)]
            self._addresses = _addresses(self._listed)
            return [*self._listed]

    def _look(self, path: str) -> _Seen:
        """Its ledger tells whether it has changed; whether it runs, only its lock. With many loops each call counts."""
        stamp, seen = _stamp(f"{path}/ledger.jsonl"), self._seen.get(path)
        if seen is None or seen.stamp != stamp:
            return _Seen(stamp, standing_of(LoopFolder(Path(path))))
        standing = seen.standing
        if standing is None or (standing.state.stopped and not standing.alive and not standing.trouble):
            return seen
        if standing.trouble or is_held(f"{path}/lock") != standing.alive:
            return _Seen(stamp, standing_of(standing.folder))
        return seen

    def find(self, address: str) -> Standing:
        """The loop with this name or `name@folder`."""
        found, wanted = self.all(), address.casefold()
        for standing in found:
            if wanted in (self.address(standing).casefold(), _longest(standing).casefold()):
                return standing
        names = [self.address(each) for each in found[:_NAMED]]
        here = f"loops here: {', '.join(names)}" if names else "there are no loops yet"
        raise NotFound(
            f"there is no loop “{shorten(address, _LONGEST)}” here", cause=here, hint="go back to the list of loops"
        )

    def address(self, standing: Standing) -> str:
        """What stands for a loop in an address: its name, with its folder if another loop has that name."""
        return self._addresses.get(str(standing.folder)) or _longest(standing)


def readable(standing: Standing) -> Standing:
    if standing.trouble:
        raise standing.trouble
    return standing


def _addresses(found: list[Standing]) -> dict[str, str]:
    short = {str(each.folder): f"{each.loop.id}@{Path(each.loop.workspace).name}" for each in found if not each.unique}
    taken = Counter(text.casefold() for text in short.values())
    named = {str(each.folder): each.loop.id for each in found if each.unique}
    once = {folder: text for folder, text in short.items() if taken[text.casefold()] == 1}
    return named | once


def _longest(standing: Standing) -> str:
    """Unique in any case: the folder of its workspace in our own state."""
    return f"{standing.loop.id}@{standing.folder.home.name}"


def _folders(loops: str) -> Iterator[str]:
    """The folders of all loops, as texts."""
    for home in _names(loops):
        for name in _names(f"{loops}/{home}"):
            yield f"{loops}/{home}/{name}"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
