"""Settings, the fields of a loop and breakers are rows of tables that name each other; the names are right."""

import msgspec
import pytest

from bydawn.core.breakers import BREAKERS, Breaker, Limits
from bydawn.core.loop import CHECKS, Hooks, Loop, Timeouts
from bydawn.settings.table import BY_KEY, TABLE
from core.facts_made import a_loop

PARTS = {"limits": Limits, "timeouts": Timeouts, "hooks": Hooks}
FILLED = {row.field for row in TABLE if row.field}


@pytest.mark.parametrize("field", sorted(FILLED))
def test_a_setting_fills_a_field_that_a_loop_has(field: str) -> None:
    part, _, name = field.rpartition(".")
    assert name in (PARTS[part] if part else Loop).__struct_fields__


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_a_loop_can_be_set(part: str) -> None:
    budget = {"limits.tokens", "limits.usd"}  # one setting for both
    assert {f"{part}.{name}" for name in PARTS[part].__struct_fields__} <= FILLED | budget


@pytest.mark.parametrize("row", BREAKERS, ids=[row.rule for row in BREAKERS])
def test_what_a_breaker_reads_against_can_be_set_and_raised_by_the_flag_it_names(row: Breaker) -> None:
    assert not row.field or row.field in Limits.__struct_fields__
    if row.raising:
        setting = BY_KEY[row.raising.flag.removeprefix("--").replace("-", "_")]
        assert setting.raises
        assert setting.field in (f"limits.{row.field}", "")


def test_every_kind_of_check_has_a_setting() -> None:
    assert all(check.setting in BY_KEY for check in CHECKS)
    assert all(check.from_text("a::b::c").as_text == "a::b::c" for check in CHECKS)


def test_what_applies_where_nothing_is_set_is_a_field_of_its_own_and_what_a_loop_does() -> None:
    assert [row.key for row in TABLE if "[default" in row.what] == []
    loop = msgspec.to_builtins(a_loop(agent="", prompt=""))
    for row in TABLE:
        part, _, name = row.field.rpartition(".")
        value = (loop[part] if part else loop).get(name)
        assert row.otherwise in ("", value) or not value, row.key
        assert value is None or row.usual or not value, f"{row.key} does not say that it is {value}"
