"""The facts a ledger records. A fact is frozen, says one thing, and is never changed or removed."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.loop import Ticks
from bydawn.core.outcome import Outcome
from bydawn.core.proof import Proved, Reason
from bydawn.core.records import PREPARED, Iteration
from bydawn.core.rules import Rule
from bydawn.core.text import headline
from bydawn.core.values import (
    Commands,
    Decided,
    End,
    Findings,
    Line,
    Moment,
    Promised,
    Restart,
    TaskClaim,
    TaskReading,
    TaskStatus,
    Usage,
    Verdict,
)

_AGES = 1e10  # seconds; a moment even later than that could not be written down


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something that happened."""


class LoopCreated(Fact, frozen=True, kw_only=True, tag="loop.created"):
    loop: str
    uid: str
    settings: str  # the digest of loop.json: settings cannot change unnoticed


class RoundsBefore(Fact, frozen=True, kw_only=True, tag="rounds.before"):
    """Other loops ran here before: this one counts on, and knows what the last round of theirs printed."""

    rounds: int
    output: str = ""  # the readable end of it
    notes: "tuple[NoteAdded, ...]" = ()  # which no prompt has had yet


BOX, BOXED = "box", "on"  # the obstacle that a box is to a check; checks run in one
COMMIT = "commit"  # the obstacle that a commit is which cannot be made


class RunStarted(Fact, frozen=True, kw_only=True, tag="run.started"):
    """A process started to work on the loop."""

    run: str
    pid: int
    boot: str
    version: str
    found: Findings = Findings(tree="")  # what was still changed, or was put back, since the last run
    rounds_allowed: int | None = None  # in this run (`--once`); 0: only its checks run
    seconds_allowed: float | None = None  # in this run
    ticks: Ticks = Ticks.DOUBT  # the loop's setting: no round confirms boxes that count anyway
    elapsed: float = 0.0
    mended: str = ""  # what a crash had done to the task list, which was put back
    sandbox: str = ""  # what the agent may do to this machine, if it is restricted
    box: str = ""  # "on", or why checks run without one; empty if none is wanted
    commits: bool = False  # what its rounds change is committed
    recording: bool = False  # others may record what they do for it
    cycle: int = 0  # its number if bydawn goes on by itself again and again; 0: it does not
    rest: float = 0.0  # seconds to wait before anything else
    restart: Restart | None = None  # its process had died, and bydawn started it again by itself
    keeps_aside: bool = False  # tasks that were set aside stay so
    per_task: bool = False  # each task has its own conversation
    idle_fails: bool = True  # a round without progress has failed its task
    commits_all: bool = False  # in a work tree of the loop's own, whatever a round's end
    leftover: bool = False  # there is work in it that is older than the loop and in no commit
    yours: dict[str, str] = {}  # tests that a person changed while it rested, by path, each with its new form

    @property
    def only_checks(self) -> bool:
        return self.rounds_allowed == 0


class LedgerRepaired(Fact, frozen=True, kw_only=True, tag="ledger.repaired"):
    """A torn last line was cut off when the ledger was opened, or damage was set aside by `doctor --repair`."""

    cut_bytes: int
    kept_in: str
    last_round: int = 0  # no number is ever reused, even if its record is gone


class TasksRead(Fact, frozen=True, kw_only=True, tag="tasks.read"):
    """The task file changed between two rounds: a person edited it, and perhaps more."""

    tasks: TaskReading
    tree: str
    work: str = ""


class LinesAdded(Fact, frozen=True, kw_only=True, tag="tasks.added"):
    """Lines came into the task list: a person asked for them, or they were seen there while a round ran."""

    lines: tuple[Line, ...]
    by: str = ""  # empty: seen
    request: str = ""


class TaskSettled(Fact, frozen=True, kw_only=True, tag="task.settled"):
    """A task is done by every measure, was set aside, or a person decided about it."""

    task: str
    text: str
    status: TaskStatus
    by: str
    reason: str = ""
    request: str = ""
    doubted: bool = False  # done only because the agent said so repeatedly; nothing was ever changed for it


class CheckpointApproved(Fact, frozen=True, kw_only=True, tag="checkpoint.approved"):
    """A person has looked; this mark does not stop the loop again."""

    mark: str
    text: str
    by: str


class TamperingAccepted(Fact, frozen=True, kw_only=True, tag="tampering.accepted"):
    """A person has looked at protected files, or at a task list, and accepts them as they are."""

    paths: tuple[str, ...]
    by: str


class HookEnded(Fact, frozen=True, kw_only=True, tag="hook.ended"):
    """A command of a hook, one of the person's own, has run."""

    hook: str
    round: int
    passed: bool
    detail: str
    elapsed: float
    seconds: float = 0.0
    output: str | None = None  # the file in the round's folder, …
    excerpt: str = ""  # … and its end, if the command failed
    command: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    more: bool = False  # other commands of this hook come after it
    tree: str = ""  # the tree after `post_round`: a proof of an earlier tree does not hold for it
    work: str = ""


