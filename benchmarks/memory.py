"""How much memory does a running loop take: its guardian and its worker, without the agent?"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.running import Running, several
from benchmarks.stage import Stage, until

_MANY = 20
_MB = 1_000_000


def alone(stage: Stage) -> Iterator[float]:
    """As if no other Python ran on this machine: what files have in common with those (and with us) counts in full.

    The guardian is a fork of the worker's start, so the files it has in memory are among the worker's.
    """
    with several(stage, 1) as [loop]:
        _settled(loop)
        anonymous = sum(_kilobytes(pid, "smaps_rollup", "Pss_Anon") for pid in (loop.guardian, loop.worker))
        yield (anonymous + _kilobytes(loop.worker, "status", "RssFile")) * 1024 / _MB


def many(stage: Stage) -> Iterator[float]:
    with several(stage, _MANY) as loops:
        for loop in loops:
            _settled(loop)
        pids = [pid for loop in loops for pid in (loop.guardian, loop.worker)]
        yield sum(_kilobytes(pid, "smaps_rollup", "Pss") for pid in pids) * 1024 / _MB / _MANY


def _settled(loop: Running) -> None:
    """The agent has said something and its worker waits for more."""
    until(lambda: loop.agent_output.stat().st_size or None, "the agent's first word")


def _kilobytes(pid: int, file: str, field: str) -> int:
    rows = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(f"{field}:"))


BENCHES = (
    Bench((Budget("memory: one loop alone", 25, "MB"),), alone),
    Bench((Budget(f"memory: each of {_MANY} loops", 16, "MB"),), many),
)
