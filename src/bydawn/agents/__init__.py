"""The agents a loop can run: one file per agent, one row per file, loaded only when it is asked for."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bydawn.core.agent import Agent
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop

Fields = tuple[str, ...]  # of `--agent-json`: what stands where in an agent's lines of JSON


def pool(loop: Loop) -> dict[str, Agent]:
    """The agents of a loop, by the names it has for them."""
    return {name: find(name, fields=loop.agent_json) for name in loop.pool}


def find(spec: str, folder: Path | None = None, fields: Fields = ()) -> Agent:
    """The agent that a person means by `--agent SPEC`; its name is a spec that finds it again from any folder.

    A relative path in it starts from `folder`, or from where we are.
    """
    kind, colon, rest = spec.partition(":")
    if not spec:
        raise UserError("no agent is given", hint=f"choose one with -a: {_usages()}")
    if kind not in _AGENTS:
        raise _unknown(spec, kind)
    _, make = _AGENTS[kind]
    return make(rest if colon else None, folder or Path(), fields)


def _demo(script: str | None, folder: Path, _: Fields) -> Agent:
    from bydawn.agents.demo.agent import DemoAgent

    if script is None:
        return DemoAgent()
    if not script:
        raise UserError("`demo:` names no script", hint="write `demo:SCRIPT.json`, or `demo` for the built-in story")
    return DemoAgent(script=str((folder / script).absolute()))


def _command(line: str | None, folder: Path, fields: Fields) -> Agent:
    import shlex

    from bydawn.agents.command import CommandAgent

    try:
        argv = shlex.split(line or "")
    except ValueError as error:
        raise UserError(f"cannot read the command of `cmd:{line}`", cause=str(error), hint="check its quotes") from None
    if not argv or not argv[0]:
        raise UserError("`cmd:` names no program", hint="write `cmd:PROGRAM ARGS`; the prompt comes on its stdin")
    if "/" in argv[0]:
        argv[0] = str((folder / argv[0]).absolute())  # as the person sees it, who may have said -C
    return CommandAgent(argv=tuple(argv), fields=fields)


def _claude(options: str | None, _: Path, __: Fields) -> Agent:
    from bydawn.agents.claude import ClaudeAgent

    _refuse_options("claude", options)
    return ClaudeAgent()


def _codex(options: str | None, _: Path, __: Fields) -> Agent:
    from bydawn.agents.codex import CodexAgent

    _refuse_options("codex", options)
    return CodexAgent()


def _opencode(options: str | None, _: Path, __: Fields) -> Agent:
    from bydawn.agents.opencode import OpencodeAgent

    _refuse_options("opencode", options)
    return OpencodeAgent()


def _gemini(options: str | None, _: Path, __: Fields) -> Agent:
    from bydawn.agents.gemini import GeminiAgent

    _refuse_options("gemini", options)
    return GeminiAgent()


def _refuse_options(name: str, options: str | None) -> None:
    if options is not None:
        raise UserError(f"`{name}:{options}` is not an agent", hint=f"write `{name}`; its own flags stand after `--`")


def _unknown(spec: str, kind: str) -> UserError:
    import difflib

    if "/" in kind:  # a program of the person's own
        return UserError(
            f"there is no agent {spec!r}", hint=f"a program is named with cmd: in front: -a {_quoted(spec)}"
        )
    near = difflib.get_close_matches(kind, _AGENTS, n=1)
    question = f"did you mean `{near[0]}`? " if near else ""
    return UserError(f"there is no agent {spec!r}", hint=f"{question}known are {_usages()}")


def _quoted(program: str) -> str:
    import shlex

    return shlex.quote(f"cmd:{program}")


def _usages() -> str:
    return ", ".join(usage for usage, _ in _AGENTS.values())


_AGENTS: dict[str, tuple[str, Callable[[str | None, Path, Fields], Agent]]] = {
    "claude": ("`claude`", _claude),
    "codex": ("`codex`", _codex),
    "opencode": ("`opencode`", _opencode),
    "gemini": ("`gemini`", _gemini),
    "demo": ("`demo`, `demo:SCRIPT.json`", _demo),
    "cmd": ("`cmd:PROGRAM ARGS`", _command),
}


@contextmanager
def temporary_folder(pool: Mapping[str, Agent]) -> Iterator[dict[str, str]]:
    """A folder for agents that leave things lying about; a short name, as there will be sockets below it."""
    if not any(agent.abilities.litters for agent in pool.values()):
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="by-")
    try:
        yield {"TMPDIR": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
