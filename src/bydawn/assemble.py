"""The only place where real effects meet the engine."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from bydawn import __version__, agents, dialects
from bydawn.core.facts import AnyFact, LedgerRepaired, LoopStopped, Now, RoundStarted, RunStarted
from bydawn.core.loop import Loop, Sandbox
from bydawn.core.ports import Agent, Clock, Event, Follower
from bydawn.core.promise import TooSlow
from bydawn.core.redact import Secrets, for_children
from bydawn.core.requests import Pause, Request
from bydawn.core.state import LoopState
from bydawn.core.text import shorten
from bydawn.engine.effects import World
from bydawn.engine.protection import ALWAYS_PROTECTED
from bydawn.engine.run import Engine
from bydawn.process.checks import ShellChecks
from bydawn.process.child import Processes, free_bytes
from bydawn.process.guardian import Tether
from bydawn.process.hooks import ShellHooks
from bydawn.process.shell import Shell
from bydawn.process.signals import Signals
from bydawn.settings.table import TABLE
from bydawn.store.cooldowns import SharedCoolDowns
from bydawn.store.inbox import Inbox
from bydawn.store.ledger import LoopLedger, records
from bydawn.store.lock import Lock, is_held
from bydawn.store.rounds import Rounds
from bydawn.system import kernel
from bydawn.system.writing import real_folder
from bydawn.worktree.workspace import GitWorkspace

_LEAST_FREE = 1 << 20


def run_loop(
    loop: Loop,
    ledger: LoopLedger,
    lock: Lock,
    tether: Tether,
    *,
    secrets: Secrets,
    state_folder: Path,
    clock: Clock | None = None,
    followers: Sequence[Follower] = (),
    rounds_allowed: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LoopStopped:
    """Run a loop whose lock we hold until it stops."""
    folder, workspace = ledger.folder, Path(loop.workspace)
    run = os.urandom(6).hex()
    lock.sign(run)
    os.chdir(workspace)  # held open by us, inherited by every child
    kernel.become_subreaper()
    kernel.sign_as_worker()
    watch = kernel.Watch()
    channel = LoopChannel(Signals(run, loop.on_interrupt), Inbox(folder / "inbox", run), tether, run, watch)
    processes = Processes(channel.fds, for_children(os.environ, [row.variable for row in TABLE if row.secret]))
    files = Rounds(folder, secrets)
    documents = [path for path in (loop.tasks, loop.progress, loop.opinions) if path]
    kept = GitWorkspace(workspace, folder / "git", documents, ours=OurFiles(loop, folder))

    def shell(kind: str, timeout: float) -> Shell:
        cookie = {"BYDAWN_COOKIE": f"{loop.uid}.{kind}"}
        return Shell(processes=processes, files=files, env=cookie, timeout=timeout, reveal=secrets.reveal)

    pool = agents.pool(loop)
    if ledger.torn:
        ledger.append(LedgerRepaired(cut_bytes=ledger.torn[0], kept_in=ledger.torn[1]))
    with _temporary(pool) as agent_env:
        world = World(
            ledger=ledger,
            agents=pool,
            cool_downs=SharedCoolDowns(state_folder / "cool-downs", loop, os.environ),
            agent_env=agent_env,
            workspace=kept,
            checks=ShellChecks(
                shell("check", loop.timeouts.check), workspace, where=loop.check_where, checkout=kept.checkout
            ),
            hooks=ShellHooks(shell("hook", loop.timeouts.hook), workspace),
            processes=processes,
            files=files,
            channel=channel,
            clock=clock or SystemClock(ledger.state.elapsed + files.unrecorded(loop, ledger.state)),
            full_match=full_match,
            hide=secrets.hide,
            reveal=secrets.reveal,
            chance=lambda: os.urandom(1)[0] / 255,
            obstacles=lambda: _obstacle(workspace, folder, lock),
            followers=(StateFile(ledger), Link(workspace, loop.id, folder), *views_of(loop, folder, say), *followers),
        )
        return Engine(loop, world, _started(run, loop, pool, rounds_allowed)).run()


@contextmanager
def _temporary(pool: Mapping[str, Agent]) -> Iterator[dict[str, str]]:
    """A folder for agents that leave things lying about; a short name, as there will be sockets below it."""
    if not any(agent.abilities.litters for agent in pool.values()):
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="by-")
    try:
        yield {"TMPDIR": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(run: str, loop: Loop, pool: Mapping[str, Agent], rounds_allowed: int | None) -> RunStarted:
    held = any(agent.abilities.sandboxes for agent in pool.values())
    return RunStarted(
        run=run,
        pid=os.getpid(),
        boot=kernel.boot_id(),
        version=__version__,
        tree="",
        rounds_allowed=rounds_allowed,
        sandbox=loop.sandbox or (Sandbox.WORKSPACE if held else ""),
    )


def views_of(loop: Loop, folder: Path, say: Callable[[str], None]) -> Sequence[Follower]:
    """Who writes the files of the tool in whose words a loop was asked for, if it was another's."""
    if loop.dialect is None or loop.dialect.name not in dialects.TABLE:
        return ()
    from bydawn.dialects.follower import Views  # here, as most loops have none

    dialect = dialects.find(loop.dialect.name)
    return (Views(dialect, folder, Path(loop.workspace), lambda: records(folder), say),)


