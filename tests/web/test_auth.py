"""Who may come in: names, tokens, codes, sessions, and where a request comes from (FAULTS T1–T6)."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from bydawn.store.folder import StateFolder
from bydawn.store.web_keys import Key, Role, WebKeys
from bydawn.web.auth import Failures, Names, Refused, Tokens, csrf_of


def scope(*hosts: str, server: tuple[str, int] = ("127.0.0.1", 4173)) -> dict[str, object]:
    return {"headers": [(b"host", host.encode("latin-1")) for host in hosts], "server": server}


@pytest.mark.parametrize("host", ["127.0.0.1:4173", "localhost:4173", "LOCALHOST:4173", "[::1]:4173"])
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    """X-25: loopback is free, with a check of the Host header."""
    assert Names(port=4173).checked(scope(host)) == host


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ([], 400),
        (["127.0.0.1:4173", "evil.example"], 400),
        ([""], 400),
        (["127.0.0.1:4173 evil.example"], 400),
        (["evil.example:4173"], 421),
        (["127.0.0.1.evil.example:4173"], 421),
        (["127.0.0.1"], 421),
        (["127.0.0.1:80"], 421),
        (["127.0.0.2:4173"], 421),
        (["localhost.:4173"], 421),
        (["user@127.0.0.1:4173"], 400),
        (["[::1%25lo]:4173"], 400),
        (["0.0.0.0:4173"], 421),
        (["192.168.1.9:4173"], 421),
        (["xn--localhost-:4173"], 421),
        (["127.0.0.1:4173/"], 400),
        (["2130706433:4173"], 421),
    ],
)
def test_no_other_name_is(hosts: list[str], status: int) -> None:
    with pytest.raises(Refused) as refused:
        Names(port=4173).checked(scope(*hosts))
    assert refused.value.status == status


def test_who_is_told_of_an_option_has_it() -> None:
    """`rloop server` takes no further names."""
    for takes_more in (True, False):
        with pytest.raises(Refused) as refused:
            Names(port=4173, takes_more=takes_more).checked(scope("night.example:4173"))
        assert ("--allowed-host" in refused.value.hint) is takes_more


def test_an_address_is_ours_if_the_connection_reached_us_there() -> None:
    names = Names(port=4173)
    assert names.checked(scope("192.168.1.9:4173", server=("192.168.1.9", 4173)))
    assert names.checked(scope("[fd00::7]:4173", server=("fd00::7", 4173)))
    assert names.checked(scope("192.168.1.9:4173", server=("::ffff:192.168.1.9", 4173)))
    with pytest.raises(Refused):
        names.checked(scope("192.168.1.10:4173", server=("192.168.1.9", 4173)))


def test_a_name_that_was_allowed_is_answered_and_no_longer_one() -> None:
    names = Names(port=4173, allowed=("night.example.org", "localhost:8000"))
    for host in ("night.example.org", "night.example.org:4173", "NIGHT.example.org", "localhost:8000"):
        assert names.checked(scope(host)) == host
    for host in ("night.example.org:99", "a.night.example.org", "localhost:8001", "localhost"):
        with pytest.raises(Refused):
            names.checked(scope(host))


def test_an_origin_is_ours_only_with_the_same_name_and_port() -> None:
    names = Names(port=4173, allowed=("night.example.org",))
    assert names.is_own_origin("http://127.0.0.1:4173", "127.0.0.1:4173")
    assert names.is_own_origin("https://night.example.org", "night.example.org")
    for origin in ("null", "https://127.0.0.1:4173", "http://localhost:4173", "http://127.0.0.1:4173.evil", ""):
        assert not names.is_own_origin(origin, "127.0.0.1:4173")


def test_tokens_are_apart() -> None:
    tokens = Tokens(steer="a" * 32, look="b" * 32)
    assert [tokens.role_of(text) for text in ("a" * 32, "b" * 32, "a" * 31, "", "ä")] == [
        Role.STEER,
        Role.LOOK,
        None,
        None,
        None,
    ]
    assert Tokens().role_of("") is None


def test_guessing_is_answered_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = Failures()
    assert [failures.wait() for _ in range(12)] == [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5, 5]
    later = time.monotonic() + 61
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert failures.wait() == 0.5


# -- codes and sessions ------------------------------------------------------------------------------------------------


def keys(root: Path, server: str = "bydawn") -> WebKeys:
    return WebKeys(StateFolder(root), server)


def test_a_code_is_good_for_one_use(tmp_path: Path) -> None:
    mine = keys(tmp_path)
    code = mine.new_code(Role.LOOK)
    assert mine.use_code(f" {code[:6].upper()}-{code[6:]} ") is Role.LOOK
    assert mine.use_code(code) is None


def test_a_code_opens_only_the_server_it_was_made_for(tmp_path: Path) -> None:
    code = keys(tmp_path, "rloop").new_code(Role.STEER)
    assert keys(tmp_path).use_code(code) is None
    assert keys(tmp_path, "rloop").use_code(code) is Role.STEER


def test_what_has_run_out_opens_nothing_and_is_swept(tmp_path: Path) -> None:
    mine = keys(tmp_path)
    code, session = mine.new_code(Role.STEER), mine.new_session(Role.STEER)
    for path in tmp_path.glob("web/*/*"):
        old = Key(role=Role.STEER, server="bydawn", until=datetime.now(UTC) - timedelta(seconds=1))
        path.write_bytes(msgspec.json.encode(old))
    assert mine.use_code(code) is None
    assert mine.role_of(session) is None
    mine.sweep()
    assert [*tmp_path.glob("web/*/*")] == []


def test_only_digests_are_on_disk_and_only_for_their_owner(tmp_path: Path) -> None:
    mine = keys(tmp_path)
    secret = (mine.new_code(Role.STEER), mine.new_session(Role.STEER))
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
        if path.is_file():
            assert not any(text in path.name or text in path.read_text() for text in secret)


def test_a_session_that_ended_is_over(tmp_path: Path) -> None:
    mine = keys(tmp_path)
    session = mine.new_session(Role.STEER)
    assert mine.role_of(session) is Role.STEER
    mine.end(session)
    assert mine.role_of(session) is None


@pytest.mark.parametrize("text", ["", "../../../etc/passwd", "\0", "x" * 10_000, "é"])
def test_nonsense_is_no_session(tmp_path: Path, text: str) -> None:
    assert keys(tmp_path).role_of(text) is None
    assert keys(tmp_path).use_code(text) is None


def test_what_a_form_carries_depends_on_the_session() -> None:
    assert csrf_of("one") != csrf_of("two")
    assert len(csrf_of("one")) == 32
