"""What does a round cost on top of the programs that it has to start anyway?

Per round (a changed file, one check, a snapshot before and one after) there are

    git calls   ls-files      did anything change since the last snapshot? (before the round)
                ls-files      … and after it
                update-index  store what changed
                write-tree    give the tree its name
                ls-tree       … and the tree without its documents
                diff-tree     how many lines are new, how many are gone?
    syncs       1 fdatasync of the ledger before the agent starts: `round.started`, and what the checks before it said
                1 fdatasync of the ledger when the round is over: `round.ended`
                2 for the blobs (sync_file_range, then one fsync for all of them), by update-index
                2 for the trees, by write-tree
                1 fsync for the ref that keeps the tree
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from benchmarks.autorunner import AUTORUNNER, autorunner, write_agent
from benchmarks.reference import Reference
from benchmarks.rows import Bench, Budget
from benchmarks.stage import BYDAWN, Broken, Stage, fastest, until, wait
from benchmarks.strace import Round, one_round, run_command
from bydawn.core.facts import RoundStarted
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import records

_SHORT, _LONG, _OLD = 3, 203, 800
_TURNS = 3
_TALK, _TALKATIVE = 50, 53  # lines that a talkative agent says in a round, and its rounds

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
    """An old loop and a young one at the same time, so that whatever disturbs one disturbs the other as well."""
    script, patience = _script(stage), _OLD * 0.25  # seconds: five times what a round takes on an idle machine
    places = [stage.repository(name) for name in ("old", "young")]
    old = stage.spawn(*run_command(places[0], script, _OLD + _LONG))
    until((_folder(places[0]) / "rounds" / f"{_OLD:04}").exists, f"round {_OLD}", patience)
    stage.seconds(*run_command(places[1], script, _LONG), code=4)
    os.kill(old, signal.SIGTERM)
    wait(old)
    began = [_began(place) for place in places]
    together = max(times[_SHORT] for times in (began[0][_OLD:], began[1])), min(times[-1] for times in began)
    old_pace, young_pace = (_pace(times, *together) for times in began)
    yield old_pace / young_pace


def live_log(stage: Stage) -> Iterator[float]:
    """The slope of codex-autorunner, whose log grows while its agent talks, against that of the same loop natively."""
    bin_ = stage.place("bin")
    stage.env["PATH"] = f"{bin_}:{stage.env['PATH']}"
    write_agent(bin_ / "codex", lines=_TALK)

    def work(runs: int) -> float:
        folder = autorunner(stage, boxes=_TALKATIVE + 1, runs=runs)
        return stage.work(AUTORUNNER, "run", "--repo", str(folder))

    def native(rounds: int) -> float:
        folder = autorunner(stage, boxes=_TALKATIVE + 1, runs=rounds)
        settings = ("-C", str(folder), "-t", "TODO.md", "-a", "arg:codex", "--ticks", "count", "-n", str(rounds))
        return stage.work(BYDAWN, "run", *settings, code=4)

    contestants = [partial(kind, rounds) for kind in (work, native) for rounds in (_SHORT, _TALKATIVE)]
    short, long, native_short, native_long = fastest(contestants, _TURNS)
    yield (long - short) / (native_long - native_short)


def worktree(stage: Stage) -> Iterator[float]:
    """The slope of a loop in a worktree, which commits every round, against that of one that commits where it is."""
    script = _script(stage)

    def work(more: tuple[str, ...], rounds: int) -> float:
        return stage.work(*run_command(stage.repository("commits"), script, rounds), "--new", *more, code=4)

    kinds = (("--worktree",), ("--commit", "on"))
    short, long, here_short, here_long = fastest(
        [partial(work, more, rounds) for more in kinds for rounds in (_SHORT, _TALKATIVE)], _TURNS
    )
    yield (long - short) / (here_long - here_short)


def _folder(workspace: Path) -> Path:
    return workspace / ".bydawn" / "loops" / workspace.name


def _began(workspace: Path) -> list[datetime]:
    return [record.at for record in records(LoopFolder(_folder(workspace))) if isinstance(record.fact, RoundStarted)]


def _pace(began: list[datetime], start: datetime, end: datetime) -> float:
    """Seconds per round between two moments."""
    within = [at for at in began if start <= at <= end]
    return (within[-1] - within[0]).total_seconds() / (len(within) - 1)


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
    Bench((Budget("round: cost of codex-autorunner against native", 1.2, "×"),), live_log),
    Bench((Budget("round: in a worktree against commits in place", 1.1, "×"),), worktree),
    Bench((Budget("round: 800 to 1,000 against 3 to 203", 1.1, "×"),), growth),
)
