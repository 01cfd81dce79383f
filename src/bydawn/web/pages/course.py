"""The course of a loop as small plots: shapes in a box of 240 by 58, with all words beside it."""

from collections.abc import Sequence
from statistics import median

import msgspec

from bydawn.core.breakers import limits_of
from bydawn.core.text import duration
from bydawn.operations.recent import Recent
from bydawn.operations.rounds import RoundRow, Tick
from bydawn.store.registry import Standing

WIDTH, HEIGHT = 240, 58
_GAP = 0.14  # between two bars, as a part of one


class Shape(msgspec.Struct, frozen=True):
    """One element of an SVG, and how it looks."""

    tag: str  # path, rect or line
    look: str
    at: dict[str, str]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    caption: str  # the same in a sentence
    top: str
    bottom: str
    shapes: tuple[Shape, ...]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The plots of one round, in figures."""

    round: int
    open: int | None
    seconds: float | None
    cost: float | None
    added: int | None
    removed: int | None


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """All plots over the same rounds."""

    first: int
    last: int
    plots: tuple[Plot, ...]
    table: tuple[Figures, ...]


def course(standing: Standing, history: Recent) -> Course | None:
    """None before two rounds have ended."""
    rounds = [row for row in history.rounds if row.attempt.ended]
    if len(rounds) < 2:
        return None
    table = tuple(_figures(row) for row in rounds)
    found = (_open_tasks(rounds, table), _minutes(rounds, table), _cost(standing, table), _lines(table))
    plots = tuple(plot for plot in found if plot)
    return Course(first=rounds[0].number, last=rounds[-1].number, plots=plots, table=table)


def _figures(row: RoundRow) -> Figures:
    ended = row.attempt.ended
    usage, lines = (ended.usage, ended.found.changes.lines) if ended else (None, None)
    return Figures(
        round=row.number,
        open=row.open_tasks,
        seconds=row.seconds,
        cost=usage.cost_usd if usage else None,
        added=lines.added if lines else None,
        removed=lines.removed if lines else None,
    )


def _number(value: float) -> str:
    """
    >>> _number(12.0), _number(3.14159)
    ('12', '3.1')
    """
    return f"{value:.1f}".removesuffix(".0")


def _rect(x: float, y: float, width: float, height: float, look: str) -> Shape:
    at = {"x": x, "y": y, "width": width, "height": height}
    return Shape("rect", look, {name: _number(value) for name, value in at.items()})


def _level(y: float, look: str) -> Shape:
    return Shape("line", look, {"x1": "0", "x2": str(WIDTH), "y1": _number(y), "y2": _number(y)})


def _curve(points: Sequence[tuple[float, float]], *, steps: bool) -> tuple[Shape, Shape]:
    """A line, and the area below it."""
    first, *rest = points
    drawn = f"M{_number(first[0])} {_number(first[1])}"
    for x, y in rest:
        drawn += f"H{_number(x)}V{_number(y)}" if steps else f"L{_number(x)} {_number(y)}"
    area = f"{drawn}L{_number(points[-1][0])} {HEIGHT}L{_number(first[0])} {HEIGHT}Z"
    return Shape("path", "area", {"d": area}), Shape("path", "line", {"d": drawn})


def _open_tasks(rounds: list[RoundRow], table: Sequence[Figures]) -> Plot | None:
    known = [row.open for row in table if row.open is not None]
    if not known:
        return None
    ended = rounds[0].attempt.ended
    begun = known[0] + (len(ended.found.closed) if ended else 0)
    most, step, now = max(begun, *known) or 1, WIDTH / len(table), begun
    points = [(0.0, HEIGHT * (1 - begun / most))]
    for place, row in enumerate(table, 1):
        now = now if row.open is None else row.open
        points.append((place * step, HEIGHT * (1 - now / most)))
    return Plot(
        title="Open tasks",
        caption=f"{begun} at first, {now} now" if rounds[0].number == 1 else f"{begun} before these, {now} now",
        top=str(most),
        bottom="0",
        shapes=(_level(0, "frame-line"), _level(HEIGHT, "frame-line"), *_curve(points, steps=True)),
    )


def _minutes(rounds: list[RoundRow], table: Sequence[Figures]) -> Plot | None:
    known = [(row.seconds, row.round) for row in table if row.seconds]
    if not known:
        return None
    (longest, number), step = max(known), WIDTH / len(table)
    bars = [_level(HEIGHT, "frame-line")]
    for place, (row, past) in enumerate(zip(table, rounds, strict=True)):
        tall = HEIGHT * (row.seconds or 0) / longest
        look = "hollow" if past.tick is Tick.RED else "bars"
        bars.append(_rect((place + _GAP / 2) * step, HEIGHT - tall, step * (1 - _GAP), tall, look))
    usual = duration(median(seconds for seconds, _ in known))
    caption = f"median {usual}, longest {duration(longest)} (round {number})"
    return Plot(title="Time per round", caption=caption, top=duration(longest), bottom="0", shapes=tuple(bars))


def _cost(standing: Standing, table: Sequence[Figures]) -> Plot | None:
    """Left out if it is not known of every round."""
    state = standing.state
    if state.usage is None or state.usage.cost_usd is None or state.unpriced:
        return None
    total, cap = state.usage.cost_usd, limits_of(standing.loop, state).usd or 0
    now = max(0.0, total - sum(row.cost or 0 for row in table))
    most, step = max(total, cap) or 1, WIDTH / len(table)
    points = [(0.0, HEIGHT * (1 - now / most))]
    for place, row in enumerate(table, 1):
        now += row.cost or 0
        points.append((place * step, HEIGHT * (1 - now / most)))
    return Plot(
        title="Cost so far",
        caption=f"${total:.2f} of ${cap:.2f}" if cap else f"${total:.2f}",
        top=f"${most:.2f}",
        bottom="$0",
        shapes=(
            *([_level(HEIGHT * (1 - cap / most), "cap")] if cap else []),
            _level(HEIGHT, "frame-line"),
            *_curve(points, steps=False),
        ),
    )


def _lines(table: Sequence[Figures]) -> Plot | None:
    added = [row.added or 0 for row in table]
    removed = [row.removed or 0 for row in table]
    if not sum(added) + sum(removed):
        return None
    unit, step = HEIGHT / (max(added) + max(removed)), WIDTH / len(table)
    middle, width = max(added) * unit, step * (1 - _GAP)
    bars = [_level(middle, "frame-line")]
    for place, (more, fewer) in enumerate(zip(added, removed, strict=True)):
        x = (place + _GAP / 2) * step
        bars += [_rect(x, middle - more * unit, width, more * unit, "added")] if more else []
        bars += [_rect(x, middle, width, fewer * unit, "removed")] if fewer else []
    return Plot(
        title="Lines changed",
        caption=f"+{sum(added):,} −{sum(removed):,}",
        top=f"+{max(added):,}",
        bottom=f"−{max(removed):,}",
        shapes=tuple(bars),
    )
