"""Owns one child as a worker does, and says as JSON how that went: `python -m benchmarks.owner STDOUT ARGV…`.

Its output is kept in a file, followed, split, parsed by the demo agent's reader, and handed to a follower. A process of
its own, because its memory is what is measured.
"""

import os
import sys
import time
from pathlib import Path

import msgspec

from bydawn.agents.demo.agent import DemoAgent
from bydawn.core.agent import Event, Message
from bydawn.core.outcome import Ending
from bydawn.core.ports import ChildLimits, Job
from bydawn.process.child import ChildProcesses


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner has seen."""

    seconds: float
    events: int
    skipped: int  # bytes of lines that were too long to be parsed
    grown: int  # bytes of memory, at the highest point, over what it had before
    delays: list[float] = []  # seconds from a message that is a clock reading until it was heard


class Listener:
    """What the engine does with each line: the reader's events go to the follower, which is us."""

    def __init__(self) -> None:
        self.events = self.skipped = 0
        self.delays: list[float] = []
        self._reader = DemoAgent().reader()

    def read(self, line: bytes) -> bool:
        for event in self._reader.read(line):
            self.heard(event)
        return False

    def skip(self, size: int) -> None:
        self.skipped += size

    def heard(self, event: Event) -> None:
        self.events += 1
        if isinstance(event, Message) and event.text.isdigit():
            self.delays.append((time.monotonic_ns() - int(event.text)) / 1e9)


def main(stdout: str, *argv: str) -> None:
    listener = Listener()
    job = Job(
        argv=argv,
        env={},
        stdin=os.devnull,
        stdout=stdout,
        stderr=os.devnull,
        times=f"{stdout}.times",
        limits=ChildLimits(),
    )
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest point so far is forgotten
    started = time.perf_counter()
    exit_ = ChildProcesses(wakes=(), env=os.environ).run(job, listener.read, listener.skip, lambda: False)
    seconds = time.perf_counter() - started
    if exit_.ending is not Ending.EXIT or exit_.code:
        sys.exit(f"{argv[0]} ended badly: {exit_}")
    report = Report(
        seconds=seconds,
        events=listener.events,
        skipped=listener.skipped,
        grown=_memory("VmHWM") - before,
        delays=listener.delays,
    )
    print(msgspec.json.encode(report).decode())


def _memory(name: str) -> int:
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(f"{name}:")) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
