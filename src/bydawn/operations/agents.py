"""Which agents are installed here, which version, and are they logged in? Asks the programs themselves."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.agents.program import ask
from bydawn.core.errors import UserError
from bydawn.core.ports import CoolDown
from bydawn.operations.settings import gather
from bydawn.store import cooldowns
from bydawn.store.registry import Registry
from bydawn.system.programs import find


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An agent CLI as it is installed on this machine."""

    name: str
    path: str | None = None
    version: str | None = None
    tested: str
    is_tested: bool = False
    logged_in: bool | None = None
    login: str


def look(name: str, folder: Path) -> Found:
    """Look for one agent, outside the folder it would work in: its path, its version, whether it is logged in."""
    cli = agents.cli(name)
    path = find(cli.start, folder)
    said = re.search(r"\d+\.\d+[\w.+-]*", ask(folder, cli.start, "--version")[1]) if path else None
    version = said[0] if said else None
    return Found(
        name=name,
        path=path,
        version=version,
        tested=cli.tested,
        is_tested=bool(version and version.startswith(cli.tested)),
        logged_in=cli.logged_in(os.environ, folder, cli.start) if path else None,
        login=cli.login,
    )


def found_here(folder: Path) -> list[Found]:
    """Every agent CLI that bydawn supports, installed or not, and the programs that a person's own settings name.

    Not those of a project: nothing that came with a clone runs before it is trusted.
    """
    named = [name for name in gather(None).texts("agent") if agents.is_cli(name) and ":" in name]
    return [look(name, folder) for name in (*agents.CLIS, *(agents.find(name).name for name in named))]


def login_needed(name: str, folder: Path) -> str | None:
    """The command that logs this agent in; None if it is logged in, or unknown."""
    found = look(agents.find(name).name, folder) if agents.is_cli(name) else None
    return found.login if found and found.logged_in is False else None


def refuse_if_logged_out(name: str, workspace: Path, env: Mapping[str, str]) -> None:
    """In the environment that the agent will have; nothing is started for it."""
    cli = agents.cli(name)
    if find(cli.start, workspace) and cli.logged_in({**os.environ, **env}, workspace, cli.start) is False:
        raise UserError(
            f"{name} is not logged in",
            cause="every call of it would be refused",
            hint=f"run `{cli.login}` as this user, then start again",
            exit_code=7,
        )


def first_that_works(workspace: Path) -> str:
    """The default agent: the first of codex and claude that is installed and logged in."""
    there = [name for name in agents.DEFAULTS if find(name, workspace)]
    if not there:
        raise UserError(
            "no agent found",
            cause="neither codex nor claude is on the PATH outside the workspace",
            hint="npm install -g @openai/codex (or @anthropic-ai/claude-code), or use any program: -a cmd:PROGRAM",
            exit_code=7,
        )
    for name in there:
        if agents.cli(name).logged_in(os.environ, workspace, name) is not False:
            return name
    raise UserError(
        f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} installed but not logged in",
        hint=f"run `{agents.cli(there[0]).login}`, or choose an agent with -a",
        exit_code=7,
    )


def cool_downs(state_dir: Path | None) -> list[CoolDown]:
    """Usage limits that loops of this user have hit and that have not reset yet."""
    return cooldowns.known(Registry(state_dir).root.cool_downs, datetime.now(UTC))


def forget_cool_down(name: str, state_dir: Path | None) -> None:
    cooldowns.forget(Registry(state_dir).root.cool_downs, name)
