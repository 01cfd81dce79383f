"""When does a usage limit end? Agents say it to people: a local time of day, or a date, without seconds or a zone."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

LONGEST = timedelta(days=8)  # no limit lasts longer; what says so was misunderstood
_JUST_NOW = timedelta(minutes=2)  # a time without seconds may be past already when it is read
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SAID = (
    r"(?i)(?:(?P<month>[a-z]{3})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}))?,? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>[ap]m)(?: \((?P<zone>[A-Za-z_/+-]+)\))?"
)


def moment(text: str, now: datetime) -> datetime | None:
    """The instant, in UTC, that a reset said in words means at `now`; None if it says none.

    Without a zone the words are in the machine's own, which is that of `now.astimezone()`.
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
    from zoneinfo import ZoneInfo  # half a megabyte that a loop without such a limit can do without

    return ZoneInfo(name)


def clamped(until: datetime, now: datetime) -> datetime:
    """A reset as it is believed: not in the past, and not beyond what any limit lasts."""
    return max(now, min(until, now + LONGEST))


def _clock(found: re.Match[str]) -> dict[str, int]:
    if not 1 <= int(found["hour"]) <= 12:
        raise ValueError("no clock says that")
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    return {"hour": hour, "minute": int(found["minute"] or 0)}


def _on_its_day(said: datetime, found: re.Match[str], here: datetime) -> datetime:
    if found["month"]:
        month = _MONTHS.index(found["month"].lower()) + 1
        dated = said.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
        # Without a year, a date that has long passed is one of the next year.
        return dated.replace(year=dated.year + 1) if not found["year"] and here - _aware(dated) > LONGEST else dated
    # By the calendar, not by adding 24 hours: a change of the clocks in the night does no harm.
    return said if _aware(said) > here - _JUST_NOW else said + timedelta(days=1)


def _aware(said: datetime) -> datetime:
    return said if said.tzinfo else said.astimezone()
