"""When the lines of an output came: an index beside it, so that a page of a long log has times and numbers at once.

It is only a view. It is never synced, and where it ends early, or is missing, only times are unknown.
"""

import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

_ROW = b"%016d %012d %014d\n"  # all rows are equally long, so that the right one is found without reading the others
_SIZE = len(_ROW % (0, 0, 0))
_SECONDS, _BYTES = 1.0, 1 << 20  # between two rows
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW


class Mark(NamedTuple):
    """All that is before an offset had come at this time; what follows belongs to this line, counted from 1."""

    offset: int
    line: int
    at: int  # in milliseconds


_START = Mark(0, 1, 0)


class TimesWriter:
    """For the reader of a growing output. It writes when more comes, never on its own, and fails silently."""

    def __init__(self, path: str) -> None:
        self._fd = -1
        self._last = _START  # that was written
        self._since = 0  # when the first output came that it does not cover
        self._next: Mark | None = None  # is written as soon as it is clear that nothing more came at that time
        with suppress(OSError):
            self._fd = os.open(path, _NEW, 0o600)

    def grew(self, offset: int, line: int) -> None:
        """The output has been read up to this offset."""
        now, mark = int(time.time() * 1000), self._next
        if mark and (self._is_due(now) or mark.offset - self._last.offset >= _BYTES):
            self._write(mark)
            mark = None
        if mark is None:
            self._since = now
        self._next = Mark(offset, line, now)

    def _is_due(self, now: int) -> bool:
        """The beginning has a row of its own. The clock may have been set back."""
        return abs(now - self._since) >= (_SECONDS * 1000 if self._last is not _START else 1)

    def _write(self, mark: Mark) -> None:
        self._last = mark
        if self._fd >= 0:
            with suppress(OSError):
                if os.write(self._fd, _ROW % mark) == _SIZE:
                    return
            self._stop()  # the disk is full, and after half a row no other would be in its place

    def _stop(self) -> None:
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        if self._next:
            self._write(self._next)
        if self._fd >= 0:
            self._stop()


class LineTimes:
    """Such an index, read: each answer takes a few short reads, however long it is."""

    def __init__(self, path: Path, output: Path) -> None:
        self._output = output
        self._fd = -1
        self._known: tuple[int, int, datetime | None] = (0, 0, None)  # the last answer, and for which offsets it holds
        with suppress(OSError):
            self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def before(self, offset: int) -> Mark:
        """The last mark at or before an offset."""
        return self._mark(self._find(bisect_right, offset, "offset") - 1)

    def before_line(self, line: int) -> Mark:
        """The last mark before a line begins."""
        return self._mark(self._find(bisect_left, line, "line") - 1)

    def moment(self, end: int) -> datetime | None:
        """When the line came that ends at this offset, to the second; None if that is unknown."""
        after, until, moment = self._known
        if after < end <= until:
            return moment
        number = self._find(bisect_left, end, "offset")
        if self._fd < 0:
            return None
        with suppress(OSError, OverflowError, ValueError):
            if number == len(self):  # a row is only written when more comes; until then, the file itself tells
                return datetime.fromtimestamp(self._output.stat().st_mtime, UTC)
            moment = datetime.fromtimestamp(self[number].at / 1000, UTC)
            self._known = (self._mark(number - 1).offset, self[number].offset, moment)
            return moment
        return None

    def __len__(self) -> int:
        return os.fstat(self._fd).st_size // _SIZE if self._fd >= 0 else 0

    def __getitem__(self, number: int) -> Mark:
        offset, line, at = map(int, os.pread(self._fd, _SIZE, number * _SIZE).split())
        return Mark(offset, line, at)

    def _mark(self, number: int) -> Mark:
        return self[number] if number >= 0 else _START

    def _find(self, bisect: Callable[..., int], value: int, field: str) -> int:
        try:
            return bisect(self, value, key=attrgetter(field))
        except (OSError, ValueError):  # it is damaged: then it is as if there were none
            self.close()
            return 0
