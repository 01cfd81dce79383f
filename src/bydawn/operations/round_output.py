"""What the agent of a round printed, as lines with numbers and times."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from types import TracebackType

from bydawn.core.layout import STDOUT, TIMES
from bydawn.operations import outputs
from bydawn.operations.outputs import Line
from bydawn.store.registry import Standing
from bydawn.system.line_times import LineTimes
from bydawn.system.tail import LONGEST_LINE

_BLOCK = 64 << 10


class RoundOutput:
    """The stdout of a round. Only the part that is asked for is read, however much there is."""

    def __init__(self, standing: Standing, round_: int) -> None:
        self.round = round_
        opened = standing.state.open_round
        self.is_open = standing.alive and opened is not None and opened.round == round_
        self._path = standing.folder.round_file(round_, STDOUT)
        self._times = LineTimes(standing.folder.round_file(round_, TIMES), self._path)
        self._fd = -1
        with suppress(FileNotFoundError):
            self._fd = os.open(self._path, os.O_RDONLY)

    def __enter__(self) -> "RoundOutput":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._times.close()
        if self._fd >= 0:
            os.close(self._fd)

    def at(self, line: Line) -> datetime | None:
        """When a line came."""
        return self._times.moment(line.end)

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size if self._fd >= 0 else 0

    @property
    def end(self) -> int:
        """Where the last line ends; half a line counts once nothing can follow, because by then it is masked."""
        return self.end_of_lines if self.is_open else self.size

    @property
    def end_of_lines(self) -> int:
        """Where the last line with a newline ends."""
        size = self.size
        whole = self._last_newline(size)
        return self.start_of(self.line_at(size)) if whole is None else whole

    def _last_newline(self, end: int) -> int | None:
        """What is after it; None if it is too far away to look for."""
        stop = max(0, end - LONGEST_LINE)
        while end > stop:
            start = max(stop, end - _BLOCK)
            newline = self._read(start, end).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return None if end else 0

    def line_at(self, offset: int) -> int:
        """The number of the line that is there, or begins there."""
        mark = self._times.before(offset)
        return mark.line + sum(block.count(b"\n") for _, block in self._blocks(mark.offset, offset))

    def start_of(self, line: int) -> int:
        """Where a line begins; the end, if there are not so many."""
        mark = self._times.before_line(line)
        left = line - mark.line  # newlines before it
        for start, block in self._blocks(mark.offset, self.size) if left > 0 else ():
            count = block.count(b"\n")
            if count >= left:
                newline = -1
                for _ in range(left):
                    newline = block.index(b"\n", newline + 1)
                return start + newline + 1
            left -= count
        return self.size if left > 0 else 0

    def back(self, end: int, count: int, most: int) -> int:
        """Where the last lines before an offset begin: so many, or as many as have room in so many bytes."""
        begin, position, stop = end, end, max(0, end - most)
        while position > stop:
            start = max(stop, position - _BLOCK)
            block = self._read(start, position)
            newline = len(block)
            while (newline := block.rfind(b"\n", 0, newline)) >= 0:
                if start + newline + 1 < end:
                    begin, count = start + newline + 1, count - 1
                    if not count:
                        return begin
            position = start
        return begin if position else 0

    def lines(self, begin: int, number: int, end: int) -> Iterator[Line]:
        """From an offset at which the line of this number begins."""
        parts: list[bytes] = []
        position = begin
        while position < end:
            block = self._read(position, min(position + _BLOCK, end))
            if not block:
                break
            position += len(block)
            *whole, rest = block.split(b"\n")
            for part in whole:
                data = b"".join((*parts, part))
                begin += len(data) + 1
                yield Line(self.round, data, number, begin)
                parts, number = [], number + 1
            parts.append(rest)
            if position - begin > LONGEST_LINE:
                position = min(end, self._after_line(number, position))
                yield Line(self.round, b"", number, position, left_out=position - begin)
                parts, begin, number = [], position, number + 1
        if begin < position:
            yield Line(self.round, b"".join(parts), number, position)

    def _after_line(self, number: int, position: int) -> int:
        """Where the line after an endless one begins."""
        start = max(position, self._times.before_line(number + 1).offset)
        for offset, block in self._blocks(start, self.size):
            if (newline := block.find(b"\n")) >= 0:
                return offset + newline + 1
        return self.size

    def last(self, count: int, end: int, *, numbered: bool) -> list[Line]:
        """The last lines, as `outputs.last_lines` splits them: a part of a line has the number of that line."""
        lines, number = deque[Line](), self.line_at(end) if numbered else 0
        for piece in reversed(outputs.last_pieces(self._path, count, end)):
            number -= piece.endswith(b"\n")
            lines.appendleft(Line(self.round, piece, number, end))
            end -= len(piece)
        return [*lines]

    def _blocks(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        while start < end and (block := self._read(start, min(start + _BLOCK, end))):
            yield start, block
            start += len(block)

    def _read(self, start: int, end: int) -> bytes:
        return os.pread(self._fd, end - start, start)
