"""The rounds of a loop and what happened between them; the last ones are read from the end of its ledger, however long
it is."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec
from msgspec.structs import replace

from bydawn.core import facts
from bydawn.core.errors import NotFound
from bydawn.core.facts import ChecksEnded, LoopStopped, Record, RoundEnded, RoundStarted, TaskSettled
from bydawn.core.history import Attempt, begun, grown
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import TaskStatus
from bydawn.operations.rounds import RoundRow, Tick, row_of
from bydawn.operations.sentences import Counting, sentences
from bydawn.store.ledger import backwards, records
from bydawn.store.registry import Standing

_RUN_UP = 10  # earlier rounds that are read too: some words depend on what came before
_FACTS_PER_ROUND = 50  # at most so many are read for a round: a loop may wait, or be told things, without end


class Between(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened between two rounds, or while one ran."""

    at: datetime
    sign: str
    text: str
    tick: Tick | None = None


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a loop's history, the oldest first."""

    rows: tuple[RoundRow | Between, ...] = ()
    earlier: int = 0  # rounds before these

    @property
    def rounds(self) -> list[RoundRow]:
        return [row for row in self.rows if isinstance(row, RoundRow)]

    @property
    def ticks(self) -> list[tuple[Tick, int]]:
        """A strip: each tick with its round, 0 for what is between two rounds. One wait after the other is one tick."""
        found: list[tuple[Tick, int]] = []
        for row in self.rows:
            if isinstance(row, RoundRow):
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
        place = next(place for place, row in enumerate(self.rows) if isinstance(row, RoundRow) and row.number == first)
        return Recent(rows=self.rows[place:], earlier=self.earlier + left_out)


def rounds(standing: Standing) -> list[RoundRow]:
    """All rounds of a loop, in order."""
    return [row for row in _Reading(standing).rows(records(standing.folder)) if isinstance(row, RoundRow)]


def the_round(standing: Standing, number: int) -> RoundRow:
    for row in rounds(standing):
        if row.number == number:
            return row
    raise NotFound(
        f"the loop {standing.loop.id} has no round {number}", hint=f"its last round so far is {standing.state.round}"
    )


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
        self._state = LoopState()
        self._attempt: Attempt | None = None
        self._then = LoopState()  # the state when the last round was over
        self._settled = False  # was its task called done by every measure?
        self._during: list[Between] = []  # before or while the round ran; these come before its row
        self._since: list[Between] = []  # after it

    def rows(self, records: Iterable[Record]) -> Iterator[RoundRow | Between]:
        for record in records:
            fact = record.fact
            if not self._state.seq and record.seq > 1:
                self._state = LoopState(raised=self._standing.state.raised)
            if isinstance(fact, RoundStarted):
                yield from self._flush(sent_in=fact.round)
            elif isinstance(fact, TaskSettled) and fact.status is TaskStatus.DONE:
                self._settled = True
            before, self._state = self._state, after(self._state, record)
            if isinstance(fact, RoundStarted):
                self._attempt = begun(self._state)
            elif self._attempt:
                self._attempt = grown(self._attempt, fact, record.at)
            if isinstance(fact, RoundEnded | ChecksEnded):
                self._then = self._state
            over = self._attempt and self._attempt.ended
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
        for row in sentences(fact, self._standing.loop, before, state, Counting(number=state.round)):
            yield Between(at=record.at, sign=row.sign, text=row.text, tick=kinds.get(type(fact)))

    def _flush(self, sent_in: int | None = None) -> Iterator[RoundRow | Between]:
        """The round that is over, after what happened while it ran."""
        yield from self._during
        if self._attempt:
            alive, loop = self._standing.alive, self._standing.loop
            row = row_of(self._attempt, loop, self._then, alive=alive, settled=self._settled)
            yield replace(row, sent_in=sent_in)
        yield from self._since
        self._attempt, self._settled, self._during, self._since = None, False, [], []
