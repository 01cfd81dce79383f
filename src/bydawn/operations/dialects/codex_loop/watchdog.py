"""The watchdog of a project, as a daemon or as a service: who may start one, how it is, and the files that tell."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.values import FINISHED, MOST_RESTARTS, STALE, Status
from bydawn.core.watching import BACK_OFF
from bydawn.dialects import follower
from bydawn.dialects.codex_loop import codes
from bydawn.dialects.codex_loop.config import FOLDER, NAME
from bydawn.dialects.codex_loop.history import moment
from bydawn.host import units
from bydawn.host.watchdog import Kept, Phase
from bydawn.operations import keeping, steer
from bydawn.operations.beating import Beat
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import project, running
from bydawn.operations.keeping import unit_name
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.settings import secrets
from bydawn.store import watches
from bydawn.store.lock import Lock, Owned
from bydawn.store.watches import Watch
from bydawn.system.paths import open_parent, unlink_regular
from bydawn.system.reading import read_inside
from bydawn.system.writing import replacing, write_all

DAEMON, SERVICE = "daemon", "service"
T = TypeVar("T")
_MODE = 0o644  # before the umask
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
_PATIENCE = 45.0  # seconds for a watchdog to end
_LONGEST = 1 << 16  # bytes of a file that tells about one


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a project is kept running."""

    retry_blocked: bool = False
    cycle_sleep_seconds: float = 60.0
    max_cycles: int | None = None

    @property
    def words(self) -> list[str]:
        """As they are typed."""
        most = [] if self.max_cycles is None else ["--max-cycles", str(self.max_cycles)]
        retry = ["--retry-blocked"] if self.retry_blocked else []
        return [*retry, "--cycle-sleep-seconds", f"{self.cycle_sleep_seconds:g}", *most]


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
    phase: str  # running, restarting, completed, stopped, exhausted
    child_pid: int | None = None
    restart_count: int = 0
    last_restart_reason: str | None = None
    updated_at: str


class Files(msgspec.Struct, frozen=True):
    """The files of one kind, from the project on."""

    kind: str

    @property
    def described(self) -> str:
        return f"{FOLDER}/{self.kind}.json"

    @property
    def heartbeat(self) -> str:
        return f"{FOLDER}/{self.kind}-heartbeat.json"

    @property
    def told(self) -> str:
        return f"{FOLDER}/{self.kind}-watchdog.json"

    @property
    def log(self) -> str:
        return f"{FOLDER}/{self.kind}.log"

    @property
    def all(self) -> tuple[str, ...]:
        return self.described, self.heartbeat, self.told, self.log


# -- who may start one -------------------------------------------------------------------------------------------------


def watch_of(root: Path) -> Watch | None:
    """The process that keeps this project running now."""
    return watches.of(loops.registry_of(), root)


def refuse_two(root: Path, kind: str) -> None:
    """One watchdog per project: a daemon or a service, and no run beside it."""
    refuse_inside_a_round()
    refuse_watched(root)
    if kind == DAEMON and units.is_installed(unit_name(NAME, root)):
        raise UserError(
            "this project has a service",
            cause="daemon and service would both keep it running",
            hint=f"remove the service first: `{NAME} service uninstall`",
            exit_code=8,
        )
    running.refuse_beside_another(root)


def refuse_watched(root: Path) -> None:
    if watch := watch_of(root):
        raise _occupied(watch)


def refuse_two_services(root: Path) -> None:
    """A service that is there is replaced; a daemon, or a run in a terminal, has to end first."""
    watch = watch_of(root)
    if watch is None:
        running.refuse_beside_another(root)
    elif watch.kind == DAEMON:
        raise _occupied(watch)


def rests(root: Path) -> str:
    """Why a service does not begin: a person ended the loop, and has not installed the service since then."""
    standing, unit = project.standing_of(root), units.manager("").place(unit_name(NAME, root))
    stopped = standing.state.stopped if standing else None
    if stopped is None or not stopped.by_person:
        return ""
    is_older = unit.exists() and stopped.decided.at.timestamp() < unit.stat().st_mtime
    return "" if is_older else stopped.reason


