"""Who owns a loop? The kernel knows: a held lock means a worker (or its guardian) is alive."""

import errno
import fcntl
import os
import time
from pathlib import Path

from bydawn.core.loop import COOKIE
from bydawn.store.folder import LoopFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bydawn.system import kernel

CHAT = "chat-"  # how the run of a process begins that only answers a question
_SIGNATURE = 200  # bytes
_PATIENCE = 1.0  # seconds; another process may only be checking whether the lock is held
_DYING = 2.0  # seconds; what is left of a run that was killed holds its lock until it has ended everything


class Owned(Exception):
    """Another process holds the lock; the text is what it wrote into it."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner or "an unknown process")


class Lock:
    """A held lock. The file is never deleted; its text is only information."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self._signature = ""

    @classmethod
    def take(cls, path: Path, patience: float = _PATIENCE) -> "Lock":
        """Take the lock, or raise `Owned`."""
        wait_for_the_dying(path)
        deadline = time.monotonic() + patience
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            lock = cls(path, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if time.monotonic() > deadline:
                    raise Owned(owner(path)) from None
                time.sleep(0.02)
                continue
            if lock.intact():
                return lock
            os.close(fd)  # deleted between our open and our lock: what we hold is worthless

    def sign(self, run: str) -> None:
        """Write who we are, for people and for the next run, which ends what is left of us."""
        from bydawn.system import kernel

        pid = os.getpid()
        self._signature = f"pid {pid} start {kernel.start_time(pid)} boot {kernel.boot_id()} run {run}"
        self._write(self._signature)

    def note_child(self, pid: int) -> None:
        """Add the child that runs now: the leader of its session."""
        from bydawn.system import kernel

        self._write(f"{self._signature} session {pid} born {kernel.start_time(pid)}")

    def sign_off(self) -> None:
        """All that we started has ended: the next run need not look for it."""
        self._write("left nothing")

    def _write(self, text: str) -> None:
        os.pwrite(self.fd, text.encode().ljust(_SIGNATURE), 0)

    def intact(self) -> bool:
        """Is the file we hold still the one others would try to lock?"""
        try:
            there, ours = os.stat(self.path, follow_symlinks=False), os.fstat(self.fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        os.close(self.fd)


def owner(path: Path) -> str:
    """The holder as `pid 4711`, if it is still the process that signed."""
    from bydawn.system import kernel  # checking whether a lock is held does not need it

    said = signature(path)
    pid, start = said.get("pid", ""), said.get("start")
    if not pid.isdigit() or kernel.boot_id() != said.get("boot") or kernel.start_time(int(pid)) != start:
        return ""
    # In a container no one may wait for what was killed: it is still listed, and dead.
    return f"pid {pid}" if kernel.is_alive(int(pid)) else ""


def signature(path: Path) -> dict[str, str]:
    """What the holder wrote into the lock: pid, start, boot, run."""
    try:
        words = path.read_text(errors="replace").split()
    except OSError:
        return {}
    return dict(zip(words[::2], words[1::2], strict=False))


def trace_of(folder: LoopFolder, uid: str) -> "kernel.Trace | None":
    """By what to recognize processes of the last run; None if nothing can be left of it.

    Its guardian writes into the lock when it has ended everything, and no process outlives a reboot.
    """
    return trace_in(folder.lock, f"{uid}.", folder.rounds)


def trace_in(path: Path, mark: str, rounds: Path) -> "kernel.Trace | None":
    """The same for any lock: `mark` is how the cookies of its processes begin, `rounds` where their files are."""
    from bydawn.system import kernel

    said = signature(path)
    if "left" in said or said.get("boot", kernel.boot_id()) != kernel.boot_id():
        return None
    session = said.get("session", "")
    return kernel.Trace(f"{COOKIE}={mark}", str(rounds), int(session) if session.isdigit() else 0, said.get("born", ""))


def wait_for_the_dying(path: Path) -> bool:
    """Is it held by a process that lives, or still held after a while?"""
    deadline = time.monotonic() + _DYING
    while (held := is_held(path)) and "pid" in signature(path) and not owner(path) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held


def is_held(path: Path | str) -> bool:
    """Ask by trying. A process that wants the lock at this moment is patient enough to try again."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
