"""How much memory does a running loop take: its guardian and its worker, without the agent?

PSS: what several processes share counts in parts. The interpreter's own pages are shared with every other Python on the
machine, so one loop alone looks some MB smaller on a busy machine; with 20 loops this no longer matters. The loops run
with --plain; on a terminal the worker loads rich as well. Many are those that one command has resumed.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.running import several
from benchmarks.stage import BYDAWN, Stage, until
from bydawn.core.facts import RunStarted
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import records
from bydawn.system import kernel

_MANY = 20
_MB = 1_000_000


def alone(stage: Stage) -> Iterator[float]:
    with several(stage, 1) as [loop]:
        until(partial(_has_spoken, loop.folder, 1), "the agent's first word")
        yield pss(loop.guardian, loop.worker) / _MB


def many(stage: Stage) -> Iterator[float]:
    with several(stage, _MANY) as loops:
        folders = [loop.folder for loop in loops]
    stage.seconds(BYDAWN, "resume", "--all")  # they were ended by a signal
    try:
        for folder in folders:
            until(partial(_has_spoken, folder, 2), "the agent's first word")
        workers = [_worker(folder) for folder in folders]
        yield sum(pss(int(kernel.stat_fields(worker)[1]), worker) for worker in workers) / _MANY / _MB
    finally:
        stage.seconds(BYDAWN, "stop", "--all")
    for worker in workers:
        until(lambda pid=worker: not kernel.stat_fields(pid), "the end of a loop")  # type: ignore[misc]


def _worker(folder: Path) -> int:
    return [record.fact.pid for record in records(LoopFolder(folder)) if isinstance(record.fact, RunStarted)][-1]


def _has_spoken(folder: Path, round_: int) -> bool:
    output = folder / "rounds" / f"{round_:04}" / "stdout"
    return output.exists() and output.stat().st_size > 0


def pss(*pids: int) -> int:
    rows = [
        row
        for pid in pids
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        if row.startswith("Pss:")
    ]
    return sum(int(row.split()[1]) for row in rows) * 1024


BENCHES = (
    Bench((Budget("memory: one loop alone", 25, "MB"),), alone),
    Bench((Budget(f"memory: each of {_MANY} loops resumed at once", 14, "MB"),), many),
)
