"""How values are written on a command line: lengths of time, moments, sizes, raised limits."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import click

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0)
_LONGEST = 10 * 365 * 86400.0
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}


def span(text: str) -> float:
    """A length of time, in seconds.

    >>> [span(t) for t in ("90", "5m", "1h30m", "0.5s", "2d")]
    [90.0, 300.0, 5400.0, 0.5, 172800.0]
    """
    match = _PARTS.fullmatch(text.strip().replace(" ", ""))
    if match is None or not any(match.groups()):
        raise click.BadParameter(f"{text!r} is not a length of time; write 30s, 5m, 8h or 1h30m")
    seconds = sum(float(part or 0) * size for part, size in zip(match.groups(), _SECONDS, strict=True))
    if seconds > _LONGEST:
        raise click.BadParameter(f"{text[:20]!r} is longer than ten years")
    return seconds


def moment(text: str) -> datetime:
    """A moment to come: `07:00` (the next one, local time) or `2026-11-16T07:00`."""
    now = datetime.now(UTC)
    found = next_moment(text, now.astimezone())
    if found is None:
        raise click.BadParameter(f"{text!r} is not a moment; write 07:00 or 2026-11-16T07:00")
    if found <= now:
        raise click.BadParameter(f"{text!r} has passed already")
    return found


def next_moment(text: str, now: datetime) -> datetime | None:
    """The instant, in UTC, that a local time of day or a date means after `now`; None if it is neither."""
    try:
        if not re.fullmatch(r"\d{1,2}:\d{2}", text):
            return datetime.fromisoformat(text).astimezone(UTC)
        hour, minute = map(int, text.split(":"))
        today = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    except (ValueError, OverflowError):
        return None
    # By the calendar, not by adding 24 hours: a change of the clocks in the night does no harm.
    days = (today + timedelta(days=day) for day in range(2))
    return next(day.astimezone(UTC) for day in days if day.astimezone(UTC) > now)


def size(text: str) -> int:
    """A number of bytes.

    >>> [size(t) for t in ("500", "64kB", "1 GB")]
    [500, 65536, 1073741824]
    """
    match = re.fullmatch(r"(\d+)\s*([kmg]?)b?", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size; write 500MB or 1GB")
    return int(match[1]) << _UNITS[match[2]]


def count(text: str) -> float:
    """A whole number, not negative."""
    if not text.isdigit():
        raise click.BadParameter(f"{text!r} is not a number of rounds")
    return float(text)


class Raise:
    """A limit to put in the place of the one in force: `50`, or `+20` on top of it."""

    def __init__(self, text: str, unit: Callable[[str], float]) -> None:
        self._adds = text.startswith("+")
        self._value = unit(text.removeprefix("+"))

    def over(self, current: float | None) -> float:
        return (current or 0) + self._value if self._adds else self._value


def more(unit: Callable[[str], float]) -> Callable[[str], Raise]:
    """The kind of option that raises a limit counted in this unit."""
    return lambda text: Raise(text, unit)


def over(current: float | None, wanted: Raise | None) -> float | None:
    """The limit in force from now on."""
    return current if wanted is None else wanted.over(current)
