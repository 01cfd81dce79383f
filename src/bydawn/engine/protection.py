"""Protected files: did anything change them, and are they restored?"""

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import Obstructed
from bydawn.core.globs import ALWAYS_PROTECTED
from bydawn.core.layout import tree_after, tree_before
from bydawn.core.loop import OnTamper
from bydawn.core.ports import Snapshot
from bydawn.engine.effects import Effects

_TAMPERED = 1000  # paths that a fact names; whether everything is restored is answered by the trees, never by this list


class Touched(msgspec.Struct, frozen=True):
    """The work tree now, the protected files in it that were changed, and whether we have put them back."""

    now: Snapshot
    paths: tuple[str, ...] = ()
    restored: bool = False


class Protection:
    """Compares kept trees; what cannot be compared is an obstacle, never a pass."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._workspace = effects.world.workspace
        self._settings: tuple[str | None, ...] | None = None  # what is always protected, as the turn began

    def watch(self) -> None:
        """The agent's code is about to run."""
        self._settings = self._read_settings()

    def after_round(self, round_: int, after: Snapshot) -> Touched:
        """What the round did to protected files."""
        before = self._effects.state.tree
        if after.tree == before or self._is_as_it_was():
            return Touched(after)
        try:
            touched = self._workspace.touched(before, after.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
        except UserError as error:
            return Touched(self._effects.blind(error))
        if not touched or self._loop.on_tamper is not OnTamper.RESTORE:
            return Touched(after, touched[:_TAMPERED])
        put_back = True
        try:
            self._workspace.restore(before, touched)
        except UserError as error:  # some of them may be
            self._effects.blind(error)
            put_back = False
        left = self._effects.snapshot(keep_as=tree_after(round_))
        return Touched(replace(left, changes=after.changes), touched[:_TAMPERED], put_back)

    def after_checks(self, round_: int) -> Touched | None:
        """A check runs what the agent wrote, so what it does to protected files is the agent's doing, too."""
        if self._is_as_it_was():
            return None  # the usual case, without asking git
        now = self._effects.snapshot()
        if round_:
            return self.after_round(round_, now)
        # Before any work this is what the checks always do, and it would block every round.
        if touched := self._workspace.touched(self._effects.state.tree, now.tree, self._loop.protect):
            detail = f"the checks themselves change protected files: {', '.join(touched[:3])}"
            self._effects.record(Obstructed(kind="protect", detail=detail))
        return None

    def at_start(self, now: Snapshot, *, unseen: bool) -> Touched:
        """Protected files that are still changed, because they were not restored or not looked at; and those that
        we restored, if they changed between runs."""
        state = self._effects.state
        if not state.tampered and not unseen:
            return Touched(now)
        before = state.protected_tree if state.tampered else state.tree  # the tree in which all of them are unchanged
        try:
            touched = self._workspace.touched(before, now.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
            if touched and unseen and self._loop.on_tamper is OnTamper.RESTORE:
                self._workspace.restore(before, touched)
                now = self._effects.snapshot(keep_as=tree_before(state.round + 1))
                return Touched(now, touched[:_TAMPERED], restored=True)
        except UserError as error:
            return Touched(self._effects.blind(error), state.tampered)
        return Touched(now, touched[:_TAMPERED])

    def _is_as_it_was(self) -> bool:
        """Is only what we can see protected, and unchanged? Then git need not be asked."""
        return not self._loop.protect and self._settings is not None and self._read_settings() == self._settings

    def _read_settings(self) -> tuple[str | None, ...]:
        """What is always protected, as it is now; an unreadable file counts as missing."""
        try:
            return tuple(self._workspace.read_text(path) for path in ALWAYS_PROTECTED)
        except UserError:
            return ()
