"""A loop's task list: the state of each task; add, skip and reopen tasks."""

import os
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core import added_lines, checkpoint, new_task, task_folder
from bydawn.core.errors import NotFound, UserError
from bydawn.core.loop import Checkpoint, Loop
from bydawn.core.progress import forgiven
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER, shorten, visible
from bydawn.core.values import Act, Advice, Line, TaskStatus
from bydawn.core.worklist import Listed, Stand, Standings, WorkList, standings
from bydawn.operations import steer
from bydawn.operations.checked_loop import no_task_file
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.saving import put
from bydawn.operations.settings import checkpoint_of, gather
from bydawn.operations.start import another
from bydawn.store.registry import Standing
from bydawn.system.reading import FileTexts, read_folder, read_inside, read_text

_TRIES = 5  # at writing a list that something else writes at the same time
_PATIENCE = 1.0  # seconds for an agent that does not write a list at once
_SHOWN = 60  # characters of a task in an error


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """A task list as it is now; without a `standing`, no loop uses it yet."""

    loop: Loop
    standings: Standings
    standing: Standing | None = None

    @property
    def file(self) -> str:
        return self.loop.tasks or ""

    @property
    def reference(self) -> str:
        return self.standing.reference if self.standing else self.loop.id

    @property
    def trouble(self) -> str | None:
        """What is wrong with the list, in a sentence."""
        return f"{self.file} {self.standings.problem}" if self.standings.problem else None


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    number: int | None
    id: str
    text: str
    stand: Stand = msgspec.field(name="status")
    line: int | None
    waits_for: tuple[str, ...]
    proof: str  # would the checks notice if it were missing?


class CheckpointView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    text: str
    stand: Stand = msgspec.field(name="status")
    line: int | None


