"""strict-agent-loop: one small verified task per round, recorded on disk, stopped by machines."""

import shlex

from bydawn.core.facts import LoopStopped
from bydawn.core.history import counted
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import EXIT_CODES, FINISHED, End, Next
from bydawn.dialects.seam import Usual
from bydawn.dialects.strict_agent_loop import document, paths
from bydawn.dialects.strict_agent_loop import files as written
from bydawn.dialects.strict_agent_loop.paths import NAME

_STOPPED_SHORT = 2


class StrictAgentLoop(Usual):
    """How it speaks and what it writes, from its modules."""

    name = NAME
    unit = "invocation"
    needs_history = False
    counted = staticmethod(counted)
    files = staticmethod(written.files)
    views = staticmethod(written.views)
    heard = staticmethod(written.heard)

    word = staticmethod(document.status_of)
    reason = staticmethod(document.reason)

    def exit_code(self, stopped: LoopStopped) -> int:
        if stopped.end in FINISHED:
            return 0
        return EXIT_CODES[End.PAUSED] if stopped.end in (End.PAUSED, End.STOPPED) else _STOPPED_SHORT

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:  # noqa: ARG002
        address = address_of(loop)
        if stopped.end in FINISHED:
            return [Next(f"{NAME} show-task {task_flags(loop)}", "what was recorded")]
        if commands := document.unconfirmed(loop):
            words = " ".join(f"--stop-command {shlex.quote(each)}" for each in commands)
            agree = "read the stop commands, which no person has given yet; this lets them run"
            return [Next(f"{NAME} init-state {task_flags(loop)} {words}", agree)]
        if loop.recording and loop.recording.by_hand:
            return [Next(f"{NAME} check-stop {address}", "run its stop checks; its own session goes on with it")]
        steps = [Next(f"{NAME} supervise {address}", "go on with the next iteration")]
        if stopped.decided.rule == Rule.ITERATIONS:
            more = 2 * ((state.raised or loop.limits).iterations or 0)
            steps = [Next(f"{NAME} supervise {address} --max-iterations {more}", "go on with more iterations")]
        elif stopped.end is End.BLOCKED:
            steps = [Next(f'{NAME} supervise {address} --prompt-note "…"', "answer it, or say what to do differently")]
        return [*steps, Next(f"{NAME} report-status {address}", "where it stands")]

    def go_on(self, loop: Loop) -> list[str]:
        return ["supervise", "--state", state_path(loop)]


def state_path(loop: Loop) -> str:
    return f"{loop.workspace}/{paths.of(written.task_of(loop), paths.STATE)}"


def address_of(loop: Loop) -> str:
    """The option that names a task from any folder."""
    return f"--state {shlex.quote(state_path(loop))}"


def task_flags(loop: Loop) -> str:
    return f"--workspace-root {shlex.quote(loop.workspace)} --task-id {written.task_of(loop)}"


DIALECT = StrictAgentLoop()
