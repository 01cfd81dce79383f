"""Every route that changes something refuses whoever may not; made from the table, so that none can be forgotten."""

import re

import pytest

from bydawn.store.web_keys import Role
from bydawn.web.auth import Access
from bydawn.web.calls import Kind, Route
from bydawn.web.table import TABLE
from web.serving import LOOK, Web

CHANGES = [row for row in TABLE if row.method != "GET" and row.access is not Access.OPEN]
STEERS = [row for row in CHANGES if row.access is Access.STEER]
CLOSED = [row for row in TABLE if row.access is not Access.OPEN]


def name(row: Route) -> str:
    return f"{row.method} {row.path}"


def address(row: Route) -> str:
    found = {"loop": "blocked", "number": "1", "key": "todo", "word": "prompt", "name": "live.js"}
    return re.sub(r"{(\w+)(:path)?}", lambda match: found[match[1]], row.path)


def sent(row: Route) -> tuple[bytes, dict[str, str]]:
    if row.kind is Kind.FORM:
        return b"text=x&expect_seq=1", {"content-type": "application/x-www-form-urlencoded"}
    return b"{}", {"content-type": "application/json"}


def test_there_is_something_to_try() -> None:
    assert len(STEERS) > 25


@pytest.mark.parametrize("row", CLOSED, ids=name)
def test_nothing_is_shown_or_done_without_a_key(everything: Web, row: Route) -> None:
    body, headers = sent(row) if row.method != "GET" else (None, {})
    headers |= {"origin": everything.origin} if row.method != "GET" else {}
    assert everything.ask(row.method, address(row), body, headers).status == 401


@pytest.mark.parametrize("row", STEERS, ids=name)
def test_nothing_is_done_with_a_token_that_may_only_look(everything: Web, row: Route) -> None:
    body, headers = sent(row)
    answer = everything.ask(row.method, address(row), body, {**headers, "authorization": f"Bearer {LOOK}"})
    assert answer.status == 403
    assert "can only look" in answer.text


@pytest.mark.parametrize("row", STEERS, ids=name)
def test_nothing_is_done_in_a_session_that_may_only_look(everything: Web, row: Route) -> None:
    cookie = everything.session(Role.LOOK)
    body, headers = sent(row)
    headers |= {"cookie": cookie, "origin": everything.origin, "x-csrf": everything.csrf(cookie)}
    assert everything.ask(row.method, address(row), body, headers).status == 403


@pytest.mark.parametrize("row", CHANGES, ids=name)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "https://127.0.0.1", "http://localhost:1"])
def test_nothing_is_done_for_another_site(everything: Web, row: Route, origin: str) -> None:
    cookie = everything.session()
    body, headers = sent(row)
    headers |= {"cookie": cookie, "x-csrf": everything.csrf(cookie), **({"origin": origin} if origin else {})}
    assert everything.ask(row.method, address(row), body, headers).status == 403


@pytest.mark.parametrize("row", CHANGES, ids=name)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_nothing_is_done_if_the_browser_says_it_comes_from_elsewhere(everything: Web, row: Route, site: str) -> None:
    cookie = everything.session()
    body, headers = sent(row)
    headers |= {"cookie": cookie, "x-csrf": everything.csrf(cookie), "origin": everything.origin}
    assert everything.ask(row.method, address(row), body, {**headers, "sec-fetch-site": site}).status == 403


@pytest.mark.parametrize("row", CHANGES, ids=name)
def test_nothing_is_done_under_a_foreign_name(everything: Web, row: Route) -> None:
    cookie = everything.session()
    body, headers = sent(row)
    host = f"evil.example:{everything.port}"
    headers |= {"cookie": cookie, "origin": f"http://{host}", "host": host, "x-csrf": everything.csrf(cookie)}
    assert everything.ask(row.method, address(row), body, headers).status == 421


@pytest.mark.parametrize("row", CHANGES, ids=name)
@pytest.mark.parametrize("csrf", ["", "0" * 32])
def test_nothing_is_done_without_what_our_own_pages_know(everything: Web, row: Route, csrf: str) -> None:
    cookie = everything.session()
    body, headers = sent(row)
    if row.kind is Kind.FORM:
        body += f"&csrf={csrf}".encode()
    headers |= {"cookie": cookie, "origin": everything.origin, "x-csrf": csrf}
    assert everything.ask(row.method, address(row), body, headers).status == 403


@pytest.mark.parametrize("row", [row for row in TABLE if row.method == "GET" and row.kind is Kind.API], ids=name)
def test_no_data_is_given_to_a_page_of_another_site(everything: Web, row: Route) -> None:
    headers = {"cookie": everything.session(), "sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    assert everything.ask("GET", address(row), headers=headers).status == 403


@pytest.mark.parametrize("row", CHANGES, ids=name)
def test_nothing_is_done_by_looking(everything: Web, row: Route) -> None:
    """No GET has effects: an address that changes something either shows a page for GET, or refuses it."""
    same = [each for each in TABLE if each.method == "GET" and each.path == row.path]
    assert same or everything.get(address(row)).status == 405


def test_a_wrong_token_is_not_rescued_by_a_cookie(everything: Web) -> None:
    headers = {"authorization": "Bearer wrong", "cookie": everything.session()}
    assert everything.ask("GET", "/", headers=headers).status == 401