class NoticeEnded(Fact, frozen=True, kw_only=True, tag="notice.ended"):
    """A notice was sent, or could not be."""

    to: str  # as much of the address as anyone may see
    event: str
    sent: bool
    detail: str
    tries: int = 0


class RoundStarted(Fact, frozen=True, kw_only=True, tag="round.started"):
    """The intent to run the agent, on disk before the agent starts."""

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
    task_text: str = ""  # the digest of the task file in its prompt
    fallback: str = ""  # why it is in a new session although its task has one, which could not be continued
    audit: bool = False  # the agent was only asked whether the goal is met


class SessionBegun(Fact, frozen=True, kw_only=True, tag="session.begun"):
    """The agent has named the conversation this round began."""

    round: int
    session: str


class RoundEnded(Fact, frozen=True, kw_only=True, tag="round.ended"):
    round: int
    outcome: Outcome
    detail: str
    found: Findings
    elapsed: float
    words: str = ""  # the agent's own, where the detail is ours
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    said: str = ""  # the beginning of the reply, for people; the whole is in the round's folder
    promise: Promised = Promised.ABSENT
    session: str | None = None
    claim: TaskClaim | None = None
    blocked: str = ""  # the agent's own words, if it says only a person can help
    open: tuple[str, ...] = ()  # what it, or an earlier reply about the same work, says is still to be done, …
    already: tuple[str, ...] = ()  # … tasks that it says were done before, …
    reasons: tuple[Reason, ...] = ()  # … and why it changed tests
    unseen: bool = False  # the work tree could not be looked at when this was recorded
    usage: Usage | None = None  # of this round
    session_usage: Usage | None = None  # of the whole session, if the agent adds up over turns
    denied: tuple[str, ...] = ()  # what the agent was not allowed to do
    commands: Commands = Commands()  # that the agent ran
    leftovers: tuple[str, ...] = ()
    wait_until: Moment | None = None  # a limited agent's reset


class CommitEnded(Fact, frozen=True, kw_only=True, tag="commit.ended"):
    """What rounds changed was committed, or why it was not."""

    round: int
    elapsed: float = 0.0
    commit: str = ""  # its id; empty if there is none
    files: int = 0
    failure: str = ""  # why there is none; then the changes go into the next commit
    needs_person: bool = False  # … once a person has looked
    output: str | None = None  # the file in the round's folder with what git and its hooks said about that, …
    excerpt: str = ""  # … and its end
    left_out: tuple[str, ...] = ()  # files that had changed before the rounds changed them, …
    secrets: tuple[str, ...] = ()  # … and files with a secret in them; each is named once
    remark: str = ""
    tampered: tuple[str, ...] = ()  # protected files that a git hook changed
    restored: bool = False
    tree: str = ""  # the tree afterwards, if a git hook changed files: a proof of the earlier one does not hold for it
    work: str = ""

    @property
    def told(self) -> str:
        """Why there is no commit, with the most telling line."""
        line = headline(self.excerpt)
        return f"{self.failure}: {line}" if line and line not in self.failure else self.failure


class AgentLimited(Fact, frozen=True, kw_only=True, tag="agent.limited"):
    """Another loop ran into a limit of this agent's account, so this one need not try."""

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
    tampered: tuple[str, ...] = ()  # protected files changed while they ran
    restored: bool = False
    work: str = ""  # of the tree, if the checks changed it and then passed on the result
    final: bool = False  # once more on the whole, because every task is done
    excuses: bool = True  # rounds are not blamed for what failed before the first one
    proved: Proved | None = None  # what else was found out, if they passed
    tools: dict[str, str] = {}  # what runs them and is in no tree, with digests, before the first round

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


class ChecksCut(Fact, frozen=True, kw_only=True, tag="checks.cut"):
    """Checks were cut short by a request, so there are no verdicts; what they ran changed protected files."""

    round: int
    tampered: tuple[str, ...]
    restored: bool = False


class WaitStarted(Fact, frozen=True, kw_only=True, tag="wait.started"):
    """The loop sleeps until a reset or a back-off is over; this costs no round."""

    seconds: float
    reason: str
    decided: Decided
    until: Moment | None = None  # the reset that the provider named
    agent: str = ""  # the one it waits for, if it waits for one

    @property
    def ends(self) -> datetime:
        """When it is over; a limit of the loop's own may end it before the reset."""
        planned = self.decided.at + timedelta(seconds=min(self.seconds, _AGES))
        return min(self.until, planned) if self.until else planned


class MachineSlept(Fact, frozen=True, kw_only=True, tag="machine.slept"):
    seconds: float


ITSELF = "the loop itself"  # the author of a note left by a round or a hook