def _obstacle(workspace: Path, folder: Path, lock: Lock) -> tuple[str, str] | None:
    """What would make a round impossible or unsafe right now."""
    try:
        same = os.path.samestat(workspace.stat(), Path.cwd().stat())
    except OSError:
        same = False
    if not same:
        return "workspace", f"the folder {workspace} is gone or was replaced"
    if not lock.intact():
        return "lock", f"the lock {lock.path} was deleted; another worker could start beside this one"
    if free_bytes(str(folder)) < _LEAST_FREE:
        return "disk", "the disk is nearly full"
    return None


class SystemClock:
    """Wall time for people, monotonic time for durations: a clock that jumps changes no limit."""

    def __init__(self, elapsed: float) -> None:
        self._base = elapsed - time.monotonic()
        self._gap = _suspended()

    def now(self) -> Now:
        return Now(datetime.now(UTC), round(self._base + time.monotonic(), 3))

    def slept(self) -> float:
        """Seconds of suspension since the last call: the boot clock went on, the monotonic one did not."""
        before, self._gap = self._gap, _suspended()
        return self._gap - before


def _suspended() -> float:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class LoopChannel:
    """Signals, the inbox and the tether to the guardian, as one stream of requests."""

    def __init__(self, signals: Signals, inbox: Inbox, tether: Tether, run: str, watch: kernel.Watch) -> None:
        self._signals = signals
        self._inbox = inbox
        self._tether = tether
        self._run = run
        self._watch = watch
        self._alone = False
        watch.add(str(inbox.folder))

    @property
    def fds(self) -> list[int]:
        return [fd for fd in (self._signals.fd, self._watch.fd, self._tether.fd) if fd >= 0]

    def take(self) -> list[Request]:
        self._watch.drain()
        requests = [*self._signals.take(), *self._inbox.take()]
        if not self._alone and self._tether.cut():
            self._alone = True  # asked for once; a descriptor at its end stays readable
            requests.append(Pause(id="", run=self._run, by="a signal", now=True, signal="the death of its guardian"))
        return requests

    def done(self, request: Request) -> None:
        self._inbox.done(request)


class OurFiles:
    """What this loop writes in its workspace for people, and what others write that are at work there meanwhile.

    It is nobody's work. What a loop named that has ended before is a person's again, and what this one protects is
    never another's.
    """

    def __init__(self, loop: Loop, folder: Path) -> None:
        self._own = loop.dialect.files if loop.dialect else ()
        self._protect = (*ALWAYS_PROTECTED, *loop.protect)
        self._folder = folder
        self._began = (folder / "lock").stat().st_mtime_ns  # signed by this very run
        self._seen = 0
        self._others: dict[Path, tuple[str, ...]] = {}
        self._met: set[Path] = set()

    def __call__(self) -> tuple[str, ...]:
        self._look_around()
        for folder, files in self._others.items():
            if files and folder not in self._met and self._is_at_work(folder):
                self._met.add(folder)  # for good: what it left when it ended is no work of ours either
        others = (path for folder, files in self._others.items() if folder in self._met for path in files)
        return tuple(dict.fromkeys((*self._own, *others)))

    def _look_around(self) -> None:
        """Read the settings of the loops that are new here."""
        stamp = self._folder.parent.stat().st_mtime_ns
        if stamp == self._seen:
            return
        unborn = False
        for folder in sorted(self._folder.parent.iterdir()):
            if folder != self._folder and folder not in self._others:
                files = self._files(folder)
                unborn = unborn or files is None
                if files is not None:
                    self._others[folder] = files
        self._seen = 0 if unborn else stamp  # one is being born: look again

    def _files(self, folder: Path) -> tuple[str, ...] | None:
        try:
            loop = msgspec.json.decode((folder / "loop.json").read_bytes(), type=Loop)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            return ()
        files = loop.dialect.files if loop.dialect else ()
        return tuple(path for path in files if not is_protected(path, self._protect))

    def _is_at_work(self, folder: Path) -> bool:
        """Now, or since we began: nothing is written for people that its ledger does not say first."""
        try:
            wrote = (folder / "ledger.jsonl").stat().st_mtime_ns
        except OSError:
            return False
        return wrote >= self._began or is_held(folder / "lock")


