"""What is measured, how much of it is allowed, and how that is shown."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from benchmarks.stage import Stage

HEADER = f"  {'':<48} {'value':>8}   {'budget':>6}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `--json`."""

    name: str
    value: float
    budget: float
    unit: str
    ok: bool


class Budget(msgspec.Struct, frozen=True):
    """A figure and its limit; the unit × marks a ratio of two figures of the same run."""

    name: str
    limit: float
    unit: str
    at_least: bool = False  # most figures may not be higher than their limit, a few not lower

    def kept_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def asked_for(self, words: Sequence[str]) -> bool:
        return not words or any(word in self.name for word in words)

    def row(self, value: float) -> Row:
        return Row(name=self.name, value=round(value, 3), budget=self.limit, unit=self.unit, ok=self.kept_by(value))

    def line(self, value: float) -> str:
        """One line of the table; a figure over budget is marked."""
        sign, mark = "≥" if self.at_least else "≤", "" if self.kept_by(value) else "  ← over budget"
        return f"  {self.name:<48} {value:>8.2f} {sign} {self.limit:>6g} {self.unit:<9}{mark}".rstrip()


class Bench(msgspec.Struct, frozen=True):
    """Figures that are measured together, in the order of their budgets."""

    budgets: tuple[Budget, ...]
    measure: Callable[[Stage], Iterable[float]]
