"""The worker's parent: waits for it, then ends everything left over, so that nothing outlives a loop.

It is forked before the heavy imports and stays small. The worker takes the loop's lock and passes a copy up
the tether before it starts anything; both hold it, so a free lock means that nothing of that run is alive.
"""

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

from bydawn.system import kernel

_NOTHING_LEFT = b"left nothing".ljust(200)  # over the worker's signature: the next start need not look for anything
_MOMENT = 3.0  # seconds
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Tether:
    """The worker's end of the line to its guardian; readable means the guardian is gone."""

    def __init__(self, line: socket.socket, front: int = -1) -> None:
        self._line = line
        self._front = front  # where the command waits that a person has typed, if this loop may leave it
        self._log: Callable[[], int] | None = None

    @property
    def fd(self) -> int:
        return self._line.fileno()

    def share(self, lock_fd: int, go_on: str, awake: Sequence[str] = ()) -> None:
        """Give the guardian the lock too, and the command to resume with; returns once it has them.

        `awake` are the words that keep the machine awake. The guardian starts them: a child of the worker would be
        ended after each round.

        From here on the worker is its own process group: Ctrl-C only reaches the guardian, which passes it on once.
        """
        logs = [self._log()] if self._log else []
        if logs:
            _leave_the_terminal()
        else:
            os.setpgid(0, 0)
        socket.send_fds(self._line, ["\0".join((go_on, *awake)).encode()], [lock_fd, *logs])
        self._line.recv(1)

    def detach(self, log: Callable[[], int]) -> None:
        """Run without a terminal once the lock is held; what guardian and worker print goes to what `log` opens."""
        self._log = log

    def release(self, log: int, words: str, viewer: Sequence[str] = ()) -> None:
        """The loop has begun: the command prints these words and returns. Until here errors are for its person.

        The command starts the `viewer` as well: what we start ends with the loop.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        _print_to(log)
        with suppress(OSError):  # the command is gone
            os.write(self._front, "\0".join([words, *viewer]).encode())
        os.close(self._front)

    def leave(self, words: Sequence[str]) -> None:
        """The command to offer next: only the guardian is in the terminal's foreground and can ask."""
        with suppress(OSError):
            self._line.send("\0".join(words).encode())

    def cut(self) -> bool:
        """Is the guardian gone?"""
        try:
            return self._line.recv(1, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def in_front(guarded: Callable[[int], int]) -> int:
    """Wait in front of a person until a loop has begun without a terminal, or has ended: what it says, and its code.

    `guarded` runs in a child. Through the descriptor that it gets, the worker says that it has begun.
    """
    guardian, waiting = send_away(guarded)
    _forward_signals(guardian)
    words, viewer, status = await_start(guardian, waiting)
    if status is not None:
        return _exit_code(os.waitstatus_to_exitcode(status), "")
    with suppress(OSError):  # no one reads it
        os.write(1, words)
    start_viewer(viewer)
    return 0


def send_away(guarded: Callable[[int], int]) -> tuple[int, int]:
    """Start a guardian of its own; its process id, and the descriptor to wait at."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    guardian = os.fork()
    if guardian == 0:
        os.close(reading)
        code = 1
        try:
            code = guarded(writing)
        finally:
            os._exit(code)
    os.close(writing)
    return guardian, reading


def await_start(guardian: int, waiting: int) -> tuple[bytes, list[bytes], int | None]:
    """What the worker says once it has begun, and its viewer; or how its guardian ended, if it has not."""
    said = os.read(waiting, 65536)
    os.close(waiting)
    words, *viewer = said.split(b"\0")
    return words, viewer, None if said else os.waitpid(guardian, 0)[1]


def start_viewer(viewer: list[bytes]) -> None:
    """Start the program that shows a loop, which takes a moment; without it nothing is missing."""
    if viewer:
        nothing = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
        with suppress(OSError):
            pid, until = os.posix_spawn(viewer[0], viewer, os.environ, file_actions=nothing), time.monotonic() + _MOMENT
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
                if time.monotonic() > until:  # it hangs, and a person waits for us
                    os.kill(pid, signal.SIGKILL)


def run_guarded(work: Callable[[Tether], int], front: int = -1, *, raw: bool = False) -> tuple[int, list[str]]:
    """Run `work` in a child, the worker; when it ends, so does everything it started.

    Returns the exit code, and a command from the worker for a person to confirm. `front`: see `in_front`. `raw`: no
    person waits; a worker that a signal ended has the negative number of that as its code.
    """
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    worker = os.fork()
    if worker == 0:
        ours.close()
        _be_the_worker(work, Tether(theirs, front), blocked)
    theirs.close()
    if front >= 0:
        os.close(front)
    kernel.become_subreaper()
    _forward_signals(worker)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    go_on, lock = _receive_lock(ours)
    status = _wait(worker)
    kernel.end_children()
    for descriptor in lock:
        with suppress(OSError):
            # A worker that died before it signed has not ended what an earlier run left: that signature must stay.
            if os.pread(descriptor, len(_NOTHING_LEFT), 0).startswith(b"pid %d " % worker):
                os.pwrite(descriptor, _NOTHING_LEFT, 0)
        os.close(descriptor)  # nothing of that run is alive now
    following = _left(ours)
    ours.close()
    for number in _FORWARDED:
        # A question can be answered with Ctrl-C, too. Otherwise all is said and done: the interpreter resets handlers
        # of its own when it ends, and a late signal must not change the exit code.
        asking = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, asking if following else signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(status)
    return code if raw else _exit_code(code, go_on), following


def _left(line: socket.socket) -> list[str]:
    try:
        return [word for word in line.recv(8192, socket.MSG_DONTWAIT).decode().split("\0") if word]
    except (OSError, UnicodeDecodeError):
        return []


def _be_the_worker(work: Callable[[Tether], int], tether: Tether, mask: set[int | signal.Signals]) -> None:
    """Never returns."""
    code = 1
    try:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # a background group may still write to the terminal
        # Until the loop handles signals itself, Ctrl-C ends the worker as SIGTERM does: nothing has been written yet
        # that could be damaged. A KeyboardInterrupt during an import could get lost in a callback, or leave a
        # traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        gc.enable()
        code = work(tether)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the reader is gone
                stream.flush()
        os._exit(code)


def _forward_signals(worker: int) -> None:
    def forward(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):  # it just ended on its own
            os.kill(worker, number)

    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:  # after `nohup`
            signal.signal(number, forward)


def _wait(worker: int) -> int:
    """How the worker ended. A stopped one is woken: it could neither hold its agent to a limit nor take a request.

    Ctrl-Z does not stop it, only us.
    """
    told = False
    while os.WIFSTOPPED(status := os.waitpid(worker, os.WUNTRACED)[1]):
        os.kill(worker, signal.SIGCONT)
        if not told:
            told = True
            name = signal.Signals(os.WSTOPSIG(status)).name
            sys.stderr.write(f"! something stopped the process of this loop ({name}); it was resumed\n")
    return status


def _receive_lock(line: socket.socket) -> tuple[str, list[int]]:
    """Wait until the worker passes its lock or ends without one; how to resume, and the lock to keep."""
    message, received, _, _ = socket.recv_fds(line, 8192, 2)
    lock, logs = received[:1], received[1:]
    for descriptor in received:  # what we start must not hold the lock
        os.set_inheritable(descriptor, False)
    for log in logs:  # the loop runs without a terminal
        leave_for(log)
        os.close(log)
    if message:
        with suppress(OSError):  # the worker died at this moment; the wait below sees it
            line.send(b"k")
    go_on, *awake = message.decode(errors="replace").split("\0")
    if awake:
        _keep_awake(awake)
    return go_on, lock


def _keep_awake(words: list[str]) -> None:
    """Start what keeps the machine awake. Only we have the other end of its input, so it ends with us, however we do.

    Whether it works does not matter to the loop: `doctor` tells. It needs nothing from our environment.
    """
    with suppress(OSError):
        reading, _ = os.pipe()
        files: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        pid = os.posix_spawn(words[0], words, {}, file_actions=files, setsid=True, setsigmask=[], setsigdef=_FORWARDED)
        os.close(reading)

        def reap(*_: object) -> None:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

        signal.signal(signal.SIGCHLD, reap)  # one that was refused would be listed all night
        reap()


def _leave_the_terminal() -> None:
    """A closed terminal, a logout and Ctrl-C mean others from here on."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def leave_for(log: int) -> None:
    """Go on without a terminal, and print to a file."""
    _leave_the_terminal()
    _print_to(log)
    os.chdir("/")  # what holds the folder of a command that is over could never be unmounted


def _print_to(log: int) -> None:
    """No one who reads our standard streams has to wait for the end of the loop."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for stream in (1, 2):
        os.dup2(log, stream)


def _exit_code(code: int, go_on: str) -> int:
    if code >= 0:
        return code
    if code in (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):
        return 130
    name = signal.Signals(-code).name
    what_to_do = f"run `{go_on}`" if go_on else "try again"
    sys.stderr.write(
        f"error: the process of this loop was killed by {name}\n"
        "cause: something outside it sent the signal; perhaps memory ran out\n"
        f" hint: all that was recorded is safe; {what_to_do} to go on\n"
    )
    return 1
