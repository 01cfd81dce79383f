"""Where a loop's files go: can they be written there, and is what stands there already ours to replace?"""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.globs import ALWAYS_PROTECTED, is_protected
from bydawn.core.history import History, counted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.dialects import follower
from bydawn.dialects.seam import Dialect, Source
from bydawn.dialects.written import Wrote
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.ledger import records
from bydawn.store.lock import Lock, Owned, is_held
from bydawn.store.registry import Standing, checked_name
from bydawn.system.git import Git
from bydawn.system.writing import make_private

_LOOKED_AT = 1000  # iterations whose files must not be there already
_LONGEST_STATE = 16 << 20
_PATIENCE = 30.0  # seconds; to decide takes others no time


def placed(workspace: Path, path: str) -> str:
    """A path as files are known by: real, from the workspace on if it is in there, with a slash if it is a folder."""
    full = workspace / path
    real = Path(os.path.realpath(full.parent)) / full.name
    if real.is_dir() and not real.is_relative_to(workspace):  # a person's own link, and they mean where it leads
        real = Path(os.path.realpath(real))
    inside = str(real.relative_to(workspace)) if real.is_relative_to(workspace) else str(real)
    if inside == "." or workspace.is_relative_to(real):
        hint = "give a folder of its own"
        raise UserError(f"{path} is the workspace itself", cause="its files would mix with yours", hint=hint)
    return f"{inside}/" if path.endswith("/") or real.is_dir() else inside


# -- what a person can type --------------------------------------------------------------------------------------------


def typed(dialect: Dialect, workspace: Path, *words: str) -> str:
    """A command about loops of a workspace, ready to be pasted where the person is."""
    return f"{shlex.join([dialect.name, *words])}{elsewhere(workspace)}"


def elsewhere(workspace: Path) -> str:
    return f" --cd {shlex.quote(str(workspace))}" if workspace != Path.cwd() else ""


def can_be_named(name: object) -> TypeGuard[str]:
    """Could a loop be called so? A file can say anything, and what is no name stands in no command of ours."""
    try:
        return isinstance(name, str) and bool(checked_name(name))
    except UserError:
        return False


def taken(dialect: Dialect, workspace: Path, name: str) -> UserError:
    look = typed(dialect, workspace, "status", "--loop-id", name)
    return UserError(
        f"there is a loop {name} already",
        cause="its state would be overwritten",
        hint=f"choose another --loop-id, or see how it stands and how to go on: `{look}`",
    )


# -- one place, one loop -----------------------------------------------------------------------------------------------


class _Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that is at work, or about to be, and where it writes: real paths, in which a `*` is a number."""

    uid: str
    name: str
    workspace: str
    paths: tuple[str, ...]


def reserve(root: StateFolder, dialect: Dialect, loop: Loop) -> None:
    """Reserve the places of a loop for as long as this process lives; refused if another has one of them.

    Between this moment and the one in which the loop's own lock is held nobody else would know of it.
    """
    folder = root.places
    make_private(folder)
    mine = _reservation(dialect, loop)
    deciding = _turn(folder / "lock")
    try:
        for other in (*_reserved(folder), *_at_work(root)):
            shared = [path for path in mine.paths if any(_is_one(path, theirs) for theirs in other.paths)]
            if shared and other.uid != loop.uid:
                if (other.name, other.workspace) == (loop.id, loop.workspace):
                    raise taken(dialect, Path(loop.workspace), loop.id)  # at this very moment
                where = "" if other.workspace == loop.workspace else f" in {other.workspace}"
                cause = f"{other.name} is at work{where}, and writes there"
                raise UserError(f"{shared[0]} is another loop's", cause=cause, hint="give another path, or wait for it")
        with suppress(Owned):  # by a worker of this very loop; its own lock decides which of us goes on
            held = Lock.take(folder / loop.uid, patience=0)  # never released: the end of the process does it
            os.ftruncate(held.fd, 0)
            os.pwrite(held.fd, msgspec.json.encode(mine), 0)
    finally:
        deciding.release()


def _turn(path: Path) -> Lock:
    try:
        return Lock.take(path, _PATIENCE)
    except Owned as owner:
        hint = "try again in a moment"
        raise UserError("another loop is being started", cause=f"it is {owner}", hint=hint, exit_code=8) from None


def _reserved(folder: Path) -> Iterator[_Reservation]:
    """What others have reserved; what nobody holds any more is removed."""
    for path in sorted(folder.iterdir()):
        if path.name == "lock" or not path.is_file():
            continue
        if not is_held(path):
            path.unlink(missing_ok=True)
            continue
        with suppress(OSError, msgspec.DecodeError):
            yield msgspec.json.decode(path.read_bytes(), type=_Reservation)


def _at_work(root: StateFolder) -> Iterator[_Reservation]:
    """The loops of this user that are alive, however they were started."""
    for folder in root.every_loop():
        loop = _spoken(folder) if is_held(folder.lock) else None
        if loop and loop.dialect:
            yield _reservation(dialects.find(loop.dialect.name), loop)


def _spoken(folder: LoopFolder) -> Loop | None:
    """The loop of a folder, if it was asked for in another tool's words."""
    with suppress(OSError, msgspec.DecodeError):
        loop = folder.read_loop()
        return loop if loop.dialect and loop.dialect.name in dialects.TABLE else None
    return None


