"""What changed while a question was answered: the work tree before and after, in the loop's private git directory."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

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


class Look(Protocol):
    """Two looks at the work tree."""

    def before(self) -> Snapshots | None:
        """The tree that is kept before the agent starts, if it may change files."""

    def after(self, agent: Agent) -> tuple[Snapshots | None, str]:
        """Both trees if they are kept, and in words what changed."""


class Editing:
    """For a question that may change files. The caller holds the loop's lock, so no round can run."""

    def __init__(self, standing: Standing, turn: Turn) -> None:
        self._tree = work_tree(standing.loop, standing.folder, standing.state)
        self._turn = turn
        self._before = ""

    def before(self) -> Snapshots:
        self._before = self._tree.snapshot().tree
        self._tree.keep(tree_before_chat(self._turn.id), self._before)
        return Snapshots(before=self._before)

    def after(self, agent: Agent) -> tuple[Snapshots, str]:  # noqa: ARG002 - whichever it is
        try:
            kept = _kept(self._tree, self._turn, self._before, self._tree.snapshot().tree)
            return kept, _changed(self._tree, kept)
        except UserError as error:
            return Snapshots(before=self._before), f"what it changed is not known: {error.what}"


class Reading:
    """For a question that should change nothing: no agent is taken at its word.

    The loop's lock is only held for each look. The two can be compared if no round worked here meanwhile.
    """

    def __init__(self, standing: Standing, turn: Turn) -> None:
        self._standing, self._turn = standing, turn
        self._before = ""

    def before(self) -> None:
        with suppress(UserError), self._alone() as tree:
            self._before = tree.snapshot().tree if tree else ""

    def after(self, agent: Agent) -> tuple[Snapshots | None, str]:
        with suppress(UserError), self._alone() as tree:
            if tree and self._before:
                return self._compared(tree)
        return None, "" if Sandbox.READ_ONLY in agent.abilities.sandboxes else _UNKNOWN

    def _compared(self, tree: GitWorkspace) -> tuple[Snapshots | None, str]:
        after = tree.snapshot().tree
        if after == self._before:
            return None, ""
        kept = _kept(tree, self._turn, self._before, after)
        files, colon, names = _changed(tree, kept).partition(":")
        return kept, f"{files} while it answered, although it may only read{colon}{names}"

    @contextmanager
    def _alone(self) -> Iterator[GitWorkspace | None]:
        """The work tree, while no round can start; None if one may be running."""
        standing, held = self._standing, None
        with suppress(Owned):
            held = Lock.take(standing.folder.lock, patience=0) if self._is_quiet() else None
        if held is None:
            yield None
            return
        try:
            state, _ = load(standing.folder)
            # After a crash, what the last round changed is not recorded before the next start.
            if state.stopped is None or state.runs != standing.state.runs:
                yield None
                return
            held.sign(f"{CHAT}{self._turn.id}")
            yield work_tree(standing.loop, standing.folder, state)
            held.sign_off()
        finally:
            held.release()

    def _is_quiet(self) -> bool:
        """Is there something to compare with, and does nothing else work here?"""
        standing = self._standing
        is_there = standing.folder.git.is_dir() and Path(standing.loop.folder).is_dir()
        return is_there and not standing.alive and not beside(standing.folder, standing.loop)


def _kept(tree: GitWorkspace, turn: Turn, before: str, after: str) -> Snapshots:
    tree.keep(tree_before_chat(turn.id), before)
    tree.keep(tree_after_chat(turn.id), after)
    return Snapshots(before=before, after=after)


def _changed(tree: GitWorkspace, kept: Snapshots) -> str:
    """`2 files changed: a.py, b.py`"""
    paths = sorted(path.decode(errors="replace") for path in tree.changed(kept.before, kept.after))
    if not paths:
        return "nothing changed" if kept.before == kept.after else "a repository inside this one changed"
    more = " …" if len(paths) > _NAMED else ""
    return f"{plural(len(paths), 'file')} changed: {', '.join(map(plain, paths[:_NAMED]))}{more}"
