"""What has to be right before anything is done: who asks, in which folder, and whose lock it is."""

import os
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE, Loop
from bydawn.core.text import plain
from bydawn.store import lock
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing, reference
from bydawn.system import kernel


def is_inside_a_round() -> bool:
    """Does an agent or a hook of a loop ask, or something that they left behind?"""
    marked = (kernel.has_variable(pid, COOKIE) or kernel.is_worker(pid) for pid in kernel.ancestors())
    return bool(os.environ.get(COOKIE)) or any(marked)


def refuse_inside_a_round() -> None:
    """An agent may look and leave notes; it may not start, resume or repair loops, nor trust or set anything."""
    if is_inside_a_round():
        raise UserError(
            "this cannot be done from inside a round",
            cause="an agent of a loop, or something that it left behind, is asking",
            hint="a person has to do it, in a terminal of their own",
        )


def checked_workspace(path: Path) -> Path:
    """The real path of a folder that is there."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"there is no folder {path}", cause=_reason(error), hint="give an existing one with -C"
        ) from None
    if not real.is_dir():
        raise UserError(f"{path} is not a folder", hint="give a folder with -C")
    try:
        str(real).encode()
    except UnicodeEncodeError:
        raise UserError("the folder's name is not UTF-8", cause=ascii(str(real)), hint="rename it") from None
    return real


def gone(standing: Standing) -> UserError | None:
    """What is wrong if a loop's folder is not there any more: no flag can name another, it works in that one alone."""
    loop = standing.loop
    if Path(loop.workspace).is_dir():
        return None
    return UserError(
        f"the workspace of {loop.id} is gone: {loop.workspace}",
        cause="it was removed, renamed or not mounted; a loop stays in the folder that it was started in",
        hint=f"bring it back (or mount it), then `bydawn resume {standing.reference}`; or start a new loop elsewhere",
    )


def user() -> str:
    """Who is at the keyboard, for the record."""
    return plain(os.environ.get("USER") or os.environ.get("LOGNAME") or _by_number() or "somebody")


def _by_number() -> str:
    """The name that the system has for us: cron, containers and services set no variable."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def take_lock(folder: LoopFolder, loop: Loop) -> lock.Lock:
    """The loop's lock, or an error that names its owner."""
    try:
        return lock.Lock.take(folder.lock)
    except lock.Owned as owned:
        name = reference(folder, loop)
        raise UserError(
            f"another worker owns the loop {loop.id}",
            cause=f"it is {owned}",
            hint=f"watch it with `bydawn logs {name} -f`, or end it with `bydawn stop {name}`",
            exit_code=8,
        ) from None
