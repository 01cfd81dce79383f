"""Prompt templates: files with {{MARKERS}} that are replaced by what they stand for."""

import re
from collections.abc import Iterator, Mapping

MARKERS = (
    "HEADER",
    "PROMPT",
    "TASKS",
    "TASK",
    "TASK_ID",
    "TASK_TITLE",
    "TASK_TEXT",
    "RULES",
    "DOCUMENTS",
    "NOTES",
    "CHECKS",
    "FAILED_CHECKS",
    "SUMMARIES",
    "REPLY",
    "STALL",
    "NEWS",
    "PROGRESS",
    "OPINIONS",
    "RECORDS",
    "OUTPUT",
    "PROMISE",
    "ROUND",
    "COUNTED",
    "ROUNDS",
    "LOOP",
    "WORKSPACE",
)
FORMS = (*MARKERS, "FILE:PATH", "OUTPUT:CHARACTERS", "CONTINUED")
OUTPUT_AT_MOST = 100_000  # characters
_CONTINUED = "CONTINUED"  # alone on a line: what follows is for a round that continues a conversation
_DIVIDER = re.compile(rf"^[ \t]*\{{\{{{_CONTINUED}\}}\}}[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_WORK = ("PROMPT", "TASK", "TASKS", "TASK_TEXT")  # at least one has to say what to do, or else the task list itself
_TOKEN = re.compile(r"(?P<literal>\{\{\{\{)|\{\{(?P<name>[^{}\n]*)\}\}|(?P<open>\{\{)")
_END_TAG = re.compile(r"</\s*([A-Za-z][\w.-]*)\s*>")


def problem(text: str, tasks: str = "", *, must_say_work: bool = True) -> str | None:
    """What is wrong with a template, as the end of "prompt.md …"; `tasks` is the path of the task list."""
    if not text.strip():
        return "is empty"
    opened: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        if token["open"]:
            return f"has a {{{{ on line {line} without a closing }}}}; write {{{{{{{{ for two literal braces"
        if token["name"] is None:
            continue
        sign, name = _parsed(token["name"])
        if name == _CONTINUED:
            if sign or opened or len(_DIVIDER.findall(text)) != 1 or not _DIVIDER.match(text.split("\n")[line - 1]):
                return f"has {token[0]} on line {line}; it belongs on a line of its own, once, and in no section"
            continue
        if wrong := _wrong_name(name, line):
            return wrong
        if sign and text.split("\n")[line - 1].strip() != token[0]:
            return f"has {token[0]} on line {line} with other text beside it; it must be alone on its line"
        if sign == "#":
            opened.append((name, line))
        elif sign and (not opened or opened.pop()[0] != name):
            return f"has {token[0]} on line {line} that does not close the section above it"
    if opened:
        return f"has {{{{#{opened[-1][0]}}}}} on line {opened[-1][1]} without {{{{/{opened[-1][0]}}}}}"
    if must_say_work and not markers(halves(text)[0]).intersection((*_WORK, _parsed(f"FILE:{tasks}")[1])):
        return "does not say what to do: add {{PROMPT}}, {{TASK}} or {{TASKS}}"
    return None


def halves(text: str) -> tuple[str, str]:
    """What begins a conversation, and what a round that continues one gets instead; empty if it has no own template."""
    first, *continued = _DIVIDER.split(text, maxsplit=1)
    return first, "".join(continued)


def markers(text: str, *, sections: bool = False) -> frozenset[str]:
    """The markers a template places (`TASKS`, `FILE:notes.md`), and on request those that its sections depend on."""
    return frozenset(name for sign, name in _named(text) if (sections or not sign) and not _wrong_name(name, 0))


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in the template in one pass: a marker inside a value stays text.

    A line that ends up empty is removed, like those of a section whose marker is empty, and so is one of the two blank
    lines that then meet.
    """
    kept, gone, empty = list[str](), False, list[bool]()
    for line in text.replace("\r\n", "\n").split("\n"):
        token = _TOKEN.fullmatch(line.strip())
        sign, name = _parsed(token["name"]) if token and token["name"] else ("", "")
        if sign == "#":
            empty.append(not values.get(name, "").strip())
        elif sign and empty:
            empty.pop()
        filled = "" if sign or any(empty) else _TOKEN.sub(lambda token: _value(token, values), line)
        if sign or any(empty) or (line.strip() and not filled.strip()):
            gone = True
            continue
        if gone and not line.strip() and not (kept and kept[-1].strip()):
            continue
        gone = False
        kept.append(filled)
    return "\n".join(kept)


def enclosed(value: str, text: str) -> str:
    """A value that cannot end an element of the template it comes into: its `</TODO>` becomes `<\\/TODO>`."""
    names = "|".join(sorted({re.escape(name) for name in _END_TAG.findall(text)}))
    return re.sub(rf"(?i)<(\s*)/(?=\s*(?:{names})\s*>)", r"<\1\\/", value) if names else value


def _named(text: str) -> Iterator[tuple[str, str]]:
    return (_parsed(token["name"]) for token in _TOKEN.finditer(text) if token["name"] is not None)


def _parsed(words: str) -> tuple[str, str]:
    """What is between the braces: `#` or `/` for the marks of a section, and the marker with its path made plain."""
    words = words.strip()
    sign = words[:1] if words[:1] in ("#", "/") else ""
    kind, colon, given = (part.strip() for part in words.removeprefix(sign).partition(":"))
    if kind == "FILE" and not given.startswith("/"):
        given = "/".join(step for step in given.split("/") if step not in ("", "."))
    return sign, f"{kind}{colon}{given}"


def _value(token: re.Match[str], values: Mapping[str, str]) -> str:
    if token["literal"]:
        return "{{"
    # Leave unknown markers as they are: `problem` has reported them, and guessing would hide the mistake.
    return values.get("".join(_parsed(token["name"] or "")), token[0])


def _wrong_name(name: str, line: int) -> str:
    kind, colon, given = name.partition(":")
    shown = f"{{{{{name[:40]}…}}}}" if len(name) > 40 else f"{{{{{name}}}}}"
    if kind == "FILE" and (not given or given.startswith("/") or ".." in given.split("/")):
        return f"has {shown} on line {line}; it needs a path inside the workspace, as in {{{{FILE:NOTES.md}}}}"
    if kind == "OUTPUT" and colon and not (given.isdecimal() and len(given) < 7 and int(given) <= OUTPUT_AT_MOST):
        return f"has {shown} on line {line}; it needs a number of characters, at most {OUTPUT_AT_MOST:,}"
    if kind == "FILE" or name in MARKERS or (kind == "OUTPUT" and colon):
        return ""
    from difflib import get_close_matches  # only needed after a mistake

    alike = get_close_matches(name.upper(), MARKERS, 1)
    hint = f"did you mean {{{{{alike[0]}}}}}?" if alike else f"the markers are {', '.join(FORMS)}"
    return f"has an unknown marker {shown} on line {line}; {hint}"
