"""A browser, and servers for it to look at."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser.browsing import Chromium
from browser.night import Night
from browser.site import Site
from driving import Home, wait_for
from real.conftest import agent_env, agents_bin, codex_env, codex_home, model  # noqa: F401 - fixtures
from web.conftest import everything  # noqa: F401 - a fixture
from web.serving import Web, at_home, serving

CHROMIUM = Chromium()
HERE = os.path.dirname(__file__)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The browser does not outlive the last test in a row that uses it."""
    if nextitem is None or not str(nextitem.path).startswith(HERE):
        CHROMIUM.close()


@pytest.fixture
def browser(chromium: str) -> Browser:
    return CHROMIUM.open(chromium)


@pytest.fixture
def night(home: Home) -> Night:
    return Night(home)


@pytest.fixture
def site(home: Home) -> Iterator[Site]:
    """The page of a home: the installed `bydawn serve`."""
    site = Site(home)
    yield site
    site.end()
    with suppress(AssertionError):  # nobody waits for a loop that was resumed from the page
        wait_for(lambda: not home.alive(), 10)


@pytest.fixture
def blocked(tmp_path: Path) -> Iterator[Web]:
    """A server over one loop, made from facts, that is blocked."""
    with at_home(tmp_path.resolve()), serving(tmp_path.resolve(), "blocked") as web:
        yield web
