"""When did the worker of a loop last show that it is alive? A file's time, and no fact."""

import os
import time
from contextlib import suppress

from bydawn.core.values import STALE
from bydawn.store.folder import LoopFolder


def touch(folder: LoopFolder) -> None:
    """The worker of this loop is alive. A full disk must not end it: then the file is old, which is what it is for."""
    with suppress(OSError):
        os.close(os.open(folder.heartbeat, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.utime(folder.heartbeat)


def age(folder: LoopFolder) -> float | None:
    """Seconds since the last sign of life; None if there never was one: an older version gave none."""
    try:
        return max(0.0, time.time() - os.stat(folder.heartbeat).st_mtime)
    except OSError:
        return None


def is_stale(folder: LoopFolder) -> bool:
    """Has a worker that holds its lock been silent for too long? It hangs, or the machine has just woken up."""
    seconds = age(folder)
    return seconds is not None and seconds > STALE
