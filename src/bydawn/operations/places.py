"""Where the files of a dialect go: can they be written there, and may they replace what is there already?"""

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.globs import ALWAYS_PROTECTED, is_protected
from bydawn.core.loop import Loop
from bydawn.dialects import follower
from bydawn.dialects.seam import Dialect
from bydawn.dialects.written import Written
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import take_lock
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.lock import Lock, Owned, is_held, owner
from bydawn.store.registry import Standing
from bydawn.system import shared_file
from bydawn.system.git import Git
from bydawn.system.writing import make_private

_LOOKED_AT = 1000  # rounds whose files must not be there already
_LONGEST_LINE = 16 << 20
_PATIENCE = 30.0  # seconds; to decide takes others no time


def placed(workspace: Path, path: str) -> str:
    """A path as files are known by: real, from the workspace on if it is in there, with a slash if it is a folder."""
    if "*" in path:
        raise UserError(f"{path} has a * in it", cause="it is one path", hint="give it a plain name")
    full = workspace / path
    real = Path(os.path.realpath(full.parent)) / full.name
    if real.is_dir() and not real.is_relative_to(workspace):  # a person's own link, and they mean where it leads
        real = Path(os.path.realpath(real))
    inside = str(real.relative_to(workspace)) if real.is_relative_to(workspace) else str(real)
    if inside == "." or workspace.is_relative_to(real):
        hint = "give a folder of its own"
        raise UserError(f"{path} is the workspace itself", cause="its files would mix with yours", hint=hint)
    return f"{inside}/" if path.endswith("/") or real.is_dir() else inside


class NameTaken(UserError):
    """There is a loop of that name; which command shows it, the dialect knows."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is a loop {name} already", cause="its state would be overwritten", hint="choose another name"
        )
        self.name = name


# -- one place, one loop -----------------------------------------------------------------------------------------------


def take(planned: Plan) -> Lock:
    """The lock of a loop that runs from here on, for others to see; of a new one they know when it is created."""
    if planned.standing:
        with turn(planned):
            return take_lock(planned.folder, planned.loop)
    try:
        return take_lock(planned.folder, planned.loop)
    except UserError:
        raise NameTaken(planned.loop.id) from None  # at this very moment


@contextmanager
def turn(planned: Plan) -> Iterator[None]:
    """The moment in which a loop begins to be at work, as others can see: no other begins in it.

    Others may have begun, and ended, since this one was planned.
    """
    dialect = dialects.of_loop(planned.loop)
    assert dialect  # noqa: S101 - others have no places
    folder = planned.root.places
    make_private(folder)
    try:
        deciding = Lock.take(folder / "lock", _PATIENCE)
    except Owned as owner:
        hint = "try again in a moment"
        raise UserError("another loop is being started", cause=f"it is {owner}", hint=hint, exit_code=8) from None
    try:
        refuse_occupied(planned.root, dialect, planned.loop)
        if planned.standing is None:
            refuse_overwriting(planned.root, dialect, planned.loop)
        yield
    finally:
        deciding.release()


def refuse_occupied(root: StateFolder, dialect: Dialect, loop: Loop) -> None:
    """Refuse if a loop of this user that runs, however it was started, writes to one of these places, or claims one."""
    claims, paths = {*dialect.files(loop).claims}, _paths(dialect, loop)
    for folder in root.every_loop():
        other = _spoken(folder) if is_held(folder.lock) else None
        theirs = dialects.of_loop(other) if other else None
        if other is None or theirs is None or other.uid == loop.uid:
            continue
        for word in claims.intersection(theirs.files(other).claims):
            cause = f"it is {owner(folder.lock) or 'being started'}, in {other.workspace}"
            raise UserError(f"{word} is running", cause=cause, hint="stop it, or choose another name", exit_code=8)
        occupied = {*_paths(theirs, other)}
        if shared := [path for path in paths if path in occupied]:
            if (other.id, other.workspace) == (loop.id, loop.workspace):
                raise NameTaken(loop.id)  # at this very moment
            where = "" if other.workspace == loop.workspace else f" in {other.workspace}"
            cause = f"{other.id} is at work{where}, and writes there"
            hint = "give another path, or wait for it"
            raise UserError(f"{shared[0]} is another loop's", cause=cause, hint=hint, exit_code=8)


def _paths(dialect: Dialect, loop: Loop) -> list[str]:
    return [_real(loop, path) for path in dialect.files(loop).names(loop)]


def _spoken(folder: LoopFolder) -> Loop | None:
    """The loop of a folder, if it was asked for in another tool's words."""
    with suppress(OSError, msgspec.DecodeError):
        loop = folder.read_loop()
        return loop if dialects.of_loop(loop) else None
    return None


def of_later_loops(standing: Standing, paths: Iterable[str]) -> dict[str, str]:
    """Which of these files a loop that began later has written as well, and its name."""
    mine = standing.loop
    found: dict[str, str] = {}
    for folder in standing.folder.state_folder.every_loop():
        loop = _spoken(folder)
        if loop and loop.uid != mine.uid and loop.created_at > mine.created_at:
            written = Written(folder.path)
            theirs = [path for path in paths if _known_as(_real(mine, path), loop) in written]
            found = dict.fromkeys(theirs, loop.id) | found
    return found


