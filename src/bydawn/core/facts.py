"""What a ledger can say. A fact is frozen, says one thing, and is never changed or removed."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from bydawn.core.loop import Limits, Moment
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.text import headline


class End(StrEnum):
    """The ways a run of a loop can end."""

    COMPLETE = "complete"
    UNVERIFIED = "unverified"
    BLOCKED = "blocked"
    LIMIT = "limit"
    CHECKPOINT = "checkpoint"
    FAILED = "failed"
    PAUSED = "paused"
    STOPPED = "stopped"


class Status(StrEnum):
    """What a loop is called now: how it ended, or what goes on. Derived from ledger and lock, never stored."""

    COMPLETE = End.COMPLETE
    UNVERIFIED = End.UNVERIFIED
    BLOCKED = End.BLOCKED
    LIMIT = End.LIMIT
    CHECKPOINT = End.CHECKPOINT
    FAILED = End.FAILED
    PAUSED = End.PAUSED
    STOPPED = End.STOPPED
    RUNNING = "running"
    WAITING = "waiting"
    CRASHED = "crashed"  # the ledger says running, and nobody holds the lock
    DAMAGED = "damaged"  # the ledger or the settings cannot be read


EXIT_CODES: dict[End, int] = {
    End.COMPLETE: 0,
    End.UNVERIFIED: 0,
    End.BLOCKED: 3,
    End.LIMIT: 4,
    End.CHECKPOINT: 5,
    End.FAILED: 7,
    End.PAUSED: 130,
    End.STOPPED: 130,
}
FINISHED = {End.COMPLETE, End.UNVERIFIED}


class Given(StrEnum):
    """Was the promise given, only mentioned, or absent?"""

    GIVEN = "given"
    MENTIONED = "mentioned"
    ABSENT = "absent"


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a fact."""


class Now(msgspec.Struct, frozen=True):
    """One reading of the clocks: `at` is UTC, `elapsed` the loop's own working time, which no clock jump changes."""

    at: Moment
    elapsed: float


class Decided(Value, frozen=True, kw_only=True):
    """The rule that led to an act, and the clock reading it was given; a replay must agree."""

    rule: str
    at: Moment
    elapsed: float


class Mark(Value, frozen=True, kw_only=True):
    """A checkpoint in the task file that is reached: nothing above it is open."""

    id: str
    text: str


class TaskStatus(StrEnum):
    """How a task stands beyond what its file says."""

    DONE = "done"
    ASIDE = "aside"  # it failed too often; the rest goes on without it
    SKIPPED = "skipped"  # a person does not want it any more
    OPEN = "open"


class TaskReading(Value, frozen=True, kw_only=True):
    """What the task file, or the folder of them, said when it was read; `open_ids` names the open tasks.

    Tasks that a person skipped are not open; those that were set aside are, but none of them is `next`.
    """

    open: int
    done: int
    next: str | None = None
    open_ids: tuple[str, ...] = ()
    problem: str | None = None
    text: str = ""  # the digest of the file, to know it again without reading Markdown
    disbelieved: str = ""  # the digest of a file that has a problem
    next_id: str | None = None
    marks: tuple[str, ...] = ()  # every checkpoint, by id
    above: tuple[int, ...] = ()  # for each open task, how many of those stand above it
    reached: tuple[Mark, ...] = ()
    ahead: tuple[Mark, ...] = ()  # the other ones
    texts: tuple[str, ...] = ()  # for each open task of a folder, the digest of its file
    stranded: tuple[str, ...] = ()  # titles of open tasks that wait for one that was set aside


class Changes(Value, frozen=True, kw_only=True):
    """What git says a round did to the work tree."""

    added: int = 0
    modified: int = 0
    deleted: int = 0
    paths: tuple[str, ...] = ()  # the first few, for people

    @property
    def total(self) -> int:
        return self.added + self.modified + self.deleted


