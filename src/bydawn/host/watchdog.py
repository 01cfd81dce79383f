"""Keeps loops running: starts a process again that died or hangs, and gives up if that happens too often."""

import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

import msgspec

from bydawn.core import watching
from bydawn.core.errors import UserError
from bydawn.core.text import duration
from bydawn.core.values import MOST_RESTARTS, STALE, Death, Restart
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Lock, is_held, owner

_LOOK = 5.0  # seconds between two looks at heartbeats
_NOTE = 60.0  # seconds
_SCAN = 60.0  # seconds between two looks for loops that died elsewhere
_LONGEST = 3600.0  # seconds between two tries to start what could not begin
_DOUBLINGS = 6
_REFUSED = (2, 7, 8)  # exit codes of a loop that could not begin
_NOTICES = 45.0  # seconds
_ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNALED = 128  # an exit code above it stands for a signal, as in a shell


class Phase(StrEnum):
    """How it is with a loop that is kept running."""

    RUNNING = "running"
    RESTARTING = "restarting"  # its process has died
    OVER = "over"  # the loop has ended in good order
    STOPPED = "stopped"  # the watchdog was asked to end
    EXHAUSTED = "exhausted"


class Kept(msgspec.Struct, kw_only=True, eq=False):
    """A loop that is kept running."""

    name: str
    folder: Callable[[], LoopFolder | None]  # a project may have its first loop only once it runs
    begin: Callable[[Restart | None], int]  # in a child, as the guardian; negative if a signal ended the worker
    restart: Restart | None = None  # the last one
    phase: Phase = Phase.RESTARTING
    pid: int = 0  # of its guardian
    due: float = 0.0  # when to look at it, or to start it
    code: int | None = None  # with which the guardian ended, until its loop was looked at
    began: float = 0.0
    refusals: int = 0  # in a row
    stamp: float = 0.0  # the heartbeat's own time
    alive: float = 0.0  # when that was last seen to change, by our clock, which stops while the machine sleeps
    death: Death = Death.EXITED
    kills: list[tuple[float, int]] = []  # what is sent to a process that hangs, and when


