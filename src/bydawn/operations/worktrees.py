"""The worktree of a loop: planned before anything is written, made when the loop first runs, removed once merged."""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop, Worktree
from bydawn.core.state import LoopState
from bydawn.core.text import shorten
from bydawn.core.values import Act, Advice, Next
from bydawn.operations.amounts import plural
from bydawn.operations.clean import STARTED, alone, why_not
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.registry import Standing
from bydawn.worktree import branches
from bydawn.worktree.commits import Place

FOLDER = ".bydawn-worktrees"  # beside the repository
_NAMED = 5
_GONE = "it was removed before"


def planned(loop: Loop, branch: str = "", folder: str = "", others: Iterable[Standing] = ()) -> Worktree:
    """Where the agent of a new loop will work. Raises `UserError`; writes nothing."""
    place, branch = branches.repository(Path(loop.workspace)), branch or f"bydawn/{loop.id}"
    if not branches.is_name(place.git, branch):
        cause = "git does not accept it as the name of a branch"
        raise UserError(f"--worktree={branch!r} cannot be a branch", cause=cause, hint="for example: --worktree=night")
    top = Path(place.top)
    found = loop.worktree.path if loop.worktree else ""  # another program has made it
    path = Path(found) if found else top.parent / (folder or FOLDER) / top.name / branch.replace("/", "-")
    path = Path(os.path.realpath(path))  # as git names it, and as a box can have it
    tree = Worktree(branch=branch, path=str(path), folder=str(path / place.prefix))
    _refuse_shared(tree, others)
    mine = branches.refuse_taken(place.git, tree)
    _refuse_lacking(loop, place, branch if branches.exists(place.git, branch) else "HEAD")
    nearest = next(each for each in path.parents if each.exists())
    if not mine and not os.access(nearest, os.W_OK | os.X_OK):
        cause = f"{nearest} cannot be written"
        raise UserError(f"the worktree {path} cannot be made", cause=cause, hint="make that folder writable")
    return tree


def _refuse_shared(tree: Worktree, others: Iterable[Standing]) -> None:
    for each in others:
        if each.loop.worktree and each.loop.worktree.path == tree.path and not each.finished:
            raise UserError(
                f"the loop {each.loop.id} has the worktree {tree.path}",
                cause=f"it {each.status.words} and is not finished",
                hint=Advice(
                    "continue it with ", Act("resume", each.reference), ", or give another name: --worktree=BRANCH"
                ),
            )


def _refuse_lacking(loop: Loop, place: Place, revision: str) -> None:
    """What the agent needs has to be in the commit that it starts from."""
    wanted = {"the folder ": "", "the task file ": "" if loop.task_folder else loop.tasks, "": loop.opinions}
    for what, path in wanted.items():
        full = os.path.normpath(f"{place.prefix}{path}") if path is not None else ""
        if full not in ("", ".") and not branches.has(place.git, revision, full):
            where = "the last commit" if revision == "HEAD" else f"the branch {revision}"
            raise UserError(
                f"{what}{full} is not in {where}",
                cause="the worktree starts from there, so its agent would not have it",
                hint="commit it first, or drop --worktree",
            )


def remarks(loop: Loop) -> list[str]:
    """What a person should know before it starts."""
    status, branch = branches.repository(Path(loop.workspace)).status()
    changed = sum(letter != b"?" for letter in status.values())
    rows = []
    if changed:
        has = "has changes" if changed == 1 else "have changes"
        rows.append(f"{plural(changed, 'file')} here {has} that are not committed, so they are not in the worktree")
    if branch == b"(detached)":
        rows.append("no branch is checked out here (detached HEAD): check one out before you merge the loop's work")
    return rows


def ready(loop: Loop, state: LoopState, say: Callable[[str], None]) -> bool:
    """Make the worktree, or find it as it was left; does it have uncommitted work from before the first run?"""
    tree, first = loop.worktree, not state.runs
    if tree is None:
        return False
    place = branches.repository(Path(loop.workspace))
    try:
        made = branches.attach(place.git, tree)
    except OSError as error:
        cause, hint = f"{error.filename}: {error.strerror}", "fix that, then try again"
        raise UserError(f"the worktree {tree.path} cannot be made", cause=cause, hint=hint) from error
    if branches.leads_elsewhere(place, tree):
        raise UserError(
            f"{tree.path}/.git leads to another repository",
            cause="an agent or a check may have changed it, and git would run the hooks of that one",
            hint=f"look at it; `git worktree repair {shlex.quote(tree.path)}` puts it right",
        )
    if not Path(tree.folder).is_dir():
        cause = f"the branch {tree.branch} does not have it"
        raise UserError(f"there is no folder {tree.folder}", cause=cause, hint="commit it on that branch")
    if made:
        say(f"made a worktree {made}")
    if made and branches.lacks(tree, state.commit):
        back = f"`git -C {shlex.quote(tree.path)} reset --hard {state.commit[:12]}`"
        say(f"earlier work of this loop is not in it, so what is done may be missing; {back} brings it back")
    if made or first:
        _bring(loop, place, tree, say)
    found = first and not made and branches.is_dirty(tree)
    if found:
        say("the worktree has changes that are in no commit; they become the loop's first commit")
    return found


