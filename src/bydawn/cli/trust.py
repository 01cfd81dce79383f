"""`trust`: allow what a repository's own settings run."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bydawn import dialects
from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, state_dir
from bydawn.core.errors import UserError
from bydawn.core.text import visible
from bydawn.core.values import Act
from bydawn.dialects import own_words
from bydawn.operations import settings
from bydawn.operations import trust as operation
from bydawn.operations.preconditions import found_workspace, refuse_inside_a_round
from bydawn.settings.trust import Trusts
from bydawn.store.registry import Registry

if TYPE_CHECKING:
    from bydawn.operations.dialects.config import Owner
    from bydawn.settings.layers import Settings


@command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@option("--list", "listing", is_flag=True, help="List everything you trust.")
@option("--revoke", is_flag=True, help="Stop trusting the folder or file.")
@option("--once", metavar="HASH", help="Trust the next start only, if the settings have this hash.")
@as_json
@state_dir
def trust(
    path: Path | None, listing: bool, revoke: bool, once: str | None, as_json: bool, state_dir: Path | None
) -> int | None:
    """Review and trust what the settings of a folder run: agent, checks, prompts.

    PATH is a folder, or a configuration file of another tool that bydawn speaks for.

    bydawn shows them and asks you. It asks again only when a command changes, not when a number does.

    \b
    Examples
      bydawn trust
      bydawn trust --list
      bydawn trust --once 3f8a… .      (without a terminal)
    """
    trusts = Trusts(Registry(state_dir).root.trust)
    if sum([listing, revoke, once is not None]) > 1:
        raise UserError("--list, --revoke and --once cannot be combined", hint="use one of them")
    if listing:
        _list(trusts, as_json)
        return None
    refuse_inside_a_round()
    owner = _owner(path)
    if revoke:
        # Works for a folder that no longer exists.
        place = owner.path if owner else path.resolve() if path else found_workspace(None)
        done = trusts.revoke(place)
        if as_json:
            render.emit_json({"folder": str(place), "revoked": done})
            return None
        click.echo(f"  {'No longer trusted' if done else 'Was not trusted'}: {visible(str(place))}")
        return None
    if owner:
        return _give(owner.gather(), owner.workspace, once, trusts, as_json, owner.config)
    folder = found_workspace(path)
    return _give(settings.gather(folder), folder, once, trusts, as_json)


def of_tool(config: str, path: Path | None, once: str | None) -> int:
    """The same operation, as a command of the tool whose configuration file it is about."""
    from bydawn.operations.dialects import loops

    refuse_inside_a_round()
    here = Path.cwd()
    place = path or next((each for each in (here, *here.parents) if (each / config).is_file()), here)
    file = place / config if place.is_dir() else place
    if (found := _owner(file)) is None or found.config != config:
        raise UserError(
            f"{visible(str(file))} is not trusted", cause="this tool reads no such file", hint=f"name {config}"
        )
    gathered = found.gather()
    trusts = Trusts(loops.registry_of(gathered).root.trust)
    return _give(gathered, found.workspace, once, trusts, as_json=False, config=found.config)


def _owner(path: Path | None) -> "Owner | None":
    """The tool whose configuration file is meant; None if it is a folder."""
    if path is None or path.is_dir():
        return None
    from bydawn.operations.dialects.config import owner  # it loads all that starts a loop

    return owner(path)


def _give(gathered: "Settings", folder: Path, once: str | None, trusts: Trusts, as_json: bool, config: str = "") -> int:
    gathered.refuse_problems()
    place = folder / config
    trusts.follow(folder, config)
    if once is not None:
        operation.agree_once(once, gathered, folder, trusts, config)
    question = operation.review(gathered, folder, trusts, config)
    if as_json:  # the reader is a program, so we do not ask
        trusted = question is None or trusts.covers(place, question.powers)
        render.emit_json(operation.view(folder, config, question, trusted=trusted))
        return 0 if trusted else 2
    if once is not None:
        click.echo(f"  Trusted for the next start: {visible(str(place))}")
    elif question is None:
        click.echo(f"  Nothing in {visible(str(place))} needs your trust.")
        for file in () if config else _other_files(folder):
            click.echo(f"  Another tool's file is reviewed by its name: {render.typed(Act('trust', str(file)))}")
        _show_git(folder)
    elif trusts.covers(place, question.powers):
        _show(question)
        click.echo("  You already trust this.")
    elif not sys.stdin.isatty():
        raise question.refusal()
    elif not asked(question):
        click.echo("  Not trusted; nothing was changed.")
        return 2
    else:
        operation.agree(question.powers, folder, trusts, config)
        click.echo(f"  Trusted: {visible(str(place))}")
    return 0


def _other_files(folder: Path) -> list[str]:
    """The configuration files of other tools that are there."""
    from bydawn.dialects import TABLE

    paths = [folder / row.config for row in TABLE.values() if row.config]
    return [visible(shlex.quote(str(path))) for path in paths if path.is_file()]


def asked(question: operation.Question) -> bool:
    """Show it and ask; anything but yes is no."""
    _show(question)
    return agreed("Do you trust this? It runs with your permissions.")


def agreed(question: str) -> bool:
    while True:
        click.echo(f"  {question} [y/N]: ", nl=False, err=True)
        _wait_for_an_answer()
        answer = sys.stdin.readline()
        if not answer:
            raise click.Abort
        if (word := answer.strip().lower()) in ("y", "yes", "n", "no", ""):
            return word.startswith("y")
        click.echo("  Please answer y or n.", err=True)


def _wait_for_an_answer() -> None:
    """Wait with a wake-up descriptor: a Ctrl-C just before Python starts to read would be lost otherwise."""
    import select
    import signal
    import socket

    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        select.select([sys.stdin, ours], [], [])
    finally:
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()


def _show(question: operation.Question) -> None:
    file = visible(str(question.file))
    if question.copy_of:
        differs = ", with these differences:\n" if question.changes else ", and this is the same"
        click.echo(f"  You trust the copy in {visible(question.copy_of)}{differs}", err=True)
        for line in question.changes:
            click.echo(f"    {line}", err=True)
        click.echo(f"\n  {file} can run commands or change limits:\n", err=True)
    elif question.changes:
        click.echo(f"  {file} has changed since you trusted it:\n", err=True)
        for line in question.changes:
            click.echo(f"    {line}", err=True)
        click.echo("\n  It can run commands or change limits:\n", err=True)
    else:
        click.echo(f"  {file} can run commands or change limits:\n", err=True)
    unit = dialects.find(question.tool).unit if question.config else "round"
    for row in question.rows:
        key = own_words.of_rounds(row.key, unit)
        click.echo(f"    {key:<14} {row.value}{f'   ({row.where})' if row.where else ''}", err=True)
    _show_git(question.folder)
    click.echo("", err=True)


def _show_git(folder: Path) -> None:
    if rows := operation.git_runs(folder):
        click.echo("\n  Git runs these when an agent calls it here (the loop itself never does):", err=True)
        for row in rows:
            click.echo(f"    {row}", err=True)


def _list(trusts: Trusts, as_json: bool) -> None:
    found = trusts.all()
    if as_json:
        names = ("folder", "digest", "shown", "at", "by", "once")
        render.emit_json({"trusted": [{name: getattr(each, name) for name in names} for each in found]})
        return
    for each in found:
        when = f"{each.at.astimezone():%Y-%m-%d %H:%M}"
        click.echo(f"  {visible(each.folder)}   {'once, ' if each.once else ''}{when} by {visible(each.by)}")
        for key, lines in each.shown.items():
            for line in lines:
                click.echo(f"    {key:<14} {visible(line)}")
    if not found:
        click.echo("  Nothing is trusted.")
