"""Other tools' command lines and files: each has a folder here, a file in `cli/dialects/`, and a row of this table."""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bydawn.core.loop import Loop
    from bydawn.dialects.seam import Dialect


class DialectRow(NamedTuple):
    """What has to be known of a dialect before it is loaded: the guardian forks while next to nothing is."""

    module: str  # of its folder here and of its file in `cli/dialects/`
    starts: tuple[str, ...]  # the commands that start or resume a loop, such as "resume" or "daemon start"
    looks: tuple[str, ...] | None = None  # with a nameless command, which starts a loop: all other commands
    config: str = ""  # its own configuration file in a workspace, if it has one; it is a `Configured` then
    beside: tuple[str, ...] = ()  # files that it reads from a workspace even if that one is missing
    secrets: tuple[str, ...] = ()  # variables of its own that no agent, check or hook gets, in loops of any dialect
    secret_flags: tuple[str, ...] = ()  # flags with secret values
    stays: str | None = None  # what it starts runs in the background, unless this flag is there


TABLE: dict[str, DialectRow] = {
    "codex-autorunner": DialectRow(
        "codex_autorunner", starts=("run", "once", "resume"), config=".codex-autorunner/config.yml"
    ),
    "codex-loop": DialectRow("codex_loop", starts=("init", "run"), config="codex-loop.yaml"),
    "rloop": DialectRow(
        "rloop",
        starts=("start",),
        config=".rloop.yaml",
        beside=(".rloop/prompt-template.txt",),
        secrets=("RLOOP_WEBHOOK",),
        secret_flags=("--webhook", "-t"),
        stays="--no-tmux",
    ),
    "strict-agent-loop": DialectRow("strict_agent_loop", starts=("supervise", "check-stop")),
    "waylon-smithers": DialectRow(
        "waylon_smithers", starts=("resume",), looks=("status", "list", "cancel", "install-helpers")
    ),
}
_ANSWERED = ("-h", "--help", "--version")


def find(name: str) -> "Dialect":
    """The dialect of that name, which is in the table."""
    dialect: Dialect = import_module(f"bydawn.dialects.{TABLE[name].module}").DIALECT
    return dialect


def of_loop(loop: "Loop") -> "Dialect | None":
    """The dialect that a loop was started in, if there is one and this version has it."""
    return find(loop.dialect.name) if loop.dialect and loop.dialect.name in TABLE else None


def starts_a_loop(name: str, words: list[str]) -> bool:
    """Does this command line start or resume a loop?"""
    row = TABLE[name]
    if row.looks is not None:
        return bool(words) and words[0] not in (*row.looks, *_ANSWERED)
    commands = [word for word in words if not word.startswith("-")]
    return any(commands[: len(start.split())] == start.split() for start in row.starts)


def may_detach(name: str, words: list[str]) -> bool:
    """Does what this command line starts run in the background?"""
    return (stays := TABLE[name].stays) is not None and stays not in words