def of_later_loops(standing: Standing, paths: Iterable[str]) -> dict[str, str]:
    """Which of these files a loop that began later has for its own, and its name."""
    mine = standing.loop
    loops = [loop for folder in standing.folder.state_folder.every_loop() if (loop := _spoken(folder))]
    later = [loop for loop in loops if loop.uid != mine.uid and loop.created_at > mine.created_at]
    theirs = [_reservation(dialects.find(loop.dialect.name), loop) for loop in later if loop.dialect]
    found = {}
    for path in paths:
        full = Path(mine.workspace) / path
        real = f"{os.path.realpath(full.parent)}/{full.name}"
        names = (each.name for each in theirs if any(_is_one(real, other) for other in each.paths))
        if name := next(names, None):
            found[path] = name
    return found


def _reservation(dialect: Dialect, loop: Loop) -> _Reservation:
    full = [Path(loop.workspace) / path for path in dialect.files(loop)]
    paths = (f"{os.path.realpath(path.parent)}/{path.name}" for path in full)
    return _Reservation(uid=loop.uid, name=loop.id, workspace=loop.workspace, paths=tuple(paths))


def _is_one(path: str, other: str) -> bool:
    """Can these two be the same file?"""
    return any(
        re.fullmatch(re.escape(one).replace(r"\*", "[0-9]+"), two.replace("*", "1"))
        for one, two in ((path, other), (other, path))
    )


# -- can it be written at all? -----------------------------------------------------------------------------------------


def refuse_impossible(dialect: Dialect, loop: Loop, made: Sequence[str]) -> None:
    """Before anything is spent: a loop that runs all night without its files is of no use."""
    workspace, growing = Path(loop.workspace), dialect.growing(loop)
    _refuse_tangled((*made, *growing, *dialect.shared))
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
            cause = "nobody may read and write it"
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
    refuse_impossible(dialect, loop, dialect.written(loop, LoopState(rounds=1)))
    _refuse_foreign(loop, named)
    _refuse_protected(loop, dialect.files(loop), named)


def _refuse_foreign(loop: Loop, named: Iterable[str]) -> None:
    """No file of git's, and not the list: what is ours is out of the sight of every check."""
    workspace = Path(loop.workspace)
    for path in (each.rstrip("/") for each in named):
        full = workspace / path
        is_list = bool(loop.tasks) and os.path.realpath(full) == os.path.realpath(workspace / str(loop.tasks))
        if is_list or ".git" in full.parts:
            raise _not_ours(path, "something else needs that file")


def refuse_tracked(dialect: Dialect, loop: Loop) -> None:
    """No file of the project, even one that is gone from the work tree just now."""
    git = Git(folder=Path(loop.workspace), seconds=20)
    files = dialect.files(loop)
    inside = [path for path in files if not path.startswith("/")]
    # One that is in no part of the repository makes git say no to all of them.
    for asked in (inside, *([path] for path in files if path.startswith("/"))):
        found = git.answer("ls-files", "-z", "--", *(_spec(path) for path in asked)) if asked else None
        names = {path.rpartition("/")[2] for path in asked}
        for path in (found or "").split("\0")[:-1]:  # git's patterns know no "digits only"
            if any(_is_one(path.rpartition("/")[2], name) for name in names):
                raise _not_ours(path, "git keeps that file for the project")


def _spec(path: str) -> str:
    """A path as git understands it; a `*` is a number."""
    return ":(glob)" + re.sub(r"([?\[\\])", r"\\\1", path).replace("*", "[0-9]*")


def _not_ours(path: str, cause: str) -> UserError:
    return UserError(f"{path} is not ours to write", cause=cause, hint="give another path")


def _refuse_protected(loop: Loop, files: Iterable[str], named: Sequence[str]) -> None:
    """Our own writing would be taken for the agent's; what is in the dialect's own folder is nobody else's."""
    below = tuple(f"{path.rstrip('/')}/" for path in named)
    for path in files:
        if f"{path}/".startswith(below) and is_protected(path, (*ALWAYS_PROTECTED, *loop.protect)):
            hint = "give another path, or protect less"
            raise UserError(f"{path} is protected", cause="nothing may be written there", hint=hint)


