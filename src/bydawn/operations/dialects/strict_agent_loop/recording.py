"""Record what was done: events and iterations. What is recorded is a claim, wherever it comes from."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from bydawn.core import records
from bydawn.core.errors import UserError
from bydawn.core.facts import EventRecorded, IterationRecorded
from bydawn.core.records import Iteration
from bydawn.dialects.strict_agent_loop import document, lines, paths
from bydawn.dialects.strict_agent_loop.document import State
from bydawn.dialects.strict_agent_loop.paths import NAME
from bydawn.operations import recording
from bydawn.operations.dialects.strict_agent_loop import sandboxed, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.preconditions import is_inside_a_round, user
from bydawn.system import json_lines

Say = Callable[[str], None]


def event(task: Task, kind: str, message: str, data: dict[str, str], say: Say) -> tuple[State, dict[str, Any]]:
    """The task then, and the event as its line says it."""
    fact = EventRecorded(**by(), kind=kind, message=message, data=data)
    now = _record(task, fact, say)
    found = json_lines.find(task.workspace, paths.of(task.id, paths.EVENTS), fact.record)
    return now, found or msgspec.to_builtins(lines.event_of_claim(now, fact))


def iteration(task: Task, claim: Iteration, say: Say) -> tuple[State, int]:
    """The task then, and the number of this iteration; another one may have been recorded at the same moment."""
    if task.standing and task.standing.finished and claim.ends in document.STUCK:
        raise UserError(
            f"{task.id} is completed already",
            cause=f"an iteration that is {claim.ends} would end it otherwise",
            hint=f"record it without that; or start again: `{NAME} init-state {task.flags} --force …`",
        )
    fact = IterationRecorded(**by(), claim=claim)
    now = _record(task, fact, say)
    found = json_lines.find(task.workspace, paths.of(task.id, paths.ITERATIONS), fact.record)
    entry = found.get("entry") if found else None
    return now, entry["iteration"] if isinstance(entry, dict) else now.counters.iteration


def compact(task: Task, keep_last: int, characters: int, say: Say) -> State:
    data = {"keep_last": str(keep_last), "max_archive_chars": str(characters)}
    return event(task, records.COMPACTED, f"iterations kept in full: {keep_last}", data, say)[0]


def by() -> dict[str, Any]:
    """Who says it, and when."""
    return {"record": os.urandom(8).hex(), "at": datetime.now(UTC), "by": user()}


def _record(task: Task, fact: EventRecorded | IterationRecorded, say: Say) -> State:
    """The task as it is then; pending if the ledger has not got it yet."""
    tasks.refuse_foreign(task)
    if task.standing is None or is_inside_a_round():
        return sandboxed.record(task, fact, say)
    recording.record(task.standing, fact, say)
    return tasks.find(task.state_path).now
