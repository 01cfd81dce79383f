"""Supervise an unattended task: what to run, and with which changes."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.values import Act, Advice
from bydawn.dialects.strict_agent_loop import state_path
from bydawn.dialects.strict_agent_loop.contract import UNATTENDED, contract_of
from bydawn.dialects.strict_agent_loop.paths import NAME
from bydawn.operations import steer
from bydawn.operations.dialects import begin
from bydawn.operations.dialects.begin import Trust
from bydawn.operations.dialects.strict_agent_loop import creating, stopping, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store import lock

_WRONG_MODE = 1
_UNCHECKED = "it has no stop check, so it ends when a stop is recorded, and nothing verifies that"


def plan(task: Task, given: Mapping[str, Any], note: str | None, trust: Trust) -> Plan:
    """The next run of a task; what is given stays changed."""
    refuse_inside_a_round()
    tasks.refuse_foreign_supervisor(task)
    tasks.refuse_foreign(task)
    standing = task.standing
    if standing is None:
        raise UserError(
            f"{task.id} has no record that we can write to",
            cause="it was made in a sandbox, or for another user or state folder",
            hint=f"look first: `{NAME} list-tasks --workspace-root {task.workspace}`",
            exit_code=1,
        )
    if standing.trouble:
        raise standing.trouble
    assert standing.loop.dialect  # noqa: S101 - it is a task of ours
    contract = contract_of(standing.loop.dialect.words)
    if contract.mode != UNATTENDED:
        raise UserError(
            f"{task.id} is an interactive task",
            cause="its own session works on it and records every round; no supervisor does",
            hint=f"go on in that session, or make another: `{NAME} init-state … --operating-mode unattended`",
            exit_code=_WRONG_MODE,
        )
    stopping.refuse_unconfirmed(task)
    if standing.alive and lock.wait_for_the_dying(standing.folder.lock):
        look = Act("report-status", program=NAME, state=state_path(standing.loop))
        hint = Advice(look, " says how it stands; Ctrl-C ends it where it runs")
        cause = f"{lock.owner(standing.folder.lock) or 'a process'} is running it"
        raise UserError(f"{task.id} is supervised already", cause=cause, hint=hint, exit_code=8)
    fields = {key: value for key, value in given.items() if value is not None}
    most = fields.pop("max_iterations", None)
    if fields:
        creating.changed(standing, replace(contract, **fields), trust)
    if note and note.strip():
        steer.tell(standing, note)
    planned = begin.plan_resume(tasks.find(task.state_path).standing or standing)
    if most:
        planned = replace(planned, raises=lambda limits: replace(limits, iterations=most))
    return planned if planned.loop.checks else replace(planned, warnings=(_UNCHECKED, *planned.warnings))
