"""Another tool's configuration, checked against a table of its keys; every mistake has its file and line."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from math import isfinite
from posixpath import normpath
from types import NoneType
from typing import Any, TypeVar, get_type_hints

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.kinds import address, told, variable
from bydawn.core.options import parts_of
from bydawn.core.text import PLACEHOLDER, fit, near, visible

Scalar = str | int | float | bool | None

_REMARKS = 20
_MOST = 10**9  # of anything that is counted, and of seconds: thirty years


class Node(msgspec.Struct, frozen=True):
    """A value in a file: its line (that of its key, if it has one), and where it is in the text.

    One that was typed, or is in the environment, has line 0.
    """

    line: int
    value: "Scalar | tuple[Node, ...] | dict[str, Node]"
    start: int = 0
    end: int = 0
    flow: bool = False  # a list or a mapping in brackets


class Kind(StrEnum):
    """What a key takes, in the words of an error."""

    TEXT = "a text"
    LINE = "a line of text"
    CHOICE = "one of"
    ADDRESS = "a web address"
    TEXTS = "a list of texts"
    SWITCH = "true or false"
    COUNT = "a whole number"
    SECONDS = "a number of seconds"
    PATH = "a path inside the project"
    ITEMS = "a list of mappings"
    VARIABLES = "a mapping of names to texts"


class Key(msgspec.Struct, frozen=True):
    """A key of the file. One without a default must be there, unless it may be null.

    In the annotation of a struct's field it says what the field does not; `keys_of` completes it.
    """

    path: str = ""  # "codex.args"
    kind: Kind = Kind.LINE
    default: "str | float | bool | tuple[str, ...] | dict[str, str] | None" = None  # an empty tuple for items, too
    nullable: bool = False
    least: float = 0  # of a number
    most: float = _MOST
    keys: "tuple[Key, ...]" = ()  # of each item
    choices: tuple[str, ...] = ()
    without: str = ""  # characters that a line must not have
    variable: str = ""  # of the environment, if one sets it
    asks_to_raise: bool = False  # a project's file needs trust to raise it above what the user has
    field: str = ""  # of the struct that the file becomes
    must: bool = False  # be there, although the field has a default

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def flag(self) -> str:
        """The option that sets it, if there is one."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_words(self) -> bool:
        """Is a text its value as it is?"""
        return self.kind in (Kind.TEXT, Kind.LINE, Kind.CHOICE, Kind.ADDRESS, Kind.PATH)

    @property
    def wanted(self) -> str:
        span = f", {self.least:g} or more" if self.most == _MOST else f", {self.least:g} to {self.most:,}"
        span = span if self.kind in (Kind.COUNT, Kind.SECONDS) else ""
        span = f" {', '.join(self.choices)}" if self.choices else span
        span = f" without {' and '.join(self.without)}" if self.without else span
        return f"{self.kind}{span}{', or null' if self.nullable else ''}"

    @property
    def example(self) -> str:
        shown = PLACEHOLDER if self.default is None else msgspec.json.encode(self.default).decode()
        return f"{self.name}: {'null' if self.nullable and self.default is None else shown}"


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or several layers, read into a struct whose fields are its keys."""

    where: dict[str, str] = {}  # in which line a key is, or what else sets it
    remarks: tuple[str, ...] = ()  # about what has no effect


C = TypeVar("C", bound=Configuration)
_USUAL = {bool: Kind.SWITCH, int: Kind.COUNT, float: Kind.SECONDS, tuple: Kind.TEXTS, dict: Kind.VARIABLES}


def keys_of(struct: type[msgspec.Struct], above: str = "") -> Iterator[Key]:
    """The keys of a struct: what each field's type and default say, and a `Key` in its annotation.

    A field that is a struct is a section; a tuple of structs is a list of mappings.
    """
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        if field.name in Configuration.__struct_fields__:
            continue
        parts, place = [*parts_of(hints[field.name])], f"{above}{field.name}"
        said = next((each for each in parts if isinstance(each, Key)), Key())
        inner = next((each for each in parts if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)
        if inner and tuple not in parts:
            yield from keys_of(inner, f"{place}.")
            continue
        usual = next((kind for type_, kind in _USUAL.items() if type_ in parts), Kind.LINE)
        yield msgspec.structs.replace(
            said,
            path=said.path or place,
            field=place,
            kind=Kind.ITEMS if inner else usual if said.kind is Kind.LINE else said.kind,
            keys=tuple(keys_of(inner)) if inner else (),
            default=None if said.must else _default(field),
            nullable=said.nullable or NoneType in parts,
        )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """As people write it; None if there is none."""
    found = field.default_factory() if callable(field.default_factory) else field.default
    found = int(found) if isinstance(found, float) and found.is_integer() else found
    return None if found is msgspec.NODEFAULT else found


def filled(struct: type[C], found: "Checked", keys: Sequence[Key]) -> C:
    """The struct, from what its file or its layers say."""
    where = {key.path: found.where(key.path) for key in keys}
    fields: dict[str, Any] = {"where": where, "remarks": found.remarks}
    for key in keys:
        *sections, name = key.field.split(".")
        section = reduce(lambda inner, each: inner.setdefault(each, {}), sections, fields)
        items = [each.values for each in found.items(key.path)]
        section[name] = items if key.kind is Kind.ITEMS else found.values[key.path]
    return msgspec.convert(fields, struct)


Value = Scalar | tuple[str, ...] | tuple["Checked", ...] | dict[str, str]


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, by key, with defaults; and what is odd about it."""

    name: str
    values: dict[str, Value]
    lines: dict[str, int]  # of what the file sets; a member of a list is "codex.args.0"
    remarks: tuple[str, ...] = ()
    places: dict[str, str] = {}  # of several layers: where each key is set
    project: "Checked | None" = None  # of several layers: the project's file alone
    raised: tuple[str, ...] = ()  # what a project's file raises above what the user has

    def where(self, path: str) -> str:
        """The file and line of a key, or the variable or option; only the file if it is not set there."""
        line = self.lines.get(path)
        return self.places.get(path) or (f"{self.name}:{line}" if line else self.name)

    def items(self, path: str) -> "tuple[Checked, ...]":
        """The mappings of a list."""
        value = self.values[path]
        return tuple(each for each in value if isinstance(each, Checked)) if isinstance(value, tuple) else ()


