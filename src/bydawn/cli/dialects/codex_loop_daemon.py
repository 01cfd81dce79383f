"""`daemon` and `service` of codex-loop: a watchdog keeps `run --continuous` running, with or without a terminal."""

import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli.command import Group, command, option
from bydawn.cli.dialects.codex_loop_options import HELP, in_project
from bydawn.cli.dialects.log_screen import line
from bydawn.core.errors import UserError
from bydawn.core.text import duration, plain, shorten
from bydawn.core.watching import BACK_OFF
from bydawn.dialects.codex_loop.config import NAME

if TYPE_CHECKING:
    from bydawn.core.values import Restart
    from bydawn.host.units import Manager, Unit
    from bydawn.operations.dialects.codex_loop.watchdog import Options, WatchStatus
    from bydawn.process.guardian import Tether
    from bydawn.store.folder import LoopFolder
    from bydawn.store.lock import Lock

_BEGUN = "begun"
_LAST_LINES = 5


def _with_options(function: Callable[..., int]) -> Callable[..., Any]:
    """A command for a project with options about how it is kept running, which it gets as one value."""

    @wraps(function)
    def command(root: Path, retry_blocked: bool, sleep: float, max_cycles: int | None, **more: Any) -> int:
        from bydawn.operations.dialects.codex_loop.watchdog import Options

        asked = Options(retry_blocked=retry_blocked, cycle_sleep_seconds=sleep, max_cycles=max_cycles)
        return function(root, asked, **more)

    sleep = option(
        "--cycle-sleep-seconds",
        "sleep",
        metavar="N",
        type=click.FloatRange(0, 1e7),
        default=60.0,
        help="Between two cycles.  [default: 60]",
    )
    retry = option("--retry-blocked", is_flag=True, help="Try blocked tasks again, in every cycle.")
    most = option("--max-cycles", metavar="N", type=click.IntRange(1), help="At most so many cycles.")
    for each in (most, sleep, retry, in_project):
        command = each(command)
    return command


_as_json = option("--json", "as_json", is_flag=True, help="As JSON.")


# -- the watchdog ------------------------------------------------------------------------------------------------------


def watch(root: Path, kind: str, options: "Options", held: "Lock", front: int = -1, back_off: float = BACK_OFF) -> None:
    """Keep the project running, in this process, until it has ended, or we are asked to end."""
    from bydawn.cli.many import exhausted
    from bydawn.host.watchdog import Kept, Watchdog
    from bydawn.operations import keeping
    from bydawn.operations.dialects.codex_loop import project, watchdog

    waiting = [front] if front >= 0 else []

    known: list[LoopFolder] = []

    def folder() -> "LoopFolder | None":
        if not known and (standing := project.standing_of(root)):
            known.append(standing.folder)
        return known[0] if known else None

    def told(each: Kept) -> None:
        while waiting and each.pid:  # the worker has the other copy: when it ends, the one who waits sees that
            os.close(waiting.pop())
        watchdog.tell(root, kind, each)

    kept = Kept(name=project.name_of(root), folder=folder, begin=partial(_begin, root, kind, options, waiting))
    standing = project.standing_of(root) if kind == watchdog.SERVICE else None
    if standing and (due := keeping.due_of(standing)):  # what it was when the machine, or the watchdog, died
        kept.restart = due.restart
        if due.restart and due.is_too_many:
            line(f"  {plain(due.restart.given_up)}; it is not started again")
            exhausted(kept, due.restart)
            return
    Watchdog(
        is_lost=keeping.is_lost_in,
        give_up=exhausted,
        say=lambda text: line(f"  {plain(text)}"),
        told=told,
        still=partial(watchdog.tell, root, kind),
        held=held,
        back_off=back_off,
    ).run([kept])


def _begin(root: Path, kind: str, options: "Options", waiting: list[int], restart: "Restart | None") -> int:
    """In a child: one run of the project, under a guardian."""
    from bydawn.cli.dialects.codex_loop_run import RunOptions, run
    from bydawn.cli.program import shielded
    from bydawn.operations.dialects.codex_loop.watchdog import DAEMON, Files, open_log, refuse_foreign_files
    from bydawn.process.guardian import run_guarded

    asked = RunOptions(
        continuous=True,
        retry_blocked=options.retry_blocked,
        sleep=options.cycle_sleep_seconds,
        max_cycles=options.max_cycles,
    )
    heartbeat = root / Files(kind).heartbeat
    if kind == DAEMON:
        with suppress(OSError):  # the log may have been removed since
            log = open_log(root, kind)
            os.dup2(log, 1)
            os.dup2(log, 2)

    def go_on(tether: "Tether") -> int:
        refuse_foreign_files(root, kind)  # an agent may have changed them since the last run
        begun = partial(tether.release, 1, _BEGUN) if waiting else None
        return run(tether, root, asked, heartbeat, restart, begun, kept=True)

    def work(tether: "Tether") -> int:
        return shielded(lambda: go_on(tether))

    return run_guarded(work, waiting[0] if waiting else -1, raw=True)[0]


