"""News over one stream: nothing is lost, nothing comes twice, and a reader who is too slow is told so (FAULTS 108)."""

import asyncio
import json
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bydawn.core.facts import NoteAdded
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.store.web_keys import Role
from bydawn.web import app
from bydawn.web import news as told
from bydawn.web import stream as streams
from bydawn.web.news import Event, Place, Reader
from driving import wait_for
from operations.stories import home_of
from web.serving import LOOK, Web, serving


class News(NamedTuple):
    kind: str
    data: Any
    id: str


class Client:
    """A browser's end of the stream, at the level of bytes."""

    def __init__(self, web: Web, query: str = "", last: str = "") -> None:
        self._socket = socket.create_connection(("127.0.0.1", web.port), timeout=30)
        head = [f"GET /api/stream{query} HTTP/1.1", f"Host: 127.0.0.1:{web.port}", f"Authorization: Bearer {LOOK}"]
        head += [f"Last-Event-ID: {last}"] if last else []
        self._socket.sendall("\r\n".join([*head, "", ""]).encode())
        self._file = self._socket.makefile("rb")
        assert b" 200 " in self._file.readline()
        while self._file.readline() != b"\r\n":
            pass

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def news(self) -> Iterator[News]:
        kind, data, mark = "", "", ""
        while size := int(self._file.readline() or b"0", 16):
            text = self._file.read(size + 2)[:-2].decode()
            for line in text.split("\n"):
                name, _, value = line.partition(": ")
                kind = value if name == "event" else kind
                data = data + value if name == "data" else data
                mark = value if name == "id" else mark
                if not line and kind:
                    yield News(kind, json.loads(data), mark)
                    kind, data = "", ""

    def until(self, wanted: str, count: int = 1) -> list[News]:
        found, began = list[News](), time.monotonic()
        for each in self.news():
            assert time.monotonic() - began < 60, f"waited in vain for {wanted}: {[news.kind for news in found]}"
            found.append(each)
            if [news.kind for news in found].count(wanted) >= count:
                return found
        return found


def ledger(web: Web, name: str) -> LoopLedger:
    return LoopLedger(LoopFolder(home_of(web.root, name) / name), lambda _: None, lambda text: text)


def note(book: LoopLedger, text: str) -> int:
    record = book.append(NoteAdded(note=text, text=text, by="ada"))
    book.sync()
    return record.seq


def said(text: str) -> str:
    """A line of the built-in agent."""
    return json.dumps({"type": "message", "text": text}) + "\n"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, "blocked", "stopped", "running") as found:
        yield found


def test_a_fact_arrives_with_the_place_of_the_reader_in_every_ledger(web: Web) -> None:
    with closing(Client(web)) as client, closing(ledger(web, "blocked")) as book:
        first = client.until("hello")[-1]
        known = dict(row.rsplit(":", 1) for row in first.id.split(","))
        assert set(known) == {"blocked", "stopped", "running"}
        seq = note(book, "one")
        fact = client.until("fact")[-1]
        assert (fact.data["loop"], fact.data["seq"], fact.data["type"]) == ("blocked", seq, "note.added")
        assert f"blocked:{seq}" in fact.id.split(",")
        assert f"stopped:{known['stopped']}" in fact.id.split(",")


def test_a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice(web: Web) -> None:
    """At 100 random cuts, over two loops that both go on."""
    chance = random.Random(20)  # noqa: S311 - where to cut
    books = {name: ledger(web, name) for name in ("blocked", "stopped")}
    seen: dict[str, list[int]] = {name: [] for name in books}
    begun = {name: book.state.seq for name, book in books.items()}
    last = ",".join([*(f"{name}:{seq}" for name, seq in begun.items()), "running:1"])
    written = dict(begun)
    for cut in range(100):
        for _ in range(chance.randrange(3)):
            name = chance.choice([*books])
            written[name] = note(books[name], f"{cut}")
        client = Client(web, last=last)
        missing = sum(written[name] - (seen[name][-1] if seen[name] else begun[name]) for name in books)
        wanted = chance.randint(0, missing)
        count = 0
        for news in client.news():
            if news.kind == "fact" and news.data["loop"] in seen:
                if count == wanted:
                    break
                seen[news.data["loop"]].append(news.data["seq"])
                last = news.id
                count += 1
            if count == wanted:
                break
        client.close()
    client = Client(web, last=last)
    missing = sum(written[name] - (seen[name][-1] if seen[name] else begun[name]) for name in books)
    for news in client.news() if missing else ():
        if news.kind == "fact" and news.data["loop"] in seen:
            seen[news.data["loop"]].append(news.data["seq"])
            missing -= 1
        if not missing:
            break
    client.close()
    for name, book in books.items():
        assert seen[name] == list(range(begun[name] + 1, written[name] + 1))
        book.close()


