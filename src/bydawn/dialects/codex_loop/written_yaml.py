"""The text of `codex-loop.yaml`: every key, with a comment where its name does not say enough."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import msgspec

from bydawn.core.keys import Key, Kind
from bydawn.dialects.codex_loop.config import KEYS, NAME, SANDBOXES, Config

_HEAD = f"# What {NAME} does in this project. `{NAME} doctor` checks this file.\n"
_COMMENTS = {
    "goal.done_when": "what is true at the end",
    "execution.sandbox": ", ".join(SANDBOXES),
    "execution.approval": "nothing else has an effect: a loop asks no one",
    "execution.max_iterations": "of one run",
    "execution.max_no_progress_iterations": "in a row that change nothing; 0: off",
    "execution.max_consecutive_runner_failures": "0: off",
    "execution.max_consecutive_verification_failures": "0: off",
    "execution.max_consecutive_task_failures": "then the task is blocked and the next one begins; 0: off",
    "execution.iteration_backoff_seconds": "between two iterations",
    "execution.lock_stale_seconds": "not needed: the lock of a dead process is free",
    "execution.resume_fallback_to_fresh": "begin a new session where the old one is lost",
    "execution.worktree.branch_prefix": "the project's name follows",
    "codex.model": "null: the one that Codex chooses",
    "verification.commands": "run after each iteration; a task is done only when all of them pass",
    "verification.timeout_seconds": "of each command",
    "hooks.failure_policy": "block: a failing post_init, pre_iteration or post_iteration stops the run",
    "hooks.timeout_seconds": "of each command",
}


def text(config: Config) -> str:
    """The whole file."""
    return _HEAD + "\n".join(_lines(config, KEYS)) + "\n"


def _lines(config: Config, keys: Sequence[Key]) -> Iterator[str]:
    above: list[str] = []
    for key in keys:
        *sections, name = key.path.split(".")
        value: Any = reduce(getattr, key.path.split("."), config)
        if value is None and key.path not in _COMMENTS:  # says no more than a missing key
            continue
        for depth, section in enumerate(sections):
            if above[: depth + 1] != sections[: depth + 1]:
                yield f"{'' if depth else chr(10)}{'  ' * depth}{section}:"
        above, indent = sections, "  " * len(sections)
        comment = f"  # {_COMMENTS[key.path]}" if key.path in _COMMENTS else ""
        if key.kind is Kind.TEXTS and value:
            yield f"{indent}{name}:{comment}"
            yield from (f"{indent}  - {quoted(each)}" for each in value)
        else:
            yield f"{indent}{name}: {_plain(key, value)}{comment}"


def _plain(key: Key, value: object) -> str:
    words = key.kind in (Kind.TEXT, Kind.LINE, Kind.PATH)
    return quoted(value) if words or not isinstance(value, str) else value


def quoted(value: object) -> str:
    """JSON, which is YAML as well, with everything invisible spelled out."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    written = msgspec.json.encode(value).decode()
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in written)
