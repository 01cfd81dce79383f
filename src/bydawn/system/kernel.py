"""What the operating system offers and Python does not wrap: subreapers, inotify, process trees.

The guardian uses only this module, so it imports next to nothing.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

LINUX = sys.platform == "linux"

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NAME = 15
_PR_SET_DUMPABLE = 4
_WORKER = b"bydawn-worker"  # at most 15 bytes
_IN_MODIFY, _IN_CLOSE_WRITE, _IN_MOVED_TO = 0x2, 0x8, 0x80
GROWN, WRITTEN = _IN_MODIFY | _IN_MOVED_TO, _IN_CLOSE_WRITE | _IN_MOVED_TO
_PF_EXITING = 0x4
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000
_AT_ONCE = 1 << 16  # bytes
_STUCK_AFTER = 5.0  # seconds; a process still alive after KILL hangs in the kernel


@cache
def _libc() -> "ctypes.CDLL":
    import ctypes  # commands that only read do not need it

    return ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Orphans among our descendants become our children, so that none can escape (Linux only)."""
    if LINUX:
        _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def hide_from_others() -> None:
    """No other process of this user may read our memory or our environment, where tokens are (Linux only)."""
    if LINUX:
        _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def sign_as_worker() -> None:
    """Name this process, so that its descendants, orphans included, can find out where they come from."""
    if LINUX:
        _libc().prctl(_PR_SET_NAME, _WORKER, 0, 0, 0)


def is_worker(pid: int) -> bool:
    return _peek(f"{pid}/comm").strip() == _WORKER


def hide_values(flags: Sequence[str]) -> None:
    """Overwrite the values of these flags in our command line, which every user of the machine can read (Linux only).

    Python has its own copy of the words; a process that we fork has the command line as it is then.
    """
    import ctypes

    fields, names = stat_fields(os.getpid()), {flag.encode() for flag in flags}
    letters = tuple(name for name in names if len(name) == 2)  # `-t`, whose value may follow at once
    place, end = map(int, fields[45:47]) if len(fields) > 46 else (0, 0)
    line = ctypes.string_at(place, end - place) if place else b""
    if line != _peek("self/cmdline"):
        return
    before = b""
    for word in line.split(b"\0"):
        flag, _, value = word.partition(b"=")
        value = word[2:] if word.startswith(letters) else value if flag in names else b""
        hidden = word if before in names else value
        ctypes.memset(place + len(word) - len(hidden), ord("*"), len(hidden))
        place, before = place + len(word) + 1, b"" if hidden else word


def children() -> list[int]:
    """Every child of this process, including adopted ones."""
    try:
        return _children_of("self")
    except OSError:
        return [pid for pid, parent in _parents() if parent == os.getpid()]


def _children_of(process: str) -> list[int]:
    """One list per thread. Kernels without CONFIG_PROC_CHILDREN have none of these."""
    threads = os.listdir(f"/proc/{process}/task")
    return [int(pid) for thread in threads for pid in _read(f"{process}/task/{thread}/children").split()]