def test_only_the_loops_that_were_asked_for_are_told(web: Web) -> None:
    with closing(Client(web, "?loops=stopped")) as client:
        client.until("hello")
        with closing(ledger(web, "blocked")) as other, closing(ledger(web, "stopped")) as book:
            note(other, "one")
            note(book, "two")
        assert client.until("fact")[-1].data["loop"] == "stopped"


def test_a_reader_that_knows_more_than_there_is_is_told_to_begin_again(web: Web) -> None:
    with closing(Client(web, last="blocked:99999,stopped:1,running:1")) as client:
        assert client.until("resync")[-1].kind == "resync"


@pytest.mark.parametrize("last", ["garbage", "x:1", ":,:", "blocked:1,renamed:4"])
def test_one_who_was_in_ledgers_that_are_not_here_begins_again(web: Web, last: str) -> None:
    """What it is told could be all that ever happened; and old alarms would be spoken anew."""
    with closing(Client(web, last=last)) as client, closing(ledger(web, "blocked")) as book:
        assert [news.kind for news in client.until("resync")] == ["hello", "resync"]
        note(book, "one")
        assert [news.data["seq"] for news in client.until("fact") if news.kind == "fact"] == [book.state.seq]


def test_after_a_repair_a_reader_begins_again_and_misses_nothing(web: Web) -> None:
    path = home_of(web.root, "stopped") / "stopped" / "ledger.jsonl"
    with closing(Client(web)) as client:
        client.until("hello")
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        assert client.until("resync")
        with closing(ledger(web, "stopped")) as book:
            seq = note(book, "one")
        assert client.until("fact")[-1].data["seq"] == seq


