"""What several files of codex-loop's command line need: its project, and how its commands show help."""

from pathlib import Path

import click

from bydawn.cli.command import option
from bydawn.operations.dialects.codex_loop.project import root_of

HELP = {"help_option_names": ["-h", "--help"]}


def _root(ctx: click.Context, param: click.Parameter, given: Path) -> Path:  # noqa: ARG001 - click's
    return root_of(given)


in_project = option(
    "--project-dir",
    "root",
    metavar="PATH",
    type=click.Path(path_type=Path),
    default=".",
    callback=_root,
    help="The project.  [default: .]",
)
