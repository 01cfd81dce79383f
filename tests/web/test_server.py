"""The server as a program meets it: raw bytes, limits, slow clients, and how it ends (FAULTS T1, T4, T9, T10)."""

import socket
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from bydawn.core.errors import UserError
from bydawn.store.web_keys import Role
from bydawn.web import server as servers
from bydawn.web.auth import Tokens
from bydawn.web.server import listening
from operations.stories import home_of
from web.serving import LOOK, STEER, Web, at_home, serving

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
PATHS = ["/", "/login", "/static/bydawn.css", "/api/loops", "/api/stream", "/api/health", "/nothing/here"]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


# -- names (T1) --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("Host: evil.example:{port}", {421}),
        ("Host: 127.0.0.1.evil.example:{port}", {421}),
        ("Host: localhost.evil.example:{port}", {421}),
        ("Host: 127.0.0.1", {421}),
        ("Host: 127.0.0.1:1", {421}),
        ("Host: 0.0.0.0:{port}", {421}),
        ("Host: [::]:{port}", {421}),
        ("Host: localhost:{port}.", {400, 421}),
        ("Host: ", {400}),
        ("Host: 127.0.0.1:{port}\r\nHost: evil.example", {400}),
        ("Host: evil.example\r\nX-Forwarded-Host: 127.0.0.1:{port}", {421}),
        ("Host: user:pass@127.0.0.1:{port}", {400}),
        ("Host: 127.0.0.1:{port}, evil.example", {400}),
        ("X-Nothing: here", {400}),
    ],
)
def test_no_other_name_reaches_anything(everything: Web, path: str, lines: str, expected: set[int]) -> None:
    """The fourteen probes of T1, on pages, files, data, the stream and addresses that do not exist."""
    cookie = everything.session()
    head = (
        f"GET {path} HTTP/1.1\r\n{lines.format(port=everything.port)}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    )
    assert status(everything.raw(head.encode())) in expected


def test_an_old_request_without_a_name_is_refused(everything: Web) -> None:
    assert status(everything.raw(b"GET / HTTP/1.0\r\n\r\n")) == 400


def test_a_whole_address_in_the_request_line_leads_nowhere_else(everything: Web) -> None:
    head = f"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:{everything.port}\r\nConnection: close\r\n\r\n"
    assert status(everything.raw(head.encode())) in (400, 401, 404)


@pytest.mark.parametrize("path", ["/?token={token}", "/api/loops?token={token}", "/api/loops?access_token={token}"])
def test_a_token_in_an_address_opens_nothing(everything: Web, path: str) -> None:
    assert everything.ask("GET", path.format(token=STEER)).status == 401


def test_a_new_link_opens_a_browser_that_is_signed_in_already(everything: Web) -> None:
    """The next evening, or to steer after having looked; only from a page of our own."""
    looking, fields = everything.session(Role.LOOK), {"code": everything.code()}
    assert everything.send("/login", looking, fields, origin="http://evil.example").status == 403
    opened = everything.send("/login", looking, fields)
    assert (opened.status, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"].partition(";")[0]
    assert cookie != looking and "Start a loop" in everything.page("/", cookie).text


def test_a_token_in_the_header_needs_no_name_of_the_list(everything: Web) -> None:
    headers = {"host": "vps:8080", "authorization": f"Bearer {LOOK}"}
    assert everything.ask("GET", "/api/loops", headers=headers).status == 200


def test_wrong_tokens_are_answered_later_and_keep_out_nobody_who_has_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path, "none", tokens=Tokens(steer="SECRET")) as web:
        waits: list[float] = []

        async def wait(seconds: float) -> None:
            waits.append(seconds)

        monkeypatch.setattr("bydawn.web.app.asyncio", SimpleNamespace(sleep=wait))
        cookie = web.session()
        wrong = [web.get("/api/loops", token=f"wrong-{number}").status for number in range(11)]
        wrong += [web.send("/login", "", {"code": "wrong"}).status]
        assert wrong == [401] * 12
        assert waits[0] < waits[1] < waits[-1] == 5
        assert web.get("/api/loops", token="SECRET").status == 200  # noqa: S106 - as a document of rloop has it
        assert web.page("/", cookie).status == 200
        assert web.send("/login", "", {"code": web.code()}).status == 303
        assert len([wait for wait in waits if wait]) == 12


def test_a_notice_is_shown_only_to_the_session_that_it_was_made_for(tmp_path: Path) -> None:
    """Another port of the same name can set cookies for us."""
    with at_home(tmp_path), serving(tmp_path, "blocked") as web:
        cookie, forged = web.session(), "Your%20session%20has%20run%20out"
        for told in (forged, f"{'0' * 32}.{forged}", f".{forged}"):
            assert 'id="notice"' not in web.page("/", f"{cookie}; bydawn-told={told}").text
            assert 'id="notice"' not in web.page("/login", f"bydawn-told={told}").text
        fields = {
            "text": "round half up",
            "csrf": web.csrf(cookie),
            "expect_seq": str(web.get("/api/loops/blocked").json["seq"]),
        }
        sent = web.send("/loops/blocked/tell", cookie, fields)
        told = sent.headers["set-cookie"].partition(";")[0]
        assert 'id="notice"' in web.page("/", f"{cookie}; {told}").text
        assert 'id="notice"' not in web.page("/", f"{web.session()}; {told}").text


# -- headers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PATHS[:-3], "/nothing/here", "/api/nothing", "/loops/nothing"])
def test_browsers_are_told_in_every_answer(everything: Web, path: str) -> None:
    found = everything.get(path).headers
    assert {name: found[name] for name in HEADERS} == HEADERS
    assert "server" not in found


def test_a_browser_that_has_a_script_does_not_load_it_again(everything: Web) -> None:
    first = everything.ask("GET", "/static/live.js")
    again = everything.ask("GET", "/static/live.js", headers={"if-none-match": first.headers["etag"]})
    assert (first.status, again.status, again.text) == (200, 304, "")
    assert everything.ask("GET", "/static/live.js", headers={"if-none-match": '"another"'}).text == first.text


def test_what_an_agent_wrote_is_saved_and_never_shown(everything: Web) -> None:
    path = home_of(everything.root, "blocked") / "blocked/rounds/0001/prompt.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("<script>alert(1)</script>")
    found = everything.get("/loops/blocked/rounds/1/raw/prompt")
    assert found.status == 200
    assert found.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in found.headers["content-security-policy"]
    assert "html" not in found.headers["content-type"]


# -- limits (T10) ------------------------------------------------------------------------------------------------------


def test_a_body_of_100_mb_is_refused_before_it_is_read(everything: Web) -> None:
    head = (
        f"POST /api/loops/blocked/tell HTTP/1.1\r\nHost: 127.0.0.1:{everything.port}\r\n"
        f"Authorization: Bearer {STEER}\r\nContent-Type: application/json\r\nContent-Length: {100 << 20}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", everything.port), timeout=10) as client:
        client.sendall(head.encode() + b"x" * 1000)
        assert status(client.recv(65536)) == 413


