"""What every reader of an agent's stream has in common: nothing that is printed upsets it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.agents import find
from bydawn.core.outcome import Exit, Outcome

AGENTS = ["claude", "codex", "demo", "gemini", "opencode"]


@pytest.mark.parametrize("name", AGENTS)
@given(st.lists(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), max_size=5), st.binary(max_size=50))
def test_bytes_without_meaning_are_never_a_success(name: str, lines: list[bytes], stderr: bytes) -> None:
    reader = find(name).reader()
    for line in lines:
        list(reader.read(line))
    assert reader.end(Exit(code=0), stderr.decode(errors="replace")).outcome is Outcome.LOST_OUTPUT


@pytest.mark.parametrize("name", ["claude", "demo", "gemini", "opencode"])
def test_a_line_too_long_to_read_is_mentioned_when_the_end_is_missing(name: str) -> None:
    reader = find(name).reader()
    reader.skipped(9_000_000)
    ended = reader.end(Exit(code=0), "")
    assert (ended.outcome, "9000000 bytes" in ended.detail) == (Outcome.LOST_OUTPUT, True)