class TaskListView(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks list --json`."""

    loop: str | None
    workspace: str
    file: str | None
    is_folder: bool
    problem: str | None
    warnings: tuple[str, ...]
    counts: dict[str, int]
    tasks: list[TaskView]
    checkpoints: list[CheckpointView]


class SettledNow(msgspec.Struct, frozen=True, kw_only=True):
    """The result of skipping or reopening a task; nothing was recorded if that was already its state."""

    task: Listed
    taken_by: str | None  # None: nothing was changed
    stranded: tuple[Listed, ...] = ()  # open tasks that wait for it
    round: int | None = None  # the running one, if it works on this task


# -- looking -----------------------------------------------------------------------------------------------------------


def of_loop(standing: Standing) -> Board:
    """The list of a loop, from its files as they are now and from its ledger."""
    if standing.trouble:
        raise standing.trouble
    loop = standing.loop
    found = Standings()
    if loop.tasks:
        try:
            source = _source(loop, standing)
            found = standings(source, loop, standing.state) if source is not None else Standings(problem="is gone")
        except UserError as error:
            found = Standings(problem=f"cannot be read: {error.cause or error.what}")
    return Board(loop=loop, standings=found, standing=standing)


def trouble_if_accepted(standing: Standing) -> str | None:
    """What is wrong with the list even if a person accepts every change in it."""
    loop = standing.loop
    reading = WorkList(loop, FileTexts(Path(loop.list_root))).read(forgiven(standing.state), None)
    return f"{loop.tasks} {reading.problem}" if reading and reading.problem else None


def without_loop(path: str, folder: Path) -> Board:
    """What bydawn sees in a checklist or a task folder that no loop uses yet."""
    loop = Loop(
        id="",
        uid="",
        workspace=str(folder),
        created_at=datetime.now(UTC),
        prompt="",
        agent="",
        tasks=path,
        task_folder=(folder / path).is_dir(),
        checkpoint=checkpoint_of(gather(folder)),
    )
    if (source := _source(loop)) is None:
        raise no_task_file(path, folder)
    found = standings(source, loop, LoopState())
    warnings = (*found.warnings, *_deaf(source)) if loop.checkpoint is None else found.warnings
    return Board(loop=loop, standings=msgspec.structs.replace(found, warnings=warnings))


def _deaf(source: str | Mapping[str, str]) -> Iterable[str]:
    """Warnings about lines that look like a checkpoint, although none is set."""
    token = Checkpoint().token
    for mark in checkpoint.marks(source, token) if isinstance(source, str) else ():
        yield f"line {mark.line}: not a checkpoint unless you start the loop with --checkpoint {token!r}"


def set_here(folder: Path) -> Board:
    """The list named by a folder's settings, if it has no loop yet."""
    if path := gather(folder).text("tasks"):
        return without_loop(path, folder)
    raise UserError(
        f"there is no loop in {folder}",
        cause="and its settings name no task list",
        hint=Advice("to look at a list without a loop: ", Act("tasks list", t="TODO.md")),
    )


def _source(loop: Loop, standing: Standing | None = None) -> str | Mapping[str, str] | None:
    """An empty one is read again while a round runs: its agent may be writing it."""
    read = read_folder if loop.task_folder else read_text
    until = time.monotonic() + (_PATIENCE if standing and standing.alive and standing.state.open_round else 0)
    while not (found := read(Path(loop.list_root), loop.tasks or "")) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def list_view(board: Board) -> TaskListView:
    marks = [item for item in board.standings.items if item.number is None]
    return TaskListView(
        loop=board.loop.id or None,
        workspace=board.loop.workspace,
        file=board.loop.tasks,
        is_folder=board.loop.task_folder,
        problem=board.trouble,
        warnings=board.standings.warnings,
        counts=board.standings.counts,
        tasks=msgspec.convert(board.standings.tasks, list[TaskView], from_attributes=True),
        checkpoints=msgspec.convert(marks, list[CheckpointView], from_attributes=True),
    )


# -- which task is meant -----------------------------------------------------------------------------------------------


def named(board: Board, word: str) -> Listed:
    """The task a person means: by its number, its id, or the start of its text."""
    tasks, wanted = board.standings.tasks, _folded(word)
    if not tasks:
        raise _no_tasks(board)
    if wanted.isdecimal():
        found = [task for task in tasks if str(task.number) == wanted]
    else:
        found = [task for task in tasks if wanted in (_folded(task.id), _folded(task.text))]
        found = found or [task for task in tasks if wanted and _folded(task.text).startswith(wanted)]
    if len(found) == 1:
        return found[0]
    shown = shorten(visible(word), _SHOWN)
    if found:
        hint = "use its number or its id, or more of its text"
        raise NotFound(f"{shown!r} matches {len(found)} tasks", cause=_rows(found), hint=hint)
    from difflib import get_close_matches  # needed only after a typo

    names = {_folded(text[:200]): task for task in tasks for text in (task.id, task.text)}
    near = list(dict.fromkeys(names[name] for name in get_close_matches(wanted[:200], names, cutoff=0.5)))
    cause = f"similar: {_rows(near)}" if near else f"{board.file} has {len(tasks)} tasks"
    hint = Advice(Act("tasks list", board.reference if board.standing else ""), " lists them all")
    raise NotFound(f"there is no task {shown!r}", cause=cause, hint=hint)


def _no_tasks(board: Board) -> UserError:
    if not board.loop.tasks:
        ended = board.standing is not None and board.standing.finished
        return UserError(
            f"the loop {board.loop.id} has no task list",
            cause="it only has a prompt",
            hint=another(board.loop)
            if ended
            else Advice("add a note for its agent: ", Act("tell", board.reference, PLACEHOLDER)),
        )
    return UserError(board.trouble or f"{board.file} has no tasks", hint=_how_to_fix(board))


def _how_to_fix(board: Board) -> str:
    if board.loop.task_folder:
        return f"fix it in {Path(board.loop.list_root) / board.file}"
    return Advice("fix it: ", Act("tasks edit", board.reference))


def _folded(text: str) -> str:
    """For comparing: without case, and spaces and letters in one form."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _rows(tasks: Sequence[Listed]) -> str:
    rows = [f"{task.number} “{shorten(task.text, _SHOWN)}”" for task in tasks[:10]]
    more = f" and {len(tasks) - 10} more" if len(tasks) > 10 else ""
    return ", ".join(rows) + more


# -- skip and reopen ---------------------------------------------------------------------------------------------------

_DONE = (Stand.DONE, Stand.DOUBTED)
_ALREADY = {
    TaskStatus.SKIPPED: (Stand.SKIPPED, *_DONE),
    TaskStatus.OPEN: (Stand.OPEN, Stand.NEXT, Stand.WAITING),
}


def settle(standing: Standing, words: Iterable[str], status: TaskStatus) -> Iterable[SettledNow]:
    """Skip these tasks or open them again: check everything first, then yield each once it is recorded."""
    refuse_inside_a_round()
    _refuse_finished(standing)
    board = of_loop(standing)
    tasks = list(dict.fromkeys(named(board, word) for word in words))
    for task in tasks:
        if status is TaskStatus.OPEN:
            _refuse_ticked(board, task)
    for task in tasks:
        if task.stand in _ALREADY[status]:
            yield SettledNow(task=task, taken_by=None)
            continue
        answer = steer.settle(standing, task.id, task.text, status)
        waiting = (each for each in board.standings.tasks if task.id in each.waits_for and each not in tasks)
        opened = standing.state.open_round if standing.alive else None
        yield SettledNow(
            task=task,
            taken_by=answer.taken_by,
            stranded=tuple(each for each in waiting if each.stand is Stand.WAITING),
            round=opened.round if opened and opened.started.task_id == task.id else None,
        )


def _refuse_finished(standing: Standing) -> None:
    """A finished loop takes no more tasks; what to do instead depends on where its tasks are."""
    if not standing.finished or not standing.loop.tasks:
        return steer.refuse_finished(standing)
    loop, go_on = standing.loop, another(standing.loop)
    opens = (
        Advice("untick it in the file (", Act("tasks edit", standing.reference), "), then ")
        if not loop.task_folder
        else ""
    )
    every = "; all its tasks will be open" if loop.task_folder else ""
    raise UserError(
        f"{loop.id} is already {standing.status}",
        cause="a finished loop takes no more tasks",
        hint=Advice(opens, go_on, every),
    )


def _refuse_ticked(board: Board, task: Listed) -> None:
    """bydawn never unticks a box itself."""
    if task.stand in _DONE and not board.loop.task_folder:
        raise UserError(
            f"task {task.number} is ticked in {board.file}: “{shorten(task.text, _SHOWN)}”",
            cause="bydawn never unticks a box; nothing was changed",
            hint=Advice("run ", Act("tasks edit", board.reference), f" and write `[ ]` in line {task.line}"),
        )


# -- add ---------------------------------------------------------------------------------------------------------------


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was added to a list: the list now, and its row there."""

    board: Board
    task: Listed | None
    written: bool = True  # False: on record, but an agent kept writing the file


def add(standing: Standing, words: str) -> Added:
    """Add a task to the list of a loop. It is on record before it is in the file, so that no agent can overwrite it."""
    refuse_inside_a_round()
    if not new_task.is_one_line(words):
        raise UserError(
            "this cannot be a task" if words.strip() else "nothing to add",
            cause="it has control characters or more than one line" if words.strip() else "the text is empty",
            hint=Advice("for example: ", Act('tasks add LOOP "write the tests"')),
        )
    words = " ".join(words.split())
    before = of_loop(standing)
    if not before.loop.tasks:
        raise _no_tasks(before)
    _refuse_problem(before)
    add_it = _new_file if before.loop.task_folder else _new_box
    line = add_it(standing, words)[0]
    if not standing.finished:
        steer.add(standing, line)
    written = any(_write(standing, *add_it(standing, words)[1:]) for _ in range(_TRIES))
    if not written and standing.finished:
        cause = "an agent may be writing it; nothing was added"
        raise UserError(f"{before.file} keeps changing", cause=cause, hint="try again in a moment")
    after = of_loop(standing)
    known = {item.id for item in before.standings.items}
    task = next((item for item in after.standings.items if item.id not in known), None)
    return Added(board=after, task=task, written=written)


def _write(standing: Standing, path: Path, text: str, old: bytes | None) -> bool:
    """Not if the file is another one by now: an agent is writing it."""
    return put(standing.folder.state_folder, path, text.encode(), old)


def _new_box(standing: Standing, words: str) -> tuple[Line, Path, str, bytes | None]:
    loop = standing.loop
    root, path = Path(loop.list_root), loop.tasks or ""
    data = read_inside(root, path) or None  # an empty one has just been emptied: then nothing is written
    text = new_task.with_box((data or b"").decode(), words)
    if text is None:
        raise UserError(
            f"cannot add a box to {path}",
            cause="wherever it goes, Markdown would not read it as a task, or would read other tasks differently",
            hint=Advice("add it yourself: ", Act("tasks edit", standing.reference)),
        )
    line = added_lines.of_box(words, text, loop.checkpoint.token if loop.checkpoint else "")
    return line, Path(os.path.realpath(root / path)), text, data


def _new_file(standing: Standing, words: str) -> tuple[Line, Path, str, bytes | None]:
    loop = standing.loop
    root, path = Path(loop.list_root), loop.tasks or ""
    files = read_folder(root, path) or {}
    name, text = new_task.file_name(words, files), f"# {words}\n"
    if problem := task_folder.read({**files, name: text}, standing.state.settled.done).problem:
        raise UserError("this cannot be a task", cause=f"with it {path} {problem}", hint="use other words")
    return Line(text=text.strip(), file=name), Path(os.path.realpath(root / path)) / name, text, None


def _refuse_problem(board: Board) -> None:
    if board.trouble:
        cause = "tasks are only added to a list without problems; nothing was changed"
        raise UserError(board.trouble, cause=cause, hint=_how_to_fix(board))


# -- edit --------------------------------------------------------------------------------------------------------------


def file_of(board: Board, word: str | None) -> tuple[Path, Listed | None]:
    """The file to edit, and the task in it if one was named."""
    root = Path(board.loop.list_root)
    if not board.loop.tasks:
        raise _no_tasks(board)
    task = named(board, word) if word is not None else None
    if not board.loop.task_folder:
        # Refuses a path outside the workspace; a file that is not text may be opened to fix it.
        read_inside(root, board.file)
        return root / board.file, task
    if task is None:
        raise UserError(
            f"{board.file} is a folder with one file per task",
            cause=_rows(board.standings.tasks) or "it has no tasks",
            hint=Advice("say which task: ", Act("tasks edit", board.reference, "1")),
        )
    files = read_folder(root, board.file) or {}
    name = next((name for name in files if task_folder.id_of(name) == task.id), f"{task.id}.md")
    return root / board.file / name, task
