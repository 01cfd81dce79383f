"""The watchdog of a project, as a daemon or as a service: how it begins, how it is, the files that tell, its end."""

import os
import shlex
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.values import FINISHED, MOST_RESTARTS, STALE, Restart, Status
from bydawn.core.watching import BACK_OFF
from bydawn.dialects import follower
from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.arguments import Options
from bydawn.dialects.codex_loop.config import FOLDER, NAME
from bydawn.dialects.codex_loop.history import moment
from bydawn.host import units
from bydawn.host.units import Manager, Unit
from bydawn.host.watchdog import Kept, Phase
from bydawn.operations import keeping, service, steer
from bydawn.operations.beating import Beat
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import project, running
from bydawn.operations.dialects.codex_loop.running import DAEMON, SERVICE
from bydawn.operations.keeping import unit_name
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.settings import secrets
from bydawn.store import watches
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Lock, Owned
from bydawn.store.watches import Watch
from bydawn.system.paths import open_parent, unlink_regular
from bydawn.system.reading import read_inside
from bydawn.system.writing import replacing, write_all

T = TypeVar("T")
_MODE = 0o644  # before the umask
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
_GROWS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE = 45.0  # seconds for a watchdog to end
_LONGEST = 1 << 16  # bytes of a file that tells about one
# The files of one kind, from the project on: `.codex-loop/daemon.json`, `.codex-loop/daemon-heartbeat.json`, …
_DESCRIBED, HEARTBEAT, _TOLD, _LOG = ".json", "-heartbeat.json", "-watchdog.json", ".log"


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """`daemon.json` and `service.json`: what was started."""

    pid: int
    started_at: str
    project_dir: str
    log_path: str
    heartbeat_path: str
    watchdog_state_path: str
    command: tuple[str, ...]
    options: Options
    max_restarts: int = MOST_RESTARTS
    restart_backoff_seconds: float = BACK_OFF
    heartbeat_stale_seconds: float = STALE


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """`daemon-watchdog.json` and `service-watchdog.json`: how it is."""

    watchdog_pid: int
    phase: str | None = None  # running, restarting, completed, stopped, exhausted
    child_pid: int | None = None
    restart_count: int = 0
    last_restart_reason: str | None = None
    updated_at: str


def file_of(kind: str, which: str) -> str:
    return f"{FOLDER}/{kind}{which}"


# -- its beginning -----------------------------------------------------------------------------------------------------


def refuse_two(root: Path, kind: str) -> None:
    """One watchdog per project: a daemon or a service, and no run beside it."""
    refuse_inside_a_round()
    running.refuse_beside_another(root)
    if kind == DAEMON and units.is_installed(unit_name(NAME, root)):
        raise UserError(
            "this project has a service",
            cause="daemon and service would both keep it running",
            hint=f"remove the service first: `{NAME} service uninstall`",
            exit_code=8,
        )


def rests(root: Path) -> str:
    """Why a service does not begin: a person ended the loop, and has not installed the service since then."""
    standing, unit = project.standing_of(root), units.manager("").place(unit_name(NAME, root))
    stopped = standing.state.stopped if standing else None
    if stopped is None or not stopped.by_person:
        return ""
    is_older = unit.exists() and stopped.decided.at.timestamp() < unit.stat().st_mtime
    return "" if is_older else stopped.reason


def refuse_foreign_files(root: Path, kind: str) -> None:
    """What another program keeps under these names is not overwritten."""
    follower.refuse_unwritable(root, [file_of(kind, each) for each in (_DESCRIBED, HEARTBEAT, _TOLD, _LOG)])
    for path, shape in ((file_of(kind, HEARTBEAT), Beat), (file_of(kind, _TOLD), Told)):
        data = read_inside(root, path, _LONGEST) if os.path.lexists(root / path) else None
        if data is not None and _decoded(data, shape) is None:
            cause = "it does not look like a file of this tool, so another program may use it"
            raise UserError(f"{path} is someone else's", cause=cause, hint="look at it, then remove or rename it")


