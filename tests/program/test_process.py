"""How a child is asked to stop, and what is left of one is found."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM
from typing import Any

import pytest

from bydawn.core.agent import Ladder
from bydawn.core.loop import OnInterrupt
from bydawn.core.outcome import Ending
from bydawn.core.ports import ChildLimits, Job
from bydawn.core.requests import Request
from bydawn.process.channel import LoopChannel, Signals
from bydawn.process.child import ChildProcesses
from bydawn.process.guardian import Tether
from bydawn.system import kernel
from driving import has_mark, wait_for

# Says which signals it got; it begins to run when both traps are set.
CHILD = 'trap "echo INT" INT; trap "echo TERM; exit 0" TERM; echo ready; while :; do sleep 0.02; done'


@pytest.mark.parametrize(
    ("ladder", "got"),
    [
        (Ladder(interrupt=0.3, terminate=5.0), ["ready", "INT", "TERM"]),
        # Claude would write into its history that the user rejected its work
        (Ladder(interrupt=0.0, terminate=5.0), ["ready", "TERM"]),
    ],
)
def test_an_agent_without_patience_for_an_interrupt_gets_none(tmp_path: Path, ladder: Ladder, got: list[str]) -> None:
    out = tmp_path / "out"
    heard: list[bytes] = []
    job = Job(
        argv=("sh", "-c", CHILD),
        env={},
        stdin="/dev/null",
        stdout=str(out),
        stderr=str(tmp_path / "err"),
        limits=ChildLimits(total=30.0, linger=0.05),
        ladder=ladder,
    )

    def on_line(line: bytes) -> bool:
        heard.append(line)
        return line == b"ready"  # its last word: from here on it ought to leave

    ended = ChildProcesses((), os.environ).run(job, on_line, lambda _: None, lambda: False)
    assert ended.ending is Ending.LINGER
    assert [line.decode() for line in heard] == got


def test_stderr_is_followed_while_the_child_runs_and_to_its_last_line(tmp_path: Path) -> None:
    """FAULTS 52, 53: also if a line of it is too long, and the last one has no newline."""
    flag = tmp_path / "flag"
    wait = f"while [ ! -e {flag} ]; do sleep 0.01; done"
    script = f"exec >&2; echo one; {wait}; head -c 9000000 /dev/zero; echo; printf end"
    job = Job(
        argv=("sh", "-c", script),
        env={},
        stdin="/dev/null",
        stdout=str(tmp_path / "out"),
        stderr=str(tmp_path / "err"),
        limits=ChildLimits(total=30.0),
    )
    heard: list[bytes] = []

    def on_error(line: bytes) -> bool:
        heard.append(line)
        flag.touch()  # it only goes on when the first line has been heard
        return False

    processes = ChildProcesses((), os.environ)
    ended = processes.run(job, lambda _: False, lambda _: None, lambda: False, on_error)
    assert (ended.ending, ended.code) == (Ending.EXIT, 0)
    assert heard == [b"one", b"[a line of 9000000 bytes was left out here]", b"end"]


LOOKS = """
import os, subprocess, sys, threading
from bydawn.system import kernel
kernel.become_subreaper()
child = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"], start_new_session=True)
threading.Thread(target=lambda: subprocess.run(["sleep", "60"]), daemon=True).start()
while len(kernel._descendants_among_all()) < 4:
    pass
looked = []
sys.addaudithook(lambda event, arguments: looked.append(arguments[0]) if event in ("open", "os.listdir") else None)
found = kernel.descendants()
many, looked[:] = len(looked), []
assert sorted(found) == sorted(kernel._descendants_among_all())
print(many, looked.count("/proc"))
kernel.end_children()
"""


def test_descendants_are_found_without_a_look_at_every_process_of_the_machine() -> None:
    """Every 5 s of a silent night: then nobody else's processes may matter."""
    done = subprocess.run([sys.executable, "-c", LOOKS], capture_output=True, text=True)
    assert done.stderr == ""
    many, all_ = map(int, done.stdout.split())
    assert (many <= 4 * 5, all_) == (True, 1)  # for each process, its threads and a list per thread


class CountedInbox:
    """An inbox that nobody writes to."""

    def __init__(self) -> None:
        self.looks = 0

    def take(self) -> list[Request]:
        self.looks += 1
        return []

    def done(self, request: Request) -> None:
        pass


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """What a channel changes in this process is put back."""
    handlers = {number: signal.getsignal(number) for number in (SIGINT, SIGTERM, SIGHUP, SIGQUIT)}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("usual_signals")
def test_an_inbox_that_reports_nothing_is_not_read_again_and_again(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch, inbox, signals = kernel.Watch(), CountedInbox(), Signals("run-1", OnInterrupt.FINISH)
        watch.add(str(tmp_path))
        channel = LoopChannel(signals, inbox, Tether(ours), "run-1", watch)
        assert [channel.take() for _ in range(3)] == [[], [], []]
        assert inbox.looks == 1
        (tmp_path / "draft").touch()
        (tmp_path / "draft").rename(tmp_path / "request.json")
        channel.take()
        assert inbox.looks == 2
        signal.raise_signal(SIGINT)
        assert [request.by for request in channel.take()] == ["a signal"]
        watch.close()


Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that do nothing; none is left in the end."""
    started: list[subprocess.Popen[bytes]] = []

    def sleep(*, env: dict[str, str], **options: Any) -> int:
        usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "start_new_session": True}
        started.append(subprocess.Popen(["sleep", "3600"], env=env, **{**usual, **options}))
        return started[-1].pid

    yield sleep
    for process in started:
        process.kill()
        process.wait()


def test_processes_of_a_run_are_found_by_mark_session_and_output_and_no_others(tmp_path: Path, start: Start) -> None:
    mark, rounds = f"BYDAWN_COOKIE=u-{os.getpid()}.", tmp_path / "rounds"
    (rounds / "0001").mkdir(parents=True)
    output = rounds / "0001" / "stdout"
    marked = start(env={"BYDAWN_COOKIE": f"u-{os.getpid()}.1.abc"})
    wait_for(lambda: has_mark(marked, mark.encode()))  # it is empty for a moment after the exec
    with output.open("ab") as appends, output.open("rb") as reads, (rounds / "0001" / ".p.swp").open("w+b") as edits:
        daemon = start(env={}, stdout=appends)
        start(env={}, stdin=reads)  # `tail -f`
        start(env={}, stdout=edits)  # an editor
    leader = start(env={})
    born = kernel.start_time(leader)
    [found, elsewhere] = kernel.left_of(
        [kernel.Trace(mark, str(rounds), leader, born), kernel.Trace("BYDAWN_COOKIE=other.", str(tmp_path / "rou"))]
    )
    assert sorted(found) == sorted([marked, daemon, leader])
    assert elsewhere == []
    assert kernel.left_of([kernel.Trace(mark, "", leader, "1")]) == [[marked]]  # the number is another process's now
