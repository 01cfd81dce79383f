"""W-023, W-052, R-014, R-015, X-04, part C: a corpus of replies and what each of them amounts to.

A row's verdict comes from the rule, never from the program; `why` says what the row is there for.
"""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from bydawn.core.loop import Match, Mode, Promise
from bydawn.core.promise import judge
from bydawn.core.values import Promised


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply, the promise it was asked for, and what it amounts to."""

    reply: str
    text: str = Promise().text
    mode: Mode = Mode.TAG
    match: Match = Match.END
    told: bool = False  # that it was only a mention, in the prompt before
    expected: Promised
    why: str


class Theme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the corpus."""

    reply: list[Row]


def corpus() -> dict[str, list[Row]]:
    files = sorted(Path(__file__).with_name("replies").glob("*.toml"))
    return {file.stem: msgspec.convert(tomllib.loads(file.read_text()), Theme).reply for file in files}


ROWS = [(f"{theme}-{number}", row) for theme, rows in corpus().items() for number, row in enumerate(rows, start=1)]


def searches(pattern: str, text: str) -> int | None:
    ends = [found.end() for found in re.finditer(pattern, text, re.MULTILINE) if found[0].strip()]
    return ends[-1] if ends else None


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[name for name, _ in ROWS])
def test_a_reply_amounts_to_what_its_row_says(row: Row) -> None:
    promise = Promise(text=row.text, mode=row.mode, match=row.match)
    assert judge(row.reply, promise, searches, told=row.told) is row.expected, row.why


def test_own_line_believes_whatever_end_believes() -> None:
    """X-04: each match is at least as wide as the one before."""
    for name, row in ROWS:
        if row.match is Match.END and row.expected is Promised.GIVEN:
            own_line = Promise(text=row.text, mode=row.mode, match=Match.OWN_LINE)
            anywhere = Promise(text=row.text, mode=row.mode, match=Match.ANYWHERE)
            assert judge(row.reply, own_line, searches, told=row.told) is Promised.GIVEN, name
            assert judge(row.reply, anywhere, searches, told=row.told) is Promised.GIVEN, name


def test_the_corpus_is_large_and_says_why() -> None:
    rows = [row for _, row in ROWS]
    assert len(rows) >= 150
    assert sum(row.expected is Promised.GIVEN and row.match is Match.END for row in rows) >= 40
    assert all(row.why.strip() for row in rows)


def test_no_language_gets_past_the_form() -> None:
    """Words of doubt are English; a refusal in any other language is told by where its token stands."""
    rows = corpus()["refusals"]
    refused = [row for row in rows if row.expected is Promised.MENTIONED]
    languages = {re.split("[:,]", row.why)[0] for row in refused}
    assert (len(refused) >= 60, len(languages) >= 19) == (True, True)
    honest = {re.split("[:,]", row.why)[0] for row in rows if row.expected is Promised.GIVEN}
    assert honest == languages, "and in each of them the promise can be given"


def test_no_row_stands_twice() -> None:
    asked = [(row.reply, row.text, row.mode, row.match) for _, row in ROWS]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("wrong", [{"because": "x"}, {"why": None}, {"match": "somewhere"}, {"expected": "yes"}])
def test_a_row_that_is_not_understood_is_refused(wrong: dict[str, object]) -> None:
    row = {"reply": "x", "expected": "absent", "why": "x"} | wrong
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"reply": [{key: value for key, value in row.items() if value is not None}]}, Theme)
