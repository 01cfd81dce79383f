"""The command line of rloop, and what it prints."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from bydawn import __version__
from bydawn.agents import cli
from bydawn.cli import render
from bydawn.cli.command import Group, command, option
from bydawn.cli.dialects import FURTHER, trust_command
from bydawn.cli.dialects.rloop_completion import completion, session_names
from bydawn.cli.dialects.rloop_config import config
from bydawn.cli.program import shielded
from bydawn.core.errors import UserError
from bydawn.core.text import plain, visible
from bydawn.core.values import Act
from bydawn.dialects.rloop import DIALECT
from bydawn.dialects.rloop.config import BACKENDS, KEYS, MOST_ITERATIONS, NAME, PROJECT, Config
from bydawn.dialects.rloop.files import CRASHED
from bydawn.operations.agents import found_here
from bydawn.operations.dialects.rloop import sessions
from bydawn.operations.dialects.rloop.sessions import Session
from bydawn.operations.plan import Plan
from bydawn.process.guardian import Tether
from bydawn.store.registry import Registry
from bydawn.system.user_folders import tilde

DEFAULTS = Config()
EXIT_OCCUPIED = 8
_PORT = click.IntRange(0, 65535)
_session = click.argument("name", metavar="<name>", shell_complete=session_names)

# -- start -------------------------------------------------------------------------------------------------------------


@command()
@click.argument("folder", metavar="<dir>")
@option("--name", "-n", metavar="NAME", help="Session name (default: directory name)")
@option(
    "--max-iterations",
    metavar="N",
    help=f"Max iterations before giving up (default: {DEFAULTS.max_iterations})",
)
@option("--task-file", "-f", metavar="FILE", help=f"Task file path (default: {DEFAULTS.task_file})")
@option(
    "--completion-marker",
    metavar="TEXT",
    help=f"Completion promise text (default: {DEFAULTS.completion_marker})",
)
@option("--backend", "-b", metavar="|".join(BACKENDS), help=f"Which agent works (default: {DEFAULTS.backend})")
@option("--model", "-m", metavar="MODEL", help="Claude model override")
@option("--prompt-template", metavar="FILE", type=click.Path(path_type=Path), help="Prompt for each iteration")
@option("--webhook", metavar="URL", help="Notification webhook URL")
@option("--no-tmux", is_flag=True, help="Run in foreground (blocks)")
@click.pass_obj
def start(
    tether: Tether | None,
    /,
    folder: str,
    name: str | None,
    prompt_template: Path | None,
    no_tmux: bool,
    **given: str | None,
) -> int:
    """Start a new ralph loop"""
    from bydawn.cli.dialects import running
    from bydawn.cli.dialects.rloop_voice import RloopScreen, RloopVoice
    from bydawn.cli.foreground import run_in_foreground
    from bydawn.operations.dialects.rloop import configuration, sessions, starting

    workspace = starting.folder_of(folder)
    flags = {key.path: value for key in KEYS if (value := given.get(key.name)) is not None}
    found = configuration.read(workspace, flags)
    wanted = starting.wanted(workspace, found, name, prompt_template, in_front=no_tmux)
    is_work = starting.open_boxes(workspace, found.task_file) > 0

    def run(tether: Tether, planned: Plan) -> int:
        if prompt_template:
            starting.keep_template(workspace, prompt_template)
        if no_tmux:
            return RloopScreen(DIALECT).run(tether, planned)
        return run_in_foreground(tether, planned, voice=RloopVoice(), detach=True, banner=is_work)

    try:
        return running.start(DIALECT, wanted, workspace, tether, run=run)
    except UserError as error:
        if error.exit_code == EXIT_OCCUPIED:
            raise sessions.occupied(wanted.words["session"], error.cause) from None
        raise


# -- go on, end --------------------------------------------------------------------------------------------------------


@command()
@click.argument("name", metavar="[name]", required=False, shell_complete=session_names)
@option("--stopped", is_flag=True, help="Also those that a person stopped")
@option("--max-iterations", metavar="N", type=click.IntRange(1, MOST_ITERATIONS), help="A new cap")
@option("--accept", is_flag=True, help="Keep changed protected files or a changed task file as they are")
@option("--note", metavar="TEXT", help="What to do differently; it goes into the next prompt")
def resume(name: str | None, stopped: bool, max_iterations: int | None, accept: bool, note: str | None) -> int:
    """Resume crashed/stopped loops"""
    from bydawn.cli.dialects.rloop_voice import RloopVoice
    from bydawn.cli.many import resume_these
    from bydawn.operations.dialects.rloop import starting

    if name is None and (accept or note):
        raise UserError("which one?", cause="--accept and --note are for one session", hint=f"{NAME} resume app1 …")
    if name and note:
        starting.tell(name, note)
    taken = starting.to_resume(name, _say, stopped=stopped, rounds=max_iterations, accept=accept)
    if not taken:
        click.echo("  Nothing to resume: no session is unfinished.")
    return resume_these(taken, RloopVoice())


@command()
@click.argument("name", metavar="<name>", required=False, shell_complete=session_names)
@option("--all", "-a", "all_", is_flag=True, help="Stop all loops")
def stop(name: str | None, all_: bool) -> int:
    """Stop a running loop"""
    from bydawn.operations.dialects.rloop import sessions, starting

    if (name is None) == (not all_):
        cause = "neither a name nor --all was given" if name is None else "a name and --all were given"
        raise UserError("which one?", cause=cause, hint=f"`{NAME} stop app1` or `{NAME} stop --all`")
    named = sessions.table(_say) if name is None else [sessions.find(name, _say)]
    found = [each for each in named if each.is_alive or each.status == CRASHED]
    # One that does not answer does not keep the others from it.
    codes = [shielded(partial(starting.stop, each)) for each in found]
    for number, each in enumerate(found):
        codes[number] = codes[number] or shielded(partial(starting.until_it_is_gone, each))
        if codes[number] == 0:
            click.echo(f"  {each.name} is stopped. Go on: {NAME} resume {each.name}")
    for each in (each for each in named if each.is_ending):
        _say(f"{each.name} has ended already; waiting until its last message is sent")
        codes.append(shielded(partial(starting.until_it_is_gone, each)))
    if not codes and name is None:
        click.echo("  No session is running.")
    elif not codes:
        click.echo(f"  {name} is not running.")
    return max(codes, default=0)


# -- look --------------------------------------------------------------------------------------------------------------


@command()
@option("--json", "as_json", is_flag=True, help="Print JSON")
def status(as_json: bool) -> int:
    """Show status of all loops"""
    found = sessions.table(_say)
    if as_json:
        render.echo_json({"sessions": [sessions.document(each) for each in found]})
    elif found:
        click.echo("\n".join(table_lines(found)))
        for line in filter(None, map(sessions.trouble, found)):
            _say(line)
    else:
        click.echo(f"No sessions found\n\nStart one: {NAME} start ~/projects/app1")
    return 0


_HEADINGS = ("NAME", "DIR", "ITERATION", "STATUS", "REMAINING")
_COLORS = {"complete": "green", "running": "yellow"}


def table_lines(found: Sequence[Session]) -> Iterator[str]:
    """A row each; where the terminal is narrow, the folder is on a line of its own."""
    rows = [_HEADINGS, *(_row(each) for each in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    fits = sum(widths) + 2 * (len(widths) - 1) <= render.width()
    wide = fits or not (sys.stdout.isatty() or os.environ.get("COLUMNS"))  # a script wants one line each
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if render.colored() and row is not _HEADINGS:
            cells[3] = click.style(cells[3], fg=_COLORS.get(row[3], "red"))
        folder = cells.pop(1)
        yield "  ".join([cells[0], folder, *cells[1:]] if wide else cells).rstrip()
        if not wide and row is not _HEADINGS:
            yield f"  {folder.rstrip()}"


def _row(each: Session) -> tuple[str, ...]:
    left = each.remaining
    remaining = "?" if left is None else f"{left} task{'' if left == 1 else 's'}"
    iteration = f"{each.count('iteration')}/{each.count('max_iterations')}"
    cells = each.name, tilde(each.folder), iteration, each.status, remaining
    return tuple(visible(plain(cell)) for cell in cells)


@command()
@_session
@option("--follow", "-f", is_flag=True, help="Until the loop stops")
def logs(name: str, follow: bool) -> int:
    """View logs for a loop"""
    from bydawn.operations.dialects.rloop import logs, sessions

    session = sessions.find(name, _say)
    lines = logs.last_lines(session)
    for line in logs.follow(session) if follow else lines:
        click.echo(line)
    return 0


@command()
def backends() -> int:
    """Which agents are here"""
    here = {each.name: each for each in found_here(Path.cwd())}
    for name in BACKENDS:
        each = here.get(name)
        if each is None or each.path is None:
            click.echo(f"  ✗ {name:<9} not found; install it: npm install -g {cli(name).package}")
        else:
            login = "" if each.logged_in is not False else f" · not logged in: {each.login}"
            click.echo(f"  {'✓' if not login else '✗'} {name:<9} {plain(each.version or 'version unknown')}{login}")
    return 0


@command()
@option("--port", "-p", metavar="PORT", type=_PORT, default=8080, help="Where to listen (default: 8080)")
@option("--token", "-t", metavar="SECRET", help="What a caller has to send; with one, other machines may ask")
@option("--cors", metavar="ORIGIN", multiple=True, help="A page that may ask (default: none)")
@option("--link", is_flag=True, help="Print new links to the server that runs already")
def server(port: int, token: str | None, cors: tuple[str, ...], link: bool) -> int:
    """Start status API server"""
    from bydawn.cli.serve import keep_serving, new_links, ready, tokens

    serves = Act("server", program=NAME)
    if link:
        return new_links(Registry(), serves, NAME)
    ready()
    from bydawn.web.dialects import rloop as endpoints
    from bydawn.web.server import Wanted

    known = tokens(token)
    wanted = Wanted(
        name=NAME,
        folder=Path.cwd(),
        registry=Registry(),
        host="0.0.0.0" if known.steer else "127.0.0.1",  # noqa: S104 - its document asks it from elsewhere, with a token
        port=port,
        tokens=known,
        cors=cors,
        shown=endpoints.is_shown,
        more=endpoints.routes,
        serves=serves,
        for_programs=True,
    )
    return keep_serving(wanted)


def _say(text: str) -> None:
    click.echo(f"  ! {visible(plain(text))}", err=True)


# -- help --------------------------------------------------------------------------------------------------------------


@command()
def version() -> int:
    """Show version"""
    click.echo(f"{NAME} {__version__}")
    return 0


@command(name="help")
def help_() -> int:
    """Show this help"""
    click.echo(HELP)
    return 0


HELP = f"""\
rloop - Autonomous AI coding loops

