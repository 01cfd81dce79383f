"""How a record of others comes into the ledger: what its author cannot know, or must not decide, is ours."""

from datetime import UTC, datetime
from typing import TypeVar

from msgspec.structs import replace

from bydawn.core import completion, decide, records
from bydawn.core.facts import EventRecorded, IterationRecorded
from bydawn.core.loop import Loop
from bydawn.core.redact import rewritten
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import Now

Claim = TypeVar("Claim", bound=EventRecorded | IterationRecorded)
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # the first year of the calendar cannot be told in every time zone
_NAMED = 100  # characters of the author or the kind of a record


def taken(fact: Claim, loop: Loop, state: LoopState, now: datetime, *, inside: bool = True) -> Claim:
    """One record as the ledger keeps it."""
    fact = rewritten(fact, plain)
    by, at = shorten(fact.by, _NAMED), min(max(fact.at, _EARLIEST), now)
    if isinstance(fact, EventRecorded):
        return replace(fact, by=by, at=at, inside=inside, round=state.round, kind=shorten(fact.kind, _NAMED))
    budget = loop.recording.budget if loop.recording and state.open_round else 0  # a person's session has none
    batched = records.batch_of(state.records, fact.claim, at, budget)
    claim = fact.claim if fact.claim.status in records.WORDS else replace(fact.claim, status=records.RUNNING)
    return replace(fact, by=by, at=at, inside=inside, round=state.round, batched=batched, claim=claim)


def shortening(fact: EventRecorded | IterationRecorded, loop: Loop, state: LoopState) -> EventRecorded | None:
    """The event that shortens earlier iterations, if this one has made them too long."""
    if not (isinstance(fact, IterationRecorded) and loop.recording):
        return None
    if not records.is_long(state.records, loop.recording.context_chars):
        return None
    return EventRecorded(
        record=f"{fact.record}-compacted",
        at=fact.at,
        by="bydawn",
        round=state.round,
        kind=records.COMPACTED,
        message="earlier iterations were shortened to one line each",
    )


def at_rest(loop: Loop, state: LoopState, now: Now) -> decide.Pause | decide.Stop:
    """What a loop that does not run is, after others recorded something for it; checks only decide when they run."""
    if "record" in loop.requires and not completion.missing(loop, state):
        return decide.finished(loop, state)
    return decide.recorded_end(state) or decide.as_before(loop, replace(state, before=state.stopped), now)