class Usage(Value, frozen=True, kw_only=True):
    """What a turn cost, as far as the agent says; None is unknown, never zero."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None

    @property
    def tokens(self) -> int | None:
        """In and out together."""
        known = [count for count in (self.tokens_in, self.tokens_out) if count is not None]
        return sum(known) if known else None

    @property
    def unpriced(self) -> bool:
        return bool(self.tokens) and self.cost_usd is None

    def plus(self, other: "Usage | None") -> "Usage":
        """Both together; what one of them does not know, the other says."""
        return self._with(other, lambda mine, theirs: mine + theirs)

    def minus(self, other: "Usage | None") -> "Usage":
        """What has come since; never less than nothing."""
        return self._with(other, lambda mine, theirs: max(0, mine - theirs))

    def _with(self, other: "Usage | None", both: Callable[[Any, Any], Any]) -> "Usage":
        if other is None:
            return self
        fields = {}
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            fields[name] = both(mine, theirs) if mine is not None and theirs is not None else mine
            if mine is None and theirs is not None:
                fields[name] = both(0, theirs)
        return Usage(**fields)


class Verdict(Value, frozen=True, kw_only=True):
    """What one check said."""

    check: str
    passed: bool
    detail: str
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    output: str | None = None  # the file in the round's folder that holds all it printed
    excerpt: str = ""  # the last useful part of it
    flaky: bool = False  # it failed and passed on the same tree: that proves nothing
    fingerprint: str = ""  # tells this failure from another, whatever times and addresses are in it

    @property
    def never_ran(self) -> bool:
        """Is there no such program, or none that may be run? A shell says so with these two."""
        return not self.passed and self.exit_code in (126, 127)

    @property
    def told(self) -> str:
        """How it ended, and the line of its output that says most; for people, as the line is only data."""
        said = headline(self.excerpt)
        return f"{self.detail}: {said}" if said and said != self.detail else self.detail


class TaskClaim(Value, frozen=True, kw_only=True):
    """How an agent says its task stands; only a claim."""

    status: str
    summary: str = ""


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something that happened."""


class LoopCreated(Fact, frozen=True, kw_only=True, tag="loop.created"):
    loop: str
    uid: str
    settings: str  # the digest of loop.json: the settings cannot change behind the ledger's back


class LoopAdopted(Fact, frozen=True, kw_only=True, tag="loop.adopted"):
    """Another program began this loop; what it left is taken over, and taken at its word."""

    source: str  # the file that says so
    rounds: int
    agent: str
    session: str | None = None


class RunStarted(Fact, frozen=True, kw_only=True, tag="run.started"):
    """A worker took the loop."""

    run: str
    pid: int
    boot: str
    version: str
    tree: str
    tasks: TaskReading | None = None
    rounds_allowed: int | None = None  # of this run (`--once`)
    elapsed: float = 0.0
    work: str = ""  # the tree without documents and task list, where that differs
    tampered: tuple[str, ...] = ()  # protected files that rounds changed, and that are still not as they were
    put_back: tuple[str, ...] = ()  # others, that were changed while nobody looked
    closed: tuple[str, ...] = ()  # tasks that are done since then, …
    doubted: tuple[str, ...] = ()  # … those of them that nothing else was changed for, …
    rewritten: tuple[str, ...] = ()  # … and open ones of a folder that have another text
    sandbox: str = ""  # what the agent may do to this machine, if it is held to anything


class LedgerRepaired(Fact, frozen=True, kw_only=True, tag="ledger.repaired"):
    """A torn last line was cut off when the ledger was opened, or damage was set aside by `doctor --repair`."""

    cut_bytes: int
    kept_in: str
    last_round: int = 0  # no number that was ever used is used again, even if its record is gone


class TasksRead(Fact, frozen=True, kw_only=True, tag="tasks.read"):
    """The task file said something new between two rounds: a person changed it, and perhaps more than it."""

    tasks: TaskReading
    tree: str
    work: str = ""


class TaskSettled(Fact, frozen=True, kw_only=True, tag="task.settled"):
    """A task is done by all that is asked for, was set aside, or a person had a word in it."""

    task: str
    text: str
    status: TaskStatus
    by: str
    reason: str = ""
    request: str = ""
    doubted: bool = False  # done, as the agent says so again and again; nothing was ever changed for it


class CheckpointApproved(Fact, frozen=True, kw_only=True, tag="checkpoint.approved"):
    """A person has looked; this very mark does not stop the loop again."""

    mark: str
    text: str
    by: str


class TamperingAccepted(Fact, frozen=True, kw_only=True, tag="tampering.accepted"):
    """A person has looked at protected files, or at a task list, as they are now, and wants them so."""

    paths: tuple[str, ...]
    by: str


class HookEnded(Fact, frozen=True, kw_only=True, tag="hook.ended"):
    """A command of the person's own has run beside the loop."""

    hook: str
    round: int
    passed: bool
    detail: str
    elapsed: float
    seconds: float = 0.0
    output: str | None = None  # the file in the round's folder
    tree: str = ""  # as `post_round` left it: a proof on the one before is none for this
    work: str = ""


class RoundStarted(Fact, frozen=True, kw_only=True, tag="round.started"):
    """The intent to run the agent, on disk before the agent exists."""

    round: int
    agent: str
    cookie: str
    tree: str
    argv: tuple[str, ...]
    decided: Decided
    task: str | None = None
    task_id: str | None = None
    session: str | None = None
    notes: tuple[str, ...] = ()
    work: str = ""


class SessionBegun(Fact, frozen=True, kw_only=True, tag="session.begun"):
    """The agent has named the conversation that this round began."""

    round: int
    session: str


