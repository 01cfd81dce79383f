"""Death, a full disk or a broken one at each call that touches ledger, state or lock (FAULTS 1-3, 9, 17, 18, 20).

strace counts calls by name, and with `-P` only those on the files that are named. Each row of the tables below walks
through the occurrences of one call, from the first in steps, until a run gets by without the fault.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bydawn.store.registry import Registry
from driving import Home, Said, is_error, tree_of

pytestmark = pytest.mark.usefixtures("strace")

NAMES = ("ledger.jsonl", "state.json", "state.json.tmp", "lock", "loop.json", "loop.json.tmp", "reserve", "inbox")
GOAL = ("-t", "TODO.md", "-k", "test -e 1.txt", "-n", "0")
DEATHS = [
    ("write", 1, 3),
    ("write", 2, 3),
    ("write", 3, 3),
    ("openat", 1, 6),
    ("openat", 4, 6),
    ("rename", 1, 2),
    ("rename", 2, 2),
    ("fdatasync", 1, 1),
    ("fsync", 1, 1),
    ("mkdir", 1, 1),
    ("flock", 1, 1),
    ("pwrite64", 1, 1),
    ("unlink", 1, 1),
]
ERRORS = [
    ("ENOSPC", "write", 1, 4),
    ("ENOSPC", "write", 2, 4),
    ("ENOSPC", "openat", 2, 5),
    ("ENOSPC", "rename", 1, 4),
    ("ENOSPC", "fdatasync", 1, 3),
    ("ENOSPC", "mkdir", 1, 1),
    ("ENOSPC", "pwrite64", 1, 1),
    ("EIO", "write", 3, 4),
    ("EIO", "openat", 3, 7),
    ("EIO", "rename", 2, 4),
    ("EIO", "fdatasync", 2, 2),
    ("EIO", "fsync", 1, 1),
    ("EIO", "flock", 1, 1),
    ("EIO", "unlink", 1, 1),
]


@pytest.mark.parametrize(("call", "first", "step"), DEATHS)
def test_a_worker_that_dies_at_a_call_loses_nothing(tmp_path: Path, call: str, first: int, step: int) -> None:
    for trial in trials(tmp_path, first, step):
        ended = trial.run(call, "signal=KILL")
        if ended.code == 0:
            assert trial.number > first, f"there is no {call} any more"
            return trial.is_over()
        # strace counts for each process: the guardian may die as well, when it says that nothing is left.
        assert ended.code == -9 or "was killed by SIGKILL" in ended.err
        trial.goes_on()
    return None


@pytest.mark.parametrize(("error", "call", "first", "step"), ERRORS)
def test_a_disk_that_fails_at_a_call_is_told_and_survived(
    tmp_path: Path, error: str, call: str, first: int, step: int
) -> None:
    for trial in trials(tmp_path, first, step):
        ended = trial.run(call, f"error={error}")
        assert ended.code in (0, 1, 3), ended
        assert ended.code != 1 or is_error(ended.err), ended
        assert "Traceback" not in ended.out + ended.err
        trial.goes_on() if ended.code else trial.is_over()
        if not trial.met_the_fault:
            assert trial.number > first, f"there is no {call} any more"
            return


@pytest.mark.parametrize("call", ["unlink", "openat", "write", "ftruncate", "rename"])
def test_a_worker_that_dies_while_it_mends_a_torn_ledger_loses_nothing(tmp_path: Path, call: str) -> None:
    for trial in trials(tmp_path, first=1, step=2 if call == "openat" else 1, at_most=4):
        trial.is_torn()
        if trial.run(call, "signal=KILL").code == 0:
            assert trial.number > 1, f"there is no {call} any more"
            return trial.is_over()
        trial.goes_on()
        assert not (trial.home.folder() / "state.json.tmp").exists()
    return None


def test_every_fact_is_on_the_disk_before_anything_is_done_about_it(home: Home) -> None:
    home.tasks(2)
    log = home.root / "strace.log"  # `-y` names the file behind each descriptor
    watch = ["strace", "-f", "-qq", "-y", "-s", "200", "-o", str(log), "-e", "trace=write,fdatasync,execve"]
    assert home.run(home.each_task({"write": {"path": "{n}.txt", "text": "x"}}), *GOAL[:2], before=watch).code == 0
    unsynced, agents = 0, 0
    for line in log.read_text().splitlines():
        if "write(" in line and "/ledger.jsonl>" in line:
            unsynced += 1
        elif "fdatasync(" in line and "/ledger.jsonl>" in line:
            unsynced = 0
        elif "execve(" in line and "player.py" in line:
            agents += 1
            assert unsynced == 0, "power may go now: the agent would have worked, and nobody would know"
    assert agents == 2
    assert unsynced == 0, "the end is on the disk, too"


def trials(root: Path, first: int, step: int, at_most: int = 100) -> Iterator["Trial"]:
    for number in range(first, first + step * at_most, step):
        trial = Trial(root / str(number), number)
        yield trial
        assert trial.home.leave() == []


class Trial:
    """A small loop that meets a fault at the N-th call of a kind."""

    def __init__(self, root: Path, number: int) -> None:
        self.home = Home(root)
        self.home.tasks(2)
        self.agent = self.home.each_task({"write": {"path": "{n}.txt", "text": "{task}\n"}})
        self.number = number
        self._log = root / "strace.log"

    def is_torn(self) -> None:
        """One round was played, and then the power went while a record and a snapshot were being written."""
        assert self.home.run(self.agent, *GOAL, "--once").code == 4
        with (self.home.folder() / "ledger.jsonl").open("ab") as ledger:
            ledger.write(b'{"v":1,"seq":')
        (self.home.folder() / "state.json.tmp").write_bytes(b"{")

    def run(self, call: str, fault: str) -> Said:
        loops = Registry(self.home.states).home(self.home.repo)
        paths = [loops, loops / "repo", *(loops / "repo" / name for name in (*NAMES, "ledger.7.torn"))]
        options = ["-f", "-qq", "-o", str(self._log), "-e", f"trace={call}"]
        options += ["-e", f"inject={call}:{fault}:when={self.number}"]
        options += ["--seccomp-bpf"] if fault.startswith("error") else []  # faster, but unable to send signals
        options += [word for path in paths for word in ("-P", str(path))]
        return self.home.run(self.agent, *GOAL, before=["strace", *options])

    @property
    def met_the_fault(self) -> bool:
        return "INJECTED" in self._log.read_text()

    def goes_on(self) -> None:
        """The next plain run completes the loop, loses nothing, and uses no number twice."""
        before = self.whole_lines()
        again = self.home.run(self.agent, *GOAL)
        assert again.code == 0, again
        assert self.whole_lines().startswith(before)
        self.is_over()

    def is_over(self) -> None:
        numbers = [fact["data"]["round"] for fact in self.home.facts("round.started")]
        assert numbers == sorted(set(numbers))
        assert {"1.txt", "2.txt"} < set(tree_of(self.home.repo))
        assert self.home.facts("loop.stopped")[-1]["data"]["end"] == "complete"

    def whole_lines(self) -> bytes:
        """What the ledger holds: each line with a newline is a fact that may have been acted upon."""
        data = (self.home.folder() / "ledger.jsonl").read_bytes() if self.home.has_loop() else b""
        return data[: data.rfind(b"\n") + 1]
