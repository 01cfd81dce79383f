"""How soon is it over when a person says so, and how soon does it go on after a crash?"""

import os
import select
import signal
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.rows import Bench, Budget
from benchmarks.running import Running, several, start
from benchmarks.stage import PYTHON, Broken, Stage, until
from bydawn.core.facts import LoopStopped, PauseRequested
from bydawn.core.values import End
from bydawn.system import kernel
from bydawn.worktree.workspace import GitWorkspace

_TURNS = 7
_LOOPS = 4


def stop(stage: Stage) -> Iterator[float]:
    yield median(_stopped(stage) for _ in range(_TURNS))


def _stopped(stage: Stage) -> float:
    """Seconds from the end of the agent, which obeys at once, until guardian and worker have exited."""
    with several(stage, 1) as [loop]:
        agent = os.pidfd_open(loop.agent)
        os.kill(loop.guardian, signal.SIGINT)
        until(lambda: _paused(loop), "the first Ctrl-C to be taken")
        os.kill(loop.guardian, signal.SIGINT)
        obeyed, _, _ = select.select([agent], [], [], 10)
        started = time.perf_counter()
        code = loop.wait()
        taken = time.perf_counter() - started
        os.close(agent)
    last = loop.facts()[-1]
    if not obeyed or code != 130 or not isinstance(last, LoopStopped) or last.end is not End.PAUSED:
        raise Broken(f"after Ctrl-C twice the command ended with {code} and the ledger with {last}")
    [left] = kernel.left_of([kernel.Trace(stage.mark)])
    if left:
        raise Broken(f"after Ctrl-C twice there was still {kernel.name_of(left[0])}")
    return taken


def _paused(loop: Running) -> bool:
    return any(isinstance(fact, PauseRequested) for fact in loop.facts())


def resume(stage: Stage) -> Iterator[float]:
    """From the command until the next agent's process exists, less one snapshot, in bare start-ups."""
    times = [each for _ in range(_LOOPS) for each in _resumed(stage)]
    snapshot, bare, resumed = map(min, zip(*times, strict=True))
    yield (resumed - snapshot) / bare


def _resumed(stage: Stage) -> list[tuple[float, float, float]]:
    """A snapshot, a bare start-up, the way to the next agent. A loop may not be killed ten times in a row."""
    times: list[tuple[float, float, float]] = []
    loop = start(stage)
    try:
        for round_ in range(2, _TURNS + 2):
            os.kill(loop.worker, signal.SIGKILL)
            loop.wait()
            before = (_snapshot(loop), stage.seconds(PYTHON, "-c", "pass"))
            started = time.perf_counter()
            loop = Running(stage, loop.workspace, "resume", round_=round_)
            times.append((*before, loop.began - started))
    finally:
        loop.end()
    return times


def _snapshot(loop: Running) -> float:
    """Nobody holds the loop now, so its private git directory is ours."""
    workspace = GitWorkspace(loop.workspace, loop.folder / "git")
    started = time.perf_counter()
    workspace.snapshot()
    return time.perf_counter() - started


BENCHES = (
    Bench((Budget("stop: Ctrl-C twice, after the agent obeyed", 0.2, "s"),), stop),
    Bench((Budget("resume: next agent after kill -9", 10, "×"),), resume),
)
