"""What has happened, round by round, for views that describe it in another tool's words."""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import AnyFact, ChecksEnded, CommitEnded, Record, RoundEnded, RoundStarted
from bydawn.core.loop import Loop
from bydawn.core.replay import after
from bydawn.core.state import LoopState


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One round, and its number among those that count: a round that was cut short is retried under the same number."""

    round: int
    counted: int
    cut: int = 0  # how many before it were cut short: for a dialect that numbers those too, its number is the sum
    started_at: datetime
    started: RoundStarted
    ended_at: datetime | None = None
    ended: RoundEnded | None = None
    checks: ChecksEnded | None = None
    commit: CommitEnded | None = None
    stop_requested: bool = False  # did a person ask for its end?


class History:
    """Every attempt so far, in order."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.attempts: list[Attempt] = []
        state = LoopState()
        for record in records:
            state = after(state, record)
            self.saw(record.fact, state)

    def saw(self, fact: AnyFact, state: LoopState) -> None:
        """`state` is the state after the fact."""
        at = state.updated_at
        if isinstance(fact, RoundStarted) and at:
            attempt = Attempt(
                round=fact.round, counted=state.rounds + 1, cut=state.cut_rounds, started_at=at, started=fact
            )
            self.attempts.append(attempt)
        elif self.attempts and isinstance(fact, RoundEnded):
            self.attempts[-1] = replace(self.attempts[-1], ended=fact, ended_at=at, stop_requested=state.stop_now)
        elif self.attempts and isinstance(fact, ChecksEnded) and fact.round == self.attempts[-1].round:
            self.attempts[-1] = replace(self.attempts[-1], checks=fact)
        elif self.attempts and isinstance(fact, CommitEnded) and fact.round == self.attempts[-1].round:
            self.attempts[-1] = replace(self.attempts[-1], commit=fact)


def number(loop: Loop, state: LoopState) -> int:
    """The number of the open or the next round, as its dialect counts them."""
    return state.rounds + 1 + (state.cut_rounds if loop.dialect and loop.dialect.numbers_cut else 0)


def counted(state: LoopState, *, numbers_cut: bool = False) -> int:
    """The number of the running round, or of the last one; it never decreases.

    `numbers_cut`: a round that was cut short has used up its number, and is tried again under the next.
    """
    last = state.last
    tried_again = last is not None and not last.counts and not (numbers_cut and last.cut)
    return state.rounds + state.cut_rounds * numbers_cut + bool(state.open_round or tried_again)
