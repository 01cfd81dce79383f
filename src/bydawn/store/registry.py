"""Which loops exist, where they are, and what state they are in."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import FINISHED, Act, Advice, End, Quoted, Status, quoted
from bydawn.store.folder import LoopFolder, StateFolder, loops_in
from bydawn.store.ledger import load
from bydawn.store.lock import is_held
from bydawn.system.user_folders import folders_above, state_folder

_LONGEST = 63
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{_LONGEST - 1}}}")
OVER = (Status.LIMIT, Status.STOPPED)  # unfinished, but nothing waits for them: another goal may start


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a loop that has crashed and that is still running."""

    pid: int
    command: str


_ENDED = {end: Status(end) for end in End}  # looked up, since a call of the class takes long for a thousand loops


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A loop's settings and state, now."""

    folder: LoopFolder
    loop: Loop
    state: LoopState
    alive: bool
    trouble: OwnFailure | None = None  # why it cannot be read, if it cannot
    left: tuple[Left, ...] = ()  # known only to those who have looked
    unique: bool = False  # is it known that no other loop has its name?

    @property
    def status(self) -> Status:
        if self.trouble:
            return Status.DAMAGED
        if self.state.stopped:
            return _ENDED[self.state.stopped.end]
        if self.alive:
            return Status.WAITING if self.state.waiting else Status.RUNNING
        return Status.CRASHED

    @property
    def reference(self) -> str:
        """What a person has to type for it, from any folder."""
        return self.loop.id if self.unique else reference(self.folder, self.loop)

    @property
    def finished(self) -> bool:
        return self.state.stopped is not None and self.state.stopped.end in FINISHED


class Registry:
    """All loops of this user, in one state folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = StateFolder((root or state_folder()).absolute())

    def home(self, workspace: Path) -> Path:
        """The folder that holds the loops of a workspace."""
        from bydawn.core.digests import sha256

        digest = sha256(os.fsencode(workspace)).hexdigest()[:10]
        return self.root.loops / f"{slug(workspace.name) or 'root'}-{digest}"

    def in_workspace(self, workspace: Path) -> list[Standing]:
        """The loops of one workspace, oldest first."""
        found = self._standings(loops_in(self.home(workspace)))
        return sorted(found, key=lambda standing: standing.loop.created_at)

    def here(self, cd: Path | None) -> list[Standing]:
        """The loops of a folder; if a person named none, of the nearest that has any, from the current one up."""
        folders = [cd.resolve()] if cd else folders_above(Path.cwd())
        return next(filter(None, map(self.in_workspace, folders)), [])

    def everywhere(self) -> list[Standing]:
        """Every loop of this user."""
        folders = [*self.root.every_loop()]
        names = Counter(folder.name.casefold() for folder in folders)
        return [
            msgspec.structs.replace(each, unique=names[each.folder.name.casefold()] == 1)
            for each in self._standings(iter(folders))
        ]

    def find(self, name: str | None, cd: Path | None, *, resting: bool = False) -> Standing:
        """The loop a person means: by `name`, by `name@folder`, or the only one here.

        Among several here, the only one that runs, or else that is neither finished nor over; with `resting` the only
        unfinished one that does not run.
        """
        if name is None:
            return self._only_one(cd, resting=resting)
        wanted, _, folder = name.partition("@")
        here = [each for each in self.here(cd) if _same(each.loop.id, wanted)] if not folder else []
        found = here or [
            each
            for each in self.everywhere()
            if _same(each.loop.id, wanted) and folder in ("", Path(each.loop.workspace).name)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise UserError(f"no loop called {name!r}", hint=Advice(Act("status"), " lists all loops"))
        names = {f"{each.loop.id}@{Path(each.loop.workspace).name}" for each in found}
        if len(names) == len(found):
            cause, hint = ", ".join(sorted(names)), "name one as NAME@FOLDER"
        else:
            cause, hint = ", ".join(f"{each.loop.id} in {each.loop.workspace}" for each in found), "add -C FOLDER"
        raise UserError(f"several loops are called {name!r}", cause=cause, hint=hint)

    def _only_one(self, cd: Path | None, *, resting: bool) -> Standing:
        here = self.here(cd)
        if not here:
            raise UserError(
                f"no loop in {cd.resolve() if cd else Path.cwd()}",
                hint=Advice("start one with ", Act("run", PLACEHOLDER), ", or see ", Act("status")),
            )
        listed = [each for each in here if not each.state.dismissed] or here
        running = [each for each in listed if each.alive and not resting]
        unfinished = [each for each in listed if not each.finished and not (resting and each.alive)]
        pressing = [each for each in unfinished if each.status not in OVER and not resting]
        for those in (running, listed, pressing, unfinished):
            if len(those) == 1:
                return those[0]
        names = ", ".join(each.loop.id for each in listed)
        raise UserError("there are several loops here", cause=names, hint="add the name of one")

    def _standings(self, folders: Iterator[LoopFolder]) -> Iterator[Standing]:
        return (standing for folder in folders if (standing := standing_of(folder)))


def standing_of(folder: LoopFolder) -> Standing | None:
    """The state of a loop; None if it was never fully created (its first fact is missing)."""
    try:
        loop = folder.read_loop()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        hint = "restore the file from a backup; the loop cannot go on without it"
        trouble = OwnFailure(f"cannot read the settings {folder.settings}", cause=str(error), hint=hint)
        return _unreadable(folder, _nameless(folder), trouble)
    try:
        state, _ = load(folder)
    except OwnFailure as failure:
        return _unreadable(folder, loop, failure)
    except OSError as error:  # perhaps another user's, after a start with sudo: no other loop may suffer from it
        hint = f"make {folder.path} yours again, for example with chown"
        trouble = OwnFailure(f"cannot read {folder.ledger}", cause=error.strerror or str(error), hint=hint)
        return _unreadable(folder, loop, trouble)
    if state.seq == 0:
        return None
    alive = is_held(f"{folder.path}/lock")
    if not alive and not state.stopped:
        # Before we say "crashed": it may have stopped properly, or started again, between our two looks.
        state, _ = load(folder)
        alive = is_held(folder.lock)
    return Standing(folder=folder, loop=loop, state=state, alive=alive)


def _unreadable(folder: LoopFolder, loop: Loop, trouble: OwnFailure) -> Standing:
    return Standing(folder=folder, loop=loop, state=LoopState(), alive=is_held(folder.lock), trouble=trouble)


def beside(folder: LoopFolder, loop: Loop) -> tuple[str, ...]:
    """The names of the other loops whose agents work in the same folder right now."""
    held = [each for each in loops_in(folder.home) if each.name != folder.name and is_held(each.lock)]
    return tuple(each.name for each in held if (found := standing_of(each)) and found.loop.folder == loop.folder)


def reference(folder: LoopFolder, loop: Loop) -> str:
    """A loop's name in a command to paste, with its folder if another loop has the same name."""
    elsewhere = (each for each in folder.state_folder.every_loop() if each.home != folder.home)
    namesakes = [each for each in elsewhere if _same(each.name, folder.name)]
    others = [Path(found.loop.workspace).name for each in namesakes if (found := standing_of(each))]
    if not others:
        return loop.id
    where = Path(loop.workspace)
    return Quoted(f"{loop.id} -C {quoted(str(where))}") if where.name in others else quoted(f"{loop.id}@{where.name}")


