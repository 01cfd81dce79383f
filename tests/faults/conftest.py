"""Stories about processes and their deaths, some of them while they start: told with the installed command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from driving import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in which nothing may be alive one second after the story ends."""
    home = Home(tmp_path.resolve(), real=True)
    yield home
    assert home.leave() == []
