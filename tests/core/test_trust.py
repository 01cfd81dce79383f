"""Which values need trust, when are two files the same to it, and how is a difference told? (FAULTS 3.4)"""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.settings.layers import Given, Reading, Settings, settle
from bydawn.settings.setting import Layer, Setting
from bydawn.settings.table import BY_KEY, TABLE
from bydawn.settings.trust import Powers, difference, in_force, powers_of

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
IN_A_PROJECT = [row for row in TABLE if Layer.PROJECT in row.layers]
COMMANDS = [row for row in IN_A_PROJECT if row.commands]
NUMBERS = [row for row in IN_A_PROJECT if not row.commands]

words = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(str.strip)
numbers = st.integers(0, 10**6)


def said(key: str, value: Any, layer: Layer = Layer.PROJECT, text: str = "") -> Given:
    return Given(key=key, value=value, layer=layer, where=f"{layer}:{key}", text=text)


def settings(*rows: Given) -> Settings:
    return settle([Reading(given=rows)], NOON)


def powers(*rows: Given) -> Powers:
    return powers_of(settings(*rows), NOON)


def a_value(row: Setting) -> st.SearchStrategy[Any]:
    if row.key == "until":
        return st.sampled_from(["07:00", "23:59", "2030-01-01T00:00"])
    if row.kind.literal:
        return numbers
    # A rung that no project may choose by itself is no number; random words find it now and then.
    usual = words.filter(lambda word: word not in row.never_in_project)
    return st.lists(words, min_size=1, max_size=3).map(tuple) if row.kind.many else usual


def values(rows: list[Setting]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={row.key: a_value(row) for row in rows})


def given_by(values: dict[str, Any]) -> list[Given]:
    return [said(key, value) for key, value in values.items()]


# -- what needs trust --------------------------------------------------------------------------------------------------


def test_a_setting_that_takes_any_text_needs_trust_in_a_repository() -> None:
    """A new setting cannot be forgotten: whatever is not a number, a time, a switch or a rung has to be a command."""
    texts = [row for row in IN_A_PROJECT if not row.kind.literal and row.tighter != "less"]
    assert [row.key for row in texts if row not in COMMANDS] == []
    assert all(row.tighter and row.never_in_project for row in IN_A_PROJECT if row.ladder)


def test_a_number_that_could_loosen_says_which_way_is_safe() -> None:
    assert [row.key for row in NUMBERS if not row.tighter] == []


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.key)
def test_a_command_of_a_project_is_a_power_and_one_of_the_user_is_none(row: Setting) -> None:
    value = ("x",) if row.kind.many else "x"
    assert powers(said(row.key, value)).commands == (said(row.key, value),)
    for layer in (Layer.USER, Layer.ENV, Layer.FLAG):
        assert powers(said(row.key, value, layer)).empty


def test_the_file_of_another_tool_has_powers_of_its_own() -> None:
    """And may ask for full access, which a project may not."""
    theirs = [said("agent", ("cmd:x",), Layer.DIALECT), said("sandbox", "full", Layer.DIALECT)]
    gathered = settings(*theirs, said("rounds", 0, Layer.DIALECT), said("check", ("y",)))
    found = powers_of(gathered, NOON, Layer.DIALECT)
    assert {row.key for row in found.commands} == {"agent", "sandbox"}
    assert [row.key for row in found.loosened] == ["rounds"]
    assert [row.key for row in powers_of(gathered, NOON).commands] == ["check"]
    assert powers_of(settings(said("sandbox", "workspace", Layer.DIALECT)), NOON, Layer.DIALECT).empty


LIMITS = [row for row in NUMBERS if row.default is not None and row.tighter == "less"]


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: row.key)
def test_a_limit_above_the_default_is_a_power_and_one_below_is_none(row: Setting) -> None:
    assert isinstance(row.default, int | float)
    assert powers(said(row.key, row.default + 1)).loosened
    assert powers(said(row.key, 0)).loosened, "no limit at all is the loosest"
    assert powers(said(row.key, row.default - 0.5)).empty
    assert powers(said(row.key, row.default)).empty


@pytest.mark.parametrize(("key", "value"), [("for", 3600.0), ("until", "07:00"), ("pause", 60.0)])
def test_an_end_in_time_and_a_pause_only_tighten(key: str, value: Any) -> None:
    assert powers(said(key, value)).empty


def test_settings_that_a_repository_has_no_say_in_are_not_for_trust_at_all() -> None:
    """T15: nothing a repository writes can move the truth or show what is secret."""
    kept_away = {"state_dir", "secrets", "not_secret", "plain"}
    assert {key for key in kept_away if Layer.PROJECT in BY_KEY[key].layers} == set()


# -- the digest --------------------------------------------------------------------------------------------------------


