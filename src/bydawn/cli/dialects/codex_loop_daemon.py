"""`daemon` and `service` of codex-loop: a watchdog keeps `run --continuous` running, with or without a terminal."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from bydawn.cli import render
from bydawn.cli.command import Command, Group, command, option
from bydawn.cli.dialects import given_in, options
from bydawn.cli.dialects.codex_loop_options import HELP, in_project
from bydawn.cli.dialects.log_screen import line
from bydawn.cli.program import shielded
from bydawn.core.errors import UserError
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import Restart
from bydawn.core.watching import BACK_OFF
from bydawn.dialects.codex_loop.arguments import Options, RunOptions
from bydawn.dialects.codex_loop.config import NAME
from bydawn.process.guardian import Tether, leave_for, run_guarded, send_away
from bydawn.store.lock import Lock

if TYPE_CHECKING:
    from bydawn.host.watchdog import Kept
    from bydawn.operations.dialects.codex_loop.watchdog import WatchStatus

_DAEMON, _SERVICE = "daemon", "service"
_BEGUN = "begun"
_LAST_LINES = 5

Act = Callable[[Path, Options], str | None]  # what it says; nothing: how the watchdog is now


# -- the watchdog ------------------------------------------------------------------------------------------------------


def watch(root: Path, kind: str, options: Options, held: Lock, front: int = -1, back_off: float = BACK_OFF) -> None:
    """Keep the project running, in this process, until it has ended, or we are asked to end."""
    from bydawn.cli.many import exhausted
    from bydawn.host.watchdog import Watchdog
    from bydawn.operations import keeping
    from bydawn.operations.dialects.codex_loop import watchdog

    waiting = [front] if front >= 0 else []

    def told(each: "Kept") -> None:
        while waiting and each.pid:  # the worker has the other copy: when it ends, the one who waits sees that
            os.close(waiting.pop())
        watchdog.tell(root, kind, each)

    Watchdog(
        is_lost=keeping.is_lost_in,
        give_up=exhausted,
        say=_say,
        told=told,
        still=partial(watchdog.tell, root, kind),
        held=held,
        back_off=back_off,
    ).run([watchdog.kept(root, kind, partial(_begin, root, kind, options, waiting))])


def _begin(root: Path, kind: str, options: Options, waiting: list[int], restart: Restart | None) -> int:
    """In a child: one run of the project, under a guardian."""
    from bydawn.cli.dialects.codex_loop_run import run
    from bydawn.operations.dialects.codex_loop import watchdog

    asked = RunOptions(continuous=True, **asdict(options))
    heartbeat = root / watchdog.file_of(kind, watchdog.HEARTBEAT)
    if kind == _DAEMON:
        with suppress(OSError):  # the log may have been removed since
            log = watchdog.open_log(root, kind)
            os.dup2(log, 1)
            os.dup2(log, 2)

    def go_on(tether: Tether) -> int:
        watchdog.refuse_foreign_files(root, kind)  # an agent may have changed them since the last run
        begun = partial(tether.release, 1, _BEGUN) if waiting else None
        return run(tether, root, asked, heartbeat, restart, begun, kept=True)

    return run_guarded(lambda tether: shielded(lambda: go_on(tether)), waiting[0] if waiting else -1, raw=True)[0]


def _refuse_before(root: Path, kind: str) -> None:
    """What would be refused later is refused here, before anything that runs is ended."""
    from bydawn.cli.dialects.codex_loop_run import ready
    from bydawn.operations.dialects.codex_loop import watchdog

    ready(root)
    watchdog.refuse_foreign_files(root, kind)


def _say(text: str) -> None:
    line(f"  {plain(text)}")


def _complain(text: str) -> None:
    line(f"  {plain(text)}", err=True)


# -- daemon ------------------------------------------------------------------------------------------------------------


def _start(root: Path, options: Options) -> None:
    """Ask and refuse here, in front of a person; then let a process of its own watch."""
    from bydawn.cli import many  # noqa: F401 - it loads once what every run needs
    from bydawn.operations.dialects.codex_loop import running, watchdog

    watchdog.refuse_two(root, _DAEMON)
    _refuse_before(root, _DAEMON)
    log = watchdog.open_log(root, _DAEMON)
    begun = os.fstat(log).st_size
    watcher, reading = send_away(partial(_be_the_daemon, root, options, log))
    if os.read(reading, 100).partition(b"\0")[0].decode() == _BEGUN:
        return
    with suppress(ProcessLookupError):
        os.kill(watcher, signal.SIGTERM)
    os.waitpid(watcher, 0)
    running.refuse_beside_another(root)  # another one was faster
    said = watchdog.log_after(root, _DAEMON, begun)
    for row in said[-_LAST_LINES:]:
        _complain(shorten(plain(row), 300))
    cause = "its run ended at once" + ("; above is the end of its log" if said else "")
    raise UserError("the daemon has not begun", cause=cause, hint=f"`{NAME} run` shows all of it here")


def _be_the_daemon(root: Path, options: Options, log: int, front: int) -> int:
    from bydawn.operations.dialects.codex_loop import watchdog

    leave_for(log)

    def work() -> int:
        watch(root, _DAEMON, options, watchdog.begin(root, _DAEMON, options), front)
        return 0

    return shielded(work)


def _stop(root: Path, _: Options) -> str:
    from bydawn.operations.dialects.codex_loop import watchdog

    return "The daemon has ended." if watchdog.stop(root, _complain) else "No daemon runs here."


def _restart(root: Path, options: Options) -> None:
    _refuse_before(root, _DAEMON)
    _stop(root, options)
    _start(root, options)


# -- service -----------------------------------------------------------------------------------------------------------


def _serve(root: Path, options: Options) -> str:
    from bydawn.operations.dialects.codex_loop import watchdog

    if why := watchdog.rests(root):
        return f"{plain(why)}: it stays so until someone starts it again"
    watchdog.refuse_two(root, _SERVICE)
    watchdog.refuse_foreign_files(root, _SERVICE)
    watch(root, _SERVICE, options, watchdog.begin(root, _SERVICE, options))
    return ""


def _install(root: Path, options: Options, *, again: bool = False) -> None:
    from bydawn.operations.dialects.codex_loop import running, watchdog
    from bydawn.operations.service import logout

    manager, unit = watchdog.unit(root, options)
    manager.check()
    running.refuse_beside_another(root, replaced=_SERVICE)
    _refuse_before(root, _SERVICE)
    if again and manager.place(unit.name).exists():
        manager.remove(unit.name)
    manager.install(unit)
    note, steps = logout(manager.lingers())
    if note:
        _complain(note + "".join(f" `{step.command}`: {step.why}." for step in steps))


def _uninstall(root: Path, options: Options) -> str:
    from bydawn.operations.dialects.codex_loop import watchdog

    manager, unit = watchdog.unit(root, options)
    if not manager.place(unit.name).exists():
        return "No service is installed for this project."
    manager.check()
    watchdog.stop_run(root, _complain)
    manager.remove(unit.name)
    return "The service has ended and is removed."


# -- their commands ----------------------------------------------------------------------------------------------------

_as_json = option("--json", "as_json", is_flag=True, help="As JSON.")


def _verb(kind: str, name: str, about: str, act: Act, *, with_options: bool = False) -> Command:
    def run(root: Path, as_json: bool, **given: Any) -> int:
        from bydawn.operations.dialects.codex_loop import watchdog

        said = act(root, Options(**given_in(given)))
        if as_json or said is None:
            _show(watchdog.status(root, kind), as_json=as_json)
        elif said:
            _say(said)
        return 0

    made: Any = run
    for each in (_as_json, *([options(Options)] if with_options else []), in_project):
        made = each(made)
    return command(name=name, help=about, hidden=not about)(made)


def _show(status: "WatchStatus", *, as_json: bool) -> None:
    if as_json:
        render.echo_json(status)
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


def _looks(root: Path, options: Options) -> None:
    """Only show how it is."""


daemon = Group(
    name=_DAEMON,
    help="Keep a project running in the background",
    commands=[
        _verb(_DAEMON, "start", "Keep the project running, in the background", _start, with_options=True),
        _verb(_DAEMON, "status", "Does it run, and how is it?", _looks),
        _verb(_DAEMON, "stop", "End it, and the run that it keeps", _stop),
        _verb(_DAEMON, "restart", "End it if it runs, and start it with these options", _restart, with_options=True),
    ],
    context_settings=HELP,
)
_FRESH = partial(_install, again=True)
service = Group(
    name=_SERVICE,
    help="Keep a project running as a service of the system",
    commands=[
        _verb(
            *(_SERVICE, "install", "Have systemd or launchd keep the project running, after a reboot too", _install),
            with_options=True,
        ),
        _verb(_SERVICE, "status", "Is it installed, does it run, and how is it?", _looks),
        _verb(_SERVICE, "uninstall", "End it, and remove the unit", _uninstall),
        _verb(
            *(_SERVICE, "reinstall", "Remove the unit if it is there, and install it with these options", _FRESH),
            with_options=True,
        ),
        _verb(_SERVICE, "run", "", _serve, with_options=True),
    ],
    context_settings=HELP,
)
