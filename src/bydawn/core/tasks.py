"""What is left to do, as the task file says it."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from bydawn.core import markdown
from bydawn.core.markdown import Block, Page, Span
from bydawn.core.values import TaskReading

# What a list item may begin with. `[x](url)`, `[x][ref]` and `[x]: url` are links, not boxes.
BOX = re.compile(r"\[(?P<mark>.{0,3}?)\](?P<link>[(\[:]?)(?P<gap>[ \t\n]*)(?P<text>.*)", re.DOTALL)
_MARKS = {" ": False, "x": True, "X": True}
_LOOKS_LIKE_A_TASK = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s*\[[ xX]\]\s")
_WORDS_COMPARED = 300


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A box in the task file; `id` follows its text, so that it survives being moved or ticked."""

    id: str
    text: str
    line: int
    done: bool

    @property
    def name(self) -> str:
        """Its text, with a number where others say the same."""
        number = self.id.partition("-")[2]
        return f"{self.text} ({number})" if number not in ("", "1") else self.text


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """All boxes of a task file, in its order."""

    items: tuple[Task, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str | None = None
    unread: str | None = None  # of that: it cannot even be read as Markdown

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


def read(text: str, before: TaskReading | None = None, unwanted: Collection[str] = ()) -> Tasks:
    """Read a checklist as GitHub would; with the reading `before`, notice open tasks that vanished.

    `unwanted` tasks, which a person skipped, keep their ids in any case, and may vanish.
    """
    page = markdown.of_file(text)
    found = list(_boxes(page))
    known = _known((*(before.open_ids if before else ()), *unwanted))
    tasks = _numbered([box for box in found if isinstance(box, Task)], known)
    if known:
        tasks = _with_former_names(tasks, known, before.done if before else 0)
    return Tasks(
        items=tuple(tasks),
        warnings=tuple(box for box in found if isinstance(box, str)),
        problem=page.problem or _problem(tasks, known, before, unwanted),
        unread=page.problem,
    )


def missing_file() -> TaskReading:
    """The reading of a task file that is not there."""
    return TaskReading(open=0, done=0, problem="is gone")


def digest(text: str) -> str:
    """A name for a text; markup, case and punctuation do not change it."""
    return _sha(_words(text) or text)


def _boxes(page: Page) -> Iterator[Task | str]:
    """Every task, and a warning for every line that a person could take for one."""
    for line, text in enumerate(page.front.split("\n"), 2):
        if _LOOKS_LIKE_A_TASK.match(text):
            yield f"line {line}: not a task, as it stands in the front matter"
    for block in page.blocks:
        if block.begins_item:
            yield from _box(block)
        if block.type == "inline" or (block.type == "html_block" and not block.is_raw and not block.is_comment):
            yield from _lookalikes(block)
        elif not block.ended and any(map(_LOOKS_LIKE_A_TASK.match, block.text.split("\n"))):
            what = "code" if block.type == "fence" else "a comment"
            yield f"line {block.line}: {what} that is never closed hides the boxes below it"


def _box(block: Block) -> Iterator[Task | str]:
    """The task that a list item is, or a warning if its box is neither open nor done."""
    if not (box := BOX.match(block.text)) or (box["link"] and box["mark"] != " "):
        return
    mark, text = box["mark"], box["text"]
    if "<!--" in text:
        # A box with nothing but a comment is a box for GitHub; the comment is all there is to tell it by.
        text = "".join(part for kind, part in markdown.spans(text) if kind is not Span.COMMENT).strip() or text
    text = " ".join(text.split())
    spaced = block.source.partition("[")[0][-1:] in (" ", "\t")  # the parser takes a no-break space for a space
    if mark in _MARKS and not box["link"] and box["gap"] and text and spaced:
        yield Task(id=digest(text), text=text, line=block.line, done=_MARKS[mark])
    elif len(mark.strip()) < 2 and not mark.strip().isdigit():  # `[TODO]` and `[1]` are just text
        shown = mark if mark.isprintable() else ascii(mark)[1:-1]  # a no-break space looks like a space
        yield f"line {block.line}: `[{shown}]` is neither open nor done; write `[ ]` or `[x]`, a space and what to do"


def _lookalikes(block: Block) -> Iterator[str]:
    for line, text in enumerate(block.text.split("\n"), block.line):
        if _LOOKS_LIKE_A_TASK.match(text):
            yield f"line {line}: not a task for Markdown; an empty line or a space may be missing"


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFC", text).casefold()).strip()


def _sha(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:10]


def _name(id_: str) -> str:
    """What equal texts have in common: an id without its number."""
    return id_.partition("-")[0]


class _Equals(msgspec.Struct):
    """What a reading says of the tasks with one text: how many were open, and how many of them were done."""

    open: int = 0
    done: int = 0


def _known(ids: Iterable[str]) -> dict[str, _Equals]:
    """The open tasks of a reading by name. Done ones are numbered first, so the highest number counts them too."""
    known: dict[str, _Equals] = {}
    for id_ in dict.fromkeys(ids):
        name, _, number = id_.partition("-")
        equals = known.setdefault(name, _Equals())
        equals.open += 1
        equals.done = max(equals.done, int(number) if number.isdecimal() else 1)
    for equals in known.values():
        equals.done -= equals.open
    return known


def _numbered(tasks: list[Task], known: dict[str, _Equals]) -> list[Task]:
    """Equal texts are different tasks: number them, the done ones first, so that their order does not matter.

    Done ones that were cleared away leave their numbers free, or else an open one would seem to have vanished.
    """
    done: Counter[str] = Counter(task.id for task in tasks if task.done)
    seen: Counter[tuple[str, bool]] = Counter()
    numbered = []
    for task in tasks:
        seen[task.id, task.done] += 1
        former = known[task.id].done if task.id in known else 0
        first = 0 if task.done else max(done[task.id], former)
        numbered.append(replace(task, id=f"{task.id}-{first + seen[task.id, task.done]}"))
    return numbered


def _ids(known: dict[str, _Equals]) -> Iterator[str]:
    for name, equals in known.items():
        yield from (f"{name}-{equals.done + number}" for number in range(1, equals.open + 1))


def _with_former_names(tasks: list[Task], known: dict[str, _Equals], done_before: int) -> list[Task]:
    """Let a task keep its id when a note was added to it, as agents like to: `[x] Fix it (see a1b2)`."""
    present, ids = {task.id for task in tasks}, set(_ids(known))
    missing: dict[str, list[str]] = {}
    for id_ in _ids(known):
        if id_ not in present:
            missing.setdefault(_name(id_), []).append(id_)
    newly_done = sum(task.done for task in tasks) - done_before
    named = []
    for task in tasks:
        # What was done before cannot stand in for what vanished.
        new = bool(missing) and task.id not in ids and (newly_done > 0 or not task.done)
        former = _former_name(task, missing) if new else None
        newly_done -= task.done and former is not None
        named.append(replace(task, id=former or task.id))
    return named


def _former_name(task: Task, missing: dict[str, list[str]]) -> str | None:
    """Take the missing id whose text this task's text begins with; the longest such text wins."""
    for name in reversed(list(_beginnings(task.text))):
        if ids := missing.get(name):
            return ids.pop()
    return None


def _beginnings(text: str) -> Iterator[str]:
    """The names of a text's first word, first two words and so on, each as `digest` would give it."""
    words = text.split()[:_WORDS_COMPARED]
    hashed, begun = hashlib.sha256(), False
    for count, word in enumerate(words[:-1], 1):
        if plain := _words(word):
            hashed.update(f" {plain}".encode() if begun else plain.encode())
            begun = True
        yield hashed.copy().hexdigest()[:10] if begun else _sha(" ".join(words[:count]))


def _problem(
    tasks: list[Task], known: dict[str, _Equals], before: TaskReading | None, unwanted: Collection[str]
) -> str | None:
    """What keeps this file from being believed; "nothing open" must never mean "nothing there"."""
    if not tasks:
        return "has no tasks any more" if before and (before.open or before.done) else "has no tasks"
    present = {task.id for task in tasks}
    lost = sum(id_ not in present and id_ not in unwanted for id_ in _ids(known))
    if lost:
        return f"lost {lost} open {'task' if lost == 1 else 'tasks'}: vanished without being ticked"
    return None
