"""`--since` and `--until`: a time says when only together with its zone."""

from datetime import datetime

import msgspec

from bydawn.core.errors import UserError

_EXAMPLE = "2026-01-06T12:00Z"


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """From the one to the other, both included; without either, always."""

    since: datetime | None = None
    until: datetime | None = None

    def has(self, timestamp: str | None) -> bool:
        if self.since is None and self.until is None:
            return True
        at = _time(timestamp or "")
        if at is None or at.tzinfo is None:
            return False
        return (self.since is None or self.since <= at) and (self.until is None or at <= self.until)

    def begins_after(self, timestamp: str | None) -> bool:
        at = _time(timestamp or "")
        return self.since is not None and at is not None and at.tzinfo is not None and at <= self.since


def period(since: str | None, until: str | None) -> Period:
    """What a person typed; refused if it can be read in two ways."""
    found = Period(since=_typed("--since", since), until=_typed("--until", until))
    if found.since and found.until and found.since > found.until:
        cause = f"nothing is both after {since} and before {until}"
        raise UserError("--since is later than --until", cause=cause, hint="exchange the two")
    return found


def _typed(flag: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    at = _time(text)
    if at is None:
        hint = f"write date and time with their zone: {flag} {_EXAMPLE}"
        raise UserError(f"{flag} {text!r} is not a time", cause="expected one as in ISO 8601", hint=hint)
    if at.tzinfo is None:
        with_time = text if "T" in text or " " in text else f"{text}T00:00"
        raise UserError(
            f"{flag} {text!r} has no time zone",
            cause="the same time is another moment in another zone",
            hint=f"add Z for UTC, or an offset such as +01:00: {flag} {with_time}Z",
        )
    return at


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
