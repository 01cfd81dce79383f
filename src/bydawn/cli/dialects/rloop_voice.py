"""What rloop says of a session that begins or ends, and the tmux session that shows it."""

import os
import sys
from pathlib import Path

from bydawn.cli import render
from bydawn.cli.dialects.log_screen import LogScreen
from bydawn.cli.voice import DialectVoice
from bydawn.core.facts import LoopStopped, RunStarted
from bydawn.core.loop import Sandbox
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, Act, Next
from bydawn.dialects.rloop import DIALECT
from bydawn.dialects.rloop.config import LOG, NAME
from bydawn.dialects.rloop.files import cap, word, words
from bydawn.operations.dialects.rloop.sessions import not_committed
from bydawn.operations.plan import Plan
from bydawn.store.registry import Standing
from bydawn.system import programs
from bydawn.system.user_folders import tilde


class RloopVoice(DialectVoice):
    """The words of rloop."""

    def __init__(self) -> None:
        super().__init__(DIALECT)

    def begun(self, planned: Plan, fact: RunStarted, state: LoopState) -> list[str]:
        loop, kept = planned.loop, words(planned.loop)
        name, tasks = kept["session"], fact.found.tasks
        if tasks and not tasks.open and not tasks.problem:
            return [f"  {name} is complete: no box is open in {loop.tasks}, so no agent was started."]
        rows = {
            "Folder": tilde(loop.workspace),
            "Tasks": f"{loop.tasks}, {tasks.open if tasks else '?'} open",
            "Agent": " ".join(filter(None, [kept["backend"], kept["model"]])),
            "Access": "FULL: no sandbox" if loop.sandbox is Sandbox.FULL else "can edit this folder",
            "Limit": f"{cap(loop, state)} iterations",
            "Done": f"when no box is open; the promise is <promise>{kept['marker']}</promise>",
            "Log": f"{tilde(loop.workspace)}/{LOG}",
        }
        if kept["webhook"]:
            rows["Notice"] = kept["webhook"]
        watch = (
            [Next(f"tmux attach -t {kept['tmux']}", "watch it live; it goes on without you")] if kept["tmux"] else []
        )
        steps = [
            Next(Act("status", program=NAME), "the status of all sessions"),
            Next(Act("logs", name, program=NAME, follow=True), "what the agent says"),
            *watch,
            Next(Act("stop", name, program=NAME), "end it"),
            Next(Act("resume", name, program=NAME), "go on after a stop, a crash or a reboot"),
        ]
        return [
            f"  {name} runs in the background; this terminal can be closed.",
            *(f"  {label:<6}  {text}" for label, text in rows.items()),
            "",
            *render.step_lines(steps),
        ]

    def viewer(self, planned: Plan) -> list[str]:
        """A tmux session that only shows the loop; it closes when the loop ends."""
        loop, tmux = planned.loop, words(planned.loop)["tmux"]
        program = programs.find("tmux", Path(loop.workspace)) if tmux else None
        if program is None:
            return []
        own = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "bydawn")  # noqa: PTH100, PTH118, PTH120
        show = [own, "attach", loop.id, "-C", loop.workspace, "--state-dir", str(planned.root.path)]
        return [program, "new-session", "-d", "-s", tmux, *show]


class RloopScreen(LogScreen):
    """The log, and how the session ended."""

    def summary(self, standing: Standing, stopped: LoopStopped) -> str:
        told = not_committed(standing) if stopped.end in FINISHED else ""
        said = f"{words(standing.loop)['session']} {word(stopped)}: {DIALECT.reason(stopped)}"
        return f"{said}; but {told}" if told else said
