"""The last rounds of a loop and what happened between them, read from the end of its ledger, however long it is."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from bydawn.core import facts
from bydawn.core.facts import ChecksEnded, LoopStopped, Record, RoundEnded, RoundStarted, TaskSettled
from bydawn.core.history import Attempt, History
from bydawn.core.loop import Loop
from bydawn.core.progress import proven, result_of
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import Result, TaskStatus
from bydawn.operations.rounds import Remark, RoundRow, of_commit, past_row, remarks, row_at_end
from bydawn.operations.sentences import Counting, sentences
from bydawn.store.ledger import backwards
from bydawn.store.registry import Standing

_RUN_UP = 10  # earlier rounds that are read too: some words depend on what came before
_FACTS_PER_ROUND = 50  # at most so many are read for a round: a loop may wait, or be told things, without end


class Tick(StrEnum):
    """How a round came out, or what was between two rounds, as one sign of a strip."""

    CLOSED = "closed"  # its checks passed, or it has none, and a task was closed
    PASSED = Result.PASSED
    RED = Result.RED
    WORKED = Result.WORKED
    IDLE = Result.IDLE
    FAILED = Result.FAILED
    CUT = Result.CUT
    RUNNING = "running"
    WAITED = "waited"
    SLEPT = "slept"


class PastRound(msgspec.Struct, frozen=True, kw_only=True):
    """A round with what is said about it."""

    attempt: Attempt
    row: RoundRow
    tick: Tick
    remarks: tuple[Remark, ...] = ()
    sent_in: int | None = None  # the round whose prompt had those that are for the agent
    open_tasks: int | None = None  # after it

    @property
    def number(self) -> int:
        return self.attempt.round

    def told(self, remark: Remark) -> str:
        """A remark, and where the agent was told about it."""
        sent = f" → sent to the agent in round {self.sent_in}" if remark.for_agent and self.sent_in else ""
        return f"{remark.text}{sent}"


class Between(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened between two rounds, or while one ran."""

    at: datetime
    sign: str
    text: str
    tick: Tick | None = None


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a loop's history, the oldest first."""

    rows: tuple[PastRound | Between, ...] = ()
    earlier: int = 0  # rounds before these

    @property
    def rounds(self) -> list[PastRound]:
        return [row for row in self.rows if isinstance(row, PastRound)]

    @property
    def ticks(self) -> list[tuple[Tick, int]]:
        """A strip: each tick with its round, 0 for what is between two rounds. One wait after the other is one tick."""
        found: list[tuple[Tick, int]] = []
        for row in self.rows:
            if isinstance(row, PastRound):
                found.append((row.tick, row.number))
            elif row.tick and (row.tick, 0) not in found[-1:]:
                found.append((row.tick, 0))
        return found

    def last(self, count: int) -> "Recent":
        """Only the last rounds, and what came between these."""
        left_out = max(0, len(self.rounds) - count)
        if not left_out:
            return self
        first = self.rounds[left_out].number
        place = next(place for place, row in enumerate(self.rows) if isinstance(row, PastRound) and row.number == first)
        return Recent(rows=self.rows[place:], earlier=self.earlier + left_out)


def recent(standing: Standing, count: int, before: int | None = None) -> Recent:
    """The last rounds, or the last ones before a round with this number."""
    if standing.trouble:
        return Recent()
    kept = Recent(rows=tuple(_Reading(standing).rows(_end_of(standing, count, before)))).last(count)
    return replace(kept, earlier=kept.rounds[0].number - 1 if kept.rounds else 0)


