"""The command line of codex-autorunner, and what it prints."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bydawn.cli import render
from bydawn.cli.command import Group, command, option
from bydawn.cli.dialects import FURTHER, trust_command
from bydawn.cli.dialects.log_screen import LogScreen, line
from bydawn.core.errors import UserError
from bydawn.core.facts import LoopStopped
from bydawn.core.text import plain
from bydawn.core.values import EXIT_CODES, Act, End
from bydawn.dialects.codex_autorunner import DIALECT
from bydawn.dialects.codex_autorunner.config import CONFIG, FOLDER, LOCK, LOG, NAME
from bydawn.dialects.codex_autorunner.files import ERROR
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_autorunner import documents, logs, repository
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.process.guardian import Tether
from bydawn.store.registry import Registry

if TYPE_CHECKING:
    from bydawn.operations.plan import Plan

EXIT_OCCUPIED = 8
HELP = {"help_option_names": ["-h", "--help"]}


def _root(ctx: click.Context, param: click.Parameter, given: Path | None) -> Path:  # noqa: ARG001 - click's
    return repository.root_of(given)


_PATH = click.Path(path_type=Path)
_repo = option(
    "--repo", "root", metavar="PATH", type=_PATH, callback=_root, help="The repository.  [default: the one around .]"
)
_as_json = option("--json", "as_json", is_flag=True, help="Print JSON.")
_force = option("--force", is_flag=True, help="Take over from another instance.")


# -- init --------------------------------------------------------------------------------------------------------------


@command()
@click.argument("path", required=False, type=_PATH)
@option("--git-init", is_flag=True, help="Make a git repository if there is none.")
@option("--force", is_flag=True, help="Replace documents and configuration; a copy of each is kept beside it.")
@option("--repo", metavar="PATH", type=_PATH, help="The same as PATH.")
def init(path: Path | None, git_init: bool, force: bool, repo: Path | None) -> int:
    """Write what is missing of the documents and the configuration"""
    from bydawn.operations.dialects.codex_autorunner import beginning

    begun = beginning.init(path or repo or Path(), git_init=git_init, force=force)
    for remark in begun.remarks:
        click.echo(f"  {remark}")
    for name, fate in begun.files.items():
        click.echo(f"  {fate:<9} {name}")
    click.echo(f"\n  Next: write your tasks (`{NAME} edit todo`), then `{NAME} run`.")
    return 0


# -- run ---------------------------------------------------------------------------------------------------------------


@command()
@_repo
@_force
@click.pass_obj
def run(tether: Tether | None, root: Path, force: bool) -> int:
    """Run Codex until nothing is left open"""
    return _run(root, tether, force=force)


@command()
@_repo
@_force
@click.pass_obj
def once(tether: Tether | None, root: Path, force: bool) -> int:
    """Run Codex exactly once"""
    return _run(root, tether, force=force, once=True)


@command()
@_repo
@option("--once", is_flag=True, help="Run Codex exactly once.")
@option("--accept", is_flag=True, help="Keep changed protected files or a changed list as they are.")
@option("--note", metavar="TEXT", help="What to do differently; it goes into the next prompt.")
@click.pass_obj
def resume(tether: Tether | None, root: Path, once: bool, accept: bool, note: str | None) -> int:
    """Go on after an error, a kill or a pause"""
    from bydawn.operations.dialects.codex_autorunner.running import refuse_beside_another

    refuse_beside_another(root)
    if (standing := repository.newest(root)) is None:
        cause = "no run is on record here; the log may have those of another program"
        raise UserError("there is nothing to go on with", cause=cause, hint=f"begin: `{NAME} run`")
    if note:
        from bydawn.operations import steer

        steer.tell(standing, note)
    return _run(root, tether, once=once, accept=accept)


def _run(root: Path, tether: Tether | None, *, force: bool = False, once: bool = False, accept: bool = False) -> int:
    from bydawn.cli.dialects import running
    from bydawn.operations.dialects import begin
    from bydawn.operations.dialects.codex_autorunner import running as operation

    refuse_inside_a_round()
    if not force:  # before any look at the documents, which its agent may be writing at this moment
        operation.refuse_beside_another(root)
    wanted = operation.checked(root)
    running.trust_config(DIALECT, root)
    if operation.checked(root) != wanted:  # a person may have thought about it for a while
        raise UserError(f"{FOLDER} has just changed", hint="look at it, and start again")
    config, asked = wanted[0], operation.asked(root, *wanted)
    if force and operation.kill(root):  # not before all else is known to be right
        asked = operation.asked(root, *wanted)
    screen = _Screen(root, 1 if once else config.stop_after_runs, config.max_wallclock_seconds)
    try:
        if standing := operation.goes_on(root, asked):
            return running.resume(DIALECT, begin.plan_resume(standing, accept=accept), tether, run=screen.run)
        return running.start(DIALECT, asked.start, root, tether, run=screen.run)
    except UserError as error:
        if error.exit_code == EXIT_OCCUPIED:
            raise operation.occupied("another one was faster") from None
        raise


class _Screen(LogScreen):
    """The log, and three last lines."""

    def __init__(self, root: Path, runs: int | None, seconds: float | None) -> None:
        super().__init__(DIALECT, runs, seconds)
        self._root = root

    def run(self, tether: Tether, planned: "Plan") -> int:
        from bydawn.operations.dialects.codex_autorunner.running import retire

        retire(self._root, but=planned.loop.id)
        return super().run(tether, planned)

    def exit_code(self, stopped: LoopStopped) -> int:
        state, code = repository.before(self._root), super().exit_code(stopped)
        line(f"Last run id: {_shown(state.last_run_id)}")
        line(f"Last exit code: {_shown(state.last_exit_code)}")
        line(f"Status: {state.status}")
        return EXIT_CODES[End.FAILED] if state.status == ERROR and code == 0 else code  # nothing is open, but it failed


# -- look --------------------------------------------------------------------------------------------------------------


@command()
@_repo
@_as_json
def status(root: Path, as_json: bool) -> int:
    """How it stands"""
    state = repository.standing(root)
    if as_json:
        click.echo(state.text, nl=False)
        return 0
    rows = {
        "Status": state.status,
        "Last run id": state.last_run_id,
        "Last exit code": state.last_exit_code,
        "Last start": state.last_run_started_at,
        "Last finish": state.last_run_finished_at,
        "Outstanding": f"unknown: see `{NAME} doctor`" if state.outstanding is None else state.outstanding,
    }
    for label, value in rows.items():
        render.field(label, _shown(value), 18)
    if state.reason:
        render.field("Reason", plain(state.reason), 18)
    return 0


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


@command()
@_repo
@option("--run", "run_", metavar="N", type=int, help="Only this run.")
@option("--tail", metavar="N", type=click.IntRange(min=1), help="Only the last N lines.")
def log(root: Path, run_: int | None, tail: int | None) -> int:
    """What runs said and did: the last one, unless told otherwise"""
    lines = logs.last_lines(root, tail) if run_ is None and tail else logs.block(root, run_, tail)
    empty = True
    for each in lines:
        empty = False
        click.echo(each)
    if empty:
        click.echo(f"  No runs yet: {LOG} has none.", err=True)
    return 0


@command()
@click.argument("what", default="todo", type=click.Choice(documents.KINDS))
@_repo
def edit(what: str, root: Path) -> int:
    """Open a document in $EDITOR (or vi)"""
    from bydawn.operations.edit import open_editor

    open_editor(documents.path_of(root, repository.config_of(root), what))
    return 0


@command()
@option("--repo", metavar="PATH", type=_PATH, help="The repository.  [default: the one around .]")
@_as_json
def doctor(repo: Path | None, as_json: bool) -> int:
    """Check repository, documents, configuration and Codex"""
    from bydawn.cli.setup import show_findings
    from bydawn.operations.dialects.codex_autorunner.doctor import examine

    return show_findings(examine(repo), as_json=as_json)


# -- end ---------------------------------------------------------------------------------------------------------------


@command()
@_repo
def kill(root: Path) -> int:
    """End the running run now"""
    from bydawn.operations.dialects.codex_autorunner import running as operation

    if operation.kill(root):
        click.echo("  Killed. Nothing of it is running any more.")
        return 0
    if pid := loops.named_by_another(root, LOCK):
        raise UserError(
            f"process {pid} is not ours to end", cause=f"{LOCK} names it", hint=f"if it is the one: kill {pid}"
        )
    click.echo("  Nothing is running here.")
    return 0


@command()
@_repo
@option("--host", metavar="ADDRESS", help="Where to listen.  [default: server.host]")
@option("--port", metavar="PORT", type=click.IntRange(0, 65535), help="Where to listen.  [default: server.port]")
@option("--link", is_flag=True, help="Print new links to the page that is served already.")
def serve(root: Path, host: str | None, port: int | None, link: bool) -> int:
    """The web page of this repository"""
    from bydawn.cli.serve import keep_serving, new_links, ready, tokens

    serves = Act("serve", program=NAME)
    if link:
        return new_links(Registry(), serves, NAME)
    ready()
    from bydawn.cli.dialects import running
    from bydawn.web.dialects import codex_autorunner as endpoints
    from bydawn.web.links import is_loopback
    from bydawn.web.server import Wanted

    found = repository.config_of(root)
    if host is None and not is_loopback(found.host):
        raise UserError(
            f"{FOLDER}/config.yml asks to listen on {found.host}, which others can reach",
            cause="that file came with the repository, and only you can decide that",
            hint=f"`{NAME} serve --host {found.host}`",
        )
    if found.auth_token:
        running.trust_config(DIALECT, root)  # a token that came with the repository is not your secret
    wanted = Wanted(
        name=NAME,
        folder=root,
        registry=Registry(),
        host=host or found.host,
        port=found.port if port is None else port,
        tokens=tokens(found.auth_token),
        shown=endpoints.shown_in(root),
        more=endpoints.routes,
        serves=serves,
    )
    return keep_serving(wanted)


_HELP = f"""Run Codex again and again until TODO.md has no open box.

TODO.md, PROGRESS.md and OPINIONS.md travel with every prompt; one log tells everything.

\b
Examples
  codex-autorunner init
  codex-autorunner edit todo
  codex-autorunner run

\b
Exit codes
  0 nothing left open, or stop_after_runs used up
  2 wrong usage, configuration or documents  3 needs you  4 out of time
  7 Codex failed  8 another instance  130 interrupted or killed

{FURTHER}
"""
COMMANDS = Group(
    name=NAME,
    help=_HELP,
    commands=[init, run, once, resume, kill, status, log, edit, doctor, serve, trust_command(CONFIG)],
    context_settings=HELP,
)
