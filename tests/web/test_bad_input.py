"""Bad input: the right status, words and a way on, nothing changed on disk, and never a failure of our own."""

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bydawn.operations import steer
from bydawn.operations.startable import startable
from bydawn.store.registry import Registry
from bydawn.store.web_keys import Role
from bydawn.web.auth import Access
from bydawn.web.calls import Kind, Route
from bydawn.web.table import TABLE, page_of
from operations.stories import STORIES, home_of
from web.drawn import loops_in
from web.serving import LOOK, STEER, Answer, Web, serving
from web.test_refusals import address, sent
from web.test_refusals import name as named
from web.test_stream import Client, ledger, note

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
FAR = "9" * 40
LONG = "a" * 20_000
WRONG_KIND = "Expected `"


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("BYDAWN", "XDG", "CODEX", "OPENAI"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def everything_on_disk(root: Path) -> dict[str, bytes]:
    """But for the keys of visitors, and what is only remembered to be quicker."""
    found = (path for path in root.rglob("*") if path.is_file() and "web" not in path.relative_to(root).parts[:2])
    return {str(path): path.read_bytes() for path in found if path.name not in ("snapshot.json", "lock")}


@pytest.fixture
def unchanged(everything: Web) -> Iterator[Web]:
    before = everything_on_disk(everything.root)
    yield everything
    assert everything_on_disk(everything.root) == before


def is_told(answer: Answer, words: str = "") -> None:
    """In words, with a way on, as a page or as JSON."""
    assert "Traceback" not in answer.text and "internal error" not in answer.text.lower()
    if answer.headers["content-type"] == "application/json":
        told = answer.json
        assert told["schema"] == 1 and told["error"] and (told.get("cause") or told.get("hint")), told
        text = " ".join(str(value) for value in told.values())
    else:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        main = answer.text.partition("<main")[2]
        assert 'href="/' in main or "<form" in main
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", answer.text.replace("&#39;", "'")))
    assert words in text, text[-800:]


def asked(web: Web, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    return web.ask(method, path, body, {"authorization": f"Bearer {STEER}", **headers})


# -- addresses ---------------------------------------------------------------------------------------------------------

LOOP, PAGE = "/api/loops/blocked", "/loops/blocked"
# address · status · some of its words
ADDRESSES = [
    ("/api/loops/nope", 404, "there is no loop “nope” here loops here: auth, blocked,"),
    ("/api/loops/nope/tasks", 404, "there is no loop “nope”"),
    ("/loops/nope", 404, "There is no loop “nope” here"),
    ("/loops/nope/docs/todo", 404, "There is no loop “nope” here"),
    (f"{LOOP}/rounds/99", 404, "has no round 99 its last round so far is 2"),
    (f"{LOOP}/rounds/0", 404, "has no round 0"),
    (f"{LOOP}/rounds/-1", 404, "there is no round “-1”"),
    (f"{LOOP}/rounds/x", 404, "there is no round “x”"),
    (f"{LOOP}/rounds/{FAR}", 404, "there is no round “99999"),
    (f"{LOOP}/rounds/%C2%B2", 404, "there is no round “²”"),
    (f"{PAGE}/rounds/99", 404, "Its last round so far is 2"),
    (f"{PAGE}/rounds/x", 404, "There is no round “x”"),
    (f"{LOOP}/docs/nope", 404, "blocked has no document 'nope' it has todo"),
    (f"{LOOP}/docs/{LONG}", 404, "blocked has no document 'aaaa"),
    ("/api/loops/stopped/docs/todo", 404, "stopped has no document 'todo' it only has a prompt"),
    (f"{PAGE}/docs/nope", 404, "no document 'nope'"),
    (f"{PAGE}/rounds/1/raw/nope", 404, "It has prompt, stdout, stderr, reply, check-2"),
    (f"{PAGE}/rounds/1/raw/check-9", 404, "has no “check-9”"),
    (f"{PAGE}/rounds/1/raw/stdout", 404, "has no such file"),
    (f"{PAGE}/rounds/99/raw/stdout", 404, "has no round 99"),
    # out of where it belongs
    ("/api/loops/..", 404, "there is no loop “..”"),
    ("/api/loops/%2e%2e", 404, "there is no loop “..”"),
    ("/api/loops/..%2f..%2fetc%2fpasswd", 404, "there is no such page"),
    ("/api/loops/%2fetc", 404, "there is no such page"),
    (f"{LOOP}/docs/..", 404, "no document '..'"),
    (f"{LOOP}/docs/..%2fTODO.md", 404, "there is no such page"),
    (f"{PAGE}/docs/%2e%2e", 404, "no document '..'"),
    (f"{PAGE}/rounds/1/raw/..", 404, "has no “..”"),
    (f"{PAGE}/rounds/1/raw/%2e%2e%2floop.json", 404, "There is no such page"),
    ("/static/../app.py", 404, "There is no such file"),
    ("/static/%2e%2e/app.py", 404, "There is no such file"),
    ("/static//etc/passwd", 404, "There is no such file"),
    ("/static/%c0%ae%c0%ae/app.py", 404, "There is no such file"),  # overlong dots
    ("/loops/%c0%ae%c0%ae", 404, "There is no loop"),
    # bytes that are no text
    ("/api/loops/%00", 404, "there is no loop “” here"),
    ("/api/loops/%ff%fe", 404, "there is no loop"),
    (f"{PAGE}/docs/%00", 404, "no document"),
    ("/static/%00", 404, "There is no such file"),
    ("/loops/%0d%0aSet-Cookie:x=1", 404, "There is no loop"),
    # after the question mark
    (f"{LOOP}/log?round=x", 400, "this address cannot be read Expected `int"),
    (f"{LOOP}/log?round=%ff", 400, WRONG_KIND),
    (f"{LOOP}/log?round=-5", 404, "has no round -5"),
    (f"{LOOP}/log?round={FAR}", 404, "has no round 9999"),
    (f"{LOOP}/log?round={'9' * 5000}", 400, "out of range"),
    (f"{LOOP}/log?lines=x", 400, WRONG_KIND),
    (f"{LOOP}/events?after=x", 400, WRONG_KIND),
    (f"{LOOP}/events?limit=", 400, WRONG_KIND),
    ("/api/loops?all=maybe", 400, WRONG_KIND),
    (f"{PAGE}/log?round=99", 404, "has no round 99"),
    (f"{PAGE}/log?round=%ff", 400, "is not a number"),
    (f"{PAGE}/log?from=-1", 400, "is not a number"),
    (f"{PAGE}/log?from=%C2%B2", 400, "is not a number"),
    (f"{PAGE}/rounds?before={FAR}", 400, "is not a number"),
    (f"{PAGE}/rounds/1?since=x", 400, "is not a number"),
    # nothing there
    ("/nope", 404, "There is no such page"),
    ("/api", 404, "there is no such page"),
    ("/api/nope", 404, "there is no such page"),
    ("/loops/", 404, "There is no such page"),
    ("/loops/blocked/", 404, "There is no such page"),
    (f"/{LONG}", 404, "There is no such page"),
]


@pytest.mark.parametrize(("path", "status", "words"), ADDRESSES, ids=lambda value: str(value)[:50])
def test_an_address_that_leads_nowhere(unchanged: Web, path: str, status: int, words: str) -> None:
    answer = asked(unchanged, "GET", path, None, {})
    assert answer.status == status
    is_told(answer, words)
    assert len(answer.text) < 30_000  # what was asked for is not said back at full length
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        f"{LOOP}/log?from={FAR}&lines=-3",
        f"{LOOP}/log?from=-9&lines={FAR}",
        f"{LOOP}/log?round=0",
        f"{LOOP}/log?q=%ff%00",
        f"{LOOP}/log?q={LONG}",
        f"{LOOP}/log?unknown=1&unknown=2",
        f"{LOOP}/events?after=-1&limit=-1",
        f"{LOOP}/events?after={FAR}&limit={FAR}",
        f"{PAGE}/log?q=%ff%00",
        f"{PAGE}/log?from=999999999",
        f"{PAGE}/rounds/1?file=../../etc/passwd",
        f"{PAGE}/rounds/1?file=%00",
        f"{PAGE}/rounds/2?since=99",
        f"{PAGE}/docs/todo?mode=nonsense",
        "/?all=%ff",
    ],
)
def test_what_can_be_understood_is_answered(unchanged: Web, path: str) -> None:
    assert asked(unchanged, "GET", path, None, {}).status == 200


