"""Which hook runs when, what it gets to know, and how its failure is reported."""

from collections.abc import Callable, Collection, Mapping

from bydawn.core.facts import HookEnded, LoopStopped
from bydawn.core.layout import hook_output
from bydawn.core.loop import Loop
from bydawn.core.state import LastRound, LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import End

LONGEST = 1000  # characters of a value
_NAME = 60  # characters of a command
EXCERPT = 1500  # characters of the output of a command that failed

# What a dialect calls the same things: from the hook's name, the loop, its state, and the values it gets anyway.
HookWords = Callable[[str, Loop, LoopState, Mapping[str, str]], Mapping[str, str]]

# A person is needed unless the work is done or a person stopped it.
BY_END: dict[End, str] = {
    End.COMPLETE: "on_complete",
    End.UNVERIFIED: "on_complete",
    End.BLOCKED: "on_blocked",
    End.FAILED: "on_blocked",
    End.LIMIT: "on_blocked",
    End.CHECKPOINT: "on_blocked",
    End.PAUSED: "on_pause",
    End.STOPPED: "on_pause",
}


def before_round(task: str | None, task_id: str | None, agent: str) -> dict[str, str]:
    """The values `pre_round` gets; every hook also gets the round's number and paths."""
    return {"BYDAWN_TASK": task or "", "BYDAWN_TASK_ID": task_id or "", "BYDAWN_AGENT_NAME": agent}


def after_round(loop: Loop, state: LoopState, last: LastRound) -> dict[str, str]:
    """The values `post_round` gets."""
    return {
        **before_round(last.task, last.task_id, last.agent),
        "BYDAWN_OUTCOME": last.ended.outcome.value,
        "BYDAWN_PROGRESSED": "1" if last.ended.found.progress else "0",
        "BYDAWN_CHECKS": _checks(loop, state),
    }


def after_all(state: LoopState, stopped: LoopStopped) -> dict[str, str]:
    """The values the hooks at the end of a loop get."""
    last = state.last
    about = before_round(last.task, last.task_id, last.agent) if last else before_round(None, None, "")
    ended = {"BYDAWN_STATE": stopped.end.value, "BYDAWN_REASON": stopped.reason, "BYDAWN_RULE": stopped.decided.rule}
    return about | ended


def _checks(loop: Loop, state: LoopState) -> str:
    """What the checks say about the current work tree; verdicts on another one say nothing."""
    if not loop.checks or not state.verdicts or state.verdict_tree != state.tree:
        return "none"
    return "passed" if state.checks_passed else "failed"


def fit(values: Mapping[str, str], hide: Callable[[str], str], paths: Collection[str] = ()) -> dict[str, str]:
    """Text of agents and task files as variables: one line each, no secrets, limited length; `paths` as they are."""
    return {name: text if text in paths else shorten(hide(plain(text)), LONGEST) for name, text in values.items()}


def complaint(ended: HookEnded, last_line: str = "") -> str:
    """What a person reads when a hook fails; of several commands, the one that failed is named."""
    several = ended.more or ended.output not in (None, hook_output(ended.hook))
    which = f" ({shorten(ended.command, _NAME)})" if several else ""
    return f"hook {ended.hook}{which} failed: {ended.detail}" + (f": {last_line}" if last_line else "")
