"""Records that wait in a workspace, one file each. Agents write there; nothing in it can do more than record."""

import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from heapq import nsmallest
from itertools import islice
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import EventRecorded, IterationRecorded
from bydawn.system.paths import NEW_FILE, open_fd, open_folder, regular_at
from bydawn.system.writing import replacing, write_all

Claim = EventRecorded | IterationRecorded

AT_MOST = 64 << 10  # bytes of one record
WAITING = 1_000
_AT_ONCE = 16
_LOOKED_AT = 4 * WAITING  # names; if there are more, it takes longer
_BAD = "bad"
_NAME = re.compile(r"[0-9]{1,20}-[0-9A-Za-z-]{1,64}\.json")
_CLAIMS = msgspec.json.Decoder(Claim)


def post(folder: Path, fact: Claim) -> Path:
    """Leave a record for a process that can write to the ledger. The path is absolute and leads through no link."""
    data = msgspec.json.encode(fact)
    if len(data) > AT_MOST:
        raise UserError(
            "the record is too long",
            cause=f"it has {len(data):,} bytes, and {AT_MOST:,} are allowed",
            hint="put long texts into a file, and name the file as an artifact",
        )
    name = f"{time.time_ns()}-{fact.record}.json"
    if not _NAME.fullmatch(name):
        raise ValueError(f"{fact.record!r} cannot be the id of a record")
    try:
        with _opened(folder, make=True) as fd:
            if len(_names(fd, WAITING)) >= WAITING:
                raise UserError(
                    f"{WAITING:,} records are waiting in {folder}",
                    cause="no command outside the sandbox has taken them",
                    hint="run the same command outside the sandbox: that takes them",
                )
            with replacing(name, f".{name}.tmp", NEW_FILE, 0o600, folder=fd) as file:
                write_all(file, data)
    except OSError as error:
        cause, hint = str(error.strerror), "check the folder; it must not be a link"
        raise UserError(f"nothing can be recorded in {folder}", cause=cause, hint=hint) from None
    return folder / name


def is_empty(folder: Path) -> bool:
    """Is there nothing to take, nor anything to set aside?"""
    with suppress(OSError), _opened(folder) as fd:
        return not _names(fd, 1)
    return True


class Drop:
    """The taker's side. It holds the loop's lock."""

    def __init__(self, workspace: Path, path: str, say: Callable[[str], None] = lambda _: None) -> None:
        self.folder = workspace / path
        self._say = say
        self._said = False
        self._names: dict[str, str] = {}  # of the files that were taken, by record
        self._stuck: set[str] = set()

    def prepare(self) -> None:
        """Make the folder, so that it can be watched."""
        with suppress(OSError), _opened(self.folder, make=True):
            pass

    def take(self, known: Collection[str] = ()) -> list[Claim]:
        """The next records, oldest first. What cannot be one is set aside; one that is known already is removed."""
        found: dict[str, Claim] = {}
        with suppress(OSError), _opened(self.folder) as fd:
            for _ in range(WAITING // _AT_ONCE):  # until there is a record among them
                names = _names(fd, _AT_ONCE, self._stuck)
                for name in names:
                    fact = _read(fd, name)
                    if fact is None:
                        self._set_aside(fd, name)
                    elif fact.record in known or fact.record in found:
                        _removed(fd, name)
                    else:
                        found[fact.record], self._names[fact.record] = fact, name
                if found or not names:
                    break
        return [*found.values()]

    def done(self, fact: Claim) -> None:
        """The record is in the ledger."""
        name = self._names.pop(fact.record)
        with suppress(OSError), _opened(self.folder) as fd:
            _removed(fd, name)

    def _set_aside(self, fd: int, name: str) -> None:
        try:
            with suppress(FileExistsError):
                os.mkdir(_BAD, 0o700, dir_fd=fd)
            with open_fd(_BAD, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, folder=fd) as bad:
                os.rename(name, name, src_dir_fd=fd, dst_dir_fd=bad)
        except FileNotFoundError:
            return  # its author took it back
        except OSError:
            if not _removed(fd, name):
                self._stuck.add(name)
        if not self._said:
            self._said = True
            self._say(f"{self.folder / name} is not a record; what is not goes to {_BAD}/ there and counts for nothing")


@contextmanager
def _opened(folder: Path, *, make: bool = False) -> Iterator[int]:
    with (
        open_folder("/", folder.parts[1:], make=make, mode=0o700) as through,
        open_fd(".", os.O_RDONLY | os.O_DIRECTORY, folder=through) as fd,
    ):
        yield fd


def _names(fd: int, most: int, without: Collection[str] = ()) -> list[str]:
    """The first names in order, whatever the size of the folder."""
    with os.scandir(fd) as found:
        names = (each.name for each in islice(found, _LOOKED_AT))
        return nsmallest(most, (name for name in names if _NAME.fullmatch(name) and name not in without))


def _read(fd: int, name: str) -> Claim | None:
    """One record; None for anything else."""
    try:
        with regular_at(fd, name) as file:
            data = os.read(file, AT_MOST + 1)
        if len(data) <= AT_MOST:
            fact: Claim = _CLAIMS.decode(data)
            return fact if name.endswith(f"-{fact.record}.json") else None
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        pass
    return None


def _removed(fd: int, name: str) -> bool:
    with suppress(OSError):
        os.unlink(name, dir_fd=fd)
        return True
    return False
