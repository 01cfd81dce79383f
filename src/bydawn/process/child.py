"""Control a child completely: start it, follow its output, enforce its limits, and let none of it survive."""

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bydawn.core.outcome import Ending, Exit
from bydawn.core.ports import Job
from bydawn.core.text import left_out_line
from bydawn.system import kernel, programs
from bydawn.system.line_times import TimesWriter
from bydawn.system.tail import Tail

_TICK = 3.0  # seconds between looks at what no event reports: disk, volume, clocks
_SAMPLE = 15.0  # seconds between looks for signs of life other than output
_POLL = 0.05  # the same, without inotify
_FROZEN = 1.0  # seconds a wake-up may be late before we conclude that the whole machine was suspended
_DRAIN = 0.2  # time for processes an agent left behind to finish a write
_AFTER_KILL = 5.0  # a child still alive after KILL hangs in the kernel
_LEAST_FREE = 1 << 20  # bytes of free disk below which a round is stopped
_IDLE_TICKS = 0.01  # of one CPU: less is a heartbeat, not work
_RESOURCES = {11, 12, 23, 24}  # EAGAIN, ENOMEM, ENFILE, EMFILE: may pass on its own
_RESET = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class ChildProcesses:
    """Runs one child at a time. When a descriptor in `wakes` becomes readable, we ask `urgent`."""

    def __init__(
        self, wakes: Sequence[int], env: Mapping[str, str], *, on_start: Callable[[int], None] = lambda _: None
    ) -> None:
        self._wakes = wakes
        self._env = env  # what every child inherits
        self._on_start = on_start
        self._watch = kernel.Watch()
        self._look = _TICK if self._watch.works else _POLL  # seconds between two times that we ask whatever happens

    def run(
        self,
        job: Job,
        on_line: Callable[[bytes], bool],
        on_skip: Callable[[int], None],
        urgent: Callable[[], bool],
        on_error: Callable[[bytes], bool] | None = None,
    ) -> Exit:
        """Run a job to its end. `on_line` returns True when the child has finished talking."""
        started = time.monotonic()
        try:
            pid = _spawn(job, self._env)
        except OSError as error:
            ending = Ending.NO_RESOURCES if error.errno in _RESOURCES else Ending.NOT_STARTED
            return Exit(ending=ending, detail=f"{job.argv[0]}: {error.strerror}")
        self._on_start(pid)
        times = TimesWriter(job.times) if job.times else None
        tails = [Tail(Path(job.stdout), on_line, on_skip, times)]
        if on_error:
            tails.append(Tail(Path(job.stderr), on_error, lambda size: _left_out(size, on_error)))
        child = _Child(pid, job, tails, self._watch, started)
        try:
            self._follow(child, urgent)
            status = child.reap()
            leftovers = kernel.end_children(_DRAIN)
            for tail in child.tails:
                tail.drain()
            return child.exit(status, tuple(leftovers))
        finally:
            child.close()

    def sleep(self, seconds: float, urgent: Callable[[], bool]) -> None:
        """Sleep at most this long; ends early when something urgent arrives."""
        deadline = time.monotonic() + seconds
        poll = self._poll()
        while (left := deadline - time.monotonic()) > 0:
            poll.poll(min(left, _TICK) * 1000)
            if urgent():
                return

    def _poll(self) -> select.poll:
        poll = select.poll()
        for fd in self._wakes:
            poll.register(fd, select.POLLIN)
        return poll

    def _follow(self, child: "_Child", urgent: Callable[[], bool]) -> None:
        """Until the child has exited; never until end of file, which proves nothing."""
        poll = self._poll()
        for fd in child.fds:
            poll.register(fd, select.POLLIN)
        looked = time.monotonic()
        while True:
            asked, patience = time.monotonic(), child.patience()
            ready = {fd for fd, _ in poll.poll(patience * 1000)}
            child.thaw(time.monotonic() - asked - patience)
            more = child.listen(ready)
            if child.exited(ready):
                return
            now = time.monotonic()
            if ready & set(self._wakes) or now - looked >= self._look:
                looked = now
                if urgent():
                    child.stop(Ending.ASKED)
            child.hold_to_limits(now)
            child.climb(now)
            child.hurry = more


