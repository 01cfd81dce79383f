"""Amounts and times in words: rounds, tasks, tokens, money."""

from datetime import UTC, datetime, timedelta

from bydawn.core.breakers import Limits
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


def used(usage: Usage | None, *, unpriced: bool = False) -> str:
    """What was used, if agents report it; what is unknown is `—`, never zero."""
    if usage is None:
        return "—"
    tokens = [(usage.tokens_in, "in"), (usage.tokens_cached, "of them cached"), (usage.tokens_out, "out")]
    parts = [f"{count:,} {word}" for count, word in tokens if count is not None]
    cost = f"${usage.cost_usd:.2f}" if usage.cost_usd is not None else "cost —"
    if unpriced and usage.cost_usd is not None:
        cost = f"at least {cost}" if usage.cost_usd >= 0.005 else "cost —"
    return f"{', '.join(parts) or 'tokens —'} · {cost}"


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
    return f"{duration((datetime.now(UTC) - moment).total_seconds())} ago" if moment else ""
