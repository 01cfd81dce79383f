"""Places in which stories happen."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from story import Home, wait_for


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in which nothing may be alive one second after the story ends."""
    home = Home(tmp_path.resolve())
    yield home
    with suppress(AssertionError):
        wait_for(lambda: not home.alive(), seconds=1)
    assert home.leave() == []
