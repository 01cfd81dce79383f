"""Everything that is agreed before the first iteration of a task."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.options import Typed

Mode = Literal["interactive", "unattended"]
INTERACTIVE, UNATTENDED = "interactive", "unattended"
MODES = (INTERACTIVE, UNATTENDED)
EFFORTS = ("low", "medium", "high", "xhigh")
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
CODEX = "codex"
CHECK_SECONDS = 900
MOST_ITERATIONS = 1_000_000
_TITLE = 32  # characters of the goal in a task's id
_LONGEST_ID = 63
# What a sandbox may say: how it is run, and by what, is for a person outside.
_OF_THE_WORK = (
    *("task", "goal", "stop_condition", "evidence", "blocker", "next_task", "executor", "commands", "paths", "texts"),
    *("max_iterations", "max_no_progress", "context_chars", "in_sandbox"),
)
Count = Annotated[int, Meta(ge=1, le=MOST_ITERATIONS)]
Characters = Annotated[int, Meta(ge=500, le=1_000_000)]


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is agreed before the first iteration, as `init-state` takes it."""

    task: str
    goal: Annotated[str, Typed("What is to be achieved.", "TEXT")]
    stop_condition: Annotated[str, Typed("When the task is over.", "TEXT", "--global-stop-condition")]
    evidence: Annotated[tuple[str, ...], Typed("What shows success; repeatable.", "TEXT", "--success-evidence")] = ()
    blocker: Annotated[str, Typed("What only a person can remove.", "TEXT", "--blocker-definition")] = ""
    next_task: Annotated[str, Typed("The first atomic task.", "TEXT")] = ""
    mode: Annotated[Mode, Typed("Who works on it.", flag="--operating-mode", choices=MODES)] = "interactive"
    max_iterations: Annotated[Count, Typed("", "N")] = 200
    max_no_progress: Annotated[Count, Typed("", "N", "--max-no-progress-rounds")] = 8
    context_chars: Annotated[Characters, Typed("", "N", "--max-context-chars")] = 12_000
    executor: Annotated[str, Typed("The subagent that does the work.", "ID", "--executor-agent-id")] = ""
    commands: Annotated[tuple[str, ...], Typed("Must exit with 0; repeatable.", "CMD", "--stop-command")] = ()
    paths: Annotated[tuple[str, ...], Typed("Must exist; repeatable.", "PATH", "--require-path")] = ()
    texts: Annotated[tuple[str, ...], Typed("Must be in that file; repeatable.", "PATH::TEXT", "--require-text")] = ()
    codex_bin: Annotated[str, Typed("", "PATH", "--supervisor-codex-bin")] = CODEX
    model: Annotated[str, Typed("[default: Codex's own]", "MODEL", "--supervisor-model")] = ""
    effort: Annotated[
        str,
        Typed(
            "low or medium helps when a provider is overloaded.", flag="--supervisor-reasoning-effort", choices=EFFORTS
        ),
    ] = ""
    sandbox: Annotated[str, Typed("", flag="--supervisor-sandbox", choices=SANDBOXES)] = "workspace-write"
    resume_thread: Annotated[
        bool, Typed("Resume Codex's thread; a fresh one is the default.", flag="--supervisor-resume-existing-thread")
    ] = False
    budget: Annotated[Count, Typed("", "N", "--supervisor-max-rounds-per-invocation")] = 5
    max_failures: Annotated[Count, Typed("", "N", "--supervisor-max-consecutive-failures")] = 3
    pause: float = 0.0  # seconds between two invocations
    invocation_seconds: float = 0.0  # of one invocation; 0: the loop's own limit
    in_sandbox: bool = False  # made where the ledger could not be written: what it would run waits for a person


def task_id(given: str) -> str:
    """A text as the id of a task: letters, digits and `-`.

    >>> task_id("fix parser_2")
    'fix-parser-2'
    """
    found = re.sub(r"[^A-Za-z0-9-]", "-", given)
    if not found.strip("-") or len(found) > _LONGEST_ID:
        cause = "it needs a letter or a digit" if len(found) <= _LONGEST_ID else f"it has more than {_LONGEST_ID}"
        hint = "give one such as --task-id fix-parser"
        raise UserError(f"{given[:80]!r} cannot be the id of a task", cause=cause, hint=hint)
    return found.lstrip("-")


def id_from(goal: str, stamp: str) -> str:
    """The id of a task that no one named; `stamp` is the time, with 14 digits."""
    title = re.sub(r"[^A-Za-z0-9-]", "-", goal.strip()[:_TITLE]).strip("-")
    return f"{stamp}-{title}" if title else stamp


def checked(contract: Contract) -> Contract:
    """Refuse what cannot be meant, before anything is written (S-022)."""
    for value, option, name in (
        (contract.goal, "--goal", "goal"),
        (contract.stop_condition, "--global-stop-condition", "global stop condition"),
    ):
        if not value.strip():
            hint = f'say it in a sentence: {option} "…"'
            raise UserError(f"the {name} is empty", cause="a task without one never ends well", hint=hint)
    for text in contract.texts:
        path, colons, wanted = text.partition("::")
        if not (colons and path and wanted):
            cause = "it needs a file, two colons and a text" if not colons else "one side of the colons is empty"
            hint = '--require-text "README.md::hailstone sequence"'
            raise UserError(f"--require-text {text!r} cannot be read", cause=cause, hint=hint)
    for path in (*contract.paths, *(text.partition("::")[0] for text in contract.texts)):
        if path.startswith("/") or ".." in path.split("/"):
            cause = "a stop check looks at the workspace"
            raise UserError(f"{path} is outside the workspace", cause=cause, hint="give a path inside it")
    if any(not command.strip() for command in contract.commands):
        raise UserError("--stop-command is empty", hint='--stop-command "pytest -q"')
    return contract


def from_sandbox(contract: Contract) -> Contract:
    """The same, if it only says what is to be done: its commands wait for a person; nothing else there could run."""
    plain = Contract(**{name: getattr(contract, name) for name in _OF_THE_WORK})
    if plain != contract:
        raise UserError(
            "an unattended task cannot be made in a sandbox",
            cause="which program works on it, and what that may do, is for a person outside to say",
            hint="run the same command outside the sandbox; or make an interactive one, without a supervisor's options",
        )
    return replace(contract, in_sandbox=True)


def contract_of(words: dict[str, str]) -> Contract:
    """What a loop was made from."""
    return msgspec.json.decode(words["contract"], type=Contract)
