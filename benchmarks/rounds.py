"""What does a round cost on top of the programs that it has to start anyway?

Per round (a changed file, one check, a snapshot before and one after) there are

    git calls   ls-files      did anything change since the last snapshot? (before the round)
                ls-files      … and after it
                update-index  store what changed
                write-tree    give the tree its name
                update-ref    keep it
    syncs       1 fdatasync of the ledger before the agent starts: `round.started`, and what the checks before it said
                1 fdatasync of the ledger when the round is over: `round.ended`
                2 for the blobs (sync_file_range, then one fsync for all of them), by update-index
                2 for the trees, by write-tree
                1 fsync for the ref, by update-ref
"""

import json
import shutil
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from benchmarks.reference import Reference
from benchmarks.rows import Bench, Budget
from benchmarks.stage import Broken, Stage, fastest
from benchmarks.strace import Round, one_round, run_command
from bydawn.core.facts import RoundStarted
from bydawn.ledger import records

_SHORT, _LONG, _LONGEST = 3, 203, 1_003
_TURNS = 3
_PART, _BLOCK = 200, 20  # of a long loop, and of that part the rounds that are averaged

# The cheapest round that still does everything: it changes a file, says so, and leaves all tasks open.
_SCRIPT = {"rounds": [[{"append": {"path": "work.txt", "text": "x\n"}}, {"say": "a step"}, {"result": {"text": "on"}}]]}


def count(stage: Stage) -> Iterator[float]:
    seen, _ = _seen(stage)
    yield from (seen.syncs, seen.git_calls)


def cost(stage: Stage) -> Iterator[float]:
    """The slope between a short and a long loop, so that starting and ending do not count."""
    script = _script(stage)
    seen, workspace = _seen(stage)
    reference = Reference(stage, seen, workspace)

    def ours(rounds: int) -> float:
        return stage.seconds(*run_command(stage.repository("rounds"), script, rounds), code=4)

    contestants = [partial(run, rounds) for run in (ours, reference.seconds) for rounds in (_SHORT, _LONG)]
    short, long, bare_short, bare_long = fastest(contestants, _TURNS)
    yield (long - short) / (bare_long - bare_short)


def growth(stage: Stage) -> Iterator[float]:
    """One long loop, by the times in its ledger: what its later rounds take, next to the first 200."""
    workspace = stage.repository("long")
    stage.seconds(*run_command(workspace, _script(stage), _LONGEST), code=4)
    [folder] = (workspace / ".bydawn" / "loops").iterdir()
    began = [record.at for record in records(folder) if isinstance(record.fact, RoundStarted)]
    first, *later = (_shortest(began[start : start + _PART]) for start in range(_SHORT, _LONGEST, _PART))
    yield fmean(later) / first


def _shortest(began: list[datetime]) -> float:
    """The mean of those rounds in a row that took least, as the others may have been disturbed."""
    times = [(after - before).total_seconds() for before, after in pairwise(began)]
    return min(fmean(times[start : start + _BLOCK]) for start in range(0, len(times), _BLOCK))


def _seen(stage: Stage) -> tuple[Round, Path]:
    strace = shutil.which("strace")
    if strace is None:
        raise Broken("strace was not found: apt-get install strace")
    workspace = stage.repository("seen")
    return one_round(stage, strace, workspace, _script(stage)), workspace


def _script(stage: Stage) -> Path:
    path = stage.folder / "script.json"
    path.write_text(json.dumps(_SCRIPT))
    return path


BENCHES = (
    Bench((Budget("round: syncs", 8, "per round"), Budget("round: git calls", 6, "per round")), count),
    Bench((Budget("round: cost against the bare children", 2, "×"),), cost),
    Bench((Budget("round: 200 to 1,000 against 3 to 203", 1.1, "×"),), growth),
)
