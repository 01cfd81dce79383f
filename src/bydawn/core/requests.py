"""What people, other processes and signals can ask of a running loop."""

import msgspec

from bydawn.core.facts import AnyFact, LinesAdded, NoteAdded, PauseRequested, StopRequested, TaskSettled
from bydawn.core.values import Line, TaskStatus


class _Ask(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    run: str
    by: str


class AskPause(_Ask, frozen=True, kw_only=True, tag="pause"):
    """Pause, to be resumed later; after the running round unless `now`."""

    now: bool = False
    signal: str | None = None


class AskStop(_Ask, frozen=True, kw_only=True, tag="stop"):
    """End the loop because a person wants it to end."""

    now: bool = True


class AskNote(_Ask, frozen=True, kw_only=True, tag="tell"):
    """A note for the next prompt."""

    text: str


class AskSettle(_Ask, frozen=True, kw_only=True, tag="task"):
    """A person's decision about one task: skip it, or reopen it."""

    task: str
    text: str
    status: TaskStatus


class AskAdd(_Ask, frozen=True, kw_only=True, tag="add"):
    """A person adds a task; on record before it is in the file, where an agent may overwrite it."""

    line: Line


Request = AskPause | AskStop | AskNote | AskSettle | AskAdd


def as_fact(request: Request) -> AnyFact:
    """The fact that records a request."""
    match request:
        case AskPause():
            return PauseRequested(by=request.by, now=request.now, signal=request.signal, request=request.id)
        case AskStop():
            return StopRequested(by=request.by, now=request.now, request=request.id)
        case AskNote():
            return NoteAdded(note=request.id, text=request.text, by=request.by, request=request.id)
        case AskAdd():
            return LinesAdded(lines=(request.line,), by=request.by, request=request.id)
        case AskSettle():
            return TaskSettled(
                task=request.task, text=request.text, status=request.status, by=request.by, request=request.id
            )
