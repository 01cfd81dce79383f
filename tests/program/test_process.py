"""How a child is asked to stop."""

import os
from pathlib import Path

import pytest

from bydawn.core.agent import Ladder
from bydawn.core.outcome import Ending
from bydawn.core.ports import ChildLimits, Job
from bydawn.process.child import ChildProcesses

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
