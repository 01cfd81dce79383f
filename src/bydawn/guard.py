"""Protected files: who touched them, and are they as they were?"""

from msgspec.structs import replace

from bydawn.core.decide import checks_due
from bydawn.core.errors import UserError
from bydawn.core.facts import Obstructed
from bydawn.core.loop import OnTamper
from bydawn.core.ports import Snapshot
from bydawn.hands import Hands

ALWAYS_PROTECTED = ("bydawn.toml",)  # what the next loop here would be told to run
_TAMPERED = 1000  # paths that a fact names; whether all is as it was is asked of the trees, never of this list


class Guard:
    """Compares trees that are kept; what cannot be compared is an obstacle, never a pass."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._loop = hands.loop
        self._workspace = hands.world.workspace
        self._settings: tuple[str | None, ...] = ()

    def after_round(self, round_: int, after: Snapshot) -> tuple[Snapshot, tuple[str, ...], bool]:
        """The tree after a round, the protected files that the round touched, and whether they were put back."""
        before, seen = self._hands.state.tree, after.changes
        is_known = not self._loop.protect and seen.total == len(seen.paths)  # then nobody need ask git
        unprotected = is_known and not {*ALWAYS_PROTECTED} & {*seen.paths}
        if after.tree == before or unprotected or self._hands.state.obstructed:
            return after, (), False
        try:
            touched = self._workspace.touched(before, after.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
            if not touched or self._loop.on_tamper is not OnTamper.RESTORE:
                return after, touched[:_TAMPERED], False
            self._workspace.restore(before, touched)
        except UserError as error:
            self._give_up(error)
            return after, (), False
        restored = self._hands.snapshot(keep_as=f"after/{round_}")
        return replace(restored, changes=seen), touched[:_TAMPERED], True

    def before_checks(self) -> None:
        self._settings = self._read_settings()

    def after_checks(self, round_: int) -> tuple[tuple[str, ...], bool]:
        """A check runs what the agent wrote; what that does to protected files is the agent's deed, too."""
        if not self._loop.protect and self._read_settings() == self._settings:
            return (), False  # the usual case, and then nobody need ask git
        now = self._hands.snapshot()
        if round_:
            _, tampered, restored = self.after_round(round_, now)
            return tampered, restored
        # Before anybody has worked it is the checks' own habit, and would block every round.
        if touched := self._workspace.touched(self._hands.state.tree, now.tree, self._loop.protect):
            detail = f"the checks themselves change protected files: {', '.join(touched[:3])}"
            self._hands.record(Obstructed(kind="protect", detail=detail))
        return (), False

    def at_start(self, now: Snapshot) -> tuple[Snapshot, tuple[str, ...], tuple[str, ...]]:
        """Protected files that are not as they were, as nobody has put them back or nobody has looked; and what we
        have put back of the latter."""
        state, protected = self._hands.state, (*ALWAYS_PROTECTED, *self._loop.protect)
        try:
            found = self._workspace.touched(state.guard, now.tree, protected) if state.tampered else ()
            if not self._is_unseen():
                return now, found[:_TAMPERED], ()
            unseen = self._workspace.touched(state.tree, now.tree, protected)
            if unseen and self._loop.on_tamper is OnTamper.RESTORE:
                self._workspace.restore(state.tree, unseen)
                return self._workspace.snapshot(), found[:_TAMPERED], unseen[:_TAMPERED]
        except UserError as error:
            self._give_up(error)
            return now, state.tampered, ()
        return now, tuple(dict.fromkeys((*found, *unseen)))[:_TAMPERED], ()

    def _is_unseen(self) -> bool:
        """Has something of the agent's run since the last look? Checks do, and they may have been cut by a crash."""
        state = self._hands.state
        crashed = state.stopped is None or state.stopped.unseen
        return state.last is not None and (state.last.unseen or (crashed and checks_due(self._loop, state)))

    def _read_settings(self) -> tuple[str | None, ...]:
        """What is always protected, as it is now; one that cannot be read is like none."""
        try:
            return tuple(self._workspace.read_text(path) for path in ALWAYS_PROTECTED)
        except UserError:
            return ()

    def _give_up(self, error: UserError) -> None:
        self._hands.record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}"))