class RoundEnded(Fact, frozen=True, kw_only=True, tag="round.ended"):
    round: int
    outcome: Outcome
    detail: str
    tree: str  # what git says, not what the agent says
    progress: bool
    elapsed: float
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    said: str = ""  # the beginning of the reply, for people; the whole is in the round's folder
    promise: Given = Given.ABSENT
    session: str | None = None
    changes: Changes = Changes()
    tasks: TaskReading | None = None
    closed: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # of these: nothing but the list was changed
    rewritten: tuple[str, ...] = ()  # open tasks of a folder, not its own, whose text it changed
    claim: TaskClaim | None = None
    blocked: str = ""  # the agent's own words, where it says that only a person can help
    tampered: tuple[str, ...] = ()  # protected files that it changed
    restored: bool = False  # and they are as they were before
    unseen: bool = False  # nobody looked at the work tree when this was written down
    work: str = ""
    usage: Usage | None = None  # of this round
    session_usage: Usage | None = None  # of the whole session, where the agent counts on from turn to turn
    denied: tuple[str, ...] = ()  # what the agent was not allowed to do
    leftovers: tuple[str, ...] = ()
    wait_until: Moment | None = None  # a limited agent's reset


class AgentLimited(Fact, frozen=True, kw_only=True, tag="agent.limited"):
    """Another loop ran into a limit of this agent's account, so that this one need not try."""

    agent: str
    until: Moment
    detail: str
    by: str  # that loop


class ChecksEnded(Fact, frozen=True, kw_only=True, tag="checks.ended"):
    round: int
    tree: str
    verdicts: tuple[Verdict, ...]
    elapsed: float
    seconds: float = 0.0
    tampered: tuple[str, ...] = ()  # protected files that were changed while they ran
    restored: bool = False
    work: str = ""  # of a tree that the checks themselves have left, and then passed on

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


class ChecksCut(Fact, frozen=True, kw_only=True, tag="checks.cut"):
    """Somebody wanted the end while they ran, so they have said nothing; what they ran has changed protected files."""

    round: int
    tampered: tuple[str, ...]
    restored: bool = False


class WaitStarted(Fact, frozen=True, kw_only=True, tag="wait.started"):
    """The loop sleeps until a reset or a back-off is over; costs no round."""

    seconds: float
    reason: str
    decided: Decided
    until: Moment | None = None


class MachineSlept(Fact, frozen=True, kw_only=True, tag="machine.slept"):
    seconds: float


ITSELF = "the loop itself"  # who speaks, where a round or a hook of it leaves a note


class NoteAdded(Fact, frozen=True, kw_only=True, tag="note.added"):
    """A person's word for the next prompt."""

    note: str
    text: str
    by: str
    request: str = ""


class PauseRequested(Fact, frozen=True, kw_only=True, tag="pause.requested"):
    by: str
    now: bool = False
    signal: str | None = None
    request: str = ""


class StopRequested(Fact, frozen=True, kw_only=True, tag="stop.requested"):
    by: str
    now: bool = True
    request: str = ""


class LimitsRaised(Fact, frozen=True, kw_only=True, tag="limits.raised"):
    limits: Limits
    by: str


class Obstructed(Fact, frozen=True, kw_only=True, tag="loop.obstructed"):
    """Something outside the agent's turn makes going on impossible: a full disk, a workspace that is gone."""

    kind: str
    detail: str
    hook: str = ""  # the one that failed
    unseen: bool = False  # so that nobody could look at what was done to the work tree


class LoopStopped(Fact, frozen=True, kw_only=True, tag="loop.stopped"):
    end: End
    reason: str
    decided: Decided
    evidence: tuple[str, ...] = ()
    by: str | None = None
    unseen: bool = False  # its worker was dead by then, and nobody knows what was running

    @property
    def can_be_accepted(self) -> bool:
        """Could a person want it as it is now? A list that nobody can work by is none the better for being accepted."""
        return self.decided.rule == Rule.TAMPERED or " lost " in self.reason or "before a checkpoint" in self.reason


AnyFact = (
    LoopCreated
    | LoopAdopted
    | RunStarted
    | LedgerRepaired
    | TasksRead
    | TaskSettled
    | CheckpointApproved
    | TamperingAccepted
    | HookEnded
    | RoundStarted
    | SessionBegun
    | RoundEnded
    | AgentLimited
    | ChecksEnded
    | ChecksCut
    | WaitStarted
    | MachineSlept
    | NoteAdded
    | PauseRequested
    | StopRequested
    | LimitsRaised
    | Obstructed
    | LoopStopped
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A fact with its place in the ledger."""

    seq: int
    at: datetime
    fact: AnyFact
