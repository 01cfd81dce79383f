"""What a loop has written for people, kept in its own folder, out of an agent's reach: digests, and ends of logs."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn.core.digests import blake2b
from bydawn.core.layout import MARKS, WRITTEN
from bydawn.dialects.seam import Log, LogFile
from bydawn.system import json_lines, live_file
from bydawn.system.json_lines import JsonLines
from bydawn.system.live_file import LiveFile
from bydawn.system.paths import open_fd
from bydawn.system.writing import replace_private

_CHUNK = 1 << 20
_PAGE = 4096
_PATIENCE = 60.0  # seconds until a file of lines that cannot be written is tried again


def digest_of(fd: int) -> str:
    """The digest of an open file."""
    found, begin = blake2b(digest_size=16), 0
    while part := os.pread(fd, _CHUNK, begin):
        found.update(part)
        begin += len(part)
    return found.hexdigest()


class Written:
    """The digest of every file that a loop has written; one with another digest has been changed by a person.

    A digest is noted before its file takes its place, so there are two of them: a crash may come in between.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / WRITTEN
        self._known = self._read()

    def __bool__(self) -> bool:
        """Is anything known? Not of a new loop."""
        return bool(self._known)

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def recognizes(self, path: str, digest: str | None) -> bool:
        """Is this what the loop wrote there last?"""
        if digest is None or digest not in self._known.get(path, ()):
            return False
        self._known[path] = (digest,)
        return True

    def note(self, digests: dict[str, str]) -> None:
        last = {path: self._known.get(path, ())[-1:] for path in digests}
        if news := {path: (*last[path], digest) for path, digest in digests.items() if last[path] != (digest,)}:
            self._known |= news
            replace_private(self._path, msgspec.json.encode(self._known))

    def _read(self) -> dict[str, tuple[str, ...]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, tuple[str, ...]])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}


class Marks(msgspec.Struct, frozen=True):
    """How far the files of a loop are."""

    done: int = 0  # the last fact whose views are all written, or could not be
    logs: dict[str, live_file.Mark] = {}  # where each ended then; none of them once something more was heard
    lines: dict[str, json_lines.Mark] = {}


def marks_of(folder: Path) -> Marks:
    try:
        return msgspec.json.decode((folder / MARKS).read_bytes(), type=Marks)
    except FileNotFoundError:
        return Marks()
    except (OSError, msgspec.DecodeError):
        return Marks(done=sys.maxsize)  # unknown: rather a gap than everything twice


class Logs:
    """The files that grow, and how far each of them has come.

    Marks are noted before the views of a fact are written, and after. So a fact that is not done is told again after a
    crash, and what of it is in a log already, behind its mark, is not written twice. A file of JSON lines says itself
    which facts it has; it is made again where lines are gone, or could not be written.
    """

    def __init__(self, folder: Path, workspace: Path | str, logs: Sequence[LogFile]) -> None:
        self._folder, root = folder, str(workspace)
        self._noted = known = marks_of(folder)
        self._done = known.done
        self._pages = 0  # of the file of marks
        with suppress(OSError):
            self._pages = (folder / MARKS).stat().st_size // _PAGE
        self.live: dict[str, LiveFile] = {}
        self._lines: dict[str, JsonLines] = {}
        for log in logs:
            if log.is_json:
                self._lines[log.path] = JsonLines(root, log.path, known.lines.get(log.path, json_lines.Mark()))
            else:
                to = log.rotation
                self.live[log.path] = LiveFile(root, log.path, to.bytes, to.days, to.files, known.logs.get(log.path))
        self._held: dict[str, float] = {}  # when a file of lines that cannot be written is tried again
        self._odd: set[str] = set()
        self._fact = (0, False)

    def __bool__(self) -> bool:
        return bool(self.live or self._lines)

    @property
    def lines(self) -> Sequence[str]:
        """The files of JSON lines."""
        return [*self._lines]

    def fit(self, path: str, last: int) -> None:
        """Is this one as its mark says?"""
        if not self._is_held(path):
            with self._holding(path):
                self._lines[path].fit(last)

    def since(self, last: int) -> int:
        """The fact after which something is missing; the last one if nothing is."""
        if self._done > last + 1:  # a power cut lost facts
            self._done = last
        lines = (file.mark.seq for path, file in self._lines.items() if not self._is_held(path))
        return min(self._done, last, *lines)

    def is_done(self, seq: int) -> bool:
        """Is all that this fact is to say written, but perhaps for lines of JSON?"""
        return seq <= self._done

    def begin(self, seq: int, *, again: bool = False) -> None:
        """What is added from here on is of this fact; `again`: it may have been added before. 0 is for no fact."""
        self._fact = (seq, again)
        if seq > self._done or not seq:
            self._note({}, heard=not seq)

    def add(self, line: Log) -> bool:
        """Write a line, unless one before it is missing; True, once, if the file has lines that are not from us."""
        assert isinstance(line.more, dict)  # noqa: S101 - only such a file is asked for it
        file, (seq, again) = self._lines[line.path], self._fact
        if self._is_held(line.path) or (seq and file.mark.seq != seq - 1):
            return False
        with self._holding(line.path):
            file.add(line.more, line.record, seq=seq, again=again)
        is_news = file.is_odd and line.path not in self._odd
        self._odd |= {line.path} if is_news else set()
        return is_news

    def end(self) -> None:
        """All views of the fact are written, or could not be."""
        seq, taken = self._fact[0], dict[str, json_lines.Mark]()
        for path, file in self._lines.items():
            if file.mark.seq == seq - 1 and not self._is_held(path):
                file.took(seq)
                taken[path] = file.mark
        self._done = max(seq, self._done)
        self._note(taken)

    def _note(self, taken: dict[str, json_lines.Mark], *, heard: bool = False) -> None:
        """Without room for it, the last marks stay; a file of JSON lines says itself how far it has come.

        Only the mark of one that has just taken all of a fact is noted: another may be in the middle of one.
        """
        logs = {} if heard else {path: file.mark for path, file in self.live.items()}
        marks = Marks(self._done, logs, self._noted.lines | taken)
        if marks != self._noted:
            self._noted, data = marks, msgspec.json.encode(marks)
            pages = max(self._pages, len(data) // _PAGE + 1)
            path, data = self._folder / MARKS, data.ljust(pages * _PAGE)
            with suppress(OSError):
                if pages > self._pages:
                    replace_private(path, data)
                    self._pages = pages
                    return
                # In place, because it is done twice for every fact: one write. If a power cut damages it, nothing is
                # told again.
                with open_fd(path, os.O_WRONLY | os.O_NOFOLLOW) as fd:
                    os.write(fd, data)

    def _is_held(self, path: str) -> bool:
        return time.monotonic() < self._held.get(path, 0.0)

    @contextmanager
    def _holding(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._held[path] = time.monotonic() + _PATIENCE
            raise
