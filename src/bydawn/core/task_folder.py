"""A folder of task files: what each asks for, what it depends on, and which can be worked on now."""

import itertools
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from bydawn.core import answers, markdown
from bydawn.core.claims import says_nothing
from bydawn.core.loop import Mode, Promise
from bydawn.core.markdown import Block, Page, Span
from bydawn.core.promise import judge
from bydawn.core.tasks import BOX
from bydawn.core.text import shorten, visible
from bydawn.core.values import UNCLEAR, Promised, TaskClaim

_DEPENDS_ON = re.compile(r"(?P<indent>\s*)[\"']?depends[_-]on[\"']?\s*:(?P<value>.*)", re.IGNORECASE)
_LISTED = re.compile(r"\s*-\s.*")
_REMARK = re.compile(r"(?:^|(?<=\s))#.*")
_TAG = re.compile(r"<[^<>]*>")
_NO_DEPENDENCY = {"", "none", "null", "nothing", "~", "-", "n/a"}
_FIELD = re.compile(r"[*_]*(?P<key>status|summary|blocked)[*_]*[ \t]*:(?P<value>.*)", re.IGNORECASE)
_README = "readme"  # tells people about the folder, and is not a task
_LONGEST_TITLE = 120
_LONGEST_WORDS = 1_000
_LONGEST_NAME = 80
_NEAR = 0.75  # of 1; numbers that only begin alike do not make two names similar


