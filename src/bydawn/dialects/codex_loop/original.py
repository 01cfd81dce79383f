"""A project of the original program: what its `state.json` says, and which process its other files name."""

import re
from collections.abc import Collection
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import LoopAdopted
from bydawn.core.text import plain, shorten
from bydawn.dialects.codex_loop.config import CODEX, NAME, STATE

_MOST = 10**6  # iterations; more is a mistake
_SESSION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HIGHEST_PID = 1 << 22  # that Linux gives


class _Task(msgspec.Struct, frozen=True):
    status: str = ""
    session_id: str | None = None


class _Meta(msgspec.Struct, frozen=True):
    source_prompt: str | None = None
    iteration: int = 0
    overall_status: str = ""
    worktree_path: str | None = None
    worktree_branch: str | None = None


class Original(msgspec.Struct, frozen=True):
    """What we need of the file; everything else is kept in the copy of it."""

    meta: _Meta
    tasks: dict[str, _Task] = {}
    bydawn: dict[str, Any] | None = None  # only a file of our own has it


def read(text: str) -> Original:
    """The state of a project; refused if it is something else, or damaged: what is done would be done once more."""
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
        if "skill_name" in found and "meta" not in found:
            raise UserError(
                f"{STATE} belongs to strict-agent-loop",
                cause=f"a task of its older layout is in it, and {NAME} has a file of that name",
                hint="finish that task first, or move the file away",
            )
        state = msgspec.convert(found, Original)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(str(error)) from None
    meta = state.meta
    if not 0 <= meta.iteration <= _MOST:
        raise _damaged(f"meta.iteration is {meta.iteration}")
    if any(plain(text) != text for text in (meta.worktree_path or "", meta.worktree_branch or "")):
        raise _damaged("meta.worktree_path or meta.worktree_branch has control characters")
    return state


def _damaged(cause: str) -> UserError:
    hint = f"fix it; or move it away, and `{NAME} run` begins with the first task"
    return UserError(f"{STATE} cannot be taken over", cause=cause, hint=hint)


def adopted(state: Original, ids: Collection[str]) -> tuple[LoopAdopted, list[str]]:
    """What it had done of these tasks, and what a person should know about that."""
    tasks = {name: task for name, task in state.tasks.items() if name in ids}
    done = tuple(name for name, task in tasks.items() if task.status == "done")
    open_ = {name: task for name, task in tasks.items() if name not in done}
    sessions = {name: id_ for name, task in open_.items() if (id_ := task.session_id) and _SESSION.fullmatch(id_)}
    blocked = [name for name, task in open_.items() if task.status == "blocked"]
    status = shorten(plain(state.meta.overall_status), 40)
    source = f"{STATE}: {status or 'unknown'} at iteration {state.meta.iteration}"
    remarks = [f"took over {source}; its copy is beside it"]
    if done:
        remarks.append(f"{_tasks(done)} done by its word alone; nothing here has proven it")
    if blocked:
        remarks.append(f"{_tasks(blocked)} blocked there; tried again now")
    fact = LoopAdopted(source=source, rounds=state.meta.iteration, agent=CODEX, done=done, sessions=sessions)
    return fact, remarks


def _tasks(names: Collection[str]) -> str:
    told = ", ".join(shorten(plain(name), 60) for name in [*names][:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{told}{more}:"


def pid_of(data: bytes) -> int:
    """The process that `run.lock` or `daemon.json` names, as a number or in JSON; 0 if it names none."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return 0
    pid = found.get("pid") if isinstance(found, dict) else found
    return pid if type(pid) is int and 0 < pid <= _HIGHEST_PID else 0
