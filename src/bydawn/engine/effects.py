"""The engine's effects: each does one thing and records the result."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

import msgspec

from bydawn.core import taking
from bydawn.core.agent import Agent, Beat, Complaint, Event
from bydawn.core.errors import UserError
from bydawn.core.facts import (
    AnyFact,
    LinesAdded,
    MachineSlept,
    Obstructed,
    RoundStarted,
    RunStarted,
    TasksRead,
    with_tasks,
)
from bydawn.core.hooks import HookWords
from bydawn.core.layout import DAMAGED
from bydawn.core.loop import Loop
from bydawn.core.notices import Messages, Order, Sent
from bydawn.core.ports import (
    Channel,
    Checks,
    Clock,
    Commits,
    CoolDowns,
    Drop,
    Follower,
    HookRunner,
    Ledger,
    Processes,
    RoundFiles,
    Workspace,
)
from bydawn.core.promise import Search
from bydawn.core.requests import AskNote, Request, as_fact
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import Snapshot, recorded
from bydawn.core.worklist import WorkList, is_believed, is_damaged

_SLEPT = 5.0  # seconds of suspension worth recording
_BATCHES = 64  # of records at one time; an agent could leave them without end


class Effects(msgspec.Struct, kw_only=True, eq=False):
    """All that one run of one loop uses of the world, and can do there.

    If something fails outside, a fact records it; no run ends silently.
    """

    loop: Loop
    ledger: Ledger
    files: RoundFiles
    hide: Callable[[str], str]  # masks the secrets in a text
    reveal: Callable[[str], str]  # fills in the references in a setting
    followers: Sequence[Follower] = ()
    heartbeat: float | None = None  # seconds between two signs of life to followers, while something runs
    # Who works.
    agents: Mapping[str, Agent]  # the loop's pool, by name
    agent_env: dict[str, str] = {}
    agent_path: Callable[[str], str] = lambda _: ""  # where an agent's program is found, if not on the PATH
    cool_downs: CoolDowns
    schema_file: str = ""  # the schema of a reply, if the loop wants one
    # On what.
    workspace: Workspace
    list: WorkList
    obstacles: Callable[[], tuple[str, str] | None]
    commits: Commits | None = None  # if they are wanted
    drop: Drop | None = None  # where others leave what they record, if they may
    # What runs beside it, and who is told.
    processes: Processes
    checks: Checks
    hooks: HookRunner
    hook_words: HookWords | None = None  # if its dialect has names of its own for what hooks are told
    send: Callable[[Order, Callable[[], bool]], Sequence[Sent]] | None = None  # a notice, if there is an address
    messages: Messages | None = None  # if its dialect has some of its own
    channel: Channel
    clock: Clock
    search: Search
    chance: Callable[[], float]  # from 0 to 1
    was_hurried: bool = False  # did someone want it to end at once when its end had been decided already?
    beat_at: float = 0.0  # the last sign of life, or what has begun since
    kept: Hashable = None  # the stamp of the list that is

    @property
    def state(self) -> LoopState:
        return self.ledger.state

    def record(self, fact: AnyFact) -> None:
        fact = with_tasks(fact, partial(recorded, before=self.state.tasks))
        if isinstance(fact, RunStarted | RoundStarted):
            self.beat_at = self.clock.now().elapsed
        fact = self.ledger.append(fact).fact  # as written: without secrets
        for follower in self.followers:
            follower.saw(fact, self.loop, self.state)
        if self.ledger.disk_full and not (self.state.obstructed or self.state.stopped):
            self.record(Obstructed(kind="disk", detail="the disk is full"))

    def tell(self, event: Event) -> None:
        for follower in self.followers:
            follower.heard(event)

    def complained(self, line: bytes) -> bool:
        """The agent wrote a line to stderr, which is never its last word."""
        self.tell(Complaint(plain(line)))
        return False

    def hear(self) -> None:
        """Take requests, record them, and only then delete them; between them, what others recorded."""
        for _ in range(_BATCHES):
            for request in self.channel.take():
                self.take(request)
            if self.state.stop_now or not self.take_records():
                break
        if (slept := self.clock.slept()) > _SLEPT:
            self.record(MachineSlept(seconds=round(slept, 1)))

    def take_records(self) -> bool:
        """Write down what others have left to be recorded, a few at a time, and only then delete it; was there any?"""
        if self.drop is None or self.ledger.disk_full:  # the last room is for our own facts
            return False
        found = self.drop.take(self.state.records.known)
        for fact in found:
            self.record(taking.taken(fact, self.loop, self.state, self.clock.now().at))
            if shorter := taking.shortening(fact, self.loop, self.state):
                self.record(shorter)
        if found:
            self.ledger.sync()
        for fact in found:
            self.drop.done(fact)
        return bool(found)

    def take_all_records(self) -> None:
        """Before a round is over, so that they belong to it; not more than may wait, or it would never be over."""
        for _ in range(_BATCHES):
            if not self.take_records():
                break

    def take(self, request: Request) -> None:
        self.record(as_fact(request))
        self.ledger.sync()
        self.channel.done(request)

    def urgent(self) -> bool:
        """Asked again and again while an agent, a check or a hook runs."""
        self.hear()
        now = self.clock.now().elapsed
        if self.heartbeat and now - self.beat_at >= self.heartbeat:
            self.beat_at = now
            self.tell(Beat())
        return self.state.stop_now

    def urgent_in_round(self) -> bool:
        """Also look at the task list, after the watch that woke us has been read."""
        is_urgent = self.urgent()
        self.look_at_list()
        return is_urgent

    def look_at_list(self) -> None:
        """What comes into it now, the agent may overwrite with an older copy."""
        if lines := self.list.appeared(self.clock.now().elapsed):
            self.record(LinesAdded(lines=lines))
        self.keep_list()

    def keep_list(self) -> None:
        """Remember a checklist as long as it can be believed: a crash may damage it."""
        if not self.loop.tasks or self.loop.task_folder or self.list.stamp == self.kept:
            return
        self.kept = self.list.stamp
        with suppress(UserError, OSError):
            data = self.workspace.read_bytes(self.loop.tasks) or b""
            text = "" if is_damaged(data) else data.decode("utf-8-sig")
            if text and is_believed(text, self.loop, self.state, self.state.tasks):
                self.files.keep_list(data)

    def mend_list(self) -> str:
        """Put a checklist back that a crash damaged, and keep what was found; in words, if that was done."""
        files, tasks, path = self.files, self.state.tasks, self.loop.tasks
        if not path or self.loop.task_folder or tasks is None or tasks.problem:
            return ""
        with suppress(UserError, OSError):  # what cannot be put back stays as it is, and blocks the loop
            now, last = self.workspace.read_bytes(path), files.last_list()
            if is_damaged(now) and last and self.workspace.put(path, last, now):
                files.write(self.state.round, DAMAGED, now or b"")
                files.mask(self.state.round, DAMAGED)
                return f"{path} was {'gone' if now is None else 'damaged'} and was put back"
        return ""

    def asked(self) -> bool:
        self.hear()
        return self.state.pause is not None or self.state.stop is not None

    def hurried(self, *, finished: bool) -> bool:
        """A request for a loop whose end is decided: only notes are accepted, and only if another prompt will follow.

        Anything else cuts the last hook short. A signal then has what it wants, and a request from another process
        is recorded by that process, which finds the lock free.
        """
        requests = self.channel.take()
        for request in requests:
            if isinstance(request, AskNote) and not finished:
                self.take(request)
        self.was_hurried |= any(not isinstance(request, AskNote) for request in requests)
        return self.was_hurried

    def is_past(self, moment: datetime | None) -> bool:
        return moment is not None and self.clock.now().at >= moment

    def snapshot(self, keep_as: str = "", *, unseen: bool = True) -> Snapshot:
        """A snapshot of the work tree; if that fails, the run records why.

        `unseen`: the agent's code may have run since the last one, so the next start has to look.
        """
        try:
            snapshot = self.workspace.snapshot()
            if keep_as and snapshot.tree != self.state.tree:
                self.workspace.keep(keep_as, snapshot.tree)
        except UserError as error:
            return self.blind(error, unseen=unseen)
        return snapshot

    def blind(self, error: UserError, *, unseen: bool = True) -> Snapshot:
        """The tree could not be looked at: record why. The next comparison is with the tree from before."""
        self.record(Obstructed(kind="workspace", detail=f"{error.what}: {error.cause}", unseen=unseen))
        return Snapshot(tree=self.state.tree, work=self.state.work)

    def is_obstructed(self) -> bool:
        """Record what makes a round impossible, if anything does."""
        if obstacle := self.obstacles():
            kind, detail = obstacle
            self.record(Obstructed(kind=kind, detail=detail))
        return obstacle is not None

    def tasks_changed(self, now: Snapshot) -> bool:
        """The work list was edited since it was last read, or a task was settled: record it and decide again."""
        reading = self.list.read(self.state, self.state.tasks)
        if reading is None or reading == self.state.tasks:
            return False
        self.record(TasksRead(tasks=reading, tree=now.tree, work=now.work))
        return True

    def write(self, round_: int, name: str, text: str) -> str | None:
        """Write a file of the round; if that fails, record that the loop cannot go on."""
        try:
            return self.files.write(round_, name, text)
        except OSError as error:
            self.record(Obstructed(kind="disk", detail=f"could not write {name}: {error.strerror}"))
            return None

    def mask(self, round_: int, *names: str) -> None:
        """Until now the output was the agent's own; no secret in it outlives the round."""
        try:
            self.files.mask(round_, *names)
        except OSError as error:
            detail = f"could not mask secrets in the files of round {round_}: {error.strerror}"
            self.record(Obstructed(kind="disk", detail=detail))
