"""R-014, R-017, X-15, part C: real and strange checklists, read as GitHub's task lists are specified (GFM 5.3)."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from bydawn.core import markdown
from bydawn.core.tasks import Task, read
from core.facts_made import reading_of

FOLDER = Path(__file__).with_name("checklists")
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
FILES = {path.stem: path.read_bytes().decode() for path in FOLDER.glob("*.md")}
TEXTS = FILES | {name: entry["text"] for name, entry in EXPECTED.items() if "text" in entry}


def shown(task: Task) -> str:
    return f"{task.line} {'x' if task.done else 'o'} {task.text}"


def test_every_checklist_has_an_expectation_with_a_reason_and_every_expectation_a_checklist() -> None:
    assert TEXTS.keys() == EXPECTED.keys()
    assert not [name for name, entry in EXPECTED.items() if "text" in entry and name in FILES]
    assert not [name for name, entry in EXPECTED.items() if not entry["why"]]
    assert len(TEXTS) >= 90


@pytest.mark.parametrize("name", EXPECTED)
def test_a_checklist_is_read_as_github_reads_it(name: str) -> None:
    tasks = read(TEXTS[name])
    assert [shown(task) for task in tasks.items] == EXPECTED[name]["boxes"], EXPECTED[name]["why"]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_rules_inside_a_line_change_no_block_and_are_left_out(name: str) -> None:
    blocks, everything = (markdown._parser.__wrapped__(underlines=True) for _ in range(2))
    everything.enable(["inline", "text_join"])
    ours, all_ = (
        [(each.type, each.content, each.map) for each in md.parse(TEXTS[name])] for md in (blocks, everything)
    )
    assert ours == all_
    assert not any(token.children for token in blocks.parse(TEXTS[name]))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_warning_names_each_line_that_people_could_take_for_a_task_and_no_other(name: str) -> None:
    lines = [int(warning.removeprefix("line ").partition(":")[0]) for warning in read(TEXTS[name]).warnings]
    assert lines == EXPECTED[name].get("warned", [])


@pytest.mark.parametrize("name", EXPECTED)
def test_the_same_file_with_other_line_ends_holds_the_same_tasks(name: str) -> None:
    """Windows and old Macintoshes: only the line ends differ, so nothing else may."""
    text = TEXTS[name].replace("\r\n", "\n").replace("\r", "\n")
    assert read(text.replace("\n", "\r\n")) == read(text.replace("\n", "\r")) == read(text)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_that_is_read_again_has_lost_nothing(name: str) -> None:
    before = read(TEXTS[name])
    again = read(TEXTS[name], reading_of(before))
    assert again.items == before.items
    assert again.problem is None or not before.items
