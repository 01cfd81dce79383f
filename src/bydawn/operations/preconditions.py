"""What must hold before a command does anything: who asks, in which folder, who has the lock."""

import os
from collections.abc import Iterator
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.loop import COOKIE, Loop
from bydawn.core.text import PLACEHOLDER, plain
from bydawn.core.values import Act, Advice
from bydawn.store import lock
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing, reference
from bydawn.system import kernel

_TEMPORARY = "/tmp"  # noqa: S108 - where nothing else is said


def is_inside_a_round() -> bool:
    """Was this command started by an agent or a hook of a loop, or by a process they left behind?"""
    return any(True for _ in _around())


def _around() -> Iterator[str]:
    """The temporary folder of each process around this command that belongs to a round."""
    if os.environ.get(COOKIE):
        yield os.environ.get("TMPDIR") or _TEMPORARY
    for pid in kernel.ancestors():
        if kernel.variable(pid, COOKIE) is not None or kernel.is_worker(pid):
            yield kernel.variable(pid, "TMPDIR") or _TEMPORARY


def refuse_inside_a_round() -> None:
    """An agent may look and leave notes; it may not start, resume, end or repair loops, nor trust or set anything."""
    if is_inside_a_round():
        raise _not_for_agents()


def refuse_to_end(folder: LoopFolder) -> None:
    """The same for a loop that is to end, but one that belongs to a test: its state is in the round's own temporary
    folder. What an agent calls so itself does not help it, since the first process of its round has been told, too."""
    path = folder.path.resolve()
    if not all(path.is_relative_to(os.path.realpath(temporary)) for temporary in _around()):
        raise _not_for_agents()


def _not_for_agents() -> UserError:
    return UserError(
        "agents may not do this",
        cause="this command was started from inside a round, or by a process that a round left behind",
        hint="run it yourself, in your own terminal",
    )


def refuse_by_hand(loop: Loop) -> None:
    """Two must not do the same work."""
    if loop.recording and loop.recording.by_hand:
        raise UserError(
            f"bydawn does not run {loop.id}: a person's own session works on it",
            hint=Advice("go on in that session, or give bydawn a loop of its own: ", Act("run --new", PLACEHOLDER)),
        )


def checked_workspace(path: Path, hint: str = "choose an existing folder with -C") -> Path:
    """The real path of an existing folder; `hint` says how to name one."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise UserError(f"there is no folder {path}", cause=cause, hint=hint) from None
    if not real.is_dir():
        raise UserError(f"{path} is not a folder", hint=hint)
    try:
        str(real).encode()
    except UnicodeEncodeError:
        raise UserError("the folder's name is not UTF-8", cause=ascii(str(real)), hint="rename it") from None
    return real


def found_workspace(cd: Path | None) -> Path:
    """The folder that a person named, or else the workspace that the current folder is in, as git and uv find it."""
    here = checked_workspace(cd or Path())
    if cd is not None:
        return here
    from bydawn.settings.files import workspace_above
    from bydawn.system.git import Git

    above = workspace_above(here)
    # A folder that its repository ignores is not part of it; the agent's work there would not be seen.
    is_ignored = (
        above != here and Git(folder=above, seconds=20).answer("check-ignore", "-q", "--", str(here)) is not None
    )
    return here if is_ignored else above


def from_here(path: str, workspace: Path) -> str:
    """A typed path from the workspace on: one in the current folder is meant, if it exists there."""
    here = Path.cwd() / path
    return os.path.relpath(here, workspace) if here.exists() else path


def gone(standing: Standing) -> UserError | None:
    """The error if a loop's folder no longer exists; a loop cannot move to another."""
    loop = standing.loop
    if Path(loop.workspace).is_dir():
        return None
    return UserError(
        f"the workspace of {loop.id} is gone: {loop.workspace}",
        cause="it was removed, renamed or not mounted, and a loop cannot move to another folder",
        hint=Advice(
            "restore or mount it, then run ", Act("resume", standing.reference), "; or start a new loop elsewhere"
        ),
    )


def user() -> str:
    """The name of the person at the keyboard, for the record."""
    return plain(os.environ.get("USER") or os.environ.get("LOGNAME") or _by_number() or "unknown user")


def _by_number() -> str:
    """Our name in the user database: cron, containers and services set no variable."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def take_lock(folder: LoopFolder, loop: Loop) -> lock.Lock:
    """The loop's lock, or an error that names its owner."""
    try:
        return lock.Lock.take(folder.lock)
    except lock.Owned as owned:
        refuse_during_a_chat(folder, loop)
        name = reference(folder, loop)
        raise UserError(
            f"the loop {loop.id} is already running",
            cause=f"{owned} is running it",
            hint=Advice("watch it with ", Act("logs", name, f=True), ", or stop it with ", Act("stop", name)),
            exit_code=8,
        ) from None


def refuse_during_a_chat(folder: LoopFolder, loop: Loop) -> None:
    """A question holds the loop's lock while it looks at the files, and takes no requests."""
    if lock.signature(folder.lock).get("run", "").startswith(lock.CHAT) and lock.is_held(folder.lock):
        raise UserError(
            f"a chat is looking at the files of {loop.id}",
            cause=f"{lock.owner(folder.lock) or 'another process'} answers a question about it",
            hint="wait a moment and try again",
            exit_code=8,
        )
