"""One stream of news for each browser: facts, what agents do, their output, and the parts of pages that changed."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from bydawn.core.errors import NotFound, UserError
from bydawn.core.facts import LoopStopped, Record, RoundEnded
from bydawn.core.layout import STDOUT
from bydawn.core.text import plain
from bydawn.core.values import Status
from bydawn.operations import outputs
from bydawn.operations.round_log import near_end, new_rows, place_of
from bydawn.operations.views import NEEDS_YOU
from bydawn.store.ledger import backwards, load, read
from bydawn.store.registry import Standing
from bydawn.store.web_keys import Role
from bydawn.system import kernel
from bydawn.web.failures import own_failure
from bydawn.web.loops import Loops
from bydawn.web.news import (
    ALIVE,
    RESYNC,
    Activity,
    Event,
    Fact,
    Fragment,
    Place,
    Reader,
    Rows,
    place_in,
    positions,
    vector,
)
from bydawn.web.page import Page, Section, Visitor, fragment
from bydawn.web.pages.log import log_rows

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from bydawn.web.calls import Call

_LOOK = 1.0  # seconds between two looks if the kernel reports nothing
_DRAW = 5.0  # … and between two of pages on which nothing has happened that we know of
_BUNDLE = 0.05  # … and between two bundles of output
_PAGES, _LOGS = 50, 20  # that one reader may follow: all tabs of a browser
_SIGN = 15.0  # seconds between signs of life
_REPLAYED = 5000  # facts that are sent again at most
_AGES = re.compile(r"(<time [^>]*data-(?:age|elapsed)[^>]*>)[^<]*")


class Hub:
    """Looks at loops while someone reads, once for all readers; one look at a time."""

    def __init__(self, loops: Loops, page_of: Callable[[str, Visitor], Page]) -> None:
        self._loops = loops
        self._page_of = page_of
        self._readers: set[Reader] = set()
        self._known: dict[str, tuple[int, int]] = {}  # by folder: the last fact, and where it ends
        self._sizes: dict[str, int] = {}  # of what running agents have printed
        self._sent: dict[tuple[str, Role], dict[str, str]] = {}  # digests of the parts of pages
        self._follows: dict[str, Place] = {}
        self._watch: kernel.Watch | None = None  # while someone reads
        self._watched: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._left_out: set[str] = set()  # pages and logs with a bug
        self._found: list[Standing] = []  # all loops, as they were at the last look
        self._looked = self._drawn = self._signed = 0.0
        self._alive: set[str] = set()
        self._lock = asyncio.Lock()

    # -- for one reader ------------------------------------------------------------------------------------------------

    async def stream(self, call: "Call", loops: frozenset[str]) -> AsyncGenerator[Any, None]:
        """What one reader gets: what it missed, its pages as they are, then news; of all loops, if none is named."""
        assert call.request  # noqa: S101 - every call has one
        reader = _reader(call.visitor.role, loops, call.request.query_params)
        missed = positions(call.headers.get("last-event-id", ""))
        async with self._lock:
            if not self._readers:  # no one has looked for a while, and no one waits for what happened since
                self._known.clear()
                self._sent.clear()
                self._follows.clear()
                self._left_out.clear()
            first, others = await asyncio.to_thread(self._catch_up, reader, missed)
            self._send(others)
            self._readers.add(reader)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_looking())
        try:
            yield {"event": "hello", "data": "{}", "retry": 2000, "id": vector(reader.position)}
            for event in first:
                yield self._told(reader, event)
            while True:
                for event in await reader.take():
                    yield self._told(reader, event)
        finally:
            self._readers.discard(reader)

    def _told(self, reader: Reader, event: Event) -> dict[str, Any]:
        row = {"event": event.kind, "data": event.data}
        if event.kind == "fact":
            reader.position[event.loop] = event.seq
            row["id"] = vector(reader.position)
        return row

    def _catch_up(self, reader: Reader, missed: dict[str, int] | None) -> tuple[list[Event], list[Event]]:
        """What has happened since the reader was last here and its pages as they are now; and what is new to others."""
        found, events, others = self._loops.all(), list[Event](), list[Event]()
        if missed is not None and not (missed and {*missed} <= {*map(self._loops.address, found)}):
            events, missed = [RESYNC], None  # nothing that we ever sent; or a loop has another name by now
        for standing in found:
            address, key = self._loops.address(standing), str(standing.folder)
            if key not in self._known:
                self._known[key] = _end_of(standing)
            seq, _ = self._known[key]
            reader.position[address] = seq
            if missed is not None and not standing.trouble and (not reader.loops or address in reader.loops):
                after = missed.get(address, 0)
                reader.position[address] = min(after, seq)  # it has not got the rest yet, and may be cut off before
                events += _missed(address, standing, after, seq)
                if len(events) > _REPLAYED:
                    events, missed = [RESYNC], None
        for page, role in reader.pages:
            events += self._fragments(page, role, everything=True)
        for place in reader.logs.values():
            with suppress(UserError, OSError, KeyError, ValueError):
                place.offset, place.line = place_of(self._loops.find(place.loop), place.round, place.offset)
            shared = self._follows.setdefault(place.key, msgspec.structs.replace(place))
            others += self._rows(shared)
            events += self._rows(place, until=shared.offset)
        return events, others

    def tell(self, event: Event) -> None:
        """News from elsewhere in this server, such as an answer that is being written."""
        self._send([event])
        self._drawn = 0.0  # a page may show it

    def _send(self, events: list[Event]) -> None:
        for event in events:
            for reader in [each for each in self._readers if each.wants(event)]:
                reader.put(event)

    # -- for all -------------------------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        watch = self._watch = kernel.Watch()
        self._watched.clear()
        if watch.works:
            loop.add_reader(watch.fd, woken.set)
        try:
            while self._readers:
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), _LOOK)
                woken.clear()
                watch.drain()
                try:
                    # What is new is sent before pages are drawn, which takes longer.
                    for look in (self._output, self._new_facts, self._activity, self._draw):
                        async with self._lock:
                            events = await asyncio.to_thread(look)
                            self._send(events)
                except Exception:  # a bug; without signs of life the pages say that they are not live
                    own_failure()
                    await asyncio.sleep(_SIGN)
                    continue
                if time.monotonic() - self._signed >= _SIGN:
                    self._signed = time.monotonic()
                    self._send([ALIVE])
                if watch.works:
                    await asyncio.sleep(_BUNDLE)
        finally:
            if watch.works:
                loop.remove_reader(watch.fd)
            watch.close()

    def _new_facts(self) -> list[Event]:
        self._found = self._loops.all()
        events = list[Event]()
        for standing in self._found:
            seq, end = self._known.get(str(standing.folder), (0, 0))
            if standing.trouble or standing.state.seq == seq:
                continue
            if standing.state.seq < seq:  # it was repaired
                self._known[str(standing.folder)] = _end_of(standing)
                events.append(RESYNC)
            else:
                events += self._facts(self._loops.address(standing), standing, seq, end)
        if events:
            self._drawn = 0.0
        return events

    def _facts(self, address: str, standing: Standing, seq: int, end: int) -> Iterable[Event]:
        try:
            for record, offset in read(standing.folder.ledger, end, seq):
                self._known[str(standing.folder)] = (record.seq, offset)
                yield _fact(address, record)
        except (UserError, OSError):  # it is damaged: pages say so
            return

    def _activity(self) -> list[Event]:
        """What agents do that have printed something, at most once a second."""
        events, now = list[Event](), time.monotonic()
        if now - self._looked < _LOOK:
            return events
        self._looked = now
        for standing in self._found:
            opened = standing.state.open_round
            if not standing.alive or opened is None:
                continue
            path, key = standing.folder.round_file(opened.round, STDOUT), str(standing.folder)
            try:
                size = path.stat().st_size
            except OSError:  # it has not printed anything yet, or was removed
                size = 0
            if self._sizes.get(key) != size:
                self._sizes[key], self._drawn = size, 0.0
                address = self._loops.address(standing)
                age = outputs.last_output_age(standing)
                news = Activity(loop=address, text=outputs.activity(standing), output_age=age)
                events.append(Event.of("activity", news, loop=address))
        return events

    def _draw(self) -> list[Event]:
        """The parts of pages that have changed."""
        events, now = list[Event](), time.monotonic()
        alive = {str(each.folder) for each in self._found if each.alive}
        if alive != self._alive or now - self._drawn >= _DRAW:
            self._alive, self._drawn = alive, now
            wanted = {page for reader in self._readers for page in reader.pages}
            self._sent = {page: digests for page, digests in self._sent.items() if page in wanted}
            for page, role in wanted:
                events += self._fragments(page, role)
        self._watch_running()
        return events

    def _fragments(self, page: str, role: Role, *, everything: bool = False) -> list[Event]:
        """The parts of a page that differ from what was sent last."""
        visitor, events = Visitor(role=role), list[Event]()
        try:
            found = self._page_of(page, visitor)
        except NotFound:  # its loop is gone: loaded again, the page says so
            return [Event.of("gone", {"page": page}, page=(page, role))]
        except Exception as error:
            self._leave_out(page, error)
            return []
        known = self._sent.setdefault((page, role), {})
        for section in (*((found.rail,) if found.rail else ()), *found.sections):
            if not section.live or (section.settled and known.get(section.id) == section.settled and not everything):
                continue
            try:
                html, digest = drawn(section, visitor)
            except Exception as error:
                self._leave_out(f"{page} {section.id}", error)
                continue
            if everything or known.get(section.id) != digest:
                known[section.id] = digest
                part = Fragment(page=page, id=section.id, html=html)
                events.append(Event.of("fragment", part, page=(page, role)))
        head = Event.of("head", {"page": page, "title": found.title, "mark": found.mark or ""}, page=(page, role))
        if everything or known.get("head") != head.data:
            known["head"] = head.data
            events.append(head)
        return events

    def _leave_out(self, what: str, error: Exception) -> None:
        """One page or log that cannot be told keeps no reader from the rest. A bug goes to the server's log, once."""
        if not isinstance(error, UserError | OSError) and what not in self._left_out:
            self._left_out.add(what)
            own_failure()

    def _output(self) -> list[Event]:
        """What followed rounds have printed since."""
        wanted = {key for reader in self._readers for key in reader.logs}
        self._follows = {key: place for key, place in self._follows.items() if key in wanted}
        return [event for place in self._follows.values() for event in self._rows(place)]

    def _rows(self, place: Place, until: int | None = None) -> list[Event]:
        """The lines that a round has printed since, up to an offset if others have the rest already."""
        events = list[Event]()
        try:
            standing = self._loops.find(place.loop)
            offset, line, end = near_end(standing, place.round, place.offset, place.line, until)
            left_out = line if line > place.line else 0
            place.offset, place.line = offset, line
            while place.offset < end:
                rows, offset, line = new_rows(standing, place.round, place.offset, place.line, until=end)
                if offset == place.offset:
                    break
                place.offset, place.line = offset, line
                if rows or left_out:
                    html = log_rows(rows, place.round, left_out)
                    news = Rows(log=place.key, html=html, count=len(rows), offset=offset, line=line)
                    events.append(Event.of("log", news, log=place.key))
                    left_out = 0
        except Exception as error:
            self._leave_out(place.key, error)
        return events

    def _watch_running(self) -> None:
        """Let the kernel wake us when a running loop records something or a followed round prints something."""
        wanted = {str(each.folder.ledger) for each in self._found if each.alive}
        for place in self._follows.values():
            mine = [each for each in self._found if self._loops.address(each) == place.loop]
            wanted |= {str(each.folder.round_file(place.round, STDOUT)) for each in mine}
        if (watch := self._watch) is None:
            return
        for path in self._watched.keys() - wanted:
            watch.remove(self._watched.pop(path))
        for path in wanted - self._watched.keys():
            if (watched := watch.add(path)) >= 0:
                self._watched[path] = watched