def test_no_more_is_sent_again_than_a_reader_can_take(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_REPLAYED", 3)
    with closing(Client(web, last="blocked:1,stopped:1,running:1")) as client:
        assert [news.kind for news in client.until("resync")] == ["hello", "resync"]


def test_a_ledger_is_read_once_however_many_come(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Client(web)) as first:
        first.until("hello")
        monkeypatch.setattr(streams, "_end_of", lambda _: pytest.fail("it is known"))
        with closing(Client(web)) as second:
            assert second.until("hello")


@pytest.mark.parametrize("names", ["nope", "", "blocked,nope"])
def test_a_loop_that_is_not_here_cannot_be_followed(web: Web, names: str) -> None:
    answer = web.get(f"/api/stream?loops={names}")
    assert (answer.status, answer.json["error"][:16]) == (404, "there is no loop")


@pytest.mark.parametrize(("error", "bugs"), [(PermissionError(13, "Permission denied"), 0), (KeyError("x"), 1)])
def test_a_part_that_cannot_be_drawn_takes_no_news_from_anyone(
    web: Web, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception, bugs: int
) -> None:
    """Parts of a page read files only when they are drawn; a bug is told in the server's log, once."""

    def refuse(section: Any, visitor: Any) -> Any:
        if section.id == "head":
            raise error
        return drawn(section, visitor)

    drawn = streams.drawn
    monkeypatch.setattr(streams, "drawn", refuse)
    with closing(Client(web, "?page=/")) as client, closing(ledger(web, "blocked")) as book:
        parts = [news.data["id"] for news in client.until("head") if news.kind == "fragment"]
        assert "head" not in parts and {"needs-you", "foot"} <= {*parts}, "before it and after it"
        for text in ("one", "two"):
            seq = note(book, text)
            assert client.until("fact")[-1].data["seq"] == seq
    assert capfd.readouterr().err.count("internal error") == bugs


def test_the_parts_of_a_page_come_first_and_then_only_those_that_changed(web: Web) -> None:
    with closing(Client(web, "?page=/")) as client:
        first = client.until("head")
        parts = {news.data["id"] for news in first if news.kind == "fragment"}
        assert parts
        with closing(ledger(web, "blocked")) as book:
            note(book, "one")
        later = client.until("fact")
        assert not [news for news in later if news.kind == "fragment" and news.data["id"] not in parts]


def test_what_no_longer_changes_is_drawn_once_for_each_who_comes(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """To show what a round changed, git is asked."""
    drawn, seen = streams.drawn, list[str]()

    def counted(section: Any, visitor: Any) -> Any:
        seen.append(section.id)
        return drawn(section, visitor)

    monkeypatch.setattr(streams, "drawn", counted)
    with closing(Client(web, "?page=/loops/stopped/rounds/1")) as client, closing(ledger(web, "stopped")) as book:
        client.until("head")
        for text in ("one", "two"):
            note(book, text)
            client.until("fact")
        wait_for(lambda: seen.count("round") > 2)
    assert seen.count("changes") == 1


def test_output_goes_on_where_the_page_ended(web: Web) -> None:
    """No gap and no double between the page and the stream, and between two readers."""
    folder = LoopFolder(home_of(web.root, "running") / "running")
    path = folder.round_file(2, "stdout")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(said(f"line {number}") for number in range(5)))
    begin = len(said("line 0") + said("line 1"))
    with closing(Client(web, f"?log=running:2:{begin}:3")) as one:
        rows = one.until("log")[-1].data
        assert rows["count"] == 3
        assert "line 2" in rows["html"]
        assert "line 1" not in rows["html"]
        with path.open("a") as file:
            file.write(said("line 5") + said("half a line")[:12])
        again = one.until("log")[-1].data
        assert (again["count"], again["line"]) == (1, 7)
        with closing(Client(web, f"?log=running:2:{rows['offset']}:{rows['line']}")) as two:
            assert two.until("log")[-1].data["html"] == again["html"]
            with path.open("a") as file:
                file.write(said("half a line")[12:])
            assert one.until("log")[-1].data["html"] == two.until("log")[-1].data["html"]


def test_an_offset_inside_a_line_shows_no_half_of_it(web: Web) -> None:
    """A secret that is cut in two would not be recognized; and no reader decides how lines are numbered."""
    path = LoopFolder(home_of(web.root, "running") / "running").round_file(2, "stdout")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said("one") + said("key ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789 end"))
    for offset in range(len(said("one")) + 1, path.stat().st_size, 7):
        with closing(Client(web, f"?log=running:2:{offset}:777777")) as client:
            rows = client.until("log")[-1].data
            assert "key [secret] end" in rows["html"]
            assert rows["line"] == 3


def test_output_that_comes_too_fast_is_left_out_and_that_is_said(web: Web) -> None:
    """An agent may print faster than lines can be drawn; one who comes back may be a gigabyte behind."""
    path = LoopFolder(home_of(web.root, "running") / "running").round_file(2, "stdout")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [said(f"line {number} {'x' * 1000}") for number in range(1, 3001)]
    path.write_text("".join(lines))
    with closing(Client(web, "?log=running:2:0:1")) as client:
        first, *more = (news.data for news in client.until("log", 3) if news.kind == "log")
        assert (
            f"The lines before {3000 - first['count'] - sum(each['count'] for each in more) + 1} came" in first["html"]
        )
        assert sum(len(each["html"]) for each in (first, *more)) < 2 << 20
        assert (more[-1]["line"], more[-1]["offset"]) == (3001, path.stat().st_size)
        with path.open("a") as file:
            file.write("".join(lines))
        later = client.until("log")[-1].data
        assert "came too fast" in later["html"]


