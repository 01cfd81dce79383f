"""How much memory does a running loop take: its guardian and its worker, without the agent?

PSS: what several processes share counts in parts. The interpreter's own pages are shared with every other Python on the
machine, so one loop alone looks some MB smaller on a busy machine; with 20 loops this no longer matters. The loops run
with --plain; on a terminal the worker loads rich as well.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.running import Running, several
from benchmarks.stage import Stage, until

_MANY = 20
_MB = 1_000_000


def alone(stage: Stage) -> Iterator[float]:
    yield _each_of(1, stage)


def many(stage: Stage) -> Iterator[float]:
    yield _each_of(_MANY, stage)


def _each_of(count: int, stage: Stage) -> float:
    with several(stage, count) as loops:
        for loop in loops:
            until(partial(_has_spoken, loop), "the agent's first word")
        return sum(map(_pss, loops)) / count / _MB


def _has_spoken(loop: Running) -> bool:
    return loop.agent_output.stat().st_size > 0


def _pss(loop: Running) -> int:
    rows = [
        row
        for pid in (loop.guardian, loop.worker)
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        if row.startswith("Pss:")
    ]
    return sum(int(row.split()[1]) for row in rows) * 1024


BENCHES = (
    Bench((Budget("memory: one loop alone", 25, "MB"),), alone),
    Bench((Budget(f"memory: each of {_MANY} loops", 16, "MB"),), many),
)
