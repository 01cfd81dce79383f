"""A person and an agent change one text at the same time: nothing of either may be lost."""

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.merging import Kind, lines_of, merge, merged, with_endings_of
from effort import MANY_PASSES, effort

# Few different lines, so that they repeat, vanish and change places.
LINES = st.sampled_from(["", "- [ ] one", "- [x] one", "- [ ] two", "- [X] two", "text", "* [ ] one", "more"])
TEXTS = st.lists(LINES, max_size=12).map("\n".join)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])
ANY = st.text(st.sampled_from("ab\r\n\u2028"), max_size=20)

PLAN = "# Plan\n\n- [ ] Document the API\n- [ ] Load test\n\nHARD STOP\n"


def changes(base: str | None, yours: str, theirs: str) -> list[tuple[str, str, str]]:
    """Who changed what, in a few words."""
    parts = [part for part in merge(base, yours, theirs) if part.kind is not Kind.SAME]
    return [(part.kind.value, "\n".join(part.yours), "\n".join(part.theirs)) for part in parts]


def both(base: str | None, yours: str, theirs: str) -> str:
    return merged(merge(base, yours, theirs))


# -- for every three texts ---------------------------------------------------------------------------------------------


@given(TEXTS, TEXTS, TEXTS)
def test_every_line_that_either_side_added_is_there(base: str, yours: str, theirs: str) -> None:
    now, before = Counter(lines_of(both(base, yours, theirs))), Counter(lines_of(base))
    for side in (yours, theirs):
        assert Counter(lines_of(side)) - before <= now


@given(TEXTS, TEXTS)
def test_without_a_common_beginning_every_line_of_both_is_there(yours: str, theirs: str) -> None:
    now = Counter(lines_of(both(None, yours, theirs)))
    assert Counter(lines_of(yours)) <= now
    assert Counter(lines_of(theirs)) <= now


@given(TEXTS, TEXTS)
def test_if_only_one_side_changed_it_that_side_is_the_result(base: str, new: str) -> None:
    assert both(base, new, base) == new
    assert both(base, base, new) == new
    assert both(base, new, new) == new
    assert not [part for part in merge(base, new, base) if part.kind not in (Kind.SAME, Kind.YOURS)]
    assert not [part for part in merge(base, base, new) if part.kind not in (Kind.SAME, Kind.THEIRS)]


@given(st.none() | TEXTS, TEXTS, TEXTS)
def test_the_parts_put_together_are_both_texts(base: str | None, yours: str, theirs: str) -> None:
    parts = merge(base, yours, theirs)
    assert "\n".join(line for part in parts for line in part.yours) == yours
    assert "\n".join(line for part in parts for line in part.theirs) == theirs
    assert all(part.yours == part.theirs for part in parts if part.kind is Kind.SAME)


@given(st.none() | TEXTS, TEXTS, TEXTS)
def test_what_no_one_touched_is_in_no_change(base: str | None, yours: str, theirs: str) -> None:
    """In a clash nothing is there twice that both have at its beginning or its end."""
    for part in merge(base, yours, theirs):
        if part.kind is Kind.CLASH and part.yours and part.theirs:
            assert part.yours[0] != part.theirs[0]
            assert part.yours[-1] != part.theirs[-1]


# -- what people and agents do -----------------------------------------------------------------------------------------


def test_a_tick_beside_an_edit_fits_by_itself() -> None:
    yours = PLAN.replace("Load test", "Load test, p99 below 80 ms")
    theirs = PLAN.replace("[ ] Doc", "[x] Doc").replace("Load test\n", "Load test\n- [ ] Fix the flaky test\n")
    assert changes(PLAN, yours, theirs) == [
        ("theirs", "- [ ] Document the API", "- [x] Document the API"),
        ("yours", "- [ ] Load test, p99 below 80 ms", "- [ ] Load test"),
        ("theirs", "", "- [ ] Fix the flaky test"),
    ]
    assert both(PLAN, yours, theirs) == (
        "# Plan\n\n- [x] Document the API\n- [ ] Load test, p99 below 80 ms\n- [ ] Fix the flaky test\n\nHARD STOP\n"
    )


