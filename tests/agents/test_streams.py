"""Recorded streams of the real agents must be judged as they were, in whatever pieces they arrive.

Each folder of `streams/` has an EXPECTED.toml: the outcome of every recording in it. A recording that nobody
judged fails the test.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bydawn import agents
from bydawn.core.agent import Ended, Event
from bydawn.core.outcome import Ending, Exit
from bydawn.core.redact import looks_secret

STREAMS = Path(__file__).with_name("streams")


class Recording(NamedTuple):
    """One run of a real agent."""

    agent: str
    name: str
    expected: str

    @property
    def meta(self) -> dict[str, Any]:
        return dict(json.loads((STREAMS / self.agent / f"{self.name}.meta.json").read_text()))

    @property
    def stdout(self) -> bytes:
        path = STREAMS / self.agent / f"{self.name}.jsonl"
        return path.read_bytes() if path.exists() else b""

    @property
    def stderr(self) -> str:
        path = STREAMS / self.agent / f"{self.name}.stderr.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def exit(self) -> Exit:
        """As its owner saw it; the recorder's own patience was the round's time limit."""
        code = self.meta["exit_code"]
        if "harness_timeout_s" in self.meta:
            return Exit(ending=Ending.TOTAL, signal=9)
        return Exit(code=code if code >= 0 else None, signal=-code if code < 0 else None)


def recordings() -> Iterator[Recording]:
    for folder in sorted(path for path in STREAMS.iterdir() if (path / "EXPECTED.toml").exists()):
        expected = tomllib.loads((folder / "EXPECTED.toml").read_text())
        for path in sorted(folder.glob("*.meta.json")):
            name = path.name.removesuffix(".meta.json")
            yield Recording(folder.name, name, expected.get(name, "nobody judged it"))


ALL = [*recordings()]


def read(recording: Recording, size: int | None = None) -> tuple[list[Event], Ended]:
    """Feed a recording to its agent's reader, line by line as a tail does, in pieces of so many bytes."""
    reader = agents.find(recording.agent).reader()
    events: list[Event] = []
    rest = b""
    data = recording.stdout
    for start in range(0, len(data), size or len(data) or 1):
        *lines, rest = (rest + data[start : start + (size or len(data))]).split(b"\n")
        for line in lines:
            events += reader.read(line)
    if rest:
        events += reader.read(rest)
    return events, reader.end(recording.exit, recording.stderr[-4000:])


@pytest.mark.parametrize("recording", ALL, ids=lambda recording: f"{recording.agent}/{recording.name}")
def test_a_recorded_stream_is_judged_as_it_was(recording: Recording) -> None:
    assert read(recording)[1].outcome.value == recording.expected


@pytest.mark.parametrize("recording", ALL, ids=lambda recording: f"{recording.agent}/{recording.name}")
def test_a_stream_says_the_same_in_whatever_pieces_it_arrives(recording: Recording) -> None:
    whole = read(recording)
    assert [read(recording, size) for size in (7, 4096)] == [whole, whole]
    if len(recording.stdout) < 100_000:
        assert read(recording, 1) == whole


def test_every_expectation_has_a_recording() -> None:
    for folder in (path for path in STREAMS.iterdir() if (path / "EXPECTED.toml").exists()):
        expected = tomllib.loads((folder / "EXPECTED.toml").read_text())
        assert {*expected} == {path.name.removesuffix(".meta.json") for path in folder.glob("*.meta.json")}


@pytest.mark.parametrize("name", agents.DEFAULTS)
def test_what_an_agent_logs_in_with_is_known_as_a_key_that_checks_do_not_get(name: str) -> None:
    account = agents.find(name).abilities.account
    assert {variable for variable in account if looks_secret(variable)} <= agents.KEYS