def begin(root: Path, kind: str, options: Options) -> Lock:
    """Become the watchdog of a project, in this process; raises `UserError` if there is one."""
    registry = loops.registry_of()
    try:
        held = watches.take(registry, root, kind)
    except Owned:
        raise running.kept_by(watches.of(registry, root) or Watch(kind="watchdog", pid=0)) from None
    log, heartbeat, told = (str(root / file_of(kind, each)) for each in (_LOG, HEARTBEAT, _TOLD))
    described = Described(
        pid=os.getpid(),
        started_at=moment(datetime.now(UTC)),
        project_dir=str(root),
        log_path=log,
        heartbeat_path=heartbeat,
        watchdog_state_path=told,
        command=(NAME, "run", "--project-dir", str(root), "--continuous", *options.words),
        options=options,
    )
    _write(root, file_of(kind, _DESCRIBED), described)
    return held


def kept(root: Path, kind: str, work: Callable[[Restart | None], int]) -> Kept:
    """The loop of a project, which may begin only with its first run; `work` is one run, in a child."""
    known: list[LoopFolder] = []

    def folder() -> LoopFolder | None:
        if not known and (standing := project.standing_of(root)):
            known.append(standing.folder)
        return known[0] if known else None

    standing = project.standing_of(root) if kind == SERVICE else None
    due = keeping.due_of(standing) if standing else None  # what it was when the machine, or the watchdog, died
    return Kept(name=project.name_of(root), folder=folder, begin=work, restart=due.restart if due else None)


def unit(root: Path, options: Options) -> tuple[Manager, Unit]:
    """The service of a project, and who starts it."""
    refuse_inside_a_round()
    manager = units.manager(shlex.join((NAME, "daemon", "start", "--project-dir", str(root))))
    return manager, Unit(
        name=unit_name(NAME, root),
        what=f"{NAME} in {root}",
        words=(service.program(NAME), "service", "run", "--project-dir", str(root), *options.words),
        folder=str(root),
        env=units.environment(os.environ),
        log=str(root / file_of(SERVICE, _LOG)),
    )


# -- how it is ---------------------------------------------------------------------------------------------------------


def open_log(root: Path, kind: str) -> int:
    """Through no link; it is made if it is gone."""
    with open_parent(root, file_of(kind, _LOG), make=True) as (folder, name):
        return os.open(name, _GROWS, _MODE, dir_fd=folder)


def log_after(root: Path, kind: str, begin: int) -> list[str]:
    """What the log says from there on, without secrets and empty lines."""
    with suppress(OSError), (root / file_of(kind, _LOG)).open("rb") as file:
        file.seek(begin)
        text = secrets().hide(file.read(_LONGEST).decode(errors="replace"))
        return [row.strip() for row in text.splitlines() if row.strip()]
    return []


def tell(root: Path, kind: str, kept: Kept) -> None:
    """Write down how it is. A disk that is full, or a folder that is gone, ends nothing."""
    told = Told(
        watchdog_pid=os.getpid(),
        phase=_word(root, kept.phase),
        child_pid=kept.pid or None,
        restart_count=kept.restart.number if kept.restart else 0,
        last_restart_reason=codes.restart_reason(kept.restart),
        updated_at=moment(datetime.now(UTC)),
    )
    with suppress(OSError):
        _write(root, file_of(kind, _TOLD), told)
    if kept.phase in (Phase.OVER, Phase.STOPPED, Phase.EXHAUSTED):
        with suppress(OSError), open_parent(root, file_of(kind, _DESCRIBED)) as (folder, name):
            unlink_regular(folder, name)


def _word(root: Path, phase: Phase) -> str:
    if phase is not Phase.OVER:
        return phase.value
    standing = project.standing_of(root)
    return "completed" if standing and standing.status in {Status(end) for end in FINISHED} else "stopped"


