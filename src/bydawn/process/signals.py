"""What signals ask of a loop: the first Ctrl-C lets the round finish; anything stronger stops it now."""

import os
import signal
from contextlib import suppress
from types import FrameType

from bydawn.core.loop import OnInterrupt
from bydawn.core.requests import AskPause, Request

_NOW = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Signals:
    """Collects signals; `fd` becomes readable when one arrives."""

    def __init__(self, run: str, on_interrupt: OnInterrupt) -> None:
        self._run = run
        self._patience = 1 if on_interrupt is OnInterrupt.FINISH else 0  # interrupts that only ask
        self._come: list[int] = []
        self._interrupts = 0
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, *_NOW):
            signal.signal(number, self._note)

    def take(self) -> list[Request]:
        """The signals since the last call, as requests."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)
        come, self._come = self._come, []
        return [self._request(number) for number in come]

    def _note(self, number: int, _: FrameType | None) -> None:
        self._come.append(number)

    def _request(self, number: int) -> Request:
        if number == signal.SIGINT:
            self._interrupts += 1
        now = number in _NOW or self._interrupts > self._patience
        name = signal.Signals(number).name
        return AskPause(id="", run=self._run, by="a signal", now=now, signal=name)
