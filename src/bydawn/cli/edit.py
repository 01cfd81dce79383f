"""`edit`: open tasks, notes or settings in your editor."""

import shlex
import sys
from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import cd, state_dir
from bydawn.cli.trust import asked
from bydawn.core.text import visible
from bydawn.core.values import Act
from bydawn.operations import edit as operation
from bydawn.operations import settings, trust
from bydawn.operations.preconditions import found_workspace
from bydawn.settings.trust import Trusts
from bydawn.store.registry import Registry


@command(no_args_is_help=True)
@click.argument("what", type=click.Choice([*operation.DOCUMENTS, "config"]))
@option("--user", is_flag=True, help="Open your own settings instead of the project's.")
@cd
@state_dir
def edit(what: str, user: bool, cd: Path | None, state_dir: Path | None) -> None:
    """Open a file of this folder in $EDITOR (or vi).

    todo or tasks: the task file. progress: the agent's notes. opinions: your rules for the agent. prompt: the
    goal. config: the settings, which also name the other files.

    \b
    Examples
      bydawn edit tasks
      bydawn edit config --user
    """
    folder = found_workspace(cd)
    if what == "config":
        path, trusted = operation.edit_config(folder, Trusts(Registry(state_dir).root.trust), user=user)
        if not trusted and sys.stdin.isatty():
            agree_to_the_edited(folder, state_dir)
        elif not trusted:
            click.echo(f"  {visible(str(path))} has settings that you have not trusted yet:")
            click.echo(f"    {render.typed(Act('trust', visible(str(folder))))}")
        return
    if user:
        raise click.UsageError("--user only works with config")
    edit_document(what, folder)


def agree_to_the_edited(folder: Path, state_dir: Path | None) -> None:
    """It was not trusted before, so what the editor saved is more than what this person wrote: show it, and ask."""
    trusts = Trusts(Registry(state_dir).root.trust)
    question = trust.review(settings.gather(folder), folder, trusts)
    if question and asked(question):
        trust.agree(question.powers, folder, trusts)
        click.echo(f"  Trusted: {visible(str(folder))}")
    elif question:
        click.echo("  Not trusted.")


def edit_document(what: str, folder: Path) -> None:
    """Open the file that a word means in a folder; if no setting names it yet, say how to set it."""
    path, key = operation.document(what, folder)
    operation.open_editor(path)
    if key and path.exists():
        value = f"@{path.name}" if key == "prompt" else path.name
        click.echo(f"  To use it in loops here: {render.me()} config set {key} {visible(shlex.quote(value))}")
