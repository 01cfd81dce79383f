"""When lines came: an index beside the output, small, silent while nothing comes, and harmless when it is missing."""

import os
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.ports import ChildLimits, Job
from bydawn.process.child import ChildProcesses
from bydawn.system.line_times import LineTimes, TimesWriter
from bydawn.system.tail import Tail

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC).timestamp()
MB = 1 << 20


class Output:
    """An output that grows, followed by a reader that notes the times, under a clock of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self.index = folder / "stdout", folder / "stdout.times"
        self.path.touch()
        self.now = NOON
        patch.setattr("time.time", lambda: self.now)
        self.ends: list[tuple[int, float]] = []  # of each line, and when it came
        self._tail = Tail(self.path, lambda _: False, lambda _: None, TimesWriter(str(self.index)))

    def prints(self, data: bytes, after: float = 0.0) -> None:
        self.now += after
        with self.path.open("ab") as file:
            file.write(data)
            size, end = file.tell(), file.tell() - len(data)
        for line in data.splitlines(keepends=True):
            end += len(line)
            self.ends.append((end, self.now))
        os.utime(self.path, (self.now, self.now))
        while self._tail.position < size:
            self._tail.read()

    def ended(self) -> None:
        self._tail.drain()
        self._tail.close()

    @property
    def rows(self) -> list[list[int]]:
        return [[int(word) for word in row.split()] for row in self.index.read_text().splitlines()]

    def seconds(self, end: int) -> float | None:
        """How long after noon the line came that ends there, says the index."""
        times = LineTimes(self.index, self.path)
        moment = times.moment(end)
        times.close()
        return None if moment is None else round(moment.timestamp() - NOON, 3)

    def late(self, end: int, came: float) -> float:
        """By how much the index is wrong about a line; it counts milliseconds."""
        seconds = self.seconds(end)
        assert seconds is not None
        return max(0.0, abs(seconds - (came - NOON)) - 0.002)


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Output:
    return Output(tmp_path, monkeypatch)


def test_lines_before_and_after_a_long_silence_have_their_own_times(output: Output) -> None:
    output.prints(b"one\n")
    output.prints(b"two\n", after=0.5)
    output.prints(b"three\n", after=60)
    assert [output.seconds(end) for end, _ in output.ends] == [0, 0.5, 60.5], "the last one by the file itself"
    assert len(output.rows) == 2, "nothing is written until more comes"
    output.ended()
    os.utime(output.path, (NOON + 999, NOON + 999))
    assert [output.seconds(end) for end, _ in output.ends] == [0, 0.5, 60.5]
    assert [line for _, line, _ in output.rows] == [2, 3, 4]


def test_a_flood_is_a_row_for_each_megabyte(output: Output) -> None:
    output.prints(b"x" * 1023 + b"\n")
    output.prints((b"y" * 1023 + b"\n") * 20 * 1024)
    output.ended()
    assert 20 <= len(output.rows) <= 22
    assert output.rows[-1][:2] == [20 * MB + 1024, 20 * 1024 + 2]


def test_inside_a_line_without_end_there_are_rows_as_well(output: Output) -> None:
    output.prints(b"one\n" + b"x" * 20 * MB)
    output.ended()
    assert len(output.rows) >= 19
    assert {line for _, line, _ in output.rows} == {2}


PIECES = st.lists(st.tuples(st.sampled_from([b"a\n", b"bb\nc\n", b"\n", b"half"]), st.floats(0, 3)), max_size=40)


@given(PIECES)
def test_every_line_has_its_time_to_the_second_and_there_is_about_a_row_a_second(
    pieces: list[tuple[bytes, float]],
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        output = Output(Path(folder), patch)
        for data, after in pieces:
            output.prints(data, after)
        assert all(0 <= output.late(*each) < 1 for each in output.ends)
        output.ended()
        assert all(0 <= output.late(*each) < 1 for each in output.ends)
        assert len(output.rows) <= sum(after for _, after in pieces) + 2


def test_a_clock_that_is_set_back_costs_no_rows(output: Output) -> None:
    output.prints(b"one\n")
    output.prints(b"two\n", after=-3600)
    output.prints(b"three\n", after=2)
    output.ended()
    assert [output.seconds(end) for end, _ in output.ends] == [0, -3600, -3598]


def test_a_mark_tells_which_line_is_at_an_offset_and_where_to_look_for_a_line(output: Output) -> None:
    for number in range(50):
        output.prints(b"line %d\n" % number, after=2)
    output.ended()
    times, data = LineTimes(output.index, output.path), output.path.read_bytes()
    begins = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]
    for number, begin in enumerate(begins[:-1], 1):
        assert times.before(begin)[:2] == (begin, number)
        assert times.before(begin + 3)[:2] == (begin, number)
        mark = times.before_line(number)
        assert (mark.offset, mark.line) == ((begins[number - 2], number - 1) if number > 1 else (0, 1))
    times.close()


def test_what_cannot_be_written_is_left_out_and_nobody_is_told(
    tmp_path: Path, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = TimesWriter(str(tmp_path / "missing" / "stdout.times"))
    for offset in (10, 20, 30):
        nowhere.grew(offset, 1)
    nowhere.close()
    output.prints(b"one\n")
    output.prints(b"two\n", after=2)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:5]))  # the disk is full
    output.prints(b"three\n", after=2)
    monkeypatch.undo()
    output.prints(b"four\n", after=2)
    output.ended()
    assert output.seconds(4) == 0
    assert len(output.index.read_bytes()) % len(output.index.read_bytes().splitlines(keepends=True)[0]) == 5


def test_without_an_index_and_with_a_damaged_one_times_are_unknown(tmp_path: Path, output: Output) -> None:
    output.prints(b"one\n")
    assert output.seconds(4) == 0
    output.ended()
    for damage in (b"x" * 200, b"\0" * 200):
        output.index.write_bytes(damage)
        assert output.seconds(4) is None
        assert LineTimes(output.index, output.path).before(100)[:2] == (0, 1)
    output.index.unlink()
    assert output.seconds(4) is None
    (tmp_path / "elsewhere").write_bytes(b"x")
    output.index.symlink_to(tmp_path / "elsewhere")
    assert output.seconds(4) is None, "nothing is read through a link"


def test_a_child_whose_times_are_wanted_leaves_them_beside_its_output(tmp_path: Path) -> None:
    stdout, index = tmp_path / "stdout", tmp_path / "stdout.times"
    job = Job(
        argv=("printf", r"one\ntwo\nhalf"),
        env={},
        stdin=os.devnull,
        stdout=str(stdout),
        stderr=os.devnull,
        times=str(index),
        limits=ChildLimits(),
    )
    index.touch(0o600)
    index.write_text("of an earlier attempt")
    before = datetime.now(UTC)
    ChildProcesses(wakes=(), env=os.environ).run(job, lambda _: False, lambda _: None, lambda: False)
    moment = LineTimes(index, stdout).moment(stdout.stat().st_size)
    assert moment is not None
    assert -0.01 <= (moment - before).total_seconds() <= (datetime.now(UTC) - before).total_seconds()
    assert index.read_text().split()[:2] == ["0000000000000012", "000000000003"]
