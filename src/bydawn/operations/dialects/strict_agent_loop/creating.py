"""Make a task, or change one that has not begun."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.options import options_of
from bydawn.dialects.follower import refuse_unwritable
from bydawn.dialects.seam import Start
from bydawn.dialects.strict_agent_loop import DIALECT, arguments, contract, paths
from bydawn.dialects.strict_agent_loop.contract import Contract, contract_of
from bydawn.dialects.strict_agent_loop.paths import NAME
from bydawn.operations import prepare, steer
from bydawn.operations.dialects import begin, loops
from bydawn.operations.dialects.begin import Trust
from bydawn.operations.dialects.strict_agent_loop import sandboxed, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.registry import Standing
from bydawn.system.paths import open_parent, regular_at

Say = Callable[[str], None]
_LISTS = ("evidence", "commands", "paths", "texts")
_AT_ONCE = 20  # tasks that one command takes in; more come with the next one
_LONGEST = 64 << 10  # bytes of a contract
_BAD = "init.bad"
INODE = "inode"  # of the workspace, among the words of a loop
_CONTRACTS = msgspec.json.Decoder(Contract)
_OPTIONS = {name: option.flag for name, option in options_of(Contract).items()}
_REQUIRED = {name: _OPTIONS[name] for name in ("goal", "stop_condition")}


def init(
    workspace: Path, task: str | None, given: Mapping[str, Any], trust: Trust, say: Say, *, force: bool = False
) -> Task:
    """A new task; or, if it has not begun, the same one with what is given added or changed (S-014, S-020)."""
    refuse_inside_a_round()
    given = {key: tuple(dict.fromkeys(value)) if key in _LISTS else value for key, value in given.items()}
    name = contract.task_id(task) if task is not None else None
    if name and (found := _known(workspace, name)):
        tasks.refuse_foreign(found)
        if not force:
            return _again(found, given, trust)
    made = _contract(workspace, name, given)
    if not tasks.can_make(workspace):
        if os.path.lexists(workspace / paths.root(made.task)):  # to keep it beside the new one is for a person outside
            cause = f"{workspace / paths.root(made.task)} is there, and a sandbox replaces nothing"
            raise UserError(f"{made.task} is taken", cause=cause, hint="give another --task-id", exit_code=1)
        return sandboxed.create(workspace, contract.from_sandbox(made), say)
    _refuse_foreign_folder(workspace, made.task, force=force)
    create(workspace, made, trust, say, force=force)
    return tasks.find(None, str(workspace), made.task)


def take_in(workspace: Path, trust: Trust, say: Say) -> None:
    """Make loops of the tasks that sandboxed sessions made here; what those would run waits for a person."""
    found = sorted((workspace / paths.TASKS).glob(f"*/{paths.DROP}/{paths.CONTRACT}"))
    for path in found[:_AT_ONCE]:
        inside = str(path.relative_to(workspace))
        try:
            with open_parent(workspace, inside) as (folder, name):
                _take(workspace, path.parent.parent.name, folder, name, trust, say)
        except (OSError, UserError) as error:  # the others are taken
            hint = f"; {error.hint}" if isinstance(error, UserError) else ""
            say(f"{inside} was not taken in: {error}{hint}")


def _take(workspace: Path, task: str, folder: int, name: str, trust: Trust, say: Say) -> None:
    try:
        with regular_at(folder, name) as fd:
            made = contract.from_sandbox(contract.checked(_CONTRACTS.decode(os.read(fd, _LONGEST))))
        if made.task != task or contract.task_id(task) != task:
            raise ValueError(f"it is about {made.task}")
    except (OSError, UserError, ValueError, RecursionError) as error:
        os.replace(name, _BAD, src_dir_fd=folder, dst_dir_fd=folder)
        say(f"{task}/{paths.DROP}/{name} is not the contract of a task ({error}); it is kept as {_BAD}")
        return
    if not _ours(workspace, task):
        if os.path.lexists(workspace / paths.of(task, paths.STATE)):
            tasks.refuse_foreign(tasks.find(None, str(workspace), task))
        create(workspace, made, trust, say, force=False)
    os.unlink(name, dir_fd=folder)


def changed(standing: Standing, new: Contract, trust: Trust) -> None:
    """The same loop under a changed contract."""
    workspace = Path(standing.loop.workspace)
    wanted = request(new, workspace)
    begin.change(DIALECT, standing, wanted, begin.agreed(DIALECT, wanted, workspace, trust))


def has_begun(standing: Standing) -> bool:
    """Was anything done for it, or recorded?"""
    state = standing.state
    return bool(state.round or state.records.iterations) or standing.finished


# -- one task ----------------------------------------------------------------------------------------------------------


def _again(found: Task, given: Mapping[str, Any], trust: Trust) -> Task:
    standing = found.standing
    if standing is None:
        raise _exists(found, "its record cannot be changed from here")
    if standing.trouble:
        raise standing.trouble
    assert standing.loop.dialect  # noqa: S101 - it is a task of ours
    before = contract_of(standing.loop.dialect.words)
    agrees = before.in_sandbox and {key for key, value in given.items() if value} == {"commands"}
    if standing.alive or (has_begun(standing) and not agrees):
        raise _exists(found, "it has begun")
    more = {key: tuple(dict.fromkeys((*getattr(before, key), *given[key]))) for key in _LISTS if given.get(key)}
    if before.in_sandbox and given.get("commands"):
        more["commands"] = given["commands"]  # a person has said which of them may run
    fields = {key: value for key, value in given.items() if value not in (None, (), "")} | more
    after = contract.checked(replace(before, **fields, in_sandbox=before.in_sandbox and not given.get("commands")))
    changed(standing, after, trust)
    return tasks.find(None, str(found.workspace), found.id)


def _exists(found: Task, why: str) -> UserError:
    hint = f"go on with it: `{NAME} show-task {found.flags}`; or `--force` starts again and keeps the old one beside it"
    return UserError(f"there is a task {found.id} already", cause=why, hint=hint, exit_code=1)


def _contract(workspace: Path, name: str | None, given: Mapping[str, Any]) -> Contract:
    if missing := [option for key, option in _REQUIRED.items() if given.get(key) is None]:
        raise UserError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            cause="a task does not begin before its goal and its end are clear",
            hint=f"`{_completed(workspace, name, given, missing)}`",
        )
    stamp = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    fields = {key: value for key, value in given.items() if value is not None}
    return contract.checked(Contract(task=name or contract.id_from(given["goal"], stamp), **fields))


def _completed(workspace: Path, name: str | None, given: Mapping[str, Any], missing: list[str]) -> str:
    """The command line that was typed, with what it lacks."""
    words = ["--workspace-root", str(workspace), *(["--task-id", name] if name else [])]
    for key, option in _OPTIONS.items():
        value = given.get(key)
        values = value if isinstance(value, tuple) else () if value in (None, False) else (value,)
        for each in values:
            words += [option] if each is True else [option, str(each)]
    return " ".join([f"{NAME} init-state", shlex.join(words), *(f'{option} "…"' for option in missing)])


def create(workspace: Path, made: Contract, trust: Trust, say: Say, *, force: bool) -> None:
    wanted = request(made, workspace)
    gathered = begin.agreed(DIALECT, wanted, workspace, trust)
    if force:
        _set_aside(workspace, made.task, say)
    with begin.secured(DIALECT, wanted, gathered, workspace) as planned:
        for warning in planned.warnings:
            say(warning)
        prepare.prepare(planned)


def request(made: Contract, workspace: Path) -> Start:
    """The loop of a task, and which folder is its workspace, so that a renamed one is known again."""
    wanted = arguments.start(made, str(workspace), _command())
    return replace(wanted, words=wanted.words | {INODE: inode_of(workspace)})


def inode_of(workspace: Path) -> str:
    return str(workspace.stat().st_ino)


def _command() -> str:
    """Our own command, for a shell that has another PATH."""
    beside = Path(sys.executable).with_name(NAME)
    return shlex.quote(str(beside)) if beside.exists() else NAME


def _set_aside(workspace: Path, name: str, say: Say) -> None:
    """The old task stays beside the new one; its loop is out of the list."""
    refuse_unwritable(workspace, [paths.of(name, paths.STATE)])  # nothing is moved outside
    for each in _ours(workspace, name):
        if each.alive:
            raise UserError(
                f"{name} is running",
                cause="it cannot be replaced now",
                hint="stop its supervisor first: Ctrl-C",
                exit_code=8,
            )
        if each.state.stopped and not each.state.dismissed:
            steer.dismiss(each)
    folder = workspace / paths.root(name)
    if os.path.lexists(folder):
        numbers = (number for number in range(1, 10_000) if not os.path.lexists(f"{folder}.{number}"))
        aside = folder.rename(f"{folder}.{next(numbers)}")
        say(f"the old {name} is kept as {aside}")


def _refuse_foreign_folder(workspace: Path, name: str, *, force: bool) -> None:
    folder = workspace / paths.root(name)
    if os.path.lexists(folder) and not _ours(workspace, name) and not force:
        cause = f"{folder} is there, and no task of ours wrote it"
        raise UserError(f"the folder of {name} is taken", cause=cause, hint="give another --task-id", exit_code=1)


def _ours(workspace: Path, name: str) -> list[Standing]:
    from bydawn.dialects.strict_agent_loop.files import task_of

    found = loops.in_workspace(DIALECT, workspace)
    return [each for each in found if task_of(each.loop) == name and not each.state.dismissed]


def _known(workspace: Path, name: str) -> Task | None:
    is_there = _ours(workspace, name) or os.path.lexists(workspace / paths.of(name, paths.STATE))
    return tasks.find(None, str(workspace), name) if is_there else None
