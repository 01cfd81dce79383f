"""Read the log of a repository from its end: a log of 1 GB costs no more than a short one."""

import mmap
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP, ENOTDIR
from pathlib import Path

from bydawn.core import prompt
from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.dialects.codex_autorunner import log
from bydawn.dialects.codex_autorunner.config import LOG, NAME
from bydawn.operations import outputs
from bydawn.system import live_file
from bydawn.system.paths import open_regular

_START = re.compile(rb"^=== run (\d{1,12}) start ===\r?$", re.MULTILINE)
_AT_ONCE = 1 << 20
_PER_CHARACTER = 40  # bytes of the log for a character of output: short lines have long stamps

Data = bytes | mmap.mmap


def block(root: Path, run: int | None = None, tail: int | None = None) -> Iterator[str]:
    """The lines of a run, or of the last one; nothing where there has been none."""
    with _opened(root) as data:
        begin = _start_of(data, run)
        if begin < 0 and run is not None:
            raise _unknown(data, run)
        lines = _lines(data, begin) if begin >= 0 else iter(())
        yield from lines if tail is None else deque(lines, maxlen=tail)


def last_run(root: Path) -> int | None:
    """The number of the last run that the log knows; None if it cannot be read."""
    with suppress(UserError), _opened(root) as data:
        return _last(data)
    return None


def last_lines(root: Path, count: int) -> list[str]:
    with _opened(root):  # refuses what is not a regular file
        return [_shown(line) for line in outputs.last_lines(root / LOG, count)]


def last_output(root: Path, run: int, size: int) -> str:
    """What the last run said, without stamps: its last characters, from the beginning of a line."""
    with _opened(root) as data:
        begin = max(0, len(data) - size * _PER_CHARACTER - _AT_ONCE)
        rows = data[begin:].decode(errors="replace").split("\n")[1 if begin else 0 :]
    found = [log.seen(row) for row in rows]
    starts = [number for number, row in enumerate(found) if row and row.marker == "start"]
    if starts and (last := found[starts[-1]]) and last.run != run:
        return ""
    mine = [row for row, line in zip(rows, found, strict=True) if line is not None and line.run == run]
    return prompt.last_output(plain(log.spoken(mine[-size:] if size else ())), size)


def follow(root: Path) -> Iterator[str | None]:
    """Each line as it is added from now on; None now and then, so that a caller can stop."""
    return (None if line is None else _shown(line) for line in live_file.follow(root, LOG))


@contextmanager
def _opened(root: Path) -> Iterator[Data]:
    try:
        with open_regular(root, LOG) as file:
            if file.seek(0, 2) == 0:
                yield b""
            else:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    yield data
    except FileNotFoundError:
        yield b""
    except OSError as error:
        hint = f"move it away; `{NAME} run` begins another"
        cause = "a link is in its place" if error.errno in (ELOOP, ENOTDIR) else error.strerror or str(error)
        raise UserError(f"{LOG} cannot be read", cause=cause, hint=hint) from None


def _start_of(data: Data, run: int | None = None) -> int:
    """Where a run starts, or the last one; -1 if there is none."""
    end, wanted = len(data), b"=== run " if run is None else log.start(run).encode()
    while (found := data.rfind(wanted, 0, end)) >= 0:
        if _START.match(data, found) and _begins(data, found):
            return found
        end = found
    return -1


def _begins(data: Data, position: int) -> bool:
    """Is this the beginning of a line? What an agent prints is never there."""
    return position == 0 or data[position - 1 : position] == b"\n"


def _lines(data: Data, begin: int) -> Iterator[str]:
    """From a start marker to the end of that run, or to what follows it."""
    position = begin
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        line = _shown(data[position:end])
        found = log.seen(line)
        if position > begin and found and found.marker == "start":
            return
        yield line
        if found and found.marker == "end":
            return
        position = end + 1


def _shown(line: bytes) -> str:
    return plain(line.decode(errors="replace")).rstrip()


def _last(data: Data) -> int | None:
    found = _START.match(data, begin) if (begin := _start_of(data)) >= 0 else None
    return int(found[1]) if found else None


def _unknown(data: Data, run: int) -> UserError:
    what, hint = f"there is no run {run}", f"`{NAME} log` shows the last one"
    if (first := _START.search(data)) is None:
        return UserError(what, cause="nothing has run here yet", hint=f"`{NAME} run`")
    return UserError(what, cause=f"{LOG} has runs {int(first[1])} to {_last(data)}", hint=hint)
