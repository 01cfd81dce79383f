"""What a stream tells a browser, and one open stream: what waits for it, and where it is in every ledger."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from bydawn.store.web_keys import Role
from bydawn.web.calls import number

_QUEUE, _QUEUED = 500, 4 << 20  # events and bytes that wait for one reader at most


class Event(NamedTuple):
    """As it is sent. Facts have an id: where the reader is in every ledger."""

    kind: str
    data: str
    loop: str = ""
    seq: int = 0
    page: tuple[str, Role] | None = None
    log: str = ""

    @classmethod
    def of(cls, kind: str, value: Any, **about: Any) -> "Event":
        return cls(kind, msgspec.json.encode(value).decode(), **about)


RESYNC = Event("resync", "{}")
ALIVE = Event("sign", "{}")  # we have looked, and there is nothing else to say


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    loop: str
    seq: int
    at: str
    type: str
    text: str = ""  # what a page says aloud, if it says anything
    alarm: bool = False  # … and at once: it needs a person


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    loop: str
    text: str
    output_age: float | None


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    page: str
    id: str
    html: str


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """New lines of a round's output; the next ones begin at `offset` and `line`."""

    log: str
    html: str
    count: int
    offset: int
    line: int


class Place(msgspec.Struct):
    """Where a follower of a round's output is."""

    loop: str
    round: int
    offset: int
    line: int

    @property
    def key(self) -> str:
        return f"{self.loop}:{self.round}"


class Reader:
    """One open stream. One that is too slow loses what waits for it, and is told so."""

    def __init__(self, role: Role, loops: frozenset[str], pages: Iterable[str], logs: Iterable[Place]) -> None:
        self.role = role
        self.loops = loops  # empty: all
        self.pages = {(page, role) for page in pages}
        self.logs = {place.key: place for place in logs}
        self.position: dict[str, int] = {}
        self._waiting: deque[Event] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._lost = False

    def wants(self, event: Event) -> bool:
        if event is ALIVE:
            return True
        if event.page:
            return event.page in self.pages
        if event.log:
            return event.log in self.logs
        return not self.loops or event.loop in self.loops

    def put(self, event: Event) -> None:
        self._waiting.append(event)
        self._size += len(event.data)
        if len(self._waiting) > _QUEUE or self._size > _QUEUED:
            self._waiting.clear()
            self._size, self._lost = 0, True
        self._news.set()

    async def take(self) -> list[Event]:
        await self._news.wait()
        self._news.clear()
        events, self._size = [*self._waiting], 0
        self._waiting.clear()
        if self._lost:
            self._lost = False
            return [RESYNC, *events]
        return events


def vector(position: dict[str, int]) -> str:
    return ",".join(f"{quote(loop, safe='@')}:{seq}" for loop, seq in position.items())


def positions(text: str) -> dict[str, int] | None:
    """Where a reader was: `billing:49,shop-api:112`; None if it is new."""
    if not text:
        return None
    rows = (row.rpartition(":") for row in text.split(","))
    return {unquote(loop): seq for loop, _, digits in rows if loop and (seq := number(digits, 15)) is not None}


def place_in(text: str) -> Place | None:
    """`billing:13:48211:495`: a round, where its output was read up to, and the number of the next line."""
    loop, *given = text.rsplit(":", 3)
    numbers = [found for each in given if (found := number(each, 15)) is not None]
    if len(numbers) != 3:
        return None
    round_, offset, line = numbers
    return Place(loop=loop, round=round_, offset=offset, line=line)
