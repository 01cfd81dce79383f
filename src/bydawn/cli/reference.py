"""The command reference, generated from the parser, so that it cannot say what is not so."""

import sys
from pathlib import Path

import click

from bydawn.cli.shell import TABLE, bydawn


def reference() -> str:
    """docs/commands.md."""
    root = click.Context(bydawn, info_name="bydawn", max_content_width=100, terminal_width=100)
    parts = ["# Commands\n\nGenerated from the parser by `scripts/docs`; do not edit.\n", _block(bydawn.get_help(root))]
    for _, rows in TABLE:
        for name, _, _ in rows:
            command = bydawn.get_command(root, name)
            assert command is not None  # noqa: S101 - the table names commands
            context = click.Context(command, parent=root, info_name=name, max_content_width=100, terminal_width=100)
            parts.append(f"## bydawn {name}\n\n{_block(command.get_help(context))}")
    return "\n".join(parts)


def _block(text: str) -> str:
    return "```text\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n```\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
