"""YAML, as other tools' configuration has it: plain data with its lines, and one value changed in place.

It works on the parser's events and the text. ruamel's round trip keeps tags, re-indents, and fails on deep input.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core import keys
from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Key, Node, Scalar, Value, wrong
from bydawn.core.text import fit, visible
from bydawn.system.reading import read_text

AT_MOST = 1 << 20  # bytes; people write such files
_EVENTS = 20_000
_DEEPEST = 60
_DIGITS = 300  # of a number; what is longer is a text

# The core schema of YAML 1.2, in which `yes` and `on` are texts.
_CONSTANTS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_COLON = re.compile(r"[ \t]*:")
_UNQUOTED = re.compile(r"[A-Za-z_/][\w./@+-]*", re.ASCII)  # needs no quotes, unless it is a constant


def read(folder: Path, path: str) -> Node | None:
    """A file of a repository; None if there is none."""
    text = read_text(folder, path, AT_MOST)
    if text is None and ((folder / path).is_symlink() or (folder / path).exists()):
        raise UserError(f"{path} is not a regular file", cause="expected YAML", hint="remove or rename it")
    return None if text is None else parse(text, path.rpartition("/")[2])


def typed(text: str, key: Key, name: str) -> Checked:
    """What a variable or an option says: a text as it is; a number, a list or a mapping as a file would have it."""
    plain = text if key.is_words else _plain(text.strip())
    node = Node(0, text if isinstance(plain, float) and key.kind is keys.Kind.COUNT else plain)
    if key.kind in (keys.Kind.TEXTS, keys.Kind.VARIABLES):
        with suppress(UserError):  # then it is no more than a text
            written = parse(f"value: {text}", name).value
            node = _without_lines(written["value"]) if isinstance(written, dict) and len(written) == 1 else node
    return keys.typed(key, node, name)


def _without_lines(node: Node) -> Node:
    if isinstance(node.value, dict):
        return Node(0, {word: _without_lines(each) for word, each in node.value.items()})
    return Node(0, tuple(map(_without_lines, node.value)) if isinstance(node.value, tuple) else node.value)


# -- parsing -----------------------------------------------------------------------------------------------------------


def parse(text: str, name: str) -> Node:
    """A file as a mapping, which is empty if the file is; whatever is not plain data is refused with its line."""
    if len(text) > AT_MOST:
        raise UserError(f"{name} is too big", cause="it is larger than 1 MB", hint="is it the right file?")
    documents: list[Node] = []
    unfinished: list[tuple[Any, list[Node]]] = [(None, documents)]  # members, or keys and values in turn
    for number, event in enumerate(_events(text, name)):
        line, kind = event.start_mark.line + 1, type(event).__name__
        if number > _EVENTS or len(unfinished) > _DEEPEST + 1:
            cause = f"there are more than {f'{_EVENTS:,} values' if number > _EVENTS else f'{_DEEPEST} levels'}"
            raise wrong(name, line, "this is too much", cause, "is it the right file?")
        if what := _indirect(event, kind, is_first=not documents):
            raise wrong(name, line, f"{what} is not allowed", "only plain values are read", "write the value itself")
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            unfinished.append((event, []))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            began, inner = unfinished.pop()
            value = _mapping(inner, text, name) if kind == "MappingEndEvent" else tuple(inner)
            last = [*value.values()] if isinstance(value, dict) else value
            # A block has no end of its own: the parser says where the next thing begins.
            end = event.end_mark.index if began.flow_style or not last else last[-1].end
            mark = began.start_mark
            unfinished[-1][1].append(Node(mark.line + 1, value, mark.index, end, bool(began.flow_style)))
        elif kind == "ScalarEvent":
            node = Node(line, _scalar(event, name, line), event.start_mark.index, event.end_mark.index)
            unfinished[-1][1].append(node)
    top = documents[0] if documents else Node(1, None)
    if isinstance(top.value, dict):
        return top
    if top.value is not None:
        raise wrong(name, top.line, "this is not a mapping", "the file must have `key: value` lines", "fix that line")
    return Node(1, {}, len(text), len(text))


def _events(text: str, name: str) -> Iterator[Any]:
    from ruamel.yaml import YAML  # slow to load, and only needed for other tools' files
    from ruamel.yaml.error import YAMLError

    line = 0
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            line = event.start_mark.line
            yield event
    except (YAMLError, ValueError, OverflowError) as error:  # the latter for characters that do not exist
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
        line = mark.line if mark else text.count("\n", 0, error.position) if hasattr(error, "position") else line
        cause, hint = visible(fit(problem.partition("\n")[0], 100)), "fix that line"
        if "'\\t'" in problem:
            cause, hint = "there is a tab", "use spaces"
        raise wrong(name, line + 1, "invalid YAML", cause, hint) from None


def _indirect(event: Any, kind: str, *, is_first: bool) -> str:
    """What makes a value mean something else than it says."""
    if kind == "DocumentStartEvent":
        return "a second document" if not is_first else "a directive" if event.version or event.tags else ""
    if kind == "AliasEvent":
        return f"the alias *{visible(fit(event.anchor, 40))}"
    if getattr(event, "anchor", None):
        return f"the anchor &{visible(fit(event.anchor, 40))}"
    tag = (getattr(event, "tag", None) or "").replace("tag:yaml.org,2002:", "!!")
    return f"the tag {visible(fit(tag, 40))}" if tag else ""


def _mapping(inner: list[Node], text: str, name: str) -> dict[str, Node]:
    entries: dict[str, Node] = {}
    for key, node in zip(inner[::2], inner[1::2], strict=True):
        if not isinstance(key.value, str):
            raise wrong(name, key.line, "a key must be text", "another kind of value is there", "put it in quotes")
        shown = visible(fit(key.value, 40))
        if key.value in entries or key.value == "<<":
            what = "a merge key is not allowed" if key.value == "<<" else f"{shown} is there twice"
            raise wrong(name, key.line, what, "which value is meant would be a guess", "write each key once")
        start, end = node.start, node.end
        if start == end and (colon := _COLON.match(text, key.end)):  # nothing is written: it would go behind the colon
            start = end = colon.end()
        entries[key.value] = Node(key.line, node.value, start, end, node.flow)
    return entries


def _scalar(event: Any, name: str, line: int) -> Scalar:
    text: str = event.value
    if "\0" in text or (not text.isascii() and text != text.encode(errors="replace").decode()):
        raise wrong(name, line, "invalid YAML", "there is a character that no text has", "fix that line")
    return _plain(text) if event.implicit[0] else text  # or it is quoted, or a block


def _plain(text: str) -> Scalar:
    """A value without quotes."""
    if text in _CONSTANTS or len(text) > _DIGITS:
        return _CONSTANTS.get(text, text)
    if _INT.fullmatch(text):
        return int(text, 0 if text[:2] in ("0o", "0x") else 10)
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan")) if _FLOAT.fullmatch(text) else text


# -- changing one value ------------------------------------------------------------------------------------------------


def with_value(text: str, path: str, value: Value, name: str = "config") -> str:
    """The text with one value set. One line is new or another one; everything else stays as it is."""
    top = parse(text, name)
    node, missing = top, path.split(".")
    while missing and isinstance(node.value, dict) and missing[0] in node.value:
        node = node.value[missing.pop(0)]
    new = _written(value)
    for word in reversed(missing):
        new = f"{{{_written(word)}: {new}}}"
    if missing and isinstance(node.value, dict):
        changed = _added(text, node, new[1:-1])
    else:
        space = " " if text[node.start - 1 : node.start] == ":" else ""
        changed = f"{text[: node.start]}{space}{new}{text[node.end :]}"
    if ("\n" in text[node.start : node.end] and not missing) or not _is_only(changed, path, value, top, name):
        cause = "it takes more than a change to one line"
        raise UserError(f"cannot set {path} in {name}", cause=cause, hint=f"open the file and set {path} there")
    return changed


def _added(text: str, node: Node, entry: str) -> str:
    """One more entry of a mapping: within its brackets, or on a line behind its last one."""
    assert isinstance(node.value, dict)  # noqa: S101 - the caller has looked
    if node.flow:
        at = [*node.value.values()][-1].end if node.value else node.start + 1
        return f"{text[:at]}{', ' if node.value else ''}{entry}{text[at:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = text[text.rfind("\n", 0, node.start) + 1 : node.start].lstrip("\ufeff") if node.value else ""
    at = text.find("\n", node.end - 1) + 1 if node.end else 0
    if at:
        return f"{text[:at]}{indent}{entry}{newline}{text[at:]}"
    return f"{text}{newline if text else ''}{indent}{entry}{'' if text else newline}"


def _written(value: Value) -> str:
    """A value as YAML, quoted where it has to be."""
    if isinstance(value, float):
        return repr(value).replace("inf", ".inf").replace("nan", ".nan")
    if isinstance(value, str) and _UNQUOTED.fullmatch(value) and value not in _CONSTANTS:
        return value
    written = msgspec.json.encode(value).decode()
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in written)


def _is_only(changed: str, path: str, value: Value, before: Node, name: str) -> bool:
    """Does a text say the same as before but for this one value?"""
    inner = wanted = _data(before)
    *sections, last = path.split(".")
    for section in sections:
        if inner.get(section) is None:
            inner[section] = {}
        inner = inner[section]
        if not isinstance(inner, dict):
            return False
    inner[last] = [*value] if isinstance(value, tuple) else value
    try:
        return repr(_data(parse(changed, name))) == repr(wanted)  # of two NaN, only the words are the same
    except UserError:
        return False


def _data(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _data(each) for key, each in node.value.items()}
    return [_data(each) for each in node.value] if isinstance(node.value, tuple) else node.value
