"""The lines of `ralph.log`, as the document's script prints them."""

import re
from datetime import datetime

from bydawn.core.text import duration

# All that only we print; a line of the agent's that looks like one of them is indented.
_OURS = re.compile(
    r"=== Iteration |(?:Starting ralph loop in|Task file:|Max iterations:|Completion marker:|Model:|Started at:"
    r"|Initial remaining tasks:|Tasks remaining after iteration:|Remaining tasks:|FINISHED:|Resumed at:) |[✅❌⏹]|⚠️"
)


def moment(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def opening(folder: str, task_file: str, cap: int, marker: str, model: str, at: datetime, left: str) -> tuple[str, ...]:
    return (
        f"Starting ralph loop in {folder}",
        f"Task file: {task_file}",
        f"Max iterations: {cap}",
        f"Completion marker: {marker}",
        *([f"Model: {model}"] if model else []),
        f"Started at: {moment(at)}",
        f"Initial remaining tasks: {left}",
    )


def iteration(number: int, cap: int, left: str) -> tuple[str, str]:
    return "", f"=== Iteration {number}/{cap} (Remaining: {left}) ==="


def again(number: int) -> tuple[str, str]:
    return "", f"⏹ Iteration {number} is tried again."


def after(left: str) -> str:
    return f"Tasks remaining after iteration: {left}"


def waiting(until: datetime | None, seconds: float, why: str) -> str:
    return f"⏹ Waiting {f'until {moment(until)}' if until else f'for {duration(seconds)}'}: {why}"


def trouble(words: str) -> str:
    return f"❌ {words}"


def cut() -> str:
    return "⏹ This iteration was cut short."


def resumed(at: datetime) -> tuple[str, str]:
    return "", f"Resumed at: {moment(at)}"


def said(text: str) -> tuple[str, ...]:
    """What the agent says, and an empty line."""
    return (*(f" {line}" if _OURS.match(line) else line for line in text.rstrip("\n").split("\n")), "")
