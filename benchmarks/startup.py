"""How long until the command answers, next to an interpreter that does nothing?"""

from collections.abc import Iterator
from functools import partial

from benchmarks.ledgers import write_loop
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, PYTHON, Stage, fastest

_BUDGETS = (
    Budget("start-up: --version", 1.8, "×"),
    Budget("start-up: --help", 5.5, "×"),
    Budget("start-up: status of 10 loops", 6, "×"),
)
_TURNS = 40


def measure(stage: Stage) -> Iterator[float]:
    state = stage.place("state")
    for number in range(10):
        write_loop(state, stage.folder / f"work-{number % 3}", f"loop-{number}", rounds=10)
    commands = [
        (PYTHON, "-c", "pass"),
        (BYDAWN, "--version"),
        (BYDAWN, "--help"),
        (BYDAWN, "status", "--state-dir", str(state)),
    ]
    for command in commands:
        stage.work(*command)  # byte-compiled and in the page cache from here on
    bare, *times = fastest([partial(stage.work, *command) for command in commands], _TURNS)
    yield from (time / bare for time in times)


BENCHES = (Bench(_BUDGETS, measure),)