def wrong(name: str, line: int, what: str, cause: str, hint: str) -> UserError:
    """An error about one line of a file; what was typed has no line."""
    return UserError(f"{name}:{line}: {what}" if line else what, cause=cause, hint=hint)


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


def typed(key: Key, node: Node, name: str) -> Checked:
    """What a variable or an option of that name says, by the same rules as in a file."""
    return Checked(name=name, values={key.path: _value(key, node, name)}, lines={key.path: 0})


def stacked(keys: Sequence[Key], layers: Sequence[Checked], project: str) -> Checked:
    """Several layers as one: of each key the last that sets it. `project` is the name of the project's file."""
    values: dict[str, Value] = {key.path: key.default for key in keys}
    places: dict[str, str] = {}
    higher: tuple[str, ...] = ()
    for layer in layers:
        higher = raised(keys, layer, values) if layer.name == project else higher
        for path in (each.path for each in keys if each.path in layer.lines):
            values[path], places[path] = layer.values[path], layer.where(path)
    remarks = tuple(remark for layer in layers for remark in layer.remarks)
    alone = next((layer for layer in layers if layer.name == project), None)
    higher = tuple(path for path in higher if alone and places[path] == alone.where(path))
    return Checked(
        name="default", values=values, lines={}, remarks=remarks, places=places, project=alone, raised=higher
    )


def raised(keys: Sequence[Key], project: Checked, before: Mapping[str, Value]) -> tuple[str, ...]:
    """What a project's file raises, of that which it needs trust to raise."""
    asked = (key.path for key in keys if key.asks_to_raise and key.path in project.lines)
    return tuple(path for path in asked if _is_more(project.values[path], before[path]))


def _is_more(one: Value, other: Value) -> bool:
    return isinstance(one, int | float) and isinstance(other, int | float) and one > other


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
        case Kind.LINE | Kind.ADDRESS if value == "" and key.nullable and node.line:  # as some files say it
            return None
        case Kind.ITEMS if isinstance(value, tuple):
            if wrong_one := next((each for each in value if not isinstance(each.value, dict)), None):
                raise _refused(key, wrong_one, name)
            return tuple(checked(each, key.keys, name) for each in value)
        case Kind.TEXTS if isinstance(value, tuple):
            return tuple(_text(key, each, name) for each in value)
        case Kind.TEXT:
            return _text(key, node, name)
        case Kind.LINE if (line := _text(key, node, name)).isprintable() and not {*line} & {*key.without}:
            return line
        case Kind.CHOICE if value in key.choices and isinstance(value, str):
            return value
        case Kind.ADDRESS if isinstance(value, str) and not _not_an_address(value):
            return value
        case Kind.VARIABLES if isinstance(value, dict):
            return {word: _variable(key, word, each, name) for word, each in value.items()}
        case Kind.PATH:
            return _path(key, node, name)
        case Kind.SWITCH if isinstance(value, bool):
            return value
        case Kind.COUNT | Kind.SECONDS if isinstance(value, int | float) and not isinstance(value, bool):
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


def _not_an_address(text: str) -> str:
    """What is wrong with a web address; it may be a secret, so it is not shown."""
    if not text.lower().startswith(("http://", "https://")):
        return "it does not begin with https:// or http://"
    try:
        address(text)
    except ValueError as error:
        return str(error).partition(";")[0]
    return ""


def _variable(key: Key, word: str, node: Node, name: str) -> str:
    path = visible(fit(f"{key.path}.{word}", 60))
    if not isinstance(node.value, str):  # it may be a secret, so it is not shown
        raise wrong(name, node.line, f"{path} must be a text", "another kind of value is there", "put it in quotes")
    try:
        variable(f"{word}={node.value}")
    except ValueError as error:
        raise wrong(name, node.line, f"{path} cannot be a variable", str(error), "choose another name") from None
    return node.value


def _refused(key: Key, node: Node, name: str) -> UserError:
    cause, hint = _told(node), f"write {key.example}" if node.line else f"for example {key.example.partition(': ')[2]}"
    if isinstance(text := node.value, str):
        if key.kind is Kind.ADDRESS:
            cause, hint = _not_an_address(text), "write https://HOST/PATH"
        elif key.kind is Kind.PATH and (text.startswith("/") or ".." in text.split("/")):
            cause = f"{cause}, which leads out of it"
        hint = near(text, key.choices).rstrip() or hint
    return wrong(name, node.line, f"{key.path if node.line else name} must be {key.wanted}", cause, hint)


def _told(node: Node) -> str:
    """What it is instead."""
    if isinstance(node.value, str | int | float):
        return f"it is {visible(told(node.value)).replace(chr(10), '⏎')}"
    return "it is empty" if node.value is None else f"it is a {'list' if isinstance(node.value, tuple) else 'mapping'}"
