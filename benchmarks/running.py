"""A loop that runs beside us, in the middle of a round."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.stage import BYDAWN, Broken, Stage, until, wait
from bydawn.core.facts import AnyFact
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import records
from bydawn.system import kernel

_HANG = '{"rounds": [[{"say": "this takes a while"}, {"sleep": 1e6}]]}'


class Running:
    """The processes of a loop whose agent has started and does not end by itself."""

    def __init__(self, stage: Stage, workspace: Path, *command: str, round_: int = 1) -> None:
        self.workspace = workspace
        self.folder = workspace / ".bydawn" / "loops" / workspace.name
        self._code: int | None = None
        self.guardian = stage.spawn(BYDAWN, *command, "-C", str(workspace), "--plain")
        try:
            # The agent's output exists from the moment when its process does.
            self.agent_output = self.folder / "rounds" / f"{round_:04}" / "stdout"
            until(self.agent_output.exists, f"the agent of round {round_}")
            self.began = time.perf_counter()
            [self.worker] = _children(self.guardian)
        except (Broken, ValueError):
            self.end()
            raise

    @property
    def agent(self) -> int:
        [pid] = _children(self.worker)
        return pid

    def facts(self) -> list[AnyFact]:
        return [record.fact for record in records(LoopFolder(self.folder))]

    def wait(self) -> int:
        """The exit code of the guardian, and so of the command."""
        if self._code is None:
            self._code, _ = wait(self.guardian)
        return self._code

    def end(self) -> None:
        """Stop it, if it is still there."""
        if self._code is None:
            os.kill(self.guardian, signal.SIGTERM)
            self.wait()


def start(stage: Stage) -> Running:
    """A new loop, in a workspace of its own."""
    script = stage.folder / "hang.json"
    if not script.exists():  # another loop's agent may be reading it
        script.write_text(_HANG)
    settings = ("-a", f"demo:{script}", "-t", "TODO.md", "-k", "true")
    return Running(stage, stage.repository("loop"), "run", "go on", *settings)


@contextmanager
def several(stage: Stage, count: int) -> Iterator[list[Running]]:
    """So many loops at once."""
    with ExitStack() as ends:
        loops = []
        for _ in range(count):
            loops.append(loop := start(stage))
            ends.callback(loop.end)
        yield loops


def _children(pid: int) -> list[int]:
    return [child for child in kernel.processes() if kernel.stat_fields(child)[1:2] == [str(pid)]]
