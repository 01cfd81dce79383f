"""Connects the engine to the real world; nothing else does."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from bydawn import __version__, agents, dialects
from bydawn.core import answers
from bydawn.core.agent import Agent
from bydawn.core.errors import UserError
from bydawn.core.facts import BOXED, COMMIT, LedgerRepaired, LoopStopped, RunStarted
from bydawn.core.globs import ALWAYS_PROTECTED
from bydawn.core.loop import COOKIE, BoxMode, CommandCheck, CommitMode, Loop, Sandbox, Sessions
from bydawn.core.notices import Order, Sent, place_of
from bydawn.core.ports import NONE, Clock, Commits, Follower
from bydawn.core.redact import Secrets, for_children
from bydawn.core.secret_settings import variables
from bydawn.core.state import LoopState
from bydawn.core.values import End, Restart, Snapshot
from bydawn.core.worklist import WorkList
from bydawn.engine.effects import Effects
from bydawn.engine.run import Engine
from bydawn.process import box
from bydawn.process.box import Box, Within
from bydawn.process.channel import LoopChannel, Signals
from bydawn.process.checks import ShellChecks
from bydawn.process.child import ChildProcesses, is_nearly_full
from bydawn.process.clock import SystemClock
from bydawn.process.guardian import Tether
from bydawn.process.matching import search
from bydawn.process.shell import Shell, ShellHooks
from bydawn.settings.table import TABLE
from bydawn.store.cooldowns import SharedCoolDowns
from bydawn.store.folder import LoopFolder
from bydawn.store.followers import Link, StateFile
from bydawn.store.foreign_files import ForeignFiles
from bydawn.store.inbox import Inbox
from bydawn.store.ledger import LoopLedger, records
from bydawn.store.lock import Lock, trace_of
from bydawn.store.rounds import Rounds
from bydawn.system import kernel, programs
from bydawn.system.reading import FileTexts
from bydawn.system.user_folders import settings_file
from bydawn.system.writing import make_private, replace_private
from bydawn.worktree.workspace import GitWorkspace

if TYPE_CHECKING:
    from bydawn.dialects.seam import Dialect
    from bydawn.store.drop import Drop


class Cycles(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that follow each other by themselves, in one process; the pause before each is a wait of that run."""

    again: Callable[[LoopStopped, int], bool]  # go on after this end of this cycle?
    sleep: float = 60.0  # seconds between two
    most: int | None = None
    least: float = 10.0  # seconds after one without a round: nothing can have changed, and each is written down

    def first(self, started: RunStarted, state: LoopState) -> RunStarted:
        """After its process has died, a cycle goes on, and so does the pause before it: none is given again."""
        if not (started.restart and state.cycle):
            return replace(started, cycle=1)
        since, rest = state.run_since, 0.0
        if since and not state.rounds_this_run and not state.open_round:
            rest = max(0.0, state.rest - (datetime.now(UTC) - since).total_seconds())
        return replace(started, cycle=state.cycle, rest=rest)

    def following(self, started: RunStarted, stopped: LoopStopped, state: LoopState) -> RunStarted | None:
        """What a person stopped or paused goes on only if a person says so."""
        by_a_person = stopped.end in (End.PAUSED, End.STOPPED)
        if by_a_person or started.cycle == self.most or not self.again(stopped, started.cycle):
            return None
        rest = max(self.sleep, 0.0 if state.rounds_this_run else self.least)
        return replace(started, cycle=started.cycle + 1, rest=rest, leftover=False, restart=None)


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of a loop gets from its caller."""

    tether: Tether
    followers: Sequence[Follower] = ()
    say: Callable[[str], None] = lambda _: None
    grown: Callable[[str], None] = lambda _: None  # gets each line for a live file of a dialect
    rounds_allowed: int | None = None  # in this run; 0: only its checks run
    seconds_allowed: float | None = None
    go_on: str = ""  # the command that the guardian offers if the worker is killed
    clock: Clock | None = None
    heartbeat: float | None = None  # seconds between two signs of life to followers, while something runs
    beats: Sequence[Callable[[], None]] = ()  # called again and again by a thread of its own, whatever is waited for
    moved: Callable[[], None] = lambda: None  # called whenever the worker looks for requests
    restart: Restart | None = None  # its process had died before
    cycles: Cycles | None = None
    keeps_aside: bool = False  # tasks that were set aside stay so


def box_for(loop: Loop, folder: LoopFolder) -> Box | str:
    """The box for a loop's checks, or why there is none (empty: none is wanted). Raises `UserError`."""
    if loop.box is BoxMode.OFF or not any(isinstance(check, CommandCheck) for check in loop.checks):
        return ""
    make_private(folder.state_folder.path)
    found = box.find(Path(loop.folder), [folder.state_folder.path, settings_file().parent], loop.box_write)
    if isinstance(found, str) and loop.box is BoxMode.ON:
        hint = "install it: sudo apt-get install bubblewrap" if found == box.MISSING else "use --box auto"
        raise UserError("checks cannot run in a box here (--box on)", cause=found, hint=hint)
    return found


