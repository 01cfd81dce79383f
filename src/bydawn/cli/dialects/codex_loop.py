"""The command line of codex-loop, and what it prints."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli import render
from bydawn.cli.command import Group, command, option
from bydawn.cli.dialects import FURTHER, WithNameless, given_in, options, trust_command
from bydawn.cli.dialects.codex_loop_daemon import daemon, service
from bydawn.cli.dialects.codex_loop_options import HELP, in_project
from bydawn.cli.dialects.codex_loop_reports import REPORTS
from bydawn.cli.dialects.log_screen import line
from bydawn.cli.dialects.skill_command import skill_command
from bydawn.core.agent import Event, readable
from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.core.values import EXIT_CODES, End, TaskStatus
from bydawn.dialects.codex_loop import document
from bydawn.dialects.codex_loop.arguments import Options, RunOptions
from bydawn.dialects.codex_loop.config import CONFIG, NAME
from bydawn.operations.dialects.codex_loop import project
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.process.guardian import Tether

if TYPE_CHECKING:
    from bydawn.dialects.codex_loop.proposal import Proposal

_WRONG, _OCCUPIED = 1, 8
_COLUMN = 16


class _Commands(Group):
    """Here 2 means blocked, so what is wrong before anything has started is 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            if error.exit_code not in (_OCCUPIED, EXIT_CODES[End.PAUSED]):
                error.exit_code = _WRONG
            raise


# -- init --------------------------------------------------------------------------------------------------------------


@command()
@in_project
@option("--prompt", metavar="TEXT", required=True, help="What is to be built.")
@option("--model", metavar="NAME", help="Codex's model.  [default: its own]")
@option("--force", is_flag=True, help="Replace the files that are there; a copy of each is kept beside it.")
@click.pass_obj
def init(tether: Tether | None, root: Path, prompt: str, model: str | None, force: bool) -> int:
    """Let Codex propose spec, plan and tasks, and write them"""
    from bydawn.operations.dialects.codex_loop import beginning

    assert tether  # noqa: S101 - what starts an agent runs under a guardian
    kept = beginning.check(root, prompt, force=force)
    line("  Codex reads the project and proposes a plan; it cannot change anything.", err=True)
    proposal = beginning.ask(root, prompt, model, tether, _told)
    _show(proposal, kept.hooks.post_init)
    # What an agent proposed is what a person wrote only once a person has seen it.
    agreed = sys.stdin.isatty() and click.confirm("  May these commands run here after each iteration?")
    begun = beginning.write(root, kept, proposal, prompt, model, force=force, agreed=agreed)
    for name, fate in begun.files.items():
        line(f"  {fate:<9} {name}")
    for hook in begun.hooks:
        result = "passed" if hook.exit_code == 0 else plain(hook.output) or "failed"
        line(f"  post_init {plain(hook.command)}: {result}")
    for row in render.step_lines(begun.steps):
        line(row)
    return _WRONG if begun.failed else 0


def _told(event: Event) -> None:
    text = shorten(plain(readable(event)), 200)
    if text and not text.startswith("{"):  # the answer itself
        line(f"  · {text}", err=True)


def _show(proposal: "Proposal", after_init: tuple[str, ...]) -> None:
    rows = {"Project": proposal.name, "Goal": proposal.goal}
    for label, value in rows.items():
        render.field(label, plain(value), _COLUMN)
    for label, values in (
        ("Done when", proposal.done_when),
        ("Tasks", [f"{task.slug}: {task.title}" for task in proposal.tasks]),
        ("Verification", proposal.verification_commands),
        ("After init", after_init),
    ):
        for number, value in enumerate(values):
            render.field(label if number == 0 else "", plain(value), _COLUMN)


# -- run ---------------------------------------------------------------------------------------------------------------


@command()
@in_project
@options(RunOptions, "continuous", *Options.__struct_fields__, "retry_errors", "max_error_retries")
@option("--done", metavar="IDS", default="", help="Note that these tasks are done already: 001,002.")
@option(
    "--heartbeat-path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Written every 60 seconds while this lasts.",
)
@click.pass_obj
def run(tether: Tether | None, /, root: Path, done: str, heartbeat_path: Path | None, **given: Any) -> int:
    """Let Codex do one task after the other"""
    from bydawn.cli.dialects import codex_loop_run as running
    from bydawn.operations.dialects.codex_loop.running import refuse_beside_another

    assert tether  # noqa: S101 - what starts a loop runs under a guardian
    refuse_inside_a_round()
    typed = given_in(given)
    for name in typed if "continuous" not in typed else ():
        if name != "retry_blocked":
            line(f"  ! --{name.replace('_', '-')} has no effect without --continuous", err=True)
    refuse_beside_another(root)
    options = RunOptions(done=tuple(filter(None, done.split(","))), **typed)
    return running.run(tether, root, options, heartbeat_path)


# -- look --------------------------------------------------------------------------------------------------------------


@command()
@in_project
@option("--summary", is_flag=True, help="The most important of it, a line each.")
def status(root: Path, summary: bool) -> int:
    """How it stands, as JSON"""
    found = project.look(root)
    if not summary:
        click.echo(document.text_of(found.document), nl=False)
        return 0
    for name, value in document.summary_rows(found.document, found.standing.state):
        click.echo(f"{name}: {shorten(plain(value), 1000)}")
    return 0


@command()
@in_project
@option("--repair", is_flag=True, help="Repair what can be repaired without you.")
def doctor(root: Path, repair: bool) -> int:
    """What is right and wrong here"""
    from bydawn.operations.dialects.codex_loop.doctor import examine

    found = examine(root, repair=repair)
    for heading, rows in found.sections.items():
        click.echo(f"{heading}:" if rows else f"{heading}: none")
        for row in rows:
            click.echo(f"  - {plain(row)}")
    return _WRONG if found.errors else 0


@command()
@in_project
@click.argument("task")
def skip(root: Path, task: str) -> int:
    """Leave a task out"""
    from bydawn.operations import tasks

    for each in tasks.settle(project.look(root).standing, [task], TaskStatus.SKIPPED):
        waits = "".join(f"; {plain(other.id)} waits for it" for other in each.stranded)
        line(f"{plain(each.task.id)} is left out{waits}")
    return 0


_lines = option("--lines", metavar="N", type=click.IntRange(1), default=40, help="How many.  [default: 40]")
_task = option("--task-id", metavar="ID", help="Of this task.  [default: of the last iteration]")


@command(name="tail")
@in_project
@_lines
@_task
def tail(root: Path, lines: int, task_id: str | None) -> int:
    """The last lines of Codex's events"""
    from bydawn.operations.dialects.codex_loop import reports

    for each in reports.tail(root, lines, task_id):
        click.echo(each)
    return 0


logs = WithNameless(tail, name="logs", help="What Codex said and did", commands=[tail], context_settings=HELP)
_HELP = f"""A goal becomes tasks, tasks become commits on a branch, verification has the last word.

\b
Examples
  codex-loop init --prompt "Build a CLI that …"
  codex-loop doctor --repair
  codex-loop run
  codex-loop status --summary

\b
Exit codes
  0 completed  2 blocked  1 nothing was started, or doctor found errors
  8 another run  130 interrupted

\b
{FURTHER}
"""
install_skill = skill_command(NAME, "Build a parser for our logs, overnight.", "--project-dir")
COMMANDS = _Commands(
    name=NAME,
    help=_HELP,
    commands=[init, run, status, skip, doctor, trust_command(CONFIG), logs, daemon, service, *REPORTS, install_skill],
    context_settings=HELP,
)
