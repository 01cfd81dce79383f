"""Which hook runs when, what it gets to know, and how its failure is reported."""

from collections.abc import Callable

from bydawn.core.facts import HookEnded, LoopStopped
from bydawn.core.loop import Hooks, Loop
from bydawn.core.state import LastRound, LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import End

LONGEST = 1000  # characters of a value

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


def at_end(hooks: Hooks, end: End) -> str | None:
    """The hook that runs when a loop ends this way."""
    table = {"on_complete": hooks.on_complete, "on_blocked": hooks.on_blocked, "on_pause": hooks.on_pause}
    return table[BY_END[end]]


def before_round(task: str | None, agent: str) -> dict[str, str]:
    """The values `pre_round` gets; every hook also gets the round's number and paths."""
    return {"BYDAWN_TASK": task or "", "BYDAWN_AGENT_NAME": agent}


def after_round(loop: Loop, state: LoopState, last: LastRound) -> dict[str, str]:
    """The values `post_round` gets."""
    return {
        **before_round(last.task, last.agent),
        "BYDAWN_OUTCOME": last.outcome.value,
        "BYDAWN_PROGRESSED": "1" if last.progress else "0",
        "BYDAWN_CHECKS": _checks(loop, state),
    }


def after_all(state: LoopState, stopped: LoopStopped) -> dict[str, str]:
    """The values the hooks at the end of a loop get."""
    task, agent = (state.last.task, state.last.agent) if state.last else (None, "")
    return {**before_round(task, agent), "BYDAWN_STATE": stopped.end.value, "BYDAWN_REASON": stopped.reason}


def _checks(loop: Loop, state: LoopState) -> str:
    """What the checks say about the current work tree; verdicts on another one say nothing."""
    if not loop.checks or not state.verdicts or state.verdict_tree != state.tree:
        return "none"
    return "passed" if state.checks_passed else "failed"


def fit(values: dict[str, str], hide: Callable[[str], str]) -> dict[str, str]:
    """Text of agents and task files as variables: one line each, no secrets, limited length."""
    return {name: shorten(hide(plain(text)), LONGEST) for name, text in values.items()}


def complaint(ended: HookEnded, last_line: str = "") -> str:
    """What a person reads when a hook fails."""
    return f"hook {ended.hook} failed: {ended.detail}" + (f": {last_line}" if last_line else "")
