"""What a checklist says is left to do."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from bydawn.core import markdown
from bydawn.core.digests import sha256
from bydawn.core.markdown import Block, Page
from bydawn.core.values import TaskReading

# What a list item may begin with. `[x](url)`, `[x][ref]` and `[x]: url` are links, not boxes.
BOX = re.compile(r"\[(?P<mark>.{0,3}?)\](?P<link>[(\[:]?)(?P<gap>[ \t\n]*)(?P<text>.*)", re.DOTALL)
_MARKS = {" ": False, "x": True, "X": True}
_LOOKS_LIKE_A_TASK = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s*\[[ xX]\]\s")
_WORDS_COMPARED = 300


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A box in the task file; `id` comes from its text, so it survives being moved or ticked."""

    id: str
    text: str
    line: int
    done: bool
    within: tuple[int, ...] = ()  # the lines of the list items it belongs to, if it is nested

    @property
    def name(self) -> str:
        """Its text, numbered if others have the same."""
        number = self.id.partition("-")[2]
        return f"{self.text} ({number})" if number not in ("", "1") else self.text


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """All boxes of a task file, in order."""

    items: tuple[Task, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str | None = None
    unread: str | None = None  # why it cannot even be read as Markdown


def read(
    text: str, before: TaskReading | None = None, unwanted: Collection[str] = (), marks: Collection[int] = ()
) -> Tasks:
    """Read a checklist as GitHub would; compared with the reading `before`, notice open tasks that vanished.

    `unwanted` tasks, which a person skipped, always keep their ids, and may vanish. `marks` are lines with a
    checkpoint: one right below a box is not a part of its text.
    """
    page = markdown.of_file(text)
    found = list(_boxes(page, marks))
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


def ticked(text: str, line: int, *, done: bool) -> str | None:
    """A checklist with one box ticked, or open again; None if that line has no box, or other tasks would change."""
    before = read(text).items
    box = next((task for task in before if task.line == line), None)
    if box is None or box.done is done:
        return text if box else None
    lines = markdown.written_lines(text)
    head, bracket, rest = lines[line - 1].partition("[")  # nothing before the box of a list item has a bracket
    lines[line - 1] = f"{head}{bracket}{'x' if done else ' '}{rest[1:]}"
    new = "".join(lines)
    wanted = [replace(task, done=done) if task is box else task for task in before]
    return new if [_seen(task) for task in read(new).items] == [_seen(task) for task in wanted] else None


def _seen(task: Task) -> tuple[int, str, bool]:
    """Without the id, which counts equal texts, done ones first."""
    return task.line, task.text, task.done


def missing_file() -> TaskReading:
    """The reading of a missing task file."""
    return TaskReading(open=0, done=0, problem="is gone")


def digest(text: str) -> str:
    """An id for a text; markup, case and punctuation do not change it."""
    return _sha(words(text) or text)


def _boxes(page: Page, marks: Collection[int]) -> Iterator[Task | str]:
    """Every task, and a warning for every line that a person could take for one."""
    for line, text in enumerate(page.front.split("\n"), 2):
        if _LOOKS_LIKE_A_TASK.match(text):
            yield f"line {line}: not a task, because it is in the front matter"
    for block in page.blocks:
        if block.begins_item:
            yield from _box(block, marks)
        if block.type == "inline" or (block.type == "html_block" and not block.is_raw and not block.is_comment):
            yield from _lookalikes(block)
        elif not block.ended and any(map(_LOOKS_LIKE_A_TASK.match, block.text.split("\n"))):
            what = "code block" if block.type == "fence" else "comment"
            yield f"line {block.line}: unclosed {what} hides the boxes below it"


def _box(block: Block, marks: Collection[int]) -> Iterator[Task | str]:
    """The task in a list item, or a warning if its box is neither open nor done."""
    words = block.text
    if marks:
        first, *more = words.split("\n")
        words = "\n".join([first, *(line for at, line in enumerate(more, block.line + 1) if at not in marks)])
    if not (box := BOX.match(words)) or (box["link"] and box["mark"] != " "):
        return
    mark, text = box["mark"], box["text"]
    if "<!--" in text:
        # GitHub shows a box with nothing but a comment; the comment is all that identifies it.
        text = markdown.without_comments(text).strip() or text
    text = " ".join(text.split())
    spaced = block.source.partition("[")[0][-1:] in (" ", "\t")  # the parser treats a no-break space as a space
    if mark in _MARKS and not box["link"] and box["gap"] and text and spaced:
        yield Task(id=digest(text), text=text, line=block.line, done=_MARKS[mark], within=block.items[:-1])
    elif len(mark.strip()) < 2 and not mark.strip().isdigit():  # `[TODO]` and `[1]` are just text
        shown = mark if mark.isprintable() else ascii(mark)[1:-1]  # a no-break space looks like a space
        yield f"line {block.line}: `[{shown}]` is neither open nor done; write `[ ]` or `[x]`, a space and the task"


def _lookalikes(block: Block) -> Iterator[str]:
    for line, text in enumerate(block.text.split("\n"), block.line):
        if _LOOKS_LIKE_A_TASK.match(text):
            yield f"line {line}: Markdown does not see a task here; add an empty line above it or a space"


def words(text: str) -> str:
    """A text without markup, case and punctuation."""
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFC", text).casefold()).strip()


def _sha(words: str) -> str:
    return sha256(words.encode()).hexdigest()[:10]


def _name(id_: str) -> str:
    """What equal texts share: an id without its number."""
    return id_.partition("-")[0]


class _Equals(msgspec.Struct):
    """How many tasks with one text were open in a reading, and how many were done."""

    open: int = 0
    done: int = 0


def _known(ids: Iterable[str]) -> dict[str, _Equals]:
    """The open tasks of a reading by name. Done ones are numbered first, so the highest number includes them."""
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
    """Equal texts are different tasks: number them, done ones first, so that their order does not matter.

    Done ones that were removed leave their numbers free; otherwise an open one would seem to have vanished.
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
    """Let a task keep its id when a note is added to it, as agents like to do: `[x] Fix it (see a1b2)`."""
    present, ids = {task.id for task in tasks}, set(_ids(known))
    missing: dict[str, list[str]] = {}
    for id_ in _ids(known):
        if id_ not in present:
            missing.setdefault(_name(id_), []).append(id_)
    newly_done = sum(task.done for task in tasks) - done_before
    named = []
    for task in tasks:
        # A task that was done before cannot replace one that vanished.
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
    """The ids of a text's first word, first two words and so on, each as `digest` would return it."""
    first = text.split()[:_WORDS_COMPARED]
    hashed, begun = sha256(), False
    for count, word in enumerate(first[:-1], 1):
        if plain := words(word):
            hashed.update(f" {plain}".encode() if begun else plain.encode())
            begun = True
        yield hashed.copy().hexdigest()[:10] if begun else _sha(" ".join(first[:count]))


def _problem(
    tasks: list[Task], known: dict[str, _Equals], before: TaskReading | None, unwanted: Collection[str]
) -> str | None:
    """Why this file cannot be trusted; "nothing open" must never mean "nothing there"."""
    if not tasks:
        return "no longer has any tasks" if before and (before.open or before.done) else "has no tasks"
    present = {task.id for task in tasks}
    lost = sum(id_ not in present and id_ not in unwanted for id_ in _ids(known))
    if lost:
        return f"lost {lost} open {'task' if lost == 1 else 'tasks'}: vanished without being ticked"
    return None
