"""Another tool's configuration, checked against a table of its keys; every mistake has its file and line."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import isfinite
from posixpath import normpath

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.kinds import told
from bydawn.core.text import PLACEHOLDER, fit, near, visible

Scalar = str | int | float | bool | None

_REMARKS = 20
_MOST = 10**9  # of anything that is counted, and of seconds: thirty years


class Node(msgspec.Struct, frozen=True):
    """A value in a file: its line (that of its key, if it has one), and where it is in the text."""

    line: int
    value: "Scalar | tuple[Node, ...] | dict[str, Node]"
    start: int = 0
    end: int = 0
    flow: bool = False  # a list or a mapping in brackets


class Kind(StrEnum):
    """What a key takes, in the words of an error."""

    TEXT = "a text"
    TEXTS = "a list of texts"
    SWITCH = "true or false"
    COUNT = "a whole number"
    SECONDS = "a number of seconds"
    NUMBER = "a number"
    PATH = "a path inside the repository"
    ITEMS = "a list of mappings"


class Key(msgspec.Struct, frozen=True):
    """A key of the file. One without a default must be there, unless it may be null."""

    path: str  # "codex.args"
    kind: Kind
    default: "str | float | bool | tuple[str, ...] | None" = None  # an empty tuple for items, too
    nullable: bool = False
    least: float = 0  # of a number
    most: float = _MOST
    keys: "tuple[Key, ...]" = ()  # of each item

    @property
    def wanted(self) -> str:
        span = f", {self.least:g} or more" if self.most == _MOST else f", {self.least:g} to {self.most:,}"
        span = span if self.kind in (Kind.COUNT, Kind.SECONDS, Kind.NUMBER) else ""
        return f"{self.kind}{span}{', or null' if self.nullable else ''}"

    @property
    def example(self) -> str:
        shown = PLACEHOLDER if self.default is None else msgspec.json.encode(self.default).decode()
        return f"{self.path.rpartition('.')[2]}: {'null' if self.nullable and self.default is None else shown}"


Value = Scalar | tuple[str, ...] | tuple["Checked", ...]


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, by key, with defaults; and what is odd about it."""

    name: str
    values: dict[str, Value]
    lines: dict[str, int]  # of what the file sets; a member of a list is "codex.args.0"
    remarks: tuple[str, ...] = ()

    def where(self, path: str) -> str:
        """The file and line of a key; only the file if it is not set there."""
        return f"{self.name}:{self.lines[path]}" if path in self.lines else self.name

    def text(self, path: str) -> str:
        """A text or a path; empty if it is null."""
        return value if isinstance(value := self.values[path], str) else ""

    def texts(self, path: str) -> tuple[str, ...]:
        return tuple(each for each in self._members(path) if isinstance(each, str))

    def items(self, path: str) -> "tuple[Checked, ...]":
        return tuple(each for each in self._members(path) if isinstance(each, Checked))

    def _members(self, path: str) -> "tuple[str | Checked, ...]":
        return value if isinstance(value := self.values[path], tuple) else ()

    def switch(self, path: str) -> bool:
        return self.values[path] is True

    def count(self, path: str) -> int | None:
        return value if isinstance(value := self.values[path], int) else None

    def number(self, path: str) -> float | None:
        return float(value) if isinstance(value := self.values[path], int | float) else None


def wrong(name: str, line: int, what: str, cause: str, hint: str) -> UserError:
    """An error about one line of a file."""
    return UserError(f"{name}:{line}: {what}", cause=cause, hint=hint)


def checked(top: Node, keys: Sequence[Key], name: str) -> Checked:
    """The values of a mapping; the first wrong one is an error, unknown keys are remarks."""
    values: dict[str, Value] = {}
    lines: dict[str, int] = {}
    remarks = _remarks(top, [key.path for key in keys], name)
    for key in keys:
        node = _at(top, key.path, name)
        if node is None:
            if key.default is None and not key.nullable:
                raise wrong(name, top.line, f"{key.path} is missing", f"it must be {key.wanted}", f"add {key.example}")
            values[key.path] = key.default
            continue
        values[key.path] = found = _value(key, node, name)
        lines[key.path] = node.line
        if isinstance(found, tuple) and isinstance(node.value, tuple):
            lines |= {f"{key.path}.{number}": each.line for number, each in enumerate(node.value)}
            remarks += [remark for each in found if isinstance(each, Checked) for remark in each.remarks]
    return Checked(name=name, values=values, lines=lines, remarks=tuple(remarks[: _REMARKS + 1]))