class Watchdog:
    """The parent of the loops it keeps. When it is asked to end, it ends them in good order."""

    def __init__(
        self,
        *,
        is_lost: Callable[[LoopFolder], bool],  # has it ended although there is work left, and no person wanted it?
        give_up: Callable[[Kept, Restart], int],  # in a child
        say: Callable[[str], None],
        told: Callable[[Kept], None] = lambda _: None,  # after every change
        still: Callable[[Kept], None] = lambda _: None,  # every minute, while nothing changes
        scan: Callable[[], Iterable[Kept]] | None = None,  # others that have died; without it we end with the last
        held: Lock | None = None,  # the lock of this watch: if we are killed, no loop may hold it any longer
        back_off: float = watching.BACK_OFF,
        stale: float = STALE,
        look: float = _LOOK,
        terminate: float = 10.0,  # seconds that a process gets to end by itself
    ) -> None:
        self._is_lost, self._give_up, self._say, self._scan = is_lost, give_up, say, scan
        self._told, self._still, self._noted = told, still, 0.0
        self._back_off, self._stale, self._look, self._terminate = back_off, stale, look, terminate
        self._held = held
        self._kept: list[Kept] = []
        self._asked = False
        self._scanned = -_SCAN

    def run(self, first: Iterable[Kept] = ()) -> None:
        """Until we are asked to end, or nothing is left to keep."""
        self._kept += first
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in _heard():
            signal.signal(number, self._ask)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes us
        gc.enable()
        gc.collect()
        gc.freeze()  # what is loaded now is shared with every child
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        while not self._asked:
            self._turn(time.monotonic())
            if self._scan is None and not self._kept:
                break
            poll.poll(self._patience(time.monotonic()) * 1000)
            with suppress(BlockingIOError):
                os.read(reading, 4096)
        if self._asked:
            self._end_all()
        if self._held:
            self._held.release()  # another may begin while a notice is still on its way
        self._wait_for_the_rest()

    def _ask(self, *_: object) -> None:
        self._asked = True

    def _patience(self, now: float) -> float:
        waits = [self._look, *(each.due - now for each in self._kept if not each.pid)]
        waits += [due - now for each in self._kept for due, _ in each.kills[:1]]
        return max(0.0, min(waits))

    def _turn(self, now: float) -> None:
        self._reap(now)
        if now - self._noted >= _NOTE:
            self._noted = now
            for each in self._kept:
                self._still(each)
        if self._scan and now - self._scanned >= _SCAN:
            self._scanned = now
            with self._surviving("looking for loops"):
                self._kept += self._scan()
        for each in [*self._kept]:
            with self._surviving(each.name):
                if each.pid:
                    self._look_at(each, now)
                elif now >= each.due:
                    each.due = now + self._look
                    self._go_on(each, now)

    @contextmanager
    def _surviving(self, what: str) -> Iterator[None]:
        """A machine without memory or descriptors is when loops die, and when they need us."""
        try:
            yield
        except (OSError, UserError) as error:
            self._say(f"{what}: {getattr(error, 'strerror', '') or error}; trying again in a moment")

    # -- one loop --------------------------------------------------------------------------------------------------

    def _go_on(self, each: Kept, now: float) -> None:
        """Its process has ended, or there was none: start it, unless it is over."""
        folder = each.folder()
        if folder and is_held(folder.lock):  # its worker outlived its guardian, or someone else was faster
            each.began = each.began or now
            if each.code is not None:
                self._look_at(each, now)
            return
        if each.code is None:
            if each.began and folder and not self._is_lost(folder):  # a person was faster
                self._leave(each, Phase.OVER)
            else:
                self._start(each, now)
            return
        code, each.code = each.code, None
        if (folder is None and code >= 0) or (folder and not self._is_lost(folder)):
            self._leave(each, Phase.OVER)
        elif code in _REFUSED:
            self._try_later(each, now)
        else:
            self._after_death(each, code, now)

    def _try_later(self, each: Kept, now: float) -> None:
        """Nothing died: it could not begin, and has said why. Its disk may be mounted later, or its agent installed."""
        wait = min(_SCAN * 2**each.refusals, _LONGEST)
        each.phase, each.due, each.refusals = Phase.RESTARTING, now + wait, min(each.refusals + 1, _DOUBLINGS)
        self._say(f"{each.name} cannot go on now; the next try is in {duration(wait)}")
        self._told(each)

    def _after_death(self, each: Kept, code: int, now: float) -> None:
        each.refusals = 0
        restart = watching.next_restart(each.restart, each.death, code, now - each.began)
        each.death = Death.EXITED
        if self._is_given_up(each, restart):
            return
        each.restart, each.phase, each.due = restart, Phase.RESTARTING, now + self._back_off
        number = f"restart {restart.number} of {MOST_RESTARTS}"
        self._say(f"{each.name}: its process died: {restart.words}; {number} in {self._back_off:g} s")
        self._told(each)

    def _is_given_up(self, each: Kept, restart: Restart | None) -> bool:
        """Has it died too often? That may have been before we began to keep it."""
        if restart is None or not watching.is_too_many(restart):
            return False
        self._say(f"{each.name}: {restart.given_up}; it is not started again")
        spawn(lambda: self._give_up(each, restart), self._held)  # a notice takes its time, and others need us
        self._leave(each, Phase.EXHAUSTED)
        return True

    def _start(self, each: Kept, now: float) -> None:
        if self._is_given_up(each, each.restart):
            return
        each.pid = spawn(lambda: each.begin(each.restart), self._held)
        each.phase, each.began, each.alive, each.kills = Phase.RUNNING, now, now, []
        self._told(each)

    def _leave(self, each: Kept, phase: Phase) -> None:
        each.phase = phase
        self._kept.remove(each)
        self._told(each)

    def _look_at(self, each: Kept, now: float) -> None:
        """A process that hangs is ended: first gently, then firmly, and at last together with its guardian."""
        if each.kills:
            if now >= each.kills[0][0]:
                _, number = each.kills.pop(0)
                self._send(each, number, guardian=number != signal.SIGKILL or not each.kills)
            return
        folder = each.folder()
        stamp = _time_of(folder) if folder else 0.0
        if stamp != each.stamp:
            each.stamp, each.alive = stamp, now
        if now - each.alive >= self._stale:
            self._say(f"{each.name}: no sign of life for {self._stale:g} s; ending its process")
            each.death = Death.HUNG
            steps = (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
            each.kills = [(now + self._terminate * step, number) for step, number in enumerate(steps)]

    def _send(self, each: Kept, number: int, *, guardian: bool) -> None:
        folder = each.folder()
        worker = owner(folder.lock).removeprefix("pid ") if folder else ""
        pids = [int(worker)] if worker else []
        with suppress(ProcessLookupError):
            for pid in (*pids, each.pid) if guardian and each.pid else pids:
                os.kill(pid, number)
            for pid in (*pids, each.pid) if each.pid else pids:  # a guardian that was stopped could end nothing
                os.kill(pid, signal.SIGCONT)

    # -- all of them -----------------------------------------------------------------------------------------------

    def _reap(self, now: float) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                for each in self._kept:
                    if each.pid == found[0]:
                        each.pid, each.code, each.due = 0, _code(found[1]), now

    def _end_all(self) -> None:
        """Each pauses as at a shutdown, so that the next watchdog goes on with it."""
        self._say("asked to end; every loop pauses")
        for number, guardian, seconds in (
            (signal.SIGTERM, True, self._terminate * 2),
            (signal.SIGKILL, False, self._terminate / 3),  # its guardian ends what it leaves
            (signal.SIGKILL, True, 0.0),
        ):
            for each in filter(self._is_there, self._kept):
                self._send(each, number, guardian=guardian)
            until = time.monotonic() + seconds
            while any(map(self._is_there, self._kept)) and time.monotonic() < until:
                self._reap(time.monotonic())
                time.sleep(0.02)
        for each in [*self._kept]:
            self._leave(each, Phase.STOPPED)

    def _is_there(self, each: Kept) -> bool:
        """Of what we started: its guardian, or a worker that outlived that."""
        if each.pid or each.code is None:
            return bool(each.pid)
        folder = each.folder()
        return folder is not None and is_held(folder.lock)

    def _wait_for_the_rest(self) -> None:
        """A notice may still be on its way."""
        until = time.monotonic() + _NOTICES
        with suppress(ChildProcessError):
            while time.monotonic() < until:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.05)


def spawn(work: Callable[[], int], held: Lock | None = None) -> int:
    """Do it in a child without our signals and that lock; its process id. A negative code stands for a signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)
    try:
        child = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        raise
    if child == 0:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            if held:
                held.release()
            for number in (*_heard(), signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            code = work()
        finally:
            os._exit(code if code >= 0 else _SIGNALED - code)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return child


def _heard() -> list[signal.Signals]:
    """Those of a terminal that we have left stay ignored."""
    return [each for each in _ASKED if signal.getsignal(each) is not signal.SIG_IGN]


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return _SIGNALED - code if code > _SIGNALED else code


def _time_of(folder: LoopFolder) -> float:
    try:
        return os.stat(folder.heartbeat).st_mtime
    except OSError:
        return 0.0
