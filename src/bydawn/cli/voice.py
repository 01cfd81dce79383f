"""The words of a running loop that differ between bydawn, its demo and a dialect."""

from pathlib import Path
from typing import TYPE_CHECKING

from bydawn.cli import render
from bydawn.core.facts import LoopStopped, RunStarted
from bydawn.core.history import number
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import shorten
from bydawn.core.values import EXIT_CODES, Act, Next
from bydawn.operations import views
from bydawn.operations.next_steps import next_steps
from bydawn.operations.sentences import Counting, opening
from bydawn.store.registry import Standing
from bydawn.system.user_folders import tilde

if TYPE_CHECKING:
    from bydawn.dialects.seam import Dialect
    from bydawn.operations.plan import Plan


class Voice:
    """The words of bydawn itself; another voice replaces those that differ."""

    def counting(self, state: LoopState) -> Counting:
        """The word for a round, and how many there were, as shown to people."""
        return Counting(number=state.round)

    def opening(self, loop: Loop) -> list[str]:  # noqa: ARG002
        return []

    def word(self, stopped: LoopStopped) -> str:
        return stopped.end.value.capitalize()

    def reason(self, standing: Standing) -> str:
        """Why it is not running, in a sentence."""
        return views.reason(standing)

    def next_steps(self, standing: Standing) -> list[Next]:
        return next_steps(standing)

    def exit_code(self, stopped: LoopStopped) -> int:
        return 2 if stopped.is_refusal else EXIT_CODES[stopped.end]

    def go_on(self, loop: Loop) -> list[str]:
        """The command that approves a checkpoint and continues."""
        return ["bydawn", "resume", loop.id, "--approve", "-C", loop.workspace]

    def begun(self, planned: "Plan", fact: RunStarted, state: LoopState) -> list[str]:
        """What a command says that returns while the loop runs in the background."""
        loop, name = planned.loop, planned.reference
        goes_on = f"continues after round {state.round}" if planned.goes_on and state.round else "runs"
        fields = [each for each in opening(loop, state, fact.found.tasks) if each.label not in ("Loop", "Ctrl-C")]
        steps = [
            Next(command=Act("attach", name), why="watch it; q leaves, and it goes on"),
            Next(command=Act("show", name), why="how far it is"),
            Next(command=Act("stop", name), why="end it"),
        ]
        return [
            f"  {loop.id} {goes_on} in the background; this terminal can be closed.",
            *(f"  {each.label:<6} {shorten(each.text, render.width() - 9)}" for each in fields),
            "",
            *render.step_lines(steps),
        ]

    def resumed(self, standing: Standing) -> str:
        """Where a loop goes on."""
        return f"after round {standing.state.round}" if standing.state.round else ""

    def viewer(self, planned: "Plan") -> list[str]:  # noqa: ARG002
        """A program that shows a loop in the background. It may end at any time: the loop goes on."""
        return []


class DemoVoice(Voice):
    """The words of the demo, for a person who sees bydawn for the first time."""

    def opening(self, loop: Loop) -> list[str]:
        return [
            "",
            "bydawn demo · no account, no network, nothing outside this folder:",
            f"{tilde(loop.workspace)}   (kept for you to look at; delete it any time)",
            "",
        ]

    def next_steps(self, standing: Standing) -> list[Next]:
        name, folder = standing.reference, tilde(standing.loop.workspace)
        return [
            Next(command=Act("show", name), why="what happened in each round"),
            Next(command=Act("logs", name, round=3), why="what the agent said"),
            Next(command=Act("why", name), why="why it ended"),
            Next(command=f"git -C {folder} log --stat", why="what the agent changed"),
            Next(command=Act("run", help=True), why="start one in your own folder, with your own agent"),
        ]


class DialectVoice(Voice):
    """The words of another tool."""

    def __init__(self, dialect: "Dialect") -> None:
        self._dialect = dialect
        self._folder = str(Path.cwd())  # where the command was typed: a running loop is in its workspace

    def counting(self, state: LoopState) -> Counting:
        return Counting(unit=self._dialect.unit, number=self._dialect.counted(state))

    def resumed(self, standing: Standing) -> str:
        return f"at {self._dialect.unit} {number(standing.loop, standing.state)}"

    def word(self, stopped: LoopStopped) -> str:
        return self._dialect.word(stopped)

    def reason(self, standing: Standing) -> str:
        stopped = standing.state.stopped
        return self._dialect.reason(stopped) if stopped else ""

    def next_steps(self, standing: Standing) -> list[Next]:
        stopped = standing.state.stopped
        return self._dialect.next_steps(standing.loop, standing.state, stopped, self._folder) if stopped else []

    def exit_code(self, stopped: LoopStopped) -> int:
        return self._dialect.exit_code(stopped)

    def go_on(self, loop: Loop) -> list[str]:
        return [self._dialect.name, *self._dialect.go_on(loop)]
