"""Files in a workspace that are not the agent's work: what this loop and its neighbors write there for people."""

import msgspec

from bydawn.core.globs import ALWAYS_PROTECTED, is_protected
from bydawn.core.loop import Loop
from bydawn.store.folder import LoopFolder, loops_in
from bydawn.store.lock import is_held


class ForeignFiles:
    """Files that this loop, and others working there at the same time, write in the workspace for people.

    They are not the agent's work. Files of a loop that ended earlier belong to a person again, and a file this
    loop protects is never treated as another loop's.
    """

    def __init__(self, loop: Loop, folder: LoopFolder) -> None:
        self._own = loop.dialect.files if loop.dialect else ()
        self._protect = (*ALWAYS_PROTECTED, *loop.protect)
        self._folder = folder
        self._began = folder.lock.stat().st_mtime_ns  # signed by this very run
        self._seen = 0
        self._others: dict[LoopFolder, tuple[str, ...]] = {}
        self._met: set[LoopFolder] = set()

    def __call__(self) -> tuple[str, ...]:
        self._look_around()
        for folder, files in self._others.items():
            if files and folder not in self._met and self._is_at_work(folder):
                self._met.add(folder)  # permanently: what it left when it ended is not our work either
        others = (path for folder, files in self._others.items() if folder in self._met for path in files)
        return tuple(dict.fromkeys((*self._own, *others)))

    def _look_around(self) -> None:
        """Read the settings of new loops here."""
        stamp = self._folder.home.stat().st_mtime_ns
        if stamp == self._seen:
            return
        unborn = False
        for folder in loops_in(self._folder.home):
            if folder != self._folder and folder not in self._others:
                files = self._files(folder)
                unborn = unborn or files is None
                if files is not None:
                    self._others[folder] = files
        self._seen = 0 if unborn else stamp  # one is being created: look again

    def _files(self, folder: LoopFolder) -> tuple[str, ...] | None:
        try:
            loop = folder.read_loop()
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            return ()
        files = loop.dialect.files if loop.dialect else ()
        return tuple(path for path in files if not is_protected(path, self._protect))

    def _is_at_work(self, folder: LoopFolder) -> bool:
        """Now, or since we began: its ledger says so before anything is written for people."""
        try:
            wrote = folder.ledger.stat().st_mtime_ns
        except OSError:
            return False
        return wrote >= self._began or is_held(folder.lock)
