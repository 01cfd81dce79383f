"""Amounts and times in words: rounds, tasks, tokens, money."""

from datetime import UTC, datetime, timedelta

from bydawn.core.breakers import Limits
from bydawn.core.progress import time_left
from bydawn.core.state import LoopState
from bydawn.core.text import duration
from bydawn.core.values import Usage
from bydawn.store.registry import Standing


def plural(count: int, noun: str) -> str:
    """
    >>> plural(1, "round"), plural(3, "round")
    ('1 round', '3 rounds')
    """
    return f"{count} {noun}{'s' if count != 1 else ''}"


def short_count(count: int) -> str:
    """
    >>> [short_count(count) for count in (0, 950, 22_400, 999_600, 1_090_000, 12_000_000)]
    ['0', '950', '22 k', '1.00 M', '1.09 M', '12.0 M']
    """
    if count < 1000:
        return str(count)
    if count < 999_500:
        return f"{count / 1000:.0f} k"
    return f"{count / 1e6:.2f} M" if count < 9_995_000 else f"{count / 1e6:.1f} M"


def size(count: int) -> str:
    """
    >>> [size(count) for count in (0, 22_400, 12_000_000, 3_100_000_000)]
    ['0 B', '22 kB', '12.0 MB', '3.1 GB']
    """
    if count >= 999_500_000:
        return f"{count / 1e9:.1f} GB"
    return f"{short_count(count)}{'B' if count >= 1000 else ' B'}"


def named_rounds(numbers: list[int]) -> str:
    """
    >>> named_rounds([2]), named_rounds([2, 5])
    ('round 2', 'rounds 2, 5')
    """
    return f"round{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def progress(standing: Standing) -> str:
    """`2/6 tasks · 4 rounds`"""
    tasks = standing.state.tasks
    parts = [f"{tasks.done}/{tasks.total} tasks"] if tasks else []
    parts.append(rounds(standing.state))
    if standing.loop.sandbox == "full":
        parts.append("FULL ACCESS")
    return " · ".join(parts)


def rounds(state: LoopState) -> str:
    """`3 rounds (1 cut short)`: such a round does not count toward the limit."""
    cut_short = state.round - bool(state.open_round) - state.rounds
    return plural(state.round, "round") + (f" ({cut_short} cut short)" if cut_short > 0 else "")


def dollars(usage: Usage) -> str:
    return f"${usage.cost_usd:.2f}" if usage.cost_usd is not None else ""


def used(usage: Usage | None, *, unpriced: bool = False) -> str:
    """What was used, if agents report it; what is unknown is `—`, never zero."""
    if usage is None:
        return "—"
    tokens = [(usage.tokens_in, "in"), (usage.tokens_cached, "of them cached"), (usage.tokens_out, "out")]
    parts = [f"{count:,} {word}" for count, word in tokens if count is not None]
    cost = dollars(usage) or "cost —"
    if unpriced and usage.cost_usd is not None:
        cost = f"at least {cost}" if usage.cost_usd >= 0.005 else "cost —"
    return f"{', '.join(parts) or 'tokens —'} · {cost}"


def time_left_words(state: LoopState) -> str:
    """How long the open tasks may take, from the recent rounds; empty if there is no list."""
    left = time_left(state)
    if left is None:
        return "too early to tell how long" if state.tasks and state.tasks.open else ""
    least, most = duration(left[0]), duration(left[1])
    return f"about {least} left" if least == most else f"about {least} – {most} left"


def totals(limits: Limits, unit: str = "round") -> list[str]:
    """Every limit of a loop."""
    rows = [
        duration(limits.seconds) if limits.seconds else "",
        f"until {moment(limits.until)}" if limits.until else "",
        f"{limits.tokens:,} tokens" if limits.tokens else "",
        f"${limits.usd:.2f}" if limits.usd else "",
        f"no waiting past {moment(limits.latest_wake)}" if limits.latest_wake else "",
    ]
    return [plural(limits.rounds, unit) if limits.rounds else f"any number of {unit}s", *filter(None, rows)]


def moment(at: datetime) -> str:
    """`07:00` if that is clear, otherwise with the date."""
    local, now = at.astimezone(), datetime.now().astimezone()
    return f"{local:%H:%M}" if abs(local - now) < timedelta(hours=20) else f"{local:%Y-%m-%d %H:%M}"


def ago(moment: datetime | None) -> str:
    """`3 m 20 ago`, `5 days ago`"""
    if moment is None:
        return ""
    passed = datetime.now(UTC) - moment
    return f"{passed.days} days ago" if passed.days > 1 else f"{duration(passed.total_seconds())} ago"
