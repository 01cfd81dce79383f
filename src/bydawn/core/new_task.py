"""Where a new task goes: behind the last box of a checklist, or into the next file of a folder."""

import re
import unicodedata
from collections.abc import Collection, Iterator

from bydawn.core import markdown, tasks
from bydawn.core.text import plain

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_ITEM = re.compile(r"(?P<lead>[ \t>]*)(?P<mark>[-*+]|(?P<number>[0-9]{1,9})[.)])(?P<gap>[ \t]+)\[")
_BEGINS_A_BLOCK = re.compile(r"[ \t]*(?:[-*+>#<|=]|[0-9]{1,9}[.)][ \t]|```|~~~|_{3})")
_NUMBER = re.compile(r"[0-9]+")
_LONGEST_NAME = 50
_DIGITS = 3  # of the first file of a folder without numbers
_LARGEST = 999_999_999  # the number of a list item has no more digits


def is_one_line(words: str) -> bool:
    """Can this stand behind a box: something to see, one line, nothing that steers a terminal?"""
    return bool(words.strip()) and len(words.splitlines()) == 1 and "\t" not in words and plain(words) == words


def with_box(text: str, words: str) -> str | None:
    """A checklist with one more open box; None where no place leaves all others as they were."""
    lines = _LINE.findall(text)
    old = [(task.text, task.done) for task in tasks.read(text).items]
    for place, row in _places(text, lines, words):
        new = "".join(_inserted(lines, place, row))
        read = tasks.read(new)
        now = [(task.text, task.done) for task in read.items]
        if not read.problem and any(not now[at][1] and now[:at] + now[at + 1 :] == old for at in range(len(now))):
            return new
    return None


def file_name(words: str, names: Collection[str]) -> str:
    """The name of a new file: the number behind the highest, written as the others are, and what it is about.

    >>> file_name("Größe ändern!", ["09-a.md", "10-b.md", "notes.md"]), file_name("…", [])
    ('11-größe-ändern.md', '001-task.md')
    """
    numbers = [found[0] for name in names if (found := _NUMBER.match(name))]
    widest = max(map(len, numbers), default=_DIGITS)
    number = max(map(int, numbers), default=0) + 1
    about = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", words).lower())[:_LONGEST_NAME].strip("-")
    return f"{number:0{widest}}-{about or 'task'}.md"


def _places(text: str, lines: list[str], words: str) -> Iterator[tuple[int, str]]:
    """How many lines stand above the new box, and the box: first where a person would put it, at last at the end."""
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
    """The last of the boxes that are nested least, with how it is written; `1` is the first line."""
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
    """The last line that belongs to a list item: what is indented more, or goes on with its paragraph."""
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
    """With one line more; ended as the others are, and the last one still without an end if it had none."""
    above, below = lines[:place], lines[place:]
    newline = next((ending for line in lines if (ending := line[len(line.rstrip("\r\n")) :])), "\n")
    if above and not above[-1].endswith(("\r", "\n")):
        return [*above[:-1], above[-1] + newline, row]
    return [*above, row + newline, *below]
