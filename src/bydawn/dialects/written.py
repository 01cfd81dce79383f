"""What a loop has written for people, by digest, kept in its own folder, out of an agent's reach."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn.core.digests import blake2b
from bydawn.core.layout import APPENDED, LINES, WRITTEN
from bydawn.dialects.seam import Line
from bydawn.system.json_lines import JsonLines, Mark
from bydawn.system.paths import open_fd
from bydawn.system.writing import replace_private, write_private

_CHUNK = 1 << 20
_PAGE = 4096
_PATIENCE = 60.0  # seconds until a file of lines that cannot be written is tried again


def digest_of(fd: int, begin: int = 0, length: int | None = None) -> str:
    """The digest of an open file, or of a part of it."""
    found, end = blake2b(digest_size=16), None if length is None else begin + length
    while part := os.pread(fd, _CHUNK if end is None else min(_CHUNK, end - begin), begin):
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
        """Is anything known? Not of a new loop, nor of one that an older version wrote for."""
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
            found = msgspec.json.decode(self._path.read_bytes(), type=dict[str, tuple[str, ...]] | list[str])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}
        return found if isinstance(found, dict) else {}  # an older version listed paths without digests


class Part(msgspec.Struct, frozen=True, array_like=True):
    """What was appended to a file last. Older versions noted no length and no digest."""

    round: int
    begin: int
    inode: int
    length: int = 0
    digest: str = ""


class Appended:
    """The last part of every file that grows, noted before it is appended."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / APPENDED

    def last(self, path: str) -> Part | None:
        return self._known().get(path)

    def note(self, path: str, part: Part) -> None:
        write_private(self._path, msgspec.json.encode({**self._known(), path: part}))

    def _known(self) -> dict[str, Part]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Part])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}


class Lines:
    """The files of JSON lines, and up to which fact each of them has all of its lines.

    A mark is noted after the lines of a fact, so a crash may come in between: then the file itself tells.
    """

    def __init__(self, folder: Path, workspace: Path | str, paths: Sequence[str]) -> None:
        self._path = folder / LINES
        self._known = self._read()
        self._files = {path: JsonLines(workspace, path, self._known.get(path, Mark())) for path in paths}
        self._held: dict[str, float] = {}  # when a file that cannot be written is tried again
        self._odd: set[str] = set()
        self._fact = (0, False)

    @property
    def paths(self) -> Sequence[str]:
        return [*self._files]

    @property
    def done(self) -> int:
        """The last fact whose views are all written, those of other kinds, too."""
        return self._known.get("", Mark()).seq

    def fit(self, path: str, last: int) -> None:
        """Is it as its mark says?"""
        if not self._is_held(path):
            with self._holding(path):
                self._files[path].fit(last)

    def since(self, last: int) -> int:
        """The fact after which something is missing; the last one if nothing is."""
        return min((file.mark.seq for path, file in self._files.items() if not self._is_held(path)), default=last)

    def begin(self, seq: int, *, again: bool = False) -> None:
        """What is added from here on is of this fact; `again`: it may have been added before. 0 is for no fact."""
        self._fact = (seq, again)

    def add(self, line: Line) -> bool:
        """Write it, unless something before it is missing; True, once, if the file has lines that are not from us."""
        file, (seq, again) = self._files[line.path], self._fact
        if self._is_held(line.path) or (seq and file.mark.seq != seq - 1):
            return False
        with self._holding(line.path):
            file.add(line.value, line.record, seq=seq, again=again)
        is_news = file.is_odd and line.path not in self._odd
        self._odd |= {line.path} if is_news else set()
        return is_news

    def end(self) -> None:
        """All views of the fact are written, or could not be."""
        seq = self._fact[0]
        for path, file in self._files.items():
            if file.mark.seq == seq - 1 and not self._is_held(path):
                file.took(seq)
        if self._files:
            self._known = {path: file.mark for path, file in self._files.items()} | {"": Mark(max(seq, self.done))}
            data = msgspec.json.encode(self._known)
            # In place, because it is done for every fact: one write of whole pages. If it is damaged or cannot be
            # written, the files themselves say how far they have come.
            with suppress(OSError), open_fd(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW) as fd:
                os.write(fd, data.ljust(len(data) // _PAGE * _PAGE + _PAGE))

    def _is_held(self, path: str) -> bool:
        return time.monotonic() < self._held.get(path, 0.0)

    @contextmanager
    def _holding(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._held[path] = time.monotonic() + _PATIENCE
            raise

    def _read(self) -> dict[str, Mark]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Mark])
        except (OSError, msgspec.DecodeError):
            return {}