def is_protected(path: str, globs: Sequence[str]) -> bool:
    """Might one of these globs mean this file, or a folder that it is in? A `*` in the path is a number.

    In doubt yes, and without asking git, which has the last word on what a glob means.
    """
    name = path.replace("*", "1")
    plain = ("/".join(_steps(glob)) for glob in globs)
    return any(_reaches(_steps(glob), _steps(name)) for glob in globs) or any(
        f"{name}/".startswith(f"{each}/") for each in plain
    )


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _reaches(glob: list[str], path: list[str]) -> bool:
    if not glob:
        return True  # all that is below is meant as well
    if glob[0] == "**":
        return any(_reaches(glob[1:], path[skipped:]) for skipped in range(len(path) + 1))
    # What git understands and fnmatch does not stands for anything.
    wanted = "*" if "\\" in glob[0] or "[[:" in glob[0] else glob[0].replace("[^", "[!")
    return bool(path) and fnmatchcase(path[0], wanted) and _reaches(glob[1:], path[1:])


class StateFile:
    """Keeps `state.json`, the snapshot, up to date."""

    def __init__(self, ledger: LoopLedger) -> None:
        self._ledger = ledger

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        self._ledger.snapshot()

    def heard(self, event: Event) -> None:
        """Nothing that streams by is part of the state."""


class Link:
    """Keeps `.bydawn/loops/<id>` in the workspace, for people to look at; the truth is out of the agent's reach."""

    def __init__(self, workspace: Path, name: str, folder: Path) -> None:
        self._workspace = workspace
        self._name = name
        self._folder = str(folder)

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        if isinstance(fact, RunStarted | RoundStarted):
            with suppress(OSError):  # a read-only workspace has no link; nothing depends on it
                self._restore()

    def heard(self, event: Event) -> None:
        """A link has nothing to hear."""

    def _restore(self) -> None:
        with real_folder(str(self._workspace), ".bydawn") as ours, suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            fd = os.open(".gitignore", flags, 0o644, dir_fd=ours)
            os.write(fd, b"*\n")
            os.close(fd)
        with real_folder(str(self._workspace), ".bydawn", "loops") as loops:
            self._link(loops)

    def _link(self, loops: int) -> None:
        try:
            if os.readlink(self._name, dir_fd=loops) == self._folder:
                return
            os.unlink(self._name, dir_fd=loops)
        except FileNotFoundError:
            pass
        os.symlink(self._folder, self._name, dir_fd=loops)


# The limit is one of computing, or a pattern would be slow wherever the machine is busy.
_MATCHER = (
    "import re, signal, sys; signal.setitimer(signal.ITIMER_PROF, {seconds}); "
    "sys.exit(not re.fullmatch(sys.argv[1], sys.argv[2]))"
)


def full_match(pattern: str, text: str, seconds: float = 2) -> bool:
    """A person's pattern may need for ever (29 characters took 28 s), so it runs in a child with a limit.

    Raises `TooSlow`: to say no would leave the loop waiting for a promise that may have been given.
    """
    import subprocess

    child = [sys.executable, "-I", "-S", "-c", _MATCHER.format(seconds=seconds), pattern, text]
    try:
        code = subprocess.run(child, timeout=30 * seconds, stdin=subprocess.DEVNULL, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        code = -signal.SIGPROF
    if code == -signal.SIGPROF:
        raise TooSlow(
            f"the pattern {shorten(pattern, 100)} took more than {seconds:g} seconds on a line of the reply, so nobody "
            "can say whether that was the promise; begin a new loop with a simpler one"
        )
    return code == 0
