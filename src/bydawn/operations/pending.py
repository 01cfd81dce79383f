"""What a running loop is waiting for, and what people have asked of it."""

from datetime import UTC, datetime

import msgspec

from bydawn.core.facts import PauseRequested, WaitStarted
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.operations.amounts import moment

_LONGEST = 16  # characters of an agent's name; one of a custom program is its command


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Why a loop does nothing at the moment, and until when."""

    reason: str
    agent: str | None  # the one it waits for; None if it only slows down
    until: datetime


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that has been recorded and not carried out yet."""

    what: str  # "pause" or "stop"
    by: str  # a person, or the name of a signal
    after_round: int | None  # None: now

    @property
    def verb(self) -> str:
        return "stopping" if self.what == "stop" else "pausing"


def waiting(state: LoopState) -> Waiting | None:
    wait = state.waiting
    return Waiting(reason=wait.reason, agent=wait.agent or None, until=wait.ends) if wait else None


def asked(state: LoopState) -> Asked | None:
    """What was asked and when it takes effect: a stop before a pause, as in the decision itself."""
    request = state.stop or state.pause
    if request is None or state.stopped:
        return None
    signal = request.signal if isinstance(request, PauseRequested) else None
    at_once = state.stop_now or state.waiting is not None
    what = "stop" if state.stop else "pause"
    return Asked(what=what, by=signal or request.by, after_round=None if at_once else state.round)


def waiting_words(wait: WaitStarted, left: float | None = None) -> str:
    """`waiting for codex until 17:55 (1 m 40)`; without `left`, with the time that is left now."""
    left = (wait.ends - datetime.now(UTC)).total_seconds() if left is None else left
    whom = f" for {shorten(plain(wait.agent), _LONGEST)}" if wait.agent else ""
    return f"waiting{whom} until {moment(wait.ends)}" + (f" ({duration(left)})" if left > 0 else "")


def asked_words(pending: Asked, last: str = "") -> str:
    """`pausing after round 2`; `last` is what a dialect calls that round."""
    if pending.after_round is None:
        return f"{pending.verb} now"
    if not pending.after_round:
        return f"{pending.verb} before round 1"
    return f"{pending.verb} after {last or f'round {pending.after_round}'}"
