"""A loop that runs in front of a person, in a worker under its guardian."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bydawn.cli.command import option
from bydawn.core.errors import UserError
from bydawn.process.guardian import Tether

if TYPE_CHECKING:  # imported when they are needed, so that `--help` is quick
    from bydawn.cli.voice import Voice
    from bydawn.operations.plan import Plan
    from bydawn.settings.layers import Settings

plain = option("--plain", is_flag=True, help="Flat lines, no colour, nothing redrawn.")


def run_in_foreground(
    tether: Tether,
    planned: "Plan",
    *,
    once: bool = False,
    plain: bool = False,
    voice: "Voice | None" = None,
) -> int:
    """Run the loop to its end, here in the worker, in front of a person."""
    from bydawn.assemble import Worker
    from bydawn.cli.render import state_folder, typed
    from bydawn.cli.terminal import Terminal
    from bydawn.cli.voice import OwnVoice
    from bydawn.core.values import End
    from bydawn.operations.run_loop import run

    voice = voice or OwnVoice()
    terminal = Terminal(planned, plain=plain, voice=voice)
    try:
        for warning in planned.warnings:
            terminal.warn(warning)
        worker = Worker(
            tether=tether,
            followers=(terminal,),
            say=terminal.warn,
            rounds_allowed=1 if once else None,
            go_on=typed(f"resume {planned.reference}"),
        )
        stopped = run(planned, worker)
        if stopped.end is End.CHECKPOINT and planned.loop.checkpoint and planned.loop.checkpoint.mode == "pause":
            ours = [*state_folder(), *(["--plain"] if plain else [])]
            tether.leave([*voice.go_on(planned.loop), *(ours if planned.loop.dialect is None else [])])
        return voice.exit_code(stopped)
    finally:
        terminal.close()


def warn_if_unbounded(planned: "Plan") -> None:
    """A banner, each time: nobody should have to remember what they allowed."""
    if planned.loop.sandbox == "full":
        click.echo(f"{'!' * 64}", err=True)
        click.echo(f"!! FULL ACCESS: {' and '.join(planned.loop.pool)} runs without any sandbox, as you.", err=True)
        click.echo(f"{'!' * 64}", err=True)


def be_trusted(gathered: "Settings", workspace: Path, state_dir: Path | None, without: str = "") -> None:
    """Nothing of a repository's own settings runs that a person has not agreed to.

    `without` is the flag that leaves them out, where the command has one.
    """
    from bydawn.cli.trust import asked
    from bydawn.operations import trust
    from bydawn.settings.trust import Trusts
    from bydawn.store.registry import Registry

    trusts = Trusts(Registry(state_dir).root.trust)
    question = trust.question(gathered, workspace, trusts)
    if question is None:
        trust.use(gathered, workspace, trusts)
    elif not sys.stdin.isatty():
        raise question.refusal(without)
    elif not asked(question):
        hint = f"run without it: {without}" if without else "look at bydawn.toml, and take out what you do not want"
        raise UserError("it was not trusted", cause="nothing was started", hint=hint)
    else:
        trust.agree(question.powers, workspace, trusts)
