"""`run` and `demo`: start a loop."""

import os
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from bydawn.cli.command import Command, command, help_all, option
from bydawn.cli.foreground import be_trusted, detach, plain, run_in_foreground
from bydawn.cli.options import cd, given_by_flags, setting_options, state_dir
from bydawn.cli.render import rehearsal
from bydawn.cli.voice import DemoVoice
from bydawn.core.errors import UserError
from bydawn.core.text import visible
from bydawn.operations import settings, start
from bydawn.operations.loop_request import loop_request
from bydawn.operations.preconditions import found_workspace, from_here
from bydawn.process.guardian import Tether
from bydawn.settings.files import strange_variables


class WithRest(Command):
    """Everything after `--` is for the agent, even without a prompt; a branch is part of its own word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta["rest"] = tuple(args[place + 1 :])
            args = args[:place]
        # Click would take the next word for its branch, which may well be the prompt.
        args = ["--worktree=on" if arg == "--worktree" else arg for arg in args]
        return super().parse_args(ctx, args)


@command(cls=WithRest)
@click.argument("prompt", required=False, metavar="[PROMPT|-|@FILE]")
@option("--name", help="Name of the loop.  [default: name of the folder]", heading="Goal")
@cd
@option("--once", is_flag=True, help="Run only one round.", heading="Limits")
@option("--new", is_flag=True, help="Start a new loop even if one here is unfinished.", heading="Goal")
@detach
@option("--dry-run", is_flag=True, help="Show command, prompt, checks and limits; run nothing.", heading="Output")
@option("--dangerously-full-access", is_flag=True, help="Same as --sandbox full: no sandbox.", heading="Safety")
@option("--no-project", is_flag=True, help="Ignore the settings in the folder's bydawn.toml.", heading="Safety")
@setting_options
@help_all
@click.pass_obj
def run(
    tether: Tether,
    /,
    prompt: str | None,
    name: str | None,
    cd: Path | None,
    once: bool,
    new: bool,
    detach: bool,
    dry_run: bool,
    dangerously_full_access: bool,
    no_project: bool,
    **flags: Any,
) -> int:
    """Start a loop in this folder, or continue the one with the same goal.

    PROMPT is what to do; `-` reads it from standard input, `@FILE` from a file. Without --done-when,
    tasks or checks, the loop ends when the agent writes <promise>TASK_COMPLETE</promise>.

    \b
    Examples
      bydawn run "fix the tests" -k "pytest -q"
      bydawn run -t TODO.md -a claude -a codex -k "make test" --until 07:00
      bydawn run - -a cmd:./agent.sh < goal.md
    """
    workspace = found_workspace(cd)
    rest = click.get_current_context().meta.get("rest", ())
    for key in ("tasks", "template", "progress", "opinions") if cd is None else ():
        flags[key] = from_here(flags[key], workspace) if flags[key] else None
    flags |= {"prompt": _prompt(prompt), "agent_args": (*flags["agent_args"], *rest)}
    if dangerously_full_access:
        flags["sandbox"] = "full"
    gathered = settings.gather(None if no_project else workspace, given_by_flags(flags))
    gathered.refuse_problems()
    planned = start.plan(loop_request(gathered, workspace, name=name, new=new))
    planned = msgspec.structs.replace(planned, warnings=(*planned.warnings, *strange_variables(os.environ)))
    if dry_run:
        rehearsal(start.rehearse(planned))
        return 0
    if gathered.has_project:
        be_trusted(gathered, workspace, flags["state_dir"], "--no-project")
    if cd is None and workspace != Path.cwd():
        click.echo(f"  Folder {visible(str(workspace))} (-C . works on this one only)")
    return run_in_foreground(
        tether, planned, rounds_allowed=1 if once else None, plain=gathered.switch("plain"), detach=detach
    )


@command()
@detach
@plain
@state_dir
@click.pass_obj
def demo(tether: Tether, /, detach: bool, plain: bool, state_dir: Path | None) -> int:
    """Watch a whole loop: a temporary repository, the built-in agent, a real test suite.

    It needs no account and no network. One round fails its check, and the next prompt says so. Once the agent says
    "all done" too early, and the loop goes on.
    """
    from bydawn.operations.demo import prepare  # no other loop needs it

    planned = start.plan(msgspec.structs.replace(prepare(), state_dir=state_dir))
    plain = plain or settings.gather(None).switch("plain")
    return run_in_foreground(tether, planned, plain=plain, voice=DemoVoice(), detach=detach)


def _prompt(given: str | None) -> str | None:
    """Read it now, while we are still in the terminal's foreground group."""
    if given == "-":
        given = sys.stdin.read()
    elif given and given.startswith("@"):
        path = Path(given[1:])
        try:
            given = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or str(error)
            raise UserError(
                f"cannot read the prompt {path}", cause=cause, hint="@FILE must be an existing text file"
            ) from None
    return given if given and given.strip() else None