def _write(root: Path, path: str, value: msgspec.Struct) -> None:
    """Through no link: an agent may have put one there."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    with (
        open_parent(root, path, make=True) as (folder, name),
        replacing(name, f".{name}.{os.getpid()}", _NEW, _MODE, folder=folder) as fd,
    ):
        write_all(fd, data)


class WatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `daemon status` and `service status` say. Whether it runs is asked of its lock; the rest is for people."""

    kind: str
    running: bool
    pid: int | None
    phase: str | None
    restart_count: int
    last_restart_reason: str | None
    heartbeat_age_seconds: float | None
    cycle: int | None
    last_error: str | None
    log_path: str
    project_dir: str
    installed: bool | None = None  # of a service: its unit
    unit_path: str | None = None


def status(root: Path, kind: str) -> WatchStatus:
    watch = watches.of(loops.registry_of(), root)
    is_mine = watch is not None and watch.kind == kind
    told = _read(root, file_of(kind, _TOLD), Told) or Told(watchdog_pid=0, updated_at="")
    beat = _read(root, file_of(kind, HEARTBEAT), Beat)
    phase = told.phase
    if not is_mine and phase in (Phase.RUNNING.value, Phase.RESTARTING.value):
        phase = "died"  # it could not write down its end
    age = (datetime.now(UTC) - beat.updated_at).total_seconds() if beat and is_mine else None
    return WatchStatus(
        kind=kind,
        running=is_mine,
        pid=watch.pid if watch and is_mine else None,
        phase=phase,
        restart_count=told.restart_count,
        last_restart_reason=told.last_restart_reason,
        heartbeat_age_seconds=None if age is None else round(age, 1),
        cycle=beat.cycle if beat else None,
        last_error=beat.last_error if beat else None,
        log_path=str(root / file_of(kind, _LOG)),
        project_dir=str(root),
        installed=units.is_installed(unit_name(NAME, root)) if kind == SERVICE else None,
        unit_path=str(units.manager("").place(unit_name(NAME, root))) if kind == SERVICE else None,
    )


def _read(root: Path, path: str, shape: type[T]) -> T | None:
    try:
        return _decoded(read_inside(root, path, _LONGEST) or b"", shape)
    except UserError:
        return None


def _decoded(data: bytes, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


# -- its end -----------------------------------------------------------------------------------------------------------


def stop(root: Path, say: Callable[[str], None]) -> bool:
    """End the daemon and the run that it keeps; was there one? A person asked, so no service goes on with it."""
    refuse_inside_a_round()
    registry = loops.registry_of()
    watch = watches.of(registry, root)
    if watch is None:
        return False
    if watch.kind != DAEMON:
        raise running.kept_by(watch)
    with suppress(UserError):  # it does not answer: its watchdog ends it
        stop_run(root, say)
    until, asked = time.monotonic() + _PATIENCE, False
    while (now := watches.of(registry, root)) and now.pid in (0, watch.pid):
        if time.monotonic() > until:
            cause = f"process {watch.pid} is still there after {_PATIENCE:.0f} s"
            raise UserError("the daemon does not end", cause=cause, hint=f"end it by hand: kill -9 {watch.pid}")
        if not asked and now.pid:
            asked = True
            with suppress(ProcessLookupError):
                os.kill(watch.pid, signal.SIGTERM)
        time.sleep(0.05)
    stop_run(root, say)  # one that did not answer has been ended: that a person wanted it, and what it left
    return True


def stop_run(root: Path, say: Callable[[str], None]) -> None:
    """Ask the run of a project to stop, or write down that a person has stopped it; nothing if that is so."""
    standing = project.standing_of(root)
    is_over = standing is None or standing.finished or standing.trouble is not None or not standing.state.runs
    if standing is None or is_over or not (standing.alive or keeping.is_lost(standing)):
        return
    say("asking the run to stop")
    steer.stop(standing, now=True)