def _bring(loop: Loop, place: Place, tree: Worktree, say: Callable[[str], None]) -> None:
    """Files that git does not have."""
    copied, left = branches.include(place, tree)
    if copied:
        say(f"copied {plural(copied, 'ignored file')} into it, named by {branches.INCLUDED}")
    if left:
        say(f"could not copy all that {branches.INCLUDED} names: {_few(left)}")
    own = (*loop.dialect.files, dialects.TABLE[loop.dialect.name].config) if loop.dialect else ()
    read = {path.split("/")[0] for path in (*own, loop.tasks or "")}  # in the project
    if names := [name for name in branches.absent(place, tree) if name not in read]:
        say(f"not in the worktree, because git does not have it: {_few(names)}")


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(shorten(name, 60) for name in names[:_NAMED]) + more


def absent(loop: Loop) -> list[str]:
    """Names at the top of the project that the loop's worktree does not have, because git does not have them."""
    place = Place.around(Path(loop.workspace))
    return branches.absent(place, loop.worktree) if place and loop.worktree else []


def merge_command(loop: Loop) -> str:
    """Typed in the project, it brings the loop's work."""
    return shlex.join(["git", "merge", loop.worktree.branch]) if loop.worktree else ""


def merge_steps(standing: Standing) -> list[Next]:
    """How to bring the work of a loop that does not run into the person's own branch."""
    loop, state = standing.loop, standing.state
    if loop.worktree is None or standing.alive or not Path(loop.worktree.path).is_dir():
        return []
    steps = []
    if state.uncommitted:
        look = shlex.join(["git", "-C", loop.worktree.path, "status"])
        steps.append(Next(command=look, why="what is not committed there, so a merge does not bring it"))
    if state.commit:
        merge = shlex.join(["git", "-C", loop.workspace, "merge", loop.worktree.branch])
        steps.append(Next(command=merge, why="bring its work into your branch"))
    return steps


def in_the_way(loop: Loop) -> str:
    """Why git would refuse to merge the loop's work into the project as it is now; empty if it would not."""
    place = Place.around(Path(loop.workspace)) if loop.worktree else None
    try:
        files = branches.in_the_way(place, loop.worktree.branch) if place and loop.worktree else []
    except UserError:  # no such branch, or git takes too long
        return ""
    return f"before you merge, commit or move away what the branch has too: {_few(files)}" if files else ""


# -- the end -----------------------------------------------------------------------------------------------------------


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """The worktree of a loop that is removed, or would be."""

    loop: str
    worktree: Worktree
    kept: str  # why it is not


def clean(loops: Iterable[Standing], every: Sequence[Standing], *, named: bool, apply: bool) -> Iterator[Removal]:
    """Each worktree of a finished or dismissed loop, and its branch once that is merged; never what would be lost."""
    if apply:
        refuse_inside_a_round()
    for each in loops:
        why = why_not(each, 0.0, datetime.now(UTC))
        if (tree := each.loop.worktree) and (named or not why):
            why = why or kept_because(each, every)
            if apply and not why:
                with alone(each) as is_alone:
                    why = remove(each) if is_alone else STARTED
            if named or why != _GONE:
                yield Removal(loop=each.loop.id, worktree=tree, kept=why)


def kept_because(standing: Standing, others: Iterable[Standing]) -> str:
    """Why the worktree of a loop cannot be removed; empty if nothing would be lost."""
    tree, place = standing.loop.worktree, Place.around(Path(standing.loop.workspace))
    if tree is None or place is None:
        return "its repository is gone"
    shared = [each for each in others if each.loop.worktree and each.loop.worktree.path == tree.path]
    if using := [each for each in shared if each.folder != standing.folder and not each.finished]:
        return f"{using[0].loop.id} works there too"
    is_there, has_branch = Path(tree.path).is_dir(), branches.exists(place.git, tree.branch)
    try:
        if is_there and branches.leads_elsewhere(place, tree):
            return f"{tree.path}/.git leads to another repository"
        if is_there and branches.is_dirty(tree):
            return f"it has changes that are not committed: `git -C {shlex.quote(tree.path)} status`"
        count = branches.unmerged(place.git, tree.branch) if has_branch else 0
    except UserError as error:
        return f"{error.what}: {error.cause}"
    if count:
        return f"{plural(count, 'commit')} on {tree.branch} not merged yet: `{merge_command(standing.loop)}`"
    return "" if is_there or has_branch else _GONE


def remove(standing: Standing) -> str:
    """Remove a worktree that nothing keeps; what git objects to, if it does."""
    tree, place = standing.loop.worktree, Place.around(Path(standing.loop.workspace))
    try:
        return branches.remove(place.git, tree) if tree and place else ""
    except UserError as error:
        return f"{error.what}: {error.cause}"
