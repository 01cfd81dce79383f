"""Read the log of a session from its end, and follow it, also when it is moved away and a new one begins."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.dialects.rloop.config import LOG, NAME
from bydawn.operations import outputs
from bydawn.operations.dialects.rloop.sessions import Session
from bydawn.store.lock import is_held
from bydawn.system import kernel
from bydawn.system.paths import open_regular

SHOWN = 100  # lines
_AT_ONCE = 1 << 20


def last_lines(session: Session, count: int = SHOWN) -> list[str]:
    try:
        with open_regular(Path(session.folder), LOG):  # refuses what is not a regular file
            return [_shown(line) for line in outputs.last_lines(Path(session.folder) / LOG, count)]
    except FileNotFoundError:
        gone = not Path(session.folder).is_dir()
        raise UserError(
            f"{session.name} has no log",
            cause=f"the folder {session.folder} is gone" if gone else f"there is no file {LOG} in {session.folder}",
            hint=f"`{NAME} status` says how it stands",
        ) from None
    except OSError as error:
        cause, hint = error.strerror or str(error), "move it away; the session begins another"
        raise UserError(f"{session.folder}/{LOG} cannot be read", cause=cause, hint=hint) from None


def follow(session: Session) -> Iterator[str]:
    """Each line as it is added, from the last ones on, until the loop stops."""
    root, watch, alive = Path(session.folder), kernel.Watch(), True
    watch.add(str(root / LOG.rpartition("/")[0]))
    with open_regular(root, LOG) as file:
        fd, rest = os.dup(file.fileno()), b""
        shown = sum(len(each) + 1 for each in outputs.last_lines(root / LOG, SHOWN))
        position = max(0, os.fstat(fd).st_size - shown)
    try:
        while True:
            alive = alive and _is_alive(session)  # asked first: what it wrote before its end is read below
            new = _moved(root, fd)
            while part := os.pread(fd, _AT_ONCE, position):
                position += len(part)
                *lines, rest = (rest + part).split(b"\n")
                yield from map(_shown, lines)
            if new is not None:
                os.close(fd)
                fd, position, rest = new, 0, b""
            elif not alive:
                return
            else:
                watch.wait(0.5)
    finally:
        os.close(fd)


def _moved(root: Path, fd: int) -> int | None:
    """The file that has taken the place of this one, if one has."""
    with suppress(OSError), open_regular(root, LOG) as there:
        if not os.path.samestat(os.fstat(there.fileno()), os.fstat(fd)):
            return os.dup(there.fileno())
    return None


def _is_alive(session: Session) -> bool:
    return bool(session.standing and is_held(session.standing.folder.lock))


def _shown(line: bytes) -> str:
    return plain(line.decode(errors="replace")).rstrip()