# -- daemon ------------------------------------------------------------------------------------------------------------


@command()
@_with_options
@_as_json
def start(root: Path, options: "Options", as_json: bool) -> int:
    """Keep the project running, in the background"""
    from bydawn.operations.dialects.codex_loop import watchdog

    _start(root, options)
    _show(watchdog.status(root, watchdog.DAEMON), as_json=as_json)
    return 0


def _start(root: Path, options: "Options") -> None:
    """Ask and refuse here, in front of a person; then let a process of its own watch."""
    from bydawn.cli import many  # noqa: F401 - it loads once what every run needs
    from bydawn.operations.dialects.codex_loop import watchdog

    watchdog.refuse_two(root, watchdog.DAEMON)
    _refuse_before(root, watchdog.DAEMON)
    log = watchdog.open_log(root, watchdog.DAEMON)
    begun = os.fstat(log).st_size
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    watcher = os.fork()
    if watcher == 0:
        code = 1
        try:
            os.close(reading)
            code = _be_the_daemon(root, options, log, writing)
        finally:
            os._exit(code)
    os.close(writing)
    if os.read(reading, 100).partition(b"\0")[0].decode() == _BEGUN:
        return
    with suppress(ProcessLookupError):
        os.kill(watcher, signal.SIGTERM)
    os.waitpid(watcher, 0)
    watchdog.refuse_watched(root)  # another one was faster
    said = [row.strip() for row in watchdog.log_after(root, watchdog.DAEMON, begun).splitlines() if row.strip()]
    for row in said[-_LAST_LINES:]:
        line(f"  {shorten(plain(row), 300)}", err=True)
    cause = "its run ended at once" + ("; above is the end of its log" if said else "")
    raise UserError("the daemon has not begun", cause=cause, hint=f"`{NAME} run` shows all of it here")


def _refuse_before(root: Path, kind: str) -> None:
    """What would be refused later is refused here, before anything that runs is ended."""
    from bydawn.cli.dialects.codex_loop_run import ready
    from bydawn.operations.dialects.codex_loop import watchdog

    ready(root)
    watchdog.refuse_foreign_files(root, kind)


def _be_the_daemon(root: Path, options: "Options", log: int, front: int) -> int:
    from bydawn.cli.program import shielded
    from bydawn.operations.dialects.codex_loop import watchdog
    from bydawn.process.guardian import leave_for

    leave_for(log)

    def work() -> int:
        held = watchdog.begin(root, watchdog.DAEMON, options)
        watch(root, watchdog.DAEMON, options, held, front)
        return 0

    return shielded(work)


@command()
@in_project
@_as_json
def stop(root: Path, as_json: bool) -> int:
    """End it, and the run that it keeps"""
    from bydawn.operations.dialects.codex_loop import watchdog

    was_there = watchdog.stop(root, lambda text: line(f"  {text}", err=True))
    if as_json:
        _show(watchdog.status(root, watchdog.DAEMON), as_json=True)
    else:
        line("  The daemon has ended." if was_there else "  No daemon runs here.")
    return 0


@command()
@_with_options
@_as_json
def restart(root: Path, options: "Options", as_json: bool) -> int:
    """End it if it runs, and start it with these options"""
    from bydawn.operations.dialects.codex_loop import watchdog

    _refuse_before(root, watchdog.DAEMON)
    watchdog.stop(root, lambda text: line(f"  {text}", err=True))
    _start(root, options)
    _show(watchdog.status(root, watchdog.DAEMON), as_json=as_json)
    return 0


@command(name="status")
@in_project
@_as_json
def daemon_status(root: Path, as_json: bool) -> int:
    """Does it run, and how is it?"""
    from bydawn.operations.dialects.codex_loop import watchdog

    _show(watchdog.status(root, watchdog.DAEMON), as_json=as_json)
    return 0