def _still(found: Box | str, loop: Loop, state: LoopState) -> Box | str:
    """A box that is new to a loop could make its checks fail, and no baseline would show why."""
    is_new = loop.box is BoxMode.AUTO and state.round and state.box != BOXED
    return "its first round ran without one" if found and is_new else found


def run_loop(
    loop: Loop,
    ledger: LoopLedger,
    lock: Lock,
    secrets: Secrets,
    worker: Worker,
    found: Box | str,
    *,
    leftover: bool = False,
) -> LoopStopped:
    """Run a loop until it stops; we hold its lock. `leftover`: its worktree has uncommitted work from before."""
    folder, work = ledger.folder, Path(loop.folder)
    found = _still(found, loop, ledger.state)
    run = _begin(loop, ledger, lock)
    watch = kernel.Watch()
    channel, drop = _channel(loop, folder, run, worker, watch), _drop(loop, worker, watch)
    env = inherited()
    processes = ChildProcesses(channel.fds, env, on_start=partial(_child_begun, loop, lock, watch))
    files, kept = Rounds(folder, secrets), work_tree(loop, folder, ledger.state)
    site = _Site(loop=loop, ledger=ledger, secrets=secrets, kept=kept, files=files, processes=processes)
    pool, dialect = agents.pool(loop), dialects.of_loop(loop)
    if ledger.torn:
        ledger.append(LedgerRepaired(cut_bytes=ledger.torn[0], kept_in=ledger.torn[1]))
    with agents.temporary_folder(pool) as agent_env:
        effects = Effects(
            loop=loop,
            ledger=ledger,
            files=files,
            hide=secrets.hide,
            reveal=secrets.reveal,
            followers=_followers(loop, ledger, worker, secrets),
            heartbeat=worker.heartbeat,
            agents=pool,
            agent_env=agent_env,
            agent_path=lambda name: programs.path_outside(work) if agents.is_cli(name) else "",
            cool_downs=SharedCoolDowns(folder.state_folder.cool_downs, loop, env | variables(loop.agent_env)),
            schema_file=_schema_file(loop, folder),
            workspace=kept,
            list=site.work_list(),
            obstacles=partial(_obstacle, loop, folder.path, lock),
            commits=site.commits(),
            drop=drop,
            processes=processes,
            checks=site.checks(dialect, found),
            hooks=site.hooks("hook", agents.KEYS),
            hook_words=dialect.hook_words if dialect else None,
            send=partial(_send, loop, worker, channel, env) if loop.notify else None,
            messages=dialect.messages if dialect else None,
            channel=channel,
            clock=worker.clock or SystemClock(ledger.state.elapsed + files.unrecorded(loop, ledger.state)),
            search=search,
            chance=lambda: os.urandom(1)[0] / 255,
        )
        started, cycles = _started(run, loop, pool, worker, found, leftover), worker.cycles
        if cycles is None:
            return Engine(effects, started).run()
        following: RunStarted | None = cycles.first(started, ledger.state)
        while following:
            stopped = Engine(effects, started := following).run()
            effects.list = site.work_list()  # each run begins with what a person made of it
            following = None if effects.was_hurried else cycles.following(started, stopped, ledger.state)
        return stopped