def test_a_task_added_below_one_that_is_ticked_meanwhile_fits_by_itself() -> None:
    yours, theirs = "- [ ] a\n- [ ] b\n- [ ] new\n", "- [x] a\n- [x] b\n"
    assert both("- [ ] a\n- [ ] b\n", yours, theirs) == "- [x] a\n- [x] b\n- [ ] new\n"


def test_where_both_changed_one_line_both_lines_stay_theirs_first() -> None:
    assert changes("a\nb\nc\n", "a\nmine\nc\n", "a\nother\nc\n") == [("clash", "mine", "other")]
    assert both("a\nb\nc\n", "a\nmine\nc\n", "a\nother\nc\n") == "a\nother\nmine\nc\n"


def test_what_one_side_removed_and_the_other_changed_stays() -> None:
    assert both("a\nb\nc\n", "a\nc\n", "a\nB\nc\n") == "a\nB\nc\n"
    assert both("a\nb\nc\n", "a\nB\nc\n", "a\nc\n") == "a\nB\nc\n"


def test_what_both_added_is_there_once() -> None:
    assert both("a\n", "a\nnew\nmine\n", "a\nnew\nother\n") == "a\nnew\nother\nmine\n"


def test_two_things_added_in_one_place_are_a_choice() -> None:
    assert changes("a\nz\n", "a\nmine\nz\n", "a\nother\nz\n") == [("clash", "mine", "other")]


def test_a_line_without_an_end_does_not_run_into_the_next() -> None:
    assert both("a", "a\nmine", "a\nother") == "a\nother\nmine"


def test_without_a_common_beginning_every_difference_is_a_choice() -> None:
    assert changes(None, "a\nmine\nc\n", "a\nc\nother\n") == [("clash", "mine", ""), ("clash", "", "other")]


def test_a_file_of_equal_lines_takes_no_longer_than_another() -> None:
    """An agent can write anything into a file; comparing it must not keep a server busy."""
    base, yours, theirs = "\n" * 400_000, "mine\n" * 300_000, "other\n\n" * 200_000
    for texts in ((base, yours, theirs), (None, yours, theirs), (base[:4000], yours[:20_000], theirs[:20_000])):
        assert effort(partial(merge, *texts)) < MANY_PASSES


# -- line endings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("original", "text", "expected"),
    [
        ("a\r\nb\r\n", "a\nnew\nb\n", "a\r\nnew\r\nb\r\n"),
        ("a\nb\n", "a\r\nnew\r\nb\r\n", "a\nnew\nb\n"),
        ("a\rb\r", "a\r\nb\r\nc", "a\rb\rc"),
        ("a\nb", "a\r\nb", "a\nb"),  # no newline at its end before, none now
        ("a\nb", "a\r\nb\r\n", "a\nb\n"),  # unless the person added one
        ("", "a\r\nb\r\n", "a\nb\n"),
        ("one line", "a\r\nb", "a\nb"),
        ("a\r\nb\nc\nd", "a\nb\nnew\nc\nd", "a\r\nb\nnew\nc\nd"),  # one that has both keeps both
        ("a\r\nb\r\nc\n", "x\na\nb\nc\ny\n", "x\r\na\r\nb\r\nc\ny\r\n"),
    ],
)
def test_a_text_from_a_form_gets_the_line_endings_of_the_file(original: str, text: str, expected: str) -> None:
    assert with_endings_of(original, text) == expected


@given(ANY, ENDINGS)
def test_a_text_that_a_form_sends_back_unchanged_is_the_file_again(text: str, ending: str) -> None:
    assert with_endings_of(text, ending.join(lines_of(text))) == text


@given(ANY, ANY)
def test_other_line_endings_are_no_other_lines(original: str, text: str) -> None:
    assert lines_of(with_endings_of(original, text)) == lines_of(text)
