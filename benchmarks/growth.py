"""Does looking at loops stay as fast when there are many, when they are long, and when they have said much?"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.autorunner import AUTORUNNER, LOG, autorunner, write_agent
from benchmarks.ledgers import write_loop
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, Stage, fastest
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import load

_TURNS = 15
_REPLAYS = 3
_TAIL = 1_000_000  # bytes of real lines; what stands before them is a hole that takes no room


def many_loops(stage: Stage) -> Iterator[float]:
    yield _ratio(stage, *(("status", "--state-dir", str(_loops(stage, count))) for count in (10, 1_000)))


def long_loops(stage: Stage) -> Iterator[float]:
    states = {rounds: stage.place("state") for rounds in (10, 10_000)}
    for rounds, state in states.items():
        write_loop(state, stage.folder, "night", rounds)
    where = ("-C", str(stage.folder))
    yield _ratio(
        stage, *(("status", "night", "--json", *where, "--state-dir", str(state)) for state in states.values())
    )


def replay(stage: Stage) -> Iterator[float]:
    """The time for one fact when there is no snapshot to begin with."""
    small, big = (write_loop(stage.place("state"), stage.folder, "night", rounds) for rounds in (300, 30_000))
    for folder in (small, big):
        (folder / "state.json").unlink()
    times = fastest([partial(_seconds_per_fact, folder) for folder in (small, big)], _REPLAYS)
    yield times[1] / times[0]


def _seconds_per_fact(folder: Path) -> float:
    started = time.process_time()
    state, _ = load(LoopFolder(folder))
    return (time.process_time() - started) / state.seq


def long_logs(stage: Stage) -> Iterator[float]:
    states = {size: stage.place("state") for size in (_TAIL, 1_000_000_000)}
    for size, state in states.items():
        folder = write_loop(state, stage.folder, "night", 1)
        _write_log(folder / "rounds" / "0001", size)
    command = ("logs", "night", "--tail", "20", "--raw", "-C", str(stage.folder))
    yield _ratio(stage, *((*command, "--state-dir", str(state)) for state in states.values()))


def one_log(stage: Stage) -> Iterator[float]:
    """The log of codex-autorunner: its last lines, and one more run, whose prompt has the end of the last one."""
    bin_ = stage.place("bin")
    stage.env["PATH"] = f"{bin_}:{stage.env['PATH']}"
    write_agent(bin_ / "codex", lines=5)
    folders = [autorunner(stage, boxes=100, runs=1) for _ in range(2)]
    for folder, size in zip(folders, (_TAIL, 1_000_000_000), strict=True):
        stage.work(AUTORUNNER, "run", "--repo", str(folder))
        _fill(folder / LOG, size)
    for words in (("log", "--tail", "20"), ("run",)):
        small, big = fastest([partial(stage.work, AUTORUNNER, *words, "--repo", str(each)) for each in folders], _TURNS)
        yield big / small


def _fill(log: Path, size: int) -> None:
    """What the last run said goes on and on."""
    line = b"[2025-01-01T12:34:56Z] run=1 stdout: one of many lines that an agent wrote in a long night\n"
    with log.open("r+b") as file:
        file.truncate(size)
        file.seek(0, 2)
        file.write(b"\n" + line * (_TAIL // len(line)) + b"=== run 1 end (code 0) ===\n")


def _ratio(stage: Stage, small: tuple[str, ...], big: tuple[str, ...]) -> float:
    for command in (small, big):
        stage.work(BYDAWN, *command)
    small_time, big_time = fastest([partial(stage.work, BYDAWN, *command) for command in (small, big)], _TURNS)
    return big_time / small_time


def _loops(stage: Stage, count: int) -> Path:
    state = stage.place("state")
    for number in range(count):
        write_loop(state, stage.folder / f"work-{number // 10}", f"loop-{number}", rounds=10)
    return state


def _write_log(folder: Path, size: int) -> None:
    folder.mkdir(parents=True)
    line = b'{"type":"message","text":"one of many lines that an agent wrote in a long night"}\n'
    lines = line * (_TAIL // len(line))
    with (folder / "stdout").open("wb") as file:
        file.seek(size - len(lines))
        file.write(lines)


BENCHES = (
    Bench((Budget("growth: status of 1,000 loops against 10", 2.5, "×"),), many_loops),
    Bench((Budget("growth: opening 10,000 rounds against 10", 2, "×"),), long_loops),
    Bench((Budget("growth: replay of 90,000 facts against 900, a fact", 1.5, "×"),), replay),
    Bench((Budget("growth: tail of 1 GB against 1 MB", 1.5, "×"),), long_logs),
    Bench(
        (
            Budget("growth: codex-autorunner log --tail, 1 GB against 1 MB", 1.5, "×"),
            Budget("growth: codex-autorunner run, a log of 1 GB against 1 MB", 1.5, "×"),
        ),
        one_log,
    ),
)
