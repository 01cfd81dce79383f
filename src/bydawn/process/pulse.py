"""A worker shows that it is alive, again and again from a thread of its own: an agent can be silent for an hour."""

import signal
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread

EVERY = 60.0  # seconds
_STUCK = 1800.0  # seconds; whatever the worker waits for, it looks for requests more often than that


class Pulse:
    """A context manager around a run. If the main thread does not get on with its work, the thread falls silent too."""

    def __init__(
        self,
        beats: Sequence[Callable[[], None]],
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,  # so many seconds; is it over?
    ) -> None:
        """`beats` are called at once, and then every minute."""
        self._beats = beats
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

    def _beat(self) -> None:
        for beat in self._beats:
            beat()
