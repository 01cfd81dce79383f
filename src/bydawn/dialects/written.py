"""What a loop has written for people, by digest, kept in its own folder, out of an agent's reach."""

import os
from pathlib import Path

import msgspec

from bydawn.core.digests import blake2b
from bydawn.core.layout import APPENDED, WRITTEN
from bydawn.system.writing import replace_private, write_private

_CHUNK = 1 << 20


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