def _read(path: str) -> bytes:
    """A file of /proc, with as few calls as possible: this is asked all through a silent night."""
    fd = os.open(f"/proc/{path}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = part = os.read(fd, _AT_ONCE)
        while part:
            part = os.read(fd, _AT_ONCE)
            data += part
        return data
    finally:
        os.close(fd)


def _peek(path: str) -> bytes:
    """The same, or nothing: the process is gone by now or another user's, or this is not Linux."""
    try:
        return _read(path)
    except OSError:
        return b""


def _parents() -> Iterator[tuple[int, int]]:
    for pid in processes():
        fields = stat_fields(pid)
        if fields:
            yield pid, int(fields[1])


def descendants() -> list[int]:
    """This process's children, and theirs, and so on.

    They are asked one by one: looking at every process of the machine takes 100 times as long.
    """
    try:
        found = _children_of("self")
    except OSError:
        return _descendants_among_all()
    for pid in found:  # it grows meanwhile
        with suppress(OSError):  # gone by now
            found += _children_of(str(pid))
    return found


def _descendants_among_all() -> list[int]:
    by_parent: dict[int, list[int]] = {}
    for pid, parent in _parents():
        by_parent.setdefault(parent, []).append(pid)
    found, todo = [], [os.getpid()]
    while todo:
        young = by_parent.get(todo.pop(), [])
        found += young
        todo += young
    return found


def processes() -> Iterator[int]:
    """The id of every visible process."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, …; empty if the process is gone."""
    return _peek(f"{pid}/stat").decode(errors="replace").rpartition(")")[2].split()


def is_alive(pid: int) -> bool:
    """Neither gone, nor dead and not yet waited for, nor killed: `kill` returns before a process has died of it."""
    fields = stat_fields(pid)
    if len(fields) < 29 or fields[0] in "ZX":
        return False
    return not (int(fields[6]) & _PF_EXITING or int(fields[28]) & 1 << (signal.SIGKILL - 1))


def start_time(pid: int) -> str:
    """When a process started, in clock ticks since boot: tells a reused pid from the earlier process."""
    fields = stat_fields(pid)
    return fields[19] if len(fields) > 19 else ""


def activity(pids: list[int]) -> tuple[int, int]:
    """CPU ticks used and bytes written by these processes: signs of life besides output."""
    ticks = written = 0
    for pid in pids:
        fields = stat_fields(pid)
        if len(fields) > 14:
            ticks += sum(int(field) for field in fields[11:15])
        counters = _peek(f"{pid}/io").splitlines()
        written += sum(int(row.split()[1]) for row in counters if row.startswith(b"wchar"))
    return ticks, written


class Trace:
    """By what the processes of a run are recognized when both of its own were killed at once.

    A daemon may wipe its environment and with it the mark. It may still be in the session of the child that started
    it, or write to the output that the child was given, a file below `folder`.
    """

    def __init__(self, mark: str, folder: str = "", session: int = 0, born: str = "") -> None:
        self.mark = mark.encode()
        self.folder = folder and f"{folder}/"
        self.session = session  # the last child's pid; 0: unknown
        self.born = born  # when that child started: its number may have been given to another one since

    def holds(self, path: str) -> bool:
        return bool(self.folder) and path.startswith(self.folder)


def left_of(traces: Sequence[Trace]) -> list[list[int]]:
    """The living processes of each of these runs, found in one look at all there are; never one of our ancestors."""
    spared = {os.getpid(), *ancestors()}
    folders = tuple(trace.folder for trace in traces if trace.folder)
    found: list[list[int]] = [[] for _ in traces]
    sessions = [{trace.session} if _is_still(trace) else set[int]() for trace in traces]
    others: list[tuple[int, int]] = []
    for pid in processes():
        try:
            environment, fields = _read(f"{pid}/environ"), stat_fields(pid)
        except OSError:
            continue  # gone, or another user's
        if not fields or fields[0] in "ZX" or pid in spared:
            continue
        session = int(fields[3])
        marked = [index for index, trace in enumerate(traces) if trace.mark in environment]
        outputs = _outputs(pid, folders) if not marked else []
        writing = [index for index, trace in enumerate(traces) if any(map(trace.holds, outputs))]
        for index in marked:
            sessions[index].add(session)  # it began in ours: every child of ours has a session of its own
        for index in (*marked, *writing):
            found[index].append(pid)
        if not marked and not writing:
            others.append((pid, session))
    for mine, known in zip(found, sessions, strict=True):
        mine += [pid for pid, session in others if session in known]
    return found


def _is_still(trace: Trace) -> bool:
    """Is the session the one we know? While any process is in it, its number is not given away."""
    return bool(trace.session) and start_time(trace.session) in ("", trace.born)


def _outputs(pid: int, folders: tuple[str, ...]) -> list[str]:
    """The files below these folders that a process has open as a child has its output: to append to them.

    A person's editor has not, and `tail -f` has not either.
    """
    found = []
    with suppress(OSError):  # gone by now
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # closed by now
                path = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115 - see the module docstring
                if path.startswith(folders):
                    flags = _read(f"{pid}/fdinfo/{name}").partition(b"flags:")[2].split()[0]
                    found += [path] if int(flags, 8) & os.O_APPEND else []
    return found


def ancestors() -> list[int]:
    """Our parent, its parent, and so on, until we may not look further."""
    found = [os.getppid()]
    while found[-1] > 1 and (fields := stat_fields(found[-1])):
        found.append(int(fields[1]))
    return found


def variable(pid: int, name: str) -> str | None:
    """The value that a variable had when a process was started; None if it had none."""
    rows = (row.partition(b"=") for row in _peek(f"{pid}/environ").split(b"\0"))
    return next((os.fsdecode(value) for key, is_set, value in rows if is_set and key == name.encode()), None)


def name_of(pid: int) -> str:
    """A process as people know it: by its command line."""
    return f"{command_of(pid)} (pid {pid})"


def command_of(pid: int) -> str:
    line = _peek(f"{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    return line[:4000] or "process"


def is_at_work(name: str, folder: str) -> bool:
    """Does a program of this name run in a folder, or may it? Where processes cannot be looked at, it may."""
    for pid in processes() if LINUX else ():
        if _peek(f"{pid}/comm").strip() == name.encode():
            try:
                place = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - no paths here
            except FileNotFoundError:
                continue
            except OSError:  # another user's
                return True
            if f"{place}/".startswith(f"{folder}/"):
                return True
    return not LINUX


def boot_id() -> str:
    """Identifies this boot of the machine."""
    return _peek("sys/kernel/random/boot_id").decode().strip()


def sweep(trace: Trace) -> tuple[str, ...]:
    """Kill what is left of a run; the names of what was found."""
    named: dict[int, str] = {}
    while found := left_of([trace])[0]:
        for pid in found:
            named.setdefault(pid, name_of(pid))
            _kill(pid)
        time.sleep(0.005)
    return tuple(named.values())


def end_children(grace: float = 0.0) -> list[str]:
    """End every child, and what they leave behind, until none is left; the names of those that had to be ended."""
    named: dict[int, str] = {}
    started = time.monotonic()
    warned = False
    while _reap():
        left = [pid for pid in children() if stat_fields(pid)[:1] != ["Z"]]
        waited = time.monotonic() - started
        if waited >= grace:
            for pid in left:
                named.setdefault(pid, name_of(pid))
                _kill(pid)
        if waited > _STUCK_AFTER and not warned:
            warned = True
            names = ", ".join(f"pid {pid}" for pid in left)  # no command lines: they may contain secrets
            sys.stderr.write(f"bydawn: waiting for processes that the kernel will not end: {names}\n")
        time.sleep(0.002)
    return list(named.values())


def _reap() -> bool:
    """Reap ended children; are any left?"""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def offer_to_oom_killer(pid: int) -> None:
    """When memory runs out, the kernel should kill an agent before the worker, which can report it."""
    with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:  # noqa: PTH123 - gone, or not Linux
        file.write("500")


class Watch:
    """Wakes a `poll` when files grow or something is moved into a folder; without inotify it never does."""

    def __init__(self) -> None:
        self.fd: int = _libc().inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC) if LINUX else -1

    @property
    def works(self) -> bool:
        return self.fd >= 0

    def add(self, path: str, events: int = GROWN) -> int:
        """Watch a file or folder; a negative result means the caller has to poll."""
        if not self.works:
            return -1
        answer: int = _libc().inotify_add_watch(self.fd, os.fsencode(path), events)
        return answer

    def remove(self, watched: int) -> None:
        """Stop watching it. (Closing the whole instance waits 6 ms for the kernel; this does not.)"""
        if watched >= 0:
            _libc().inotify_rm_watch(self.fd, watched)

    def drain(self) -> None:
        """Discard what has been reported."""
        try:
            while os.read(self.fd, 4096):
                pass
        except OSError:
            pass  # empty, or no inotify

    def wait(self, seconds: float) -> None:
        """Wait until something changes, or the time is over."""
        if not self.works:
            select.select([], [], [], min(seconds, 0.05))
            return
        select.select([self.fd], [], [], seconds)
        self.drain()

    def close(self) -> None:
        if self.works:
            os.close(self.fd)
            self.fd = -1
