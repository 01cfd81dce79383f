"""What follows a loop on disk: `state.json`, and a link in the workspace for people to look at."""

import os
from contextlib import suppress
from pathlib import Path

from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, RoundStarted, RunStarted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.system.paths import NEW_FILE, open_fd, open_folder


class _Follower:
    def heard(self, event: Event) -> None:
        """Nothing in the stream matters to files on disk."""


class StateFile(_Follower):
    """Keeps `state.json`, the snapshot of the ledger, up to date."""

    def __init__(self, ledger: LoopLedger) -> None:
        self._ledger = ledger

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        self._ledger.snapshot()


class Link(_Follower):
    """Keeps `.bydawn/loops/<id>` in the workspace, for people; the real folder is out of the agent's reach."""

    def __init__(self, workspace: Path, folder: LoopFolder) -> None:
        self._workspace = workspace
        self._name = folder.name
        self._folder = str(folder)

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        if isinstance(fact, RunStarted | RoundStarted):
            with suppress(OSError):  # a read-only workspace has no link; nothing depends on it
                self._restore()

    def _restore(self) -> None:
        with (
            suppress(FileExistsError),
            open_folder(self._workspace, [".bydawn"], make=True) as ours,
            open_fd(".gitignore", NEW_FILE, 0o644, folder=ours) as fd,
        ):
            os.write(fd, b"*\n")
        with open_folder(self._workspace, [".bydawn", "loops"], make=True) as loops:
            self._link(loops)

    def _link(self, loops: int) -> None:
        try:
            if os.readlink(self._name, dir_fd=loops) == self._folder:
                return
            os.unlink(self._name, dir_fd=loops)
        except FileNotFoundError:
            pass
        os.symlink(self._folder, self._name, dir_fd=loops)
