"""Write a task's files where its ledger cannot be written: from its state, and from what is recorded now."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.core.facts import EventRecorded, IterationRecorded
from bydawn.dialects.seam import Entry, Log, View, Whole
from bydawn.dialects.strict_agent_loop import document, files, lines, paths
from bydawn.dialects.strict_agent_loop.contract import Contract
from bydawn.dialects.strict_agent_loop.document import State, StopReport
from bydawn.operations.dialects.strict_agent_loop import tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.preconditions import is_inside_a_round
from bydawn.store import drop
from bydawn.system import shared_file
from bydawn.system.json_lines import JsonLines
from bydawn.system.paths import open_parent
from bydawn.system.writing import replacing, write_all

Say = Callable[[str], None]
_PATIENCE = 30.0  # seconds for the other scripts of a session
_TAKING = 5.0  # seconds that the process of a round has to take a record
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def create(workspace: Path, made: Contract, say: Say) -> Task:
    """A new task; the next command outside makes a loop of it."""
    folder = workspace / paths.root(made.task)
    at = datetime.now(UTC)
    now = document.begun(made, str(workspace), at)
    report = document.stop_report(now, (), at)
    try:
        _write(workspace, Whole(paths.of(made.task, paths.DROP, paths.CONTRACT), _encoded(made)), say)
        first = lines.initialized(now)
        views = [_event(now, first, f"init-{made.task}"), *files.of_task(now, report)]
        write(workspace, [Whole(paths.IGNORE, "*\n", once=True), *views], say)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # whatever it is, nothing comes of this task
        raise
    return Task(workspace=workspace, id=made.task, standing=None, document=now)


def read(task: Task) -> State:
    """Its state, as its file says now."""
    return tasks.read_state(task.workspace, task.id)


def record(task: Task, fact: EventRecorded | IterationRecorded, say: Say, report: StopReport | None = None) -> State:
    """Drop a record. In a round, its process takes it and writes the files; else they are brought up to date here."""
    place = task.workspace / paths.of(task.id, paths.DROP)
    if is_inside_a_round():
        posted = drop.post(place, fact)
        return read(task) if _is_taken(posted) else document.with_claim(read(task), fact)
    with _turn(task):
        before = read(task)
        drop.post(place, fact)
        now = document.with_claim(before, fact)
        views: list[View] = [_event(now, lines.event_of_claim(now, fact), fact.record)]
        if isinstance(fact, IterationRecorded):
            views += files.of_iteration(now, document.records_of(now).entries[-1], fact.record)
        views += files.of_task(now, report or tasks.last_report(task.workspace, now))
        write(task.workspace, views, say)
    return now


def _is_taken(posted: Path) -> bool:
    deadline = time.monotonic() + _TAKING
    while os.path.lexists(posted) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not os.path.lexists(posted)


def write(workspace: Path, views: Iterable[View], say: Say) -> None:
    for view in views:
        try:
            _write(workspace, view, say)
        except OSError as error:
            say(f"{view.path} cannot be written: {error.strerror or error}")


def _encoded(made: Contract) -> str:
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"


def _event(now: State, event: msgspec.Struct, record: str) -> Log:
    return files.line(paths.of(now.task.id, paths.EVENTS), event, record)


def _write(workspace: Path, view: View, say: Say) -> None:
    match view:
        case Whole(path, str() as text):
            if view.once and os.path.lexists(workspace / path):
                return
            draft = f".{Path(path).name}.{os.urandom(6).hex()}.tmp"
            with (
                open_parent(str(workspace), path, make=True) as (folder, name),
                replacing(name, draft, _NEW, 0o644, folder=folder) as fd,
            ):
                write_all(fd, text.encode("utf-8", "replace"))
        case Log(path, dict() as value, record):
            JsonLines(workspace, path).add(value, record)
        case Entry(path, keys, value):
            shared_file.update(workspace / path, {keys: value}, say)
        case _:
            raise TypeError(f"no file of a task is written so: {view}")


@contextmanager
def _turn(task: Task) -> Iterator[None]:
    """Two scripts of one session take turns."""
    with (
        open_parent(str(task.workspace), paths.of(task.id, paths.DROP, ".lock"), make=True) as (folder, name),
        shared_file.locked(folder, name, _PATIENCE),
    ):
        yield
