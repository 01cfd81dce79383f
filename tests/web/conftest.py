"""Places for stories on the web page."""

from collections.abc import Iterator

import pytest

from bydawn.web.loops import Loops
from web.drawn import rooms
from web.serving import Web, at_home, serving


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One server over loops in every state, for tests that change nothing."""
    root = tmp_path_factory.mktemp("web").resolve()
    with at_home(root), serving(root) as web:
        yield web


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loops]:
    """Loops in every state, for tests that change nothing."""
    with rooms(tmp_path_factory.mktemp("rooms").resolve()) as found:
        yield found
