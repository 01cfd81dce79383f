"""Who speaks at the end of a loop: bydawn itself, its demo, or a dialect."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bydawn.cli import offers, render
from bydawn.core.facts import EXIT_CODES, LoopStopped
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.operations import look
from bydawn.store.registry import Standing

if TYPE_CHECKING:
    from bydawn.dialects.seam import Dialect


class Voice(Protocol):
    """The words that differ."""

    unit: str  # the word for a round

    def opening(self, loop: Loop) -> list[str]: ...

    def so_far(self, state: LoopState) -> int:
        """How many there were, as people count them."""

    def word(self, stopped: LoopStopped) -> str: ...

    def reason(self, standing: Standing) -> str:
        """Why it stands still, in a sentence."""

    def next_steps(self, standing: Standing) -> list[tuple[str, str]]:
        """Commands to paste, and what they do."""

    def exit_code(self, stopped: LoopStopped) -> int: ...

    def go_on(self, loop: Loop) -> list[str]:
        """The words after `bydawn` that go on past a checkpoint."""


class OwnVoice:
    """bydawn's."""

    unit = "round"

    def so_far(self, state: LoopState) -> int:
        return state.round

    def opening(self, loop: Loop) -> list[str]:  # noqa: ARG002
        return []

    def word(self, stopped: LoopStopped) -> str:
        return stopped.end.value.capitalize()

    def reason(self, standing: Standing) -> str:
        return look.reason(standing)

    def next_steps(self, standing: Standing) -> list[tuple[str, str]]:
        return offers.next_commands(standing)

    def exit_code(self, stopped: LoopStopped) -> int:
        return EXIT_CODES[stopped.end]

    def go_on(self, loop: Loop) -> list[str]:
        return ["resume", loop.id, "--approve", "-C", loop.workspace]


class DemoVoice(OwnVoice):
    """The same, for somebody who sees it for the first time."""

    def opening(self, loop: Loop) -> list[str]:
        return [
            "\n  bydawn demo · no account, no network, nothing outside this folder:",
            f"  {_tilde(loop.workspace)}   (kept for you to look at; delete it any time)\n",
        ]

    def next_steps(self, standing: Standing) -> list[tuple[str, str]]:
        name, folder = standing.reference, _tilde(standing.loop.workspace)
        return [
            (render.typed(f"show {name}"), "what happened in each round"),
            (render.typed(f"logs {name} --round 3"), "what the agent said"),
            (render.typed(f"why {name}"), "why it ended"),
            (f"git -C {folder} log --stat", "what was changed"),
            (render.typed("run --help"), "for real: in your own folder, with your own agent"),
        ]


class DialectVoice(OwnVoice):
    """Another tool's."""

    def __init__(self, dialect: "Dialect") -> None:
        self._dialect = dialect
        self._folder = str(Path.cwd())  # where the command was typed: a loop that runs is in its workspace
        self.unit = dialect.unit

    def so_far(self, state: LoopState) -> int:
        return self._dialect.counted(state)

    def word(self, stopped: LoopStopped) -> str:
        return self._dialect.word(stopped)

    def reason(self, standing: Standing) -> str:
        stopped = standing.state.stopped
        return self._dialect.reason(stopped) if stopped else ""

    def next_steps(self, standing: Standing) -> list[tuple[str, str]]:
        stopped = standing.state.stopped
        return self._dialect.next_steps(standing.loop, standing.state, stopped, self._folder) if stopped else []

    def exit_code(self, stopped: LoopStopped) -> int:
        return self._dialect.exit_code(stopped)

    def go_on(self, loop: Loop) -> list[str]:
        return ["as", self._dialect.name, *self._dialect.go_on(loop)]


def _tilde(path: str) -> str:
    home = os.environ.get("HOME", "")
    return f"~{path.removeprefix(home)}" if home and path.startswith(home + "/") else path
