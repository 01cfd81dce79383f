"""The files of a task: what is recorded on disk, for people, agents and scripts."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from bydawn.core import records
from bydawn.core.agent import Beat, CommandStarted, Event
from bydawn.core.facts import (
    AnyFact,
    EventRecorded,
    IterationRecorded,
    LoopCreated,
    LoopStopped,
    RoundEnded,
    RoundStarted,
)
from bydawn.core.history import History
from bydawn.core.layout import PROMPT, REPLY, STDOUT
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.dialects.seam import Entry, Files, Log, LogFile, Source, View, Whole
from bydawn.dialects.strict_agent_loop import document, lines, paths, texts
from bydawn.dialects.strict_agent_loop.document import State, StopReport

HEARTBEAT = "supervisor.broadcast"


def task_of(loop: Loop) -> str:
    return loop.dialect.words["task"] if loop.dialect else loop.id


def files(loop: Loop) -> Files:
    task = task_of(loop)
    folders = ("", f"{paths.ROUNDS}/", f"{paths.SUPERVISOR}/", f"{paths.DROP}/")
    return Files(
        owned=tuple(paths.of(task, folder) for folder in folders),
        logs=tuple(
            LogFile(paths.of(task, name), is_json=True) for name in (paths.EVENTS, paths.ITERATIONS, paths.STATUSES)
        ),
        shared=(paths.IGNORE,),
        together=(paths.REGISTRY,),
        claims=(f"the task {task} in {loop.workspace}",),
    )


def views(fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:  # noqa: ARG001
    task, now, record = task_of(loop), document.state_of(loop, state), record_of(fact, task_of(loop))
    for event in lines.events_of(fact, loop, state):
        yield line(paths.of(task, paths.EVENTS), event, record)
    added = [*of_iteration(now, entry, record)] if (entry := lines.new_entry(fact, state)) else []
    yield from added[:1]
    report = document.last_report(loop, state)
    if isinstance(fact, LoopStopped) and state.updated_at and not fact.is_preparation:
        yield _status(now, report, "loop.stopped", state.updated_at)
    yield Whole(paths.IGNORE, "*\n", once=True)
    yield from added[1:]
    if isinstance(fact, RoundStarted):
        yield Whole(paths.invocation(task, fact.round, "prompt.txt"), Source(fact.round, PROMPT))
    elif isinstance(fact, RoundEnded):
        yield Whole(paths.invocation(task, fact.round, "jsonl"), Source(fact.round, STDOUT))
        yield Whole(paths.invocation(task, fact.round, "last.txt"), Source(fact.round, REPLY))
    yield from of_task(now, report)


def record_of(fact: AnyFact, task: str) -> str:
    """What names the lines that a process in a sandbox may have written already."""
    if isinstance(fact, LoopCreated):
        return f"init-{task}"
    return fact.record if isinstance(fact, EventRecorded | IterationRecorded) else ""


def of_iteration(now: State, entry: records.Entry, record: str) -> Iterator[View]:
    """A new iteration: its line, and its page."""
    yield line(paths.of(now.task.id, paths.ITERATIONS), lines.iteration_of(now, entry), record)
    yield Whole(paths.round_summary(now.task.id, entry.number), texts.round_summary(now, entry))


def of_task(now: State, report: StopReport) -> Iterator[View]:
    """Everything that is replaced whenever something happened."""
    task = now.task.id
    yield Whole(paths.of(task, paths.STATE), document.encoded(now))
    yield Whole(paths.of(task, paths.IF_DONE), document.encoded(document.if_done(now)))
    yield Whole(paths.of(task, paths.STATUS_TEXT), texts.status_text(now, report))
    yield Whole(paths.of(task, paths.STOP_REPORT), document.encoded(report))
    yield Whole(paths.of(task, paths.SUMMARY), texts.run_summary(now, report))
    yield from of_registry(now)


def of_registry(now: State) -> Iterator[View]:
    """Its entry in the list of all tasks."""
    yield Entry(paths.REGISTRY, ("tasks", now.task.id), document.registry_entry(now))
    yield Entry(paths.REGISTRY, (), {"schema_version": 1, "updated_at": now.updated_at})


def heard(event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:  # noqa: ARG001
    """The heartbeat, so that the run never looks dead, and commands that overlap."""
    if isinstance(event, Beat):
        now, report = document.state_of(loop, state), document.last_report(loop, state, at)
        yield _status(now, report, HEARTBEAT, at)
        yield line(paths.of(now.task.id, paths.EVENTS), lines.broadcast(now, report, at))
        yield Whole(paths.of(now.task.id, paths.STATUS_TEXT), texts.status_text(now, report, at))
    elif isinstance(event, CommandStarted) and event.beside:
        now = document.state_of(loop, state)
        yield line(paths.of(now.task.id, paths.EVENTS), lines.parallel(now, event.beside, event.command, at))


def _status(now: State, report: StopReport, label: str, at: datetime) -> Log:
    return line(paths.of(now.task.id, paths.STATUSES), texts.status_line(now, report, label, at))


def line(path: str, value: msgspec.Struct, record: str = "") -> Log:
    """A value as one more line; its number comes when it is written."""
    fields = msgspec.to_builtins(value)
    fields.pop("id", None)
    return Log(path, fields, record)
