"""Run a loop that was asked for in another tool's words, in front of a person."""

from collections.abc import Callable
from pathlib import Path

from bydawn.cli.foreground import be_trusted, run_in_foreground
from bydawn.cli.voice import DialectVoice
from bydawn.dialects.seam import Configured, Dialect, Start
from bydawn.operations.dialects import begin, config, loops
from bydawn.operations.plan import Plan
from bydawn.process.guardian import Tether

Runner = Callable[[Tether, Plan], int]


def start(
    dialect: Dialect,
    wanted: Start,
    workspace: Path,
    tether: Tether | None,
    run: Runner | None = None,
) -> int:
    """Run a new loop to its end; the exit code."""
    gathered = begin.agreed(dialect, wanted, workspace, be_trusted, is_new=True)
    with begin.secured(dialect, wanted, gathered, workspace) as planned:
        return resume(dialect, planned, tether, run)


def trust_config(dialect: Configured, workspace: Path) -> None:
    """Ask about a dialect's own file before anything that it names is even looked at."""
    if wanted := config.read(dialect, workspace):
        gathered = begin.gather(dialect, wanted, workspace)
        be_trusted(gathered, workspace, loops.registry_of(gathered).root.path, config=wanted.config)


def resume(dialect: Dialect, planned: Plan, tether: Tether | None, run: Runner | None = None) -> int:
    """Run a planned loop to its end; the exit code. `run` is for a dialect with a screen of its own."""
    assert tether  # noqa: S101 - what starts a loop runs under a guardian
    if run:
        return run(tether, planned)
    return run_in_foreground(tether, planned, voice=DialectVoice(dialect))
