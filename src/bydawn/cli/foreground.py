"""Run a loop in the terminal, in a worker process under its guardian."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path

import click

from bydawn.assemble import Worker
from bydawn.cli.background import Background
from bydawn.cli.command import option
from bydawn.cli.render import as_typed, state_folder, typed
from bydawn.cli.terminal import Terminal
from bydawn.cli.trust import asked
from bydawn.cli.voice import Voice
from bydawn.core.errors import UserError
from bydawn.core.values import Act, End
from bydawn.operations import trust
from bydawn.operations.plan import Plan
from bydawn.operations.run_loop import run
from bydawn.process.guardian import Tether
from bydawn.settings.layers import Settings
from bydawn.settings.trust import Trusts
from bydawn.store.registry import Registry

detach = option("-d", "--detach", is_flag=True, help="Run in the background; the terminal can be closed.")
plain = option("--plain", is_flag=True, help="Plain lines, no color, no redrawing.")


def run_in_foreground(
    tether: Tether,
    planned: Plan,
    *,
    rounds_allowed: int | None = None,
    seconds_allowed: float | None = None,
    plain: bool = False,
    voice: Voice | None = None,
    detach: bool = False,
    banner: bool = True,
) -> int:
    """Run the loop to its end, here in the worker process, and show it; or `detach` it once it has begun."""
    if banner:
        warn_if_unbounded(planned)
    voice = voice or Voice()
    background = Background(tether, planned, voice) if detach else None
    resume = Act("resume", planned.reference)
    out, nowhere = (background.log, "does not reach it") if background else (None, None)
    terminal = Terminal(planned, plain=plain or detach, voice=voice, out=out, on_ctrl_c=nowhere)
    try:
        for warning in map(as_typed, planned.warnings):
            if background:
                say(f"  ! {warning}")
            else:
                terminal.warn(warning)
        worker = Worker(
            tether=tether,
            followers=(terminal, background) if background else (terminal,),
            say=terminal.warn,
            rounds_allowed=rounds_allowed,
            seconds_allowed=seconds_allowed,
            go_on=shlex.join(voice.go_on(planned.loop)) if planned.loop.dialect else typed(resume),
        )
        stopped = run(planned, worker)
        if stopped.end is End.CHECKPOINT and planned.loop.checkpoint and planned.loop.checkpoint.mode == "pause":
            folder = state_folder()
            ours = [*(["--state-dir", folder] if folder else []), *(["--plain"] if plain else [])]
            tether.leave([*voice.go_on(planned.loop), *(ours if planned.loop.dialect is None else [])])
        return voice.exit_code(stopped)
    finally:
        terminal.close()


def warn_if_unbounded(*plans: Plan) -> None:
    """Show a banner on every start: no one should have to remember what they allowed."""
    if agents := dict.fromkeys(name for each in plans if each.loop.sandbox == "full" for name in each.loop.pool):
        bar = "!" * 64
        say(f"{bar}\n!! FULL ACCESS: {' and '.join(agents)} runs as you, without a sandbox.\n{bar}")


def say(text: str) -> None:
    """Tell the person; a reader who has seen enough keeps no loop from starting."""
    with suppress(BrokenPipeError):
        click.echo(text, err=True)


def be_trusted(
    gathered: Settings, workspace: Path, state_dir: Path | None, without: str = "", config: str = ""
) -> None:
    """Ask before anything from a repository's own settings runs.

    `without` is the flag that ignores them, if the command has one; `config` is the file of another tool that is meant.
    """
    trusts = Trusts(Registry(state_dir).root.trust)
    question = trust.question(gathered, workspace, trusts, config)
    if question is None:
        trust.use(gathered, workspace, trusts, config)
    elif not sys.stdin.isatty():
        raise question.refusal(without)
    elif not asked(question):
        hint = (
            f"ignore the project's settings: {without}"
            if without
            else f"remove what you do not want from {question.file}"
        )
        raise UserError(f"{question.file} is not trusted", cause="nothing was started", hint=hint)
    else:
        trust.agree(question.powers, workspace, trusts, config)
