"""Protected files: who touched them, and are they as they were?"""

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import Obstructed
from bydawn.core.globs import ALWAYS_PROTECTED
from bydawn.core.loop import OnTamper
from bydawn.core.ports import Snapshot
from bydawn.engine.effects import Effects

_TAMPERED = 1000  # paths that a fact names; whether all is as it was is asked of the trees, never of this list


class Touched(msgspec.Struct, frozen=True):
    """The work tree now, the protected files in it that were changed, and whether we have put them back."""

    now: Snapshot
    paths: tuple[str, ...] = ()
    restored: bool = False


class Protection:
    """Compares trees that are kept; what cannot be compared is an obstacle, never a pass."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._workspace = effects.world.workspace
        self._settings: tuple[str | None, ...] | None = None  # what is always protected, when the agent's turn began

    def watch(self) -> None:
        """Something of the agent's is about to run."""
        self._settings = self._read_settings()

    def after_round(self, round_: int, after: Snapshot) -> Touched:
        """What the round did to protected files."""
        before = self._effects.state.tree
        if after.tree == before or self._is_as_it_was():
            return Touched(after)
        try:
            touched = self._workspace.touched(before, after.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
        except UserError as error:
            return Touched(self._blind(error))
        if not touched or self._loop.on_tamper is not OnTamper.RESTORE:
            return Touched(after, touched[:_TAMPERED])
        put_back = True
        try:
            self._workspace.restore(before, touched)
        except UserError as error:  # perhaps some of them are
            self._blind(error)
            put_back = False
        left = self._effects.snapshot(keep_as=f"after/{round_}")
        return Touched(replace(left, changes=after.changes), touched[:_TAMPERED], put_back)

    def after_checks(self, round_: int) -> Touched | None:
        """A check runs what the agent wrote; what that does to protected files is the agent's deed, too."""
        if self._is_as_it_was():
            return None  # the usual case, and then nobody need ask git
        now = self._effects.snapshot()
        if round_:
            return self.after_round(round_, now)
        # Before anybody has worked it is the checks' own habit, and would block every round.
        if touched := self._workspace.touched(self._effects.state.tree, now.tree, self._loop.protect):
            detail = f"the checks themselves change protected files: {', '.join(touched[:3])}"
            self._effects.record(Obstructed(kind="protect", detail=detail))
        return None

    def at_start(self, now: Snapshot, *, unseen: bool) -> Touched:
        """Protected files that are not as they were, as nobody has put them back or nobody has looked; and those that
        we have put back, where nobody has looked."""
        state = self._effects.state
        if not state.tampered and not unseen:
            return Touched(now)
        before = state.protected_tree if state.tampered else state.tree  # where all of them are as they were
        try:
            touched = self._workspace.touched(before, now.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
            if touched and unseen and self._loop.on_tamper is OnTamper.RESTORE:
                self._workspace.restore(before, touched)
                now = self._effects.snapshot(keep_as=f"before/{state.round + 1}")
                return Touched(now, touched[:_TAMPERED], restored=True)
        except UserError as error:
            return Touched(self._blind(error), state.tampered)
        return Touched(now, touched[:_TAMPERED])

    def _is_as_it_was(self) -> bool:
        """Is nothing protected but what we can see is the same? Then nobody need ask git."""
        return not self._loop.protect and self._settings is not None and self._read_settings() == self._settings

    def _read_settings(self) -> tuple[str | None, ...]:
        """What is always protected, as it is now; one that cannot be read is like none."""
        try:
            return tuple(self._workspace.read_text(path) for path in ALWAYS_PROTECTED)
        except UserError:
            return ()

    def _blind(self, error: UserError) -> Snapshot:
        """Nobody could look. What is compared with next time is the tree as it was before."""
        self._effects.record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}", unseen=True))
        return Snapshot(tree=self._effects.state.tree, work=self._effects.state.work)