def test_a_body_without_a_length_is_cut_at_the_same_size(everything: Web) -> None:
    head = (
        f"POST /api/loops/blocked/tell HTTP/1.1\r\nHost: 127.0.0.1:{everything.port}\r\n"
        f"Authorization: Bearer {STEER}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with socket.create_connection(("127.0.0.1", everything.port), timeout=10) as client:
        client.sendall(head.encode())
        for _ in range(40):
            try:
                client.sendall(chunk)
            except OSError:
                break
        assert status(client.recv(65536)) == 413


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
    ],
)
def test_nonsense_is_refused(everything: Web, head: bytes) -> None:
    with suppress(ConnectionError):
        assert status(everything.raw(head)) in (0, 400, 404, 405, 413, 421, 431, 505)
    assert everything.get("/api/health").status == 200


def test_a_request_that_trickles_in_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_REQUEST", 1.0)
    with serving(tmp_path, "none") as web:
        for head in (b"GET / HTTP/1.1\r\n", b"", f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n".encode()):
            began = time.monotonic()
            with socket.create_connection(("127.0.0.1", web.port), timeout=10) as client:
                client.sendall(head)
                try:
                    while time.monotonic() - began < 12:
                        client.sendall(b"X-Slow: y\r\n" if head else b"")
                        client.settimeout(0.3)
                        try:
                            if client.recv(100) == b"":
                                break
                        except TimeoutError:
                            continue
                except OSError:
                    pass
            assert time.monotonic() - began < 9  # it would be ten, if not for the second above


def test_a_body_that_trickles_in_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_REQUEST", 1.0)
    with serving(tmp_path, "none") as web:
        head = (
            f"POST /api/loops HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nAuthorization: Bearer {STEER}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        with socket.create_connection(("127.0.0.1", web.port), timeout=12) as client:
            client.sendall(head.encode())
            began = time.monotonic()
            with suppress(ConnectionError):
                assert client.recv(100) == b""
            assert time.monotonic() - began < 9


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_it_ends_within_three_seconds_although_streams_are_open(tmp_path: Path) -> None:
    with serving(tmp_path, "blocked", "running") as web:
        head = f"GET /api/stream?page=/ HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nAuthorization: Bearer {LOOK}\r\n\r\n"
        clients = [socket.create_connection(("127.0.0.1", web.port), timeout=5) for _ in range(20)]
        for client in clients:
            client.sendall(head.encode())
        for client in clients:
            assert status(client.recv(1000)) == 200
        began = time.monotonic()
        web.server.end()
        web.thread.join(10)
        assert time.monotonic() - began < 3
        for client in clients:
            client.close()


# -- where it listens (107) --------------------------------------------------------------------------------------------


def test_a_port_in_use_is_said_in_words() -> None:
    [taken] = listening("127.0.0.1", 0)
    with taken, pytest.raises(UserError) as error:
        listening("127.0.0.1", taken.getsockname()[1])
    assert "in use" in error.value.what
    assert "--port 0" in error.value.hint


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid"])
def test_an_address_that_is_not_ours_is_said_in_words(host: str) -> None:
    with pytest.raises(UserError) as error:
        listening(host, 0)
    assert error.value.hint


def test_a_server_that_can_only_be_looked_at_lets_nobody_steer(tmp_path: Path) -> None:
    with serving(tmp_path, "blocked", read_only=True, tokens=Tokens(steer=STEER)) as web:
        assert web.post("/api/loops/blocked/tell", {"text": "x"}).status == 403
        assert web.get("/api/loops").status == 200
