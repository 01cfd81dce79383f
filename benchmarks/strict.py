"""strict-agent-loop: what a script costs an agent in its sandbox, and whether a long task makes it cost more."""

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import bydawn
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BIN, PYTHON, Stage, fastest
from bydawn.core import taking
from bydawn.core.facts import IterationRecorded
from bydawn.core.records import Iteration
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger

STRICT = str(BIN / "strict-agent-loop")
_SCRIPTS = Path(bydawn.__file__).parent / "dialects/strict_agent_loop/skill/scripts"
_TURNS = 10
_LONG, _AT_ONCE = 10_000, 2_000
_KB = 1e3
_DONE = ("--local-done-condition", "done", "--result-summary", "did it", "--verification-summary", "looked at it")
_EVENT = ("append-event", "--kind", "note", "--message", "x")
_COMMANDS: dict[tuple[str, ...], int] = {  # and how each ends
    _EVENT: 0,
    ("update-state", "--task", "one more", *_DONE): 0,
    ("check-stop",): 1,
    ("report-status",): 0,
    ("compact-state",): 0,
}


def sandboxed(stage: Stage) -> Iterator[float]:
    """A script where the ledger cannot be written, as an agent's shell starts it."""
    state = _task(stage, 0)
    update = (PYTHON, str(_SCRIPTS / "update_state.py"), "--state", str(state), "--task", "one", *_DONE)
    closed = ("/usr/bin/env", "BYDAWN_STATE_DIR=/dev/null/nothing/can/be/made/here", *update)
    stage.work(*closed)
    script, nothing = fastest([partial(stage.work, *closed), partial(stage.work, PYTHON, "-c", "pass")], _TURNS)
    yield script / nothing


def long_tasks(stage: Stage) -> Iterator[float]:
    """The script that grows most, and the file that everybody reads."""
    states = [_task(stage, iterations) for iterations in (10, _LONG)]
    yield max(_growth(stage, states, words, code) for words, code in _COMMANDS.items())
    yield states[1].stat().st_size / _KB


def _growth(stage: Stage, states: list[Path], words: tuple[str, ...], code: int) -> float:
    calls = [partial(stage.work, STRICT, words[0], "--state", str(each), *words[1:], code=code) for each in states]
    for call in calls:
        call()
    small, big = fastest(calls, _TURNS)
    return big / small


def _task(stage: Stage, iterations: int) -> Path:
    """An interactive task with so many iterations; its state.json."""
    folder = stage.repository("task")
    where = ("--workspace-root", str(folder), "--task-id", folder.name, "--max-iterations", "1000000")
    made = stage.output(STRICT, "init-state", "--goal", "a goal", "--global-stop-condition", "a stop", *where)
    state = Path(json.loads(made)["state"])
    [path] = (stage.folder / "state/bydawn").glob(f"loops/*/{folder.name}")
    for first in range(0, iterations, _AT_ONCE):
        _record(LoopFolder(path), range(first, min(first + _AT_ONCE, iterations)))
        stage.work(STRICT, *_EVENT[:1], "--state", str(state), *_EVENT[1:])  # writes what its files lack
    return state


def _record(folder: LoopFolder, numbers: range) -> None:
    """Iterations without the time they would have taken."""
    loop = folder.read_loop()
    ledger = LoopLedger(folder, print, str)
    for number in numbers:
        claim = Iteration(
            task=f"write part {number}",
            local_done_condition="it is there",
            result_summary="Wrote the function and a test for it; three of the four tests pass now.",
            verification_summary="ran the tests",
        )
        at = loop.created_at + timedelta(seconds=number)
        fact = taking.taken(IterationRecorded(record=f"{number:016x}", at=at, claim=claim), loop, ledger.state, at)
        ledger.append(fact)
        if shorter := taking.shortening(fact, loop, ledger.state):
            ledger.append(shorter)
    ledger.snapshot()
    ledger.close()


BENCHES = (
    Bench((Budget("start-up: update_state.py in a sandbox", 12, "×"),), sandboxed),
    Bench(
        (
            Budget("growth: 10,000 iterations against 10, a script", 1.5, "×"),
            Budget("disk: state.json of 10,000 iterations", 50, "KB"),
        ),
        long_tasks,
    ),
)
