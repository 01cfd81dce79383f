"""How limits are raised on a command line: lengths of time, moments, numbers."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from bydawn.core import kinds
from bydawn.core.errors import UserError

if TYPE_CHECKING:
    from bydawn.core.loop import Limits

T = TypeVar("T")


def span(text: str) -> float:
    """A length of time, in seconds."""
    return _read(kinds.span, text)


def count(text: str) -> float:
    """A whole number, not negative."""
    return _read(kinds.count, text)


def moment(text: str) -> datetime:
    """A moment to come: `07:00` (the next one, local time) or `2026-11-16T07:00`."""
    now = datetime.now(UTC)
    found = kinds.next_moment(_read(kinds.moment, text), now.astimezone())
    if found is None or found <= now:
        raise click.BadParameter(f"{text!r} has passed already")
    return found


def _read(kind: Callable[[str], T], text: str) -> T:
    try:
        return kind(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class Raise:
    """A limit to put in the place of the one in force: `50`, or `+20` on top of it."""

    def __init__(self, text: str, unit: Callable[[str], float]) -> None:
        self._text = text
        self._adds = text.startswith("+")
        self._value = unit(text.removeprefix("+"))

    def over(self, current: float | None, flag: str) -> float:
        """The limit in force from now on; `flag` is what asks for it."""
        if self._adds and not current:
            # From nothing on it would be a limit where there was none: the very opposite of what is asked for.
            raise UserError(
                f"there is no limit that {flag} {self._text} could be added to",
                cause="this loop has none",
                hint=f"leave it away, or set one, counted from the loop's beginning: {flag} {self._text[1:]}",
            )
        return (current or 0) + self._value if self._adds else self._value


def more(unit: Callable[[str], float]) -> Callable[[str], Raise]:
    """The kind of option that raises a limit counted in this unit."""
    return lambda text: Raise(text, unit)


def budget(text: str) -> Callable[["Limits"], dict[str, float]]:
    """What raises a budget: `5usd` in its place, `+3usd` on top of it."""
    unit, _ = _read(kinds.budget, text.removeprefix("+"))
    wanted = Raise(text, lambda word: kinds.budget(word)[1])

    def raised(current: "Limits") -> dict[str, float]:
        if text.startswith("+"):
            _refuse_other_unit(text, unit, current)
        if unit == "usd":
            return {"usd": wanted.over(current.usd, "--budget")}
        return {"tokens": int(wanted.over(current.tokens, "--budget"))}

    return raised


def _refuse_other_unit(text: str, unit: str, current: "Limits") -> None:
    """Dollars cannot be added to tokens, and whoever is told to set both still stands at the one that is used up."""
    units = {"usd": ("dollars", current.usd), "tok": ("tokens", current.tokens)}
    other, amount = next((name, each[1]) for name, each in units.items() if name != unit)
    if units[unit][1] or not amount:
        return
    raise UserError(
        f"--budget {text} cannot be added to this loop's budget",
        cause=f"that is in {units[other][0]}: {kinds.amount_text(other, amount)}",
        hint=f"raise that one, for example by as much again: --budget +{kinds.amount_text(other, amount)}",
    )