def _end_of(standing: Standing, count: int, before: int | None) -> list[Record]:
    """The records of these rounds, and of a few more before them, in the order in which they were written."""
    found: list[Record] = []
    rounds = 0
    for record in backwards(standing.folder):
        fact = record.fact
        begins = isinstance(fact, RoundStarted)
        if before is not None and not rounds and not (isinstance(fact, RoundStarted) and fact.round < before):
            if isinstance(fact, RoundStarted):
                found.clear()  # all of this came after it began
            else:
                found.append(record)
            continue
        found.append(record)
        rounds += begins
        if rounds >= count + _RUN_UP or len(found) > _FACTS_PER_ROUND * (count + _RUN_UP):
            break
    return found[::-1]


class _Reading:
    """Folds facts from somewhere in the middle: what came before them is unknown, and few words depend on it."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._loop: Loop = standing.loop
        self._state = LoopState()
        self._history = History()
        self._then = LoopState()  # the state when the last round was over
        self._settled = False  # was its task called done by every measure?
        self._during: list[Between] = []  # before or while the round ran; these come before its row
        self._since: list[Between] = []  # after it

    def rows(self, records: Sequence[Record]) -> Iterator[PastRound | Between]:
        if records and records[0].seq > 1:
            self._state = LoopState(raised=self._standing.state.raised)
        for record in records:
            fact = record.fact
            if isinstance(fact, RoundStarted):
                yield from self._flush(sent_in=fact.round)
            elif isinstance(fact, TaskSettled) and fact.status is TaskStatus.DONE:
                self._settled = True
            before, self._state = self._state, after(self._state, record)
            self._history.saw(fact, self._state)
            if isinstance(fact, RoundEnded | ChecksEnded):
                self._then = self._state
            over = self._history.attempts and self._history.attempts[0].ended
            (self._since if over else self._during).extend(self._between(record, before))
        yield from self._flush()

    def _between(self, record: Record, before: LoopState) -> Iterator[Between]:
        fact, state = record.fact, self._state
        if isinstance(fact, LoopStopped):
            ended = self._standing.state.stopped
            if not fact.is_preparation and not (ended and ended.decided.at == fact.decided.at):
                yield Between(at=record.at, sign="", text=plain(f"{fact.end.value}: {fact.reason}"))
            return
        kinds = {facts.MachineSlept: Tick.SLEPT, facts.WaitStarted: Tick.WAITED}
        for row in sentences(fact, self._loop, before, state, Counting(number=state.round)):
            yield Between(at=record.at, sign=row.sign, text=row.text, tick=kinds.get(type(fact)))

    def _flush(self, sent_in: int | None = None) -> Iterator[PastRound | Between]:
        """The round that is over, after what happened while it ran."""
        yield from self._during
        for attempt in self._history.attempts[:1]:
            yield self._round(attempt, sent_in)
        yield from self._since
        self._history, self._settled, self._during, self._since = History(), False, [], []

    def _round(self, attempt: Attempt, sent_in: int | None) -> PastRound:
        alive, ended, checks = self._standing.alive, attempt.ended, attempt.checks
        past = past_row(attempt, alive=alive)
        if ended is None:
            return PastRound(attempt=attempt, row=past, tick=Tick.RUNNING if past.result == "running" else Tick.CUT)
        then = self._then
        row = row_at_end(ended, checks, self._loop, then)
        row = replace(row, number=attempt.round, task=past.task or row.task, agent=past.agent)
        if self._settled and row.result == "progress":
            row = replace(row, result="task done")
        said = [*remarks(ended, checks, self._loop, then), *(of_commit(attempt.commit) if attempt.commit else ())]
        return PastRound(
            attempt=attempt,
            row=row,
            tick=_tick(ended, checks, closed=self._settled or bool(ended.found.closed)),
            remarks=tuple(said),
            sent_in=sent_in,
            open_tasks=then.tasks.open if then.tasks and not then.tasks.problem else None,
        )


def _tick(ended: RoundEnded, checks: ChecksEnded | None, *, closed: bool) -> Tick:
    result = result_of(ended)
    if checks:
        [result] = proven((result,), red=not checks.passed)
    if closed and result is Result.PASSED:
        return Tick.CLOSED
    return Tick(result.value)