def open_log(root: Path, kind: str) -> int:
    """Through no link; it is made if it is gone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open_parent(root, Files(kind).log, make=True) as (folder, name):
        return os.open(name, flags, _MODE, dir_fd=folder)


def log_after(root: Path, kind: str, begin: int) -> str:
    """What the log says from there on, without secrets."""
    with suppress(OSError), (root / Files(kind).log).open("rb") as file:
        file.seek(begin)
        return secrets().hide(file.read(_LONGEST).decode(errors="replace"))
    return ""


def refuse_foreign_files(root: Path, kind: str) -> None:
    """What another program keeps under these names is not overwritten."""
    files = Files(kind)
    follower.refuse_unwritable(root, files.all)
    for path, shape in ((files.heartbeat, Beat), (files.told, Told)):
        data = read_inside(root, path, _LONGEST) if os.path.lexists(root / path) else None
        if data is not None and _decoded(data, shape) is None:
            cause = "it does not look like a file of this tool, so another program may use it"
            raise UserError(f"{path} is someone else's", cause=cause, hint="look at it, then remove or rename it")


def begin(root: Path, kind: str, options: Options) -> Lock:
    """Become the watchdog of a project, in this process; raises `UserError` if there is one."""
    try:
        held = watches.take(loops.registry_of(), root, kind)
    except Owned:
        raise _occupied(watch_of(root) or Watch(kind="watchdog", pid=0)) from None
    files, place = Files(kind), str(root)
    described = Described(
        pid=os.getpid(),
        started_at=moment(datetime.now(UTC)),
        project_dir=place,
        log_path=f"{place}/{files.log}",
        heartbeat_path=f"{place}/{files.heartbeat}",
        watchdog_state_path=f"{place}/{files.told}",
        command=(NAME, "run", "--project-dir", place, "--continuous", *options.words),
        options=options,
    )
    _write(root, files.described, described)
    return held


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
        _write(root, Files(kind).told, told)
    if kept.phase in (Phase.OVER, Phase.STOPPED, Phase.EXHAUSTED):
        with suppress(OSError), open_parent(root, Files(kind).described) as (folder, name):
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


def _occupied(watch: Watch) -> UserError:
    end = f"`{NAME} daemon stop` ends it" if watch.kind == DAEMON else f"`{NAME} service uninstall` removes it"
    return UserError(
        f"a {watch.kind} already keeps this project running",
        cause=f"process {watch.pid}",
        hint=f"`{NAME} status --summary` says how it stands; {end}",
        exit_code=8,
    )


# -- how it is ---------------------------------------------------------------------------------------------------------


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
    files, watch = Files(kind), watch_of(root)
    is_mine = watch is not None and watch.kind == kind
    told, beat = _read(root, files.told, Told), _read(root, files.heartbeat, Beat)
    phase = told.phase if told else None
    if not is_mine and phase in (Phase.RUNNING.value, Phase.RESTARTING.value):
        phase = "died"  # it could not write down its end
    age = (datetime.now(UTC) - beat.updated_at).total_seconds() if beat and is_mine else None
    return WatchStatus(
        kind=kind,
        running=is_mine,
        pid=watch.pid if watch and is_mine else None,
        phase=phase,
        restart_count=told.restart_count if told else 0,
        last_restart_reason=told.last_restart_reason if told else None,
        heartbeat_age_seconds=None if age is None else round(age, 1),
        cycle=beat.cycle if beat else None,
        last_error=beat.last_error if beat else None,
        log_path=str(root / files.log),
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
    watch = watch_of(root)
    if watch is None:
        return False
    if watch.kind != DAEMON:
        raise _occupied(watch)
    with suppress(UserError):  # it does not answer: its watchdog ends it
        stop_run(root, say)
    until, asked = time.monotonic() + _PATIENCE, False
    while (now := watch_of(root)) and now.pid in (0, watch.pid):
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
