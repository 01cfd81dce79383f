"""What an operator asks again and again, and fifty loops that go on by themselves while some of them are killed."""

import json
import os
import random
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.ledgers import write_loop
from benchmarks.memory import pss
from benchmarks.rows import Bench, Budget
from benchmarks.running import Running
from benchmarks.stage import BYDAWN, Broken, Stage, fastest, until, wait
from bydawn.core.facts import RoundStarted, RunStarted
from bydawn.core.values import FINISHED
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import load, records
from bydawn.system import kernel

_TURNS = 15
_COMMANDS = ("health", "metrics")
_MANY, _KILLED = 50, 10
_MB = 1_000_000


def long_loops(stage: Stage) -> Iterator[float]:
    states = {rounds: stage.place("state") for rounds in (10, 10_000)}
    for rounds, state in states.items():
        write_loop(state, stage.folder, "night", rounds)
    for command in _COMMANDS:
        calls = [partial(stage.work, BYDAWN, command, "--state-dir", str(state)) for state in states.values()]
        small, big = fastest(calls, _TURNS)
        yield big / small


def fifty(stage: Stage) -> Iterator[float]:
    """Each was ended by a shutdown; one process brings them back, and starts those again that are killed."""
    folders = [_ended_by_a_shutdown(stage) for _ in range(_MANY)]
    keeper = stage.spawn(BYDAWN, "resume", "--all", "--foreground")
    try:
        for folder in folders:
            until(partial(_is_in_round, folder, 2), "the second round of a loop")
        workers = [_runs(folder)[-1].pid for folder in folders]
        guardians = [int(kernel.stat_fields(worker)[1]) for worker in workers]
        memory = pss(keeper, *workers, *guardians) / _MANY / _MB
        for worker in random.sample(workers, _KILLED):
            os.kill(worker, signal.SIGKILL)
        (stage.folder / "gate").touch()
        until(lambda: all(_has_finished(folder) for folder in folders), "the end of all loops")
    finally:
        os.kill(keeper, signal.SIGTERM)
        wait(keeper)
    if (restarts := sum(run.restart is not None for folder in folders for run in _runs(folder))) != _KILLED:
        raise Broken(f"{_KILLED} loops were killed, and {restarts} restarts are on record")
    yield sum(_has_finished(folder) for folder in folders)
    yield memory


def _ended_by_a_shutdown(stage: Stage) -> Path:
    """A loop in the middle of its first round; the next two last until there is a gate."""
    script, gate = stage.folder / "many.json", stage.folder / "gate"
    waits = [{"say": "this takes a while"}, {"run": ["sh", "-c", f"until test -e {gate}; do sleep 0.2; done"]}]
    done = {"result": {"text": "All of it is there.\n<promise>TASK_COMPLETE</promise>"}}
    rounds = [[{"say": "this takes a while"}, {"sleep": 1e6}], waits, waits, [{"result": {"text": "on it"}}], [done]]
    script.write_text(json.dumps({"rounds": rounds}))
    loop = Running(stage, stage.repository("many"), "run", "go on", "-a", f"demo:{script}")
    loop.end()
    return Path(os.path.realpath(loop.folder))


def _runs(folder: Path) -> list[RunStarted]:
    return [record.fact for record in records(LoopFolder(folder)) if isinstance(record.fact, RunStarted)]


def _is_in_round(folder: Path, number: int) -> bool:
    started = (record.fact for record in records(LoopFolder(folder)) if isinstance(record.fact, RoundStarted))
    return any(fact.round == number for fact in started)


def _has_finished(folder: Path) -> bool:
    stopped = load(LoopFolder(folder))[0].stopped
    return stopped is not None and stopped.end in FINISHED


BENCHES = (
    Bench(
        (
            Budget(f"many: of {_MANY} loops, {_KILLED} of them killed, finished", _MANY, "loops", at_least=True),
            Budget(f"memory: each of {_MANY} loops that one process keeps", 14, "MB"),
        ),
        fifty,
    ),
    Bench(
        tuple(Budget(f"growth: {command}, a loop of 10,000 rounds against 10", 1.5, "×") for command in _COMMANDS),
        long_loops,
    ),
)
