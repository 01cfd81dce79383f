"""R-014, R-016, R-017, W-052: what counts as an open task, and what must never be taken for "nothing left"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core import markdown
from bydawn.core.tasks import Tasks, missing_file, read, ticked
from bydawn.core.values import TaskReading
from core.facts_made import reading_of
from effort import MANY_PASSES, effort


def closed(before: Tasks, after: Tasks) -> tuple[str, ...]:
    """The texts of the tasks that were open and are done now."""
    done = {task.id for task in after.items if task.done}
    return tuple(task.text for task in before.items if not task.done and task.id in done)


def boxes(text: str) -> str:
    """The boxes of a file in one word: `o` is open, `x` is done."""
    return "".join("x" if task.done else "o" for task in read(text).items)


# ---------------------------------------------------------------- what is a task

FILES = [
    ("- [ ] a", "o"),
    ("- [x] a", "x"),
    ("- [X] a", "x"),
    ("* [ ] a\n* [x] b", "ox"),
    ("+ [ ] a", "o"),
    ("1. [ ] a\n2. [x] b", "ox"),
    ("2) [ ] a", "o"),
    ("123456789. [ ] a", "o"),
    ("1234567890. [ ] a", ""),  # ten digits are no list
    ("- [ ] a\r\n- [x] b\r\n", "ox"),
    ("- [ ] a\r- [x] b\r", "ox"),
    ("\ufeff- [ ] a", "o"),
    ("-   [ ] a", "o"),
    ("-\t[ ] a", "o"),
    ("- [ ]\ta", "o"),
    ("   - [ ] a", "o"),
    # nested, R-017
    ("- a\n  - [ ] b\n    - [x] c", "ox"),
    ("- [ ] a\n\t- [ ] b\n\t\t- [x] c", "oox"),
    ("1. [ ] a\n   - [ ] b", "oo"),
    ("- - [ ] a", "o"),
    ("- 1. [x] a", "x"),
    ("".join(f"{'  ' * depth}- [ ] {depth}\n" for depth in range(40)), "o" * 40),  # the parser's default stops at 10
    # among other things
    ("# Plan\n\nWords.\n- [ ] a\n\nMore words.\n\n* [x] b\n", "ox"),
    ("Words.\n1. [ ] a", "o"),
    ("- [ ] a\n\n- [ ] b\n\n\n- [x] c", "oox"),
    ("> - [ ] a\n> - [x] b", "ox"),
    ("> > 1. [ ] a", "o"),
    ("- > - [ ] a", "o"),
    ("- [ ] **a** `b` ~~c~~", "o"),
    ("- [ ] # a", "o"),
    ("- [ ] a\n  ---\n", "o"),  # an underline makes a heading of it, and no less of a task
    ("- [ ] a\n---\n- [x] b", "ox"),
    ("| a |\n|---|\n| [ ] b |\n\n- [ ] c", "o"),
    ("[a]: https://example.org\n2. [ ] b", "o"),
    ("| a |\n|---|\n2. [ ] b", "o"),
    ("Words <!-- a comment\n- [ ] a\n-->", "o"),  # an item ends the paragraph, so the comment never began
    # not tasks, part C
    ("```\n- [ ] a\n```", ""),
    ("~~~text\n- [ ] a\n~~~\n- [ ] b", "o"),
    ("````\n```\n- [ ] a\n```\n````\n- [x] b", "x"),
    ("- a\n\n  ```\n  - [ ] b\n  ```", ""),
    ("    - [ ] a", ""),
    ("\t- [ ] a", ""),
    ("-     [ ] a", ""),  # five spaces: code inside the item
    ("`- [ ] a`", ""),
    ("- `[ ] a`", ""),
    ("- `[ ]` a", ""),
    ("<!-- - [ ] a -->", ""),
    ("<!--\n- [ ] a\n\n- [ ] b\n-->\n- [x] c", "x"),
    ("- <!-- [ ] a -->", ""),
    ("[ ] a", ""),
    ("- \\[ ] a", ""),
    ("- a [ ] b", ""),
    ("- # [ ] a", ""),
    ("- a\n\n  [ ] b", ""),
    ("- [x](https://example.org) a", ""),
    ("- [x][1] a", ""),
    ("- [x]: https://example.org", ""),
    ("- [1] Knuth, TAOCP", ""),
    ("- [TODO] a", ""),
    ("- [UI] a", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), FILES)
def test_boxes_are_read_as_github_reads_them(text: str, expected: str) -> None:
    assert boxes(text) == expected


# ---------------------------------------------------------------- what is warned about

STRANGE_BOXES = [
    "- [-] a",
    "- [~] a",
    "- [] a",
    "- [\u00a0] a",
    "- [\t] a",
    "- [  ] a",
    "- [x ] a",
    "- [ x ] a",
    "- [>] a",
    "- [✓] a",
    "- [х] a",  # a Cyrillic letter
    "- [ ]a",  # no space behind the box
    "- [x]a",
    "- [ ]\u00a0a",
    "- [ ]",  # nothing to do
    "- [ ](urgent) a",  # a link with nothing to click
    "- [ ]: a",
    "- \u00a0[ ] a",
]
HIDDEN_BOXES = [
    "Words.\n2. [ ] a",  # only `1.` may follow a paragraph without an empty line
    "Words.\n    - [ ] a",
    "<details>\n- [ ] a\n</details>",
    "Words.\n-[ ] a",  # no space behind the bullet
    "\n```\n- [ ] never closed",  # the code is named, as it hides all that follows
    "\n<!--\n- [ ] never closed",
]


@pytest.mark.parametrize("text", STRANGE_BOXES)
def test_a_strange_box_is_neither_open_nor_done_and_warned_about(text: str) -> None:
    tasks = read(f"- [ ] fine\n{text}\n")
    assert [task.text for task in tasks.items] == ["fine"]
    assert [warning.partition(":")[0] for warning in tasks.warnings] == ["line 2"]


@pytest.mark.parametrize("text", HIDDEN_BOXES)
def test_a_box_that_markdown_does_not_see_is_warned_about(text: str) -> None:
    tasks = read(text)
    assert not tasks.items
    assert [warning.partition(":")[0] for warning in tasks.warnings] == ["line 2"]


@pytest.mark.parametrize("text", [text for text, _ in FILES])
def test_a_clear_file_raises_no_warning(text: str) -> None:
    assert read(text).warnings == ()


# ---------------------------------------------------------------- text, line, identity


def test_a_task_knows_its_text_and_its_line() -> None:
    text = "\ufeff# Plan\r\n\r\n- [x] one\r\n- [ ] two,\r\n  wrapped <!-- id: 7 -->\r\n\r\n  with a remark\r\n"
    assert [(task.line, task.text) for task in read(text).items] == [(3, "one"), (4, "two, wrapped")]


def ids(text: str) -> list[str]:
    return [task.id for task in read(text).items]


@pytest.mark.parametrize(
    "text",
    [
        "- [x] Fix the parser",
        "9) [ ] Fix the parser",
        "# moved\n\n> - [x] Fix the   parser",
        "- [x] Fix the\n  parser",
        "- [x] ~~Fix the parser~~",
        "- [x] **Fix** the _parser_. ✅",
        "- [x] fix the parser",
        "- [x] Fix the `parser` <!-- done in a1b2 -->",
    ],
)
def test_a_task_stays_itself_when_it_is_ticked_moved_or_marked_up(text: str) -> None:
    assert ids(text) == ids("- [ ] Fix the parser")


def test_a_letter_may_be_written_in_two_ways() -> None:
    assert ids("- [x] Pru\u0308fen") == ids("- [ ] Pr\u00fcfen")


def test_a_warning_shows_what_cannot_be_seen() -> None:
    assert read("- [\u00a0] a").warnings[0].startswith(r"line 1: `[\xa0]` is neither open nor done")


def test_other_texts_are_other_tasks() -> None:
    assert len(set(ids("- [ ] a\n- [ ] b\n- [ ] a b\n- [ ] ab\n- [ ] 🎉\n- [ ] 🚀"))) == 6


def test_equal_texts_are_two_tasks() -> None:
    first, second = ids("- [ ] Run the tests\n\n# Later\n\n- [ ] Run the tests")
    assert first != second
    assert ids("- [x] Run the tests\n- [ ] Run the tests") == [first, second]


def test_ids_are_short_and_lasting() -> None:
    assert ids("- [ ] Fix the parser") == ["b85b79f51d-1"]  # ledgers hold these: they must not change


# ---------------------------------------------------------------- the fact


def test_the_reading_counts_and_names_what_comes_next() -> None:
    tasks = read("- [x] one\n- [ ] two\n- [ ] three")
    two, three = tasks.items[1:]
    expected = TaskReading(open=2, done=1, next="two", open_ids=(two.id, three.id))
    assert reading_of(tasks) == expected


def test_when_all_is_ticked_nothing_comes_next() -> None:
    assert reading_of(read("- [x] one")) == TaskReading(open=0, done=1)


# ---------------------------------------------------------------- what must never pass for "done"

PLAN = "- [x] one\n- [ ] two\n- [ ] three\n"


@pytest.mark.parametrize("text", ["", "\ufeff", "# Plan\n", "```\n- [ ] a\n```", "- [-] a", "- [ ]"])
def test_a_file_without_boxes_is_a_problem_not_the_end(text: str) -> None:
    assert reading_of(read(text)) == TaskReading(open=0, done=0, problem="has no tasks")


def test_a_file_that_is_gone_is_a_problem() -> None:
    assert missing_file() == TaskReading(open=0, done=0, problem="is gone")


@pytest.mark.parametrize("plan", [PLAN, "- [x] one", "- [ ] one"])
def test_a_file_that_was_emptied_is_a_problem_even_when_nothing_was_open(plan: str) -> None:
    assert read("", reading_of(read(plan))).problem == "no longer has any tasks"


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("- [x] one\n- [ ] two", "1 open task"),
        ("- [x] one", "2 open tasks"),
        ("- [x] one\n- [x] two\n- [x] something else", "1 open task"),  # rewritten
        ("- [x] one\n- [x] two\n- [-] three", "1 open task"),
        ("- [x] one\n- [x] two\n```\n- [ ] three\n```", "1 open task"),  # hidden in code
        ("- [x] one\n- [x] two\n<!--\n- [ ] three\n-->", "1 open task"),
    ],
)
def test_open_tasks_that_vanish_are_a_problem(text: str, lost: str) -> None:
    before = reading_of(read(PLAN))
    assert read(text, before).problem == f"lost {lost}: vanished without being ticked"


@pytest.mark.parametrize(
    "text",
    [
        PLAN,
        "- [x] one\n- [x] two\n- [x] three",
        "- [ ] three\n- [x] two\n- [x] one",
        "- [ ] one\n- [ ] two\n- [ ] three",  # unticked: more to do, nothing lost
        "- [ ] two\n- [ ] three",  # a done one may be cleared away
        "- [x] one\n- [ ] two\n- [ ] three\n- [ ] four",
        "- [x] one\n- [x] two (in a1b2c3)\n- [ ] three",  # ticked with a note
        "- [x] one\n- [x] two\n  by hand\n- [x] three: see the log",
        "- [x] one\n- [ ] two (hard)\n- [ ] three",
    ],
)
def test_honest_changes_are_no_problem(text: str) -> None:
    assert read(text, reading_of(read(PLAN))).problem is None


def test_a_deleted_task_of_several_equal_ones_is_missed() -> None:
    before = reading_of(read("- [ ] test\n- [ ] test\n- [ ] test"))
    assert read("- [x] test\n- [ ] test", before).problem == "lost 1 open task: vanished without being ticked"


def test_equal_tasks_may_all_be_ticked_with_notes() -> None:
    before = read("- [ ] test\n- [ ] test\n- [ ] test")
    after = read("- [x] test (4 passed)\n- [x] test (5 passed)\n- [ ] test", reading_of(before))
    assert after.problem is None
    assert closed(before, after) == ("test", "test")


def test_a_task_that_was_done_before_does_not_stand_in_for_one_that_vanished() -> None:
    before = reading_of(read("- [x] Write docs for the API\n- [ ] Write docs\n- [ ] Test"))
    lost = "lost 1 open task: vanished without being ticked"
    assert read("- [x] Write docs for the API\n- [ ] Test", before).problem == lost
    assert read("- [x] Write docs for the API\n- [x] Test (4 passed)", before).problem == lost


@pytest.mark.parametrize("after", ["- [x] Write docs for the API", "- [x] Write docs for the API (all of it)"])
def test_a_task_is_taken_for_the_one_it_resembles_most(after: str) -> None:
    before = read("- [ ] Write docs\n- [ ] Write docs for the API")
    assert closed(before, read(after, reading_of(before))) == ("Write docs for the API",)


# ---------------------------------------------------------------- unticked


UNTICKED = [
    ("- [ ] one\n- [ ] two\n- [ ] three", 3),
    ("- [ ] three\n- [ ] two\n- [ ] one", 3),
    ("- [ ] one\n- [x] two\n- [ ] three", 2),
    ("- [ ] **One**\n- [x] two\n- [x] three", 1),
    ("- [ ] two\n- [ ] three", 2),  # done and cleared away: harmless, it was done
    ("- [x] one\n- [ ] two\n- [ ] three\n- [ ] four", 3),  # new, not reopened
]


@pytest.mark.parametrize(("text", "left"), UNTICKED)
def test_an_unticked_task_is_open_again_and_nothing_is_lost_by_it(text: str, left: int) -> None:
    """X-15, part C: it keeps the loop from ending because it is open, and for no other reason."""
    before = read(PLAN)
    after = read(text, reading_of(before))
    assert (reading_of(after).open, after.problem) == (left, None)
    assert len(set(reading_of(after).open_ids)) == left


def test_a_file_with_every_box_unticked_has_everything_to_do() -> None:
    before = read("- [x] one\n- [x] two\n- [x] two")
    after = read("- [ ] one\n- [ ] two\n- [ ] two", reading_of(before))
    assert (reading_of(after).open, reading_of(after).done, after.problem) == (3, 0, None)
    assert closed(before, after) == ()


def test_a_task_that_is_reopened_while_another_vanishes_is_counted_once_and_the_other_is_missed() -> None:
    before = reading_of(read(PLAN))
    after = read("- [ ] one\n- [ ] two", before)
    assert reading_of(after).open == 2
    assert after.problem == "lost 1 open task: vanished without being ticked"


def test_a_task_that_is_reopened_and_vanishes_later_is_missed() -> None:
    """Done and deleted at once is harmless; reopened, it is to be done again."""
    reading = reading_of(read("- [ ] one\n- [ ] two\n- [ ] three", reading_of(read(PLAN))))
    assert read("- [ ] two\n- [ ] three", reading).problem == "lost 1 open task: vanished without being ticked"


STORIES = "# 1\n- [x] Tests pass\n# 2\n- [ ] Tests pass\n# 3\n- [ ] Tests pass\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# 2\n- [ ] Tests pass\n# 3\n- [ ] Tests pass\n", None),  # the story that is done was cleared away
        ("# 3\n- [ ] Tests pass\n# 2\n- [ ] Tests pass\n# 1\n- [x] Tests pass\n", None),
        ("# 1\n- [ ] Tests pass\n# 2\n- [ ] Tests pass\n# 3\n- [ ] Tests pass\n", None),
        ("# 1\n- [x] Tests pass\n# 2\n- [x] Tests pass\n# 3\n- [x] Tests pass\n", None),
        ("# 1\n- [x] Tests pass\n# 2\n- [ ] Tests pass\n", "lost 1 open task: vanished without being ticked"),
        ("# 1\n- [x] Tests pass\n", "lost 2 open tasks: vanished without being ticked"),
        ("# 3\n- [ ] Tests pass\n", "lost 1 open task: vanished without being ticked"),
    ],
)
def test_equal_tasks_are_told_apart_by_their_number_not_by_their_place(text: str, problem: str | None) -> None:
    """Stories of a plan end alike, and are cleared away or moved when they are done."""
    assert read(text, reading_of(read(STORIES))).problem == problem


def test_moving_equal_tasks_closes_and_reopens_nothing() -> None:
    before = read("- [x] test\n- [ ] test")
    after = read("- [ ] test\n- [x] test", reading_of(before))
    assert closed(before, after) == ()
    assert reading_of(after).open == reading_of(before).open


def test_a_reading_from_before_equal_tasks_were_numbered_so_raises_no_false_alarm() -> None:
    text = "- [ ] test\n- [x] test\n- [ ] test"
    name = ids("- [ ] test")[0].partition("-")[0]
    assert read(text, TaskReading(open=2, done=1, open_ids=(f"{name}-1", f"{name}-3"))).problem is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=8), st.data())
def test_ticking_unticking_moving_and_clearing_away_never_lose_a_task(
    items: list[tuple[str, bool]], data: st.DataObject
) -> None:
    """R-016: what is open stays accounted for, whatever an honest person does to the file."""
    before = read(checklist(items))
    change = data.draw(st.sampled_from(["tick", "untick", "move", "clear"]))
    ways: dict[str, list[tuple[str, bool]]] = {
        "tick": [(text, True) for text, _ in items],
        "untick": [(text, False) for text, _ in items],
        "move": data.draw(st.permutations(items)),
        "clear": [(text, done) for text, done in items if not done],
    }
    after = read(checklist(ways[change]) or "- [x] other", reading_of(before))
    assert after.problem is None
    was_open = [text for text, done in items if not done]
    assert sorted(closed(before, after)) == (sorted(was_open) if change == "tick" else [])
    left = {"tick": 0, "untick": len(items)}.get(change, len(was_open))
    assert reading_of(after).open == left


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=2, max_size=8), st.data())
def test_deleting_an_open_task_is_always_noticed(items: list[tuple[str, bool]], data: st.DataObject) -> None:
    before = read(checklist(items))
    left = [index for index, (_, done) in enumerate(items) if not done]
    if not left:
        return
    gone = data.draw(st.sampled_from(left))
    after = read(checklist(items[:gone] + items[gone + 1 :]), reading_of(before))
    assert after.problem == "lost 1 open task: vanished without being ticked"


def checklist(items: list[tuple[str, bool]]) -> str:
    return "".join(f"- [{'x' if done else ' '}] {text}\n" for text, done in items)


@pytest.mark.parametrize("text", ["> " * 200 + "- [ ] a\n\n- [x] b", "- " * 200 + "[ ] a\n- [x] b"])
def test_a_file_too_deep_for_the_parser_is_a_problem(text: str) -> None:
    assert read(text).problem == "is nested too deeply to read"


# ---------------------------------------------------------------- closed


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (PLAN, ()),
        ("- [x] one\n- [x] two\n- [ ] three", ("two",)),
        ("- [x] three\n- [x] two\n- [x] one", ("two", "three")),
        ("- [x] one\n- [x] new", ()),  # vanished is not closed, and new was never open
        ("- [x] one\n- [x] two (in a1b2c3)\n- [ ] three", ("two",)),
        ("", ()),
    ],
)
def test_closed_names_the_tasks_that_were_open_and_are_done(after: str, expected: tuple[str, ...]) -> None:
    before = read(PLAN)
    assert closed(before, read(after, reading_of(before))) == expected


def test_nothing_is_closed_in_an_empty_file() -> None:
    assert closed(Tasks(), Tasks()) == ()


# ---------------------------------------------------------------- size


def test_thousands_of_tasks_are_read_and_recognised() -> None:
    before = read("".join(f"- [ ] task {number}\n" for number in range(5_000)))
    after = read("".join(f"- [x] task {number} (done)\n" for number in range(5_000)), reading_of(before))
    assert reading_of(before).open == 5_000
    assert len(closed(before, after)) == 5_000


def test_thousands_of_rewritten_tasks_are_missed_quickly() -> None:
    words = "word " * 40
    before = read("".join(f"- [ ] {number} {words}old\n" for number in range(4_000)))
    rewritten = "".join(f"- [x] {number} {words}new\n" for number in range(4_000))
    assert effort(lambda: read(rewritten, reading_of(before))) < MANY_PASSES
    assert read(rewritten, reading_of(before)).problem == "lost 4000 open tasks: vanished without being ticked"


def test_a_plan_of_ten_thousand_lines_is_read_and_a_longer_one_is_a_problem() -> None:
    """The parser's time is linear, but not small: a file that an agent blew up must not cost minutes."""
    words = "Some words about the plan, as people write them down.\n\n" * 9_998
    assert boxes(f"- [ ] first\n\n{words}- [x] last") == "ox"
    longer = read(f"- [ ] first\n\n{words}- [x] last\n- [x] one more")
    assert longer.problem == "is too long to read: more than 10,000 lines"


