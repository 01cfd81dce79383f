"""Places in which stories happen."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from driving import Home

# Whoever starts the tests in the background of a script has them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in which nothing may be alive one second after the story ends."""
    home = Home(tmp_path.resolve())
    yield home
    assert home.leave() == []
