"""Where a new task goes: after the last box of a checklist, or into the next file of a folder."""

import re
import unicodedata
from collections.abc import Collection, Iterator

from bydawn.core import markdown, tasks
from bydawn.core.text import plain

_ITEM = re.compile(r"(?P<lead>[ \t>]*)(?P<mark>[-*+]|(?P<number>[0-9]{1,9})[.)])(?P<gap>[ \t]+)\[")
_BEGINS_A_BLOCK = re.compile(r"[ \t]*(?:[-*+>#<|=]|[0-9]{1,9}[.)][ \t]|```|~~~|_{3})")
_NUMBER = re.compile(r"[0-9]+")
_LONGEST_NAME = 50
_DIGITS = 3  # for the first file in a folder without numbers
_LARGEST = 999_999_999  # a list item's number cannot be longer


def is_one_line(words: str) -> bool:
    """Can this text follow a box: visible, one line, no terminal control characters?"""
    return bool(words.strip()) and len(words.splitlines()) == 1 and "\t" not in words and plain(words) == words


def with_box(text: str, words: str) -> str | None:
    """A checklist with one more open box; None if no place leaves the other tasks unchanged."""
    lines = markdown.written_lines(text)
    old = [(task.text, task.done) for task in tasks.read(text).items]
    for place, row in _places(text, lines, words):
        new = "".join(_inserted(lines, place, row))
        read = tasks.read(new)
        now = [(task.text, task.done) for task in read.items]
        if not read.problem and any(not now[at][1] and now[:at] + now[at + 1 :] == old for at in range(len(now))):
            return new
    return None


def file_name(words: str, names: Collection[str]) -> str:
    """The name of a new file: the next number, formatted like the others, and what the task is about.

    >>> file_name("Größe ändern!", ["09-a.md", "10-b.md", "notes.md"]), file_name("…", [])
    ('11-größe-ändern.md', '001-task.md')
    """
    numbers = [found[0] for name in names if (found := _NUMBER.match(name))]
    widest = max(map(len, numbers), default=_DIGITS)
    number = max(map(int, numbers), default=0) + 1
    about = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", words).lower())[:_LONGEST_NAME].strip("-")
    return f"{number:0{widest}}-{about or 'task'}.md"


def _places(text: str, lines: list[str], words: str) -> Iterator[tuple[int, str]]:
    """How many lines go above the new box, and the box itself; first where a person would put it, last at the end."""
    found = _last_item(text, lines)
    if found:
        line, item = found
        mark = item["mark"]
        if item["number"] and int(item["number"]) < _LARGEST:
            mark = f"{int(item['number']) + 1}{mark[-1]}"
        row = f"{item['lead']}{mark}{item['gap']}[ ] {words}"
        yield _end(lines, line, item), row
    yield len(lines), f"- [ ] {words}"


def _last_item(text: str, lines: list[str]) -> tuple[int, re.Match[str]] | None:
    """The last of the least nested boxes, and how it is written; `1` is the first line."""
    boxes = {task.line for task in tasks.read(text).items}
    depths = {
        block.line: block.within.count("list_item")
        for block in reversed(markdown.of_file(text).blocks)
        if block.line in boxes and block.begins_item
    }
    least = min(depths.values(), default=0)
    line = max((line for line, depth in depths.items() if depth == least), default=0)
    item = _ITEM.match(lines[line - 1].removeprefix("\ufeff")) if line else None
    return (line, item) if item else None


def _end(lines: list[str], line: int, item: re.Match[str]) -> int:
    """The last line that belongs to a list item: indented more, or continuing its paragraph."""
    margin, end, blank = _width(item["lead"]), line, False
    for number, each in enumerate(lines[line:], line + 1):
        if not each.strip(" \t>\r\n"):
            blank = True
            continue
        inside = _width(each[: len(each) - len(each.lstrip(" \t>"))]) > margin
        if not inside and (blank or _BEGINS_A_BLOCK.match(each)):
            break
        end, blank = number, False
    return end


def _width(lead: str) -> int:
    return len(lead.expandtabs(4))


def _inserted(lines: list[str], place: int, row: str) -> list[str]:
    """Insert one line, with the same line ending as the others; a missing one at the end stays missing."""
    above, below = lines[:place], lines[place:]
    newline = next((ending for line in lines if (ending := line[len(line.rstrip("\r\n")) :])), "\n")
    if above and not above[-1].endswith(("\r", "\n")):
        return [*above[:-1], above[-1] + newline, row]
    return [*above, row + newline, *below]
