"""A reply as one JSON object with the fields of a schema: what an agent says about its task, machine-readable."""

from types import NoneType
from typing import Any

import msgspec

from bydawn.core.loop import Loop
from bydawn.core.text import plain, shorten

_MOST = 20  # rows of a list that are kept
_LONG = 1_000  # characters of a text
_ROW = 200  # … and of a row

_TEXT, _LIST = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_FIELDS: dict[str, dict[str, Any]] = {
    "status": {"type": "string", "enum": ["continue", "complete", "blocked"]},
    "summary": _TEXT,
    "task_id": _TEXT,
    "files_changed": _LIST,
    "verification_expected": _LIST,
    "needs_resume": {"type": "boolean"},
    "blockers": _LIST,
    "next_action": _TEXT,
}
# Strict, as OpenAI has it: every property is required, and none is additional.
SCHEMA: str = msgspec.json.encode(
    {"type": "object", "properties": _FIELDS, "required": [*_FIELDS], "additionalProperties": False}
).decode()
FIELDS = tuple(_FIELDS)
_KINDS: dict[str, tuple[Any, str]] = {
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "array": (tuple[str, ...], "a list of texts"),
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What such a reply says; a field that it does not have, or has in another form, is empty and noted as odd."""

    status: str = ""
    summary: str = ""
    task_id: str = ""
    files_changed: tuple[str, ...] = ()
    verification_expected: tuple[str, ...] = ()
    needs_resume: bool = False
    blockers: tuple[str, ...] = ()
    next_action: str = ""
    blocked: str = ""  # the same as `blockers`, in a status block
    odd: tuple[str, ...] = ()


def wanted(loop: Loop) -> bool:
    """Can its replies be nothing but such an answer? One that has to end with a promise cannot."""
    return loop.task_folder and loop.tasks_required and loop.promise is None


def read(reply: str) -> Answer | None:
    """The answer, if the whole text is one; `{"status": …, "summary": …}` alone is a status block and complete."""
    text = reply.strip()
    if not text.startswith("{"):
        return None
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):  # an agent's text can be nested endlessly
        return None
    if not said.keys() & _FIELDS.keys():
        return None
    is_whole = bool(said.keys() & {*FIELDS[2:]})
    known, odd = dict[str, Any](), list[str]()
    for name, field in _FIELDS.items():
        value, (kind, words) = said.get(name), _KINDS[field["type"]]
        try:
            known[name] = _short(msgspec.convert(value, kind))
        except msgspec.ValidationError:
            if name == "status" or is_whole or not isinstance(value, NoneType):
                odd.append(f"`{name}` is missing" if value is None else f"`{name}` is not {words}")
    blocked = said.get("blocked")
    return Answer(**known, blocked=plain(blocked) if isinstance(blocked, str) else "", odd=tuple(odd))


def shown(reply: str) -> str:
    """A reply as a person reads it: an answer's summary, or what it is."""
    answer = read(reply)
    return answer.summary if answer and answer.status and answer.summary else reply


def _short(value: Any) -> Any:
    """Without the control characters that JSON can spell, so that the text of the reply did not have them yet."""
    if isinstance(value, tuple):
        return tuple(shorten(plain(each), _ROW) for each in value[:_MOST])
    return shorten(plain(value), _LONG) if isinstance(value, str) else value
