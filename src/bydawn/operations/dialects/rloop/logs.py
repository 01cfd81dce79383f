"""Read the log of a session from its end, and follow it, also when it is moved away and a new one begins."""

from collections.abc import Iterator
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.dialects.rloop.config import LOG, NAME
from bydawn.operations import outputs
from bydawn.operations.dialects.rloop.sessions import Session
from bydawn.store.lock import is_held
from bydawn.system import live_file
from bydawn.system.paths import open_regular

SHOWN = 100  # lines


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
    """The last lines, and each that is added, until the loop stops."""
    alive = True
    for line in live_file.follow(session.folder, LOG, SHOWN):
        if line is not None:
            yield _shown(line)
        elif not alive:
            return
        else:
            alive = _is_alive(session)  # one more look: it may have written before its end


def _is_alive(session: Session) -> bool:
    return is_held(session.standing.folder.lock)


def _shown(line: bytes) -> str:
    return plain(line.decode(errors="replace")).rstrip()