USAGE:
  rloop <command> [options]

COMMANDS:
  start <dir>         Start a new ralph loop
  stop <name>         Stop a running loop
  stop --all          Stop all loops
  status              Show status of all loops (--json)
  logs <name>         View logs for a loop (--follow)
  resume [name]       Resume crashed loops (--stopped: also stopped ones)
  config              Manage configuration (list, get KEY, set KEY VALUE)
  trust               Review and trust what a project's .rloop.yaml runs (--once HASH)
  backends            Show which agents are here
  server              Start status API server
  completion          Print completions for bash or zsh
  version             Show version
  help                Show this help

START OPTIONS:
  --name, -n          Session name (default: directory name)
  --max-iterations    Max iterations before giving up (default: {DEFAULTS.max_iterations})
  --task-file, -f     Task file path (default: {DEFAULTS.task_file})
  --completion-marker Completion promise text (default: {DEFAULTS.completion_marker})
  --backend, -b       {"|".join(BACKENDS)} (default: {DEFAULTS.backend})
  --model, -m         Claude model override
  --prompt-template   File with the prompt for each iteration
  --webhook           Notification webhook URL
  --no-tmux           Run in foreground (blocks)

EXAMPLES:
  rloop start .
  rloop start ~/project --name myapp --max-iterations 50
  rloop status
  rloop logs myapp --follow
  rloop stop myapp

EXIT CODES of start --no-tmux:
  0 complete  1 max iterations  2 wrong usage  3 blocked: needs you
  7 agent failed  8 already running  130 stopped or interrupted

{FURTHER}"""


class _Commands(Group):
    """The help is the document's."""

    def get_help(self, ctx: click.Context) -> str:  # noqa: ARG002
        return HELP

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["version"] if args == ["-v"] else args)


COMMANDS = _Commands(
    name=NAME,
    commands=[
        start,
        stop,
        status,
        logs,
        resume,
        config,
        backends,
        server,
        completion,
        trust_command(PROJECT),
        version,
        help_,
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
