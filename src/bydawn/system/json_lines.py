"""A file of JSON lines with ids without gaps; others may add lines, and an agent may write anything into it."""

import errno
import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.system.paths import open_parent, open_regular
from bydawn.system.shared_file import PATIENCE, locked

_MODE = 0o644  # before the umask
_NEAR, _FAR = 128 << 10, 4 << 20  # bytes at the end that are read at most, to find the last id and lines of others
_OTHERS = 4_000  # lines for records that the ledger does not have yet; at most 1,000 of these wait


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """How far a file has come: the last fact with all its lines, the last id, and where that line ended.

    From `look` on there are lines that others wrote for records of which the ledger does not know yet.
    """

    seq: int = 0
    id: int = 0
    end: int = 0
    look: int = 0


_START = Mark()


class _Seen(msgspec.Struct, frozen=True):
    id: int = 0
    seq: int = 0
    record: str = ""


_DECODER = msgspec.json.Decoder(_Seen)


class JsonLines:
    """Adds lines, each with one write, under a lock on the file itself."""

    def __init__(self, root: Path | str, path: str, mark: Mark | None = None) -> None:
        """Without a mark, as for a process in a sandbox, the end of the file itself says where it ends."""
        self._root, self._path = str(root), path
        self._most = _NEAR if mark is None else _FAR
        self.is_odd = False  # does it have lines that no one of ours can have written?
        self._begin_at(mark or _START)

    def _begin_at(self, mark: Mark) -> None:
        self.mark = mark
        self._id, self._end = mark.id, mark.end
        self._there: Counter[int] | None = None  # of later facts: lines that were written before we looked first
        self._others: deque[tuple[str, int]] = deque(maxlen=_OTHERS)  # lines of others: their record, and where

    def took(self, seq: int) -> None:
        """All lines of the facts up to this one are in the file."""
        unlooked = min(self.mark.look, self._end) if self._there is None else self._end
        self.mark = Mark(seq, self._id, self._end, self._others[0][1] if self._others else unlooked)

    def fit(self, last: int) -> None:
        """Begin where the file itself says if it has no mark, or is shorter than its mark says: at 0 if it is gone."""
        if self.mark.seq > last + 1:  # a power cut lost facts
            self._begin_at(replace(self.mark, seq=last))
        size = 0
        with suppress(FileNotFoundError):
            size = os.lstat(f"{self._root}/{self._path}").st_size
        if size < self._end or (size and not self._end):
            self._begin_at(_START)
            with self._open() as fd:
                seen = max(self._look(fd), default=1)
            self.took(min(seen - 1, last))

    def add(self, value: Mapping[str, object], record: str = "", *, seq: int = 0, again: bool = False) -> None:
        """Add a line. For one of a fact: unless others wrote it for this record, or a killed process did (`again`)."""
        try:
            with self._open() as fd:
                there = self._look(fd)
                if record and seq and (other := next((each for each in self._others if each[0] == record), None)):
                    self._others.remove(other)
                    return
                if again and there[seq]:
                    there[seq] -= 1
                    return
                after = {name: value for name, value in (("seq", seq), ("record", record)) if value}
                self._write(fd, msgspec.json.encode({"id": self._id + 1, **value, **after}) + b"\n")
        except OSError:
            self._begin_at(self.mark)  # the next look finds what was written since
            raise

    @contextmanager
    def _open(self) -> Iterator[int]:
        with (
            open_parent(self._root, self._path, make=True) as (folder, name),
            locked(folder, name, PATIENCE, os.O_APPEND, _MODE) as fd,
        ):
            yield fd

    def _write(self, fd: int, data: bytes) -> None:
        if os.write(fd, data) < len(data):
            os.ftruncate(fd, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._id, self._end = self._id + 1, self._end + len(data)

    def _look(self, fd: int) -> Counter[int]:
        """What others have added since the last look; a line that a killed writer left half-written is cut off."""
        size = os.fstat(fd).st_size
        if self._there is not None and size == self._end:
            return self._there
        if size < self._end:  # someone cut it
            self._id = self._end = 0
        known = self._end if self._there is not None else min(self.mark.look, self._end)
        begin = max(known, size - self._most)
        whole, newline, torn = os.pread(fd, size - begin, begin).rpartition(b"\n")
        if torn and (newline or begin == known):
            size -= len(torn)
            os.ftruncate(fd, size)
        elif torn:
            self.is_odd = True
            size += os.write(fd, b"\n")
        lines = whole.split(b"\n") if newline else []
        if begin != known and lines:
            begin += len(lines.pop(0)) + 1
        found = self._sound(lines, begin)
        self._there = self._there if self._there is not None else found
        self._end = size
        return self._there

    def _sound(self, lines: list[bytes], place: int) -> Counter[int]:
        """How many lines each later fact has. Only those count whose ids go on where the last one ended.

        Any other is not from us, and no number follows from it.
        """
        found, unseen = Counter[int](), place - self._end  # bytes; each line has some
        for line in lines:
            begin, place = place, place + len(line) + 1
            try:
                seen = _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                seen = _Seen()
            if begin >= self._end:
                if not self._id < seen.id <= self._id + max(unseen, 1):
                    self.is_odd = True
                    continue
                self._id, unseen = seen.id, 0
            if seen.seq > self.mark.seq:
                found[seen.seq] += 1
            elif seen.record and not seen.seq:
                self._others.append((seen.record, begin))
        return found


def find(root: Path | str, path: str, record: str) -> dict[str, object] | None:
    """The last line of a record, if it is near the end."""
    return next((line for line in reversed(last(root, path)) if line.get("record") == record), None)


def last(root: Path | str, path: str) -> list[dict[str, object]]:
    """The lines near the end, oldest first; what is not a JSON object is left out."""
    found = []
    with suppress(OSError), open_regular(root, path) as file:
        size = os.fstat(file.fileno()).st_size
        data = os.pread(file.fileno(), min(size, _NEAR), max(0, size - _NEAR))
        for line in data.split(b"\n")[size > _NEAR : -1]:
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                found.append(msgspec.json.decode(line, type=dict[str, object]))
    return found
