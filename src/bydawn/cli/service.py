"""`service`: let the operating system continue loops after a login or a reboot."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import group, option
from bydawn.cli.options import as_json, state_dir
from bydawn.core.text import plain
from bydawn.operations import service as services
from bydawn.operations.service import Told
from bydawn.system.user_folders import tilde

dry_run = option("--dry-run", is_flag=True, help="Only show the file and the commands.")


@group()
def service() -> None:
    """Continue loops after a login or a reboot, as a service of systemd or launchd.

    It takes every loop that crashed or that a shutdown ended, and starts it again if it dies.

    \b
    Examples
      bydawn service install --dry-run
      bydawn service install
      bydawn service status
    """


@service.command()
@option("--with-web", is_flag=True, help="Serve the web page too, on this machine.")
@dry_run
@state_dir
def install(with_web: bool, dry_run: bool, state_dir: Path | None) -> None:
    """Install the service and start it.

    Repeat it when bydawn has moved or your PATH has changed: the service keeps the PATH of this shell.
    """
    _tell(services.install(state_dir, with_web=with_web, dry_run=dry_run))


@service.command()
@dry_run
def remove(dry_run: bool) -> None:
    """Stop the service and remove it."""
    _tell(services.remove(dry_run=dry_run))


@service.command()
@as_json
def status(as_json: bool) -> None:
    """Say whether the service is installed and running."""
    told = services.status()
    if as_json:
        render.emit_json(told)
        return
    sign = "✓" if told.unit.running else "✗" if told.unit.failed else "■"
    click.echo(f"  {sign} {told.sentence}")
    render.field("State", told.unit.detail)
    render.field("File", tilde(told.unit.path))
    if told.note:
        render.field("Logout", told.note)
    render.next_steps(told.next)


def _tell(told: Told) -> None:
    where = plain(tilde(told.path))
    if told.text:
        click.echo(f"  File  {where}\n\n{told.text}")
    if told.commands:
        click.echo("  Commands")
        click.echo("".join(f"    {plain(command)}\n" for command in told.commands))
    render.paragraph(told.sentence if told.text else f"{told.sentence}  {where}")
    if told.note:
        render.paragraph(told.note)
    render.next_steps(told.next)