def _begin(loop: Loop, ledger: LoopLedger, lock: Lock) -> str:
    """What the last run left is ended, and from here on the lock, the folder and all orphans are this run's: its id."""
    run = os.urandom(6).hex()
    if ledger.state.runs and (left := trace_of(ledger.folder, loop.uid)):
        kernel.sweep(left)  # by the last run's signature, which stays until this is done: we may be killed here, too
    lock.sign(run)
    os.chdir(loop.folder)  # we keep it open, and every child inherits it
    kernel.become_subreaper()
    kernel.sign_as_worker()
    return run


def _channel(loop: Loop, folder: LoopFolder, run: str, worker: Worker, watch: kernel.Watch) -> LoopChannel:
    """Signals, and requests of other commands."""
    inbox = Inbox(folder.inbox, run)
    watch.add(str(inbox.folder))
    return LoopChannel(Signals(run, loop.on_interrupt), inbox, worker.tether, run, watch, worker.moved)


def _drop(loop: Loop, worker: Worker, watch: kernel.Watch) -> "Drop | None":
    """Where its agents leave what they record, if they may."""
    if loop.recording is None:
        return None
    from bydawn.store.drop import Drop  # few loops have one

    drop = Drop(Path(loop.workspace), loop.recording.drop, worker.say)
    drop.prepare()
    watch.add(str(drop.folder))
    return drop


def _child_begun(loop: Loop, lock: Lock, watch: kernel.Watch, pid: int) -> None:
    lock.note_child(pid)
    if loop.tasks:  # again for each: the folder may be another one by now
        place = Path(loop.list_root, loop.tasks).resolve()
        watch.add(str(place if loop.task_folder else place.parent), kernel.WRITTEN)


class _Site(msgspec.Struct, frozen=True, kw_only=True):
    """One loop where it works, and how commands are run there."""

    loop: Loop
    ledger: LoopLedger
    secrets: Secrets
    kept: GitWorkspace
    files: Rounds
    processes: ChildProcesses

    def shell(self, kind: str, timeout: float, withheld: frozenset[str], more: Mapping[str, str] = NONE) -> Shell:
        """What runs one kind of command, without the variables that are withheld from it."""
        return Shell(
            processes=self.processes,
            files=self.files,
            env={**more, COOKIE: f"{self.loop.uid}.{kind}"},
            without=(withheld & os.environ.keys()) - {*self.loop.pass_env},
            timeout=timeout,
            reveal=self.secrets.reveal,
        )

    def hooks(self, kind: str, withheld: frozenset[str]) -> ShellHooks:
        return ShellHooks(self.shell(kind, self.loop.timeouts.hook, withheld), Path(self.loop.folder))

    def checks(self, dialect: "Dialect | None", found: Box | str) -> ShellChecks:
        withheld = agents.KEYS | self.secrets.withheld(os.environ)
        more, folder = dialect.check_env(self.loop) if dialect else NONE, self.ledger.folder
        return ShellChecks(
            self.shell("check", self.loop.timeouts.check, withheld, more),
            Path(self.loop.folder),
            where=self.loop.check_where,
            checkout=self.kept.checkout,
            within=lambda: Within.of(self.kept.ignored_folders(), folder.builds),
            box=found if isinstance(found, Box) else None,
            temporary=folder.temporary,
            distrusts_caches=bool(self.loop.protect),
            splits_output=bool(dialect and dialect.splits_output),
        )

    def commits(self) -> Commits | None:
        if self.loop.commit is CommitMode.OFF:
            return None
        from bydawn.system.git import is_kept
        from bydawn.worktree.commits import GitCommits

        obstructed = self.ledger.state.obstructed
        misleading = {name for name in os.environ if not is_kept(name)}
        withheld = agents.KEYS | self.secrets.withheld(os.environ) | misleading
        made = GitCommits(
            loop=self.loop,
            private=self.ledger.folder.git,
            told=obstructed is not None and obstructed.kind == COMMIT,
            folder=self.files.folder,
            changed=self.kept.changed,
            runner=self.hooks("commit", withheld),  # git's own hooks run what the agent wrote
            sleep=self.processes.sleep,
            is_secret=self.secrets.are_in,
        )
        made.look()
        return made

    def work_list(self) -> WorkList:
        elsewhere = self.loop.list_root != self.loop.folder
        return WorkList(self.loop, FileTexts(Path(self.loop.workspace)) if elsewhere else self.kept, self.secrets.hide)


