"""The state of a loop, folded from its ledger."""

import zlib
from datetime import datetime
from functools import cache
from typing import Any, get_args

import msgspec

from bydawn.core.breakers import Limits
from bydawn.core.facts import (
    LoopStopped,
    NoteAdded,
    Obstructed,
    PauseRequested,
    RoundEnded,
    RoundStarted,
    RunStarted,
    StopRequested,
    WaitStarted,
)
from bydawn.core.loop import Ticks
from bydawn.core.outcome import Outcome
from bydawn.core.proof import Proofs
from bydawn.core.records import Records
from bydawn.core.rules import Rule
from bydawn.core.values import (
    FINISHED,
    Failing,
    Line,
    Promised,
    Restart,
    Result,
    TaskReading,
    TaskStatus,
    Usage,
    Verdict,
)

TREE_DIGITS = 16  # enough of a tree id to recognize it
# Each fact copies them, and `status` reads them. A loop that goes in circles comes back after a few trees. One that
# needs more of them is like one that writes the time into a file: other limits end it.
KNOWN_TREES = 100


class OpenRound(msgspec.Struct, frozen=True, kw_only=True):
    """A round that has started and not ended."""

    round: int
    started_at: datetime
    started: RoundStarted
    session: str | None = None  # once it is known
    notes: tuple[NoteAdded, ...] = ()  # in its prompt

    @property
    def work(self) -> str:
        return self.started.work or self.started.tree


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's conversation that the next round may continue."""

    id: str
    agent: str
    rounds: int = 1
    task: str | None = None
    task_id: str | None = None
    usage: Usage | None = None  # of the whole session, if the agent adds up over turns
    knows: bool = False  # did a turn of it go well, so that it has seen goal and rules?
    task_text: str = ""  # the digest of the task file that such a turn was given last


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that its provider does not let work for a while."""

    agent: str
    detail: str
    until: datetime | None  # None: unknown
    elapsed: float  # when that was said, in the loop's working time
    times: int = 1  # in a row


class LastRound(msgspec.Struct, frozen=True, kw_only=True):
    """What the last round left for decisions and the next prompt."""

    ended: RoundEnded  # without what a person, or a decision about its task, has dealt with since
    agent: str = ""
    task: str | None = None
    task_id: str | None = None
    closed: tuple[str, ...] = ()  # tasks that no earlier round had closed
    blocked_again: bool = False  # in the words of the reply before
    fewer: bool = False  # are fewer tasks open than ever before?
    counts: bool = True  # against the round limit
    cut: bool = False  # interrupted, or its run ended before it was tried again
    resumed: bool = False  # did it go on in an earlier conversation?
    audit: bool = False  # was it only asked whether the goal is met?


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """The round whose output the next prompt may repeat, and the agent that printed it."""

    round: int
    agent: str


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of one task, added up."""

    task: str
    text: str = ""
    failures: int = 0  # in a row
    before: int = 0  # the same without the last round, whose checks may still turn it into a failure
    progress: bool = False  # did any of them make progress?
    claims: int = 0  # how often in a row the agent said it is done
    reopened: int = 0  # how often it was done, and open again because the checks of the whole failed
    question: str = ""  # why its agent says that only a person can help


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks, by id, whose state is in the ledger and not in their file."""

    done: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # done ones for which nothing was ever changed

    def having(self, task: str, status: TaskStatus, *, doubted: bool = False) -> "Settled":
        """Move one task to its new state."""

        def moved(known: tuple[str, ...], *, here: bool) -> tuple[str, ...]:
            others = tuple(each for each in known if each != task)
            return (*others, task) if here else others

        return Settled(
            done=moved(self.done, here=status is TaskStatus.DONE),
            aside=moved(self.aside, here=status is TaskStatus.ASIDE),
            skipped=moved(self.skipped, here=status is TaskStatus.SKIPPED),
            doubted=moved(self.doubted, here=doubted),
        )


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds whose changes are in no commit yet, and the trees before and after them."""

    first: int
    last: int
    before: str
    after: str


class FreeTurns(msgspec.Struct, frozen=True, kw_only=True):
    """Turns since the last one that counted: they cost no round, so each kind has a cap of its own."""

    cut_short: int = 0  # bydawn was killed, or the agent was interrupted; not by a person
    paid: int = 0  # the agent had trouble after it had used tokens
    since: float | None = None  # … without using any: when the first of these ended, in working time, …
    seconds: float = 0.0  # … and how much later the last one did
    told: tuple[str, ...] = ()  # what happened each time; the last ones