class NoteAdded(Fact, frozen=True, kw_only=True, tag="note.added"):
    """A person's note for the next prompt."""

    note: str
    text: str
    by: str
    request: str = ""


class _Recorded(Fact, frozen=True, kw_only=True):
    """An agent, or a person's own session, says something about its work: a claim."""

    record: str  # its id: a record that is found twice is taken once
    at: Moment  # when it was written down
    by: str = ""
    inside: bool = False  # by a process of a round, or by one that could not write to the ledger
    round: int = 0  # the open round, or the last one


class EventRecorded(_Recorded, frozen=True, kw_only=True, tag="event.recorded"):
    kind: str
    message: str
    data: dict[str, str] = {}


class IterationRecorded(_Recorded, frozen=True, kw_only=True, tag="iteration.recorded"):
    claim: Iteration
    batched: str = ""  # why it cannot have been done alone


class LoopChanged(Fact, frozen=True, kw_only=True, tag="loop.changed"):
    """A person changed the settings of a loop that does not run."""

    settings: str  # the digest of loop.json from here on
    by: str


class PauseRequested(Fact, frozen=True, kw_only=True, tag="pause.requested"):
    by: str
    now: bool = False
    signal: str | None = None
    request: str = ""


class StopRequested(Fact, frozen=True, kw_only=True, tag="stop.requested"):
    by: str
    now: bool = True
    request: str = ""


class RestartsUsedUp(Fact, frozen=True, kw_only=True, tag="restarts.used_up"):
    """The process of a loop died once more, and bydawn does not start it again by itself."""

    restart: Restart  # the one that would have come next


class LoopDismissed(Fact, frozen=True, kw_only=True, tag="loop.dismissed"):
    """A person no longer wants to see it in the list; a new run brings it back."""

    by: str


class LimitsRaised(Fact, frozen=True, kw_only=True, tag="limits.raised"):
    limits: Limits
    by: str


class Obstructed(Fact, frozen=True, kw_only=True, tag="loop.obstructed"):
    """Something outside the agent's turn stops the loop: a full disk, a missing workspace."""

    kind: str
    detail: str
    hook: str = ""  # the hook that failed
    unseen: bool = False  # the work tree could not be looked at afterwards


class LoopStopped(Fact, frozen=True, kw_only=True, tag="loop.stopped"):
    end: End
    reason: str
    decided: Decided
    evidence: tuple[str, ...] = ()
    by: str | None = None
    unseen: bool = False  # the process had died, and what was running then is unknown

    @property
    def is_refusal(self) -> bool:
        """Did it end before anything was done, because what was asked for is impossible?"""
        return self.evidence == (BOX,)

    @property
    def is_preparation(self) -> bool:
        """Has it not begun, or does a person's own session work on it?"""
        return self.end is End.PAUSED and self.reason.startswith(PREPARED)

    @property
    def by_machine(self) -> bool:
        """Was it paused by a shutdown, or because its terminal was closed? Ctrl-C is a person."""
        return self.end is End.PAUSED and self.by in ("SIGTERM", "SIGHUP", "the death of its guardian")

    @property
    def by_person(self) -> bool:
        """Did a person pause or stop it? Then only a person goes on with it."""
        is_asked = self.end in (End.PAUSED, End.STOPPED) and not self.is_preparation
        return is_asked and not self.by_machine and not self.is_refusal

    @property
    def can_be_accepted(self) -> bool:
        """Could a person want it as it is now? Accepting a list that cannot be read would not help."""
        asks = self.decided.rule in (Rule.TAMPERED, Rule.CHANGED_TESTS)
        return asks or " lost " in self.reason or "before a checkpoint" in self.reason


AnyFact = (
    LoopCreated
    | RoundsBefore
    | RunStarted
    | LedgerRepaired
    | TasksRead
    | LinesAdded
    | TaskSettled
    | CheckpointApproved
    | TamperingAccepted
    | HookEnded
    | NoticeEnded
    | RoundStarted
    | SessionBegun
    | RoundEnded
    | CommitEnded
    | AgentLimited
    | ChecksEnded
    | ChecksCut
    | WaitStarted
    | MachineSlept
    | NoteAdded
    | EventRecorded
    | IterationRecorded
    | LoopChanged
    | PauseRequested
    | StopRequested
    | RestartsUsedUp
    | LoopDismissed
    | LimitsRaised
    | Obstructed
    | LoopStopped
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and its place in the ledger."""

    seq: int
    at: datetime
    fact: AnyFact


def with_tasks(fact: AnyFact, now: Callable[[TaskReading], TaskReading]) -> AnyFact:
    """The fact with what it says about the work list put in another form, if it says anything."""
    match fact:
        case TasksRead():
            return replace(fact, tasks=now(fact.tasks))
        case RunStarted() | RoundEnded() if tasks := fact.found.tasks:
            return replace(fact, found=replace(fact.found, tasks=now(tasks)))
        case _:
            return fact