def _nameless(folder: LoopFolder) -> Loop:
    """Stands in for the settings of a loop whose own cannot be read."""
    return Loop(id=folder.name, uid="", workspace="?", created_at=datetime.fromtimestamp(0, UTC), prompt="?", agent="?")


def is_name(name: str) -> bool:
    """Can a loop have this name? It is safe as a file and as a ref name."""
    return bool(_NAME.fullmatch(name)) and ".." not in name and not name.endswith((".", ".lock"))


def checked_name(name: str, hint: str = "") -> str:
    """A name that a loop can have, or an error that says what is allowed."""
    if is_name(name):
        return name
    shown, long = (f"{name[:40]}…", f"it has {len(name)} characters; ") if len(name) > _LONGEST else (name, "")
    raise UserError(
        f"{shown!r} is not a valid loop name",
        cause=f"{long}a name has 1 to {_LONGEST} letters, digits, `-`, `_` or `.`, and starts with a letter or digit",
        hint=hint or f"for example: --name {slug(name) or 'night'}",
    )


def slug(text: str) -> str:
    """A text as a name.

    >>> slug("My Shop (API)"), slug("../x"), slug("a..b"), slug("…")
    ('my-shop-api', 'x', 'a-b', '')
    """
    name = re.sub(r"[^a-z0-9._]+|\.{2,}", "-", text.lower()).strip("-._")[:40]
    while name != (name := name.rstrip("-._").removesuffix(".lock")):
        pass
    return name


def free_name(wanted: str, taken: list[str]) -> str:
    """The name itself, or with the first number that makes it unique, ignoring case."""
    used = {name.casefold() for name in taken}
    numbered = (f"{wanted}-{number}" for number in range(2, len(used) + 3))
    return next(name for name in (wanted, *numbered) if name.casefold() not in used)


def new_uid() -> str:
    """What marks the processes of a loop, and of no other."""
    return os.urandom(8).hex()


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