def _show(status: "WatchStatus", *, as_json: bool) -> None:
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(status), indent=2).decode())
        return
    age, error = status.heartbeat_age_seconds, " ".join(plain(status.last_error or "").split())
    rows = {
        status.kind: f"running (pid {status.pid})" if status.running else "not running",
        "installed": None if status.installed is None else "yes" if status.installed else "no",
        "phase": status.phase,
        "cycle": str(status.cycle) if status.cycle else None,
        "heartbeat": None if age is None else f"{duration(age)} ago",
        "restarts": f"{status.restart_count} ({status.last_restart_reason})" if status.restart_count else "0",
        "last_error": shorten(error, 300) or None,
        "log": status.log_path,
        "unit": status.unit_path,
    }
    for name, value in rows.items():
        if value is not None:
            click.echo(f"{name}: {plain(value)}")


# -- service -----------------------------------------------------------------------------------------------------------


@command(name="run", hidden=True)
@_with_options
def service_run(root: Path, options: "Options") -> int:
    """What the unit of the operating system starts"""
    from bydawn.operations.dialects.codex_loop import watchdog

    if why := watchdog.rests(root):
        line(f"  {plain(why)}: it stays so until someone starts it again")
        return 0
    watchdog.refuse_two(root, watchdog.SERVICE)
    watchdog.refuse_foreign_files(root, watchdog.SERVICE)
    watch(root, watchdog.SERVICE, options, watchdog.begin(root, watchdog.SERVICE, options))
    return 0


@command()
@_with_options
@_as_json
def install(root: Path, options: "Options", as_json: bool) -> int:
    """Have systemd or launchd keep the project running, after a reboot too"""
    from bydawn.operations.dialects.codex_loop import watchdog

    _install(root, options)
    _show(watchdog.status(root, watchdog.SERVICE), as_json=as_json)
    return 0


def _install(root: Path, options: "Options", *, again: bool = False) -> None:
    from bydawn.operations.dialects.codex_loop import watchdog
    from bydawn.operations.service import logout

    manager, unit = _unit(root, options)
    manager.check()
    watchdog.refuse_two_services(root)
    _refuse_before(root, watchdog.SERVICE)
    if again and manager.place(unit.name).exists():
        manager.remove(unit.name)
    manager.install(unit)
    note, steps = logout(manager.lingers())
    if note:
        line(f"  {note}" + "".join(f" `{step.command}`: {step.why}." for step in steps), err=True)


@command()
@in_project
@_as_json
def uninstall(root: Path, as_json: bool) -> int:
    """End it, and remove the unit"""
    from bydawn.operations.dialects.codex_loop import watchdog

    manager, unit = _unit(root, watchdog.Options())
    if was_there := manager.place(unit.name).exists():
        manager.check()
        watchdog.stop_run(root, lambda text: line(f"  {text}", err=True))
        manager.remove(unit.name)
    if as_json:
        _show(watchdog.status(root, watchdog.SERVICE), as_json=True)
    else:
        line("  The service has ended and is removed." if was_there else "  No service is installed for this project.")
    return 0


@command()
@_with_options
@_as_json
def reinstall(root: Path, options: "Options", as_json: bool) -> int:
    """Remove the unit if it is there, and install it with these options"""
    from bydawn.operations.dialects.codex_loop import watchdog

    _install(root, options, again=True)
    _show(watchdog.status(root, watchdog.SERVICE), as_json=as_json)
    return 0


@command(name="status")
@in_project
@_as_json
def service_status(root: Path, as_json: bool) -> int:
    """Is it installed, does it run, and how is it?"""
    from bydawn.operations.dialects.codex_loop import watchdog

    _show(watchdog.status(root, watchdog.SERVICE), as_json=as_json)
    return 0


def _unit(root: Path, options: "Options") -> "tuple[Manager, Unit]":
    from bydawn.host.units import Unit, environment, manager
    from bydawn.operations.dialects.codex_loop import watchdog
    from bydawn.operations.keeping import unit_name
    from bydawn.operations.preconditions import refuse_inside_a_round
    from bydawn.operations.service import program

    refuse_inside_a_round()
    words = (program(NAME), "service", "run", "--project-dir", str(root), *options.words)
    found = manager(shlex.join((NAME, "daemon", "start", "--project-dir", str(root))))
    return found, Unit(
        name=unit_name(NAME, root),
        what=f"{NAME} in {root}",
        words=words,
        folder=str(root),
        env=environment(os.environ),
        log=str(root / watchdog.Files(watchdog.SERVICE).log),
    )


daemon = Group(
    name="daemon",
    help="Keep a project running in the background",
    commands=[start, daemon_status, stop, restart],
    context_settings=HELP,
)
service = Group(
    name="service",
    help="Keep a project running as a service of the system",
    commands=[install, service_status, uninstall, reinstall, service_run],
    context_settings=HELP,
)
