"""The agents a loop can run: one file per agent, one row per file, loaded only when needed."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from bydawn.core.agent import Agent, family
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop

if TYPE_CHECKING:
    from bydawn.agents.program import Cli

Fields = tuple[str, ...]  # of `--agent-json`: where to find the fields in an agent's JSON lines


def pool(loop: Loop) -> dict[str, Agent]:
    """The agents of a loop, by the names it uses for them."""
    return {name: find(name, fields=loop.agent_json) for name in loop.pool}


def find(spec: str, folder: Path | None = None, fields: Fields = ()) -> Agent:
    """The agent that `--agent SPEC` means; its name is a spec that finds it again from any folder.

    A relative path in it is relative to `folder`, or to the current folder.
    """
    kind, colon, rest = spec.partition(":")
    if not spec:
        raise UserError("no agent was chosen", hint=f"choose one with -a: {_usages()}")
    if kind not in _AGENTS:
        raise _unknown(spec, kind)
    _, make = _AGENTS[kind]
    return make(rest if colon else None, folder or Path(), fields)


def _demo(script: str | None, folder: Path, _: Fields) -> Agent:
    from bydawn.agents.demo.agent import DemoAgent

    if script is None:
        return DemoAgent()
    if not script:
        raise UserError("`demo:` needs a script", hint="write `demo:SCRIPT.json`, or `demo` for the built-in story")
    return DemoAgent(script=str((folder / script).absolute()))


def _command(line: str | None, folder: Path, fields: Fields, *, prompt_last: bool = False) -> Agent:
    from bydawn.agents.command import CommandAgent

    kind, where = ("arg", "as its last argument") if prompt_last else ("cmd", "on stdin")
    try:
        argv = shlex.split(line or "")
    except ValueError as error:
        raise UserError(
            f"cannot read the command of `{kind}:{line}`", cause=str(error), hint="check its quotes"
        ) from None
    if not argv or not argv[0]:
        hint = f"write `{kind}:PROGRAM ARGS`; it gets the prompt {where}"
        raise UserError(f"`{kind}:` needs a program", hint=hint)
    return CommandAgent(argv=(_located(argv[0], folder), *argv[1:]), fields=fields, prompt_last=prompt_last)


def _located(program: str, folder: Path) -> str:
    """A path is relative to the folder the person chose, perhaps with -C; a name is on the PATH."""
    return str((folder / os.path.expanduser(program)).absolute()) if "/" in program else program  # noqa: PTH111


def _cli(class_: str) -> "_Make":
    """An agent CLI: the class in the file of its name; all it takes is where its program is."""

    def make(program: str | None, folder: Path, _: Fields) -> Agent:
        name = class_.removesuffix("Agent").lower()
        if program is not None and (not program or program.startswith("-")):
            hint = f"write `{name}`, or `{name}:PATH` for one that is not on the PATH; its own flags go after `--`"
            raise UserError(f"`{name}:{program}` is not an agent", hint=hint)
        agent: Agent = getattr(_module(name), class_)(program=_located(program or "", folder))
        return agent

    return make


def _module(name: str) -> ModuleType:
    return import_module(f"bydawn.agents.{name}")


def is_cli(name: str) -> bool:
    return family(name) in CLIS


def cli(name: str) -> "Cli":
    """An agent CLI as a program: how it is installed, logged in to, sandboxed."""
    kind, _, program = name.partition(":")
    found: Cli = _module(kind).CLI
    if not program:
        return found
    login = shlex.quote(program) + found.login.removeprefix(kind)
    return msgspec.structs.replace(found, program=program, login=login)


def _unknown(spec: str, kind: str) -> UserError:
    import difflib

    if "/" in kind:  # a person's own program
        return UserError(f"unknown agent {spec!r}", hint=f"to run a program, write -a {shlex.quote(f'cmd:{spec}')}")
    near = difflib.get_close_matches(kind, _AGENTS, n=1)
    question = f"did you mean `{near[0]}`? " if near else ""
    return UserError(f"unknown agent {spec!r}", hint=f"{question}choose from {_usages()}")


def _usages() -> str:
    return ", ".join(usage for usage, _ in _AGENTS.values())


_Make = Callable[[str | None, Path, Fields], Agent]
_AGENTS: dict[str, tuple[str, _Make]] = {
    "codex": ("`codex`, `codex:PATH`", _cli("CodexAgent")),
    "claude": ("`claude`", _cli("ClaudeAgent")),
    "opencode": ("`opencode`", _cli("OpencodeAgent")),
    "gemini": ("`gemini`", _cli("GeminiAgent")),
    "demo": ("`demo`, `demo:SCRIPT.json`", _demo),
    "cmd": ("`cmd:PROGRAM ARGS`", _command),
    "arg": ("`arg:PROGRAM ARGS`", partial(_command, prompt_last=True)),
}
CLIS = tuple(name for name in _AGENTS if name not in ("demo", "cmd", "arg"))
# What the agents log in with; neither checks nor hooks get these.
KEYS = frozenset(
    {
        *("CODEX_API_KEY", "OPENAI_API_KEY"),
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "OPENCODE_API_KEY",
    }
)
DEFAULTS = ("codex", "claude")  # without --agent, the first of these that is installed and logged in


@contextmanager
def temporary_folder(pool: Mapping[str, Agent]) -> Iterator[dict[str, str]]:
    """A folder for agents that leave files behind; its name is short, because sockets go below it."""
    if not any(agent.abilities.litters for agent in pool.values()):
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="by-")
    try:
        yield {"TMPDIR": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
