"""A prompt that a person laid out: a file with {{MARKERS}}, each replaced by what it stands for."""

import re
from collections.abc import Mapping

MARKERS = (
    "HEADER",
    "PROMPT",
    "TASKS",
    "TASK",
    "RULES",
    "DOCUMENTS",
    "NOTES",
    "CHECKS",
    "REPLY",
    "STALL",
    "NEWS",
    "PROGRESS",
    "OPINIONS",
    "PROMISE",
    "ROUND",
    "COUNTED",
    "ROUNDS",
    "LOOP",
    "WORKSPACE",
)
_WORK = ("PROMPT", "TASK", "TASKS")  # one of them must say what to do
_TOKEN = re.compile(r"(?P<literal>\{\{\{\{)|\{\{(?P<name>[^{}\n]*)\}\}|(?P<open>\{\{)")


def problem(text: str) -> str | None:
    """What is wrong with a template; completes "prompt.md …"."""
    if not text.strip():
        return "is empty"
    for token in _TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        if token["open"]:
            return f"has a {{{{ in line {line} that no }}}} closes; {{{{{{{{ writes two plain braces"
        if token["name"] is not None and token["name"].strip() not in MARKERS:
            return _unknown(token["name"].strip(), line)
    if not markers(text).intersection(_WORK):
        return "never says what to do: it needs {{PROMPT}}, {{TASK}} or {{TASKS}}"
    return None


def markers(text: str) -> frozenset[str]:
    """The markers that a template uses, so that nobody reads a document it does not ask for."""
    names = (token["name"] for token in _TOKEN.finditer(text) if token["name"] is not None)
    return frozenset(name.strip() for name in names).intersection(MARKERS)


def fill(text: str, values: Mapping[str, str]) -> str:
    """The template with its values, in one pass: a marker within a value is only text.

    A line on which nothing is left goes, and so does one of two blank lines that meet where it stood.
    """
    kept, gone = list[str](), False
    for line in text.replace("\r\n", "\n").split("\n"):
        filled = _TOKEN.sub(lambda token: _value(token, values), line)
        if line.strip() and not filled.strip():
            gone = True
            continue
        if gone and not line.strip() and not (kept and kept[-1].strip()):
            continue
        gone = False
        kept.append(filled)
    return "\n".join(kept)


def _value(token: re.Match[str], values: Mapping[str, str]) -> str:
    if token["literal"]:
        return "{{"
    # What nobody knows stays as it is: `problem` has said so before, and to guess would hide it.
    return values.get((token["name"] or "").strip(), token[0])


def _unknown(name: str, line: int) -> str:
    from difflib import get_close_matches  # only who made a mistake needs it

    shown = f"{name[:40]}…" if len(name) > 40 else name
    alike = get_close_matches(name.upper(), MARKERS, 1)
    hint = f"did you mean {{{{{alike[0]}}}}}?" if alike else f"there are {', '.join(MARKERS)}"
    return f"has an unknown marker {{{{{shown}}}}} in line {line}; {hint}"
