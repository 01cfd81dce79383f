"""The message of a commit that bydawn makes."""

import re
from collections.abc import Callable

from bydawn.core import history
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten

NAMES = ("loop", "round", "task", "counted")
LOOP, ROUND = "Bydawn-Loop", "Bydawn-Round"  # by these lines a commit is recognized after a crash
_TASK = 72  # characters
_NAME = re.compile(r"\{([a-z_]+)\}")


def unknown_names(template: str) -> list[str]:
    return [name for name in _NAME.findall(template) if name not in NAMES]


def message(loop: Loop, state: LoopState, hide: Callable[[str], str]) -> str:
    """The message for the changes of the last round, from the loop's template."""
    task = (state.last and state.last.task) or ""
    values = {
        "loop": loop.id,
        "round": str(state.round),
        "task": shorten(hide(plain(task)), _TASK),
        "counted": str(history.number(loop, state) - 1),  # a round that went well has been counted
    }
    usual = "bydawn: {task}" if task else "bydawn: round {round}" if state.last else "bydawn: what was there before"
    text = _filled((loop.commit_message if state.last else None) or usual, values)
    subject = text if text.strip() else _filled(usual, values)
    return f"{subject.strip()}\n\n{LOOP}: {loop.id}/{loop.uid}\n{ROUND}: {state.round}\n"


def _filled(template: str, values: dict[str, str]) -> str:
    return _NAME.sub(lambda match: values.get(match[1], match[0]), template)
