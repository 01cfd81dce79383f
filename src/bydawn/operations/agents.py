"""Which agents are on this machine, and can they work? Asks the programs themselves, briefly."""

import os
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from shutil import which

import msgspec

from bydawn import agents
from bydawn.agents.program import ask
from bydawn.core.errors import UserError
from bydawn.core.ports import CoolDown
from bydawn.store import cooldowns
from bydawn.store.registry import Registry


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it is on this machine."""

    name: str
    path: str | None = None
    version: str | None = None
    tested: str
    is_tested: bool = False
    logged_in: bool | None = None
    login: str


def look(name: str) -> Found:
    """One agent: is it here, which one is it, can it work?"""
    cli, path = agents.cli(name), which(name)
    if path is None:
        return Found(name=name, tested=cli.tested, login=cli.login)
    said = re.search(r"\d+\.\d+[\w.+-]*", ask(path, "--version")[1])
    version = said[0] if said else None
    return Found(
        name=name,
        path=path,
        version=version,
        tested=cli.tested,
        is_tested=bool(version and version.startswith(cli.tested)),
        logged_in=cli.logged_in(os.environ),
        login=cli.login,
    )


def found_here() -> list[Found]:
    """Every agent CLI that we know, as it is on this machine."""
    return [look(name) for name in agents.CLIS]


def login_needed(name: str) -> str | None:
    """The command that logs in to an agent that is not logged in."""
    found = look(name) if name in agents.CLIS else None
    return found.login if found and found.logged_in is False else None


def first_that_works() -> str:
    """The agent to use where none is given: the first of codex and claude that is here and logged in."""
    there = [name for name in agents.DEFAULTS if which(name)]
    if not there:
        raise UserError(
            "no agent is given, and none was found",
            cause="neither codex nor claude is on the PATH",
            hint="npm install -g @openai/codex (or @anthropic-ai/claude-code), or name a program: -a cmd:PROGRAM",
            exit_code=7,
        )
    for name in there:
        if agents.cli(name).logged_in(os.environ) is not False:
            return name
    raise UserError(
        f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} here, but not logged in",
        hint=f"run `{agents.cli(there[0]).login}`, or name an agent with -a",
        exit_code=7,
    )


def cool_downs(state_dir: Path | None) -> list[CoolDown]:
    """The providers' limits that loops of this user have run into and that are not over yet."""
    return cooldowns.known(Registry(state_dir).root.cool_downs, datetime.now(UTC))


def forget_cool_down(name: str, state_dir: Path | None) -> None:
    cooldowns.forget(Registry(state_dir).root.cool_downs, name)


def rehearsal_folder() -> Path:
    """A throw-away place for one tiny turn."""
    return Path(tempfile.mkdtemp(prefix="bydawn-agent-"))
