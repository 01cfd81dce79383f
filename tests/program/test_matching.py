"""A person's pattern, searched in a child of its own."""

import pytest

from bydawn.core.promise import TooSlow
from bydawn.process.matching import search


@pytest.mark.parametrize(
    ("pattern", "text", "end"),
    [
        (r"DONE \d+", "DONE 1, DONE 22 and more", 15),  # the last match counts
        ("DONE", "not yet", None),
        ("^DONE$", "Fine.\nDONE\nBye.", 10),
        ("(?i)done", "DONE", 4),
        ("x*", "no match but the empty one", None),
        ("é+", "\0é\ud800", 2),  # signs that no argument of a program can have
        ("DONE", "x" * 64_000 + "DONE", 64_004),  # … and more than one can hold
    ],
)
def test_the_last_match_that_is_not_blank_is_found(pattern: str, text: str, end: int | None) -> None:
    assert search(pattern, text) == end


def test_a_pattern_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TooSlow, match=r"took more than 0\.2 seconds"):
        search("(a+)+$", "a" * 40 + "b", seconds=0.2)