def _reader(role: Role, loops: frozenset[str], query: "QueryParams") -> Reader:
    places = [place for text in query.getlist("log")[:_LOGS] if (place := place_in(text))]
    return Reader(role, loops, query.getlist("page")[:_PAGES], places)


def drawn(section: Section, visitor: Visitor) -> tuple[str, str]:
    """A section and its digest, which ages and other people's forms do not change."""
    html = fragment(section, visitor)
    same = _AGES.sub(r"\1", html)
    return html, section.settled or blake2b(same.encode(), digest_size=6).hexdigest()


def _fact(address: str, record: Record) -> Event:
    happened, text, alarm = record.fact, "", False
    kind = str(happened.__struct_config__.tag)
    if isinstance(happened, RoundEnded):
        text = f"{address}: round {happened.round} has ended"
    elif isinstance(happened, LoopStopped):
        status = Status(happened.end)
        text, alarm = f"{address} {status.words}: {plain(happened.reason)}", status in NEEDS_YOU
    fact = Fact(loop=address, seq=record.seq, at=record.at.isoformat(), type=kind, text=text, alarm=alarm)
    return Event.of("fact", fact, loop=address, seq=record.seq)


def _missed(address: str, standing: Standing, after: int, until: int) -> list[Event]:
    """The facts that a reader has not seen; one who knows more than there is has another ledger in mind."""
    if after > until:
        return [RESYNC]
    events = list[Event]()
    try:
        for record in backwards(standing.folder):
            if record.seq <= after or len(events) > _REPLAYED:
                break
            if record.seq <= until:
                events.append(_fact(address, record))
    except (UserError, OSError):
        return [RESYNC]
    return events[::-1]


def _end_of(standing: Standing) -> tuple[int, int]:
    if standing.trouble:
        return 0, 0
    state, end = load(standing.folder)
    return state.seq, end