def test_a_stream_ends_with_its_session(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_SIGN", 0.2)
    monkeypatch.setattr(app, "_CHECKED", 0.2)
    cookie = web.session()
    head = f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", web.port), timeout=15) as client:
        client.sendall(head.encode())
        assert b" 200 " in client.recv(100)
        web.server.keys.end(cookie.partition("=")[2])
        began = time.monotonic()
        while client.recv(65536):  # until it is closed
            assert time.monotonic() - began < 30, "it goes on"


def test_one_who_comes_while_the_last_one_leaves_gets_every_line(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Browsers do so whenever another tab is opened."""
    catch_up = streams.Hub._catch_up

    def slowly(*given: Any) -> Any:
        caught = catch_up(*given)
        time.sleep(1.5)  # long enough for the hub to notice that no one reads
        return caught

    path = LoopFolder(home_of(web.root, "running") / "running").round_file(2, "stdout")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said("one"))
    place = f"?log=running:2:{len(said('one'))}:2"
    monkeypatch.setattr(streams, "_LOOK", 0.01)
    monkeypatch.setattr(streams, "_BUNDLE", 1.0)  # the hub is nearly always between two looks
    with closing(Client(web, place)) as first:
        first.until("hello")
        time.sleep(0.3)
    monkeypatch.setattr(streams.Hub, "_catch_up", slowly)
    with closing(Client(web, place)) as second:
        second.until("hello")
        with path.open("a") as file:
            file.write(said("two"))
        assert second.until("log")[-1].data["count"] == 1


def test_when_no_one_reads_any_more_nothing_is_watched(web: Web) -> None:
    def watches() -> int:
        count = 0
        for each in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the server has closed it by now
                count += "inotify" in os.readlink(each)
        return count

    before = watches()
    with closing(Client(web)) as client:
        client.until("hello")
        wait_for(lambda: watches() == before + 1)
    wait_for(lambda: watches() == before)


def test_the_hub_itself_says_that_it_has_looked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only keeps the connection open says nothing about how fresh a page is."""
    monkeypatch.setattr(streams, "_SIGN", 0.5)
    with closing(Client(web)) as client:
        assert client.until("sign")[-1].kind == "sign"


def test_a_page_whose_loop_is_gone_is_told_so(web: Web) -> None:
    with closing(Client(web, "?page=/loops/stopped")) as client:
        client.until("head")
        shutil.rmtree(home_of(web.root, "stopped") / "stopped")
        assert client.until("gone")[-1].data == {"page": "/loops/stopped"}


def test_a_place_in_every_ledger_can_be_sent_back_whatever_folders_are_called() -> None:
    places = {"same@a,b:7": 5, "same@日本": 6, "billing": 49}
    assert told.positions(told.vector(places)) == places
    assert told.vector(places).isascii()


def test_a_line_is_sent_at_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says that it is there: nobody looks for it in between."""
    watch_running, watched = streams.Hub._watch_running, threading.Event()

    def noted(*given: Any) -> None:
        watch_running(*given)
        watched.set()

    monkeypatch.setattr(streams.Hub, "_watch_running", noted)
    folder = LoopFolder(home_of(web.root, "running") / "running")
    path = folder.round_file(2, "stdout")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said("one"))
    with closing(Client(web, f"?log=running:2:{len(said('one'))}:2")) as client:
        client.until("hello")
        assert watched.wait(20)
        monkeypatch.setattr(streams, "_LOOK", 600.0)
        time.sleep(1.5)  # until the last look that was due before
        took = []
        for number in range(5):
            with path.open("a") as file:
                file.write(said(f"line {number}"))
            began = time.monotonic()
            client.until("log")
            took.append(time.monotonic() - began)
            time.sleep(0.3)
        assert min(took) < 1.0  # without the kernel's word it would be minutes; scripts/bench has the figure


# -- one reader --------------------------------------------------------------------------------------------------------


def test_a_reader_that_takes_nothing_loses_what_waits_and_is_told() -> None:
    reader = Reader(Role.LOOK, frozenset(), [], [])
    for number in range(told._QUEUE + 10):
        reader.put(Event("fact", "{}", "a", number))
    events = asyncio.run(reader.take())
    assert events[0].kind == "resync"
    assert len(events) < 20


def test_large_events_count_by_their_size() -> None:
    reader = Reader(Role.LOOK, frozenset(), [], [])
    for number in range(10):
        reader.put(Event("fragment", "x" * (1 << 20), "a", number))
    assert asyncio.run(reader.take())[0].kind == "resync"


@pytest.mark.parametrize("text", ["", "a", "a:1", "a:1:2", "a:x:1:1", "a:1:-1:1", "a:1:99999999999999999:1"])
def test_nonsense_is_no_place(text: str) -> None:
    assert told.place_in(text) is None


def test_a_place_may_have_colons_in_its_name() -> None:
    assert told.place_in("a:b@c:3:40:5") == Place(loop="a:b@c", round=3, offset=40, line=5)