@given(values(COMMANDS), values(COMMANDS))
def test_two_files_have_one_digest_exactly_if_their_commands_are_the_same(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert (powers(*given_by(one)).digest == powers(*given_by(other)).digest) == (one == other)


@given(values(COMMANDS), values(NUMBERS), values(NUMBERS))
def test_no_number_ever_changes_the_digest(
    commands: dict[str, Any], numbers: dict[str, Any], others: dict[str, Any]
) -> None:
    one, other = (powers(*given_by({**commands, **more})) for more in (numbers, others))
    assert one.digest == other.digest


@given(values(COMMANDS).filter(bool), st.data())
def test_changing_adding_or_removing_any_one_command_changes_the_digest(
    commands: dict[str, Any], data: st.DataObject
) -> None:
    row = data.draw(st.sampled_from(COMMANDS))
    new = data.draw(st.none() | a_value(row).filter(lambda value: value != commands.get(row.key)))
    changed = {**commands, row.key: new}
    if new is None:
        del changed[row.key]
    assert (powers(*given_by(commands)).digest != powers(*given_by(changed)).digest) == (commands != changed)


@given(values(COMMANDS), values(COMMANDS), st.randoms())
def test_neither_the_order_of_the_lines_nor_what_stands_elsewhere_matters(
    commands: dict[str, Any], elsewhere: dict[str, Any], chance: Any
) -> None:
    rows = given_by(commands)
    mixed = [*rows, *(said(key, value, Layer.FLAG) for key, value in elsewhere.items())]
    chance.shuffle(mixed)
    moved = [msgspec.structs.replace(row, where="bydawn.toml:99") for row in mixed]
    assert powers(*rows).digest == powers(*moved).digest


@given(st.lists(words, min_size=2, max_size=4, unique=True))
def test_the_order_of_checks_matters(checks: list[str]) -> None:
    assert powers(said("check", tuple(checks))).digest != powers(said("check", tuple(reversed(checks)))).digest


@given(words, words)
def test_every_word_of_the_file_behind_a_prompt_is_part_of_the_digest(one: str, other: str) -> None:
    first, second = (powers(said("prompt", "@GOAL.md", text=text)) for text in (one, other))
    assert (first.digest == second.digest) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([said("check", ("a", "b"))], [said("check", ("a\nb",))]),
        ([said("check", ("a b",))], [said("check", ("a", "b"))]),
        ([said("agent", "x")], [said("prompt", "x")]),
        ([said("prompt", "@a", text="b")], [said("prompt", "@ab")]),
        ([said("prompt", "@x", text="")], [said("prompt", "@x", text="\n")]),
        ([said("agent", "true")], [said("agent", "true ")]),
        ([said("agent", "a\u202eb")], [said("agent", "ab")]),
        ([said("tasks", "x"), said("progress", "y")], [said("tasks", "y"), said("progress", "x")]),
    ],
)
def test_values_that_look_alike_are_not_the_same(one: list[Given], other: list[Given]) -> None:
    assert powers(*one).digest != powers(*other).digest


def test_a_digest_is_short_enough_to_paste_and_long_enough_to_believe() -> None:
    digest = powers(said("agent", "demo")).digest
    assert len(digest) == 32
    assert set(digest) <= set("0123456789abcdef")


# -- what is in force --------------------------------------------------------------------------------------------------


@given(values(COMMANDS).filter(bool), st.sampled_from([Layer.ENV, Layer.FLAG]))
def test_what_something_stronger_hides_is_not_in_force_but_still_counts(commands: dict[str, Any], layer: Layer) -> None:
    rows = given_by(commands)
    over = [said(key, value, layer) for key, value in commands.items()]
    gathered = settings(*rows, *over)
    found = powers_of(gathered, NOON)
    assert in_force(found, gathered) == ()
    assert found.digest == powers(*rows).digest
    gathered = settings(*rows, *over[1:])
    assert [row.key for row in in_force(powers_of(gathered, NOON), gathered)] == [rows[0].key]


def test_what_the_user_set_is_weaker_than_the_project_and_hides_nothing() -> None:
    gathered = settings(said("agent", "cmd:evil"), said("agent", "demo", Layer.USER))
    assert [row.value for row in in_force(powers_of(gathered, NOON), gathered)] == ["cmd:evil"]


def test_a_loosened_limit_is_in_force_until_a_flag_says_otherwise() -> None:
    gathered = settings(said("rounds", 0))
    assert in_force(powers_of(gathered, NOON), gathered)
    gathered = settings(said("rounds", 0), said("rounds", 5, Layer.FLAG))
    assert not in_force(powers_of(gathered, NOON), gathered)


# -- the difference ----------------------------------------------------------------------------------------------------

shown = st.dictionaries(st.sampled_from(["agent", "check", "prompt"]), st.lists(words, max_size=4), max_size=3)


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ({}, {}, []),
        ({"check": ["a"]}, {"check": ["a"]}, []),
        ({"check": ["a"]}, {"check": ["b"]}, ["- check = a", "+ check = b"]),
        ({"check": ["a"]}, {"check": ["a", "b"]}, ["+ check = b"]),
        ({"check": ["a"], "agent": ["x"]}, {"check": ["a"]}, ["- agent = x"]),
        ({"check": ["a", "b"]}, {"check": ["b", "a"]}, ["- check = b", "+ check = b"]),
        ({"agent": ["x"]}, {"check": ["x"]}, ["- agent = x", "+ check = x"]),
        ({"check": ["a"]}, {"check": ["a", "a"]}, ["+ check = a"]),  # a prompt that says something twice is another
        ({"check": ["a", "a", "b"]}, {"check": ["a", "b", "b"]}, ["- check = a", "+ check = b"]),
    ],
)
def test_a_difference_is_told_in_lines(
    before: dict[str, list[str]], now: dict[str, list[str]], lines: list[str]
) -> None:
    assert sorted(difference(before, now)) == sorted(lines)


@given(shown)
def test_equal_powers_have_no_difference(before: dict[str, list[str]]) -> None:
    assert difference(before, before) == []


@given(shown, shown)
def test_whatever_is_not_the_same_is_told(before: dict[str, list[str]], now: dict[str, list[str]]) -> None:
    """Or a person would be asked about a change and shown none (FAULTS 3.4: any change shows the difference)."""
    one, other = ({key: lines for key, lines in each.items() if lines} for each in (before, now))
    assert bool(difference(one, other)) == (one != other)
