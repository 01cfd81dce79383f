"""`rloop config`: what applies here and where it is set, and one value changed."""

from contextlib import suppress
from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import group, option
from bydawn.core.errors import UserError
from bydawn.core.text import shorten, visible
from bydawn.dialects.rloop.config import KEYS, NAME
from bydawn.operations.dialects.rloop import configuration
from bydawn.system.user_folders import tilde


def _keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    return [key.path for key in KEYS if key.path.startswith(incomplete)]


_as_json = option("--json", "as_json", is_flag=True, help="Print JSON.")
_key = click.argument("key", shell_complete=_keys)


@group(invoke_without_command=True)
@_as_json
@click.pass_context
def config(ctx: click.Context, as_json: bool) -> None:
    """Manage configuration

    The first of these that sets a value wins: option, environment (RLOOP_*), .rloop.yaml in the project's folder,
    config.yaml in ~/.config/rloop, default.

    \b
    Examples
      rloop config
      rloop config get defaults.max_iterations
      rloop config set notifications.webhook "https://..."
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


@config.command(name="list")
@_as_json
def list_(as_json: bool) -> None:
    """What applies here, and where it is set"""
    _list(as_json)


def _list(as_json: bool) -> None:
    found = configuration.read(Path.cwd())
    rows = configuration.rows(found)
    if as_json:
        values = {row.key: {"value": row.value, "where": row.where} for row in rows}
        render.emit_json({"values": values, "remarks": found.remarks})
        return
    wide = render.width() - 54
    for row in rows:
        value = visible(configuration.written(row.value)) or "—"
        if wide < 20:
            click.echo(f"  {row.key} ({row.where})\n    {shorten(value, render.width() - 4)}")
        else:
            click.echo(f"  {row.key:<26} {shorten(value, wide):<{wide}}  {row.where}")
    for remark in found.remarks:
        click.echo(f"  ! {visible(remark)}", err=True)


@config.command()
@_key
def get(key: str) -> None:
    """One value as it is, also if it is a secret"""
    found = configuration.read(Path.cwd())
    click.echo(configuration.written(configuration.value_of(found, key)))


@config.command(name="set", context_settings={"ignore_unknown_options": True})
@_key
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Write one value into your own config.yaml

    Lists and mappings are YAML or JSON; "" sets a model or a webhook to nothing.
    """
    path = configuration.set_value(key, value)
    click.echo(f"  Set {key} in {visible(tilde(str(path)))}")
    with suppress(UserError):  # of the project's file: `start` will tell
        where = configuration.read(Path.cwd()).where[key]
        if not where.startswith(f"{path.name}:"):
            click.echo(f"  ! {where} is stronger here: `{NAME} config` shows what applies", err=True)
    click.echo(f"  It applies from the next `{NAME} start` on; sessions that exist keep what they have.")


@config.command(hidden=True)
def init() -> None:
    """Write config.yaml with the defaults, if there is none"""
    path, is_new = configuration.init()
    click.echo(f"  {'Wrote' if is_new else 'Left as it is:'} {visible(tilde(str(path)))}")
