"""How a child is asked to stop, and what is left of one is found."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bydawn.core.agent import Ladder
from bydawn.core.outcome import Ending
from bydawn.core.ports import ChildLimits, Job
from bydawn.process.child import ChildProcesses
from bydawn.system import kernel

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