class FolderTask(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the folder; `id` is its name without `.md`."""

    id: str
    title: str
    depends_on: tuple[str, ...]
    text: str


class Claimed(StrEnum):
    """What an agent can say about its task."""

    DONE = "done"
    IN_PROGRESS = "in-progress"
    BLOCKED = "blocked"
    UNCLEAR = UNCLEAR


_MEANS = {
    **{status.value: status for status in Claimed if status is not Claimed.UNCLEAR},
    **dict.fromkeys(("complete", "completed", "finished"), Claimed.DONE),
    **dict.fromkeys(("continue", "in_progress"), Claimed.IN_PROGRESS),
}


class FolderTasks(msgspec.Struct, frozen=True, kw_only=True):
    """All files of the folder, by name; numbers in names sort as numbers. `problem` is the end of "tasks/ …"."""

    items: tuple[FolderTask, ...] = ()
    problem: str | None = None


def read(files: Mapping[str, str], done: Collection[str] = ()) -> FolderTasks:
    """The tasks of a folder, from file names and texts; what is done may be named, even if its file is gone."""
    names = sorted(filter(is_task, files), key=natural)
    pages = {name: markdown.of_file(files[name]) for name in names}
    ids = {_key(name): id_of(name) for name in (*done, *names)}
    tasks = tuple(
        FolderTask(
            id=id_of(name),
            title=_title(page),
            depends_on=tuple(dict.fromkeys(_resolved(_depends_on(page), ids))),
            text=files[name],
        )
        for name, page in pages.items()
    )
    return FolderTasks(items=tasks, problem=_problem(tasks, pages, done))


def ready(tasks: FolderTasks, done: Collection[str], aside: Collection[str]) -> list[FolderTask]:
    """What can be worked on now: open tasks that depend on nothing open, in order."""
    return [task for task in _open(tasks, done, aside) if all(id_ in done for id_ in task.depends_on)]


def stranded(tasks: FolderTasks, done: Collection[str], aside: Collection[str]) -> list[FolderTask]:
    """Open tasks that depend, directly or not, on one that was set aside; they do not run."""
    left = _open(tasks, done, aside)
    waiting: dict[str, list[str]] = {}
    for task in left:
        for id_ in task.depends_on:
            waiting.setdefault(id_, []).append(task.id)
    lost, reached = {id_ for id_ in aside if id_ not in done}, set[str]()
    while lost:
        reached |= lost
        lost = {waiter for id_ in lost for waiter in waiting.get(id_, ())} - reached
    return [task for task in left if task.id in reached]


def status_of(reply: str, promise: str = "", task: str = "") -> TaskClaim | None:
    """What a reply's status block says; the last status counts, and an unknown one cancels those before it.

    "Done" must have the form of a promise, and nothing but the other fields and the promise may follow. Words
    about another task than this one claim nothing.
    """
    fields = dict(_json(reply) or _fields(reply))
    answer = answers.read(fields.get("answer", reply))
    odd = answer.odd if answer else ()
    if "status" not in fields:
        return TaskClaim(status=Claimed.UNCLEAR, summary=answer.summary, odd=odd) if answer else None
    claimed, line = fields["status"].strip(" \t*_`."), fields.get("line", "")
    status = _MEANS.get(claimed.lower(), Claimed.UNCLEAR)
    if status is Claimed.UNCLEAR or (status is Claimed.DONE and line and not _is_given(reply, line, promise)):
        return TaskClaim(status=Claimed.UNCLEAR, summary=shorten(line or fields["status"], _LONGEST_WORDS), odd=odd)
    if answer and answer.task_id and task and _key(answer.task_id.rpartition("/")[2]) != _key(task):
        status, odd = Claimed.UNCLEAR, (f"`task_id` is {_shown(answer.task_id)}, but the task was {task}", *odd)
    summary, blocked = (shorten(fields.get(key, "").strip(" \t*_"), _LONGEST_WORDS) for key in ("summary", "blocked"))
    return TaskClaim(
        status=status,
        summary=summary,
        blockers=tuple(row for row in (answer.blockers if answer else ()) or (blocked,) if not says_nothing(row)),
        files=answer.files_changed if answer else (),
        odd=odd,
    )


def _is_given(reply: str, line: str, promise: str) -> bool:
    """Is a status line where a promise would be believed, and is there no other prose behind it?"""
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at = max((number for number, each in enumerate(lines) if line in each), default=0)
    is_field = False
    for each in map(str.strip, lines[at + 1 :]):
        is_field = _FIELD.fullmatch(each) is not None or (is_field and each != "")  # a summary may have two lines
        if each and not is_field and not (promise and promise in each):
            return False
    first = at
    while first and lines[first - 1].strip():
        first -= 1
    # The fields above it do not introduce it.
    first = next((number for number in range(first, at) if _FIELD.fullmatch(lines[number].strip())), at)
    said = "\n".join([*lines[:first], lines[at]])
    return judge(said, Promise(text=line, mode=Mode.PLAIN), lambda *_: None) is Promised.GIVEN


def _fields(reply: str) -> Iterator[tuple[str, str]]:
    """Every `STATUS:`, `SUMMARY:` and `BLOCKED:` of the reply in order, as lines or JSON; none from quotes.

    With a status comes the line it is on.
    """
    for block in markdown.of_reply(reply).blocks:
        if block.quoted or "table" in block.within or block.type not in {"inline", "fence"}:
            continue
        if block.type == "fence" and (said := _json(block.text)):
            yield from said
            yield "line", next(line for line in block.text.split("\n") if "status" in line).strip()
            continue
        for line in block.text.split("\n"):
            if field := _FIELD.fullmatch(line.strip()):
                yield field["key"].lower(), field["value"]
                if field["key"].lower() == "status":
                    yield from (("line", line.strip()), ("answer", ""))
    last = reply.strip().rpartition("\n")[2]
    if said := _json(last):
        yield from said
        yield "line", last.strip()


def _json(text: str) -> list[tuple[str, str]]:
    """The fields of a JSON object with a status, if this is one."""
    answer = answers.read(text)
    if answer is None or not answer.status:
        return []
    return [("status", answer.status), ("summary", answer.summary), ("blocked", answer.blocked), ("answer", text)]


def _open(tasks: FolderTasks, done: Collection[str], aside: Collection[str]) -> list[FolderTask]:
    return [task for task in tasks.items if task.id not in done and task.id not in aside]


# -- names ---------------------------------------------------------------------------------------------------------


def is_task(name: str) -> bool:
    """Is a file with this name a task?"""
    return _key(name) != _README


def id_of(name: str) -> str:
    """A file's name as a task."""
    name = name.strip()
    return name[:-3] if name.lower().endswith(".md") else name


def _key(name: str) -> str:
    """What two names for the same task share; some systems store accented letters in pieces."""
    return unicodedata.normalize("NFC", id_of(name)).casefold()


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """`2-x` before `10-y`. Digits are compared by their count first: a number may be too long for an int."""
    parts = re.split(r"([0-9]+)", _key(name))
    digits = [part.lstrip("0") if index % 2 else part for index, part in enumerate(parts)]
    return [(len(part) if index % 2 else 0, part) for index, part in enumerate(digits)], name


def _resolved(words: Iterable[str], ids: Mapping[str, str]) -> Iterator[str]:
    """The ids that are meant; an unknown one stays as written."""
    for word in words:
        if (id_ := ids.get(_key(word))) or word.casefold() not in _NO_DEPENDENCY:
            yield id_ or word


# -- what a file says ----------------------------------------------------------------------------------------------


def _title(page: Page) -> str:
    """The first level-one heading, or else the first visible line."""
    top = (block for block in page.blocks if block.level == 1 and len(block.within) == 1)
    lines = (line.strip(" \t*_") for block in (*top, *page.blocks) for line in _seen(block).split("\n"))
    return shorten(next((line for line in lines if line.strip()), ""), _LONGEST_TITLE)


def _seen(block: Block) -> str:
    """A block's words without comments, tags and box."""
    if block.type in {"fence", "code_block"}:
        return block.text
    text = markdown.without_comments(block.text)
    if block.type == "html_block":
        return "" if not block.ended else _TAG.sub(" ", text)
    box = BOX.match(text) if block.begins_item else None
    return box["text"] if box and box["gap"] and not box["link"] else text


def _depends_on(page: Page) -> Iterator[str]:
    """What front matter and comments name; a comment in code is an example."""
    yield from _named(page.front, top_level=True)
    for block in page.blocks:
        if block.type not in {"inline", "html_block"} or block.is_raw:
            continue
        text = block.text if block.ended else f"{block.text}-->"
        for kind, part in markdown.spans(text):
            if kind is Span.COMMENT:
                yield from _named(part.removeprefix("<!--").removesuffix("-->"), top_level=False)


def _named(text: str, *, top_level: bool) -> Iterator[str]:
    """The values of the key `depends_on`: `a, b`, `[a, b]` or a dashed list, one per line."""
    if "depends" not in text.lower():
        return
    lines = iter([_REMARK.sub("", line) for line in text.split("\n")])
    for line in lines:
        key = _DEPENDS_ON.fullmatch(line)
        if key and not (top_level and key["indent"]):
            values = _covered(key["value"].strip(), lines)
            yield from (word.strip(" \t[]\"'`") for value in values for word in value.split(","))


def _covered(value: str, following: Iterator[str]) -> Iterator[str]:
    """The parts of a value that continues below its key; they are taken from the lines that follow."""
    yield value
    if not value:
        below = itertools.takewhile(lambda line: not line.strip() or _LISTED.fullmatch(line), following)
        yield from (line.strip().removeprefix("-") for line in below)
    in_brackets = value.startswith("[")
    while value.endswith(",") or (in_brackets and "]" not in value):
        if (line := next(following, None)) is None:
            return
        value = line.strip()
        yield value


# -- what is wrong with it -----------------------------------------------------------------------------------------


def _problem(tasks: tuple[FolderTask, ...], pages: Mapping[str, Page], done: Collection[str]) -> str | None:
    if not tasks:
        return "has no tasks"
    named: dict[str, str] = {}
    for (name, page), task in zip(pages.items(), tasks, strict=True):
        if page.problem:
            return f"has {_shown(name)}, which {page.problem}"
        if not task.title:
            return f"has {_shown(name)}, which is empty"
        if (twin := named.setdefault(_key(name), name)) != name:
            return f"has {_shown(twin)} and {_shown(name)}, which differ only in case"
    return _unknown(tasks, done) or _circle(tasks)


def _unknown(tasks: tuple[FolderTask, ...], done: Collection[str]) -> str | None:
    ids = {*done, *(task.id for task in tasks)}
    for task in tasks:
        for id_ in task.depends_on:
            if id_ not in ids:
                import difflib  # only needed after a mistake

                alike = difflib.get_close_matches(_shown(id_), ids - {task.id}, 1, _NEAR)
                hint = f"; did you mean {alike[0]}?" if alike else ""
                return f"has no task {_shown(id_)}, but {_shown(task.id)} depends on it{hint}"
    return None


def _circle(tasks: tuple[FolderTask, ...]) -> str | None:
    """Tasks that depend on each other, from the first in order: each arrow means "depends on"."""
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter({task.id: task.depends_on for task in tasks}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][:0:-1]  # ends where it began; each comes before the one that depends on it
        order = {task.id: number for number, task in enumerate(tasks)}
        first = min(range(len(circle)), key=lambda index: order[circle[index]])
        ids = [*circle[first:], *circle[:first], circle[first]]
        return shorten(f"has a dependency cycle: {' → '.join(map(_shown, ids))}", 400)
    return None


def _shown(name: str) -> str:
    return shorten(visible(name), _LONGEST_NAME)
