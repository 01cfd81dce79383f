"""Limits that this user's loops ran into: a small file per account, valid until its reset time."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from bydawn.core.agent import Agent, family
from bydawn.core.digests import sha256
from bydawn.core.loop import Loop
from bydawn.core.ports import CoolDown
from bydawn.core.resets import LONGEST
from bydawn.system.writing import make_private, replace_private

_LONGEST_FILE = 10_000  # bytes; anything longer is not ours


class SharedCoolDowns:
    """The files, as one loop sees them. Losing them costs one attempt, so nothing here is worth failing for."""

    def __init__(self, folder: Path, loop: Loop, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._loop = loop
        self._env = env

    def of(self, agent: Agent, now: datetime) -> CoolDown | None:
        """The limit this agent's account is known to have."""
        path = self._path(agent)
        known = _read(path)
        if known is None or family(known.agent) != family(agent.name) or not now < known.until <= now + LONGEST:
            return None
        return known

    def tell(self, agent: Agent, until: datetime, detail: str) -> None:
        path = self._path(agent)
        known = CoolDown(agent=agent.name, until=until, detail=detail, loop=self._loop.id)
        with suppress(OSError):
            make_private(self._folder)
            replace_private(path, msgspec.json.encode(known), shared=True)

    def _path(self, agent: Agent) -> Path:
        """Another model, profile or key may have its own limits; another program of the same agent has the same."""
        mine = family(agent.name)
        whose = [mine, self._loop.model, self._loop.profile, *map(self._env.get, agent.abilities.account)]
        name = re.sub(r"[^a-z0-9]+", "-", mine.lower()).strip("-")[:30]
        return self._folder / f"{name}-{sha256(msgspec.json.encode(whose)).hexdigest()[:16]}.json"


def known(folder: Path, now: datetime) -> list[CoolDown]:
    """Every limit in force."""
    try:
        paths = sorted(folder.glob("[!.]*.json"))
    except OSError:
        return []
    return [each for each in map(_read, paths) if each and now < each.until <= now + LONGEST]


def forget(folder: Path, agent: str) -> None:
    """The agent has just worked, so its limit is over."""
    for path in folder.glob("[!.]*.json"):
        if (each := _read(path)) and family(each.agent) == family(agent):
            path.unlink(missing_ok=True)


def _read(path: Path) -> CoolDown | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LONGEST_FILE), type=CoolDown)
    except (OSError, msgspec.DecodeError):
        return None
