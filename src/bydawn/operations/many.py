"""Which loops `resume --all` takes, and why it leaves the others alone."""

from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.redact import Secrets
from bydawn.core.values import Status
from bydawn.operations import resume
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.registry import Registry, Standing


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one loop."""

    standing: Standing
    plan: Plan | None = None
    skipped: str = ""  # why, if it is left alone
    refused: UserError | None = None  # why it cannot go on


def take(registry: Registry, cd: Path | None, secrets: Secrets, *, stopped: bool) -> list[Taken]:
    """Every unfinished loop, with a plan if it is to go on; `stopped`: also what a person paused or stopped."""
    refuse_inside_a_round()
    found = registry.here(cd) if cd else registry.everywhere()
    listed = [each for each in found if not each.finished and not each.state.dismissed]
    return [_taken(each, secrets, stopped=stopped) for each in listed]


def _taken(standing: Standing, secrets: Secrets, *, stopped: bool) -> Taken:
    if why := why_not(standing, stopped=stopped):
        return Taken(standing=standing, skipped=why)
    try:
        return Taken(standing=standing, plan=resume.plan(standing, secrets))
    except UserError as refused:
        return Taken(standing=standing, refused=refused)


def why_not(standing: Standing, *, stopped: bool) -> str:
    """Why a loop is left alone; nothing if it crashed, or if the machine ended it."""
    end = standing.state.stopped
    if standing.status is Status.CRASHED:
        return ""
    if end is None or standing.status not in (Status.PAUSED, Status.STOPPED) or end.is_refusal:
        return f"it {standing.status.words}"
    if stopped or end.by_machine:
        return ""
    return f"{end.reason}; --stopped takes it too"
