"""What an operator asks again and again: does it cost more when a loop has had many rounds?"""

from collections.abc import Iterator
from functools import partial

from benchmarks.ledgers import write_loop
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, Stage, fastest

_TURNS = 15
_COMMANDS = ("health", "metrics")


def long_loops(stage: Stage) -> Iterator[float]:
    states = {rounds: stage.place("state") for rounds in (10, 10_000)}
    for rounds, state in states.items():
        write_loop(state, stage.folder, "night", rounds)
    for command in _COMMANDS:
        calls = [partial(stage.work, BYDAWN, command, "--state-dir", str(state)) for state in states.values()]
        small, big = fastest(calls, _TURNS)
        yield big / small


BENCHES = (
    Bench(
        tuple(Budget(f"growth: {command}, a loop of 10,000 rounds against 10", 1.5, "×") for command in _COMMANDS),
        long_loops,
    ),
)