def _send(
    loop: Loop, worker: Worker, channel: LoopChannel, env: dict[str, str], order: Order, urgent: Callable[[], bool]
) -> Sequence[Sent]:
    from bydawn.process import notices

    def slow() -> None:
        worker.say(f"telling {', '.join(map(place_of, order.addresses))} …")

    return notices.send(order, env | {COOKIE: f"{loop.uid}.notice"}, wakes=channel.fds, urgent=urgent, slow=slow)


def _schema_file(loop: Loop, folder: LoopFolder) -> str:
    """The schema of a reply, if the loop wants one."""
    if answers.wanted(loop):
        with suppress(OSError):  # on a full disk, which ends the run
            replace_private(folder.schema, answers.SCHEMA.encode())
            return str(folder.schema)
    return ""


def work_tree(loop: Loop, folder: LoopFolder, state: LoopState) -> GitWorkspace:
    """The work tree of a loop, with what is kept of it; the caller holds the loop's lock."""
    documents = [path for path in (loop.tasks, loop.progress, loop.opinions) if path]
    protect = (*ALWAYS_PROTECTED, *loop.protect)
    seen = Snapshot(tree=state.tree, work=state.work)
    ours = ForeignFiles(loop, folder)
    return GitWorkspace(Path(loop.folder), folder.git, documents, protect=protect, ours=ours, seen=seen)


def inherited() -> dict[str, str]:
    """The environment that every child gets; no one's secret settings are in it."""
    ours = [row.variable for row in TABLE if row.secret]
    return for_children(os.environ, [*ours, *(name for row in dialects.TABLE.values() for name in row.secrets)])


def _started(
    run: str, loop: Loop, pool: Mapping[str, Agent], worker: Worker, found: Box | str, leftover: bool
) -> RunStarted:
    each_run = loop.by_task.rounds_each_run if loop.by_task else None
    held = any(agent.abilities.sandboxes for agent in pool.values())
    return RunStarted(
        run=run,
        pid=os.getpid(),
        boot=kernel.boot_id(),
        version=__version__,
        rounds_allowed=each_run if worker.rounds_allowed is None else worker.rounds_allowed,
        seconds_allowed=worker.seconds_allowed,
        sandbox=loop.sandbox or (Sandbox.WORKSPACE if held else ""),
        box=BOXED if isinstance(found, Box) else found,
        commits=loop.commit is not CommitMode.OFF,
        commits_all=loop.worktree is not None,
        leftover=leftover,
        keeps_aside=worker.keeps_aside,
        restart=worker.restart,
        per_task=loop.sessions is Sessions.PER_TASK,
        idle_fails=loop.by_task is None,
    )


def _followers(loop: Loop, ledger: LoopLedger, worker: Worker, secrets: Secrets) -> Sequence[Follower]:
    folder = ledger.folder
    ours = (StateFile(ledger), Link(Path(loop.workspace), folder))
    if loop.dialect is None:  # most loops: then none of it is loaded
        return (*ours, *worker.followers)
    from bydawn.dialects.follower import followers_of

    views = followers_of(loop, folder.path, lambda: records(folder), worker.say, grown=worker.grown, secrets=secrets)
    return (*ours, *views, *worker.followers)


def _obstacle(loop: Loop, folder: Path, lock: Lock) -> tuple[str, str] | None:
    """What would make a round impossible or unsafe right now."""
    workspace = Path(loop.folder)
    try:
        same = os.path.samestat(workspace.stat(), Path.cwd().stat())
    except OSError:
        same = False
    if same and loop.worktree and not Path(loop.workspace).is_dir():
        same, workspace = False, Path(loop.workspace)
    if not same:
        return "workspace", f"the folder {workspace} was removed or replaced"
    if loop.sandbox != Sandbox.READ_ONLY and not os.access(workspace, os.W_OK | os.X_OK):
        return "workspace", f"the folder {workspace} cannot be written: it is read-only, or not yours to change"
    if not lock.intact():
        return "lock", f"the lock {lock.path} was deleted, so this loop could be started twice"
    if is_nearly_full(str(folder)):
        return "disk", "the disk is nearly full"
    return None
