"""Where a new task goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core import tasks
from bydawn.core.new_task import file_name, is_one_line, with_box

# a list · the same with one more box
BOXES = [
    ("- [ ] a\n", "- [ ] a\n- [ ] new\n"),
    ("- [ ] a", "- [ ] a\n- [ ] new"),  # no newline at its end before, none now
    ("- [ ] a\r\n- [x] b\r\n\r\nend\r\n", "- [ ] a\r\n- [x] b\r\n- [ ] new\r\n\r\nend\r\n"),
    ("- [ ] a\r\n- [x] b", "- [ ] a\r\n- [x] b\r\n- [ ] new"),
    ("- [ ] a\r- [ ] b\r", "- [ ] a\r- [ ] b\r- [ ] new\r"),
    ("\ufeff- [ ] a\n", "\ufeff- [ ] a\n- [ ] new\n"),
    ("* [ ] a\n\n# Later\n\ntext\n", "* [ ] a\n* [ ] new\n\n# Later\n\ntext\n"),
    ("9. [ ] a\n10. [ ] b\n", "9. [ ] a\n10. [ ] b\n11. [ ] new\n"),
    ("1) [ ] a\n", "1) [ ] a\n2) [ ] new\n"),
    # below all that belongs to the last one
    (
        "- [ ] a\n  more\n\n  - [ ] b\n    - [x] c\n\nend\n",
        "- [ ] a\n  more\n\n  - [ ] b\n    - [x] c\n- [ ] new\n\nend\n",
    ),
    ("- [ ] a\ngoes on\n\nend\n", "- [ ] a\ngoes on\n- [ ] new\n\nend\n"),
    ("- [ ] a\n\n  ```\n  code\n  ```\n", "- [ ] a\n\n  ```\n  code\n  ```\n- [ ] new\n"),
    # at the level of the others
    ("- Group\n  - [ ] a\n  - [ ] b\n- Other\n", "- Group\n  - [ ] a\n  - [ ] b\n  - [ ] new\n- Other\n"),
    ("> - [ ] a\n\nend\n", "> - [ ] a\n> - [ ] new\n\nend\n"),
    # what hides all that follows it, hides nothing of this
    ("- [ ] a\n```\nnever closed\n", "- [ ] a\n- [ ] new\n```\nnever closed\n"),
    ("- [ ] a\n<!-- never closed\n", "- [ ] a\n- [ ] new\n<!-- never closed\n"),
    ("- - [ ] a\n", "- - [ ] a\n- [ ] new\n"),
]


@pytest.mark.parametrize(("before", "after"), BOXES)
def test_a_box_goes_behind_the_last_one_and_nothing_else_changes(before: str, after: str) -> None:
    assert with_box(before, "new") == after


def test_what_markdown_would_take_for_no_task_finds_no_place() -> None:
    assert with_box("- [ ] a\n", "   ") is None


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=20)
LINES = st.sampled_from(
    ["- [ ] a", "- [x] b", "  - [ ] c", "text", "", "```", "> - [ ] q", "1. [ ] n", "---", "\t- [ ] t"]
)


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), WORDS)
def test_whatever_the_list_no_other_task_is_touched(lines: list[str], newline: str, words: str) -> None:
    text = newline.join(lines)
    new = with_box(text, words)
    if new is None:
        return
    before, after = ([(task.text, task.done) for task in tasks.read(each).items] for each in (text, new))
    assert len(after) == len(before) + 1
    assert [task for task in after if not task[1]]
    assert len(new.replace("\r\n", "\n").split("\n")) == len(text.replace("\r\n", "\n").split("\n")) + 1


# text · may it be a task?
LINE = [
    ("write the tests", True),
    ("Größe ändern 👩‍💻 日本語", True),
    ("", False),
    ("  ", False),
    ("two\nlines", False),
    ("two\u2028lines", False),
    ("a\tb", False),
    ("\x1b[31mred", False),
    ("bell\x07", False),
    ("turned \u202e round", False),
]


@pytest.mark.parametrize(("words", "fits"), LINE)
def test_a_task_is_one_line_that_can_be_seen(words: str, fits: bool) -> None:
    assert is_one_line(words) is fits


# words · names that are there · the new one
NAMES: list[tuple[str, list[str], str]] = [
    ("Write it", [], "001-write-it.md"),
    ("Write it", ["001-a.md", "009-b.md"], "010-write-it.md"),
    ("Write it", ["1-a.md", "9-b.md"], "10-write-it.md"),
    ("Write it", ["setup.md"], "001-write-it.md"),
    ("../../etc/passwd", ["01-a.md"], "02-etc-passwd.md"),
    ("日本語", ["01-a.md"], "02-日本語.md"),
    ("!!!", ["01-a.md"], "02-task.md"),
    ("x" * 300, ["01-a.md"], f"02-{'x' * 50}.md"),
]


@pytest.mark.parametrize(("words", "names", "name"), NAMES)
def test_a_new_file_has_the_next_number_and_a_safe_name(words: str, names: list[str], name: str) -> None:
    assert file_name(words, names) == name
