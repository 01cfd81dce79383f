"""Which tasks there are, which one is meant, and whether it may be written from here."""

import errno
import os
import re
import shlex
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE, CommandCheck, PathCheck, TextCheck
from bydawn.dialects.strict_agent_loop import DIALECT, document, paths
from bydawn.dialects.strict_agent_loop.document import State, StopReport
from bydawn.dialects.strict_agent_loop.files import task_of
from bydawn.dialects.strict_agent_loop.paths import NAME
from bydawn.operations.dialects import loops
from bydawn.operations.preconditions import checked_workspace, is_inside_a_round
from bydawn.store.registry import Standing
from bydawn.system.reading import read_inside

EXIT_NOT_FOUND = 1
_BIGGEST = 4 << 20  # bytes of a state.json; ours stay far below
_PLACE = re.compile(r"(.*)/\.codex-loop/tasks/([A-Za-z0-9-]+)/state\.json", re.DOTALL)
_SKILL = "skill_name"
_OPTIONS = {CommandCheck: "--stop-command", PathCheck: "--require-path", TextCheck: "--require-text"}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task, as it is known here."""

    workspace: Path
    id: str
    standing: Standing | None  # None: another program's, or seen from a sandbox, which cannot write to its ledger
    document: State | None  # as its file says; None if that cannot be read

    @property
    def state_path(self) -> str:
        return f"{self.workspace}/{paths.of(self.id, paths.STATE)}"

    @property
    def is_ours(self) -> bool:
        return self.standing is not None or (self.document is not None and self.document.bydawn is not None)

    @property
    def uid(self) -> str:
        """What marks the processes of its rounds."""
        if self.standing:
            return self.standing.loop.uid
        return self.document.bydawn.uid if self.document and self.document.bydawn else ""

    @property
    def flags(self) -> str:
        return f"--workspace-root {shlex.quote(str(self.workspace))} --task-id {self.id}"

    @property
    def now(self) -> State:
        """What is true of it: by its ledger if that can be seen, else by its file."""
        if self.standing:
            if self.standing.trouble:
                raise self.standing.trouble
            return document.state_of(self.standing.loop, self.standing.state)
        if self.document is None:
            raise unreadable(self.state_path)
        return self.document


def workspace_of(path: str | None) -> Path:
    """The folder that a person named, or the current one."""
    there = Path(os.path.expanduser(path or "."))  # noqa: PTH111 - as it is where there is no such user
    return checked_workspace(there, "give the root of the repository: --workspace-root PATH")


def every(workspace: Path) -> list[Task]:
    """The tasks of a workspace: ours, the oldest first, then those of other programs."""
    ours: dict[str, Standing] = {}
    for each in sorted(loops.in_workspace(DIALECT, workspace), key=lambda each: (each.alive, each.loop.created_at)):
        if not each.state.dismissed:
            ours[task_of(each.loop)] = each
    found = [_task(workspace, name, each) for name, each in ours.items()]
    states = (workspace / paths.TASKS).glob(f"*/{paths.STATE}")
    listed = {path.parent.name for path in states if _PLACE.fullmatch(str(path))}  # not what --force kept
    return found + [_task(workspace, name, None) for name in sorted(listed - ours.keys())]


def find(state: str | None, workspace: str | None = None, task: str | None = None) -> Task:
    """The task that is meant: by the path of its state, by its id, or the only one that is not over here."""
    workspace, task = place_of(state, workspace, task)
    if state and workspace and not Path(workspace).is_dir():
        raise unreadable(state, f"there is no folder {workspace}")
    folder = workspace_of(workspace)
    if task is not None:
        return _existing(folder, task)
    found = [each for each in every(folder) if each.is_ours and _is_open(each)]
    if len(found) == 1:
        return found[0]
    if not found:
        place = f"--workspace-root {shlex.quote(str(folder))}"
        hint, cause = f"`{NAME} list-tasks {place}` shows all of them", "all of them have ended"
        if not every(folder):
            hint, cause = (
                f'make one: `{NAME} init-state {place} --goal "…" --global-stop-condition "…"`',
                "there is none",
            )
        raise UserError(f"no task is running in {folder}", cause=cause, hint=hint, exit_code=EXIT_NOT_FOUND)
    rows = "".join(f"\n  {each.id}: {_one_line(each.now.goal)}" for each in found)
    raise UserError(
        "which task?", cause=f"{len(found)} are not over here:{rows}", hint=f"add --task-id {found[-1].id}", exit_code=2
    )


def place_of(state: str | None, workspace: str | None, task: str | None) -> tuple[str | None, str | None]:
    """A workspace and a task's id; the path of a state stands for both."""
    if state is None:
        return workspace, task
    place = _PLACE.fullmatch(os.path.abspath(os.path.expanduser(state)))  # noqa: PTH100, PTH111 - links in it stay
    if place is None:
        hint = f"it is .codex-loop/tasks/<task-id>/state.json in the workspace; `{NAME} list-tasks` shows the paths"
        raise UserError(f"{state} is not the state of a task", cause="a task has one place", hint=hint)
    if task not in (None, place[2]):
        cause = f"--state names {place[2]}"
        raise UserError(f"{task} is another task", cause=cause, hint="give only one of --state and --task-id")
    return place[1], place[2]


def registry_path(workspace: Path) -> str:
    return f"{workspace}/{paths.REGISTRY}"