class Lifetime(msgspec.Struct, frozen=True, kw_only=True):
    """Figures over all runs, folded as it goes: a long history need not be read for them."""

    ends: dict[str, int] = {}  # by the state that a run ended in
    rules: dict[str, int] = {}  # by the rule, of the ends with work left
    unattended: int = 0  # of those: no person was needed to go on
    restarts: int = 0  # after its process had died
    resumes: int = 0  # runs that went on from an earlier one, …
    resumed: int = 0  # … in which a round came to its end, or the loop finished
    waits: bool = False  # for that, since the last resume

    def began(self, fact: RunStarted, *, is_first: bool) -> "Lifetime":
        if fact.cycle > 1 and fact.restart is None:
            return msgspec.structs.replace(self, unattended=self.unattended + 1)
        if is_first or fact.only_checks:
            return self
        return msgspec.structs.replace(
            self, resumes=self.resumes + 1, waits=True, restarts=self.restarts + (fact.restart is not None)
        )

    def worked(self, fact: RoundEnded) -> "Lifetime":
        return self._went_on() if fact.outcome is not Outcome.INTERRUPTED else self

    def ended(self, fact: LoopStopped) -> "Lifetime":
        if fact.is_preparation or fact.decided.rule == Rule.ONLY_CHECKS:
            return self
        then = msgspec.structs.replace(self, ends=_more(self.ends, fact.end.value), waits=False)
        if fact.end in FINISHED:
            return msgspec.structs.replace(then, resumed=self._went_on().resumed)
        rules = _more(self.rules, fact.decided.rule)
        return msgspec.structs.replace(then, rules=rules, unattended=self.unattended + fact.by_machine)

    def _went_on(self) -> "Lifetime":
        return msgspec.structs.replace(self, resumed=self.resumed + 1, waits=False) if self.waits else self

    @property
    def interruptions(self) -> int:
        """How often a run ended with work left, and a person had to do something."""
        return sum(self.rules.values()) - self.unattended


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decisions are based on; derived from the ledger and never stored as a second source."""

    seq: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    run: str = ""
    runs: int = 0
    run_since: datetime | None = None
    pid: int = 0  # of the process that runs it, or ran it last
    round: int = 0  # the number of the last attempt; never reused
    rounds: int = 0  # attempts that count against the limit
    cut_rounds: int = 0  # other attempts that are over
    printed: Printed | None = None  # the last attempt of either kind, …
    output: str = ""  # … and until there is one, what the last round of an earlier loop printed
    rounds_this_run: int = 0
    worked_this_run: bool = False  # has a round since the last recorded stop changed anything?
    rounds_allowed: int | None = None
    run_elapsed: float = 0.0  # when this run started, in working time
    seconds_allowed: float | None = None
    cycle: int = 0  # as in `RunStarted`
    rest: float = 0.0
    restart: Restart | None = None
    given_up: Restart | None = None  # as in `RestartsUsedUp`
    lifetime: Lifetime = Lifetime()
    ok_rounds: int = 0
    session: Session | None = None  # of the last round
    per_task: bool = False  # has each task a conversation of its own?
    idle_fails: bool = True  # as in `RunStarted`
    sessions: tuple[Session, ...] = ()  # these, the last ones
    session_lost: str = ""  # why a conversation could not be continued, until a round has counted
    resumes: bool = True  # False once a command failed because the file system is read-only to that conversation
    limited: tuple[Limited, ...] = ()  # at most one row per agent
    usage: Usage | None = None  # of all rounds, if the agents report it
    unpriced: bool = False  # was something used without a known price?
    open_round: OpenRound | None = None
    last: LastRound | None = None
    tree: str = ""
    work: str = ""  # the tree without documents and task list, to measure progress
    trees: tuple[str, ...] = ()  # such trees, the one seen last at the end, shortened; at most KNOWN_TREES
    tasks: TaskReading | None = None
    fewest: int | None = None  # the fewest tasks open since a person last added some; inventing boxes gains nothing
    added: tuple[Line, ...] = ()  # lines that came into the task list since it was last read
    settled: Settled = Settled()
    tallies: tuple[Tally, ...] = ()  # at most one per task
    doubted: tuple[str, ...] = ()  # tasks ticked in a round that changed nothing else, until they are confirmed
    doubted_at: str = ""  # the work tree when the last of them was ticked
    ticked_only: tuple[str, ...] = ()  # every task that was ever doubted
    proofs: Proofs = Proofs()
    ticks: Ticks = Ticks.DOUBT
    approved: tuple[str, ...] = ()  # checkpoints a person has looked at
    tampered: tuple[str, ...] = ()  # protected files that rounds changed, until restored or accepted
    protected_tree: str = ""  # the tree in which those are unchanged
    accepted: tuple[str, ...] = ()  # changes to protected files that a person accepted
    rewritten: tuple[str, ...] = ()  # open tasks in a folder whose text another task's round changed
    baseline: tuple[str, ...] | None = None  # the checks that failed before any work; None: not known
    closed: tuple[str, ...] = ()  # every task ever closed, shortened
    commits: bool = False  # is what rounds change committed?
    commits_all: bool = False  # … at once, whatever a round's end, with changes by others?
    uncommitted: tuple[Span, ...] = ()  # what is in no commit yet
    commit: str = ""  # the last one
    commit_due: bool = False  # has a round gone well since the last try?
    commit_tried: bool = False  # nothing has changed since
    commit_failure: str = ""  # what git and its hooks said at the last try
    left_out: tuple[str, ...] = ()  # files that are in no commit, and were named
    verdicts: tuple[Verdict, ...] = ()
    verdict_tree: str | None = None
    verdict_round: int = 0
    box: str = ""  # what was said about the box before the first round: the baseline is only valid for that
    flaky: tuple[str, ...] = ()  # checks that ever passed and failed on the same tree
    awaiting_checks: bool = False
    final: bool = False  # have the checks passed once more on the whole, since the last task was done?
    check_failures_in_a_row: int = 0
    failure: str = ""  # identifies the last failure of the checks
    same_failure: int = 0  # rounds in a row that ended with it
    excused: bool = False  # nothing fails except what failed before any work
    command_error: str = ""  # identifies the error with which every command of the last round failed
    vain_rounds: int = 0  # rounds in a row that ended with it and changed nothing
    failures_in_a_row: int = 0
    failing: Failing = Failing()
    blips_in_a_row: int = 0
    free: FreeTurns = FreeTurns()
    rounds_without_progress: int = 0
    rounds_without_result: int = 0  # rounds in a row in which no task was closed and no check turned green
    red_rounds: int = 0  # rounds in a row after which a check was red, and nothing had got better
    fewest_failures: int = 0  # … since they began, or before: 0 if no check was red
    gave_up: bool = False  # was a task set aside since the last progress?
    elapsed: float = 0.0
    clocked_at: datetime | None = None  # when that was
    recent_seconds: tuple[float, ...] = ()
    strip: tuple[Result, ...] = ()  # the last rounds
    summaries: tuple[str, ...] = ()  # what the last three that went well said
    notes: tuple[NoteAdded, ...] = ()
    records: Records = Records()
    settings: str = ""  # the digest of loop.json
    recording: bool = False  # may others record what they do for it?
    before: LoopStopped | None = None  # how a run that only checks leaves the loop, if it is not complete
    pause: PauseRequested | None = None
    stop: StopRequested | None = None
    waiting: WaitStarted | None = None
    obstructed: Obstructed | None = None
    unseen: bool = False  # has the agent's code run since the work tree was last looked at?
    refused: str = ""  # the hook that refused, until it agrees
    raised: Limits | None = None
    stopped: LoopStopped | None = None
    dismissed: bool = False

    @property
    def only_checks(self) -> bool:
        """May this run start no round? Then it leaves the loop as it was."""
        return self.rounds_allowed == 0

    @property
    def promise_given(self) -> bool:
        return self.last is not None and self.last.ended.promise is Promised.GIVEN

    def conversation(self, name: str | None) -> Session | None:
        """What is known about a conversation."""
        known = (self.session, *reversed(self.sessions))
        return next((each for each in known if each and each.id == name), None)

    @property
    def questions(self) -> tuple[Tally, ...]:
        """Tasks that were set aside until a person answers."""
        return tuple(tally for tally in self.tallies if tally.question and tally.task in self.settled.aside)

    @property
    def failed_checks(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    @property
    def checks_passed(self) -> bool:
        """Did every check pass on the current tree?"""
        return (
            bool(self.verdicts) and self.verdict_tree == self.tree and all(verdict.passed for verdict in self.verdicts)
        )

    @property
    def stop_now(self) -> bool:
        """Was an end requested that does not wait for the running round?"""
        return bool(self.pause and self.pause.now) or bool(self.stop and self.stop.now)


def _more(counts: dict[str, int], name: str) -> dict[str, int]:
    return counts | {name: counts.get(name, 0) + 1}


def task_mark(text: str) -> str:
    """The short form in which a closed task is remembered."""
    return f"{zlib.crc32(text.encode()):08x}"


def known_as(tree: str) -> str:
    """The short form in which a tree is remembered."""
    name, plus, nested = tree.partition("+")
    return name[:TREE_DIGITS] + plus + nested


@cache
def shape_of(kind: Any) -> str:
    """A digest of the fields of a struct, and of all structs in it: another one means that they were changed."""
    fields: dict[str, str] = {}

    def look(part: Any) -> None:
        if isinstance(part, type) and issubclass(part, msgspec.Struct) and part.__name__ not in fields:
            fields[part.__name__] = str(part.__annotations__)
            for each in part.__annotations__.values():
                look(each)
        for each in get_args(part):
            look(each)

    look(kind)
    return f"{zlib.crc32(str(sorted(fields.items())).encode()):08x}"
