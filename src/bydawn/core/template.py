"""Prompt templates: files with {{MARKERS}} that are replaced by what they stand for."""

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
_WORK = ("PROMPT", "TASK", "TASKS")  # at least one has to say what to do
_TOKEN = re.compile(r"(?P<literal>\{\{\{\{)|\{\{(?P<name>[^{}\n]*)\}\}|(?P<open>\{\{)")


def problem(text: str) -> str | None:
    """What is wrong with a template, as the end of "prompt.md …"."""
    if not text.strip():
        return "is empty"
    for token in _TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        if token["open"]:
            return f"has a {{{{ on line {line} without a closing }}}}; write {{{{{{{{ for two literal braces"
        if token["name"] is not None and token["name"].strip() not in MARKERS:
            return _unknown(token["name"].strip(), line)
    if not markers(text).intersection(_WORK):
        return "does not say what to do: add {{PROMPT}}, {{TASK}} or {{TASKS}}"
    return None


def markers(text: str) -> frozenset[str]:
    """The markers a template uses, so that only the documents it needs are read."""
    names = (token["name"] for token in _TOKEN.finditer(text) if token["name"] is not None)
    return frozenset(name.strip() for name in names).intersection(MARKERS)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in the template in one pass: a marker inside a value stays text.

    A line that ends up empty is removed, and so is one of the two blank lines that then meet.
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
    # Leave unknown markers as they are: `problem` has reported them, and guessing would hide the mistake.
    return values.get((token["name"] or "").strip(), token[0])


def _unknown(name: str, line: int) -> str:
    from difflib import get_close_matches  # only needed after a mistake

    shown = f"{name[:40]}…" if len(name) > 40 else name
    alike = get_close_matches(name.upper(), MARKERS, 1)
    hint = f"did you mean {{{{{alike[0]}}}}}?" if alike else f"the markers are {', '.join(MARKERS)}"
    return f"has an unknown marker {{{{{shown}}}}} on line {line}; {hint}"
