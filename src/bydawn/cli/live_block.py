"""The lines below the rows that are redrawn while a loop runs: how far it is, what it does now, what it used."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from bydawn.core.breakers import limits_of
from bydawn.core.loop import Loop
from bydawn.core.progress import ENOUGH_ROUNDS
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.operations import outputs
from bydawn.operations.amounts import short_count, time_left_words
from bydawn.operations.pending import asked, asked_words, waiting_words
from bydawn.operations.plan import Plan
from bydawn.operations.sentences import Counting

_SOME = 12  # characters of a reason that are worth showing
_NARROW = 72  # below that, the liveness gets a line of its own instead of the usage


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """The round that runs."""

    seconds: float
    silence: float
    doing: str  # without secrets


def running(planned: Plan, state: LoopState, doing: str) -> Running | None:
    """What the round that runs does now, if there is one."""
    if (opened := state.open_round) is None:
        return None
    return Running(
        seconds=max(0.0, (datetime.now(UTC) - opened.started_at).total_seconds()),
        silence=outputs.seconds_of_silence(planned.folder, opened),
        doing=shorten(planned.secrets.hide(plain(doing)), 80),
    )


def live_block(loop: Loop, state: LoopState, width: int, counting: Counting, running: Running | None) -> list[str]:
    """At most three lines that fit the width; the last part of a line is dropped first."""
    is_narrow, pending = width < _NARROW, asked(state)
    marks = [asked_words(pending, counting.last)] if pending else []
    now = _now(state, width - 10, counting.checks)
    first = [_how_far(loop, state, width, counting)]
    if running:
        first.append(f"{counting.last}, {duration(running.seconds)}")
        now = " · ".join(
            filter(None, [plain(state.open_round.started.task or "") if state.open_round else "", running.doing])
        )
        marks.append(f"last output {duration(running.silence)} ago")
    left = time_left_words(state)
    first += [left] if left and not is_narrow else []
    if is_narrow:
        parts = [*marks, *([left] if left else [])]
        rest = [_line("alive" if running else "", " · ".join(_fitting(parts, " · ", width - 10)))] if parts else []
    else:
        rest = [_line("usage", used)] if (used := " · ".join(_usage(loop, state, counting.unit))) else []
    tail = "".join(f" · {mark}" for mark in marks) if not is_narrow else ""
    lines = [
        f"  {'   '.join(_fitting(first, '   ', width - 3))}",
        _line("now", shorten(now, width - 10 - len(tail)) + tail),
    ]
    return [*lines, *rest]


def _line(label: str, text: str) -> str:
    return f"  {label:<6} {text}"


def _fitting(parts: Sequence[str], between: str, room: int) -> list[str]:
    """The first parts that fit; always the first one."""
    kept = [*parts]
    while len(kept) > 1 and len(between.join(kept)) > room:
        kept.pop()
    return kept


def _now(state: LoopState, room: int, checks: str) -> str:
    """What happens while no agent runs. Until when it waits matters more than why, and for whom."""
    if not state.waiting:
        return checks
    words = waiting_words(state.waiting)
    if len(words) > room:
        return waiting_words(msgspec.structs.replace(state.waiting, agent=""))
    return f"{words}: {plain(state.waiting.reason)}" if len(words) < room - _SOME else words


def _how_far(loop: Loop, state: LoopState, width: int, counting: Counting) -> str:
    if not state.tasks:
        limit = limits_of(loop, state).rounds
        return f"{state.rounds}{f' of at most {limit}' if limit else ''} {counting.unit}s done"
    done, total = state.tasks.done, state.tasks.total
    room = max(8, min(24, width - 50))
    full = room * done // max(total, 1)
    return f"{'█' * full}{'░' * (room - full)}  {done} of {total} tasks"


def _usage(loop: Loop, state: LoopState, unit: str) -> list[str]:
    """Tokens and dollars of all rounds, if the agents report them, and how long a round takes."""
    limits, usage, parts = limits_of(loop, state), state.usage, []
    if usage and usage.tokens is not None:
        parts.append(
            f"{short_count(usage.tokens)}{f' of {short_count(limits.tokens)}' if limits.tokens else ''} tokens"
        )
    if usage and usage.cost_usd is not None:
        least = "at least " if state.unpriced else ""
        parts.append(f"{least}${usage.cost_usd:.2f}{f' of ${limits.usd:.2f}' if limits.usd else ''}")
    if parts and len(state.recent_seconds) >= ENOUGH_ROUNDS:
        parts.append(f"median {unit} {duration(_median(state.recent_seconds))}")
    return parts


def _median(seconds: Sequence[float]) -> float:
    """`statistics` would take as long to load as a tenth of an interpreter."""
    ordered, middle = sorted(seconds), len(seconds) // 2
    return ordered[middle] if len(seconds) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
