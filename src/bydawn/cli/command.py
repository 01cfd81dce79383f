"""Commands and options of click's that start quickly.

Click straightens every help text with the help of `inspect`, which takes longer to load than the rest of click. Ours
are straight as they stand.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import click


class Option(click.Option):
    """Takes its help as it is."""

    def __init__(self, *arguments: Any, help: str | None = None, **attributes: Any) -> None:  # noqa: A002 - click's word
        super().__init__(*arguments, **attributes)
        self.help = help


class _Quick(click.Command):
    """Has a `--help` of that kind."""

    _quick_help: click.Option | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:  # where a value is missing click does not say in which command
            error.ctx = error.ctx or ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        names = self.get_help_option_names(ctx)
        if self._quick_help is None and names and self.add_help_option:
            click.help_option(*names, "asked_for_help", cls=Option)(self)
            option = self.params.pop()
            assert isinstance(option, click.Option)  # noqa: S101 - that is what was put there
            self._quick_help = option
        return self._quick_help


class Command(_Quick):
    """A command of ours."""


class Group(_Quick, click.Group):
    """A command of ours that has commands of its own."""

    command_class = Command


option: Callable[..., Callable[[Any], Any]] = partial(click.option, cls=Option)
command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)
