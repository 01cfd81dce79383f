"""Follow a file that grows: whole lines out, no limit on their length, memory flat (FAULTS 52, 53, 55)."""

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.system.tail import LONGEST_LINE, Tail


class Listener:
    """Keeps what it is told; the line `bye` is the last word."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()
        self.lines: list[bytes] = []
        self.skipped: list[int] = []
        self.tail = Tail(path, self.on_line, self.skipped.append)

    def on_line(self, line: bytes) -> bool:
        self.lines.append(line)
        return line == b"bye"

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def all(self) -> list[bytes]:
        self.tail.drain()
        self.tail.close()
        return self.lines


@pytest.fixture
def listener(tmp_path: Path) -> Listener:
    return Listener(tmp_path / "stdout")


def test_a_line_is_told_when_it_is_whole_and_not_before(listener: Listener) -> None:
    listener.write(b"one\ntw")
    assert listener.tail.read() == (True, False)
    assert listener.lines == [b"one"]
    listener.write(b"o\n")
    listener.tail.read()
    assert listener.lines == [b"one", b"two"]
    assert listener.tail.read() == (False, False)


def test_the_last_line_needs_no_newline(listener: Listener) -> None:
    listener.write(b"one\ntwo")
    assert listener.all() == [b"one", b"two"]


def test_an_empty_line_is_a_line_and_no_file_has_one_more_than_it_has(listener: Listener) -> None:
    listener.write(b"\n\none\n\n")
    assert listener.all() == [b"", b"", b"one", b""]


def test_the_last_word_is_noticed_wherever_it_stands(tmp_path: Path) -> None:
    for number, text in enumerate((b"bye\n", b"one\nbye\ntwo\n", b"one\nbye")):
        listener = Listener(tmp_path / str(number))
        listener.write(text)
        assert not listener.tail.finished
        listener.all()
        assert listener.tail.finished


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", b"a\nb", b"\n\n", "é".encode()[:1]]), max_size=8))
def test_wherever_a_writer_pauses_the_lines_are_the_same(parts: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        listener = Listener(Path(folder) / "stdout")
        for part in parts:
            listener.write(part)
            listener.tail.read()
        whole = b"".join(parts)
        lines = whole.split(b"\n")
        assert listener.all() == (lines if lines[-1] else lines[:-1])
        assert listener.tail.position == len(whole)


SIZES = [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 3 * LONGEST_LINE]


@pytest.mark.parametrize("size", SIZES)
def test_a_line_is_parsed_up_to_a_size_and_above_it_only_counted(listener: Listener, size: int) -> None:
    listener.write(b"before\n" + b"x" * size + b"\nafter\n")
    lines = listener.all()
    if size <= LONGEST_LINE:
        assert [len(line) for line in lines] == [6, size, 5]
        assert listener.skipped == []
    else:
        assert lines == [b"before", b"after"]
        assert listener.skipped == [size]


def test_a_long_line_that_never_ends_is_counted_too(listener: Listener) -> None:
    listener.write(b"x" * (LONGEST_LINE + 5))
    assert listener.all() == []
    assert listener.skipped == [LONGEST_LINE + 5]


def test_memory_stays_flat_with_a_line_of_any_length(listener: Listener) -> None:
    with listener.path.open("r+b") as file:
        file.truncate(200 << 20)  # a hole reads as zeros
    tracemalloc.start()
    listener.tail.drain()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    listener.tail.close()
    assert listener.skipped == [200 << 20]
    assert peak < LONGEST_LINE + (8 << 20)


def test_a_flood_is_read_in_portions_so_that_its_reader_can_look_at_the_clock(listener: Listener) -> None:
    with listener.path.open("r+b") as file:
        file.truncate(64 << 20)
    grown, more = listener.tail.read()
    assert grown
    assert more
    assert listener.tail.position < 64 << 20
    listener.tail.close()


def test_bytes_that_are_no_text_are_handed_on_as_they_are(listener: Listener) -> None:
    listener.write(b"\xff\x00\xfe\r\n")
    assert listener.all() == [b"\xff\x00\xfe\r"]
