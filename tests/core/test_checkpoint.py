"""X-22, W-058, W-083: a HARD STOP holds the loop when it is reached, once, and only a human lifts it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.checkpoint import Mark, marks
from effort import MANY_PASSES, effort

STOP = "HARD STOP"
PLAN = """# Phase 1
- [x] model
- [ ] views

## HARD STOP: look at the design

# Phase 2
- [ ] styles

## HARD STOP: release

- [ ] publish
"""


def found(text: str, token: str = STOP) -> list[tuple[int, str]]:
    return [(mark.line, mark.text) for mark in marks(text, token)]


def due(text: str, approved: set[str]) -> Mark | None:
    """The first mark that is reached and that nobody has approved; a ticked box is no approval."""
    return next((mark for mark in marks(text, STOP) if mark.reached and mark.id not in approved), None)


def due_line(text: str, approved: set[str] | None = None) -> int | None:
    mark = due(text, approved or set())
    return mark.line if mark else None


def ids(text: str, token: str = STOP) -> list[str]:
    return [mark.id for mark in marks(text, token)]


# ---------------------------------------------------------------- what is a mark

MARKS = [
    ("HARD STOP", [(1, "HARD STOP")]),
    ("# HARD STOP", [(1, "HARD STOP")]),
    ("Plan\n\n### HARD STOP: ask Ann ###", [(3, "HARD STOP: ask Ann")]),
    ("- HARD STOP", [(1, "HARD STOP")]),
    ("3) HARD STOP here", [(1, "HARD STOP here")]),
    ("- [ ] HARD STOP: look", [(1, "HARD STOP: look")]),
    ("- [x] HARD STOP: look", [(1, "HARD STOP: look")]),
    ("- a\n  - b\n    - HARD STOP", [(3, "HARD STOP")]),
    ("Words, then HARD STOP.", [(1, "Words, then HARD STOP.")]),
    ("One\ntwo HARD STOP\nthree", [(2, "two HARD STOP")]),  # a line, not the whole paragraph
    ("- [ ] one\n  HARD STOP", [(2, "HARD STOP")]),
    ("<!-- HARD STOP -->", [(1, "HARD STOP")]),
    ("<!--\nfor Bob:\nHARD STOP\n-->", [(3, "HARD STOP")]),
    ("- [ ] a <!-- HARD STOP -->", [(1, "a HARD STOP")]),
    ("> HARD STOP", [(1, "HARD STOP")]),
    ("<div>HARD STOP</div>", [(1, "<div>HARD STOP</div>")]),  # rather one stop too many
    ("| a |\n|---|\n| HARD STOP |", [(3, "HARD STOP")]),
    ("**HARD STOP**", [(1, "**HARD STOP**")]),
    ("__HARD STOP__ and _HARD STOP_", [(1, "__HARD STOP__ and _HARD STOP_")]),  # one line is one mark
    ("--- HARD STOP ---", [(1, "--- HARD STOP ---")]),
    ("HARD  STOP", [(1, "HARD STOP")]),
    ("a `b` HARD STOP", [(1, "a `b` HARD STOP")]),
    ("\ufeffHARD STOP\r\n\r\n- HARD STOP\r\n", [(1, "HARD STOP"), (3, "HARD STOP")]),
    ("---\na: b\n---\nHARD STOP", [(4, "HARD STOP")]),
]
NO_MARKS = [
    "",
    "```\nHARD STOP\n```",
    "~~~\nHARD STOP",
    "- a\n\n  ```\n  HARD STOP\n  ```",
    "    HARD STOP",
    "`HARD STOP`",
    "Write `HARD STOP` into the file.",
    "``a HARD STOP b``",
    "a `code\nHARD STOP\nmore` b",  # inline code goes on over lines
    "HARD `x` STOP",
    "hard stop",
    "Hard Stop",
    "HARD STOPPED",
    "DIEHARD STOP",
    "HARD_STOP",
    "HARD-STOP",
    "HARD\nSTOP",
    "<pre>\nHARD STOP\n</pre>",
    "---\nnote: HARD STOP\n---\n- [ ] a",
]


@pytest.mark.parametrize(("text", "expected"), MARKS)
def test_a_mark_is_a_line_with_the_token_wherever_people_write_it(text: str, expected: list[tuple[int, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize("text", NO_MARKS)
def test_code_other_words_and_front_matter_are_no_marks(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("token", "text", "lines"),
    [
        ("STOP", "HARD STOP\n\nNONSTOP\n\nSTOP", [1, 5]),
        ("[STOP]", "- [STOP] look", [1]),
        ("🛑", "🛑Look\n\nno 🛑", [1, 3]),
        ("a.b", "axb\n\na.b", [3]),  # not a pattern
        (" HARD   STOP ", "HARD STOP", [1]),
        ("", "HARD STOP", []),
        ("  ", "HARD STOP", []),
    ],
)
def test_the_token_is_taken_literally(token: str, text: str, lines: list[int]) -> None:
    assert [line for line, _ in found(text, token)] == lines


# ---------------------------------------------------------------- when it is reached


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PLAN, None),  # a literal scan would fire in the first round
        (PLAN.replace("[ ] views", "[x] views"), 5),
        (PLAN.replace("[ ]", "[x]"), 5),
        ("# HARD STOP\n- [ ] a", 1),  # above every task: at once
        ("- [ ] a\n- [x] b\n\nHARD STOP", None),
        ("- [x] a\n  - [ ] b\n\nHARD STOP", None),  # nested ones count
        ("- [-] a\n\nHARD STOP", 3),  # neither open nor done
        ("```\n- [ ] a\n```\nHARD STOP", 4),
        ("HARD STOP", 1),
        ("- [x] a\n- [ ] HARD STOP\n- [ ] b", 2),
        ("- [x] a\n- [x] HARD STOP\n- [ ] b", 2),  # ticked by an agent: no approval
        ("- [ ] a\n- [x] HARD STOP\n- [ ] b", None),
        ("- [ ] HARD STOP\n  - [ ] a", 1),
        # Right below a box, without an empty line, Markdown makes it a part of the item: it is still below that box.
        ("- [ ] a\nHARD STOP\n- [ ] b", None),
        ("- [x] a\nHARD STOP\n- [ ] b", 2),
        ("- [ ] a,\n  and then HARD STOP\n- [ ] b", None),
        ("- [x] a,\n  and then HARD STOP\n- [ ] b", 2),
    ],
)
def test_a_mark_is_reached_when_nothing_is_open_above_it(text: str, line: int | None) -> None:
    assert due_line(text) == line


def test_every_mark_says_whether_it_is_reached() -> None:
    text = PLAN.replace("[ ] views", "[x] views")
    first, second = marks(text, STOP)
    assert first == Mark(id=first.id, text="HARD STOP: look at the design", line=5, reached=True)
    assert second == Mark(id=second.id, text="HARD STOP: release", line=10, reached=False)


def test_an_open_mark_above_does_not_hide_the_next_one() -> None:
    """Who approves a mark need not tick it; the next must still hold."""
    text = "- [x] a\n- [ ] HARD STOP: one\n- [x] b\n- [ ] HARD STOP: two\n- [ ] c"
    assert due_line(text) == 2
    assert due_line(text, {ids(text)[0]}) == 4


# ---------------------------------------------------------------- approval


def test_an_approved_mark_holds_no_longer_and_the_next_one_does() -> None:
    first, second = ids(PLAN)
    text = PLAN.replace("[ ] views", "[x] views")
    assert due_line(text, {first}) is None
    assert due_line(text.replace("[ ] styles", "[x] styles"), {first}) == 10
    assert due_line(text.replace("[ ] styles", "[x] styles"), {first, second}) is None
    assert due_line(text, {second}) == 5  # approving one approves no other


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("- [ ] views", "- [x] views\n- [x] more\n- [x] and more"),
        lambda text: "# New title\n\nWords.\n\n" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("## HARD STOP: look", "- [ ] HARD STOP:  look"),
        lambda text: text.replace("## HARD STOP: look at the design", "- [x] **HARD STOP**: look at the design"),
        lambda text: text.replace("# Phase 2", "# Phase two"),
    ],
)
def test_an_approval_outlives_edits_elsewhere(edit: object) -> None:
    assert callable(edit)
    assert ids(edit(PLAN))[0] == ids(PLAN)[0]


def test_another_text_is_another_mark() -> None:
    assert ids("HARD STOP: one") != ids("HARD STOP: two")
    assert ids("HARD STOP: one") != ids("HARD STOP: one", "STOP")


def test_equal_marks_are_approved_one_by_one() -> None:
    text = "- [x] a\n\nHARD STOP\n\n- [x] b\n\nHARD STOP\n\n- [ ] c"
    first, second = ids(text)
    assert first != second
    assert (due_line(text), due_line(text, {first}), due_line(text, {first, second})) == (3, 7, None)


@given(st.lists(st.sampled_from(["- [ ] a", "- [x] a", "HARD STOP", "- [ ] HARD STOP", "", "# words"]), max_size=12))
def test_a_mark_is_due_exactly_until_it_is_approved(lines: list[str]) -> None:
    """X-22: however often one asks, every reached mark is asked about once, in order."""
    text = "\n\n".join(lines)
    approved: set[str] = set()
    asked = []
    while mark := due(text, approved):
        asked.append(mark)
        approved.add(mark.id)
    assert asked == [mark for mark in marks(text, STOP) if mark.reached]
    above = lines[: lines.index("- [ ] a")] if "- [ ] a" in lines else lines
    assert len(asked) == sum(STOP in line for line in above)


# ---------------------------------------------------------------- hostile texts


@pytest.mark.parametrize(
    "text",
    [
        "HARD STOP " * 100_000,
        "HARD STOP\n" * 100_000,
        "HARD STOP " + "-" * 1_000_000,
        "HARD STOP " + "_" * 1_000_000,
        "`" * 500_000 + " HARD STOP " + "`" * 499_999,
        "> " * 500_000 + "HARD STOP",
        "<!--" * 250_000 + "HARD STOP",
        "HARD STOP\0",
    ],
)
def test_a_hostile_file_is_read_quickly_and_never_raises(text: str) -> None:
    assert effort(lambda: due(text, set())) < MANY_PASSES


def test_a_mark_without_end_is_shown_in_part() -> None:
    assert len(marks("HARD STOP " * 10_000, STOP)[0].text) == 200
