"""Which loops `resume --all` takes, and why it leaves the others alone."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.redact import Secrets
from bydawn.core.values import Status
from bydawn.operations import resume
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.registry import Registry, Standing, beside


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one loop."""

    standing: Standing
    plan: Plan | None = None
    skipped: str = ""  # why, if it is left alone
    refused: UserError | None = None  # why it cannot go on
    beside: tuple[str, ...] = ()  # what else will run in its folder


def take(registry: Registry, cd: Path | None, secrets: Secrets, *, stopped: bool) -> list[Taken]:
    """Every unfinished loop, with a plan if it is to go on; `stopped`: also what a person paused or stopped."""
    refuse_inside_a_round()
    found = registry.here(cd) if cd else registry.everywhere()
    listed = [each for each in found if not each.finished and not each.state.dismissed]
    taken = [_taken(each, secrets, stopped=stopped) for each in listed]
    going = defaultdict[str, list[str]](list)  # in each folder
    for each in taken:
        if each.plan:
            going[each.plan.loop.folder].append(each.plan.folder.name)
    return [replace(each, beside=_beside(each.plan, going)) if each.plan else each for each in taken]


def _beside(planned: Plan, going: Mapping[str, list[str]]) -> tuple[str, ...]:
    folder, loop = planned.folder, planned.loop
    return tuple(sorted({*beside(folder, loop), *going[loop.folder]} - {folder.name}))


def _taken(standing: Standing, secrets: Secrets, *, stopped: bool) -> Taken:
    if why := why_not(standing, stopped=stopped):
        return Taken(standing=standing, skipped=why)
    try:
        # What warns of another loop in its folder knows only those that run already; its row says it.
        return Taken(standing=standing, plan=replace(resume.plan(standing, secrets), warnings=()))
    except UserError as refused:
        return Taken(standing=standing, refused=refused)


def why_not(standing: Standing, *, stopped: bool) -> str:
    """Why a loop is left alone; nothing if it crashed, or if the machine ended it."""
    end = standing.state.stopped
    if standing.status is Status.CRASHED:
        return ""
    if end is None or standing.status not in (Status.PAUSED, Status.STOPPED) or end.is_refusal:
        return f"it {standing.status.words}"
    if end.is_preparation:
        return end.reason
    if stopped or end.by_machine:
        return ""
    return f"{end.reason}; --stopped takes it too"
