"""Run the server: what it listens on, how it ends, and what a slow or stuck client may cost."""

import asyncio
import logging
import socket
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
from sse_starlette.sse import AppStatus
from uvicorn.protocols.http.h11_impl import H11Protocol

from bydawn.core.errors import UserError
from bydawn.core.values import OURS, Act
from bydawn.store.registry import Registry
from bydawn.store.web_keys import WebKeys
from bydawn.web import chatting
from bydawn.web.app import application
from bydawn.web.auth import KNOWN, SERVE, Gate, Names, Tokens
from bydawn.web.calls import Route, Site
from bydawn.web.loops import Loops
from bydawn.web.stream import Hub
from bydawn.web.table import TABLE, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from bydawn.store.registry import Standing

_REQUEST = 10.0  # seconds in which a request has to be there
_STUCK = 30.0  # seconds after which a client that takes nothing is let go
_HEAD = 64 << 10  # bytes of a request line and its headers
_STRANGERS = 600  # connections on which no one has shown a key; the system allows about 1,000 files
_OF_ONE = 64  # on which the same session or token was shown
_AT_ONCE = 64  # that are accepted at a time: a request is read before 600 others can have come after it
_QUEUE = 2048  # that wait until then
_ENDS = 2  # seconds that answers have to end in


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is asked for."""

    name: str
    folder: Path
    registry: Registry
    host: str
    port: int
    tokens: Tokens
    allowed: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    read_only: bool = False
    shown: "Callable[[Standing], bool] | None" = None  # of all loops, those of a tool or a folder
    more: "Callable[[Site], Iterable[Route]]" = lambda _: ()  # routes of the tool that it speaks for
    serves: Act = SERVE  # what was typed for it, and prints new links with `--link`
    for_programs: bool = False  # it answers in JSON unless a page is asked for


class _Careful(H11Protocol):
    """Ends a connection whose request trickles in, or whose client takes nothing of the answer.

    If there are too many on which no one has shown a key, the oldest of the address that has most of them goes, so that
    who is signed in always has a place. A key has so many of them, and the oldest goes here, too.
    """

    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _key = ""  # a session or a token

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._came = time.monotonic()
        self.app_state = {**self.app_state, KNOWN: self._keep}
        self._wait()
        strangers = [each for each in self.connections if isinstance(each, _Careful) and not each._key]
        if len(strangers) > _STRANGERS:
            [(most, _)] = Counter(each._address for each in strangers).most_common(1)
            self._end_oldest([each for each in strangers if each._address == most])

    def _end_oldest(self, of: "list[_Careful]") -> None:
        oldest = min(of, key=lambda each: each._came)
        self.connections.discard(oldest)
        oldest._give_up()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _keep(self, key: str) -> None:
        if self._key != key:
            self._key = key
            same = [each for each in self.connections if isinstance(each, _Careful) and each._key == key]
            if len(same) > _OF_ONE:
                self._end_oldest(same)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        import h11

        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            if self._late is None:
                self._wait()
        elif self._late:
            self._late.cancel()
            self._late = None

    def _wait(self) -> None:
        self._late = self.loop.call_later(_REQUEST, self._give_up)

    def _give_up(self) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(_STUCK, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck:
            self._stuck.cancel()
            self._stuck = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._late, self._stuck):
            if timer:
                timer.cancel()


class _Ending(uvicorn.Server):
    """Ends with a signal as it does without one."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():  # asyncio takes the number that it accepts at a time for this one, too
            each.listen(_QUEUE)

    def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
        super().handle_exit(sig, frame)
        # uvicorn would raise it again at its end, which would be ours: before the agents that were asked have ended.
        self._captured_signals.clear()


class Server:
    """A server that listens already, so that its port is known before it says so."""

    def __init__(self, wanted: Wanted) -> None:
        self.sockets = listening(wanted.host, wanted.port)
        self.port: int = self.sockets[0].getsockname()[1]
        self.keys = WebKeys(wanted.registry.root, wanted.name)
        is_ours = wanted.serves.program == OURS
        names = Names(port=self.port, allowed=wanted.allowed, cors=wanted.cors, takes_more=is_ours)
        loops = Loops(wanted.registry, wanted.shown)
        gate = Gate(self.keys, names, wanted.tokens, read_only=wanted.read_only, serves=wanted.serves)
        site = Site(
            name=wanted.name,
            folder=wanted.folder,
            loops=loops,
            gate=gate,
            hub=None,  # type: ignore[arg-type]
            for_programs=wanted.for_programs,
        )
        site.hub = Hub(loops, lambda address, visitor: page_of(site, address, visitor))
        more = [*wanted.more(site)]
        taken = {(row.method, row.path) for row in more}
        table = [*more, *(row for row in TABLE if (row.method, row.path) not in taken)]
        self.app = application(site, table)
        self._server: uvicorn.Server | None = None

    @property
    def is_up(self) -> bool:
        return self._server is not None and self._server.started

    def run(self) -> None:
        """Until a signal or `end` ends it."""
        config = uvicorn.Config(
            self.app,
            http=_Careful,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_AT_ONCE,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=_ENDS,
            h11_max_incomplete_event_size=_HEAD,
        )
        for name in ("uvicorn.error", "asyncio"):  # they would complain about streams that end, and clients that leave
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.keys.sweep()
        AppStatus.should_exit = False
        self._server = _Ending(config)
        asyncio.run(self._serve(self._server))

    async def _serve(self, server: uvicorn.Server) -> None:
        try:
            await server.serve(sockets=self.sockets)
        finally:
            await chatting.end_all()

    def end(self) -> None:
        """From another thread."""
        if self._server:
            AppStatus.should_exit = True
            self._server.should_exit = True


def listening(host: str, port: int) -> list[socket.socket]:
    """The sockets of an address, or an error that says what to do."""
    try:
        rows = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UserError(
            f"{host} is not an address of this machine", cause=f"{error.strerror}", hint="--host 127.0.0.1"
        ) from None
    family, kind, number, _, place = rows[0]
    found = socket.socket(family, kind, number)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(place)
        found.listen(_QUEUE)
    except OSError as error:
        found.close()
        import errno

        if error.errno == errno.EADDRINUSE:
            hint = "stop that one, or choose another: --port 0 takes a free one"
            raise UserError(f"port {port} is in use", cause="another server listens there", hint=hint) from None
        hint = "choose an address of this machine with --host, or a port above 1023"
        raise UserError(f"cannot listen on {host} port {port}", cause=error.strerror or str(error), hint=hint) from None
    return [found]
