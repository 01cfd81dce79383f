"""The place where everything is measured: a folder that vanishes, an environment of its own, and clocks."""

import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bydawn.agents.demo import story
from bydawn.system import kernel

BIN = Path(sys.prefix) / "bin"
PYTHON = str(BIN / "python")
BYDAWN = str(BIN / "bydawn")

_MARK = "BYDAWN_BENCH"
_PATIENCE = 240.0  # seconds; whatever needs longer hangs
_DISK = 4 << 30  # bytes that the largest benchmark may need for a moment


class Broken(Exception):
    """Something could not be measured; the text says why."""


class Stage:
    """A folder with a home of its own. Everything started from here carries its mark and is ended with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"{_MARK}={secrets.token_hex(8)}"
        self.env = _environment(folder, self.mark)

    def place(self, name: str) -> Path:
        """A new folder."""
        path = self.folder / f"{name}-{secrets.token_hex(3)}"
        path.mkdir()
        return path

    def repository(self, name: str, files: Mapping[str, str] = story.FILES) -> Path:
        """A repository with these files, by default like the one of `bydawn demo`."""
        folder = self.place(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        git = ("git", "-C", str(folder), "-c", "user.name=bench", "-c", "user.email=bench@localhost")
        for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
            subprocess.run([*git, *arguments], env=self.env, check=True)
        return folder

    def spawn(self, *argv: str, stdout: str = os.devnull) -> int:
        """Start a program in a session of its own; its pid."""
        write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        files: list[tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, stdout, write, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(self.folder / "stderr"), write, 0o600),
        ]
        return os.posix_spawn(argv[0], argv, self.env, file_actions=files, setsid=True)

    def seconds(self, *argv: str, stdout: str = os.devnull, code: int = 0) -> float:
        """How long a program takes, from before its start until it has been reaped."""
        started = time.perf_counter()
        self._run(argv, stdout, code)
        return time.perf_counter() - started

    def work(self, *argv: str, code: int = 0) -> float:
        """Seconds of processor time, for programs that wait for nothing.

        On an idle machine that is the time they take; on a busy one it changes little, and the clock much.
        """
        return self._run(argv, os.devnull, code)

    def _run(self, argv: tuple[str, ...], stdout: str, code: int) -> float:
        found, work = wait(self.spawn(*argv, stdout=stdout))
        if found != code:
            said = (self.folder / "stderr").read_text(errors="replace").strip()
            raise Broken(f"{' '.join(argv)[:200]} ended with {found} instead of {code}: {said[-500:]}")
        return work

    def output(self, *argv: str) -> bytes:
        """What a program prints."""
        printed = self.folder / "stdout"
        self.seconds(*argv, stdout=str(printed))
        return printed.read_bytes()


@contextmanager
def stage() -> Iterator[Stage]:
    """On a disk, as a sync in memory costs nothing; /tmp is memory on many machines and /var/tmp on none."""
    with tempfile.TemporaryDirectory(prefix="bydawn-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:  # noqa: S108
        disk = os.statvfs(name)
        if disk.f_bavail * disk.f_frsize < _DISK:
            raise Broken(f"{name} has too little room: {_DISK >> 30} GB are needed for a moment; set TMPDIR")
        there = Stage(Path(name))
        try:
            yield there
        finally:
            for left in kernel.sweep(kernel.Trace(there.mark)):  # a fault of its own, unless we were interrupted
                print(f"bench: had to end {left}", file=sys.stderr)


def _environment(folder: Path, mark: str) -> dict[str, str]:
    """Ours without what would change the figures: nobody's configuration, and Python as it comes."""
    foreign = ("PYTHON", "GIT_", "BYDAWN_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    name, _, value = mark.partition("=")
    homes = {"HOME": str(folder), "XDG_STATE_HOME": f"{folder}/state", "XDG_CACHE_HOME": f"{folder}/cache"}
    # The reference for a round repeats its children, and the temporary folder of a box is gone by then.
    return {**kept, **homes, "BYDAWN_BOX": "off", name: value}


def wait(pid: int, patience: float = _PATIENCE) -> tuple[int, float]:
    """The exit code of a child, negative for a signal, and its processor time, that of its children included.

    A child that does not end is ended, and that is an error.
    """
    fd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    ended = poll.poll(patience * 1000)
    os.close(fd)
    if not ended:
        os.kill(pid, signal.SIGKILL)  # cannot be gone, as nobody else reaps it
    _, status, used = os.wait4(pid, 0)
    if not ended:
        raise Broken(f"process {pid} did not end within {patience:.0f} s")
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def until(look: Callable[[], object], what: str, patience: float = 20.0) -> None:
    """Look again and again, every half millisecond, until it is so."""
    deadline = time.monotonic() + patience
    while not look():
        if time.monotonic() > deadline:
            raise Broken(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.0005)


def fastest(contestants: Sequence[Callable[[], float]], turns: int, seconds: float = 30.0) -> list[float]:
    """The shortest time of each. They take turns, so that a noisy minute hits all of them alike.

    So many turns, or as many as are begun within the time.
    """
    deadline = time.monotonic() + seconds
    times = [[contestant() for contestant in contestants]]
    while len(times) < turns and time.monotonic() < deadline:
        times.append([contestant() for contestant in contestants])
    return [min(each) for each in zip(*times, strict=True)]