class _Child:
    """One running child and what we know about it."""

    def __init__(self, pid: int, job: Job, tails: Sequence[Tail], watch: kernel.Watch, started: float) -> None:
        self.pid = pid
        self.job = job
        self.tail = tails[0]  # of stdout
        self.tails = tails
        self.hurry = True  # there may already be something to read
        self._started = self._alive_at = self._sampled_at = started
        self._activity = (0, 0)
        self._said_last_word_at: float | None = None
        self._ending = Ending.EXIT
        self._ladder: list[tuple[float, signal.Signals]] = []
        self._killed_at: float | None = None
        self._pidfd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        self._status: int | None = None
        self._watch = watch
        self._watching = [watch.add(path) for path in {job.stdout, job.stderr}]
        self._reported = min(self._watching) >= 0  # or we have to look ourselves
        self._written = False  # may there be more output than at the last look?
        kernel.offer_to_oom_killer(pid)

    @property
    def fds(self) -> list[int]:
        return [fd for fd in (self._pidfd, self._watch.fd) if fd >= 0]

    def patience(self) -> float:
        """How long to wait for the next event."""
        if self.hurry:
            return 0
        limits = self.job.limits
        short = [limit / 4 for limit in (limits.total, limits.silence, limits.first_byte, limits.linger) if limit]
        longest = _TICK if self._reported and self._pidfd >= 0 else _POLL
        due = [self._ladder[0][0] - time.monotonic()] if self._ladder else []
        if limits.total and self._ending is Ending.EXIT:
            due.append(self._started + limits.total - time.monotonic())
        return max(0.001, min([longest, *short, *due]))

    def thaw(self, late: float) -> None:
        """If we were suspended for a while, so was the child: that time does not count."""
        if late < _FROZEN:
            return
        self._started += late
        self._alive_at += late
        self._sampled_at += late
        if self._said_last_word_at is not None:
            self._said_last_word_at += late
        self._ladder = [(due + late, number) for due, number in self._ladder]

    def listen(self, ready: set[int]) -> bool:
        """Read what has been written; True when there is more."""
        self._written = self._watch.fd in ready or not self._reported or self.hurry
        if not self._written:
            return False
        self._watch.drain()
        (grown, _), *_ = found = [tail.read() for tail in self.tails]
        if grown:
            self._alive_at = time.monotonic()
        if self.tail.finished and self._said_last_word_at is None:
            self._said_last_word_at = time.monotonic()
        return any(more for _, more in found)

    def exited(self, ready: set[int]) -> bool:
        if self._pidfd >= 0:
            return self._pidfd in ready or self._given_up()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._status = status
        return bool(pid) or self._given_up()

    def reap(self) -> int | None:
        if self._status is None and not self._given_up():
            _, self._status = os.waitpid(self.pid, 0)
        return self._status

    def _given_up(self) -> bool:
        """KILL was sent long ago: it hangs in the kernel, and waiting forever would hang us with it."""
        return self._killed_at is not None and time.monotonic() > self._killed_at + _AFTER_KILL

    def hold_to_limits(self, now: float) -> None:
        if self._ending is Ending.EXIT and (ending := self._over_limit(now)):
            self.stop(ending)

    def _over_limit(self, now: float) -> Ending | None:
        limits = self.job.limits
        self._look_for_life(now)
        words = self._said_last_word_at
        spoken = self.tail.position > 0
        table: list[tuple[Ending, float, float | None]] = [
            (Ending.TOTAL, now - self._started, limits.total),
            (Ending.LINGER, now - words if words else 0, limits.linger),
            (Ending.FIRST_BYTE, 0 if spoken else now - self._started, limits.first_byte),
            (Ending.SILENCE, now - self._alive_at, limits.silence),
            (Ending.VOLUME, self.output_bytes() if self._written else 0, limits.output),
            (Ending.DISK, int(is_nearly_full(self.job.stdout)), 1),
        ]
        return next((ending for ending, reading, limit in table if limit and reading >= limit), None)

    def _look_for_life(self, now: float) -> None:
        """Silence does not prove death: a compiler computes and a copy writes without any output."""
        silence = self.job.limits.silence
        if not silence or now - max(self._alive_at, self._sampled_at) < min(silence / 4, _SAMPLE):
            return
        ticks, written = kernel.activity(kernel.descendants())
        busy = (ticks - self._activity[0]) / os.sysconf("SC_CLK_TCK") > _IDLE_TICKS * (now - self._sampled_at)
        if busy or written > self._activity[1]:
            self._alive_at = now
        self._activity = (ticks, written)
        self._sampled_at = now

    def output_bytes(self) -> int:
        return sum(os.stat(path).st_size for path in {self.job.stdout, self.job.stderr})

    def stop(self, ending: Ending) -> None:
        """Start stopping it with INT, TERM, KILL; the first reason to stop is the one that counts."""
        if self._ending is not Ending.EXIT:
            return
        self._ending = ending
        now, ladder = time.monotonic(), self.job.ladder
        term = now + ladder.interrupt
        kill = term + ladder.terminate
        # Some agents get no INT: Claude would write into its history that it was told to stop.
        first = [(now, signal.SIGINT)] if ladder.interrupt else []
        self._ladder = [*first, (term, signal.SIGTERM), (kill, signal.SIGKILL)]
        if ending is Ending.DISK:  # every further byte makes it worse
            self._ladder = [(now, signal.SIGKILL)]

    def climb(self, now: float) -> None:
        """Send the next signal when it is due; to the whole group, resumed so that it can receive it."""
        if not self._ladder or now < self._ladder[0][0]:
            return
        _, number = self._ladder.pop(0)
        if number == signal.SIGKILL:
            self._killed_at = now
        if self.job.boxed and number != signal.SIGKILL:
            # The box would die of it at once, and kill what is in it before that can clean up.
            for pid in kernel.descendants():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number if pid != self.pid else signal.SIGCONT)
                    os.kill(pid, signal.SIGCONT)
            return
        for each in (number, signal.SIGCONT):
            try:
                os.killpg(self.pid, each)
            except (ProcessLookupError, PermissionError):
                return

    def exit(self, status: int | None, leftovers: tuple[str, ...]) -> Exit:
        code = os.waitstatus_to_exitcode(status) if status is not None else None
        if self._ending is Ending.EXIT and code and is_nearly_full(self.job.stdout):
            self._ending = Ending.DISK  # it hit the full disk before we saw it; that is not its fault
        return Exit(
            ending=self._ending,
            code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            seconds=time.monotonic() - self._started,
            output_bytes=self.output_bytes(),
            leftovers=leftovers,
        )

    def close(self) -> None:
        for watched in self._watching:
            self._watch.remove(watched)
        for tail in self.tails:
            tail.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)


def _left_out(size: int, on_error: Callable[[bytes], bool]) -> None:
    on_error(left_out_line(size).encode())


def _spawn(job: Job, env: Mapping[str, str]) -> int:
    """Start it in its own session, without a terminal, inheriting only three files and the current folder."""
    # Truncated: anything an earlier attempt left there is not this child's output.
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC
    files: list[tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, job.stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, job.stdout, append, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, job.stderr, append, 0o600),
    ]
    words = programs.starting(job.argv[0], job.path) if job.path else job.argv[:1]
    return os.posix_spawnp(
        words[0],
        (*words, *job.argv[1:]),
        {name: value for name, value in env.items() if name not in job.without} | job.env,
        file_actions=files,
        setsid=True,
        setsigmask=[],
        setsigdef=_RESET,
    )


def is_nearly_full(path: str) -> bool:
    """Has the disk that holds a file too little room for a round?"""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize < _LEAST_FREE
