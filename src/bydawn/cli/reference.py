"""Generate docs/commands.md and docs/settings.md from the parser and the table of settings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from bydawn.cli.command import show_all
from bydawn.cli.program import TABLE, bydawn
from bydawn.settings.schema import page


def reference() -> str:
    """docs/commands.md."""
    root = click.Context(bydawn, info_name="bydawn", max_content_width=100, terminal_width=100)
    parts = ["# Commands\n\nGenerated from the parser by `scripts/docs`; do not edit.\n", _block(bydawn.get_help(root))]
    for rows in TABLE.values():
        for name, _, _ in rows:
            parts += _command(bydawn, name, root)
    return "\n".join(parts)


def _command(group: click.Group, name: str, parent: click.Context) -> Iterator[str]:
    command = group.get_command(parent, name)
    assert command is not None  # noqa: S101 - the table names commands
    context = click.Context(command, parent=parent, info_name=name, max_content_width=100, terminal_width=100)
    show_all(context)
    yield f"## {context.command_path}\n\n{_block(command.get_help(context))}"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _command(command, each, context)


def _block(text: str) -> str:
    return "```text\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n```\n"


if __name__ == "__main__":
    for name, text in [("commands.md", reference()), ("settings.md", page())]:
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
