"""Click commands and options that start quickly.

Click cleans the indentation of every help text with `inspect`, which takes longer to load than the rest of click.
Ours need no cleaning.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import click

_ALL = "bydawn.help_all"


class Option(click.Option):
    """Takes its help as it is; `heading` is where the help lists it."""

    def __init__(
        self,
        *arguments: Any,
        help: str | None = None,  # noqa: A002 - click's word
        heading: str = "Options",
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.help = help
        self.heading = heading

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """A value that can be left out is part of the same word."""
        record = super().get_help_record(ctx)
        return (record[0].replace(" [=", "[="), record[1]) if record else None

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Without `[x>=1]`, which no one needs to be told."""
        return {name: text for name, text in super().get_help_extra(ctx).items() if name != "range"}


class _Quick(click.Command):
    """A command with such a `--help` option."""

    _quick_help: click.Option | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help())  # asked for nothing: no error, as with `--help`
            ctx.exit()
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:  # where a value is missing click does not say in which command
            error.ctx = error.ctx or ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        names = self.get_help_option_names(ctx)
        if not names or not self.add_help_option:
            return None
        if self._quick_help is None or {*self._quick_help.opts} != {*names}:  # another context may use other names
            click.help_option(*names, "asked_for_help", cls=Option)(self)
            option = self.params.pop()
            assert isinstance(option, click.Option)  # noqa: S101 - just added
            self._quick_help = option
        return self._quick_help


class Command(_Quick):
    """A command with its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        for option in (each for each in self.get_params(ctx) if isinstance(each, Option)):
            if record := option.get_help_record(ctx):
                rows.setdefault(option.heading, []).append(record)
        hidden = [] if ctx.meta.get(_ALL) else rows.pop("Timeouts", [])
        for heading in sorted(rows, key=_headings().index) if len(rows) > 1 else rows:
            with formatter.section(heading):
                formatter.write_dl(rows[heading])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{len(hidden)} more options set timeouts: --help-all lists them.")


def _headings() -> list[str]:
    from bydawn.settings.setting import Heading

    return [*Heading, "Options"]


def show_all(ctx: click.Context) -> None:
    """Let the help of this command list every option."""
    ctx.meta[_ALL] = True


def _help_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        show_all(ctx)
        click.echo(ctx.get_help())
        ctx.exit()


class Group(_Quick, click.Group):
    """A command that has commands of its own."""

    command_class = Command


option: Callable[..., Callable[[Any], Any]] = partial(click.option, cls=Option)
command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)
help_all = option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help_all,
    help="Show this message with every option and exit.",
)
