"""When a usage limit ends, in the words of agents."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.resets import LONGEST, moment


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in a zone that has summer and winter."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


SAID = [
    # what is said, when (UTC), what it means (UTC); Berlin is one hour ahead in winter
    ("11:19 PM", "2026-11-15T20:00", "2026-11-15T22:19"),
    ("1:05 AM", "2026-11-15T20:00", "2026-11-16T00:05"),  # tomorrow
    ("12:30 AM", "2026-11-15T20:00", "2026-11-15T23:30"),  # midnight is 12
    ("12:30 PM", "2026-11-15T20:00", "2026-11-16T11:30"),  # and so is noon
    ("9:00 PM", "2026-11-15T20:01:30", "2026-11-15T20:01:30"),  # it has just come: now
    ("9:00 PM", "2026-11-15T20:02:30", "2026-11-16T20:00"),  # two minutes later it is tomorrow's
    ("Nov 18th, 2026 9:19 PM", "2026-11-15T20:00", "2026-11-18T20:19"),
    ("Nov 18, 9:24pm (UTC)", "2026-11-15T20:00", "2026-11-18T21:24"),
    ("resets 11:24pm (America/New_York)", "2026-11-15T20:00", "2026-11-16T04:24"),
    ("resets 11:24pm (UTC)", "2026-11-15T20:00", "2026-11-15T23:24"),
    ("Jan 2nd, 2027 1:00 AM", "2026-12-30T20:00", "2027-01-02T00:00"),
    ("Jan 2, 1am", "2026-12-30T20:00", "2027-01-02T00:00"),  # no year: the next one
    ("2:30 AM", "2026-10-24T22:00", "2026-10-25T00:30"),  # the night the clocks go back: the first of two
    ("7:00 AM", "2026-10-24T20:00", "2026-10-25T06:00"),  # … and it has 25 hours
    ("7:00 AM", "2026-03-28T20:00", "2026-03-29T05:00"),  # the night they go forward has 23
    ("Dec 24th, 2026 9:00 PM", "2026-11-15T20:00", "2026-11-23T20:00"),  # longer than any limit lasts: cut
    ("Nov 14th, 2026 9:00 PM", "2026-11-15T20:00", "2026-11-15T20:00"),  # yesterday: now
]


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(("said", "now", "meant"), SAID)
def test_a_reset_is_understood_in_the_zone_of_the_machine(said: str, now: str, meant: str) -> None:
    assert moment(said, at(now)) == at(meant)


@pytest.mark.parametrize(
    "said",
    ["", "soon", "25:00 PM", "Foo 3rd, 2026 9:00 PM", "Feb 30, 2027 9:00 PM", "11:61 PM", "3pm (Nowhere/At_All)"],
)
def test_what_says_no_moment_is_none(said: str) -> None:
    assert moment(said, at("2026-11-15T20:00")) is None


@given(st.text(max_size=40) | st.from_regex(r"\A[A-Z][a-z]{2} \d{1,2}, \d{1,2}:\d\d [AP]M\Z"), st.integers(0, 2**31))
def test_whatever_is_said_the_wait_has_an_end(said: str, now: int) -> None:
    then = datetime.fromtimestamp(now, UTC)
    found = moment(said, then)
    assert found is None or timedelta(0) <= found - then <= LONGEST


def test_the_zone_database_is_there() -> None:
    """Or the table above would test nothing but UTC."""
    assert os.path.exists("/usr/share/zoneinfo/Europe/Berlin")
