"""A loop that may be run: everything was checked, and nothing has been written or spent."""

from collections.abc import Callable

import msgspec

from bydawn.core.breakers import Limits
from bydawn.core.facts import LoopAdopted
from bydawn.core.loop import Loop
from bydawn.core.redact import Secrets
from bydawn.core.values import Mark
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.registry import Standing, reference


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that may be started: all checks have passed, nothing has been written."""

    loop: Loop
    folder: LoopFolder
    secrets: Secrets
    standing: Standing | None = None  # None when it is new
    warnings: tuple[str, ...] = ()
    approves: Mark | None = None  # the checkpoint that a person has looked at
    adopts: LoopAdopted | None = None  # what another program had done of it
    accepts: tuple[str, ...] = ()  # protected files, or a task list, that may stay as rounds have made them
    raises: Callable[[Limits], Limits] | None = None  # what the limits in force become

    @property
    def root(self) -> StateFolder:
        return self.folder.state_folder

    @property
    def reference(self) -> str:
        """What a person has to type for it, wherever they are."""
        return reference(self.folder, self.loop)

    @property
    def goes_on(self) -> bool:
        return self.standing is not None
