"""What the ledger amounts to: `replay` folds facts into a state, one `after` at a time."""

import zlib
from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import (
    AgentLimited,
    ChecksEnded,
    Given,
    LedgerRepaired,
    LimitsRaised,
    LoopCreated,
    LoopStopped,
    MachineSlept,
    NoteAdded,
    Obstructed,
    PauseRequested,
    Record,
    RoundEnded,
    RoundStarted,
    RunStarted,
    StopRequested,
    TaskReading,
    TasksRead,
    Usage,
    Verdict,
    WaitStarted,
)
from bydawn.core.loop import Limits
from bydawn.core.outcome import POLICY, Outcome

RECENT = 10  # rounds that an estimate looks back on
TREE_DIGITS = 16  # enough of a tree id to know it again


class OpenRound(msgspec.Struct, frozen=True, kw_only=True):
    """A round that has started and not ended."""

    round: int
    started_at: datetime
    cookie: str
    agent: str
    task: str | None
    session: str | None = None
    notes: tuple[NoteAdded, ...] = ()


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's conversation that the next round may go on with."""

    id: str
    agent: str
    rounds: int = 1
    task: str | None = None
    usage: Usage | None = None  # of all of it, where the agent counts on from turn to turn


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """An agent whose provider lets it do nothing for a while."""

    agent: str
    detail: str
    until: datetime | None  # None: nobody knows
    elapsed: float  # when that was said, in the loop's working time
    times: int = 1  # in a row


