"""How a setting's value is written in a flag, a variable or a file, and how mistakes are reported."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

import msgspec

Value = str | int | float | bool | tuple[str, ...]

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0)
_LONGEST = 10 * 365 * 86400.0
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One way to write a value. `read` raises a ValueError that says how to write it."""

    wanted: str  # "a whole number", for error messages
    example: str
    read: Callable[[str], Value]
    write: Callable[[Any], str] = str
    literal: tuple[type, ...] = ()  # types allowed in a file besides a string
    schema: tuple[tuple[str, Any], ...] = (("type", "string"),)
    many: bool = False  # a list of such values

    def from_text(self, text: str) -> Value:
        """The value of an environment variable; several values are one per line."""
        return self.from_words([line for line in text.splitlines() if line.strip()] if self.many else [text])

    def from_words(self, words: Iterable[str]) -> Value:
        """The value that was typed: one word, or several where many are allowed."""
        values = tuple(self.read(word) for word in words)
        return tuple(str(value) for value in values) if self.many else values[0]

    def from_file(self, found: object) -> Value:
        """The value in a TOML file."""
        items = found if self.many and isinstance(found, list) else [found]
        return self.from_words([self._as_text(item) for item in items])

    def _as_text(self, found: object) -> str:
        if isinstance(found, bool) != (bool in self.literal) or not isinstance(found, self.literal or str):
            raise ValueError(f"{told(found)} is not {self.wanted}")
        if isinstance(found, bool):
            return yes_or_no(found)
        if isinstance(found, datetime):
            return found.isoformat()
        if isinstance(found, float):
            return f"{found:.20f}"
        return f"{found:%H:%M}" if isinstance(found, time) else str(found)

    def for_file(self, words: Sequence[str]) -> Any:
        """What to write into a TOML file for words that were checked before."""
        if self.many:
            return list(words)
        return words[0] if str in (self.literal or (str,)) else self.read(words[0])