def _at(top: Node, path: str, name: str) -> Node | None:
    """The node of a key; an empty section sets nothing."""
    node: Node | None = top
    for part in path.split("."):
        if node is None or node.value is None:
            return None
        if not isinstance(node.value, dict):
            cause = f"{_told(node)}, but {path} belongs in it"
            raise wrong(name, node.line, "expected a mapping here", cause, "write `key: value` lines below it")
        node = node.value.get(part)
    return node


def _remarks(top: Node, known: Sequence[str], name: str) -> list[str]:
    """A sentence about each key that is not in the table, and one about the rest if there are many."""
    unknown = [*_unknown(top, known)]
    remarks = []
    for path, line in unknown[:_REMARKS]:
        question = "" if path in known else near(path, known)  # one name with a dot in it is not two
        shown = f"{name}:{line}: unknown key {fit(path, 60)!r} has no effect"
        remarks.append(f"{shown}; {question}".rstrip("; "))
    more = len(unknown) - _REMARKS
    return [*remarks, f"{name}: {more} more unknown keys have no effect"] if more > 0 else remarks


def _unknown(node: Node, known: Sequence[str], above: str = "") -> Iterator[tuple[str, int]]:
    for word, inner in node.value.items() if isinstance(node.value, dict) else ():
        path = f"{above}{word}"
        if "." in word or not any(each == path or each.startswith(f"{path}.") for each in known):
            yield path, inner.line
        elif path not in known:
            yield from _unknown(inner, known, f"{path}.")


# -- one value ---------------------------------------------------------------------------------------------------------


def _value(key: Key, node: Node, name: str) -> Value:
    value = node.value
    match key.kind:
        case _ if value is None and key.nullable:
            return None
        case Kind.ITEMS if isinstance(value, tuple):
            if wrong_one := next((each for each in value if not isinstance(each.value, dict)), None):
                raise _refused(key, wrong_one, name)
            return tuple(checked(each, key.keys, name) for each in value)
        case Kind.TEXTS if isinstance(value, tuple):
            return tuple(_text(key, each, name) for each in value)
        case Kind.TEXT:
            return _text(key, node, name)
        case Kind.PATH:
            return _path(key, node, name)
        case Kind.SWITCH if isinstance(value, bool):
            return value
        case Kind.COUNT | Kind.SECONDS | Kind.NUMBER if isinstance(value, int | float) and not isinstance(value, bool):
            whole = key.kind is not Kind.COUNT or isinstance(value, int)
            if whole and isfinite(value) and key.least <= value <= key.most:
                return value
    raise _refused(key, node, name)


def _text(key: Key, node: Node, name: str) -> str:
    if not isinstance(node.value, str) or not node.value.strip():
        raise _refused(key, node, name)
    return node.value


def _path(key: Key, node: Node, name: str) -> str:
    """Without a detour through `.`; what could lead out of the repository, or looks like an option, is refused."""
    text = _text(key, node, name)
    if text[0] in "/~-" or ".." in text.split("/") or normpath(text) == "." or not text.isprintable():
        raise _refused(key, node, name)
    return normpath(text)


def _refused(key: Key, node: Node, name: str) -> UserError:
    return wrong(name, node.line, f"{key.path} must be {key.wanted}", _told(node), f"write {key.example}")


def _told(node: Node) -> str:
    """What it is instead."""
    if isinstance(node.value, str | int | float):
        return f"it is {visible(told(node.value))}"
    return "it is empty" if node.value is None else f"it is a {'list' if isinstance(node.value, tuple) else 'mapping'}"