class LastRound(msgspec.Struct, frozen=True, kw_only=True):
    """What the round that ended last left for the decisions and the next prompt."""

    round: int
    outcome: Outcome
    detail: str
    said: str
    promise: Given
    progress: bool
    elapsed: float
    agent: str = ""


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decisions look at; a view of the ledger, never a second truth."""

    seq: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    run: str = ""
    runs: int = 0
    round: int = 0  # the number of the last attempt; never reused
    rounds: int = 0  # attempts that count against the limit
    rounds_this_run: int = 0
    rounds_allowed: int | None = None
    ok_rounds: int = 0
    session: Session | None = None
    limited: tuple[Limited, ...] = ()  # one row for an agent at most
    usage: Usage | None = None  # of all rounds, as far as agents say
    unpriced: bool = False  # was something used that nobody named a price for?
    open_round: OpenRound | None = None
    last: LastRound | None = None
    tree: str = ""
    trees: tuple[str, ...] = ()
    tasks: TaskReading | None = None
    closed: tuple[str, ...] = ()  # the tasks that were ever closed, in short
    verdicts: tuple[Verdict, ...] = ()
    verdict_tree: str | None = None
    awaiting_checks: bool = False
    failures_in_a_row: int = 0
    blips_in_a_row: int = 0
    rounds_without_progress: int = 0
    elapsed: float = 0.0
    recent_seconds: tuple[float, ...] = ()
    notes: tuple[NoteAdded, ...] = ()
    pause: PauseRequested | None = None
    stop: StopRequested | None = None
    waiting: WaitStarted | None = None
    obstructed: Obstructed | None = None
    raised: Limits | None = None
    stopped: LoopStopped | None = None

    @property
    def promise_given(self) -> bool:
        return self.last is not None and self.last.promise is Given.GIVEN

    @property
    def checks_passed(self) -> bool:
        """Did every check pass on the tree as it is now?"""
        return (
            bool(self.verdicts) and self.verdict_tree == self.tree and all(verdict.passed for verdict in self.verdicts)
        )

    @property
    def stop_now(self) -> bool:
        """Has somebody asked for an end that does not wait for the running round?"""
        return bool(self.pause and self.pause.now) or bool(self.stop and self.stop.now)


def replay(records: Iterable[Record], state: LoopState | None = None) -> LoopState:
    """The state that a ledger, or its tail on top of an earlier state, amounts to."""
    state = state or LoopState()
    for record in records:
        state = after(state, record)
    return state


def after(state: LoopState, record: Record) -> LoopState:
    """The state once this fact stands in the ledger."""
    state = replace(state, seq=record.seq, updated_at=record.at)
    match record.fact:
        case LoopCreated():
            return replace(state, created_at=record.at)
        case RunStarted():
            return _run_started(state, record.fact)
        case TasksRead() as fact:
            return replace(state, tasks=fact.tasks, tree=fact.tree, trees=_seen(state.trees, fact.tree))
        case RoundStarted():
            return _round_started(state, record.fact, record.at)
        case RoundEnded():
            return _round_ended(state, record.fact)
        case AgentLimited() as fact:
            known = Limited(agent=fact.agent, detail=fact.detail, until=fact.until, elapsed=state.elapsed, times=0)
            return replace(state, limited=(*_without(state.limited, fact.agent), known), waiting=None)
        case ChecksEnded():
            return _checks_ended(state, record.fact)
        case WaitStarted() as fact:
            return replace(state, waiting=fact)
        case NoteAdded() as fact:
            return replace(state, notes=(*state.notes, fact))
        case PauseRequested() as fact:
            return replace(state, pause=fact)
        case StopRequested() as fact:
            return replace(state, stop=fact)
        case LimitsRaised() as fact:
            return replace(state, raised=fact.limits)
        case Obstructed() as fact:
            return replace(state, obstructed=fact)
        case LoopStopped() as fact:
            return replace(state, stopped=fact, waiting=None, elapsed=fact.decided.elapsed)
        case LedgerRepaired() as fact:
            return replace(state, round=max(state.round, fact.last_round))
        case MachineSlept():
            return state
        case _ as unreachable:
            assert_never(unreachable)


def _run_started(state: LoopState, fact: RunStarted) -> LoopState:
    # Only a start after a recorded stop is a person's (or the host's) fresh chance; after a crash nothing is forgiven.
    forgiven = {
        "failures_in_a_row": 0,
        "rounds_without_progress": 0,
        "last": _forgiven(state.last),
        "limited": (),  # whoever resumes may know better; if not, the cool-downs that all loops share say so again
    }
    return replace(
        state,
        **(forgiven if state.stopped else {}),
        run=fact.run,
        runs=state.runs + 1,
        rounds_this_run=0,
        rounds_allowed=fact.rounds_allowed,
        tree=fact.tree,
        trees=_seen(state.trees, fact.tree),
        tasks=fact.tasks,
        elapsed=max(state.elapsed, fact.elapsed),
        pause=None,
        stop=None,
        waiting=None,
        obstructed=None,
        stopped=None,
    )


def _forgiven(last: LastRound | None) -> LastRound | None:
    """An outcome that stops at once (not logged in) must not stop the loop again once the person has resumed it."""
    if last is None or not (POLICY[last.outcome].stops or POLICY[last.outcome].stops_idle):
        return last
    return replace(last, outcome=Outcome.INTERRUPTED)


def _round_started(state: LoopState, fact: RoundStarted, at: datetime) -> LoopState:
    consumed = set(fact.notes)
    return replace(
        state,
        round=fact.round,
        open_round=OpenRound(
            round=fact.round,
            started_at=at,
            cookie=fact.cookie,
            agent=fact.agent,
            task=fact.task,
            session=fact.session,
            notes=tuple(note for note in state.notes if note.note in consumed),
        ),
        tree=fact.tree,
        trees=_seen(state.trees, fact.tree),
        notes=tuple(note for note in state.notes if note.note not in consumed),
        waiting=None,
        elapsed=fact.decided.elapsed,
    )


def _round_ended(state: LoopState, fact: RoundEnded) -> LoopState:
    policy = POLICY[fact.outcome]
    blip = not policy.counts and policy.backs_off
    # A note that an agent had no chance to heed is not lost: the next prompt has it again.
    unheeded = state.open_round.notes if state.open_round and not policy.counts else ()
    return replace(
        state,
        open_round=None,
        last=LastRound(
            round=fact.round,
            outcome=fact.outcome,
            detail=fact.detail,
            said=fact.said,
            promise=fact.promise,
            progress=fact.progress,
            elapsed=fact.elapsed,
            agent=state.open_round.agent if state.open_round else "",
        ),
        rounds=state.rounds + policy.counts,
        rounds_this_run=state.rounds_this_run + policy.counts,
        ok_rounds=state.ok_rounds + (fact.outcome is Outcome.OK),
        session=_session(state, fact),
        limited=_limited(state, fact),
        usage=fact.usage.plus(state.usage) if fact.usage else state.usage,
        unpriced=state.unpriced or (fact.usage is not None and fact.usage.unpriced),
        tree=fact.tree,
        trees=_seen(state.trees, fact.tree),
        tasks=fact.tasks or state.tasks,
        closed=tuple(dict.fromkeys((*state.closed, *map(task_mark, fact.closed)))),
        notes=(*unheeded, *state.notes),
        awaiting_checks=policy.checks,
        failures_in_a_row=_streak(state.failures_in_a_row, grows=policy.failure, holds=not policy.counts),
        blips_in_a_row=_streak(state.blips_in_a_row, grows=blip, holds=fact.outcome is Outcome.INTERRUPTED),
        rounds_without_progress=_streak(
            state.rounds_without_progress, grows=not fact.progress, holds=not policy.counts
        ),
        elapsed=fact.elapsed,
        recent_seconds=(*state.recent_seconds, fact.seconds)[-RECENT:] if policy.counts else state.recent_seconds,
    )


def _session(state: LoopState, fact: RoundEnded) -> Session | None:
    """The conversation that could be gone on with. One that is full or lost is not, and after a crash the id that
    was chosen beforehand still names it."""
    opened = state.open_round
    name = fact.session or (opened.session if opened else None)
    if name is None or opened is None or fact.outcome in (Outcome.CONTEXT_FULL, Outcome.SESSION_LOST):
        return None
    before = state.session if state.session and state.session.id == name else None
    return Session(
        id=name,
        agent=opened.agent,
        rounds=before.rounds + 1 if before else 1,
        task=opened.task,
        usage=fact.session_usage or (before.usage if before else None),
    )


def _limited(state: LoopState, fact: RoundEnded) -> tuple[Limited, ...]:
    """Who is limited once a round has ended. A turn that was cut short says nothing about that."""
    opened = state.open_round
    if opened is None or (fact.outcome is not Outcome.LIMITED and not POLICY[fact.outcome].counts):
        return state.limited
    others = _without(state.limited, opened.agent)
    if fact.outcome is not Outcome.LIMITED:
        return others
    times = 1 + max((row.times for row in state.limited if row.agent == opened.agent), default=0)
    mine = Limited(agent=opened.agent, detail=fact.detail, until=fact.wait_until, elapsed=fact.elapsed, times=times)
    return (*others, mine)


def _without(limited: tuple[Limited, ...], agent: str) -> tuple[Limited, ...]:
    return tuple(row for row in limited if row.agent != agent)


def _checks_ended(state: LoopState, fact: ChecksEnded) -> LoopState:
    # A round's checks belong to its length, or the estimate of what is left would be too rosy.
    recent = [*state.recent_seconds]
    recent[-1:] = [seconds + fact.seconds for seconds in recent[-1:]]
    return replace(
        state,
        verdicts=fact.verdicts,
        verdict_tree=fact.tree,
        awaiting_checks=False,
        elapsed=fact.elapsed,
        recent_seconds=tuple(recent),
    )


def _streak(length: int, *, grows: bool, holds: bool) -> int:
    """A run of like rounds: stays as it is, grows, or is broken."""
    if holds:
        return length
    return length + 1 if grows else 0


def _seen(trees: tuple[str, ...], tree: str) -> tuple[str, ...]:
    short = known_as(tree)
    return trees if not tree or short in trees else (*trees, short)


def task_mark(text: str) -> str:
    """The short form under which a closed task is remembered."""
    return f"{zlib.crc32(text.encode()):08x}"


def known_as(tree: str) -> str:
    """The short form under which a tree is remembered."""
    name, plus, nested = tree.partition("+")
    return name[:TREE_DIGITS] + plus + nested
