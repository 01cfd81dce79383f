"""Protected files: did anything change them, and are they restored?"""

from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import Obstructed
from bydawn.core.globs import ALWAYS_PROTECTED
from bydawn.core.layout import tree_after, tree_before
from bydawn.core.loop import OnTamper
from bydawn.core.values import Findings, Snapshot
from bydawn.engine.effects import Effects

_TAMPERED = 1000  # paths that a fact names; whether everything is restored is answered by the trees, never by this list


def _found(now: Snapshot, tampered: tuple[str, ...] = (), *, restored: bool = False) -> Findings:
    tampered = tampered[:_TAMPERED]
    return Findings(tree=now.tree, work=now.work, changes=now.changes, tampered=tampered, restored=restored)


class Protection:
    """Compares kept trees; what cannot be compared is an obstacle, never a pass."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._workspace = effects.workspace

    def watch(self) -> None:
        """The agent's code is about to run."""
        self._workspace.watch()

    def after_round(self, round_: int, after: Snapshot) -> Findings:
        """What the round did to protected files."""
        before = self._effects.state.tree
        if after.tree == before or (not self._loop.protect and self._workspace.rewritten() == ()):
            return _found(after)  # without asking git
        try:
            touched = self._workspace.touched(before, after.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
        except UserError as error:
            return _found(self._effects.blind(error))
        if not touched or not self._restores:
            return _found(after, touched)
        return replace(self._put_back(before, touched, keep_as=tree_after(round_)), changes=after.changes)

    def after_checks(self, round_: int) -> Findings | None:
        """A check runs what the agent wrote, so what it does to protected files is the agent's doing, too.

        One that was changed while they ran and then put back may be what made them pass.
        """
        rewritten = self._workspace.rewritten() or ()
        if not rewritten:
            return None  # the usual case, without asking git
        now = self._effects.snapshot()
        if round_:
            found = self.after_round(round_, now)
            paths = tuple(dict.fromkeys((*found.tampered, *rewritten)))[:_TAMPERED]
            return replace(found, tampered=paths, restored=found.restored if found.tampered else self._restores)
        # Before any work this is what the checks always do, and it would block every round.
        detail = f"the checks themselves change protected files: {', '.join(rewritten[:3])}"
        if now.tree == self._effects.state.tree:
            detail += " (and put them back)"
        self._effects.record(Obstructed(kind="protect", detail=detail))
        return None

    @property
    def _restores(self) -> bool:
        return self._loop.on_tamper is OnTamper.RESTORE

    def at_start(self, now: Snapshot, *, unseen: bool) -> Findings:
        """Protected files that are still changed, because they were not restored or not looked at; and those that
        we restored, if they changed between runs."""
        state = self._effects.state
        if not state.tampered and not unseen:
            return _found(now)
        before = state.protected_tree if state.tampered else state.tree  # the tree in which all of them are unchanged
        try:
            touched = self._workspace.touched(before, now.tree, (*ALWAYS_PROTECTED, *self._loop.protect))
        except UserError as error:
            return _found(self._effects.blind(error), state.tampered)
        if touched and self._restores:  # also if that failed before: there may be room now
            return self._put_back(before, touched, keep_as=tree_before(state.round + 1))
        return _found(now, touched)

    def _put_back(self, before: str, touched: tuple[str, ...], keep_as: str) -> Findings:
        """Restore these files; a person has to see to those that cannot be."""
        put_back = True
        try:
            self._workspace.restore(before, touched)
        except UserError as error:  # some of them may be
            self._effects.blind(error, unseen=False)
            put_back = False
        return _found(self._effects.snapshot(keep_as=keep_as), touched, restored=put_back)
