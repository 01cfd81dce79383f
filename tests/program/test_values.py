"""How values are written on a command line."""

from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.cli.resume import Raise, moment
from bydawn.core.errors import UserError
from bydawn.core.kinds import count, next_moment, size, span

SPANS = [
    ("90", 90.0),  # seconds, if nothing else is said
    ("30s", 30.0),
    ("0.5s", 0.5),
    ("5m", 300.0),
    ("8h", 28800.0),
    ("1h30m", 5400.0),
    ("1h 30m", 5400.0),
    (" 2d ", 172800.0),
    ("1.5h", 5400.0),
    ("1d2h3m4s", 93784.0),
    ("0", 0.0),
]


@pytest.mark.parametrize(("text", "seconds"), SPANS)
def test_a_length_of_time_is_read_as_people_write_it(text: str, seconds: float) -> None:
    assert span(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "h", "five", "-5m", "5 minutes", "1m1h", "5mm", "1e3", "nan", "inf", "9" * 400]
)
def test_what_is_no_length_of_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Raise(text, span)


# -- moments -------------------------------------------------------------------------------------------------------

EVENING = datetime(2026, 1, 6, 22, 30).astimezone()
MOMENTS = [
    ("23:00", datetime(2026, 1, 6, 23, 0)),  # noqa: DTZ001 - still today
    ("07:00", datetime(2026, 1, 7, 7, 0)),  # noqa: DTZ001 - the next one
    ("7:00", datetime(2026, 1, 7, 7, 0)),  # noqa: DTZ001
    ("22:30", datetime(2026, 1, 7, 22, 30)),  # noqa: DTZ001 - now is not to come
    ("00:00", datetime(2026, 1, 7, 0, 0)),  # noqa: DTZ001
    ("2026-11-16T07:00", datetime(2026, 11, 16, 7, 0)),  # noqa: DTZ001
    ("2026-11-16 07:00", datetime(2026, 11, 16, 7, 0)),  # noqa: DTZ001
    ("2026-11-16", datetime(2026, 11, 16)),  # noqa: DTZ001
]


@pytest.mark.parametrize(("text", "local"), MOMENTS)
def test_a_time_of_day_is_the_next_one_and_a_date_is_itself(text: str, local: datetime) -> None:
    found = next_moment(text, EVENING)
    assert found == local.astimezone(UTC)
    assert found is not None
    assert found.tzinfo is UTC  # an instant: no change of zone or season moves it


def test_a_moment_may_say_its_own_zone() -> None:
    assert next_moment("2026-11-16T07:00+02:00", EVENING) == datetime(2026, 11, 16, 5, tzinfo=UTC)
    assert next_moment("2026-11-16T07:00Z", EVENING) == datetime(2026, 11, 16, 7, tzinfo=UTC)


NO_MOMENTS = ["", "soon", "25:00", "07:60", "7", "07:00:61", "2026-13-01", "0001-01-01T00:00+05:00"]
NO_MOMENTS += ["9999-12-31T23:59-05:00", "٠٧:٠٠x"]


@pytest.mark.parametrize("text", NO_MOMENTS)
def test_what_is_no_moment_is_refused(text: str) -> None:
    assert next_moment(text, EVENING) is None
    with pytest.raises(click.BadParameter):
        moment(text)


def test_a_moment_that_has_passed_is_refused_too() -> None:
    with pytest.raises(click.BadParameter):
        moment("2020-01-01T00:00")


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 60 * 24 * 366))
def test_a_time_of_day_is_at_most_a_day_away(hour: int, minute: int, later: int) -> None:
    now = EVENING + timedelta(minutes=later)
    found = next_moment(f"{hour:02}:{minute:02}", now)
    assert found is not None
    assert timedelta(0) < found - now <= timedelta(hours=25)  # one hour more where the clocks are set back


# -- sizes, counts, raised limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"), [("500", 500), ("1k", 1024), ("64kB", 65536), ("500MB", 500 << 20), ("1 GB", 1 << 30), ("0", 0)]
)
def test_a_size_is_read_as_people_write_it(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize("text", ["", "B", "1.5GB", "-1", "1TB", "many"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size(text)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "many", "+", "²"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Raise(text, count)


RAISED = [
    ("50", 30.0, 50.0),
    ("+20", 30.0, 50.0),
    ("50", None, 50.0),
    ("0", 30.0, 0.0),  # off
]


@pytest.mark.parametrize(("text", "current", "wanted"), RAISED)
def test_a_limit_is_replaced_or_added_to(text: str, current: float | None, wanted: float) -> None:
    assert Raise(text, count).over(current, "--rounds") == wanted


@pytest.mark.parametrize("current", [0, None])
def test_what_is_added_to_no_limit_would_be_one_and_is_refused(current: float | None) -> None:
    with pytest.raises(UserError, match=r"--rounds \+20") as error:
        Raise("+20", count).over(current, "--rounds")
    assert "--rounds 20" in error.value.hint


def test_time_is_added_to_time() -> None:
    assert Raise("+2h", span).over(3600.0, "--for") == 3 * 3600.0
