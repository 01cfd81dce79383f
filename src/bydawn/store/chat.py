"""The chat about a loop on disk: a line for each change of a turn, and a lock: there is one question at a time."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from bydawn.core.chat import Turn, TurnState
from bydawn.core.redact import rewritten
from bydawn.store import lock
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import CHAT, Lock, Owned
from bydawn.system.paths import open_fd
from bydawn.system.writing import sync

_CUT = "bydawn ended before the answer was there"
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_TURNS = msgspec.json.Decoder(Turn)


def append(folder: LoopFolder, turn: Turn, hide: Callable[[str], str]) -> Turn:
    """Write a turn down as it is now, safe from a power cut; returns it as written, without secrets.

    The caller holds the chat's lock.
    """
    turn = rewritten(turn, hide)
    is_new = not folder.chat.exists()
    with open_fd(folder.chat, _APPEND) as fd:
        end = os.fstat(fd).st_size
        # What a power cut left of a line is not a turn; the next one begins on a line of its own.
        begin = b"\n" if end and os.pread(fd, 1, end - 1) != b"\n" else b""
        data = begin + msgspec.json.encode(turn) + b"\n"
        if os.write(fd, data) < len(data):
            os.ftruncate(fd, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.chat))
        os.fsync(fd)
    if is_new:
        sync(folder.path)
    return turn


def turns(folder: LoopFolder) -> list[Turn]:
    """All turns, the latest last. One that no process answers any more was interrupted."""
    found = _read(folder)
    left = {turn.id for turn in found if turn.state is TurnState.ASKED and not _is_asked(folder, turn)}
    if left:
        found = _read(folder)  # its end was written between our two looks, or never will be
    killed = {"state": TurnState.INTERRUPTED, "detail": _CUT}
    return [replace(turn, **killed) if turn.id in left and turn.state is TurnState.ASKED else turn for turn in found]


def _is_asked(folder: LoopFolder, turn: Turn) -> bool:
    """Is a process still at it?"""
    return lock.is_held(folder.chat_lock) and lock.signature(folder.chat_lock).get("run") == turn.id


def _read(folder: LoopFolder) -> list[Turn]:
    """The last line about each turn counts. Half a line is none, and one that cannot be read is left out."""
    found: dict[str, Turn] = {}
    with suppress(FileNotFoundError), folder.chat.open("rb") as file:
        for line in file:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                if line.endswith(b"\n"):
                    turn = _TURNS.decode(line)
                    found[turn.id] = turn
    return [*found.values()]


# -- processes ---------------------------------------------------------------------------------------------------------


def cookie(uid: str, turn: Turn) -> str:
    """What marks the processes of a question; a run of the loop must not take them for a part of itself."""
    return f"{uid}-{CHAT}{turn.id}"


def end_leftovers(folder: LoopFolder, uid: str, held: Lock | None = None) -> None:
    """End what is left of a question whose processes of ours were killed; nothing if one is being asked.

    `held` is the chat's lock, if the caller has it.
    """
    said = lock.signature(folder.chat_lock)
    if not said or "left" in said:
        return
    from bydawn.system import kernel  # it is rarely needed

    try:
        mine = held or Lock.take(folder.chat_lock, patience=0)
    except Owned:
        return
    place = LoopFolder(folder.state_folder.asked / said.get("run", "none"))
    if trace := lock.trace_in(folder.chat_lock, f"{uid}-{CHAT}", place.rounds):
        kernel.sweep(trace)
    shutil.rmtree(place.path, ignore_errors=True)  # not masked yet
    mine.sign_off()
    if held is None:
        mine.release()
