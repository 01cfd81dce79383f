"""Outside text, made safe to show, store and put into a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.text import headline, last_part, plain, shorten

PLAIN = [
    ("just words", "just words"),
    ("Grüße, 世界 🌙", "Grüße, 世界 🌙"),
    ("a\tb\nc", "a\tb\nc"),
    ("a\r\nb\rc", "a\nb\nc"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[38;5;12;1mred\x1b[m", "red"),
    ("\x1b[2K\x1b[1Ggone", "gone"),
    ("\x1b]0;a title\x07words", "words"),
    ("\x1b]52;c;aGVsbG8=\x1b\\words", "words"),  # the clipboard
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bPq#0\x1b\\picture", "picture"),
    ("\x1b(Bwords\x1b7\x1b8", "words"),
    ("a\x00b\x07c\x08d\x7fe\x9b31m", "abcde31m"),
    ("user\u202egnp.exe\u202c", "usergnp.exe"),  # right-to-left override
    ("\ufeffbegin", "begin"),
    (b"caf\xc3\xa9 \xff", "café �"),
    (b"\xed\xa0\x80", "���"),  # half a surrogate pair is no text
    ("\x1b", ""),
    # a sequence that is never ended must not swallow what comes after its line
    ("\x1b]0;no end\nFAILED test_rounding\n", "\nFAILED test_rounding\n"),
]


@pytest.mark.parametrize(("raw", "wanted"), PLAIN)
def test_what_controls_a_terminal_is_taken_out_and_what_people_read_stays(raw: str | bytes, wanted: str) -> None:
    assert plain(raw) == wanted


@given(st.text() | st.binary())
def test_plain_text_has_nothing_left_to_take_out(raw: str | bytes) -> None:
    text = plain(raw)
    assert plain(text) == text
    assert not any(char < " " and char not in "\t\n" for char in text)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_plain_text_can_be_written_down(raw: str) -> None:
    """A file name that is no UTF-8 arrives with lone surrogates, and no ledger can hold those."""
    plain(raw).encode()


def test_a_surrogate_is_shown_as_what_it_is() -> None:
    assert plain("caf\udce9") in {"caf�", "caf?", "caf"}


@given(st.text(), st.integers(1, 50))
def test_the_last_part_is_no_longer_than_asked_for(text: str, size: int) -> None:
    part = last_part(text, size)
    assert len(part) <= size + len("…\n")
    assert text.endswith(part.removeprefix("…\n"))


def test_the_last_part_begins_with_a_line_where_it_can() -> None:
    assert last_part("one\ntwo\nthree", 8) == "…\nthree"
    assert last_part("one\ntwo\nthree", 3) == "…\nree"  # a line too long to be kept whole
    assert last_part("one\ntwo", 7) == "one\ntwo"
    assert last_part("one\ntwo\n", 5) == "…\ntwo\n"


HEADLINES = [
    ("", ""),
    ("  \n----\n====\n", ""),
    ("ok\nall good\n", "all good"),
    # the last line that names a failure, not merely the last line
    ("AssertionError: 3 != 4\n\n----\nRan 9 tests in 0.1s\n\nFAILED (failures=1)\n", "AssertionError: 3 != 4"),
    ("Traceback (most recent call last):\n  x\nKeyError: 'price'\n", "KeyError: 'price'"),
    ("sh: 1: pytset: not found\n", "sh: 1: pytset: not found"),
    ("x" * 200, "x" * 119 + "…"),
]


@pytest.mark.parametrize(("output", "line"), HEADLINES)
def test_the_headline_is_the_line_that_tells_most(output: str, line: str) -> None:
    assert headline(output) == line


@given(st.text(), st.integers(1, 200))
def test_a_short_text_is_one_line_of_at_most_the_size(text: str, size: int) -> None:
    short = shorten(text, size)
    assert len(short) <= size
    assert short.splitlines() in ([], [short])


def test_a_text_that_fits_is_not_cut() -> None:
    assert shorten("a  b\n c", 5) == "a b c"
    assert shorten("abcdef", 5) == "abcd…"
