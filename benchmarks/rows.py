"""What is measured, how much of it is allowed, and how that is shown."""

from collections.abc import Iterable, Sequence

import msgspec

WORSE_WHEN_LOWER = {"times as fast"}


class Budget(msgspec.Struct, frozen=True):
    """A figure and its limit. Units that begin with × are ratios of two figures of the same run."""

    name: str
    limit: float
    unit: str

    def row(self, value: float) -> "Row":
        ok = value >= self.limit if self.unit in WORSE_WHEN_LOWER else value <= self.limit
        return Row(name=self.name, value=round(value, 3), budget=self.limit, unit=self.unit, ok=ok)

    def asked_for(self, words: Sequence[str]) -> bool:
        return not words or any(word in self.name for word in words)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A budget with the figure that was measured."""

    name: str
    value: float
    budget: float
    unit: str
    ok: bool


HEADER = f"{'':<46} {'value':>8}    {'budget':>6}  unit"


def line(row: Row) -> str:
    """One row of the table; what is over budget ends with a mark."""
    sign = "≥" if row.unit in WORSE_WHEN_LOWER else "≤"
    shown = f"{row.name:<46} {row.value:>8.2f}  {sign} {row.budget:>6g}  {row.unit}"
    return shown if row.ok else f"{shown:<84} ← over budget"


def as_json(rows: Iterable[Row]) -> str:
    return msgspec.json.encode({"rows": list(rows)}).decode()
