"""What changed while a question was answered: the work tree before and after, in the loop's private git directory."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bydawn.assemble import work_tree
from bydawn.core.agent import Agent
from bydawn.core.chat import Snapshots, Turn
from bydawn.core.errors import UserError
from bydawn.core.layout import tree_after_chat, tree_before_chat
from bydawn.core.loop import Sandbox
from bydawn.core.text import plain
from bydawn.operations.amounts import plural
from bydawn.store.ledger import load
from bydawn.store.lock import CHAT, Lock, Owned
from bydawn.store.registry import Standing, beside
from bydawn.worktree.workspace import GitWorkspace

_NAMED = 3  # files
_UNKNOWN = "whether it changed files is not known: rounds change them too"


class Look:
    """Two looks at the work tree: an agent that may only read is not taken at its word.

    The loop's lock is only held for each look. The two can be compared if no round worked here meanwhile.
    """

    def __init__(self, standing: Standing, turn: Turn) -> None:
        self._standing, self._turn = standing, turn
        self._before = ""

    def before(self) -> None:
        with suppress(UserError, Owned), self._alone() as tree:
            self._before = tree.snapshot().tree

    def after(self, agent: Agent) -> tuple[Snapshots | None, str]:
        with suppress(UserError, Owned), self._alone() as tree:
            if self._before:
                return self._compared(tree)
        return None, "" if Sandbox.READ_ONLY in agent.abilities.sandboxes else _UNKNOWN

    def _compared(self, tree: GitWorkspace) -> tuple[Snapshots | None, str]:
        after = tree.snapshot().tree
        if after == self._before:
            return None, ""
        tree.keep(tree_before_chat(self._turn.id), self._before)
        tree.keep(tree_after_chat(self._turn.id), after)
        kept = Snapshots(before=self._before, after=after)
        paths = sorted(path.decode(errors="replace") for path in tree.changed(kept.before, kept.after))
        if not paths:
            return kept, "a repository inside this one changed while it answered, although it may only read"
        names = f"{', '.join(map(plain, paths[:_NAMED]))}{' …' if len(paths) > _NAMED else ''}"
        return kept, f"{plural(len(paths), 'file')} changed while it answered, although it may only read: {names}"

    @contextmanager
    def _alone(self) -> Iterator[GitWorkspace]:
        """The work tree, while no round can start; `Owned` if one may be running, or there is nothing to compare."""
        standing = self._standing
        is_there = standing.folder.git.is_dir() and Path(standing.loop.folder).is_dir()
        if not is_there or standing.alive or beside(standing.folder, standing.loop):
            raise Owned("")
        held = Lock.take(standing.folder.lock, patience=0)
        try:
            state, _ = load(standing.folder)
            # After a crash, what the last round changed is not recorded before the next start.
            if state.stopped is None or state.runs != standing.state.runs:
                raise Owned("")
            held.sign(f"{CHAT}{self._turn.id}")
            yield work_tree(standing.loop, standing.folder, state)
            held.sign_off()
        finally:
            held.release()
