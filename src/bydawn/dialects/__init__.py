"""Other tools' command lines and files, spoken by us. A dialect is a module and a line in this table."""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bydawn.dialects.seam import Dialect


class Row(NamedTuple):
    """Where a dialect is, and which of its commands start no loop; known without loading it."""

    module: str
    looks: frozenset[str]


TABLE: dict[str, Row] = {
    "waylon-smithers": Row("waylon", frozenset({"status", "list", "cancel", "install-helpers"})),
}


def find(name: str) -> "Dialect":
    """The dialect of that name, which stands in the table."""
    dialect: Dialect = import_module(f"bydawn.dialects.{TABLE[name].module}").DIALECT
    return dialect


def starts_a_loop(name: str, words: list[str]) -> bool:
    """Does this command line start a loop, or go on with one?"""
    return bool(words) and words[0] not in TABLE[name].looks | {"-h", "--help", "--version"}