def told(found: object) -> str:
    """A value and what it is."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a table"}
    word = kinds.get(type(found), "a date or time")
    shown = str(found).lower() if isinstance(found, bool) else f'"{found}"' if isinstance(found, str) else str(found)
    return f"{shown[:40]} ({word})"


# -- lengths of time ---------------------------------------------------------------------------------------------------


def span(text: str) -> float:
    """A duration, in seconds.

    >>> [span(t) for t in ("90", "5m", "1h30m", "0.5s", "2d")]
    [90.0, 300.0, 5400.0, 0.5, 172800.0]
    """
    match = _PARTS.fullmatch(text.strip().replace(" ", ""))
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is not a duration; write 30s, 5m, 8h or 1h30m")
    seconds = sum(float(part or 0) * size for part, size in zip(match.groups(), _SECONDS, strict=True))
    if seconds > _LONGEST:
        raise ValueError(f"{text[:20]!r} is longer than ten years")
    return seconds


def span_text(seconds: float) -> str:
    """A duration as `span` reads it.

    >>> [span_text(s) for s in (90.0, 1800.0, 5400.0, 0.5, 0.0)]
    ['1m30s', '30m', '1h30m', '0.5s', '0s']
    """
    parts, left = [], seconds
    for unit, size in zip("dhm", _SECONDS, strict=False):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count:g}{unit}")
    if left or not parts:
        parts.append(f"{left:.6f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


# -- moments -----------------------------------------------------------------------------------------------------------


def moment(text: str) -> str:
    """A time, kept as written: which instant `07:00` means is only known when a loop starts."""
    if next_moment(text, datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise ValueError(f"{text!r} is not a time; write 07:00 or 2026-11-16T07:00")
    return text


def next_moment(text: str, now: datetime) -> datetime | None:
    """The instant, in UTC, of a local time or date after `now`; None if it is neither."""
    try:
        if not re.fullmatch(r"\d{1,2}:\d{2}", text):
            return datetime.fromisoformat(text).astimezone(UTC)
        hour, minute = map(int, text.split(":"))
        today = now.astimezone().replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    except (ValueError, OverflowError):
        return None
    # By the calendar, not by adding 24 hours: the night may have a clock change.
    days = (today + timedelta(days=day) for day in range(2))
    return next((day.astimezone(UTC) for day in days if day.astimezone(UTC) > now), None)


# -- sizes, numbers, switches, texts -----------------------------------------------------------------------------------


def size(text: str) -> int:
    """A number of bytes.

    >>> [size(t) for t in ("500", "64kB", "1 GB")]
    [500, 65536, 1073741824]
    """
    match = re.fullmatch(r"(\d{1,15})\s*([kmg]?)b?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write 500MB or 1GB")
    return int(match[1]) << _UNITS[match[2]]


def size_text(count: int) -> str:
    """A number of bytes as `size` reads it.

    >>> [size_text(n) for n in (500, 65536, 1 << 30, 0)]
    ['500', '64kB', '1GB', '0']
    """
    for unit in ("g", "m", "k"):
        if count and not count % (1 << _UNITS[unit]):
            return f"{count >> _UNITS[unit]}{'k' if unit == 'k' else unit.upper()}B"
    return str(count)


def budget(text: str) -> tuple[str, float]:
    """What may be spent: `usd` or `tok`, and how much.

    >>> [budget(t) for t in ("5usd", "0.50 USD", "2Mtok", "300ktok", "900tok")]
    [('usd', 5.0), ('usd', 0.5), ('tok', 2000000.0), ('tok', 300000.0), ('tok', 900.0)]
    """
    match = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*(usd|[km]?tok)", text.strip().lower())
    if match is None or not float(match[1]):
        raise ValueError(f"{text!r} is not a budget; write 5usd or 2Mtok")
    scale = {"usd": 1.0, "tok": 1.0, "ktok": 1e3, "mtok": 1e6}[match[2]]
    return match[2][-3:], float(match[1]) * scale


def amount_text(unit: str, amount: float) -> str:
    """A budget as `budget` reads it.

    >>> [amount_text(*each) for each in (("usd", 5.0), ("usd", 0.5), ("tok", 2e6), ("tok", 1.5e3), ("tok", 900))]
    ['5usd', '0.5usd', '2Mtok', '1500tok', '900tok']
    """
    if unit == "usd":
        return f"{amount:g}usd"
    size, word = next(row for row in ((1e6, "Mtok"), (1e3, "ktok"), (1, "tok")) if row[0] == 1 or not amount % row[0])
    return f"{amount / size:.0f}{word}"


def budget_text(text: str) -> str:
    """A budget, kept as written."""
    budget(text)
    return text


def count(text: str) -> int:
    """A whole number, 0 or more."""
    if re.fullmatch("-[0-9]{1,15}", text):
        raise ValueError(f"{text!r} is less than 0; write 0 or more")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def switch(text: str) -> bool:
    if text.lower() not in (*YES, *NO):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in YES


def words(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    if "\0" in text:
        raise ValueError("it contains a zero byte")
    return text


def branch(text: str) -> str:
    """A branch, or whether there is one; git itself knows more rules about names."""
    if re.search(r"[\s~^:?*\[\\]|\.\.", words(text)):
        raise ValueError(f"{text!r} cannot be a branch; write a name such as night-1")
    return text


def pair(text: str) -> str:
    path, separator, wanted = words(text).partition("::")
    if not (path and separator and wanted):
        raise ValueError(f"{text!r} has no text to look for; write FILE::TEXT")
    return text


FIELDS = ("text", "session", "tokens_in", "tokens_cached", "tokens_out", "cost_usd")


def field(text: str) -> str:
    """Where to find a field in a line of JSON: `text=message.content`."""
    name, equals, path = words(text).partition("=")
    if name not in FIELDS or not equals or not all(path.split(".")):
        raise ValueError(f"{text!r} is not a field; write NAME=PATH.TO.IT, where NAME is {' or '.join(FIELDS)}")
    return text


def variable(text: str) -> str:
    """A variable and its value, which may be a secret: no error shows it."""
    name, equals, _ = text.partition("=")
    if not equals or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in text:
        raise ValueError("it is not a variable with its value; write NAME=VALUE")
    if name.startswith("BYDAWN_"):
        raise ValueError(f"{name} is a variable of bydawn's own; choose another name")
    return text


def address(text: str) -> str:
    """Where to send a notice; it is a secret, so no error shows it."""
    from urllib.parse import urlsplit  # few people have one

    scheme, _, rest = text.partition("://")
    if not re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", scheme) or not rest or not text.isprintable() or " " in text:
        raise ValueError("it is not an address; write https://HOST/PATH or SERVICE://…")
    try:
        if scheme.lower() in ("http", "https") and not (urlsplit(text).hostname and urlsplit(text).port != 0):
            raise ValueError
    except ValueError:
        raise ValueError("it is a web address without a valid host; write https://HOST/PATH") from None
    return text


def choice(*options: str, **aliases: str) -> Kind:
    """One of a few words; an alias (`_` for `-`) is read as the word it stands for."""
    also = {alias.replace("_", "-"): word for alias, word in aliases.items()}

    def read(text: str) -> str:
        if text not in (*options, *also):
            raise ValueError(f"{text!r} is not one of {', '.join(options)}")
        return also.get(text, text)

    wanted = f"one of {', '.join(options)}"
    return Kind(wanted=wanted, example=options[0], read=read, schema=(("enum", (*options, *also)),))


def yes_or_no(value: bool) -> str:
    return "true" if value else "false"


TEXT = Kind(wanted="a string", example="text", read=words)
BRANCH = Kind(wanted="on, off or a branch", example="night-1", read=branch)
COUNT = Kind(
    wanted="a whole number", example="30", read=count, literal=(int,), schema=(("type", "integer"), ("minimum", 0))
)
SPAN = Kind(
    wanted="a duration",
    example="30m",
    read=span,
    write=span_text,
    literal=(str, int, float),
    schema=(("type", ("string", "number")), ("minimum", 0)),
)
MOMENT = Kind(wanted="a time", example="07:00", read=moment, literal=(str, datetime, time))
SIZE = Kind(
    wanted="a size",
    example="1GB",
    read=size,
    write=size_text,
    literal=(str, int),
    schema=(("type", ("string", "integer")), ("minimum", 0)),
)
BUDGET = Kind(wanted="a budget", example="15usd", read=budget_text)
SWITCH = Kind(
    wanted="true or false",
    example="true",
    read=switch,
    write=yes_or_no,
    literal=(bool,),
    schema=(("type", "boolean"),),
)
_LIST = (("type", ("array", "string")), ("items", {"type": "string"}))
_list = partial(Kind, write="\n".join, schema=_LIST, many=True)
TEXTS = _list(wanted="a list of strings", example="text", read=words)
PAIRS = _list(wanted="a list of FILE::TEXT", example="README.md::Usage", read=pair)
VARIABLES = _list(wanted="a list of NAME=VALUE", example="NAME=value", read=variable)
ADDRESSES = _list(wanted="a list of addresses", example="https://example.org/hooks/1", read=address)
MAPPING = _list(wanted="a list of NAME=PATH", example="text=message.content", read=field)
