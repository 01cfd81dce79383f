"""A file that says again and again, for scripts, that a run is alive and how it is."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType

import msgspec

from bydawn.core.agent import Event as Heard
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, LoopStopped, RunStarted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import FINISHED, Moment
from bydawn.system.writing import replace_private

_LONGEST = 500  # characters of an error


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says."""

    pid: int
    phase: str  # running, completed, blocked, error
    updated_at: Moment
    cycle: int = 0
    error_count: int = 0
    outcome: str | None = None  # of the last run or cycle that has ended: completed, blocked
    last_error: str | None = None


class Heartbeat:
    """A context manager around a run: the file is written when it begins and ends, and at every start and stop of the
    loop; in between the worker's own thread calls `beat` again and again. No reader ever sees a part of it.
    """

    def __init__(
        self,
        path: Path,
        reason: Callable[[LoopStopped], str] = lambda stopped: stopped.reason,  # why it ended, in words for its reader
        *,
        needed: bool = True,  # is the run refused if it cannot be written?
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = path.absolute()  # a running loop is in another folder
        self._reason = reason
        self._needed = needed
        self._now = now
        self._lock = Lock()
        self._beat = Beat(pid=os.getpid(), phase="running", updated_at=now())

    def __enter__(self) -> "Heartbeat":
        try:
            if os.path.lexists(self._path) and not self._path.is_file():
                raise OSError(errno.EINVAL, "it is not a regular file")
            self._write()
        except OSError as error:
            if not self._needed:
                return self
            hint = "give the path of a file in a folder that you can write to"
            cause = error.strerror or str(error)
            raise UserError(f"the heartbeat {self._path} cannot be written", cause=cause, hint=hint) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error:
            said = shorten(plain(str(error) or type(error).__name__), _LONGEST)
            self._note(phase="error", error_count=self._beat.error_count + 1, last_error=said)
        else:
            self._note()

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        match fact:
            case RunStarted():
                self._note(phase="running", cycle=fact.cycle)
            case LoopStopped() if fact.end in FINISHED:
                self._note(phase="completed", outcome="completed", last_error=None)
            case LoopStopped():
                self._note(phase="blocked", outcome="blocked", last_error=shorten(plain(self._reason(fact)), _LONGEST))
            case _:
                pass

    def heard(self, event: Heard) -> None:
        """What an agent says does not show that bydawn is alive."""

    def beat(self) -> None:
        self._note()

    def _note(self, **news: object) -> None:
        """A disk that is full for a while must not end the run: then the file is old, which is what it is for."""
        with self._lock, suppress(OSError):
            self._beat = msgspec.structs.replace(self._beat, **news)
            self._write()

    def _write(self) -> None:
        self._beat = msgspec.structs.replace(self._beat, updated_at=self._now())
        replace_private(self._path, msgspec.json.encode(self._beat) + b"\n")
