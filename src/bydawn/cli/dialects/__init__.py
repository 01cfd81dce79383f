"""Another tool's command line, which is a click command of its own in a file here."""

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

from bydawn import __version__, dialects
from bydawn.cli.command import Command, Group, command, option
from bydawn.core.errors import UserError
from bydawn.core.options import Option, options_of

# The one line of a tool's help that names another program.
FURTHER = "`bydawn show` and `why` say more, `bydawn doctor --repair` repairs."


def speak(name: str, words: list[str], tether: object) -> int:
    """One command line of another tool; the exit code."""
    if words == ["--version"]:
        click.echo(f"{name} {__version__}")
        return 0
    try:
        code = commands(name).main(words or ["--help"], prog_name=name, standalone_mode=False, obj=tether)
    except UserError as error:
        from bydawn.dialects import own_words

        dialect = dialects.find(name)
        own_words.retell(error, name, dialect.unit, dialect.own, _foreign_flags(commands(name)))
        raise
    return code if isinstance(code, int) else 0


def _foreign_flags(group: click.Group) -> set[str]:
    """The flags of bydawn that the tool has not."""
    from bydawn.settings.table import TABLE

    return {flag for setting in TABLE for flag in setting.flags} - flags_of(group)


def flags_of(command: click.Command) -> set[str]:
    """Every option of a command and of those below it."""
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    own = {flag for each in command.params if isinstance(each, click.Option) for flag in each.opts}
    return own.union(*map(flags_of, inner))


def commands(name: str) -> click.Group:
    """All commands of a dialect, which its file calls COMMANDS."""
    found: click.Group = import_module(f"bydawn.cli.dialects.{dialects.TABLE[name].module}").COMMANDS
    return found


def options(struct: type[msgspec.Struct], *fields: str) -> Callable[[Any], Any]:
    """An option for each field of a struct that is typed, or for some of them; None, or (), where it is not given."""
    found = options_of(struct)
    made = [_option(found[name]) for name in fields or found]
    return lambda function: reduce(lambda inner, each: each(inner), reversed(made), function)


def _option(each: Option) -> Callable[[Any], Any]:
    kind: Any = click.Choice(each.typed.choices) if each.typed.choices else each.kind
    if each.least is not None:
        limited: Any = click.IntRange if each.kind is int else click.FloatRange
        kind = limited(each.least, each.most)
    how = {"is_flag": True, "default": None} if kind is bool else {"type": kind, "multiple": each.many}
    return option(each.flag, each.field, metavar=each.typed.metavar, help=each.help.strip(), **how)


def given_in(words: dict[str, Any]) -> dict[str, Any]:
    """What was typed of them; a struct has its own defaults."""
    return {name: value for name, value in words.items() if value not in (None, ())}


class WithNameless(Group):
    """Commands, and one without a name, which is meant when the first word is none of the others."""

    def __init__(self, nameless: Command, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.nameless = nameless

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        return self.nameless.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def trust_command(config: str) -> click.Command:
    """`trust`, for the file of a tool."""

    @command(name="trust")
    @click.argument("path", required=False, type=click.Path(path_type=Path))
    @option("--once", metavar="HASH", help="Trust the next start only, if the file has this hash.")
    def trust(path: Path | None, once: str | None) -> int:
        """Review and trust what the project's configuration runs"""
        from bydawn.cli.trust import of_tool

        return of_tool(config, path, once)

    return trust
