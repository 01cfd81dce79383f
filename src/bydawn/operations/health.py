"""Is all well with the loops of a user, and with the folder that holds them?"""

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from bydawn.core.values import Act, Next
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.next_steps import next_steps
from bydawn.operations.service import NAME as SERVICE
from bydawn.operations.views import by_need, hanging, needs_you, reason
from bydawn.process.child import is_nearly_full
from bydawn.store import watches
from bydawn.store.folder import StateFolder
from bydawn.store.registry import Registry, Standing


class Level(StrEnum):
    """How bad it is; the worst last."""

    OK = "ok"
    DEGRADED = "degraded"  # something waits for a person
    ERROR = "error"  # something is broken

    @property
    def exit_code(self) -> int:
        return {Level.OK: 0, Level.DEGRADED: 2, Level.ERROR: 3}[self]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not well, and what to do about it."""

    verdict: Level
    what: str
    loop: str | None = None
    hint: Next | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What `health --json` prints."""

    verdict: Level  # the worst one
    loops: int
    findings: tuple[Finding, ...]  # the worst first


def health(root: StateFolder, loops: Iterable[Standing], more: Iterable[Finding] = ()) -> Health:
    """Look at the state folder and at each loop; `more` is what was found elsewhere."""
    found = with_leftovers(loops)
    of_loops = (row for each in by_need(found) if (row := _of_loop(each)))
    rank = [*Level].index
    findings = sorted([*_of_folder(root), *more, *of_loops], key=lambda each: -rank(each.verdict))
    return Health(
        verdict=findings[0].verdict if findings else Level.OK,
        loops=len(found),
        findings=tuple(findings),
    )


def of_service(registry: Registry) -> Iterator[Finding]:
    """Is the service that keeps loops running at work, if it is installed? Its lock tells, and asks no program."""
    from bydawn.host.units import is_installed

    if is_installed(SERVICE) and watches.of(registry, None) is None:
        hint = Next(command=Act("service status"), why="why it does not run")
        yield Finding(verdict=Level.DEGRADED, what="the service is installed and does not run", hint=hint)


def _of_folder(root: StateFolder) -> Iterator[Finding]:
    """Can loops record what they do?"""
    there = next(path for path in (root.loops, *root.loops.parents) if path.exists())
    if not os.access(there, os.W_OK):
        hint = Next(command="", why="make it writable, or use another folder: --state-dir DIR")
        yield Finding(verdict=Level.ERROR, what=f"{there} is not writable", hint=hint)
    if is_nearly_full(str(there)):
        hint = Next(command=Act("clean"), why="see what old loops could free")
        yield Finding(verdict=Level.ERROR, what=f"the disk of {there} is nearly full", hint=hint)


def _of_loop(standing: Standing) -> Finding | None:
    name = standing.loop.id
    if hangs := hanging(standing):
        end = Next(command=Act("stop", standing.reference), why="end it, or wait if the machine was asleep")
        return Finding(verdict=Level.ERROR, what=f"{name} gives {hangs}", loop=name, hint=end)
    if not needs_you(standing):
        return None
    return Finding(
        verdict=Level.ERROR if standing.trouble else Level.DEGRADED,
        what=f"{name} {standing.status.words}: {reason(standing)}",
        loop=name,
        hint=next(iter(next_steps(standing)), None),
    )
