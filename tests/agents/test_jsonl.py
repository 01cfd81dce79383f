"""Lines of JSON from any program, read by a person's own mapping."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.agents.jsonl import JsonReader
from bydawn.core.agent import Activity, Ended, Message
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.values import Usage

FIELDS = ("text=a.0.b", "session=id", "tokens_in=u.in", "tokens_cached=u.c", "tokens_out=u.out", "cost_usd=u.usd")


def ended(*lines: bytes, code: int = 0, fields: tuple[str, ...] = FIELDS) -> Ended:
    reader = JsonReader(fields)
    for line in lines:
        list(reader.read(line))
    return reader.end(Exit(code=code), "boom")


def test_the_last_text_is_the_reply() -> None:
    assert ended(b'{"a":[{"b":"one"}]}', b'{"a":[{"b":"two"}]}', b'{"a":[{"b":"  "}]}').reply == "two"


@pytest.mark.parametrize(
    "line",
    [b"", b"loading", b"[", b"[]", b"null", b"7", b'"a"', b'{"a":"b"}', b'{"a":[]}', b'{"a":[{"b":7}]}', b"\xff\xfe",
     b'{"a":{"0":{"c":"no"}}}', b'{"a":' * 5000],
)  # fmt: skip
def test_a_line_without_the_text_is_no_reply(line: bytes) -> None:
    assert ended(line).outcome is Outcome.LOST_OUTPUT
    assert ended(line, b'{"a":[{"b":"all of it"}]}').reply == "all of it"


def test_what_is_not_json_is_shown_as_what_it_does() -> None:
    assert list(JsonReader(FIELDS).read(b"\x1b[31mloading\x1b[0m")) == [Activity("loading")]
    assert list(JsonReader(FIELDS).read(b'{"a":[{"b":"hi"}]}')) == [Message("hi")]


@pytest.mark.parametrize("figure", [b"-1", b"true", b'"7"', b"1e99", b"null", b"{}", b"2.5"])
def test_only_a_count_is_a_count(figure: bytes) -> None:
    assert ended(b'{"u":{"in":' + figure + b"}}").usage is None


def test_later_figures_stand_for_earlier_ones() -> None:
    used = ended(b'{"u":{"in":1,"c":1,"out":1,"usd":0.1}}', b'{"u":{"in":9,"usd":1}}').usage
    assert used == Usage(tokens_in=9, tokens_cached=1, tokens_out=1, cost_usd=1.0)


def test_the_exit_code_decides_before_any_words() -> None:
    failed = ended(b'{"a":[{"b":"<promise>DONE</promise>"}],"id":"s-1"}', code=3)
    assert (failed.outcome, failed.reply, failed.session) == (Outcome.FAILED, "", "s-1")
    assert JsonReader(FIELDS).end(Exit(ending=Ending.TOTAL), "").outcome is Outcome.HUNG


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b", "0", "u", "in", "id", "usd"]), inner),
)


@given(ANYTHING)
def test_whatever_a_program_writes_is_read_without_a_word_of_complaint(value: Any) -> None:
    ended(msgspec.json.encode(value))


@given(st.binary())
def test_a_line_that_is_not_json_is_read_without_a_complaint(line: bytes) -> None:
    ended(line)
