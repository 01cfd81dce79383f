"""What people, other processes and signals can ask of a running loop."""

import msgspec

from bydawn.core.facts import AnyFact, NoteAdded, PauseRequested, StopRequested, TaskSettled
from bydawn.core.values import TaskStatus


class Pause(msgspec.Struct, frozen=True, kw_only=True, tag="pause"):
    """Pause, to be resumed later; after the running round unless `now`."""

    id: str
    run: str
    by: str
    now: bool = False
    signal: str | None = None


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """End the loop because a person wants it to end."""

    id: str
    run: str
    by: str
    now: bool = True


class Tell(msgspec.Struct, frozen=True, kw_only=True, tag="tell"):
    """A note for the next prompt."""

    id: str
    run: str
    by: str
    text: str


class SettleTask(msgspec.Struct, frozen=True, kw_only=True, tag="task"):
    """A person's decision about one task: skip it, or reopen it."""

    id: str
    run: str
    by: str
    task: str
    text: str
    status: TaskStatus


Request = Pause | Stop | Tell | SettleTask


def as_fact(request: Request) -> AnyFact:
    """The fact that records a request."""
    match request:
        case Pause():
            return PauseRequested(by=request.by, now=request.now, signal=request.signal, request=request.id)
        case Stop():
            return StopRequested(by=request.by, now=request.now, request=request.id)
        case Tell():
            return NoteAdded(note=request.id, text=request.text, by=request.by, request=request.id)
        case SettleTask():
            return TaskSettled(
                task=request.task, text=request.text, status=request.status, by=request.by, request=request.id
            )
