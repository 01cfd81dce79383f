"""Prompts from histories, and how to look at them."""

import re
from collections.abc import Sequence
from typing import Any

from bydawn.core.facts import ChecksEnded, Fact
from bydawn.core.loop import Loop
from bydawn.core.prompt import compose
from bydawn.core.values import TaskReading, Verdict
from core.facts_made import after_all

FENCE = "f3nc3"
FIRST = TaskReading(open=2, done=1, next="Round half up", next_id="01-round", open_ids=("01-round", "02-tax"))


def prompt(loop: Loop, *facts: Fact | Sequence[Fact], **more: Any) -> str:
    """The prompt of the round that follows this history."""
    state = after_all(*facts)
    return compose(loop, state, state.round + 1, FENCE, **more)


def headings(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def outside_the_fence(text: str) -> str:
    """All that an agent may take for our words. A task has a fence of its own."""
    kept, opened = [], ""
    for line in text.splitlines():
        if not opened and (mark := re.fullmatch(rf"<<({FENCE}|[0-9a-f]{{16}})", line)):
            opened = mark[1]
        kept += [] if opened else [line]
        opened = "" if line == f"{opened}>>" else opened
    return "\n".join(kept)


def judged(number: int, *verdicts: Verdict) -> ChecksEnded:
    return ChecksEnded(round=number, tree=f"tree-{number}", verdicts=verdicts, elapsed=60.0 * number)


def red(check: str = "make test", **more: Any) -> Verdict:
    return Verdict(**{"check": check, "passed": False, "detail": "exit 2", "excerpt": f"{check} FAILED", **more})
