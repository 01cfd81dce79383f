"""Which agents are on this machine, and can they work? Asks the programs themselves, briefly."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import which

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.ports import CoolDown
from bydawn.store import cooldowns
from bydawn.store.registry import Registry

_PATIENCE = 20.0  # seconds for a program to say its version


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What we know of an agent before we have met it."""

    tested: str  # the versions that our tests drive begin with this
    login: str  # what to run to log in
    logged_in: Callable[[Mapping[str, str]], bool | None]  # None: unknown


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it is on this machine."""

    name: str
    path: str | None = None
    version: str | None = None
    tested: str
    is_tested: bool = False
    logged_in: bool | None = None
    login: str


def _codex(env: Mapping[str, str]) -> bool | None:
    if any(env.get(name) for name in ("CODEX_API_KEY", "OPENAI_API_KEY")):
        return True
    home = Path(env.get("CODEX_HOME") or f"{env.get('HOME', '')}/.codex")
    if _names_a_provider(home / "config.toml"):
        return None  # of its own, with a key of its own
    return _ask("codex", "login", "status")[0] == 0


def _names_a_provider(path: Path) -> bool:
    try:
        return "model_provider" in path.read_text(errors="replace")
    except OSError:
        return False


def _claude(env: Mapping[str, str]) -> bool | None:
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    if any(env.get(name) for name in (*names, "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")):
        return True
    return Path(env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude", ".credentials.json").exists()


def _gemini(env: Mapping[str, str]) -> bool | None:
    if any(env.get(name) for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY")):
        return True
    return Path(env.get("HOME", ""), ".gemini", "oauth_creds.json").exists()


# In the order in which one is chosen where no agent is given.
KNOWN: dict[str, Known] = {
    "codex": Known(tested="0.166.", login="codex login", logged_in=_codex),
    "claude": Known(tested="2.1.", login="claude /login", logged_in=_claude),
    "opencode": Known(tested="1.18.", login="opencode auth login", logged_in=lambda _: None),
    "gemini": Known(tested="0.61.", login="gemini", logged_in=_gemini),
}


# Programs, and the packages they are in, on Linux.
_BUBBLEWRAP, _SOCAT = ("bwrap", "bubblewrap"), ("socat", "socat")
SANDBOX_NEEDS = {"codex": (_BUBBLEWRAP,), "claude": (_BUBBLEWRAP, _SOCAT)}


def look(name: str) -> Found:
    """One agent: is it here, which one is it, can it work?"""
    known = KNOWN[name]
    path = which(name)
    if path is None:
        return Found(name=name, tested=known.tested, login=known.login)
    said = re.search(r"\d+\.\d+[\w.+-]*", _ask(path, "--version")[1])
    version = said[0] if said else None
    return Found(
        name=name,
        path=path,
        version=version,
        tested=known.tested,
        is_tested=bool(version and version.startswith(known.tested)),
        logged_in=known.logged_in(os.environ),
        login=known.login,
    )


def first_that_works() -> str:
    """The agent to use where none is given: the first of codex and claude that is here and logged in."""
    there = [name for name in ("codex", "claude") if which(name)]
    if not there:
        raise UserError(
            "no agent is given, and none was found",
            cause="neither codex nor claude is on the PATH",
            hint="npm install -g @openai/codex (or @anthropic-ai/claude-code), or name a program: -a cmd:PROGRAM",
            exit_code=7,
        )
    for name in there:
        if KNOWN[name].logged_in(os.environ) is not False:
            return name
    raise UserError(
        f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} here, but not logged in",
        hint=f"run `{KNOWN[there[0]].login}`, or name an agent with -a",
        exit_code=7,
    )


def cool_downs(state_dir: Path | None) -> list[CoolDown]:
    """The providers' limits that loops of this user have run into and that are not over yet."""
    return cooldowns.known(Registry(state_dir).root / "cool-downs", datetime.now(UTC))


def forget_cool_down(name: str, state_dir: Path | None) -> None:
    cooldowns.forget(Registry(state_dir).root / "cool-downs", name)


def rehearsal_folder() -> Path:
    """A throw-away place for one tiny turn."""
    return Path(tempfile.mkdtemp(prefix="bydawn-agent-"))


def _ask(*argv: str) -> tuple[int, str]:
    """The exit code and the words of a program that ought to answer at once; whatever it starts ends with it."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError:
        return 127, ""
    with process:
        try:
            said, _ = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return 124, ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said.decode(errors="replace")
