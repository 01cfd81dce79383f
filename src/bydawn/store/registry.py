"""Which loops are there, where do they live, and how do they stand?"""

import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, Status
from bydawn.store.ledger import load
from bydawn.store.lock import is_held

_LONGEST = 63
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{_LONGEST - 1}}}")


@cache
def _loops() -> msgspec.json.Decoder[Loop]:
    return msgspec.json.Decoder(Loop)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A loop as it stands now."""

    folder: Path
    loop: Loop
    state: LoopState
    alive: bool
    trouble: OwnFailure | None = None  # why it cannot be read, if it cannot

    @property
    def status(self) -> Status:
        if self.trouble:
            return Status.DAMAGED
        if self.state.stopped:
            return Status(self.state.stopped.end)
        if self.alive:
            return Status.WAITING if self.state.waiting else Status.RUNNING
        return Status.CRASHED

    @property
    def reference(self) -> str:
        """What a person has to type for it, wherever they are."""
        return reference(self.folder, self.loop)

    @property
    def finished(self) -> bool:
        return self.state.stopped is not None and self.state.stopped.end in FINISHED


class Registry:
    """All loops of this user, in one state folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or state_folder()).absolute()

    def home(self, workspace: Path) -> Path:
        """The folder that holds the loops of a workspace."""
        import hashlib

        digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:10]
        return self.root / "loops" / f"{slug(workspace.name) or 'root'}-{digest}"

    def in_workspace(self, workspace: Path) -> list[Standing]:
        """The loops of one workspace, oldest first."""
        found = self._standings(_folders(self.home(workspace)))
        return sorted(found, key=lambda standing: standing.loop.created_at)

    def everywhere(self) -> list[Standing]:
        """Every loop of this user."""
        return [*self._standings(folder for home in _folders(self.root / "loops") for folder in _folders(home))]

    def find(self, name: str | None, workspace: Path) -> Standing:
        """The loop a person means: by `name`, by `name@folder`, or the only one here."""
        if name is None:
            return self._only_one(workspace)
        wanted, _, folder = name.partition("@")
        here = [each for each in self.in_workspace(workspace) if _same(each.loop.id, wanted)] if not folder else []
        found = here or [
            each
            for each in self.everywhere()
            if _same(each.loop.id, wanted) and folder in ("", Path(each.loop.workspace).name)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise UserError(f"there is no loop called {name!r}", hint="`bydawn status` lists the ones there are")
        names = {f"{each.loop.id}@{Path(each.loop.workspace).name}" for each in found}
        if len(names) == len(found):
            cause, hint = ", ".join(sorted(names)), "say which, as NAME@FOLDER"
        else:
            cause, hint = ", ".join(f"{each.loop.id} in {each.loop.workspace}" for each in found), "say -C FOLDER"
        raise UserError(f"several loops are called {name!r}", cause=cause, hint=hint)

    def _only_one(self, workspace: Path) -> Standing:
        here = self.in_workspace(workspace)
        if len(here) == 1:
            return here[0]
        if not here:
            raise UserError(
                f"there is no loop in {workspace}", hint='start one with `bydawn run "…"`, or see `bydawn status`'
            )
        unfinished = [each for each in here if not each.finished]
        if len(unfinished) == 1:
            return unfinished[0]
        names = ", ".join(each.loop.id for each in here)
        raise UserError("there are several loops here", cause=names, hint="name the one you mean")

    def _standings(self, folders: Iterator[Path]) -> Iterator[Standing]:
        return (standing for folder in folders if (standing := standing_of(folder)))


def standing_of(folder: Path) -> Standing | None:
    """How a loop stands; None when it was never born (its first fact is not there)."""
    lock = folder / "lock"
    try:
        loop = _loops().decode((folder / "loop.json").read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        trouble = OwnFailure(
            f"the settings {folder / 'loop.json'} cannot be read",
            cause=str(error),
            hint="put the file back from a backup; without it the loop cannot go on",
        )
        return Standing(folder=folder, loop=_nameless(folder), state=LoopState(), alive=is_held(lock), trouble=trouble)
    try:
        state, _ = load(folder)
    except OwnFailure as failure:
        return Standing(folder=folder, loop=loop, state=LoopState(), alive=is_held(lock), trouble=failure)
    if state.seq == 0:
        return None
    alive = is_held(lock)
    if not alive and not state.stopped:
        # "Crashed" is a grave word: it may have stopped properly, or started anew, between our two looks.
        state, _ = load(folder)
        alive = is_held(lock)
    return Standing(folder=folder, loop=loop, state=state, alive=alive)


def reference(folder: Path, loop: Loop) -> str:
    """A loop's name in a command that can be pasted, and its place where another loop has that name, too."""
    homes = [home for home in _folders(folder.parent.parent) if home != folder.parent]
    namesakes = [each for home in homes for each in _folders(home) if _same(each.name, folder.name)]
    others = [Path(found.loop.workspace).name for each in namesakes if (found := standing_of(each))]
    if not others:
        return loop.id
    import shlex  # hardly anybody has two loops of one name

    where = Path(loop.workspace)
    return f"{loop.id} -C {shlex.quote(str(where))}" if where.name in others else shlex.quote(f"{loop.id}@{where.name}")


def _nameless(folder: Path) -> Loop:
    """Stands for the settings of a loop whose own cannot be read."""
    return Loop(id=folder.name, uid="", workspace="?", created_at=datetime.fromtimestamp(0, UTC), prompt="?", agent="?")


def _folders(path: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (path / name for name in names)


def state_folder() -> Path:
    """Where the truth lives: out of every work tree, in the user's own state folder."""
    if given := os.environ.get("XDG_STATE_HOME"):
        return Path(given) / "bydawn"
    home = os.environ.get("HOME")
    if sys.platform == "darwin" and home:
        import platformdirs

        return Path(platformdirs.user_state_dir("bydawn"))
    if home:
        return Path(home) / ".local" / "state" / "bydawn"
    raise UserError(
        "there is no place to keep what happens",
        cause="HOME and XDG_STATE_HOME are unset",
        hint="give --state-dir PATH",
    )


def checked_name(name: str) -> str:
    """A name that is safe as a file and as a ref name, or an error that says what is."""
    if _NAME.fullmatch(name) and ".." not in name and not name.endswith((".", ".lock")):
        return name
    shown, long = (f"{name[:40]}…", f"it has {len(name)} characters; ") if len(name) > _LONGEST else (name, "")
    raise UserError(
        f"{shown!r} cannot be the name of a loop",
        cause=f"{long}names are 1 to {_LONGEST} letters, digits, `-`, `_` or `.`, and begin with a letter or digit",
        hint=f"for example: --name {slug(name) or 'night'}",
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
    """The name itself, or with the first number that makes it new, without regard to case."""
    used = {name.casefold() for name in taken}
    numbered = (f"{wanted}-{number}" for number in range(2, len(used) + 3))
    return next(name for name in (wanted, *numbered) if name.casefold() not in used)


def new_uid() -> str:
    """What marks the processes of a loop; nobody else has it."""
    return os.urandom(8).hex()


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
