"""A worker shows that it is alive by touching a file, from a thread of its own: an agent can be silent for an hour."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

EVERY = 60.0  # seconds
_STUCK = 1800.0  # seconds; whatever the worker waits for, it looks for requests more often than that


class Pulse:
    """A context manager around a run. If the main thread does not get on with its work, the thread falls silent too."""

    def __init__(
        self,
        path: Path,
        others: Sequence[Callable[[], None]] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,  # so many seconds; is it over?
    ) -> None:
        """`others` are called with every beat."""
        self._path = path
        self._others = others
        self._clock = clock
        self._over = Event()
        self._wait = wait or self._over.wait
        self._moved = clock()
        self._thread = Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> "Pulse":
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(1.0)

    def moved(self) -> None:
        """The main thread is not stuck."""
        self._moved = self._clock()

    def _go_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while not self._wait(EVERY):
            if self._clock() - self._moved < _STUCK:
                self._beat()
                for other in self._others:
                    other()

    def _beat(self) -> None:
        with suppress(OSError):  # a full disk must not end the run: then the file is old, which is what it is for
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            os.utime(self._path)
