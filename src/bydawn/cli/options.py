"""Options that many commands share, and the options of settings, made from their table."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bydawn.cli.command import option
from bydawn.system.user_folders import has_settings_file

if TYPE_CHECKING:  # commands that only read have to be quick and need no table
    from bydawn.settings.layers import Given
    from bydawn.settings.setting import Setting

T = TypeVar("T")


def _state_dir(_: click.Context, __: click.Parameter, given: Path | None) -> Path | None:
    """The flag, the variable, or the user's settings file."""
    if given is None and (said := os.environ.get("BYDAWN_STATE_DIR")):
        return Path(said)
    if given is None and has_settings_file():
        from bydawn.settings.files import read, user_file

        mine = [each.value for each in read(user_file()).given if each.key == "state_dir"]
        return Path(str(mine[0])) if mine else None
    return given


cd = option("-C", "--cd", type=click.Path(path_type=Path), help="Folder to work in.  [default: this project]")
state_dir = option(
    "--state-dir",
    callback=_state_dir,
    type=click.Path(path_type=Path),
    help="Directory for loop state.  [default: ~/.local/state/bydawn]",
)
loop_argument = click.argument("loop", required=False, metavar="[LOOP]")
as_json = option("--json", "as_json", is_flag=True, help='Print JSON, with "schema": 1.')


def read(kind: Callable[[str], T], text: str) -> T:
    """A word of the command line as a value of that kind."""
    try:
        return kind(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _word(setting: "Setting") -> Callable[[str], str]:
    """Takes a word of the command line as it is; errors come from the setting's kind."""

    def word(text: str) -> str:
        read(setting.kind.read, text)
        return text

    return word


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for every setting that has a flag; None if it is not given."""
    from bydawn.settings.table import TABLE

    for setting in reversed([row for row in TABLE if row.flags and row.flags[0].startswith("-")]):
        if setting.key == "state_dir":
            command = state_dir(command)
            continue
        default = f"  [default: {setting.usual}]" if setting.default is not False and setting.usual else ""
        if setting.kind.literal == (bool,):
            how: dict[str, Any] = {"is_flag": True, "default": None}
        else:
            how = {"type": _word(setting), "multiple": setting.kind.many, "metavar": setting.metavar or "N"}
        heading, text = setting.heading or "Options", setting.what + default
        flags = ("/".join(reversed(setting.flags)),) if setting.default is True else setting.flags
        command = option(*flags, setting.key, help=text, heading=heading, **how)(command)
    return command


def given_by_flags(options: dict[str, Any]) -> "Iterable[Given]":
    """The settings that the command line sets."""
    from bydawn.settings.layers import Given
    from bydawn.settings.setting import Layer
    from bydawn.settings.table import TABLE

    for setting in TABLE:
        said = options.get(setting.key)
        if said is None or said == ():
            continue
        words = [*said] if isinstance(said, tuple) else [str(said).lower() if isinstance(said, bool) else str(said)]
        flag = setting.flags[0 if said is False else -1]
        try:
            value = setting.kind.from_words(words)
        except ValueError as error:
            raise click.UsageError(f"{flag}: {error}") from None
        yield Given(key=setting.key, value=value, layer=Layer.FLAG, where=flag)
