"""Where the plan says a human must look before the loop goes on, and whether the loop has got there."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec

from bydawn.core import markdown, tasks
from bydawn.core.markdown import Block, Span
from bydawn.core.text import shorten

_LONGEST = 200


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the task file with the token; `id` comes from its text, so an approval survives other edits."""

    id: str
    text: str
    line: int
    reached: bool  # nothing above it is open


def marks(
    text: str,
    token: str,
    boxes: Iterable[tasks.Task] | None = None,
    known: Collection[str] | None = None,
    approved: Collection[str] = (),
) -> tuple[Mark, ...]:
    """All marks of a task file, in order; reached if none of `boxes` above is open, not counting other marks.

    `known` are the marks of an earlier reading: if there are fewer equal ones now, the first ones are gone.
    """
    if not (found := lines(text, token)):
        return ()
    boxes = tasks.read(text).items if boxes is None else boxes
    # A box with the token in its own line is a mark; one with a mark right below it, without an empty line, is a task.
    first_open = min((task.line for task in boxes if not task.done and task.line not in found), default=None)
    names = {line: tasks.digest(f"{token} {words}") for line, words in found.items()}
    numbers = {name: _first(name, count, known, approved) for name, count in Counter(names.values()).items()}
    result = []
    for line, words in sorted(found.items()):
        name = names[line]
        reached = first_open is None or line < first_open
        result.append(Mark(id=f"{name}-{numbers[name]}", text=shorten(words, _LONGEST), line=line, reached=reached))
        numbers[name] += 1
    return tuple(result)


def lines(text: str, token: str) -> dict[int, str]:
    """The lines with the token, by number, and their words."""
    found: dict[int, str] = {}
    if pattern := _pattern(token):
        for block in markdown.of_file(text).blocks:
            for line, words in _lines(block, pattern):
                found.setdefault(line, words)
    return found


def _first(name: str, count: int, known: Collection[str] | None, approved: Collection[str]) -> int:
    """The number of the first of several equal marks. An approval must not slip to a mark a person has not seen."""
    if known is None:
        return 1
    if former := _numbers(name, known):
        return max(min(former), max(former) - count + 1)
    return 1 + max(_numbers(name, approved), default=0)


def _numbers(name: str, ids: Collection[str]) -> list[int]:
    return [int(number) for each, _, number in (id_.partition("-") for id_ in ids) if each == name]


def overlooked(text: str, token: str) -> list[int]:
    """Lines with the token that are not marks because they are code; people may not expect that."""
    if not (pattern := _pattern(token)):
        return []
    seen = {mark.line for mark in marks(text, token)}
    return [number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line) and number not in seen]


def _pattern(token: str) -> re.Pattern[str] | None:
    """The token as a whole word, emphasized or not; case matters, because people write "hard stop" in prose."""
    words = token.split()
    if not words:
        return None
    before = r"(?<!\w)_*" if re.match(r"\w", words[0]) else ""  # a token like 🛑 is a word anywhere
    behind = r"_*(?!\w)" if re.search(r"\w$", words[-1]) else ""
    return re.compile(before + r"[ \t]+".join(map(re.escape, words)) + behind)


def _lines(block: Block, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The lines of a block with the token outside code, and their words."""
    if block.type not in {"inline", "html_block"} or block.is_raw:
        return
    shown = block.text
    if block.type == "inline" and "`" in shown:
        shown = "".join(_blanked(part) if kind is Span.CODE else part for kind, part in markdown.spans(shown))
    written = block.text.split("\n")
    for number, line in enumerate(shown.split("\n")):
        if pattern.search(line):
            yield block.line + number, _words(written[number], block.begins_item and number == 0)


def _blanked(code: str) -> str:
    """Code with its letters blanked at the same length, so it neither holds a token nor completes one."""
    return re.sub(r"[^\n]", "`", code)


def _words(line: str, begins_item: bool) -> str:
    """A line without its box and comment signs."""
    box = tasks.BOX.match(line) if begins_item else None
    text = box["text"] if box else line
    return " ".join(text.replace("<!--", " ").replace("-->", " ").split())