@pytest.mark.parametrize(
    "accept", ["", "*/*", "image/png", "text/html;q=x", "application/xml, */*;q=0", "\xff", "," * 5000]
)
def test_whatever_a_client_would_rather_have(unchanged: Web, accept: str) -> None:
    assert asked(unchanged, "GET", LOOP, None, {"accept": accept}).json["loop"] == "blocked"
    assert "<!doctype html>" in asked(unchanged, "GET", PAGE, None, {"accept": accept}).text.lower()
    is_told(asked(unchanged, "GET", "/nope", None, {"accept": accept}))


# -- methods -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", "GET, HEAD"),
        (PAGE, "GET, HEAD"),
        (f"{PAGE}/stop", "GET, HEAD, POST"),
        (f"{PAGE}/tell", "POST"),
        ("/api/loops", "GET, HEAD, POST"),
        (f"{LOOP}/docs/todo", "GET, HEAD, PUT"),
        (f"{LOOP}/tell", "POST"),
        ("/api/stream", "GET, HEAD"),
    ],
)
@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "DELETE", "PATCH", "FOO", "get"])
def test_a_method_that_there_is_not(unchanged: Web, path: str, allowed: str, method: str) -> None:
    answer = asked(unchanged, method, path, b"{}", JSON)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    is_told(answer, allowed)


