"""Options that many commands share."""

from pathlib import Path

import click

cd = click.option(
    "-C", "--cd", default=".", type=click.Path(path_type=Path), help="The folder to work in.", show_default=True
)
state_dir = click.option(
    "--state-dir",
    envvar="BYDAWN_STATE_DIR",
    type=click.Path(path_type=Path),
    help="Where the truth is kept, instead of the user's state folder.",
)
loop_argument = click.argument("loop", required=False, metavar="[LOOP]")
as_json = click.option("--json", "as_json", is_flag=True, help='Data for programs, with "schema": 1.')
