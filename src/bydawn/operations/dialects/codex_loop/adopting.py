"""Take over a project of the original program: its numbers, its finished tasks, its sessions and its worktree."""

import os
from pathlib import Path

import msgspec

from bydawn.core import task_folder
from bydawn.core.errors import UserError
from bydawn.core.facts import LoopAdopted
from bydawn.core.loop import Worktree
from bydawn.dialects import follower
from bydawn.dialects.codex_loop import original
from bydawn.dialects.codex_loop.config import DAEMON, LOCK, METRICS, SCHEMA, STATE, Config
from bydawn.dialects.codex_loop.original import Original
from bydawn.operations.dialects import loops
from bydawn.store import watches
from bydawn.system import kernel
from bydawn.system.git import Git
from bydawn.system.reading import read_folder, read_inside, read_text

_LONGEST = 1 << 14  # bytes of a lock


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop of ours goes on from."""

    fact: LoopAdopted
    branch: str = ""  # its branch, if that is still there, …
    worktree: Worktree | None = None  # … and its worktree, if that is too
    source_prompt: str = ""
    remarks: tuple[str, ...] = ()


def refuse_live_original(root: Path) -> None:
    """The original knows nothing of our lock. What a loop of ours wrote there says nothing."""
    for path in (LOCK, DAEMON):
        pid = original.pid_of(_bytes(root, path))
        watch = watches.of(loops.registry_of(), root) if pid else None
        is_ours = loops.wrote(root, path) or (watch is not None and watch.pid == pid)
        if pid and kernel.is_alive(pid) and not is_ours:
            raise UserError(
                "the original codex-loop may be running here",
                cause=f"{path} names process {pid}, which is alive",
                hint=f"stop it first; if that process is something else, remove {path}",
                exit_code=8,
            )


def left(root: Path) -> Original | None:
    """What the original left here; None if it has never run, or if the file is a loop's of ours."""
    if (text := read_text(root, STATE)) is None or loops.wrote(root, STATE):
        return None
    state = original.read(text)
    known = {each.loop.uid for each in loops.registry_of().in_workspace(root)}
    return None if (state.bydawn or {}).get("uid") in known else state


def make_room(root: Path) -> None:
    """Keep beside a new loop's files what is in their place."""
    files = (STATE, METRICS, SCHEMA)
    there = [path for path in files if os.path.lexists(root / path) and not loops.wrote(root, path)]
    for path in there:
        follower.keep(root, path)
    follower.remove(root, there)


def adopt(root: Path, config: Config) -> Adoption | None:
    """What a loop of ours can go on from; what the file says of a worktree is only believed if git knows it too."""
    if (state := left(root)) is None:
        return None
    listed = task_folder.read(read_folder(root, config.tasks.source_dir) or {})
    fact, remarks = original.adopted(state, {task.id for task in listed.items})
    branch, path, wanted = state.meta.worktree_branch or "", state.meta.worktree_path or "", config.execution.worktree
    found = None
    if not wanted.enabled:
        branch = ""
    elif branch and not (branch.startswith(wanted.branch_prefix) and _is_branch(root, branch)):
        remarks.append(f"its branch {branch} is gone, or does not begin with {wanted.branch_prefix}: a new one begins")
        branch = ""  # commits go there, so it is not just any branch that a file names
    elif branch and (found := _worktree(root, branch, path)) is None:
        remarks.append(f"its worktree is gone, or on another branch: {branch} goes on in a new one")
    source = state.meta.source_prompt or ""
    return Adoption(fact=fact, branch=branch, worktree=found, source_prompt=source, remarks=tuple(remarks))


def _worktree(root: Path, branch: str, path: str) -> Worktree | None:
    """The worktree at that path, if it is one of this repository and on that branch; never the one a person is in."""
    git = Git(folder=root, seconds=20)
    listed, prefix = git.answer("worktree", "list", "--porcelain", "-z"), git.answer("rev-parse", "--show-prefix")
    for entry in (listed or "").split("\0\0")[1:]:  # the first is the repository's own
        rows = dict(row.partition(" ")[::2] for row in entry.split("\0"))
        top = rows.get("worktree", "")
        is_meant = rows.get("branch") == f"refs/heads/{branch}" and os.path.realpath(path) == os.path.realpath(top)
        if is_meant and not root.is_relative_to(top):
            folder = Path(top, (prefix or "").removesuffix("\n"))
            return Worktree(branch=branch, path=top, folder=str(folder)) if folder.is_dir() else None
    return None


def _is_branch(root: Path, branch: str) -> bool:
    git = Git(folder=root, seconds=20)
    return git.answer("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}") is not None


def _bytes(root: Path, path: str) -> bytes:
    try:
        return read_inside(root, path, _LONGEST) or b""
    except UserError:  # a folder, a link, far too long: no lock of the original
        return b""
