"""Tasks whose folder was renamed, or came from elsewhere: a record follows its folder, and a copy only has claims."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import IterationRecorded
from bydawn.dialects.strict_agent_loop import contract, document, formats, paths
from bydawn.dialects.strict_agent_loop.contract import Contract, contract_of
from bydawn.operations import changing, recording
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.begin import Trust
from bydawn.operations.dialects.strict_agent_loop import creating, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.preconditions import is_inside_a_round
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing, is_name, standing_of
from bydawn.system.reading import read_inside
from bydawn.system.writing import make_private

Say = Callable[[str], None]
_BIGGEST = 64 << 20  # bytes of iterations.jsonl
_MOST = 10_000  # iterations that are taken from there
_BY = "the task's folder"


def follow(workspace: Path, found: Iterable[document.State], say: Say) -> None:
    """A workspace that was renamed keeps its tasks: its old path is gone, and it is the very same folder."""
    for now in found:
        if now.bydawn and now.workspace_root.startswith("/") and not os.path.lexists(now.workspace_root):
            for standing in _records(now.bydawn, now.workspace_root, workspace):
                _bring_along(standing, workspace, say)


def _records(known: formats.Ours, old: str, workspace: Path) -> Iterator[Standing]:
    """The record where it was; or here already, if the move of it was cut short."""
    registry = loops.registry_of()
    for home in (registry.home(Path(old)), registry.home(workspace)) if is_name(known.loop) else ():
        found = standing_of(LoopFolder(home / known.loop))
        if found is None or found.trouble or found.loop.dialect is None or found.loop.worktree:
            continue
        same = (found.loop.uid, found.loop.workspace, found.loop.dialect.words.get(creating.INODE))
        if same == (known.uid, old, creating.inode_of(workspace)):
            yield found


def _bring_along(standing: Standing, workspace: Path, say: Say) -> None:
    old, loop = standing.folder, standing.folder.with_secrets(standing.loop)
    if standing.alive:
        raise UserError(f"{loop.id} is still at work for {loop.workspace}", hint="try again in a moment", exit_code=8)
    new = LoopFolder(loops.registry_of().home(workspace) / old.name)
    make_private(new.home)
    if new != old:
        old.path.rename(new.path)
        with suppress(OSError):  # other loops are in it
            old.home.rmdir()
    assert loop.dialect  # noqa: S101 - the caller has looked
    wanted = creating.request(contract_of(loop.dialect.words), workspace)
    spoken = replace(loop.dialect, words=wanted.words)
    here = replace(loop, workspace=str(workspace), template=wanted.template, dialect=spoken)
    changing.change(replace(standing, folder=new, loop=here), here, say, finished=True)
    say(f"{loop.id} goes on here; {loop.workspace} was renamed")


def take_over(task: Task, trust: Trust, say: Say) -> Task:
    """A copy, or a folder of another machine, becomes a task of ours; what its files say counts as said, no more.

    Nothing of it runs before a person agrees. The files that came stay beside those that are made from the new record.
    """
    if task.standing or is_inside_a_round() or not tasks.can_make(task.workspace):
        return task
    tasks.refuse_foreign(task)
    made, claims = _contract(task.now), [*_claims(task)]
    creating.create(task.workspace, made, trust, say, force=True)
    found = tasks.find(task.state_path)
    if found.standing:
        recording.record_all(found.standing, claims, say)
    say(f"{task.id} came with its folder: {len(claims)} iterations, as its files say; no stop check has run here")
    return tasks.find(task.state_path)


def _contract(now: document.State) -> Contract:
    """What is to be done. Which program does it, and what that may do, is for a person to say."""
    checks, limits, supervisor = now.stop_checks, now.limits, now.supervisor
    said = {
        "task": now.task.id,
        "goal": now.goal,
        "stop_condition": now.global_stop_condition,
        "mode": now.operating_mode,
        "evidence": now.success_evidence,
        "blocker": now.blocker_definition,
        "commands": [each.command for each in checks.commands],
        "paths": [each.path for each in checks.paths_exist],
        "texts": [f"{each.path}::{each.pattern}" for each in checks.text_patterns],
        "max_iterations": limits.max_iterations,
        "max_no_progress": limits.max_no_progress_rounds,
        "context_chars": limits.max_context_chars,
        "budget": supervisor.max_rounds_per_invocation,
        "max_failures": supervisor.max_consecutive_failures,
        "sandbox": "read-only" if supervisor.sandbox == "read-only" else contract.SANDBOXES[1],
        "in_sandbox": True,
    }
    try:
        return contract.checked(msgspec.convert(said, Contract))
    except msgspec.ValidationError as error:
        raise tasks.unreadable(now.path, str(error)) from None


def _claims(task: Task) -> Iterator[IterationRecorded]:
    data = read_inside(task.workspace, paths.of(task.id, paths.ITERATIONS), _BIGGEST) or b""
    for line in data.splitlines()[:_MOST]:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            entry = document.entry_of(msgspec.json.decode(line, type=formats.IterationLine).entry)
            at = entry.at if entry.at.year > 1 else datetime.now(UTC)
            yield IterationRecorded(record=os.urandom(8).hex(), at=at, by=_BY, claim=entry.claim)
