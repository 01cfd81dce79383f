"""strict-agent-loop: one small verified task per round, recorded on disk, stopped by machines."""

from functools import partial

from bydawn.core.facts import LoopStopped
from bydawn.core.history import counted
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import EXIT_CODES, FINISHED, Act, End, Flag, Next
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

    def check_env(self, loop: Loop) -> dict[str, str]:
        return {paths.VARIABLE: f"{loop.workspace}/{paths.of(written.task_of(loop), paths.IF_DONE)}"}

    def own(self, act: Act) -> Act | None:
        known = {"status": "list-tasks", "show": "show-task", "why": "report-status", "resume": "supervise"}
        return Act(known[act.verb], program=NAME) if act.verb in known else None

    def exit_code(self, stopped: LoopStopped) -> int:
        if stopped.end in FINISHED:
            return 0
        return EXIT_CODES[End.PAUSED] if stopped.end in (End.PAUSED, End.STOPPED) else _STOPPED_SHORT

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:  # noqa: ARG002
        ours = partial(Act, program=NAME, state=state_path(loop))
        task: dict[str, Flag] = {"workspace-root": loop.workspace, "task-id": written.task_of(loop)}
        if stopped.end in FINISHED:
            return [Next(Act("show-task", program=NAME, flags=task), "what was recorded")]
        if commands := document.unconfirmed(loop):
            agree = "read the stop commands, which no person has given yet; this lets them run"
            return [Next(Act("init-state", program=NAME, flags=task, stop_command=commands), agree)]
        if loop.recording and loop.recording.by_hand:
            return [Next(ours("check-stop"), "run its stop checks; its own session goes on with it")]
        steps = [Next(ours("supervise"), "go on with the next iteration")]
        if stopped.decided.rule == Rule.ITERATIONS:
            more = 2 * ((state.raised or loop.limits).iterations or 0)
            steps = [Next(ours("supervise", max_iterations=more), "go on with more iterations")]
        elif stopped.end is End.BLOCKED:
            steps = [Next(ours("supervise", prompt_note=PLACEHOLDER), "answer it, or say what to do differently")]
        return [*steps, Next(ours("report-status"), "where it stands")]

    def go_on(self, loop: Loop) -> list[str]:
        return ["supervise", "--state", state_path(loop)]


def state_path(loop: Loop) -> str:
    return f"{loop.workspace}/{paths.of(written.task_of(loop), paths.STATE)}"


DIALECT = StrictAgentLoop()