def _author(root: StateFolder, mine: Loop, path: str) -> Loop | None:
    """The loop that wrote a file as it is now."""
    digest, real = follower.digest_at(Path(mine.workspace), path), _real(mine, path)
    for folder in root.every_loop():
        loop = _spoken(folder)
        if loop and Written(folder.path).recognizes(_known_as(real, loop), digest):
            return loop
    return None


def _real(loop: Loop, path: str) -> str:
    full = Path(loop.workspace) / path
    return f"{os.path.realpath(full.parent)}/{full.name}"


def _known_as(real: str, loop: Loop) -> str:
    """A real path as this loop knows it: from its workspace on, if it is in there."""
    return real.removeprefix(f"{loop.workspace.rstrip('/')}/")


# -- can it be written at all? -----------------------------------------------------------------------------------------


def refuse_impossible(dialect: Dialect, loop: Loop, made: Sequence[str]) -> None:
    """Before anything is spent: a loop that runs all night without its files is of no use."""
    files = dialect.files(loop)
    together = [*files.together, *(shared_file.beside(path)[0] for path in files.together)]
    _refuse_tangled((*made, *files.grown, *files.shared, *files.common, *together))
    _refuse_unwritable(loop, made, [*files.chosen])
    try:
        _refuse_unwritable(loop, files.common, (*(path for path in files.grown if path not in files.chosen), *together))
    except UserError as error:  # no one chooses these paths, so there is no other to give
        denied = error.cause.startswith("you may not")
        hint = "give yourself the right to do that" if denied else "move it away, then try again"
        raise UserError(error.what, cause=error.cause, hint=hint) from None


def _refuse_unwritable(loop: Loop, made: Sequence[str], growing: Sequence[str]) -> None:
    workspace = Path(loop.workspace)
    follower.refuse_unwritable(workspace, [*made, *growing])
    for path in (*made, *growing):
        if path.startswith("/") and os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):  # noqa: PTH120
            cause = f"it led elsewhere when {loop.id} began"
            raise UserError(f"{path} leads through a link", cause=cause, hint="put the folder back as it was")
        if (workspace / path).is_symlink():
            hint = "give the path that it leads to, or another one"
            raise UserError(f"{path} is a link", cause="a file of our own is meant", hint=hint)
    for path in growing:
        if (workspace / path).is_file() and not os.access(workspace / path, os.R_OK | os.W_OK):
            cause = "you may not read and write it"
            raise UserError(f"{path} cannot be added to", cause=cause, hint="give another path")


def _refuse_tangled(paths: Sequence[str]) -> None:
    """Each is a file of its own, and none a folder that another is in."""
    if twice := [path for path, count in Counter(paths).items() if count > 1]:
        raise UserError("two files cannot be one", cause=f"twice: {twice[0]}", hint="give each a path of its own")
    for path in paths:
        if inner := [other for other in paths if other.startswith(f"{path}/")]:
            cause = f"{inner[0]} is to be in it"
            raise UserError(f"{path} cannot be a file", cause=cause, hint="give each a path of its own")


# -- a new loop --------------------------------------------------------------------------------------------------------


def refuse_at_start(dialect: Dialect, loop: Loop, named: Sequence[str]) -> None:
    """`named` are the paths that a person gave; in its own folder a dialect may write what it likes."""
    refuse_impossible(dialect, loop, dialect.files(loop).of([1]))
    _refuse_foreign(loop, named)
    _refuse_protected(loop, dialect.files(loop).names(loop), named)


def _refuse_foreign(loop: Loop, named: Iterable[str]) -> None:
    """No file of git's, and not the list: what is ours is out of the sight of every check."""
    workspace = Path(loop.workspace)
    for path in (each.rstrip("/") for each in named):
        full = workspace / path
        is_list = bool(loop.tasks) and os.path.realpath(full) == os.path.realpath(workspace / str(loop.tasks))
        if is_list or ".git" in full.parts:
            raise _not_ours(path, "something else needs that file")


def refuse_tracked(dialect: Dialect, loop: Loop) -> None:
    """No file of the project, even one that is gone from the work tree just now; but what all loops share may be."""
    git, ours = Git(folder=Path(loop.workspace), seconds=20), dialect.files(loop)
    theirs = {*ours.common, *ours.owned, *ours.grown} - {*ours.chosen}
    files = [path for path in ours.names(loop) if path not in theirs]
    inside = [path for path in files if not path.startswith("/")]
    # One that is in no part of the repository makes git say no to all of them.
    for asked in (inside, *([path] for path in files if path.startswith("/"))):
        found = git.answer("ls-files", "-z", "--", *(_spec(path) for path in asked)) if asked else None
        names = {re.escape(path.rpartition("/")[2]).replace(r"\*", "[0-9]+") for path in asked}
        for path in (found or "").split("\0")[:-1]:  # git's patterns cannot say "digits only"
            if any(re.fullmatch(name, path.rpartition("/")[2]) for name in names):
                raise _not_ours(path, "git keeps that file for the project")