def refuse_overwriting(dialect: Dialect, loop: Loop) -> None:
    """Only what one of our loops wrote may be replaced by another's, and never a loop's state."""
    workspace = Path(loop.workspace)
    made, growing = dialect.written(loop, LoopState(rounds=_LOOKED_AT)), dialect.growing(loop)
    for path in growing:  # an earlier one of ours may grow on
        if not _may_grow(dialect, workspace, path):
            cause = "not every line of it is an event, and ours would stand among them"
            raise UserError(f"{path} is a file of yours", cause=cause, hint="give another path for it")
    state = workspace / dialect.state_path(loop)
    if os.path.lexists(state):
        name = json_of(state).get("loop_id")
        raise taken(dialect, workspace, name) if can_be_named(name) else _yours(dialect.state_path(loop))
    for path in made:
        there = workspace / path
        if os.path.lexists(there) and (there.is_symlink() or not there.is_file()):
            raise UserError(f"{path} is no plain file", cause="it would be replaced", hint="give another path for it")
        if there.is_file() and "loop_id" not in json_of(there):
            raise _yours(path)


def _may_grow(dialect: Dialect, workspace: Path, path: str) -> bool:
    """Is there nothing yet, or nothing but what our loops append?"""
    if not (workspace / path).is_file():
        return True
    with (workspace / path).open("rb") as file:
        return all(dialect.is_line(line) for line in iter(lambda: file.readline(_LONGEST_STATE), b""))


def _yours(path: str) -> UserError:
    return UserError(f"{path} is a file of yours", cause="it would be overwritten", hint="give another path for it")


# -- one that goes on --------------------------------------------------------------------------------------------------


def take_up(standing: Standing) -> None:
    """Reserve the places of a loop that goes on, if it has any."""
    if standing.loop.dialect and standing.loop.dialect.name in dialects.TABLE:
        dialect = dialects.find(standing.loop.dialect.name)
        reserve(standing.folder.state_folder, dialect, standing.loop)
        _refuse_lost(dialect, standing)


def _refuse_lost(dialect: Dialect, standing: Standing) -> None:
    """Since it stood still its places may have become somebody else's."""
    loop, workspace = standing.loop, Path(standing.loop.workspace)
    told, growing = dialect.told(loop), dialect.growing(loop)
    done = max(0, counted(standing.state) - 1)  # the last one may be written again
    refuse_impossible(dialect, loop, [*told, *ahead(dialect, loop, done, 2)])
    for path in told:
        if not follower.is_free(workspace, path, loop, Wrote(standing.folder.path)):
            raise _no_longer_ours(loop, path)
    for path in growing:
        if not _may_grow(dialect, workspace, path) and not _has_grown(dialect, standing, path):
            raise _no_longer_ours(loop, path)
    for path in ahead(dialect, loop, done):
        if os.path.lexists(workspace / path) and not _is_copy(dialect, standing, path):
            raise _no_longer_ours(loop, path)


def ahead(dialect: Dialect, loop: Loop, done: int, rounds: int = _LOOKED_AT) -> list[str]:
    """The files of so many iterations after those that are done."""
    before = {*dialect.written(loop, LoopState(rounds=done))}
    return [path for path in dialect.written(loop, LoopState(rounds=done + rounds)) if path not in before]


def _is_copy(dialect: Dialect, standing: Standing, path: str) -> bool:
    """Is it what one of its rounds left there, as it was?"""
    workspace, sources = Path(standing.loop.workspace), _sources(dialect, standing, path)
    origins = (standing.folder.round_file(source.round, source.name) for source in sources)
    return any(follower.is_copy(workspace, path, origin) for origin in origins)


def _has_grown(dialect: Dialect, standing: Standing, path: str) -> bool:
    """Does what its last round added still stand there? An agent prints more than events at times, or half of one."""
    sources = _sources(dialect, standing, path)
    return follower.has_grown(standing.folder.path, Path(standing.loop.workspace), path, sources)


def _sources(dialect: Dialect, standing: Standing, path: str) -> list[Source]:
    """What its rounds have copied or added there."""
    attempts = [attempt for attempt in History(records(standing.folder)).attempts if attempt.ended]
    copied = [view for each in attempts for view in dialect.copies(each, standing.loop)]
    return [view.source for view in copied if view.path == path]


def _no_longer_ours(loop: Loop, path: str) -> UserError:
    cause = f"it is not what {loop.id} wrote there, and would be overwritten"
    return UserError(f"{path} is a file of yours", cause=cause, hint="move it away for as long as the loop runs")


def json_of(path: Path) -> dict[str, Any]:
    """What a file of JSON says; nothing if it is none."""
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST_STATE:
            return {}
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
