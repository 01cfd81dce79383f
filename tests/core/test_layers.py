"""Which value holds: the strongest that speaks; and no repository loosens what a person tightened."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.errors import UserError
from bydawn.core.kinds import Value
from bydawn.core.text import near
from bydawn.settings.layers import Given, Problem, Reading, Settings, settle
from bydawn.settings.setting import Layer, Setting
from bydawn.settings.table import BY_KEY, TABLE

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)
STRONG_TO_WEAK = [Layer.FLAG, Layer.ENV, Layer.PROJECT, Layer.USER]


def said(layer: Layer, key: str, value: Value) -> Reading:
    return Reading(given=(Given(key=key, value=value, layer=layer, where=f"the {layer}"),))


def settled(*readings: Reading) -> Settings:
    return settle(readings, NOON)


# -- strength --------------------------------------------------------------------------------------------------------


@given(st.sampled_from(TABLE), st.permutations(STRONG_TO_WEAK), st.integers(0, 4))
def test_the_strongest_layer_wins_in_whatever_order_they_are_read(row: Setting, order: list[Layer], some: int) -> None:
    """R-050, X-12: default < user < project < environment < flag."""
    value = row.kind.from_text(row.kind.example)
    found = settled(*(said(layer, row.key, value) for layer in order[:some]))
    wanted = [layer for layer in STRONG_TO_WEAK if layer in order[:some]]
    assert [each.layer for each in found.given[row.key]] == [*wanted, Layer.DEFAULT]
    assert found[row.key].where == (f"the {wanted[0]}" if wanted else "default")


@given(st.permutations([said(layer, "rounds", number) for number, layer in enumerate(STRONG_TO_WEAK, 1)]))
def test_the_order_of_reading_changes_nothing_at_all(readings: list[Reading]) -> None:
    assert settled(*readings) == settled(*sorted(readings, key=lambda reading: str(reading.given)))


def test_where_nobody_speaks_every_setting_has_its_default() -> None:
    found = settled()
    assert [(key, rows[0].value, len(rows)) for key, rows in found.given.items()] == [
        (row.key, row.default, 1) for row in TABLE
    ]
    assert found.problems == ()


def test_a_stronger_list_replaces_a_weaker_one_and_is_not_added_to_it() -> None:
    found = settled(said(Layer.USER, "check", ("a", "b")), said(Layer.ENV, "check", ("c",)))
    assert found.texts("check") == ("c",)


def test_an_empty_list_speaks_too() -> None:
    assert settled(said(Layer.USER, "check", ("a",)), said(Layer.FLAG, "check", ())).texts("check") == ()


# -- a repository may only tighten -----------------------------------------------------------------------------------

# key · what the user's file says · what the project's says · is that looser?
TIGHTER: list[tuple[str, Value, Value, bool]] = [
    ("rounds", 20, 19, False),
    ("rounds", 20, 20, False),
    ("rounds", 20, 21, True),
    ("rounds", 20, 0, True),  # 0 is no limit
    ("rounds", 0, 1000, False),
    ("rounds", 0, 0, False),
    ("pause", 60.0, 61.0, False),
    ("pause", 60.0, 59.0, True),
    ("pause", 60.0, 0.0, True),  # 0 is no pause
    ("for", 3600.0, 3599.5, False),
    ("for", 3600.0, 3600.5, True),
    ("output_limit", 1 << 20, 1 << 30, True),
    ("until", "2026-01-07T07:00+00:00", "2026-01-07T06:59+00:00", False),
    ("until", "2026-01-07T07:00+00:00", "2026-01-07T07:01+00:00", True),
    ("until", "2026-01-07T07:00+00:00", "2026-01-07T07:30+01:00", False),  # half past six
    ("check", ("a", "b"), ("b", "c", "a"), False),  # all of mine and more
    ("check", ("a", "b"), ("a", "c"), True),
    ("check", ("a",), (), True),
    ("check", (), ("a",), False),
    ("require_text", ("a::b",), ("a::c",), True),
    ("agent", "mine", "theirs", False),  # neither is tighter: that is a matter of trust
]


@pytest.mark.parametrize(("key", "mine", "theirs", "looser"), TIGHTER)
def test_a_project_may_tighten_what_the_user_set_and_not_loosen_it(
    key: str, mine: Value, theirs: Value, looser: bool
) -> None:
    found = settled(said(Layer.USER, key, mine), said(Layer.PROJECT, key, theirs))
    assert [problem.where for problem in found.problems] == (["the project"] if looser else [])


def test_what_was_loosened_is_told_with_both_values_and_both_places() -> None:
    [problem] = settled(said(Layer.USER, "check", ("a", "b")), said(Layer.PROJECT, "check", ("a",))).problems
    assert problem.what == "check loosens what you set yourself"
    assert problem.cause.startswith("it says `a`, the user says `a` and `b`")
    assert "--check" in problem.hint


@pytest.mark.parametrize("layer", [Layer.ENV, Layer.FLAG])
def test_a_person_may_loosen_for_once_what_they_set_themselves(layer: Layer) -> None:
    found = settled(said(Layer.USER, "rounds", 5), said(Layer.PROJECT, "rounds", 9), said(layer, "rounds", 30))
    assert found.problems == ()
    assert found.number("rounds") == 30


def test_a_default_is_nothing_that_a_person_set() -> None:
    assert settled(said(Layer.PROJECT, "rounds", 1000)).problems == ()


# Moments are no numbers; they stand in the table above.
LIMITS = [row for row in TABLE if row.tighter == "less" and not isinstance(row.kind.read(row.kind.example), str)]


@given(st.sampled_from(LIMITS), st.integers(1, 900), st.integers(0, 900))
def test_for_every_limit_less_is_tighter_and_none_is_loosest(row: Setting, mine: int, theirs: int) -> None:
    found = settled(said(Layer.USER, row.key, mine), said(Layer.PROJECT, row.key, theirs))
    assert bool(found.problems) == (theirs == 0 or theirs > mine)


words = st.sets(st.sampled_from("abc"))


@given(st.sampled_from([row for row in TABLE if row.tighter == "more" and row.kind.many]), words, words)
def test_for_every_list_of_proofs_only_more_is_tighter(row: Setting, mine: set[str], theirs: set[str]) -> None:
    found = settled(said(Layer.USER, row.key, tuple(mine)), said(Layer.PROJECT, row.key, tuple(theirs)))
    assert bool(found.problems) == bool(mine - theirs)


# -- problems --------------------------------------------------------------------------------------------------------


def test_nothing_goes_on_with_settings_that_are_not_understood() -> None:
    """A-019: config is strictly validated on startup."""
    wrong = [Problem(where=f"bydawn.toml:{line}", what="wrong", cause="because", hint="mend it") for line in (3, 5, 8)]
    with pytest.raises(UserError) as refused:
        settled(Reading(problems=tuple(wrong[:2])), Reading(problems=tuple(wrong[2:]))).refuse_problems()
    assert refused.value.what == "bydawn.toml:3: wrong"
    assert refused.value.hint == "mend it; 2 more: `bydawn config check`"
    assert refused.value.exit_code == 2


def test_settings_without_problems_are_accepted_in_silence() -> None:
    settled(said(Layer.FLAG, "rounds", 5)).refuse_problems()


MEANT = [
    ("round", "did you mean rounds? "),
    ("done-when", "did you mean done_when? "),
    ("chek", "did you mean check? "),
    ("zzz", ""),
    ("", ""),
]


@pytest.mark.parametrize(("written", "asked"), MEANT)
def test_a_name_that_nobody_knows_is_asked_about_when_one_is_near(written: str, asked: str) -> None:
    """X-12: unknown keys are reported."""
    assert near(written, BY_KEY) == asked


# -- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [row for row in TABLE if row.secret], ids=lambda row: row.key)
def test_a_secret_setting_is_shown_to_nobody(row: Setting) -> None:
    value = row.kind.from_text(row.kind.example)
    assert Given(key=row.key, value=value, layer=Layer.USER, where="x").shown == "[secret]"


@pytest.mark.parametrize("row", [row for row in TABLE if not row.secret], ids=lambda row: row.key)
def test_a_setting_is_shown_as_a_person_would_write_it(row: Setting) -> None:
    value = row.kind.from_text(row.kind.example)
    shown = Given(key=row.key, value=value, layer=Layer.USER, where="x").shown
    assert shown == row.kind.example
    assert Given(key=row.key, value=None, layer=Layer.DEFAULT, where="default").shown == ""
