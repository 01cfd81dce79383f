"""New limits on the command line of `resume`: durations, times, numbers, budgets."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from bydawn.core import kinds
from bydawn.core.errors import UserError
from bydawn.core.kinds import Value

if TYPE_CHECKING:
    from bydawn.core.breakers import Limits, NewLimit
    from bydawn.settings.setting import Setting

T = TypeVar("T")


def moment(text: str) -> datetime:
    """A time in the future: `07:00` (the next one, local time) or `2026-11-16T07:00`."""
    now = datetime.now(UTC)
    found = kinds.next_moment(_read(kinds.moment, text), now.astimezone())
    if found is None or found <= now:
        raise click.BadParameter(f"{text!r} is in the past")
    return found


def _read(kind: Callable[[str], T], text: str) -> T:
    try:
        return kind(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class Raise:
    """A new value for a limit: `50`, or `+20` on top of the current one."""

    def __init__(self, text: str, unit: Callable[[str], Value]) -> None:
        self._text = text
        self._adds = text.startswith("+")
        value = _read(unit, text.removeprefix("+"))
        self._value = value if isinstance(value, int | float) else 0

    def over(self, current: float | None, flag: str) -> float:
        """The new limit; `flag` is the option that sets it."""
        if self._adds and not current:
            # Adding to no limit would create one: the opposite of what is asked for.
            raise UserError(
                f"{flag} {self._text} has nothing to add to",
                cause="this loop has no such limit",
                hint=f"drop it, or set a limit for the whole loop: {flag} {self._text[1:]}",
            )
        return (current or 0) + self._value if self._adds else self._value


def new_limit(setting: "Setting") -> Callable[[str], "NewLimit"]:
    """The type of an option that changes a limit."""
    from bydawn.core.breakers import NewLimit

    field = setting.field.removeprefix("limits.")

    def at(text: str) -> NewLimit:
        found = moment(text)
        return NewLimit(field, lambda _: found)

    def more(text: str) -> NewLimit:
        wanted = Raise(text, setting.kind.read)
        return NewLimit(field, lambda limits: wanted.over(getattr(limits, field), setting.flags[-1]))

    if setting.kind is kinds.BUDGET:
        return _budget
    return at if setting.kind is kinds.MOMENT else more


def _budget(text: str) -> "NewLimit":
    """A new budget: `5usd` instead of the current one, `+3usd` on top of it."""
    from bydawn.core.breakers import NewLimit

    unit, _ = _read(kinds.budget, text.removeprefix("+"))
    wanted = Raise(text, lambda word: kinds.budget(word)[1])

    def value(current: "Limits") -> float:
        if text.startswith("+"):
            _refuse_other_unit(text, unit, current)
        if unit == "usd":
            return wanted.over(current.usd, "--budget")
        return int(wanted.over(current.tokens, "--budget"))

    return NewLimit("usd" if unit == "usd" else "tokens", value)


def _refuse_other_unit(text: str, unit: str, current: "Limits") -> None:
    """Dollars cannot be added to tokens; the budget that is used up would still stop the loop."""
    units = {"usd": ("dollars", current.usd), "tok": ("tokens", current.tokens)}
    other, amount = next((name, each[1]) for name, each in units.items() if name != unit)
    if units[unit][1] or not amount:
        return
    raise UserError(
        f"--budget {text} cannot be added to this loop's budget",
        cause=f"it is in {units[other][0]}: {kinds.amount_text(other, amount)}",
        hint=f"raise it in the same unit, for example: --budget +{kinds.amount_text(other, amount)}",
    )