MEGABYTE = 1_000_000
HOSTILE = {
    "no newline": "a" * MEGABYTE,
    "one task": "- [ ] " + "a " * (MEGABYTE // 2),
    "comments that never end": "- [ ] " + "<!--" * (MEGABYTE // 4),
    "comments that end": "- [ ] " + "<!--" * (MEGABYTE // 8) + "-->" * (MEGABYTE // 8),
    "backticks of every length": "- [ ] " + " ".join("`" * size for size in range(1, 1_400)) + " `` a `` <!--" * 9_999,
    "boxes": "- [ ] a\n" * (MEGABYTE // 8),
    "lists in lists": ("- " * 30 + "[ ] a\n") * (MEGABYTE // 66),
    "quotes": ">" * MEGABYTE,
    "empty lines": "\n" * MEGABYTE,
    "carriage returns": "\r" * MEGABYTE,
    "blanks": " " * MEGABYTE,
    "tabs": "\t" * MEGABYTE,
    "NUL": "\0" * MEGABYTE,
    "brackets": "- " + "[" * MEGABYTE,
    "front matter": "---\n" + "a: b\n" * (MEGABYTE // 5),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_megabyte_is_read_quickly_and_never_raises(text: str) -> None:
    """Part C: an agent may write anything into the file. Ten times what it takes; quadratic would be thousands."""
    assert effort(lambda: read(text[: MEGABYTE // 2], reading_of(read(text)))) < MANY_PASSES


def test_the_markdown_parser_is_not_loaded_with_the_module() -> None:
    assert "MarkdownIt" not in vars(markdown)


# ---------------------------------------------------------------- a person ticks a box

# a list · the line of the box · the same list with that box the other way
TICKS = [
    ("- [ ] a\n- [ ] b\n", 2, "- [ ] a\n- [x] b\n"),
    ("- [X] a\r\n- [ ] b", 1, "- [ ] a\r\n- [ ] b"),
    ("\ufeff* [ ] a\r", 1, "\ufeff* [x] a\r"),
    ("> 1. [ ] a [ ] b [x]\n", 1, "> 1. [x] a [ ] b [x]\n"),
    ("-\n  [ ] a\n", 2, "-\n  [x] a\n"),
    ("- - [x] a\n", 1, "- - [ ] a\n"),
    ("- [ ] a\n  more\n  - [ ] b\n", 3, "- [ ] a\n  more\n  - [x] b\n"),
    ("---\nkey: 1\n---\n\n- [ ] a\n", 5, "---\nkey: 1\n---\n\n- [x] a\n"),
    ("- [ ] a\n- [ ] a\n", 2, "- [ ] a\n- [x] a\n"),
]


@pytest.mark.parametrize(("text", "line", "expected"), TICKS)
def test_a_tick_changes_one_box_and_nothing_else(text: str, line: int, expected: str) -> None:
    [box] = [task for task in read(text).items if task.line == line]
    assert ticked(text, line, done=not box.done) == expected
    assert ticked(text, line, done=box.done) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("```\n- [ ] a\n```\n", 2),
        ("    - [ ] a\n", 1),
        ("<!-- - [ ] a -->\n", 1),
        ("- [~] a\n", 1),
        ("- [x](url) a\n", 1),
        ("[ ] a\n", 1),
        ("- [ ] a\n  more\n", 2),
        ("- [ ] a\n", 0),
        ("- [ ] a\n", 3),
        ("", 1),
    ],
)
def test_what_is_not_a_box_cannot_be_ticked(text: str, line: int) -> None:
    assert ticked(text, line, done=True) is None


@given(st.lists(st.sampled_from([row for text, *_ in FILES for row in text.split("\n")]), max_size=8).map("\n".join))
def test_a_tick_changes_one_character_of_any_list(text: str) -> None:
    for box in read(text).items:
        new = ticked(text, box.line, done=not box.done)
        if new is not None:
            assert sum(one != other for one, other in zip(text, new, strict=True)) == 1
            assert [task.line for task in read(new).items if task.done] == [
                task.line for task in read(text).items if task.done is not (task.line == box.line)
            ]
