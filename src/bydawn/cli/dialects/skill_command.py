"""`install-skill`, for each dialect that has a skill."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import Command, command, option
from bydawn.core.text import plain
from bydawn.core.values import Next
from bydawn.operations.dialects import skills

_SIGNS = {"codex": "$", "claude": "/"}  # that call a skill by its name


def skill_command(dialect: str, request: str, folder: str | None = None) -> Command:
    """`request` is what a person could ask of the skill; `folder` is the option for a project, if there is one."""

    @command(name="install-skill")
    @option("--for", "agent", type=click.Choice([*_SIGNS]), default="codex", show_default=True, help="Which agent.")
    @option("--user", is_flag=True, help="For all repositories of yours, not only for this one.")
    @option("--force", is_flag=True, help="Over files that were changed; a copy of each is kept.")
    def install_skill(agent: str, user: bool, force: bool, here: Path = Path()) -> int:
        """Install the skill where Codex or Claude Code reads it"""
        done = skills.install_skill(dialect, agent, here.absolute(), user=user, force=force)
        news = f"{done.new} of {done.files} files written" if done.new else "is up to date"
        click.echo(f"  {plain(done.path)}: {news}")
        for name in done.kept:
            click.echo(f"  {plain(name)}: a copy of yours is beside it")
        render.next_steps([Next(command=f"{agent} '{_SIGNS[agent]}{dialect} {request}'", why="start")])
        return 0

    if folder:
        where = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
        option(folder, "here", metavar="PATH", type=where, default=".", help="The project.  [default: .]")(
            install_skill
        )
    return install_skill
