"""Places in which stories happen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from driving import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in which nothing may be alive one second after the story ends."""
    home = Home(tmp_path.resolve())
    yield home
    assert home.leave() == []
