"""Signals, the inbox and the guardian's end, as one stream of requests."""

from bydawn.core.ports import Channel
from bydawn.core.requests import AskPause, Request
from bydawn.process.guardian import Tether
from bydawn.process.signals import Signals
from bydawn.system import kernel


class LoopChannel:
    """Signals, the inbox and the tether to the guardian, as one stream of requests."""

    def __init__(self, signals: Signals, inbox: Channel, tether: Tether, run: str, watch: kernel.Watch) -> None:
        self._signals = signals
        self._inbox = inbox
        self._tether = tether
        self._run = run
        self._watch = watch
        self._alone = False

    @property
    def fds(self) -> list[int]:
        return [fd for fd in (self._signals.fd, self._watch.fd, self._tether.fd) if fd >= 0]

    def take(self) -> list[Request]:
        self._watch.drain()
        requests = [*self._signals.take(), *self._inbox.take()]
        if not self._alone and self._tether.cut():
            self._alone = True  # asked for once; a closed descriptor stays readable
            requests.append(AskPause(id="", run=self._run, by="a signal", now=True, signal="the death of its guardian"))
        return requests

    def done(self, request: Request) -> None:
        self._inbox.done(request)
