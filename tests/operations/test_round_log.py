"""A page of a round's log: numbered, dated, masked, and read at its end whatever its size."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.layout import PROMPT, STDERR, STDOUT, TIMES
from bydawn.core.outcome import Outcome
from bydawn.core.replay import replay
from bydawn.operations import round_log
from bydawn.operations.round_log import LogPage, LogRow, log_page, new_rows
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import encode
from bydawn.store.registry import Standing
from bydawn.system.line_times import TimesWriter
from core.facts_made import BORN, a_loop, a_round, numbered, run_started, started

MB = 1 << 20
KEY = ["-----BEGIN RSA PRIVATE KEY-----", *(f"{'abcdefgh' * 8}" for _ in range(20)), "-----END RSA PRIVATE KEY-----"]


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


class Round:
    """The first round of a loop, on disk. Its agent is any program, whose every line is a message."""

    def __init__(
        self, root: Path, *, runs: bool = False, outcome: Outcome = Outcome.OK, agent: str = "cmd:agent"
    ) -> None:
        self.folder = LoopFolder(root / "state" / "loops" / "work" / "night")
        self.folder.round(1).mkdir(parents=True)
        facts = [started(1, agent=agent)] if runs else a_round(1, outcome, agent=agent)
        records = numbered([BORN, run_started(), *facts])
        self.folder.ledger.write_bytes(b"".join(map(encode, records)))
        self.standing = Standing(folder=self.folder, loop=a_loop(agent=agent), state=replay(records), alive=runs)
        self.file(PROMPT).write_text("go on")

    def file(self, name: str) -> Path:
        return self.folder.round_file(1, name)

    def prints(self, *lines: str | bytes) -> "Round":
        return self.writes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))

    def writes(self, data: bytes) -> "Round":
        with self.file(STDOUT).open("ab") as file:
            file.write(data)
        return self

    def index(self, step: int) -> None:
        """As a reader would have made it who was given so many bytes at a time, one portion in a second."""
        data, writer = self.file(STDOUT).read_bytes(), TimesWriter(str(self.file(TIMES)))
        with pytest.MonkeyPatch.context() as patch:
            for number, end in enumerate([*range(step, len(data), step), len(data)]):
                patch.setattr("time.time", lambda now=number: 1_000_000_000 + now)
                writer.grew(end, data.count(b"\n", 0, end) + 1)
        writer.close()

    def page(self, first: int | None = None, count: int = 500, search: str = "") -> LogPage:
        return log_page(self.standing, 1, first=first, count=count, search=search)

    def news(self, offset: int = 0, line: int = 1, until: int | None = None) -> tuple[tuple[LogRow, ...], int, int]:
        return new_rows(self.standing, 1, offset, line, until)


def texts(page: LogPage) -> list[str]:
    return [row.text for row in page.rows]


def numbers(page: LogPage) -> list[int | None]:
    return [row.line for row in page.rows]


def lines(first: int, last: int) -> list[str]:
    return [f"line {number}" for number in range(first, last + 1)]


# -- which lines -------------------------------------------------------------------------------------------------------


def test_a_page_is_the_end_of_the_log_unless_a_line_is_named(tmp_path: Path) -> None:
    log = Round(tmp_path).prints(*lines(1, 1000))
    page = log.page(count=100)
    assert (page.first, page.last, page.lines_before, page.lines_after) == (901, 1000, True, False)
    assert texts(page) == lines(901, 1000)
    assert numbers(page) == [*range(901, 1001)]
    page = log.page(first=1, count=100)
    assert (page.first, page.last, page.lines_before, page.lines_after) == (1, 100, False, True)
    assert texts(page) == lines(1, 100)
    assert texts(log.page(first=5000, count=2)) == lines(999, 1000), "there are not so many"
    assert (log.page().is_open, log.page().removed) == (False, False)


def test_lines_that_say_nothing_to_people_have_a_number_and_no_row(tmp_path: Path) -> None:
    log = Round(tmp_path, agent="demo").prints(
        '{"type":"started","session":"s"}',
        '{"type":"message","text":"I look"}',
        "garbage",
        '{"type":"activity","text":"editing a.py"}',
        '{"type":"result","outcome":"ok","text":"done"}',
    )
    page = log.page()
    assert [(row.line, row.event, row.text) for row in page.rows] == [
        (2, "message", "I look"),
        (4, "activity", "editing a.py"),
    ]
    assert (page.first, page.last) == (1, 5)


def test_a_round_without_output_is_an_empty_page(tmp_path: Path) -> None:
    log = Round(tmp_path, runs=True)
    for _ in range(2):
        page = log.page()
        assert (page.first, page.last, page.rows, page.lines_before, page.lines_after) == (1, 0, (), False, False)
        assert log.news() == ((), 0, 1)
        log.prints()


def test_output_that_was_removed_is_said_to_be(tmp_path: Path) -> None:
    log = Round(tmp_path)
    log.file(PROMPT).unlink()
    assert log.page().removed


LOG = st.lists(st.sampled_from([b"", b"a", b"some text", b"x" * 300, b"\xff\0", b"50 %\r100 %", b"\r"]), max_size=40)


@given(LOG, st.booleans(), st.integers(1, 7), st.one_of(st.none(), st.integers(1, 400)), st.booleans())
def test_pages_put_together_are_the_whole_log(
    log: list[bytes], half: bool, count: int, step: int | None, runs: bool
) -> None:
    with TemporaryDirectory() as root:
        round_ = Round(Path(root), runs=runs).prints(*log)
        if half:
            round_.writes(b"half")
        if step and round_.file(STDOUT).exists():
            round_.index(step)
        whole = round_.page(count=1000)
        assert [row.line for row in whole.rows] == [*range(1, len(log) + (half and not runs) + 1)]
        forward, first = list[LogRow](), 1
        while True:
            page = round_.page(first=first, count=count)
            forward += page.rows
            assert page.lines_before is (first > 1)
            if not page.lines_after:
                break
            assert page.last == first + count - 1
            first = page.last + 1
        assert tuple(forward) == whole.rows
        page = round_.page(count=count)
        backward = [*page.rows]
        while page.lines_before:
            page = round_.page(first=max(1, page.first - count), count=min(count, page.first - 1))
            backward[:0] = page.rows
        assert tuple(backward) == whole.rows
        page = round_.page(first=1, count=count)
        rows, offset, line = round_.news(page.next_offset, page.last + 1)
        assert (*page.rows, *rows) == whole.rows
        assert round_.news(offset, line) == ((), offset, line)


# -- big logs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    sizes, real = list[int](), os.pread

    def pread(fd: int, size: int, offset: int) -> bytes:
        sizes.append(len(data := real(fd, size, offset)))
        return data

    def since() -> int:
        total = sum(sizes)
        sizes.clear()
        return total

    monkeypatch.setattr(os, "pread", pread)
    return since


def a_gigabyte(tmp_path: Path, *, runs: bool = False) -> Round:
    """A thousand lines, one that is a hole in the file and takes no room, and six hundred more."""
    log = Round(tmp_path, runs=runs).prints(*lines(1, 1000))
    writer = TimesWriter(str(log.file(TIMES)))
    for offset in range(log.file(STDOUT).stat().st_size, 1 << 30, MB):
        writer.grew(offset, 1001)
    writer.close()
    os.truncate(log.file(STDOUT), 1 << 30)
    return log.prints("", *lines(1002, 1601))


@pytest.mark.parametrize("runs", [False, True])
def test_the_end_of_a_gigabyte_is_read_as_quickly_as_that_of_a_page(
    tmp_path: Path, bytes_read: Callable[[], int], runs: bool
) -> None:
    log = a_gigabyte(tmp_path, runs=runs)
    bytes_read()
    page = log.page()
    assert bytes_read() < 4 * MB
    assert (page.first, page.last, page.lines_before) == (1102, 1601, True)
    assert texts(page) == lines(1102, 1601)
    assert log.news(page.next_offset, page.last + 1)[0] == ()
    assert bytes_read() < MB
    first = log.page(first=1, count=5)
    assert (texts(first), bytes_read() < MB) == (lines(1, 5), True)
    around = log.page(first=1000, count=3)
    assert [row.event for row in around.rows] == ["message", "notice", "message"]
    assert bytes_read() < 16 * MB
    found = log.page(search="line 1600")
    assert (found.hits, found.searched_all, texts(found)) == (1, False, texts(page))
    assert bytes_read() < 16 * MB
    assert log.page(search="line 1000").hits == 0, "only the end of it is searched"


def test_half_a_gigabyte_without_a_newline_is_not_read_while_it_comes(
    tmp_path: Path, bytes_read: Callable[[], int]
) -> None:
    log = a_gigabyte(tmp_path, runs=True)
    end = len(b"".join(b"line %d\n" % number for number in range(1, 1001)))
    os.truncate(log.file(STDOUT), 1 << 29)
    bytes_read()
    page = log.page(count=2)
    assert (texts(page), page.next_offset, page.lines_after) == (lines(999, 1000), end, False)
    assert bytes_read() < 16 * MB


def test_without_an_index_lines_are_counted(tmp_path: Path) -> None:
    log = a_gigabyte(tmp_path)
    os.truncate(log.file(STDOUT), 1 << 26)
    log.prints("", *lines(1002, 1601))
    log.file(TIMES).unlink()
    page = log.page(count=3)
    assert (page.first, texts(page), page.rows[0].at) == (1599, lines(1599, 1601), None)


def test_a_line_that_is_too_long_is_left_out_with_a_remark_and_counts_as_a_line(tmp_path: Path) -> None:
    log = Round(tmp_path).prints("one", b"x" * (9 * MB), "three")
    remark = f"[a line of {9 * MB + 1} bytes was left out here]"
    page = log.page(first=1)
    assert [(row.line, row.event, row.text) for row in page.rows] == [
        (1, "message", "one"),
        (2, "notice", remark),
        (3, "message", "three"),
    ]
    assert log.news()[0] == page.rows
    end = log.page()
    assert (end.first, texts(end)) == (3, ["three"])


def test_a_long_last_line_is_a_page_of_its_own(tmp_path: Path) -> None:
    for size, text in ((5 * MB, "x" * 5 * MB), (9 * MB, f"[a line of {9 * MB + 1} bytes was left out here]")):
        log = Round(tmp_path / str(size)).prints("one", b"x" * size)
        page = log.page()
        assert (page.first, page.last, page.lines_before, texts(page)) == (2, 2, True, [text])


def test_many_long_lines_make_a_page_shorter_and_none_is_lost(tmp_path: Path) -> None:
    log = Round(tmp_path).prints(*[b"%d" % number + b"x" * MB for number in range(10)])
    page, seen = log.page(first=1), list[int | None]()
    while True:
        assert len(page.rows) <= 4
        seen += numbers(page)
        if not page.lines_after:
            break
        page = log.page(first=page.last + 1)
    assert seen == [*range(1, 11)]
    assert numbers(log.page()) == [8, 9, 10]


# -- while it runs -----------------------------------------------------------------------------------------------------


def test_half_a_line_waits_for_the_rest_of_it_or_for_the_end_of_the_round(tmp_path: Path) -> None:
    log = Round(tmp_path, runs=True).writes(b"one\ntw")
    page = log.page()
    assert (texts(page), page.is_open, page.next_offset, page.lines_after) == (["one"], True, 4, False)
    assert log.news(4, 2) == ((), 4, 2)
    log.writes(b"o\nthr")
    rows, offset, line = log.news(4, 2)
    assert ([(row.line, row.text) for row in rows], offset, line) == ([(2, "two")], 8, 3)
    log.standing = msgspec.structs.replace(log.standing, alive=False)
    assert [row.text for row in log.news(8, 3)[0]] == ["thr"]
    assert texts(log.page()) == ["one", "two", "thr"]


def test_a_follower_is_given_each_line_once_and_a_quarter_of_a_megabyte_at_most(
    tmp_path: Path, bytes_read: Callable[[], int]
) -> None:
    log = Round(tmp_path, runs=True).prints(*(f"{number} {'x' * 1000}" for number in range(1000)))
    offset, line, seen = 0, 1, list[int | None]()
    while True:
        bytes_read()
        rows, later, line = log.news(offset, line)
        assert bytes_read() < MB
        assert later - offset <= 256 << 10
        if not rows:
            break
        seen += [row.line for row in rows]
        offset = later
    assert seen == [*range(1, 1001)]


def test_a_follower_stops_where_others_went_on(tmp_path: Path) -> None:
    log = Round(tmp_path, runs=True).prints("one", "two", "three")
    rows, offset, line = log.news(0, 1, until=8)
    assert ([row.text for row in rows], offset, line) == (["one", "two"], 8, 3)
    assert log.news(8, 3, until=8) == ((), 8, 3)


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_secrets_and_escapes_are_not_shown_and_secrets_are_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    log = Round(tmp_path, runs=True).prints("\x1b[31mkey\x1b[0m hunter2hunter2", *KEY, "after")
    page = log.page()
    assert texts(page) == ["key [secret]", *["[secret]"] * len(KEY), "after"]
    assert log.page(search="hunter2").hits == 0
    for first in (3, 10, 22):
        assert texts(log.page(first=first)) == texts(page)[first - 1 :], "it may begin inside a private key"
    offset = log.page(first=1, count=10).next_offset
    assert [row.text for row in log.news(offset, 11)[0]] == texts(page)[10:]


def test_stderr_is_at_the_end_if_the_round_failed_or_said_nothing(tmp_path: Path) -> None:
    for name, outcome, said, shown in (
        ("failed", Outcome.FAILED, ["one"], True),
        ("ok", Outcome.OK, ["one"], False),
        ("silent", Outcome.OK, [], True),
    ):
        log = Round(tmp_path / name, outcome=outcome).prints(*said)
        log.file(STDERR).write_text("no key\nso I end here\n")
        page = log.page()
        on_stderr = [LogRow(line=None, at=None, event="stderr", text=text) for text in ("no key", "so I end here")]
        assert [*page.rows[len(said) :]] == (on_stderr if shown else []), name
        if shown:
            assert [row.hit for row in log.page(search="KEY").rows] == [*[False] * len(said), True, False]
    log = Round(tmp_path / "long", outcome=Outcome.FAILED).prints(*lines(1, 20))
    log.file(STDERR).write_text("no key\n")
    assert texts(log.page(first=1, count=10)) == lines(1, 10)
    assert texts(log.page(first=11, count=10)) == [*lines(11, 20), "no key"]


def test_a_command_that_began_on_the_page_before_is_known_by_its_words(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": "pytest -q"}}
    result = {"type": "tool_result", "tool_use_id": "t-1", "is_error": True, "content": "Exit code 1\n3 failed"}
    log = Round(tmp_path, agent="claude").prints(
        msgspec.json.encode({"type": "assistant", "message": {"id": "m-1", "content": [use]}}),
        msgspec.json.encode({"type": "user", "message": {"content": [result]}}),
    )
    assert [(row.line, row.event, row.text) for row in log.page(first=2).rows] == [
        (2, "commandended", "✗ pytest -q → exit 1: 3 failed")
    ]


def test_rows_have_the_time_at_which_their_line_came_if_that_was_noted(tmp_path: Path) -> None:
    log = Round(tmp_path).prints("one", "two", "six")
    assert {row.at for row in log.page().rows} == {None}
    log.index(4)
    moments = [datetime.fromtimestamp(1_000_000_000 + second, UTC) for second in range(3)]
    assert [row.at for row in log.page().rows] == moments
    assert [row.at for row in log.news()[0]] == moments


# -- searching ---------------------------------------------------------------------------------------------------------


def test_a_search_shows_the_last_line_that_has_the_text_and_counts_all(tmp_path: Path) -> None:
    log = Round(tmp_path).prints(*lines(1, 300), "An ERROR", *lines(302, 600), "an Error again", *lines(602, 2000))
    page = log.page(count=100, search="error")
    assert (page.hits, page.hit_lines, page.searched_all) == (2, (301, 601), True)
    assert page.first < 601 < page.last
    assert page.last - page.first == 99
    assert [row.line for row in page.rows if row.hit] == [601]
    page = log.page(first=300, count=3, search="error")
    assert ([row.hit for row in page.rows], page.hits) == ([False, True, False], 2)
    page = log.page(count=100, search="nowhere")
    assert (page.hits, page.last, any(row.hit for row in page.rows)) == (0, 2000, False)
    assert log.page(count=100, search="line 1990").last == 2000, "near the end it is the last page"
    assert log.page(search="  ").hits == 0


def test_a_search_counts_a_thousand_hits_and_knows_the_last_ones(tmp_path: Path) -> None:
    page = Round(tmp_path).prints(*lines(1, 1500)).page(search="LINE")
    assert (page.hits, page.hit_lines[0], page.hit_lines[-1]) == (1000, 501, 1500)


def test_what_was_searched_is_what_is_shown(tmp_path: Path) -> None:
    log = Round(tmp_path, agent="demo").prints(r'{"type":"message","text":"na\u00efve \"caf\u00e9\""}')
    assert log.page(search='NAÏVE "café').hits == 1
    assert log.page(search="message").hits == 0, "that is how the agent writes it down"


def test_at_most_so_many_bytes_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_log, "_SEARCHED", 100)
    log = Round(tmp_path).prints(*lines(1, 40))
    page = log.page(search="line")
    assert (page.hits, page.hit_lines[0], page.searched_all) == (12, 29, False)
    assert log.page(search="line 3").hits == 10