def _spec(path: str) -> str:
    """A path as git understands it; a `*` is a number."""
    return ":(glob)" + re.sub(r"([?\[\\])", r"\\\1", path).replace("*", "[0-9]*")


def _not_ours(path: str, cause: str) -> UserError:
    return UserError(f"{path} is not ours to write", cause=cause, hint="give another path")


def _refuse_protected(loop: Loop, files: Iterable[str], named: Sequence[str]) -> None:
    """Our own writing would be taken for the agent's; the dialect's own folder has nothing else in it."""
    below = tuple(f"{path.rstrip('/')}/" for path in named)
    for path in files:
        if f"{path}/".startswith(below) and is_protected(path, (*ALWAYS_PROTECTED, *loop.protect)):
            hint = "give another path, or protect less"
            raise UserError(f"{path} is protected", cause="nothing may be written there", hint=hint)


def refuse_overwriting(root: StateFolder, dialect: Dialect, loop: Loop) -> None:
    """A new loop replaces nothing but what another loop left behind, and no file that is exclusive to that one."""
    workspace, files = Path(loop.workspace), dialect.files(loop)
    for path, is_line in files.chosen.items():  # an earlier one of ours may grow on
        if not _may_grow(is_line, workspace, path):
            refuse_occupied(root, dialect, loop)  # it may be growing right now
            cause = "it has lines that are not ours, and ours would be mixed with them"
            raise UserError(f"{path} is a file of yours", cause=cause, hint="give another path for it")
    for path in files.of(range(1, _LOOKED_AT + 1)):
        if os.path.lexists(workspace / path):
            _refuse_unless_left(root, dialect, loop, path)


def _refuse_unless_left(root: StateFolder, dialect: Dialect, loop: Loop, path: str) -> None:
    there, files = Path(loop.workspace) / path, dialect.files(loop)
    if there.is_symlink() or not there.is_file():
        raise UserError(f"{path} is not a regular file", cause="it would be replaced", hint="give another path for it")
    author = _author(root, loop, path) if path in files.whole else None  # what is of one round is a record
    if author and path in files.exclusive:
        raise NameTaken(author.id)
    if author is None:
        refuse_occupied(root, dialect, loop)  # it may be changing right now
        raise UserError(f"{path} is a file of yours", cause="it would be overwritten", hint="give another path for it")


def _may_grow(is_line: Callable[[bytes], bool], workspace: Path, path: str) -> bool:
    """Is there nothing yet, or nothing but what our loops append?"""
    if not (workspace / path).is_file():
        return True
    with (workspace / path).open("rb") as file:
        return all(is_line(line) for line in iter(lambda: file.readline(_LONGEST_LINE), b""))


# -- one that goes on --------------------------------------------------------------------------------------------------


def take_up(standing: Standing) -> None:
    """Look at the places of a loop that goes on; since it stopped a person may have put files of their own there."""
    loop, workspace = standing.loop, Path(standing.loop.workspace)
    if (dialect := dialects.of_loop(loop)) is None:
        return
    files = dialect.files(loop)
    if files.common:
        _refuse_overtaken(dialect, standing)
    refuse_occupied(standing.folder.state_folder, dialect, loop)
    number = max(1, dialect.counted(standing.state))  # whose files may be written again
    refuse_impossible(dialect, loop, files.of([number, number + 1]))
    for path, is_line in files.chosen.items():
        if not _may_grow(is_line, workspace, path) and not follower.has_grown(standing.folder.path, workspace, path):
            raise _no_longer_ours(loop, path)
    written = Written(standing.folder.path)
    for path in files.of(range(number, number + _LOOKED_AT)) if written else ():  # nothing is known: nothing to compare
        if os.path.lexists(workspace / path) and not written.recognizes(path, follower.digest_at(workspace, path)):
            raise _no_longer_ours(loop, path)


def _refuse_overtaken(dialect: Dialect, standing: Standing) -> None:
    """Loops with a common state count in one row: an earlier one would use the numbers of a later one again."""
    from bydawn.operations.dialects import loops

    done = dialect.counted(standing.state)
    for each in loops.in_workspace(dialect, Path(standing.loop.workspace)):
        later = each.loop.created_at > standing.loop.created_at  # an earlier one has made room, however far it came
        if later and each.trouble is None and (further := dialect.counted(each.state)) > done:
            raise UserError(
                f"{standing.loop.id} is not the last loop here",
                cause=f"it is at {dialect.unit} {done}, and {each.loop.id} at {dialect.unit} {further}",
                hint=f"`{shlex.join([dialect.name, *dialect.go_on(each.loop)])}`",
            )


def _no_longer_ours(loop: Loop, path: str) -> UserError:
    cause = f"it is not what {loop.id} wrote there, and would be overwritten"
    return UserError(f"{path} is a file of yours", cause=cause, hint="move it away for as long as the loop runs")
