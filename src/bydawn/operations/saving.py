"""Put a text into a person's file, unless something else has changed that file meanwhile."""

import os
from pathlib import Path

from bydawn.core.digests import sha256
from bydawn.core.errors import UserError
from bydawn.store.folder import StateFolder
from bydawn.store.lock import Lock, Owned
from bydawn.system.writing import make_private, replace_unchanged

NONE = "none"  # the version of a file that does not exist
_DIGITS = 12
_PATIENCE = 10.0  # seconds; another save takes no longer than the disk does


def version_of(data: bytes | None) -> str:
    """Tells one text of a file from all others."""
    return NONE if data is None else sha256(data).hexdigest()[:_DIGITS]


def put(root: StateFolder, path: Path, data: bytes, before: bytes | None) -> bool:
    """Replace a file that is what it was `before`; was it replaced? Of several people who save, the first one wins.

    The path is a real one. Two loops can have the same file, so its lock belongs to no loop.
    """
    make_private(root.documents)
    try:
        held = Lock.take(_lock(root, path), _PATIENCE)
    except Owned:
        cause = "another process has been saving it for a while; nothing was changed"
        raise UserError(f"{path.name} cannot be saved now", cause=cause, hint="try again in a moment") from None
    try:
        if not replace_unchanged(path, data, before):
            return False
        os.pwrite(held.fd, version_of(data).encode(), 0)
        return True
    finally:
        held.release()


def last_saved(root: StateFolder, path: Path) -> str:
    """The version that a person saved last, through us; empty if none did."""
    try:
        return _lock(root, path).read_text()
    except OSError:
        return ""


def _lock(root: StateFolder, path: Path) -> Path:
    return root.documents / sha256(os.fsencode(path)).hexdigest()[:16]
