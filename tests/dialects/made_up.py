"""A dialect that nobody speaks: no nameless command, short and nested words, and a state file without any id.

`bydawn.dialects.night_shift` and `bydawn.cli.dialects.night_shift` in one file; `ROW` is its row of the table.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from bydawn.cli.command import group, option
from bydawn.cli.dialects import running
from bydawn.core.facts import AnyFact, LoopStopped, RoundEnded
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.values import Next
from bydawn.dialects import DialectRow
from bydawn.dialects.seam import Append, Copy, Files, Replace, Source, Start, View
from bydawn.operations.dialects import begin, loops
from bydawn.operations.preconditions import checked_workspace
from bydawn.process.guardian import Tether

NAME = "night-shift"
ROW = DialectRow("night_shift", starts=("start", "go on"))


class NightShift:
    name = NAME
    unit = "tour"

    def counted(self, state: LoopState) -> int:
        return state.round

    def word(self, stopped: LoopStopped) -> str:
        return f"home ({stopped.end.value})"

    def reason(self, stopped: LoopStopped) -> str:
        return f"The shift is over: {stopped.reason}."

    def exit_code(self, stopped: LoopStopped) -> int:
        return 40 + len(stopped.end.value)

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:  # noqa: ARG002
        return [Next(f"{NAME} go on {loop.id}", "another pass")]

    def go_on(self, loop: Loop) -> list[str]:
        return ["go", "on", loop.id]

    def files(self, loop: Loop) -> Files:  # noqa: ARG002
        return Files(whole=(".shift/state.json", ".shift/pass_*.log"), growing=(".shift/all.log",), folder=".shift")

    def is_line(self, line: bytes) -> bool:
        return line.startswith(b"{")

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:  # noqa: ARG002
        word = self.word(state.stopped) if state.stopped else "at work"
        yield Replace(".shift/state.json", json.dumps({"pass": state.round, "state": word}))
        if isinstance(fact, RoundEnded):
            yield Copy(f".shift/pass_{fact.round}.log", Source(fact.round, "stdout"))
            yield Append(".shift/all.log", Source(fact.round, "stdout"))


DIALECT = NightShift()


@group(name=NAME, context_settings={"help_option_names": ["-h", "--help"]})
def COMMANDS() -> None:  # noqa: N802 - as every dialect calls it
    """Work while others sleep."""


@COMMANDS.command()
@click.argument("folder", type=Path)
@option("-n", "--name", default="shift")
@option("-p", "--passes", default="5")
@option("-k", "--check", "checks", multiple=True)
@option("-a", "--agent", default="codex")
@click.pass_obj
def start(tether: Tether | None, /, folder: Path, name: str, passes: str, checks: tuple[str, ...], agent: str) -> int:
    settings = {"agent": (agent,), "rounds": (passes,), "check": checks}
    wanted = Start(prompt="Do what is left.", name=name, named=True, settings=settings)
    return running.start(DIALECT, wanted, checked_workspace(folder), tether)


@COMMANDS.group()
def go() -> None:
    """Where the last pass ended."""


@go.command()
@click.argument("name")
@click.pass_obj
def on(tether: Tether | None, /, name: str) -> int:
    standing = loops.called(name, loops.in_workspace(DIALECT, Path.cwd()))
    assert standing
    return running.resume(DIALECT, begin.plan_resume(standing), tether)


@COMMANDS.command()
def status() -> None:
    for standing in loops.in_workspace(DIALECT, Path.cwd()):
        stopped = standing.state.stopped
        click.echo(
            f"{standing.loop.id}: {DIALECT.word(stopped) if stopped else 'at work'}, pass {standing.state.round}"
        )
