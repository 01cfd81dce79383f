"""Run a loop that was asked for in another tool's words, in front of a person."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from bydawn.cli.foreground import be_trusted, run_in_foreground
from bydawn.cli.voice import DialectVoice
from bydawn.core.breakers import Limits
from bydawn.dialects.seam import Configured, Dialect, Start
from bydawn.operations.dialects import begin, config, loops
from bydawn.operations.plan import Plan
from bydawn.process.guardian import Tether

Raising = Callable[[Limits], Limits]
Runner = Callable[[Tether, Plan], int]


def start(
    dialect: Dialect,
    wanted: Start,
    workspace: Path,
    tether: Tether | None,
    run: Runner | None = None,
) -> int:
    """Run a new loop to its end; the exit code. If it is refused on the way, its name is free again."""
    gathered = begin.gather(dialect, wanted, workspace)
    if gathered.has_project or wanted.origins:
        # All is checked before anyone is asked, and nothing is on the disk while they think: Ctrl-C ends us there.
        begin.give_back(wanted, begin.plan(dialect, wanted, gathered, workspace))
        for file in ("", wanted.config) if wanted.config else ("",):
            be_trusted(gathered, workspace, loops.registry_of(gathered).root.path, config=file)
    planned = begin.plan(dialect, wanted, gathered, workspace)
    try:
        begin.secure(dialect, planned)
        return resume(dialect, planned, tether, run=run)
    finally:
        begin.give_back(wanted, planned)


def trust_config(dialect: Configured, workspace: Path) -> None:
    """Ask about a dialect's own file before anything that it names is even looked at."""
    if wanted := config.read(dialect, workspace):
        gathered = begin.gather(dialect, wanted, workspace)
        be_trusted(gathered, workspace, loops.registry_of(gathered).root.path, config=wanted.config)


def resume(
    dialect: Dialect,
    planned: Plan,
    tether: Tether | None,
    raising: Raising | None = None,
    run: Runner | None = None,
) -> int:
    """Run a planned loop to its end; the exit code. `run` is for a dialect with a screen of its own."""
    assert tether  # noqa: S101 - what starts a loop runs under a guardian
    if run:
        return run(tether, planned)
    return run_in_foreground(tether, replace(planned, raises=raising), voice=DialectVoice(dialect))