def can_make(workspace: Path) -> bool:
    """Can a new loop be made from here?"""
    home = loops.registry_of().home(workspace)
    there = next(each for each in (home, *home.parents) if each.exists())
    try:
        probe = there / f".bydawn-{os.urandom(6).hex()}.tmp"
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        probe.unlink()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):  # that is not a sandbox
            raise
        return False
    return True


def of_another_path(workspace: Path) -> list[State]:
    """What files here say of tasks whose workspace had another path: it was renamed, or this is a copy."""
    found = []
    for path in sorted((workspace / paths.TASKS).glob(f"*/{paths.STATE}")):
        with suppress(UserError):
            found.append(read_state(workspace, path.parent.name))
    return [now for now in found if now.bydawn and now.workspace_root != str(workspace)]


def last_report(workspace: Path, now: State) -> StopReport:
    """The stop report that is on disk, or one that knows of no check yet."""
    with suppress(UserError, msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        data = read_inside(workspace, paths.of(now.task.id, paths.STOP_REPORT), _BIGGEST)
        return document.fresh(msgspec.json.decode(data or b"", type=StopReport), now)
    return document.stop_report(now, (), datetime.now(UTC))


def refuse_foreign(task: Task) -> None:
    """Files of another program are read, never written; and a round of another loop records nothing here."""
    if task.is_ours:
        uid = os.environ.get(COOKIE, "").partition(".")[0]
        if is_inside_a_round() and uid and task.uid not in ("", uid):
            raise UserError(
                "this is a round of another loop",
                cause=f"{task.id} is not the task that it works on",
                hint=f"record what you do under your own task: `{NAME} list-tasks`",
            )
        return
    if task.document is None:
        raise unreadable(task.state_path)
    again = f"{NAME} init-state --workspace-root {shlex.quote(str(task.workspace))} --task-id {task.id}-2"
    if goal := task.document.goal:
        again += f" --goal {shlex.quote(_one_line(goal))}"
    if stop := task.document.global_stop_condition:
        again += f" --global-stop-condition {shlex.quote(_one_line(stop))}"
    again += f" --operating-mode {task.document.operating_mode}{_options(task.document)}"
    cause = f"{task.state_path} was written by another program; it is only shown here"
    raise UserError(
        f"{task.id} is a task of another program", cause=cause, hint=f"start beside it: `{again}`", exit_code=1
    )


def _options(now: State) -> str:
    checks = document.checks_of(now)
    return "".join(f" {_OPTIONS[type(check)]} {shlex.quote(check.as_text)}" for check in checks)


def refuse_foreign_supervisor(task: Task) -> None:
    """Another program may be at work on it right now; or an agent wrote this, so no command here ends a process."""
    path = paths.of(task.id, "supervisor.lock")
    if pid := loops.named_by_another(task.workspace, path):
        raise UserError(
            "another supervisor may be at work",
            cause=f"{task.workspace}/{path} names process {pid}, which is alive",
            hint=f"`ps -fp {pid}` says what it is; if no supervisor: `rm {shlex.quote(f'{task.workspace}/{path}')}`",
            exit_code=8,
        )


def unreadable(path: str, why: str = "it is not a state of a task") -> UserError:
    hint = f"`{NAME} list-tasks` shows the tasks of this workspace"
    return UserError(f"{path} cannot be read", cause=why, hint=hint, exit_code=EXIT_NOT_FOUND)


# -- what is on disk ---------------------------------------------------------------------------------------------------


def _existing(workspace: Path, name: str) -> Task:
    ours = [each for each in loops.in_workspace(DIALECT, workspace) if task_of(each.loop) == name]
    task = _task(workspace, name, ours[-1] if ours else None)
    if task.standing is None and not os.path.lexists(task.state_path):
        hint = f"`{NAME} list-tasks --workspace-root {shlex.quote(str(workspace))}` shows all of them"
        cause = f"there is no {task.state_path}"
        raise UserError(f"there is no task {name}", cause=cause, hint=hint, exit_code=EXIT_NOT_FOUND)
    if task.standing is None:
        read_state(workspace, name)  # says why, if it cannot be read
    return task


def _task(workspace: Path, name: str, standing: Standing | None) -> Task:
    """In a sandbox its ledger may be seen; what the session has recorded since is only in its files."""
    found = None
    with suppress(UserError):
        found = read_state(workspace, name)
    if standing and found and not _is_writable(standing):
        standing = None
    return Task(workspace=workspace, id=name, standing=standing, document=found)


def read_state(workspace: Path, name: str) -> State:
    """A state.json; whatever is wrong with it is said."""
    path = paths.of(name, paths.STATE)
    where = f"{workspace}/{path}"
    if Path(where).is_symlink():
        raise unreadable(where, "it is a link")
    data = read_inside(workspace, path, _BIGGEST)
    if data is None:
        raise unreadable(where, "there is no such file")
    try:
        found: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        if _SKILL not in found:
            raise unreadable(where)
        read = msgspec.convert(found, State)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise unreadable(where, str(error).partition(" - ")[0]) from None
    if read.task.id != name:
        raise unreadable(where, f"it is the state of {read.task.id}")
    return read


def _is_open(task: Task) -> bool:
    return not (task.standing and task.standing.trouble) and task.now.status == "running"


def _is_writable(standing: Standing) -> bool:
    """A sandbox may let us read it and no more; only trying tells."""
    try:
        os.close(os.open(standing.folder.lock, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _one_line(text: str) -> str:
    return " ".join(text.split())[:120]
