"""The work list of a loop: a checklist or a task folder, read after every round and never trusted blindly."""

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from bydawn.core import checkpoint, tasks
from bydawn.core.completion import lost_lines
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.ports import Texts
from bydawn.core.state import LoopState, Settled
from bydawn.core.text import shorten
from bydawn.core.values import Line, ReachedMark, TaskReading

if TYPE_CHECKING:
    from bydawn.core.added_lines import Source

_NAMED = 3  # of the lost tasks
_STOOD = 1.0  # seconds


class _New(msgspec.Struct, frozen=True):
    """A line that came into the list, when that was seen, and the list before it."""

    line: Line
    at: float
    before: "Source"


class WorkList:
    """What there is to do, during one run of one loop."""

    def __init__(self, loop: Loop, texts: Texts, hide: Callable[[str], str] = str) -> None:
        self._loop = loop
        self._texts = texts
        self._hide = hide  # what is on record has no secrets
        self._token = loop.checkpoint.token if loop.checkpoint else ""
        self._source: Source | None = None  # as last read
        self.stamp: Hashable = None  # of what was read or seen last
        self._last: Source = ""  # seen since then
        self._lines: Counter[str] | None = None  # all that were
        self._new: list[_New] = []  # of these, the ones whose writer is not known yet
        self._tasks: tasks.Tasks | None = None  # the checklist when it was last trusted
        self._unparsed: Callable[[], tasks.Tasks] | None = None  # the same, as an earlier process left it
        self._names: dict[str, str] = {}  # each box's text when it was first seen; agents like to add notes
        self._files: Mapping[str, str] = {}  # the folder, in the same way

    def read(self, state: LoopState, before: TaskReading | None) -> TaskReading | None:
        """What it says now. As long as it cannot be trusted, the tasks that were open before are kept."""
        if not self._loop.tasks:
            return None
        try:
            self.stamp, self._lines, self._last, self._new = self._texts.stamp(self._loop.tasks), None, "", []
            reading = self._folder(state, before) if self._loop.task_folder else self._file(state, before)
        except UserError as error:
            reading = TaskReading(open=0, done=0, problem=f"cannot be read: {error.cause or error.what}")
        lines = lost_lines(state)
        if not reading.problem:
            return msgspec.structs.replace(reading, gone=self._gone(lines))
        known = before or state.tasks or reading  # even for a person's fresh start: an unreadable list is not empty
        return msgspec.structs.replace(known, problem=reading.problem, disbelieved=reading.disbelieved, gone=lines)

    def appeared(self, at: float) -> tuple[Line, ...]:
        """Lines that came into the list since it was last read and count as a person's, now that it is so late.

        They stood for a second, or what took them out was a copy from before they came: an agent may reword its own.
        """
        now, found = self._written(), [each for each in self._new if at - each.at >= _STOOD]
        if now is not None and self._source is not None:
            from bydawn.core import added_lines  # few lists change while a round runs

            gone = added_lines.gone(now, (each.line for each in self._new), self._token)
            taken_out = [each for each in self._new if each.line in gone and each not in found]
            found += [each for each in taken_out if added_lines.is_older(now, each.before, each.line.file, self._token)]
            self._new = [each for each in self._new if each not in taken_out]
            known = added_lines.counts(self._source, self._token) if self._lines is None else self._lines
            lines = added_lines.appeared(self._source, now, known, self._token)
            self._lines = known | added_lines.counts(now, self._token) if lines else known
            self._new += [_New(line, at, self._last or self._source) for line in lines]
            self._last = now
        self._new = [each for each in self._new if each not in found]
        return tuple(each.line for each in found)

    def _written(self) -> "Source | None":
        """The list, if it was written since the last look. An empty one is perhaps being written."""
        if self._source is None:
            return None
        with suppress(UserError):
            if (stamp := self._texts.stamp(self._loop.tasks or "")) != self.stamp and (now := self._read()):
                self.stamp = stamp
                return now
        return None

    def _gone(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        if not lines or self._source is None:
            return lines
        from bydawn.core import added_lines  # most loops lose nothing

        source = self._source
        hidden = self._hide(source) if isinstance(source, str) else {name: self._hide(source[name]) for name in source}
        return added_lines.gone(hidden, lines, self._token)

    def _read(self) -> "Source | None":
        path = self._loop.tasks or ""
        return self._texts.read_folder(path) if self._loop.task_folder else self._texts.read_text(path)

    def closed_since(self, before: TaskReading | None) -> tuple[str, ...]:
        """The texts of tasks that were open in an earlier reading and are done in the last one."""
        if self._unparsed:
            return ()  # it has not changed
        was_open = {*before.open_ids} if before else set[str]()
        boxes = self._tasks.items if self._tasks else ()
        return tuple(self._names[task.id] for task in boxes if task.done and task.id in was_open)

    def name_of(self, task_id: str | None) -> str | None:
        """What a box said when it was first seen."""
        return self._names.get(task_id or "")

    def text_of(self, task_id: str | None) -> str:
        """The whole text of a task in a folder; a box in a list has only its line."""
        if not self._files:
            return ""
        from bydawn.core.task_folder import id_of  # most loops have no task folder

        return next((text for name, text in self._files.items() if id_of(name) == task_id), "")

    def _file(self, state: LoopState, before: TaskReading | None) -> TaskReading:
        text = self._texts.read_text(self._loop.tasks or "")
        if text is None:
            return tasks.missing_file()
        name = _digest(text, state)
        self._source = text
        if before and before.text == name:
            if self._tasks is None:  # the parser takes a while to load, and an agent could start meanwhile
                self._unparsed = partial(_boxes_of, text, self._loop, state, before)
            return msgspec.structs.replace(before, problem=None, disbelieved="")  # it may have been missing in between
        if self._unparsed:
            self._believe(self._unparsed())
            self._unparsed = None
        found = _boxes_of(text, self._loop, state, before)
        reading = of_checklist(text, self._loop, state, before, found)
        if reading.problem:
            problem = self._named(reading.problem, found, state, before)
            return msgspec.structs.replace(reading, problem=problem, disbelieved=_mark(text))
        self._believe(found)
        return msgspec.structs.replace(reading, text=name)

    def _named(self, problem: str, found: tasks.Tasks, state: LoopState, before: TaskReading | None) -> str:
        """Add the names of the lost tasks, if they are still known."""
        gone = {*(before.open_ids if before else ())} - {task.id for task in found.items} - {*state.settled.skipped}
        names = [shorten(self._names[id_], 60) for id_ in self._names if id_ in gone]
        shown = [f'"{name}"' for name in names[:_NAMED]] + ["…"] * (len(names) > _NAMED)
        if not shown and before and before.problem and before.problem.startswith(f"{problem} ("):
            return before.problem  # from an earlier process that had seen them
        return f"{problem} ({', '.join(shown)})" if found.items and shown else problem

    def _believe(self, found: tasks.Tasks) -> None:
        self._tasks = found
        for task in found.items:
            self._names.setdefault(task.id, task.name)

    def _folder(self, state: LoopState, before: TaskReading | None) -> TaskReading:
        files = self._texts.read_folder(self._loop.tasks or "")
        if files is None:
            return tasks.missing_file()
        reading = of_folder(files, state.settled, before)
        if reading.problem:
            return msgspec.structs.replace(reading, disbelieved=_mark(_in_one(files)))
        self._files = self._source = files
        return msgspec.structs.replace(reading, text=_digest(_in_one(files), state))


def of_checklist(
    text: str, loop: Loop, state: LoopState, before: TaskReading | None, found: tasks.Tasks | None = None
) -> TaskReading:
    """A checklist as a recorded reading: boxes, which may be known already, and the checkpoints reached."""
    found = found or _boxes_of(text, loop, state, before)
    marks = _marks_of(text, loop, state, found)
    lines = {mark.line for mark in marks}  # a box that is a checkpoint is not a task
    boxes = [task for task in found.items if task.line not in lines and task.id not in state.settled.skipped]
    left = [task for task in boxes if not task.done]
    stranded = _below_questions(left, state)
    aside = {*state.settled.aside, *(task.id for task in stranded)}
    following = next((task for task in left if task.id not in aside), None)
    return TaskReading(
        open=len(left),
        done=len(boxes) - len(left),
        next=following.text if following else None,
        next_id=following.id if following else None,
        open_ids=tuple(task.id for task in left),
        problem=(found.problem if loop.tasks_required else found.unread) or _passed_by(marks, boxes, state, before),
        marks=tuple(mark.id for mark in marks),
        above=tuple(sum(mark.line < task.line for mark in marks) for task in left) if marks else (),
        reached=tuple(ReachedMark(id=mark.id, text=mark.text) for mark in marks if mark.reached),
        ahead=tuple(ReachedMark(id=mark.id, text=mark.text) for mark in marks if not mark.reached),
        stranded=tuple(task.text for task in stranded if task.id not in state.settled.aside),
    )


def _below_questions(boxes: Iterable[tasks.Task], state: LoopState) -> list[tasks.Task]:
    """The boxes that belong to one that a person has to answer for."""
    asked = {tally.task for tally in state.questions}
    parents = {task.line for task in boxes if task.id in asked}
    return [task for task in boxes if not parents.isdisjoint(task.within)] if parents else []


def _boxes_of(text: str, loop: Loop, state: LoopState, before: TaskReading | None) -> tasks.Tasks:
    unwanted = state.settled.skipped if before else (*state.settled.skipped, *state.settled.aside)
    marks = checkpoint.lines(text, loop.checkpoint.token) if loop.checkpoint else ()
    return tasks.read(text, before, unwanted, marks)


def _marks_of(text: str, loop: Loop, state: LoopState, found: tasks.Tasks) -> tuple[checkpoint.Mark, ...]:
    if not loop.checkpoint:
        return ()
    wanted = [task for task in found.items if task.id not in state.settled.skipped]
    known = state.tasks.marks if state.tasks else None
    return checkpoint.marks(text, loop.checkpoint.token, wanted, known, state.approved)


def _passed_by(
    marks: tuple[checkpoint.Mark, ...], boxes: list[tasks.Task], state: LoopState, before: TaskReading | None
) -> str | None:
    """Was a checkpoint removed, or moved below a task, before a person looked?"""
    if before is None:
        return None
    place = {mark.id: mark.line for mark in marks}
    if set(before.marks) - set(place) - set(state.approved):
        return "lost a checkpoint that was not approved"
    above = dict(zip(before.open_ids, before.above, strict=False))
    lines = [0 if mark in state.approved else place.get(mark, 0) for mark in before.marks]
    lowest = [0, *accumulate(lines, max)]  # for each number of marks, the line of the lowest of them now
    for task in boxes:
        if task.line < lowest[above.get(task.id, 0)]:
            return f'has "{shorten(task.name, 60)}" before a checkpoint that was not approved; it used to come after it'
    return None


def of_folder(files: Mapping[str, str], settled: Settled, before: TaskReading | None = None) -> TaskReading:
    """A task folder as a recorded reading; each task's state is in the ledger, not in its file."""
    from bydawn.core import task_folder  # most loops have no task folder

    found = task_folder.read(files, settled.done)
    aside = {*settled.aside, *settled.skipped}
    left = [task for task in found.items if task.id not in settled.done and task.id not in settled.skipped]
    following = next(iter(task_folder.ready(found, settled.done, aside)), None)
    there = {task.id for task in found.items}
    lost = {*before.open_ids} - there - {*settled.skipped} if before else set()
    gone = f"lost {len(lost)} open {'task' if len(lost) == 1 else 'tasks'}: {', '.join(sorted(lost))}" if lost else None
    return TaskReading(
        open=len(left),
        done=sum(task.id in settled.done for task in found.items),
        next=following.title if following else None,
        next_id=following.id if following else None,
        open_ids=tuple(task.id for task in left),
        problem=found.problem or gone,
        texts=tuple(_mark(task.text) for task in left),
        stranded=tuple(task.title for task in task_folder.stranded(found, settled.done, aside)),
        absent=tuple(id_ for id_ in (*settled.done, *settled.aside) if id_ not in there),
    )


def is_damaged(data: bytes | None) -> bool:
    """Is a list gone, empty (after a power cut, it may be as long as before), or not text?"""
    try:
        return not (data or b"").decode().strip("\ufeff\0 \t\r\n")
    except UnicodeDecodeError:
        return True


def is_believed(text: str, loop: Loop, state: LoopState, before: TaskReading | None) -> bool:
    """Can a checklist be read, and is every task in it that was open?"""
    return of_checklist(text, loop, state, before).problem is None


def rewritten(before: TaskReading | None, now: TaskReading | None, own: str | None) -> tuple[str, ...]:
    """Open tasks of a folder whose text has changed; a round may add to its own task's file."""
    if before is None or now is None:
        return ()
    known = dict(zip(before.open_ids, before.texts, strict=False))
    texts = zip(now.open_ids, now.texts, strict=False)
    return tuple(id_ for id_, text in texts if id_ != own and known.get(id_, text) != text)


def _in_one(files: Mapping[str, str]) -> str:
    return repr(sorted(files.items()))


def _digest(text: str, state: LoopState) -> str:
    """Tells one list from another, and from the same list with other tasks set aside."""
    known = repr(state.settled) + repr(state.approved)
    return f"{_mark(text)}-{zlib.crc32(known.encode()):08x}"


def _mark(text: str) -> str:
    return f"{len(text)}-{zlib.crc32(text.encode(errors='replace')):08x}"


# -- for people --------------------------------------------------------------------------------------------------------


class Stand(StrEnum):
    """The state of a task, or of a checkpoint between tasks, in one word that all views share."""

    NEXT = "next"
    OPEN = "open"
    WAITING = "waiting"  # for another task
    ASIDE = "aside"
    DONE = "done"
    DOUBTED = "doubted"  # ticked in a round that changed nothing else, or claimed although nothing changed
    SKIPPED = "skipped"
    REACHED = "reached"
    APPROVED = "approved"
    AHEAD = "ahead"


_STILL_OPEN = (Stand.NEXT, Stand.OPEN, Stand.WAITING, Stand.ASIDE)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a work list."""

    id: str
    text: str
    stand: Stand
    number: int | None = None  # from the top, starting at 1; a checkpoint has none
    line: int | None = None  # in a checklist
    waits_for: tuple[str, ...] = ()  # tasks in its folder that are not done
    proof: str = ""  # would the checks notice if it were missing?


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """A whole work list now; `problem` is the end of "TODO.md …"."""

    items: tuple[Listed, ...] = ()
    problem: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[Listed, ...]:
        return tuple(item for item in self.items if item.number is not None)

    @property
    def counts(self) -> dict[str, int]:
        """All tasks as `open`, `done` and `skipped`; the other rows count special cases among them."""
        stands = [item.stand for item in self.tasks]
        kinds = {
            "open": _STILL_OPEN,
            "done": (Stand.DONE, Stand.DOUBTED),
            "skipped": (Stand.SKIPPED,),
            "aside": (Stand.ASIDE,),
            "waiting": (Stand.WAITING,),
            "doubted": (Stand.DOUBTED,),
        }
        return {name: sum(stand in kind for stand in stands) for name, kind in kinds.items()}


def standings(source: str | Mapping[str, str], loop: Loop, state: LoopState) -> Standings:
    """The state of each task, from its file and the ledger, as the next run or round will see it."""
    known = None if state.stopped else state.tasks  # after a recorded stop, a person may change the list freely
    if isinstance(source, str):
        found, reading = _listed_boxes(source, loop, state, known), of_checklist(source, loop, state, known)
        changed = of_checklist(source, loop, state, state.tasks) if state.stopped else None
        warnings = tasks.read(source).warnings
    else:
        found, reading = _listed_files(source, state), of_folder(source, state.settled, known)
        changed = of_folder(source, state.settled, state.tasks) if state.stopped else None
        warnings = ()
    items = [
        msgspec.structs.replace(item, stand=Stand.NEXT) if item.id == reading.next_id and item.number else item
        for item in found
    ]
    answers = {task: each.words for each in state.proofs.noticed for task in each.tasks}
    if answers:
        items = [msgspec.structs.replace(item, proof=answers.get(item.text, "")) for item in items]
    if changed and changed.problem and not reading.problem:
        warnings = (f"since the loop last read it, it {changed.problem}", *warnings)
    return Standings(items=tuple(items), problem=reading.problem, warnings=warnings)


def _listed_boxes(text: str, loop: Loop, state: LoopState, known: TaskReading | None) -> list[Listed]:
    found = _boxes_of(text, loop, state, known)
    marks = _marks_of(text, loop, state, found)
    lines = {mark.line for mark in marks}
    boxes = [task for task in found.items if task.line not in lines]
    waiting = {task.id for task in _below_questions(boxes, state) if not task.done}
    rows = [
        Listed(id=task.id, text=task.text, stand=_of_box(task, state, waiting), number=number, line=task.line)
        for number, task in enumerate(boxes, 1)
    ]
    rows += [Listed(id=mark.id, text=mark.text, stand=_of_mark(mark, state), line=mark.line) for mark in marks]
    return sorted(rows, key=lambda row: row.line or 0)


def _of_box(task: tasks.Task, state: LoopState, waiting: Collection[str]) -> Stand:
    if task.id in state.settled.skipped:
        return Stand.SKIPPED
    if task.done:
        return Stand.DOUBTED if task.name in state.doubted else Stand.DONE
    if task.id in state.settled.aside:
        return Stand.ASIDE
    return Stand.WAITING if task.id in waiting else Stand.OPEN


def _of_mark(mark: checkpoint.Mark, state: LoopState) -> Stand:
    if mark.id in state.approved:
        return Stand.APPROVED
    return Stand.REACHED if mark.reached else Stand.AHEAD


def _listed_files(files: Mapping[str, str], state: LoopState) -> list[Listed]:
    from bydawn.core import task_folder

    settled = state.settled
    places = (
        (settled.doubted, Stand.DOUBTED),
        (settled.done, Stand.DONE),
        (settled.skipped, Stand.SKIPPED),
        (settled.aside, Stand.ASIDE),
    )
    rows = []
    for number, task in enumerate(task_folder.read(files, settled.done).items, 1):
        waits_for = tuple(id_ for id_ in task.depends_on if id_ not in settled.done)
        open_ = Stand.WAITING if waits_for else Stand.OPEN
        stand = next((stand for ids, stand in places if task.id in ids), open_)
        waits_for = () if task.id in settled.done else waits_for
        rows.append(Listed(id=task.id, text=task.title or task.id, stand=stand, number=number, waits_for=waits_for))
    return rows
