"""Does looking at loops stay as fast when there are many, when they are long, and when they have said much?"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.ledgers import write_loop
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, Stage, fastest

_TURNS = 15
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


def long_logs(stage: Stage) -> Iterator[float]:
    states = {size: stage.place("state") for size in (_TAIL, 1_000_000_000)}
    for size, state in states.items():
        folder = write_loop(state, stage.folder, "night", 1)
        _write_log(folder / "rounds" / "0001", size)
    command = ("logs", "night", "--tail", "20", "--raw", "-C", str(stage.folder))
    yield _ratio(stage, *((*command, "--state-dir", str(state)) for state in states.values()))


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
    Bench((Budget("growth: status of 1,000 loops against 10", 3, "×"),), many_loops),
    Bench((Budget("growth: opening 10,000 rounds against 10", 2, "×"),), long_loops),
    Bench((Budget("growth: tail of 1 GB against 1 MB", 1.5, "×"),), long_logs),
)
