"""The large files of a loop's rounds: one folder per round, referred to by facts, never in the ledger."""

import os
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.core.layout import LOG, REPLY, ROUNDS, STDOUT, TIMES
from bydawn.core.loop import Loop
from bydawn.core.redact import Secrets
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.store.folder import LoopFolder
from bydawn.system.paths import open_fd
from bydawn.system.tail import LONGEST_LINE
from bydawn.system.writing import replace_private, sync, write_private

_CHUNK = 1 << 20
_READ_WHOLE = 4 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_CONTEXT = 16  # bytes: is this the beginning of a word?


class Bulk(msgspec.Struct, frozen=True):
    """How much room the output of a loop takes."""

    files: int = 0
    bytes: int = 0


def bulk(folder: LoopFolder, *, remove: bool = False) -> Bulk:
    """Prompts and all that agents, checks and hooks printed, without replies; never anything behind a link."""
    files = size = 0
    with open_fd(folder.path, _FOLDER) as loop:
        for place, name in _printed(loop):
            about = os.lstat(name, dir_fd=place)
            if stat.S_ISREG(about.st_mode):
                files += 1
                size += about.st_size if about.st_nlink == 1 else 0  # a reply may be another name of it
                if remove:
                    os.unlink(name, dir_fd=place)
    return Bulk(files, size)


def _printed(loop: int) -> Iterator[tuple[int, str]]:
    """The folder and the name of each such file. What cannot be opened as a folder is a link, or gone."""
    if LOG in os.listdir(loop):
        yield loop, LOG
    with suppress(OSError), open_fd(ROUNDS, _FOLDER, folder=loop) as rounds:
        for number in filter(str.isdigit, os.listdir(rounds)):
            with suppress(OSError), open_fd(number, _FOLDER, folder=rounds) as one:
                yield from ((one, name) for name in os.listdir(one) if name != REPLY)


class Rounds:
    """The files of a loop's rounds; their names are in `core/layout.py`."""

    def __init__(self, folder: LoopFolder, secrets: Secrets) -> None:
        self._folder = folder
        self._secrets = secrets

    def folder(self, round_: int) -> str:
        """The round's folder, created when first needed."""
        path = self._folder.round(round_)
        if not path.is_dir():
            path.parent.mkdir(mode=0o700, exist_ok=True)  # and no more: a loop whose folder is gone has ended
            path.mkdir(mode=0o700, exist_ok=True)
        return str(path)

    def write(self, round_: int, name: str, text: str | bytes) -> str:
        """Write a file of a round and return its path."""
        path = os.path.join(self.folder(round_), name)  # noqa: PTH118 - on the path of every round
        data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        if name != REPLY or not self._is_output(round_, path, data):
            write_private(path, data)
        return path

    def _is_output(self, round_: int, path: str, reply: bytes) -> bool:
        """Is the reply all that the program printed? Then both are one file with two names."""
        output = self._folder.round_file(round_, STDOUT)
        with suppress(OSError), open_fd(output, os.O_RDONLY | os.O_NOFOLLOW) as fd:
            if reply and os.read(fd, len(reply) + 2).removesuffix(b"\n") == reply:
                os.link(output, path, follow_symlinks=False)
                return True
        return False

    def tail(self, round_: int, name: str, size: int) -> str:
        """The end of a file of a round, as plain text."""
        return plain(self._end(round_, name, size)[0])

    def last_lines(self, round_: int, name: str, size: int) -> tuple[list[bytes], bool]:
        """The whole lines in the last bytes of a file of a round; is anything before them?"""
        data, is_cut = self._end(round_, name, size)
        return (data.partition(b"\n")[2] if is_cut else data).splitlines(), is_cut

    def _end(self, round_: int, name: str, size: int) -> tuple[bytes, bool]:
        with suppress(FileNotFoundError), self._folder.round_file(round_, name).open("rb") as file:
            begin = file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size), begin > 0
        return b"", False

    def pieces(self, round_: int, name: str) -> Iterator[str] | None:
        """A file of a round, piece by piece, as text; None if it is too long to be read for every check."""
        path = self._folder.round_file(round_, name)
        if path.is_file() and path.stat().st_size > _READ_WHOLE:
            return None
        return self._pieces(path)

    def _pieces(self, path: Path) -> Iterator[str]:
        with suppress(FileNotFoundError), path.open(errors="replace") as file:
            while piece := file.read(_CHUNK):
                yield piece

    def lines(self, round_: int, name: str) -> Iterator[bytes]:
        """A file of a round, line by line, without lines too long to be an event."""
        with suppress(FileNotFoundError), self._folder.round_file(round_, name).open("rb") as file:
            whole = True
            while part := file.readline(LONGEST_LINE):
                if whole and part.endswith(b"\n"):
                    yield part[:-1]
                whole = part.endswith(b"\n")

    def unrecorded(self, loop: Loop, state: LoopState) -> float:
        """Seconds of work between the last recorded time and the kill of the process, judging by its files."""
        if not state.runs or state.stopped or not state.clocked_at:
            return 0.0
        seconds = min(self._last_sign(state.round), time.time()) - state.clocked_at.timestamp()
        return min(max(0.0, seconds), loop.timeouts.round or seconds)  # the wall clock may have jumped in between

    def _last_sign(self, round_: int) -> float:
        """When a file of a round was last written, in seconds of the wall clock; 0 if there is none."""
        folder = self._folder.round(round_)
        return max((entry.stat().st_mtime for entry in os.scandir(folder)), default=0.0) if folder.is_dir() else 0.0

    def keep_list(self, data: bytes) -> None:
        """As exact and as compressed as it is in a snapshot."""
        replace_private(self._folder.last_list, zlib.compress(data))
        sync(self._folder.last_list)

    def last_list(self) -> bytes:
        with suppress(OSError, zlib.error):  # none, or a power cut came before it was synced
            return zlib.decompress(self._folder.last_list.read_bytes())
        return b""

    def mask(self, round_: int, *names: str) -> None:
        """Overwrite the secrets in these files of a round, or in all of them, in place; lengths stay the same."""
        folder = self._folder.round(round_)
        for name in names or (os.listdir(folder) if folder.is_dir() else ()):
            if name == TIMES:
                continue  # only figures, and none of them may be taken for a secret
            with suppress(FileNotFoundError), open_fd(folder / name, os.O_RDWR | os.O_NOFOLLOW) as fd:
                self._mask(fd)

    def _mask(self, fd: int) -> None:
        """Chunk by chunk, each with what comes before it and as much of what follows as a secret can be long."""
        for position in range(0, os.fstat(fd).st_size, _CHUNK):
            before = min(position, _CONTEXT)
            chunk = bytearray(os.pread(fd, before + _CHUNK + self._secrets.longest, position - before))
            for begin, end in self._secrets.mask(chunk, before, before + _CHUNK):
                os.pwrite(fd, chunk[begin:end], position - before + begin)

    def last(self) -> int:
        """The highest number with a folder."""
        root = self._folder.rounds
        names = os.listdir(root) if root.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=0)
