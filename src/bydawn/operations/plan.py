"""A loop that is ready to run: everything was checked, nothing was written or spent."""

from collections.abc import Callable, Sequence

import msgspec

from bydawn.core.breakers import Limits
from bydawn.core.facts import RoundsBefore, TaskSettled
from bydawn.core.loop import Loop
from bydawn.core.redact import Secrets
from bydawn.core.values import ReachedMark, Restart
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.registry import Standing, reference


def shared(names: Sequence[str]) -> str:
    """What it means that these loops run in the same folder; empty if there are none."""
    verb = "runs" if len(names) == 1 else "run"
    why = "each loop will count the other's changes as its own progress"
    return f"{', '.join(names)} also {verb} in this folder: {why}" if names else ""


def warned(names: Sequence[str]) -> tuple[str, ...]:
    """The same before a loop starts, with the way out."""
    return (f"{shared(names)}; `git worktree add` or another clone gives each its own",) if names else ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that is ready to run."""

    loop: Loop
    folder: LoopFolder
    secrets: Secrets
    standing: Standing | None = None  # None when it is new
    warnings: tuple[str, ...] = ()
    approves: ReachedMark | None = None  # the checkpoint a person approves
    before: RoundsBefore | None = None  # what earlier loops have done here
    settles: tuple[TaskSettled, ...] = ()  # tasks that a person calls done
    accepts: tuple[str, ...] = ()  # protected files or a task list whose changes a person accepts
    finished: bool = False  # it may be complete already: it is run again on purpose
    raises: Callable[[Limits], Limits] | None = None  # from the current limits to the new ones
    restart: Restart | None = None  # its process has died, and bydawn goes on by itself

    @property
    def root(self) -> StateFolder:
        return self.folder.state_folder

    @property
    def reference(self) -> str:
        """What a person types to name this loop from where they are."""
        return reference(self.folder, self.loop)

    @property
    def goes_on(self) -> bool:
        return self.standing is not None
