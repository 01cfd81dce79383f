"""What is left to do, as the task file says it."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import TaskReading

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# What a list item may begin with. `[x](url)`, `[x][ref]` and `[x]: url` are links, not boxes.
_BOX = re.compile(r"\[(?P<mark>.{0,3}?)\](?![(\[:])(?P<gap>[ \t\n]*)(?P<text>.*)", re.DOTALL)
_MARKS = {" ": False, "x": True, "X": True}
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LOOKS_LIKE_A_TASK = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\[[ xX]\]\s")
_HIDING_HTML = ("<!--", "<pre", "<script", "<style", "<textarea")
_DEEPEST = 100  # the parser drops the rest of a file that is nested deeper
_WORDS_COMPARED = 50


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A box in the task file; `id` follows its text, so that it survives being moved or ticked."""

    id: str
    text: str
    line: int
    done: bool


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """All boxes of a task file, in its order."""

    items: tuple[Task, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def reading(self) -> TaskReading:
        """The fact for the ledger."""
        left = [task for task in self.items if not task.done]
        return TaskReading(
            open=len(left),
            done=len(self.items) - len(left),
            next=left[0].text if left else None,
            open_ids=tuple(task.id for task in left),
            problem=self.problem,
        )


def read(text: str, before: TaskReading | None = None) -> Tasks:
    """Read a checklist as GitHub would; with the reading `before`, notice open tasks that vanished."""
    tokens = _parser().parse(text.removeprefix("\ufeff"))
    found = list(_boxes(tokens))
    tasks = _numbered([box for box in found if isinstance(box, Task)])
    if before:
        tasks = _with_former_names(tasks, before)
    too_deep = any(token.level >= _DEEPEST - 1 for token in tokens)
    return Tasks(
        items=tuple(tasks),
        warnings=tuple(box for box in found if isinstance(box, str)),
        problem="is nested too deeply to be read" if too_deep else _problem(tasks, before),
    )


def missing_file() -> TaskReading:
    """The reading of a task file that is not there."""
    return TaskReading(open=0, done=0, problem="is gone")


def closed(before: Tasks, after: Tasks) -> tuple[str, ...]:
    """The texts of the tasks that were open and are done now."""
    done = {task.id for task in after.items if task.done}
    return tuple(task.text for task in before.items if not task.done and task.id in done)


def _boxes(tokens: "list[Token]") -> Iterator[Task | str]:
    """Every task, and a warning for every line that a person could take for one."""
    for index, token in enumerate(tokens):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "inline":
            opened = [above.type for above in tokens[max(index - 2, 0) : index]]
            if opened == ["list_item_open", "paragraph_open"]:
                yield from _box(token.content, line)
            yield from _lookalikes(token.content, line)
        elif token.type == "html_block" and not token.content.startswith(_HIDING_HTML):
            yield from _lookalikes(token.content, line)


def _box(item: str, line: int) -> Iterator[Task | str]:
    """The task that a list item is, or a warning if its box is neither open nor done."""
    if not (box := _BOX.match(item)):
        return
    mark, text = box["mark"], " ".join(_COMMENT.sub("", box["text"]).split())
    if mark in _MARKS and box["gap"] and text:
        yield Task(id=_digest(text), text=text, line=line, done=_MARKS[mark])
    elif len(mark.strip()) < 2 and not mark.strip().isdigit():  # `[TODO]` and `[1]` are just text
        shown = mark if mark.isprintable() else ascii(mark)[1:-1]  # a no-break space looks like a space
        yield f"line {line}: `[{shown}]` is neither open nor done; write `[ ]` or `[x]`, a space and what to do"


def _lookalikes(content: str, line: int) -> Iterator[str]:
    for offset, text in enumerate(content.split("\n")):
        if _LOOKS_LIKE_A_TASK.match(text):
            yield f"line {line + offset}: not a task for Markdown; an empty line above may be missing"


def _digest(text: str) -> str:
    """A name for a text; markup, case and punctuation do not change it."""
    words = re.sub(r"[\W_]+", " ", unicodedata.normalize("NFC", text).casefold()).strip() or text
    return hashlib.sha256(words.encode()).hexdigest()[:10]


def _numbered(tasks: list[Task]) -> list[Task]:
    """Equal texts are different tasks: number them."""
    seen: Counter[str] = Counter()
    numbered = []
    for task in tasks:
        seen[task.id] += 1
        numbered.append(replace(task, id=f"{task.id}-{seen[task.id]}"))
    return numbered


def _with_former_names(tasks: list[Task], before: TaskReading) -> list[Task]:
    """Let a task keep its id when a note was added to it, as agents like to: `[x] Fix it (see a1b2)`."""
    present, known = {task.id for task in tasks}, set(before.open_ids)
    missing: dict[str, list[str]] = {}
    for id_ in before.open_ids:
        if id_ not in present:
            missing.setdefault(id_.partition("-")[0], []).append(id_)
    newly_done = sum(task.done for task in tasks) - before.done
    named = []
    for task in tasks:
        # What was done before cannot stand in for what vanished.
        new = bool(missing) and task.id not in known and (newly_done > 0 or not task.done)
        former = _former_name(task, missing) if new else None
        newly_done -= task.done and former is not None
        named.append(replace(task, id=former or task.id))
    return named


def _former_name(task: Task, missing: dict[str, list[str]]) -> str | None:
    """Take the missing id whose text this task's text begins with; the longest such text wins."""
    words = task.text.split()[:_WORDS_COMPARED]
    for count in range(len(words) - 1, 0, -1):
        if ids := missing.get(_digest(" ".join(words[:count]))):
            return ids.pop()
    return None


def _problem(tasks: list[Task], before: TaskReading | None) -> str | None:
    """What keeps this file from being believed; "nothing open" must never mean "nothing there"."""
    if not tasks:
        return "has no tasks any more" if before and (before.open or before.done) else "has no tasks"
    present = {task.id for task in tasks}
    lost = sum(id_ not in present for id_ in before.open_ids) if before else 0
    if lost:
        return f"lost {lost} open {'task' if lost == 1 else 'tasks'}: vanished without being ticked"
    return None


@cache
def _parser() -> "MarkdownIt":
    """Markdown's blocks only; headings by underline would swallow the task above the line."""
    from markdown_it import MarkdownIt  # slow to import, and most commands never need it

    blocks = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table")
    return blocks.disable(["inline", "text_join", "lheading"])
