"""What a ledger can say. A fact is frozen, says one thing, and is never changed or removed."""

from datetime import datetime

import msgspec

from bydawn.core.loop import Limits
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import (
    Changes,
    Decided,
    End,
    Given,
    Moment,
    TaskClaim,
    TaskReading,
    TaskStatus,
    Usage,
    Verdict,
)


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