@pytest.mark.parametrize("row", [row for row in TABLE if row.method == "GET"], ids=named)
def test_head_says_what_get_would_and_ends(everything: Web, row: Route) -> None:
    """Also of a stream, which would never end."""
    answer = everything.ask("HEAD", address(row), headers={"authorization": f"Bearer {STEER}"})
    assert answer.text == ""
    wanted = (200, "text/event-stream") if row.streams else _seen(everything.get(address(row)))
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == wanted


def _seen(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.headers["content-type"].partition(";")[0]


def test_a_page_under_a_foreign_name_gets_nowhere_even_with_a_token(unchanged: Web) -> None:
    """T1: the token may be one that others know, such as one that came with a repository."""
    host = f"evil.example:{unchanged.port}"
    sent = {**JSON, "host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    answer = asked(unchanged, "POST", f"{LOOP}/tell", b'{"text": "x"}', sent)
    assert answer.status == 421
    is_told(answer, "is not one that the server answers to")


# -- what programs send ------------------------------------------------------------------------------------------------


def deep(size: int) -> bytes:
    return b'{"text": "x", "more": ' + b"[" * size + b"]" * size + b"}"


TELL, RESUME, SKIP, ADD = f"{LOOP}/tell", f"{LOOP}/resume", f"{LOOP}/skip", f"{LOOP}/tasks"
CHAT, TODO, START = f"{LOOP}/chat", f"{LOOP}/docs/todo", "/api/loops"
# address · body · status · some of the words
BODIES: list[tuple[str, bytes, int, str]] = [
    (TELL, b"", 400, "missing required field `text`"),
    (TELL, b"{", 400, "truncated"),
    (TELL, b"nonsense", 400, "malformed"),
    (TELL, b"[]", 400, "got `array`"),
    (TELL, b'{"text": 1}', 400, "Expected `str`, got `int` - at `$.text`"),
    (TELL, b'{"text": " \\n\\t "}', 400, "the note is empty"),
    (TELL, b'{"text": "a\\u0000b"}', 400, "(NUL)"),
    (TELL, b'{"text": "\xff"}', 400, "can't decode"),
    (TELL, b"\xff\xfe{\x00}\x00", 400, "malformed"),
    (TELL, b'{"text": "\\ud800"}', 400, "this JSON cannot be used"),
    (TELL, deep(5_000), 400, "recursion"),
    (TELL, deep(400_000), 400, "recursion"),
    (TELL, b'{"text": "x", "expect_seq": "1"}', 400, "Expected `int | null`, got `str`"),
    (TELL, b'{"text": "x", "expect_seq": -1}', 409, "too late"),
    (TELL, b'{"text": "x", "expect_seq": 1' + b"0" * 5000 + b"}", 400, "out of range"),
    (RESUME, b'{"rounds": true}', 400, "got `bool`"),
    (RESUME, b'{"rounds": "1\\u00002"}', 400, "(NUL)"),
    (RESUME, b'{"budget": "\\u0000"}', 400, "(NUL)"),
    (RESUME, json.dumps({"until": "9" * 200_000}).encode(), 400, "is too long"),
    (SKIP, b"{}", 400, "missing required field `task`"),
    (SKIP, b'{"task": ""}', 404, "there is no task ''"),
    (SKIP, b'{"task": "nope"}', 404, "there is no task 'nope'"),
    (SKIP, b'{"task": "\\u0000"}', 404, "there is no task"),
    (SKIP, f'{{"task": "{LONG}"}}'.encode(), 404, "there is no task 'aaa"),
    ("/api/loops/stopped/skip", b'{"task": "1"}', 400, "has no task list"),
    (f"{LOOP}/reopen", b'{"task": "1"}', 400, "never unticks a box"),
    (ADD, b'{"text": ""}', 400, "the text is empty"),
    (ADD, b'{"text": "a\\nb"}', 400, "more than one line"),
    (ADD, b'{"text": "\\u0000"}', 400, "control characters"),
    ("/api/loops/stopped/tasks", b'{"text": "x"}', 400, "no task list"),
    (CHAT, b'{"message": ""}', 400, "the question is empty"),
    (CHAT, b'{"message": "x", "include": ["\\u0000"]}', 400, "(NUL)"),
    (CHAT, json.dumps({"message": "x", "include": ["a" * 200_000]}).encode(), 400, "is too long"),
    (START, b"{}", 400, "nothing to start"),
    (START, b'{"config": "nope"}', 404, "not on offer"),
    (START, b'{"config": "../../etc"}', 404, "not on offer"),
    (START, b'{"config": "\\u0000"}', 404, "not on offer"),
    (f"{LOOP}/dismiss", b'{"expect_seq": 1}', 409, "too late"),
]


@pytest.mark.parametrize(("path", "body", "status", "words"), BODIES, ids=lambda value: repr(value)[:40])
def test_a_body_that_cannot_be_used(unchanged: Web, path: str, body: bytes, status: int, words: str) -> None:
    answer = asked(unchanged, "POST", path, body, JSON)
    assert answer.status == status
    is_told(answer, words)
    assert len(answer.text) < 2_000


@pytest.mark.parametrize(
    "kind", ["text/plain", FORM["content-type"], "multipart/form-data; boundary=x", "application/jsonx", ""]
)
@pytest.mark.parametrize("row", [row for row in TABLE if row.kind is Kind.API and row.method != "GET"], ids=named)
def test_only_json_is_taken_from_programs(unchanged: Web, row: Route, kind: str) -> None:
    answer = asked(unchanged, row.method, address(row), b'{"text": "x"}', {"content-type": kind} if kind else {})
    assert answer.status == 415
    is_told(answer, "send application/json")


@pytest.mark.parametrize(
    ("body", "version", "status", "words"),
    [
        (b"{}", "x", 400, "missing required field `text`"),
        (b'{"text": 1}', "x", 400, "got `int`"),
        (b'{"text": "a\\u0000b"}', "x", 400, "characters that no text file can have"),
        (b'{"text": "x"}', "", 400, "names no version"),
        (json.dumps({"text": "x" * (1 << 20) + "y"}).encode(), "x", 400, "too much for TODO.md"),
        (json.dumps({"text": "x" * (5 << 20)}).encode(), "x", 413, "too large"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_document_that_cannot_be_saved(unchanged: Web, body: bytes, version: str, status: int, words: str) -> None:
    answer = asked(unchanged, "PUT", TODO, body, {**JSON, "if-match": version})
    assert answer.status == status
    is_told(answer, words)


@pytest.mark.parametrize("version", ["gone", "\xff", "W/" + "0" * 12, "0" * 9000])
def test_a_version_that_is_gone_is_not_overwritten(unchanged: Web, version: str) -> None:
    answer = asked(unchanged, "PUT", TODO, b'{"text": "mine\\n"}', {**JSON, "if-match": version})
    assert (answer.status, answer.json["yours"]) == (412, "mine\n")
    assert answer.json["theirs"].startswith("- [x] one\n")


# -- what forms send ---------------------------------------------------------------------------------------------------

# address · fields · status · some of the words
FIELDS: list[tuple[str, bytes, int, str]] = [
    ("/tell", b"text=x", 400, "It has no expect_seq"),
    ("/tell", b"text=x&expect_seq=-1", 400, "It has no expect_seq"),
    ("/tell", b"text=x&expect_seq=%C2%B2", 400, "It has no expect_seq"),
    ("/tell", b"text=x&expect_seq=1" + b"0" * 5000, 400, "It has no expect_seq"),
    ("/tell", b"text=x&expect_seq=999", 409, "Too late: blocked has gone on since"),
    ("/tell", b"text=&expect_seq=NOW", 400, "The note is empty"),
    ("/tell", b"text=a%00b&expect_seq=NOW", 400, "(NUL)"),
    ("/tell", b"text=%ff&expect_seq=NOW", 400, "It is not UTF-8 text"),
    ("/tell", b"text=\xff&expect_seq=NOW", 400, "It is not UTF-8 text"),
    ("/tell", b"&".join(b"a%d=1" % number for number in range(20_001)), 400, "Max number of fields exceeded"),
    ("/skip", b"expect_seq=NOW", 400, "No task was named"),
    ("/skip", b"expect_seq=NOW&task=nope", 404, "There is no task 'nope'"),
    ("/reopen", b"expect_seq=NOW", 400, "No task was named"),
    ("/resume", b"expect_seq=NOW&rounds=%00", 400, "(NUL)"),
    ("/resume", b"expect_seq=NOW&for=" + b"9" * 9000, 400, "is too long"),
    ("/tasks", b"text=", 400, "The text is empty"),
    ("/tasks", b"text=a%0Ab", 400, "more than one line"),
    ("/docs/todo/save", b"", 409, "Nothing was overwritten"),
    ("/docs/todo/save", b"text=x&version=gone", 409, "Nothing was overwritten"),
    ("/docs/todo/save", b"text=%00&version=gone", 400, "no text file can have"),
    ("/docs/nope/save", b"text=x&version=x", 404, "no document 'nope'"),
    ("/docs/todo/tick", b"line=x", 400, "is not a line"),
    ("/docs/todo/tick", f"line={FAR}".encode(), 400, "is not a line"),
    ("/docs/todo/tick", b"line=99&version=gone&ticked=1", 409, "Nothing was ticked"),
    ("/docs/todo/tick", b"box=1&tick=x", 400, "is not a line"),
    ("/docs/nope/tick", b"line=1", 404, "no document 'nope'"),
    ("/chat", b"message=", 400, "The question is empty"),
    ("/chat", b"message=x&include=%00", 400, "(NUL)"),
]


@pytest.mark.parametrize(("path", "fields", "status", "words"), FIELDS, ids=lambda value: repr(value)[:40])
def test_a_form_that_cannot_be_used(unchanged: Web, path: str, fields: bytes, status: int, words: str) -> None:
    cookie = unchanged.session()
    sent = {**FORM, "cookie": cookie, "origin": unchanged.origin}
    fields = fields.replace(b"expect_seq=NOW", f"expect_seq={unchanged.get(LOOP).json['seq']}".encode())
    answer = unchanged.ask("POST", f"{PAGE}{path}", fields + f"&csrf={unchanged.csrf(cookie)}".encode(), sent)
    assert answer.status == status
    is_told(answer, words)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x", ""])
@pytest.mark.parametrize("row", [row for row in TABLE if row.kind is Kind.FORM], ids=named)
def test_only_forms_are_taken_from_pages(unchanged: Web, row: Route, kind: str) -> None:
    cookie = unchanged.session()
    sent = {"cookie": cookie, "origin": unchanged.origin, **({"content-type": kind} if kind else {})}
    answer = unchanged.ask("POST", address(row), b"text=x", sent)
    assert answer.status == 415
    is_told(answer, "is not a form")


@pytest.mark.parametrize("back", ["//evil.example", "/\\evil.example", "https://evil.example", "/\r\nx: y", "", "%00"])
def test_a_form_leads_to_no_other_site(unchanged: Web, back: str) -> None:
    cookie = unchanged.session()
    answer = unchanged.send("/settings/theme", cookie, {"theme": "dark", "back": back, "csrf": unchanged.csrf(cookie)})
    assert (answer.status, answer.headers["location"]) == (303, "/")


# -- the stream --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("?page=//[", ""),
        ("?page=/nope&page=" + LONG, ""),
        ("?page=/loops/%00", ""),
        ("?log=blocked:%C2%B2:%C2%B2:1", ""),
        ("?log=../..:1:0:1&log=blocked:99:0:1&log=blocked:1:999999999:1", ""),
        ("", "\xb2:\xb2"),
        ("", "blocked:" + "9" * 5000),
        ("", ",,::,:,a:b:c"),
    ],
)
def test_a_stream_that_is_asked_for_nonsense_still_says_what_happens(unchanged: Web, query: str, last: str) -> None:
    with closing(Client(unchanged, query, last)) as client:
        assert client.until("hello")[-1].kind == "hello"
    assert unchanged.get("/api/health").status == 200


def test_a_page_that_cannot_be_drawn_does_not_end_the_news_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(site: Any, address: str, visitor: Any) -> Any:
        return page_of(site, address, visitor) if address != "/doctor" else 1 / 0

    monkeypatch.setattr("bydawn.web.server.page_of", broken)
    with serving(tmp_path, "blocked") as web, closing(Client(web, "?page=/doctor")) as broken_one:
        assert broken_one.until("hello")
        with closing(Client(web)) as other, closing(ledger(web, "blocked")) as book:
            other.until("hello")
            seq = note(book, "one")
            assert other.until("fact")[-1].data["seq"] == seq == broken_one.until("fact")[-1].data["seq"]


# -- loops that are not well -------------------------------------------------------------------------------------------


def every_answer(web: Web) -> Iterator[tuple[Route, Answer]]:
    """Each address of one loop, once, with something that would do."""
    for row in TABLE:
        if "{loop}" not in row.path or row.path.endswith("/mine"):  # that one gives back what was sent
            continue
        body, headers = sent(row) if row.method != "GET" else (None, {})
        if row.kind is Kind.API and row.method != "GET":
            body = b'{"text": "x", "task": "three", "message": "why?"}'
        elif row.kind is Kind.FORM:
            body = b"text=x&task=three&message=why&expect_seq=99&version=x"
        yield row, asked(web, row.method, address(row), body, {**headers, "if-match": "x"})


def test_a_damaged_ledger_is_said_so_and_not_touched(tmp_path: Path) -> None:
    with serving(tmp_path, "blocked", "stopped") as web:
        path = home_of(tmp_path, "blocked") / "blocked/ledger.jsonl"
        data = path.read_bytes()
        path.write_bytes(data[:300] + b"garbage\n" + data[300:])
        before = everything_on_disk(tmp_path)
        told = {named(row): answer for row, answer in every_answer(web)}
        for row, answer in told.items():
            assert answer.status in (200, 503), row
            if answer.status == 503:
                is_told(answer, "damaged")
        assert {row for row, answer in told.items() if answer.status == 200 and not row.startswith("GET /loops")} == {
            "GET /api/loops/{loop}/chat"
        }
        assert everything_on_disk(tmp_path) == before
        states = {row["loop"]: row["state"] for row in web.get("/api/loops").json["loops"]}
        assert states == {"blocked": "damaged", "stopped": "stopped"}
        assert web.get("/api/health").json["verdict"] == "error"


def test_a_ledger_that_cannot_be_read_is_in_the_way_of_no_other_loop(tmp_path: Path) -> None:
    """As after a start with sudo; root may read everything, so that here a folder is in its place."""
    with serving(tmp_path, "blocked", "stopped") as web:
        path = home_of(tmp_path, "stopped") / "stopped" / "ledger.jsonl"
        path.unlink()
        path.mkdir()
        for address in ("/", "/api/loops", "/api/health", "/loops/blocked", "/api/loops/blocked"):
            assert web.get(address).status == 200, address
        answer = web.get("/api/loops/stopped")
        assert (answer.status, "cannot read" in answer.json["error"]) == (503, True)
        assert "chown" in web.get("/loops/stopped").text


def test_a_saved_document_is_shown_whatever_it_is_called(tmp_path: Path) -> None:
    with serving(tmp_path, "folder") as web:
        path = tmp_path / "work/folder/tasks/01 c#?%25.md"
        path.write_text("# odd\n")
        key = "task-01%20c%23%3F%2525"
        version = web.get(f"/api/loops/folder/docs/{key}").json["version"]
        cookie = web.session()
        fields = {"csrf": web.csrf(cookie), "text": "# even\n", "version": version}
        saved = web.send(f"/loops/folder/docs/{key}/save", cookie, fields)
        assert (saved.status, saved.headers["location"]) == (303, f"/loops/folder/docs/{key}")
        assert path.read_text() == "# even\n"
        page = web.page(saved.headers["location"], cookie)
        assert (page.status, f'data-page="{saved.headers["location"]}"' in page.text) == (200, True)
        again = web.page(f"{saved.headers['location']}?mode=edit", cookie).text
        assert f'data-page="{saved.headers["location"]}?mode=edit"' in again, "as it was asked for"
        shown = web.send(f"{saved.headers['location']}/save", cookie, {**fields, "preview": "1", "base": "# mine"}).text
        assert '<textarea name="base" hidden>\n# mine</textarea>' in shown, "a preview keeps it"
        with closing(Client(web, f"?page=/loops/folder/docs/{key.replace('%', '%25')}")) as client:
            assert "fragment" in {news.kind for news in client.until("head")}


def test_what_was_done_before_a_loop_could_not_go_on_is_not_asked_for_again(tmp_path: Path) -> None:
    """A note that is kept must not be sent twice."""
    with serving(tmp_path, "blocked") as web:
        cookie, seq = web.session(), str(loops_in(tmp_path).find("blocked").state.seq)
        fields = {"csrf": web.csrf(cookie), "text": "round half up", "resume": "1", "expect_seq": seq}
        answer = web.send("/loops/blocked/tell", cookie, fields)
        assert "Your note is kept, but the loop did not go on: " in answer.text
        assert "round half up</textarea>" not in answer.text
        assert 'data-page="/loops/blocked"' in answer.text, "and it stays fresh"
        assert web.get("/api/loops/blocked").json["notes_waiting"][-1] == "round half up"


def test_a_workspace_that_is_gone_is_said_so(tmp_path: Path) -> None:
    with serving(tmp_path, "blocked") as web:
        shutil.rmtree(tmp_path / "work/blocked")
        told = {named(row): answer for row, answer in every_answer(web) if answer.status >= 400}
        for answer in told.values():
            is_told(answer)
        assert {answer.status for answer in told.values()} <= {400, 404, 409, 503}
        for path in ("/docs", "/docs/todo"):
            answer = web.get(f"/api/loops/blocked{path}")
            assert answer.status == 503
            is_told(answer, "the workspace of blocked is gone")
            is_told(web.get(f"/loops/blocked{path}"), "The workspace of blocked is gone")
        assert web.post("/api/loops/blocked/resume").status == 503


def test_a_loop_that_is_gone_since_is_not_there(tmp_path: Path) -> None:
    with serving(tmp_path, "blocked") as web:
        assert web.get("/api/loops/blocked").status == 200
        shutil.rmtree(home_of(tmp_path, "blocked") / "blocked")
        for row, answer in every_answer(web):
            assert answer.status == 404, row
            is_told(answer, "blocked")
        assert not (home_of(tmp_path, "blocked") / "blocked").exists()


def test_a_loop_that_does_not_answer_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is held, but no one listens: nothing may be waited for without end."""
    monkeypatch.setattr(steer, "_PATIENCE", 0.3)
    with serving(tmp_path, "running") as web:
        before = everything_on_disk(tmp_path)
        began = time.monotonic()
        answer = web.post("/api/loops/running/pause")
        assert time.monotonic() - began < 5
        assert answer.status == 409
        is_told(answer, "the loop running is already running")
        assert everything_on_disk(tmp_path) == before


# -- two at once -------------------------------------------------------------------------------------------------------


def test_of_several_who_save_at_once_one_wins_and_the_others_are_told(tmp_path: Path) -> None:
    with serving(tmp_path, "blocked") as web:
        for turn in range(5):
            version = web.get(TODO).json["version"]
            answers, start = dict[str, Answer](), threading.Barrier(4)

            def save(who: str, version: str = version, answers: Any = answers, start: Any = start) -> None:
                start.wait()
                body = json.dumps({"text": f"- [ ] {who}\n"}).encode()
                answers[who] = asked(web, "PUT", TODO, body, {**JSON, "if-match": version})

            people = [threading.Thread(target=save, args=(f"{who} {turn}",)) for who in ("ada", "bob", "cy", "dan")]
            for person in people:
                person.start()
            for person in people:
                person.join()
            assert sorted(answer.status for answer in answers.values()) == [200, 412, 412, 412]
            [winner] = [who for who, answer in answers.items() if answer.status == 200]
            text = (tmp_path / "work/blocked/TODO.md").read_text()
            assert text == f"- [ ] {winner}\n"
            assert {answer.json["theirs"] for answer in answers.values() if answer.status == 412} == {text}


# -- starting ----------------------------------------------------------------------------------------------------------


def test_what_no_one_trusts_is_not_started_and_the_command_is_told(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "bydawn.toml").write_text(f'prompt = "do it"\nagent = "cmd:touch {ran}"\ncheck = ["touch {ran}"]\n')
    with serving(tmp_path, "none") as web:
        [row] = startable([], tmp_path, Registry(tmp_path / "state").root)
        assert not row.ready
        before = everything_on_disk(tmp_path)
        answer = web.post("/api/loops", {"config": row.key})
        assert answer.status in (400, 409)
        is_told(answer, f"bydawn trust {tmp_path}")
        cookie = web.session()
        page = web.send("/start", cookie, {"folder": row.key, "csrf": web.csrf(cookie)})
        assert page.status in (400, 409)
        is_told(page, f"bydawn trust {tmp_path}")
        assert everything_on_disk(tmp_path) == before
        assert not ran.exists()
        assert web.get("/api/loops?all=1").json["loops"] == []


def test_settings_that_changed_since_they_were_shown_start_nothing(tmp_path: Path) -> None:
    (tmp_path / "bydawn.toml").write_text('prompt = "do it"\n')
    with serving(tmp_path, "none") as web:
        [row] = startable([], tmp_path, Registry(tmp_path / "state").root)
        (tmp_path / "bydawn.toml").write_text('prompt = "do something else"\n')
        answer = web.post("/api/loops", {"config": row.key})
        assert answer.status == 404
        is_told(answer, "its settings may have changed")


# -- every page, every loop, everyone ----------------------------------------------------------------------------------

PAGES = [row for row in TABLE if row.method == "GET" and row.kind is Kind.PAGE]


@pytest.mark.parametrize("row", PAGES, ids=named)
@pytest.mark.parametrize("role", Role)
def test_every_page_of_every_loop_can_be_seen_by_who_may_see_it(everything: Web, row: Route, role: Role) -> None:
    """Or says in words why there is nothing to see: another role, a loop without rounds or documents, no such file."""
    cookie = everything.session(role)
    for story in STORIES if "{loop}" in row.path else ["blocked"]:
        answer = everything.page(address(row).replace("/blocked", f"/{story}"), cookie)
        if row.access is Access.STEER and role is Role.LOOK:
            assert answer.status == 403
            is_told(answer, "can only look")
            continue
        may_be_missing = any(part in row.path for part in ("{number}", "{key}", "{word}"))
        assert answer.status == 200 or (answer.status == 404 and may_be_missing), story
        if answer.status == 404:
            is_told(answer)
        assert "internal error" not in answer.text.lower()
        if role is Role.LOOK:  # what may not be done is not offered
            forms = re.findall(r'<form method="post" action="/(?:loops|start).*?</form>', answer.text, re.DOTALL)
            assert not any("<button" in form for form in forms), story
    assert everything.get(address(row), token=LOOK).status == (403 if row.access is Access.STEER else answer.status)
