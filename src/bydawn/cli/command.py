"""Click commands and options that start quickly.

Click cleans the indentation of every help text with `inspect`, which takes longer to load than the rest of click.
Ours need no cleaning.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import click

ADVANCED = "Timeouts"  # the heading of options that only `--help-all` shows
_ALL = "bydawn.help_all"


class Option(click.Option):
    """Takes its help as it is; `heading` is where the help lists it."""

    def __init__(
        self,
        *arguments: Any,
        help: str | None = None,  # noqa: A002 - click's word
        heading: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.help = help
        self.heading = heading


class _Quick(click.Command):
    """A command with such a `--help` option."""

    _quick_help: click.Option | None = None

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
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record:
                rows.setdefault(getattr(parameter, "heading", "") or "Options", []).append(record)
        hidden = rows.pop(ADVANCED, []) if not ctx.meta.get(_ALL) else []
        for heading in sorted(rows, key=_place):
            with formatter.section(heading):
                formatter.write_dl(rows[heading])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{len(hidden)} more options set timeouts: --help-all lists them.")


_HEADINGS = ("Goal", "Done when", "Agent", "Limits", "Safety", "Hooks", "Output", ADVANCED, "Options")


def _place(heading: str) -> int:
    return _HEADINGS.index(heading)


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
