"""Every dialect in the table is one that can be spoken."""

import sys
from pathlib import Path

import click
import pytest

from bydawn import dialects
from bydawn.cli.dialects import WithNameless, commands
from bydawn.core.loop import ChangedTests
from bydawn.dialects.seam import Start
from bydawn.operations.dialects import begin
from dialects import made_up
from dialects.made_up import DAY_BOOK

NAMES = [*dialects.TABLE, made_up.NAME]


@pytest.fixture(autouse=True)
def _night_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, a folder and a file: that is all that a dialect is."""
    monkeypatch.setitem(dialects.TABLE, made_up.NAME, made_up.ROW)
    for module in ("bydawn.dialects.night_shift", "bydawn.cli.dialects.night_shift"):
        monkeypatch.setitem(sys.modules, module, made_up)


def leaves(group: click.Group) -> set[str]:
    """Every command that can be typed, with the words above it."""
    found = set()
    for name, each in group.commands.items():
        found |= {f"{name} {inner}" for inner in leaves(each)} if isinstance(each, click.Group) else {name}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_dialect_can_be_found_under_its_name(name: str) -> None:
    assert dialects.find(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_without_loading_a_dialect_agrees_with_its_commands(name: str) -> None:
    row, all_of_them = dialects.TABLE[name], leaves(commands(name))
    assert {*row.starts} < all_of_them
    assert isinstance(commands(name), WithNameless) is (row.looks is not None)
    assert row.looks is None or {*row.starts, *row.looks} == all_of_them


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_command_has_flags_of_its_own(name: str) -> None:
    for command in commands(name).commands.values():
        flags = [flag for param in command.params for flag in param.opts]
        assert len(flags) == len({*flags})


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        ([], False),
        (["fix it"], True),
        (["fix", "--full-auto"], True),
        (["--full-auto", "fix it"], True),
        (["--full-auto", "status"], True),  # a prompt of one word
        (["resume", "--loop-id", "night"], True),
        (["status"], False),
        (["status", "--json"], False),
        (["list"], False),
        (["cancel", "--loop-id", "night"], False),
        (["install-helpers"], False),
        (["--help"], False),
        (["-h"], False),
        (["fix it", "--completion-promise", "-h"], True),  # a value, not a question
        (["--version"], False),
    ],
)
def test_it_is_known_which_words_start_a_loop(words: list[str], starts: bool) -> None:
    assert dialects.starts_a_loop("waylon-smithers", words) is starts


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        ([], False),
        (["start", ".", "-n", "x"], True),
        (["start"], True),
        (["--quiet", "start", "."], True),
        (["go", "on", "shift"], True),
        (["go"], False),
        (["status", "start"], False),
        (["fix it"], False),  # no command of it is without a name
        (["-h"], False),
    ],
)
def test_without_a_nameless_command_the_first_words_decide(words: list[str], starts: bool) -> None:
    assert dialects.starts_a_loop(made_up.NAME, words) is starts


@pytest.mark.parametrize("holds", [False, True])
def test_changed_tests_are_only_reported_where_a_document_says_what_ends_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bool
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (workspace := tmp_path / "shop").mkdir()
    start = Start(prompt="go", name="late", settings={"agent": ("demo",)}, holds_tests=holds)
    loop = begin.plan(DAY_BOOK, start, begin.gather(DAY_BOOK, start, workspace), workspace).loop
    assert loop.changed_tests is (ChangedTests.HOLD if holds else ChangedTests.REPORT)
