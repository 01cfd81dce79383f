"""Connects the engine to the real world; nothing else does."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn import __version__, agents, dialects
from bydawn.core import answers
from bydawn.core.agent import Agent
from bydawn.core.errors import UserError
from bydawn.core.facts import BOXED, COMMIT, LedgerRepaired, LoopStopped, RunStarted
from bydawn.core.globs import ALWAYS_PROTECTED
from bydawn.core.loop import COOKIE, BoxMode, CommandCheck, CommitMode, Loop, Sandbox, Sessions
from bydawn.core.notices import Order, Sent, place_of
from bydawn.core.ports import NONE, Clock, Commits, Follower, Snapshot
from bydawn.core.redact import Secrets, for_children
from bydawn.core.secret_settings import variables
from bydawn.core.state import LoopState
from bydawn.core.values import End, Restart
from bydawn.engine.effects import World
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


class Cycles(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that follow each other by themselves, in one process; the pause before each is a wait of that run."""

    again: Callable[[LoopStopped, int], bool]  # go on after this end of this cycle?
    sleep: float = 60.0  # seconds between two
    most: int | None = None
    least: float = 10.0  # seconds after one without a round: nothing can have changed, and each is written down

    def next_after(self, stopped: LoopStopped, cycle: int) -> bool:
        """What a person stopped or paused goes on only if a person says so."""
        by_a_person = stopped.end in (End.PAUSED, End.STOPPED)
        return not by_a_person and cycle != self.most and self.again(stopped, cycle)


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
    first_cycle: int = 1
    rest: float = 0.0  # seconds of the pause before it that are left
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
    folder, workspace, work = ledger.folder, Path(loop.workspace), Path(loop.folder)
    found = _still(found, loop, ledger.state)
    run = os.urandom(6).hex()
    if ledger.state.runs and (left := trace_of(folder, loop.uid)):
        kernel.sweep(left)  # by the last run's signature, which stays until this is done: we may be killed here, too
    lock.sign(run)
    os.chdir(work)  # we keep it open, and every child inherits it
    kernel.become_subreaper()
    kernel.sign_as_worker()
    watch = kernel.Watch()
    inbox = Inbox(folder.inbox, run)
    watch.add(str(inbox.folder))
    drop = None
    if loop.recording:
        from bydawn.store.drop import Drop  # few loops have one

        drop = Drop(workspace, loop.recording.drop, worker.say)
        drop.prepare()
        watch.add(str(drop.folder))
    signals = Signals(run, loop.on_interrupt)
    channel = LoopChannel(signals, inbox, worker.tether, run, watch, worker.moved)
    env = inherited()

    def begun(pid: int) -> None:
        lock.note_child(pid)
        if loop.tasks:  # again for each: the folder may be another one by now
            place = Path(loop.list_root, loop.tasks).resolve()
            watch.add(str(place if loop.task_folder else place.parent), kernel.WRITTEN)

    processes = ChildProcesses(channel.fds, env, on_start=begun)
    files = Rounds(folder, secrets)
    kept = work_tree(loop, folder, ledger.state)

    def shell(kind: str, timeout: float, withheld: frozenset[str], more: Mapping[str, str] = NONE) -> Shell:
        return Shell(
            processes=processes,
            files=files,
            env={**more, COOKIE: f"{loop.uid}.{kind}"},
            without=(withheld & os.environ.keys()) - {*loop.pass_env},
            timeout=timeout,
            reveal=secrets.reveal,
        )

    def commits() -> Commits | None:
        if loop.commit is CommitMode.OFF:
            return None
        from bydawn.system.git import is_kept
        from bydawn.worktree.commits import GitCommits

        misleading = {name for name in os.environ if not is_kept(name)}
        withheld = agents.KEYS | secrets.withheld(os.environ) | misleading  # its hooks run what the agent wrote
        made = GitCommits(
            loop=loop,
            private=folder.git,
            told=ledger.state.obstructed is not None and ledger.state.obstructed.kind == COMMIT,
            folder=files.folder,
            changed=kept.changed,
            runner=ShellHooks(shell("commit", loop.timeouts.hook, withheld), work),
            sleep=processes.sleep,
            is_secret=secrets.are_in,
        )
        made.look()
        return made

    def send(order: Order, urgent: Callable[[], bool]) -> Sequence[Sent]:
        from bydawn.process import notices

        def slow() -> None:
            worker.say(f"telling {', '.join(map(place_of, order.addresses))} …")

        return notices.send(order, env | {COOKIE: f"{loop.uid}.notice"}, wakes=channel.fds, urgent=urgent, slow=slow)

    pool, dialect, schema_file = agents.pool(loop), dialects.of_loop(loop), ""
    if answers.wanted(loop):
        with suppress(OSError):  # on a full disk, which ends the run
            replace_private(folder.schema, answers.SCHEMA.encode())
            schema_file = str(folder.schema)
    if ledger.torn:
        ledger.append(LedgerRepaired(cut_bytes=ledger.torn[0], kept_in=ledger.torn[1]))
    with agents.temporary_folder(pool) as agent_env:
        world = World(
            ledger=ledger,
            agents=pool,
            cool_downs=SharedCoolDowns(folder.state_folder.cool_downs, loop, env | variables(loop.agent_env)),
            agent_env=agent_env,
            agent_path=lambda name: programs.path_outside(work) if agents.is_cli(name) else "",
            workspace=kept,
            lists=FileTexts(workspace) if loop.list_root != loop.folder else None,
            checks=ShellChecks(
                shell(
                    "check",
                    loop.timeouts.check,
                    agents.KEYS | secrets.withheld(os.environ),
                    dialect.check_env(loop) if dialect else NONE,
                ),
                work,
                where=loop.check_where,
                checkout=kept.checkout,
                within=lambda: Within.of(kept.ignored_folders(), folder.builds),
                box=found if isinstance(found, Box) else None,
                temporary=folder.temporary,
                distrusts_caches=bool(loop.protect),
                splits_output=bool(dialect and dialect.splits_output),
            ),
            hooks=ShellHooks(shell("hook", loop.timeouts.hook, agents.KEYS), work),
            commits=commits(),
            send=send if loop.notify else None,
            messages=dialect.messages if dialect else None,
            hook_words=dialect.hook_words if dialect else None,
            processes=processes,
            files=files,
            channel=channel,
            clock=worker.clock or SystemClock(ledger.state.elapsed + files.unrecorded(loop, ledger.state)),
            search=search,
            schema_file=schema_file,
            drop=drop,
            hide=secrets.hide,
            reveal=secrets.reveal,
            chance=lambda: os.urandom(1)[0] / 255,
            obstacles=lambda: _obstacle(loop, folder.path, lock),
            heartbeat=worker.heartbeat,
            followers=(
                StateFile(ledger),
                Link(workspace, folder),
                *_views(loop, folder, worker, secrets),
                *worker.followers,
            ),
        )
        started = _started(run, loop, pool, worker, found, leftover)
        while True:
            engine = Engine(loop, world, started)
            stopped = engine.run()
            if worker.cycles is None or engine.hurried or not worker.cycles.next_after(stopped, started.cycle):
                return stopped
            least = 0.0 if ledger.state.rounds_this_run else worker.cycles.least
            rest = max(worker.cycles.sleep, least)
            more = {"cycle": started.cycle + 1, "rest": rest, "leftover": False, "restart": None}
            started = msgspec.structs.replace(started, **more)


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
        tree="",  # the engine looks
        rounds_allowed=each_run if worker.rounds_allowed is None else worker.rounds_allowed,
        seconds_allowed=worker.seconds_allowed,
        sandbox=loop.sandbox or (Sandbox.WORKSPACE if held else ""),
        box=BOXED if isinstance(found, Box) else found,
        commits=loop.commit is not CommitMode.OFF,
        commits_all=loop.worktree is not None,
        leftover=leftover,
        cycle=worker.first_cycle if worker.cycles else 0,
        rest=worker.rest,
        keeps_aside=worker.keeps_aside,
        restart=worker.restart,
        per_task=loop.sessions is Sessions.PER_TASK,
        idle_fails=loop.by_task is None,
    )


def _views(loop: Loop, folder: LoopFolder, worker: Worker, secrets: Secrets) -> Sequence[Follower]:
    if loop.dialect is None:  # most loops: then none of it is loaded
        return ()
    from bydawn.dialects.follower import followers_of

    return followers_of(loop, folder.path, lambda: records(folder), worker.say, grown=worker.grown, secrets=secrets)


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
