"""What a loop has written for people elsewhere, known in its own folder, out of an agent's reach."""

from pathlib import Path

import msgspec

from bydawn.core.layout import APPENDED, WRITTEN
from bydawn.system.writing import write_private


class Appended:
    """Where each file ended before a round's part was added."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / APPENDED

    def of(self, path: str, round_: int) -> tuple[int, int] | None:
        """Where it ended and which file it was, if this round's part has been begun."""
        number, size, inode = self._known().get(path, (0, 0, 0))
        return (size, inode) if number == round_ else None

    def last(self, path: str) -> tuple[int, int]:
        """The round that was added last, and where; 0 if none was."""
        number, size, _ = self._known().get(path, (0, 0, 0))
        return number, size

    def note(self, path: str, round_: int, size: int, inode: int) -> None:
        write_private(self._path, msgspec.json.encode({**self._known(), path: (round_, size, inode)}))

    def _known(self) -> dict[str, tuple[int, int, int]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, tuple[int, int, int]])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}


class Wrote:
    """Which files it has written; one that it has not may still be what another loop left."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / WRITTEN
        self._noted: set[str] | None = None

    def __contains__(self, path: str) -> bool:
        return path in self._known()

    def note(self, path: str) -> None:
        if path not in self._known():
            self._known().add(path)
            write_private(self._path, msgspec.json.encode(sorted(self._known())))

    def _known(self) -> set[str]:
        if self._noted is None:
            try:
                self._noted = msgspec.json.decode(self._path.read_bytes(), type=set[str])
            except (FileNotFoundError, msgspec.DecodeError):
                self._noted = set()
        return self._noted
