"""Signals, the inbox and the guardian's end, as one stream of requests."""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from bydawn.core.loop import OnInterrupt
from bydawn.core.ports import Channel
from bydawn.core.requests import AskPause, Request
from bydawn.process.guardian import Tether
from bydawn.system import kernel

_LOOK = 5.0  # seconds between looks at an inbox that has reported nothing
_NOW = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Signals:
    """Collects signals; `fd` becomes readable when one arrives.

    The first Ctrl-C lets the round finish; anything stronger stops it now.
    """

    def __init__(self, run: str, on_interrupt: OnInterrupt) -> None:
        self._run = run
        self._patience = 1 if on_interrupt is OnInterrupt.FINISH else 0  # interrupts that only ask
        self._come: list[int] = []
        self._interrupts = 0
        self._has_come = False
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        # After `nohup` one stays ignored.
        ours = [each for each in (signal.SIGINT, *_NOW) if signal.getsignal(each) is not signal.SIG_IGN]
        self._handlers = {number: signal.signal(number, self._note) for number in ours}

    def close(self) -> None:
        """Others handle signals again, unless one has come: it may come twice, from terminal and parent."""
        signal.set_wakeup_fd(self._before)
        for number, handler in self._handlers.items() if not self._has_come else ():
            signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._write)

    def take(self) -> list[Request]:
        """The signals since the last call, as requests."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)
        come, self._come = self._come, []
        return [self._request(number) for number in come]

    def _note(self, number: int, _: FrameType | None) -> None:
        self._come.append(number)
        self._has_come = True

    def _request(self, number: int) -> Request:
        if number == signal.SIGINT:
            self._interrupts += 1
        now = number in _NOW or self._interrupts > self._patience
        name = signal.Signals(number).name
        return AskPause(id="", run=self._run, by="a signal", now=now, signal=name)


class LoopChannel:
    """Takes from all three what was asked since the last call."""

    def __init__(
        self,
        signals: Signals,
        inbox: Channel,
        tether: Tether,
        run: str,
        watch: kernel.Watch,
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        """`asked` is called whenever the worker looks."""
        self._signals = signals
        self._inbox = inbox
        self._tether = tether
        self._run = run
        self._watch = watch
        self._asked = asked
        self._alone = False
        self._looked = 0.0
        self._poll = select.poll()
        for fd in self.fds:
            self._poll.register(fd, select.POLLIN)

    @property
    def fds(self) -> list[int]:
        return [fd for fd in (self._signals.fd, self._watch.fd, self._tether.fd) if fd >= 0]

    def take(self) -> list[Request]:
        self._asked()
        now = time.monotonic()
        if self._watch.works and now - self._looked < _LOOK and not self._poll.poll(0):
            return []  # asked again and again in a silent night
        self._looked = now
        self._watch.drain()
        requests = [*self._signals.take(), *self._inbox.take()]
        if not self._alone and self._tether.cut():
            self._alone = True  # asked for once; a closed descriptor stays readable
            requests.append(AskPause(id="", run=self._run, by="a signal", now=True, signal="the death of its guardian"))
        return requests

    def done(self, request: Request) -> None:
        self._inbox.done(request)
