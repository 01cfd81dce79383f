"""How values are written: what a kind writes it can read, and what it cannot read it refuses in words."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bydawn.core import kinds
from bydawn.core.kinds import Kind, Value, next_moment, size, size_text, span, span_text
from bydawn.settings.table import TABLE

TEN_YEARS = 10 * 365 * 86400
CHOICE = kinds.choice("tag", "line")
KINDS = {
    "text": kinds.TEXT,
    "branch": kinds.BRANCH,
    "count": kinds.COUNT,
    "span": kinds.SPAN,
    "moment": kinds.MOMENT,
    "budget": kinds.BUDGET,
    "size": kinds.SIZE,
    "switch": kinds.SWITCH,
    "choice": CHOICE,
    "texts": kinds.TEXTS,
    "pairs": kinds.PAIRS,
    "mapping": kinds.MAPPING,
    "variables": kinds.VARIABLES,
    "addresses": kinds.ADDRESSES,
}
ALL_KINDS = [pytest.param(kind, id=name) for name, kind in KINDS.items()]


def test_every_kind_that_a_setting_has_is_tested_here() -> None:
    others = [setting.kind for setting in TABLE if "enum" not in dict(setting.kind.schema)]
    assert [kind.wanted for kind in others if kind not in KINDS.values()] == []


# -- there and back ------------------------------------------------------------------------------------------------


@given(st.integers(0, TEN_YEARS * 1000))
def test_a_length_of_time_that_is_shown_can_be_typed_again(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert span(span_text(seconds)) == pytest.approx(seconds, abs=1e-4, rel=0)


@given(st.floats(0, TEN_YEARS))
@example(0.00001)
def test_however_short_a_time_is_what_is_shown_of_it_can_be_read(seconds: float) -> None:
    assert span(span_text(seconds)) == pytest.approx(seconds, abs=1e-3, rel=0)


@given(st.integers(0, 999), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_length_of_time_is_shown_in_the_largest_units_that_fit(d: int, h: int, m: int, s: int) -> None:
    wanted = "".join(f"{count}{unit}" for count, unit in ((d, "d"), (h, "h"), (m, "m"), (s, "s")) if count)
    assert span_text(d * 86400 + h * 3600 + m * 60 + s) == (wanted or "0s")


@given(st.integers(0, 10**15 - 1), st.sampled_from(["", "B", "k", "kB", "M", "mb", " GB"]))
def test_a_size_that_is_shown_can_be_typed_again(number: int, unit: str) -> None:
    found = size(f"{number}{unit}")
    assert size(size_text(found)) == found


@given(st.integers(1, 1023), st.sampled_from([("kB", 10), ("MB", 20), ("GB", 30)]))
def test_a_size_is_shown_in_the_largest_unit_that_fits(number: int, unit: tuple[str, int]) -> None:
    assert size_text(number << unit[1]) == f"{number}{unit[0]}"
    assert size_text((number << unit[1]) + 1) == f"{(number << unit[1]) + 1}"


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_what_a_kind_writes_it_reads_from_text_from_words_and_from_a_file(kind: Kind) -> None:
    value = kind.from_text(kind.example)
    assert kind.from_text(kind.write(value)) == value
    assert kind.from_words([kind.example]) == value
    assert kind.from_file(kind.for_file([kind.example])) == value


@given(st.floats(1e-9, TEN_YEARS) | st.integers(0, TEN_YEARS))
@example(1e-7)
def test_a_number_of_seconds_in_a_file_means_itself(seconds: float) -> None:
    found = kinds.SPAN.from_file(seconds)
    assert found == pytest.approx(seconds, abs=1e-6)
    assert bool(found) == bool(seconds)  # 0 is no limit at all, and a very short time is not


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)))
def test_a_list_in_a_file_is_kept_word_for_word(words: list[str]) -> None:
    assert kinds.TEXTS.from_file(words) == tuple(words)
    assert kinds.TEXTS.from_file(kinds.TEXTS.for_file(words)) == tuple(words)


# -- from a file -----------------------------------------------------------------------------------------------------

UNDERSTOOD: list[tuple[str, object, Value]] = [
    ("count", 0, 0),
    ("span", "1h30m", 5400.0),
    ("span", 90, 90.0),
    ("span", 0.5, 0.5),
    ("size", 500, 500),
    ("size", "64kB", 65536),
    ("switch", True, True),
    ("switch", False, False),
    ("moment", "07:00", "07:00"),
    ("moment", time(7, 0), "07:00"),  # TOML has its own times of day and dates
    ("moment", datetime(2026, 11, 16, 7, tzinfo=UTC), "2026-11-16T07:00:00+00:00"),
    ("texts", "make test", ("make test",)),  # one needs no brackets
    ("texts", [], ()),
    ("pairs", ["a::b::c"], ("a::b::c",)),  # the first :: divides
    ("variables", ["A=b=c", "EMPTY="], ("A=b=c", "EMPTY=")),  # the first = divides
    ("choice", "line", "line"),
]


@pytest.mark.parametrize(("kind", "found", "value"), UNDERSTOOD, ids=str)
def test_a_file_may_say_it_in_toml_s_own_types(kind: str, found: object, value: Value) -> None:
    read = KINDS[kind].from_file(found)
    assert (read, type(read)) == (value, type(value))


REFUSED: list[tuple[str, object, str]] = [
    ("text", 5, "5 (a number) is not a string"),
    ("text", True, "true (true or false) is not a string"),
    ("text", ["a"], "a list"),
    ("text", {"a": 1}, "a table"),
    ("text", " ", "empty"),
    ("text", "a\0b", "zero byte"),
    ("count", True, "true or false"),  # True is a number to Python
    ("count", "5", '"5" (text) is not a whole number'),
    ("count", 1.5, "1.5 (a number)"),
    ("count", -1, "'-1' is less than 0; write 0 or more"),
    ("count", 10**16, "not a whole number"),
    ("span", True, "true or false"),
    ("span", -1, "not a duration"),
    ("span", float("nan"), "not a duration"),
    ("span", float("inf"), "not a duration"),
    ("span", "11y", "not a duration"),
    ("span", TEN_YEARS + 1, "ten years"),
    ("size", 1.5, "a number"),
    ("size", -1, "not a size"),
    ("switch", 1, "not true or false"),
    ("switch", "true", "not true or false"),
    ("moment", 7, "a number"),
    ("moment", "7", "not a time"),
    ("texts", ["a", 5], "5 (a number) is not a list of strings"),
    ("texts", [["a"]], "a list"),
    ("texts", ["a", ""], "empty"),
    ("pairs", ["a", "b::c"], "FILE::TEXT"),
    ("pairs", ["::c"], "FILE::TEXT"),
    ("pairs", ["a::"], "FILE::TEXT"),
    ("choice", "Tag", "tag, line"),
    ("choice", date(2026, 1, 1), "a date or time"),
]


@pytest.mark.parametrize(("kind", "found", "words"), REFUSED, ids=str)
def test_another_type_is_refused_and_called_by_its_name(kind: str, found: object, words: str) -> None:
    """X-12: wrong types are rejected."""
    with pytest.raises(ValueError) as refused:
        KINDS[kind].from_file(found)
    assert words in str(refused.value)


@given(
    st.sampled_from([*KINDS.values()]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes() | st.dates() | st.times(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_whatever_stands_in_a_file_is_a_value_or_a_value_error(kind: Kind, found: object) -> None:
    try:
        value = kind.from_file(found)
    except ValueError as refused:
        assert str(refused)
    else:
        assert kind.write(value) is not None


# -- from a variable -------------------------------------------------------------------------------------------------


def test_a_variable_holds_several_values_one_to_a_line() -> None:
    assert kinds.TEXTS.from_text("make test\n\n  \nruff check\n") == ("make test", "ruff check")


def test_a_text_of_several_lines_stays_one_text() -> None:
    assert kinds.TEXT.from_text("one\ntwo\n") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("TRUE", True), ("yes", True), ("On", True), ("0", False), ("false", False), ("No", False)],
)
def test_a_switch_is_typed_in_many_ways(text: str, value: bool) -> None:
    assert kinds.SWITCH.from_text(text) is value


@pytest.mark.parametrize("text", ["", "2", "maybe", "tru"])
def test_what_is_neither_true_nor_false_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither true nor false"):
        kinds.SWITCH.from_text(text)


# -- moments -----------------------------------------------------------------------------------------------------------


NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.times(), st.integers(0, 60 * 24 * 366), st.integers(-23, 23))
@example(time(7), 7 * 60 + 30, -9)  # local is to `now` as Tokyo at half past seven is to UTC
def test_in_which_zone_now_is_told_makes_no_difference(clock: time, minutes: int, hours: int) -> None:
    now = NEW_YEAR + timedelta(minutes=minutes)
    there = now.astimezone(timezone(timedelta(hours=hours)))
    text = f"{clock:%H:%M}"
    assert next_moment(text, there) == next_moment(text, now)
