"""Explain a loop's last decision: the rule, what it looked at, and whether a replay decides the same."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from bydawn import __version__
from bydawn.core import breakers, completion
from bydawn.core.errors import UserError
from bydawn.core.facts import LoopStopped, Record, RoundStarted, RunStarted, WaitStarted
from bydawn.core.loop import Loop
from bydawn.core.replay import after
from bydawn.core.rules import Rule, meaning_of
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain
from bydawn.core.values import Decided, Now, Status
from bydawn.operations.reasons import evidence
from bydawn.operations.sentences import Field
from bydawn.store.ledger import records
from bydawn.store.registry import Standing

_LABELS = {"missing": "Missing", "open tasks": "Tasks"}  # what a rule looked at besides limits


class LimitReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule looked at, and its limit."""

    reading: int | float | datetime | list[str] | None
    limit: int | float | datetime | None

    def words(self, name: str) -> str:
        """Both in words; empty if no limit is set."""
        reading, limit = self.reading, self.limit
        if isinstance(reading, list):
            return ", ".join(reading)
        if name == "open tasks":
            return f"{reading} open" if reading is not None else ""
        if isinstance(reading, datetime) and isinstance(limit, datetime):
            return f"clock: {reading.astimezone():%Y-%m-%d %H:%M}, until {limit.astimezone():%Y-%m-%d %H:%M}"
        if not limit or isinstance(reading, datetime) or isinstance(limit, datetime):
            return ""
        if name == "seconds worked":
            return f"time worked: {duration(reading or 0)} of {duration(limit)}"
        if name == "dollars":
            return f"spent: {'—' if reading is None else f'${reading:.2f}'} of ${limit:.2f}"
        return f"{breakers.LABELS.get(name, name)}: {'—' if reading is None else f'{reading:,}'} of {limit:,}"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """`why --json`: which rule decided, what it looked at, and whether a replay decides the same."""

    loop: str
    state: Status
    rule: str
    meaning: str
    what: str
    at: datetime
    seq: int
    readings: dict[str, LimitReading]
    agrees: bool
    version: str = ""  # of the program that decided
    evidence: tuple[str, ...] = ()

    @property
    def replayed(self) -> str:
        """What a replay of the record decides, in words."""
        if self.agrees:
            return "same decision"
        if self.version != __version__:
            return f"bydawn {self.version} decided this; {__version__} would decide differently"
        return "DIFFERENT DECISION: this is a bug, please report it"


def why_fields(standing: Standing, found: Reason) -> Iterator[Field]:
    """What decided, and what it looked at, line by line."""
    if standing.status is Status.CRASHED:  # its last decision does not explain a crash
        yield Field("Before", f"{found.rule}: {found.what}")
    else:
        yield Field("Rule", f"{found.rule}: {found.meaning}")
    last = ""
    for name, reading in found.readings.items():
        if words := reading.words(name):
            label = _LABELS.get(name, "Limits")
            yield Field(label if label != last else "", words)
            last = label
    for row in evidence(standing) if standing.state.stopped else found.evidence:
        yield Field("Proof", plain(row))


class _Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The last recorded decision, and the state it was made in."""

    record: Record
    fact: RoundStarted | WaitStarted | LoopStopped
    before: LoopState
    version: str


def why(standing: Standing) -> Reason:
    """The last recorded decision, made again from the same facts."""
    last = _last_decision(standing)
    decided, fact = last.fact.decided, last.fact
    return Reason(
        loop=standing.loop.id,
        state=standing.status,
        rule=decided.rule,
        meaning=meaning_of(decided.rule),
        what=_what(fact),
        at=last.record.at,
        seq=last.record.seq,
        readings=_readings(standing, last.before, decided),
        agrees=_agrees(standing.loop, last),
        version=last.version,
        evidence=fact.evidence if isinstance(fact, LoopStopped) else (),
    )


def _agrees(loop: Loop, last: _Decision) -> bool:
    """A person prepared a loop that has never run; what is recorded for one that rests is judged without its checks."""
    from bydawn.core.decide import next_action
    from bydawn.core.taking import at_rest

    before, decided = last.before, last.fact.decided
    now, asked = Now(decided.at, decided.elapsed), decided.rule in (Rule.ASKED_TO_STOP, Rule.ASKED_TO_PAUSE)
    if isinstance(last.fact, LoopStopped) and last.fact.is_preparation and not before.runs:
        return True
    again = at_rest(loop, before, now) if before.stopped and not asked else next_action(loop, before, now)
    return again.rule == decided.rule


def _last_decision(standing: Standing) -> _Decision:
    state, found, version = LoopState(), None, ""
    for record in records(standing.folder):
        fact = record.fact
        if isinstance(fact, RunStarted):
            version = fact.version
        if isinstance(fact, RoundStarted | WaitStarted | LoopStopped):
            found = _Decision(record=record, fact=fact, before=state, version=version)
        state = after(state, record)
    if found is None:
        raise UserError(f"the loop {standing.loop.id} has not decided anything yet")
    return found


def _what(fact: RoundStarted | WaitStarted | LoopStopped) -> str:
    if isinstance(fact, LoopStopped):
        return f"{fact.end.value}: {fact.reason}"
    return "started a round" if isinstance(fact, RoundStarted) else "is waiting"


def _readings(standing: Standing, state: LoopState, decided: Decided) -> dict[str, LimitReading]:
    """What the rules looked at, each with its limit."""
    tasks, now = state.tasks, Now(decided.at, round(decided.elapsed, 1))
    found = {
        name: LimitReading(reading=reading, limit=limit)
        for name, (reading, limit) in breakers.readings(standing.loop, state, now).items()
    }
    return found | {
        "open tasks": LimitReading(reading=tasks.open if tasks else None, limit=0 if tasks else None),
        "missing": LimitReading(reading=completion.missing(standing.loop, state), limit=None),
    }
