"""Follow a growing file: whole lines of any length, with constant memory."""

import os
from collections.abc import Callable
from pathlib import Path

from bydawn.system.line_times import TimesWriter

_CHUNK = 1 << 20
_PER_READ = 8  # chunks, so that a flood cannot keep the reader from checking the clock
LONGEST_LINE = 8 << 20  # bytes; a longer line stays in the file and is not parsed


class Tail:
    """Reads a file as it is written and passes on each line without its newline."""

    def __init__(
        self,
        path: Path,
        on_line: Callable[[bytes], bool],
        on_skip: Callable[[int], None],
        times: TimesWriter | None = None,
    ) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._on_line = on_line
        self._on_skip = on_skip
        self._times = times
        self._rest: list[bytes] = []
        self._held = 0  # bytes in _rest, or skipped from a line that is too long
        self._skipping = False
        self.position = 0
        self._line = 1  # the number of the line at that position
        self.finished = False  # did a line turn out to be the last word?

    def read(self) -> tuple[bool, bool]:
        """Read what is there: has the file grown, and is there more to read right now?"""
        grown = False
        for _ in range(_PER_READ):
            chunk = os.read(self._fd, _CHUNK)
            if not chunk:
                return grown, False
            grown = True
            self.position += len(chunk)
            self._split(chunk)
            if self._times:
                self._times.grew(self.position, self._line)
            if len(chunk) < _CHUNK:
                return grown, False
        return grown, True

    def drain(self) -> None:
        """Read to the end, including a last line without newline."""
        while self.read()[1]:
            pass
        if self._held:
            self._end_line(b"")

    def _split(self, chunk: bytes) -> None:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        self._line += len(lines)
        if lines:
            self._end_line(lines[0])
            on_line = self._on_line
            for line in lines[1:]:
                if on_line(line):
                    self.finished = True
        if rest:
            self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > LONGEST_LINE:
            self._skipping = True
            self._rest.clear()
        else:
            self._rest.append(part)

    def _end_line(self, part: bytes) -> None:
        """The line being collected is complete."""
        self._keep(part)
        line, skipped = b"".join(self._rest), self._held if self._skipping else 0
        self._rest, self._held, self._skipping = [], 0, False
        if skipped:
            self._on_skip(skipped)
        elif self._on_line(line):
            self.finished = True

    def close(self) -> None:
        os.close(self._fd)
        if self._times:
            self._times.close()
