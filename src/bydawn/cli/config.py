"""`config`: show and change settings, with the place each comes from."""

import os
from pathlib import Path

import click
import msgspec

from bydawn.cli import render
from bydawn.cli.command import group, option
from bydawn.cli.options import as_json, cd, state_dir
from bydawn.core.redact import rewritten
from bydawn.core.text import shorten, visible
from bydawn.core.values import Act
from bydawn.operations import settings
from bydawn.operations.preconditions import found_workspace
from bydawn.operations.trust import question
from bydawn.settings.files import project_file, strange_variables, user_file
from bydawn.settings.layers import Given, Problem, Settings
from bydawn.settings.setting import Layer
from bydawn.settings.trust import Trusts
from bydawn.store.registry import Registry

origin = option("--origin", is_flag=True, help="Show where each value comes from.")
user = option("--user", is_flag=True, help="Use your own file instead of the project's.")


@group()
def config() -> None:
    """Show and change settings.

    The first of these that sets a value wins: flag, environment (BYDAWN_*), the project's bydawn.toml, your own
    file, default.

    \b
    Examples
      bydawn config show --origin
      bydawn config set check "pytest -q" "ruff check"
      bydawn config set --user rounds 20
    """


@config.command()
@origin
@cd
@as_json
@state_dir
def show(origin: bool, cd: Path | None, as_json: bool, state_dir: Path | None) -> None:
    """Show every setting and its value here."""
    folder, gathered = _gathered(cd)
    inert = _inert(gathered, folder, state_dir)
    if as_json:
        rows = {key: _as_data(gathered[key], key in inert) for key in gathered.given}
        render.emit_json({"settings": rows, "problems": _problems(gathered)})
        return
    for key in gathered.given:
        given = gathered[key]
        room = max(16, render.width() - (52 if origin else 36))
        value = shorten(_hidden(settings.in_force(given).replace("\n", " ¦ ")), room) or "—"
        where = f"  {given.where}" if origin else "  [default]" if given.layer is Layer.DEFAULT and value != "—" else ""
        mark = "  (not in effect: not trusted)" if key in inert else ""
        click.echo(f"  {key:<19} {visible(value):<{room if origin or mark else 0}}{where}{mark}".rstrip())


@config.command()
@click.argument("key")
@origin
@cd
@as_json
def get(key: str, origin: bool, cd: Path | None, as_json: bool) -> None:
    """Show one setting; with --origin every place that sets it, the strongest first."""
    settings.known(key)
    folder, gathered = _gathered(cd)
    rows = gathered.given[key] if origin else gathered.given[key][:1]
    inert = origin and key in _inert(gathered, folder, None)
    if as_json:
        values = [_as_data(given, inert and number == 0) for number, given in enumerate(rows)]
        render.emit_json({"key": key, "values": values})
        return
    for number, given in enumerate(rows):
        text = visible(_hidden(settings.in_force(given)))
        if origin:
            mark = "  (not in effect: not trusted)" if inert and number == 0 else ""
            click.echo(f"  {'→' if number == 0 else ' '} {given.where}: {text.replace(chr(10), ' ¦ ') or '—'}{mark}")
        else:
            click.echo(text)


@config.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value", nargs=-1, required=True)
@user
@cd
@state_dir
def set_(key: str, value: tuple[str, ...], user: bool, cd: Path | None, state_dir: Path | None) -> None:
    """Write a setting to the project's file, or your own; comments and unknown keys stay.

    Several values make a list. You trust what you set this way.
    """
    _change(key, value, user, cd, state_dir)


@config.command()
@click.argument("key")
@user
@cd
@state_dir
def unset(key: str, user: bool, cd: Path | None, state_dir: Path | None) -> None:
    """Remove a setting from the project's file, or your own."""
    _change(key, (), user, cd, state_dir)


@config.command()
@cd
@as_json
@state_dir
def check(cd: Path | None, as_json: bool, state_dir: Path | None) -> int:
    """Check all settings; exit code 2 if one is invalid."""
    folder, gathered = _gathered(cd)
    strange = strange_variables(os.environ)
    inert = _inert(gathered, folder, state_dir)
    if as_json:
        render.emit_json({"ok": not gathered.problems, "problems": _problems(gathered), "warnings": strange})
        return 2 if gathered.problems else 0
    for problem in gathered.problems:
        click.echo(f"  ✗ {problem.where}: {visible(_hidden(problem.what))}")
        click.echo(f"    {visible(_hidden(problem.cause))}")
        click.echo(f"    → {visible(render.as_typed(problem.hint))}")
    for warning in strange:
        click.echo(f"  ! {warning}")
    if inert:
        click.echo(f"  ! not in effect until you trust the project's file: {', '.join(inert)}")
        click.echo(f"    → {render.typed(Act('trust', visible(str(folder))))}")
    if not gathered.problems:
        click.echo("  ✓ Every setting is valid.")
    return 2 if gathered.problems else 0


@config.command()
def schema() -> None:
    """Print a JSON Schema of the settings, for editors."""
    from bydawn.settings.schema import schema as table

    click.echo(msgspec.json.format(msgspec.json.encode(table()), indent=2).decode())


@config.command()
@cd
@as_json
def path(cd: Path | None, as_json: bool) -> None:
    """Show the files that settings are read from."""
    files = {"project": project_file(found_workspace(cd)).path, "user": user_file().path}
    if as_json:
        render.emit_json({name: {"path": str(file), "exists": file.exists()} for name, file in files.items()})
        return
    for name, file in files.items():
        click.echo(f"  {name:<8} {visible(str(file))}{'' if file.exists() else '   (does not exist)'}")


def _gathered(cd: Path | None) -> tuple[Path, Settings]:
    folder = found_workspace(cd)
    gathered = settings.gather(folder)
    if click.get_current_context().info_name != "check":  # which lists them; here what can be shown is shown anyway
        for problem in gathered.problems:
            click.echo(f"warning: {problem.where}: {visible(_hidden(problem.what))}", err=True)
    return folder, gathered


def _problems(gathered: Settings) -> list[Problem]:
    return [rewritten(problem, _hidden) for problem in gathered.problems]


def _inert(gathered: Settings, folder: Path, state_dir: Path | None) -> list[str]:
    """The settings of the project's file that are not trusted yet."""
    asking = question(gathered, folder, Trusts(Registry(state_dir).root.trust))
    rows = (*asking.powers.commands, *asking.powers.loosened) if asking else ()
    return [given.key for given in rows if gathered[given.key] is given]


def _change(key: str, words: tuple[str, ...], user: bool, cd: Path | None, state_dir: Path | None) -> None:
    from bydawn.operations.edit import keeping_trust

    folder = found_workspace(cd)
    file = user_file() if user else project_file(folder)
    trusts = Trusts(Registry(state_dir).root.trust)
    trusted = keeping_trust(file, folder, trusts, lambda: settings.change(file, key, words))
    click.echo(f"  {'Set' if words else 'Removed'} {key} {'in' if words else 'from'} {visible(str(file.path))}")
    if not trusted:
        click.echo("  The file has other settings that you have not trusted yet:")
        click.echo(f"    {render.typed(Act('trust', visible(str(folder))))}")


def _as_data(given: Given, inert: bool) -> dict[str, object]:
    is_secret = given.setting.secret and given.value is not None
    value = given.shown if is_secret else rewritten(given.value, _hidden)
    in_force = _hidden(settings.in_force(given)) or None
    return {"value": value, "in_force": in_force, "layer": given.layer, "where": given.where, "inert": inert}


def _hidden(text: str) -> str:
    return settings.secrets().hide(text)
