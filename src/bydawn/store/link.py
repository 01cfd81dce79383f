"""Keeps `.bydawn/loops/<id>` in the workspace, for people to look at."""

import os
from contextlib import suppress
from pathlib import Path

from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, RoundStarted, RunStarted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.system.writing import real_folder


class Link:
    """Keeps `.bydawn/loops/<id>` in the workspace, for people to look at; the truth is out of the agent's reach."""

    def __init__(self, workspace: Path, name: str, folder: Path) -> None:
        self._workspace = workspace
        self._name = name
        self._folder = str(folder)

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        if isinstance(fact, RunStarted | RoundStarted):
            with suppress(OSError):  # a read-only workspace has no link; nothing depends on it
                self._restore()

    def heard(self, event: Event) -> None:
        """A link has nothing to hear."""

    def _restore(self) -> None:
        with real_folder(str(self._workspace), ".bydawn") as ours, suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            fd = os.open(".gitignore", flags, 0o644, dir_fd=ours)
            os.write(fd, b"*\n")
            os.close(fd)
        with real_folder(str(self._workspace), ".bydawn", "loops") as loops:
            self._link(loops)

    def _link(self, loops: int) -> None:
        try:
            if os.readlink(self._name, dir_fd=loops) == self._folder:
                return
            os.unlink(self._name, dir_fd=loops)
        except FileNotFoundError:
            pass
        os.symlink(self._folder, self._name, dir_fd=loops)
