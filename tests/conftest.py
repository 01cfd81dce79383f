"""Places in which stories happen, and what some of them need beyond Python."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from driving import Home

# Whoever starts the tests in the background of a script has them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# With `nohup` they would ignore a closed terminal, which bydawn heeds. A handler protects us, and is not inherited.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# How many random examples a property is tried with; `--hypothesis-profile` takes the other one. No example has a time
# limit: the machine may be busy.
settings.register_profile("gate", max_examples=25, deadline=None)
settings.register_profile("deep", max_examples=150, deadline=None)
settings.load_profile("gate")

NEEDS = (
    "agents_bin",
    "bwrap",
    "chromium",
    "jq",
    "original",
    "strace",
    "systemd_analyze",
    "tmux",
)  # fixtures: a test that uses one needs what it is named after


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--needs", action="store_true", help="with --collect-only, print what the tests need to be installed"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("needs"):
        used = {name for item in session.items if isinstance(item, pytest.Function) for name in item.fixturenames}
        print("\nneeds:", *sorted(used.intersection(NEEDS)))


@pytest.fixture
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    """A home in which nothing may be alive a few seconds after the story ends."""
    home = Home(tmp_path.resolve(), real=request.node.get_closest_marker("installed") is not None)
    yield home
    assert home.leave() == []


@pytest.fixture(scope="session")
def strace() -> None:
    _is_there("strace")


@pytest.fixture(scope="session")
def systemd_analyze() -> None:
    _is_there("systemd-analyze", "systemd")


@pytest.fixture(scope="session")
def tmux() -> None:
    _is_there("tmux")


@pytest.fixture(scope="session")
def jq() -> None:
    _is_there("jq")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser of the machine; no test brings one of its own."""
    _is_there("chromium")
    return shutil.which("chromium") or ""


@pytest.fixture(scope="session")
def bwrap() -> None:
    _is_there("bwrap", "bubblewrap")


def _is_there(program: str, package: str = "") -> None:
    if not shutil.which(program):
        pytest.fail(f"this test needs {program}: sudo apt-get install {package or program}", pytrace=False)
