"""When does a usage limit end? Agents write it for people: a local time or a date, without seconds or a zone."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

LONGEST = timedelta(days=8)  # no limit lasts longer; anything beyond was misread
_JUST_NOW = timedelta(minutes=2)  # a time without seconds may already be past when it is read
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SAID = (
    r"(?i)(?:(?P<month>[a-z]{3})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}))?,? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>[ap]m)(?: \((?P<zone>[A-Za-z_/+-]+)\))?"
)


def moment(text: str, now: datetime) -> datetime | None:
    """The instant, in UTC, of a reset described in words at `now`; None if there is none.

    Without a zone, the words use the machine's own, that of `now.astimezone()`.
    """
    found = re.search(_SAID, text)
    if found is None:
        return None
    try:
        here = now.astimezone(_zone(found["zone"])) if found["zone"] else now.astimezone()
        said = here.replace(tzinfo=here.tzinfo if found["zone"] else None, **_clock(found), second=0, microsecond=0)
        said = _on_its_day(said, found, here)
    except (ValueError, KeyError, OSError):  # no such day, no such zone
        return None
    return clamped(said.astimezone(UTC), now)


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # half a megabyte that most loops never need

    return ZoneInfo(name)


def clamped(until: datetime, now: datetime) -> datetime:
    """A plausible reset: not in the past, and not longer than any limit lasts."""
    return max(now, min(until, now + LONGEST))


def _clock(found: re.Match[str]) -> dict[str, int]:
    if not 1 <= int(found["hour"]) <= 12:
        raise ValueError("not a time of day")
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    return {"hour": hour, "minute": int(found["minute"] or 0)}


def _on_its_day(said: datetime, found: re.Match[str], here: datetime) -> datetime:
    if found["month"]:
        month = _MONTHS.index(found["month"].lower()) + 1
        dated = said.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
        # Without a year, a date that is long past means next year.
        return dated.replace(year=dated.year + 1) if not found["year"] and here - _aware(dated) > LONGEST else dated
    # By the calendar, not by adding 24 hours: the night may have a clock change.
    return said if _aware(said) > here - _JUST_NOW else said + timedelta(days=1)


def _aware(said: datetime) -> datetime:
    return said if said.tzinfo else said.astimezone()
