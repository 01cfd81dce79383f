"""The log of a round: a window of lines with numbers, a search, and rows that a stream can add to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bydawn.core.errors import NotFound
from bydawn.operations.round_log import LogRow, new_rows
from bydawn.web.loops import Loops
from bydawn.web.page import Visitor, fragment
from bydawn.web.pages.log import log_rows
from operations.stories import STORIES
from web.drawn import LOOKS, STEERS, Drawn, drawn, log_page, rooms

BAD = "<script>alert(1)</script>"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Loops]:
    with rooms(tmp_path.resolve(), "running", "stopped") as found:
        yield found


def printed(loops: Loops, name: str, number: int, count: int, *more: str) -> None:
    path = loops.find(name).folder.round_file(number, "stdout")
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "prompt.md").write_text("do it\n")
    lines = [f'{{"type":"activity","text":"reading file {number}"}}\n' for number in range(1, count + 1)]
    path.write_text("".join([*lines, *(f'{{"type":"message","text":"{text}"}}\n' for text in more)]))


def lines_in(shown: Drawn) -> list[str]:
    return [given["id"] for tag, given in shown.tags if tag == "div" and given.get("id", "").startswith("L")]


@pytest.mark.parametrize("visitor", [STEERS, LOOKS], ids=["steers", "looks"])
@pytest.mark.parametrize("name", STORIES)
def test_the_log_of_every_round_of_every_loop_can_be_looked_at(loops: Loops, name: str, visitor: Visitor) -> None:
    for number in range(loops.find(name).state.round + 1):
        shown = drawn(log_page(loops, name, visitor, round=number or ""), visitor)
        assert not [form for form in shown.forms if form.action.startswith("/loops") and form.method == "post"]


def test_a_round_that_is_not_there_is_not_found(loops: Loops) -> None:
    with pytest.raises(NotFound, match="has no round 7"):
        log_page(loops, "complete", STEERS, round=7)


def test_a_loop_without_rounds_says_what_comes_first(loops: Loops) -> None:
    assert "No round has begun yet." in drawn(log_page(loops, "session", STEERS)).text


def test_the_page_is_the_end_and_leads_to_earlier_lines(one: Loops) -> None:
    printed(one, "stopped", 1, 1200)
    shown = drawn(log_page(one, "stopped", STEERS))
    assert (lines_in(shown)[0], lines_in(shown)[-1], len(lines_in(shown))) == ("L701", "L1200", 500)
    assert "?round=1&from=201" in shown.links and "?round=1&from=701#L701" in shown.links
    assert "/loops/stopped/rounds/1/raw/stdout" in shown.links
    middle = drawn(log_page(one, "stopped", STEERS, round=1, **{"from": 201}))
    assert (lines_in(middle)[0], lines_in(middle)[-1]) == ("L201", "L700")
    assert "?round=1&from=1" in middle.links and "?round=1&from=701" in middle.links
    assert "?round=1&from=201#L201" in middle.links
    assert "Round 1" not in middle.html.partition('role="log"')[2].partition("</div>\n</div>")[0]
    first = drawn(log_page(one, "stopped", STEERS, round=1, **{"from": 1}))
    assert "?round=1&from=1" not in first.links


def test_a_search_counts_its_hits_and_marks_them(one: Loops) -> None:
    printed(one, "stopped", 1, 900, "The Examples are wrong", "more EXAMPLES here")
    shown = drawn(log_page(one, "stopped", STEERS, q="examples"))
    assert "2 hits, in lines 901 , 902" in shown.text
    assert "<mark>Examples</mark>" in shown.html and "<mark>EXAMPLES</mark>" in shown.html
    assert "?round=1&q=examples&from=881#L901" in shown.links
    far = drawn(log_page(one, "stopped", STEERS, q="file 333"))
    assert "1 hit, in line 333" in far.text and "L333" in lines_in(far), "the window is where the hit is"
    many = drawn(log_page(one, "stopped", STEERS, q="file"))
    windows = {link.partition("#")[0] for link in many.links if "&q=file&from=" in link and "#" in link}
    assert ("900 hits" in many.text, len(windows)) == (True, 21), "20 hits, and the lines of this page"
    assert "“nothing” is not in this log." in drawn(log_page(one, "stopped", STEERS, q="nothing")).text


@pytest.mark.parametrize("q", [BAD, "a" * 5000, "\\", "[(", "%00", "é\u202e"])
def test_a_search_for_anything_is_just_a_search(one: Loops, q: str) -> None:
    printed(one, "stopped", 1, 3)
    shown = drawn(log_page(one, "stopped", STEERS, q=q))
    assert BAD not in shown.html


def test_lines_can_be_shown_without_wrapping(one: Loops) -> None:
    printed(one, "stopped", 1, 3)
    wrapped, long = (drawn(log_page(one, "stopped", STEERS, wrap=wrap)) for wrap in ("", "0"))
    assert "?round=1&wrap=0" in wrapped.links and "?round=1" in long.links
    assert "log no-wrap" in long.html and "log no-wrap" not in wrapped.html
    assert long.form("/loops/stopped/log").value("wrap") == "0"


def test_a_running_round_can_be_followed_from_where_the_page_ends(one: Loops) -> None:
    printed(one, "running", 2, 3)
    standing = one.find("running")
    page = log_page(one, "running", STEERS)
    shown = drawn(page)
    [log] = [given for tag, given in shown.tags if "data-log" in given]
    address, number, offset, line = log["data-log"].rsplit(":", 3)
    assert (address, number, line) == ("running", "2", "4") and "data-open" in log and log["aria-live"] == "off"
    assert int(offset) == standing.folder.round_file(2, "stdout").stat().st_size
    assert not page.sections[1].live
    assert {"follow", "new-lines"} <= {*shown.ids}
    printed(one, "running", 2, 3, "fresh words")
    rows, _, _ = new_rows(standing, 2, int(offset), int(line))
    added = Drawn(log_rows(rows, 2))
    assert lines_in(added) == ["L4"] and added.links == ["?round=2&from=4#L4"] and "fresh words" in added.text


def test_the_end_of_a_round_is_a_part_that_comes_by_itself(one: Loops) -> None:
    page = log_page(one, "stopped", STEERS)
    assert page.sections[2].live
    assert "Round 1 ended" in drawn(page).text
    head = drawn(page).html.partition('<p class="round-end">')[2].partition("</p>")[0]
    assert "#i-running" not in head
    assert "Round 2 ended" not in drawn(log_page(one, "running", STEERS)).text
    earlier = drawn(log_page(one, "running", STEERS, round=1))
    assert "Round 2 is running" in earlier.text and "/loops/running/log?round=2" in earlier.links


def test_a_log_that_was_opened_before_the_first_round_leads_to_it(one: Loops) -> None:
    page = log_page(one, "running", STEERS, round=0)
    shown = drawn(page)
    assert page.at == "/loops/running/log?round=0" and "No round has begun yet." in shown.text
    assert "/loops/running/log?round=2" in shown.links


def test_rows_of_one_line_have_one_address_and_their_text_is_data() -> None:
    rows = [
        LogRow(line=7, at=None, event="message", text=BAD),
        LogRow(line=7, at=None, event="commandended", text="✗ pytest → exit 1"),
        LogRow(line=None, at=None, event="stderr", text="trouble"),
    ]
    shown = Drawn(log_rows(rows, 1))
    assert lines_in(shown) == ["L7"] and BAD not in shown.html
    kinds = [(given["data-kind"], "failed" in given["class"]) for tag, given in shown.tags if "data-kind" in given]
    assert kinds == [("message", False), ("commandended", True), ("stderr", False)]


def test_secrets_are_hidden(one: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-hunter2")
    printed(one, "running", 2, 1, "it is hunter2-hunter2")
    assert "hunter2" not in drawn(log_page(one, "running", STEERS)).html


def test_a_log_is_read_although_its_agent_has_left_the_pool(one: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bydawn.agents.pool", lambda _: {})
    printed(one, "stopped", 1, 3)
    shown = drawn(log_page(one, "stopped", STEERS))
    assert "This log cannot be read" not in shown.text and "file" in shown.text


def test_a_search_is_not_made_again_for_parts_of_the_page(one: Loops, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bydawn.web.pages.log.page_of_log", lambda *_, **__: pytest.fail("too early"))
    page = log_page(one, "running", STEERS, q="file")
    assert [section.live for section in page.sections] == [False, False, True]
    fragment(page.sections[2], STEERS)
