"""What the agent of a round did, step by step; steps of one kind that follow each other are one."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby

import msgspec

from bydawn.core.agent import (
    Activity,
    CommandEnded,
    CommandStarted,
    Complaint,
    Denied,
    Event,
    LimitNotice,
    Message,
    Notice,
    Retry,
    readable,
)
from bydawn.core.text import shorten
from bydawn.operations import outputs
from bydawn.operations.amounts import plural
from bydawn.store.registry import Standing

MOST_LINES = 5_000  # of a round's output that are read, …
MOST_LIVE = 400  # … and while it runs, when they are read again and again
MOST_STEPS = 150
_TITLE = 200  # characters of a step's title
_NAMED = 3  # names beside a title
_VERB = re.compile(r"(reading|editing|edited|searching for|runs|running|warns:) ?(.*)", re.DOTALL)


class StepKind(StrEnum):
    READ = "read"
    EDIT = "edit"
    SEARCH = "search"
    COMMAND = "command"
    SAID = "said"
    DENIED = "denied"
    RETRY = "retry"
    LIMIT = "limit"
    OTHER = "other"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step, or several of a kind."""

    kind: StepKind
    title: str
    code: str = ""  # a command, at the end of the title
    note: str = ""
    details: tuple[str, ...] = ()  # all of it, if the title does not say all
    failed: bool = False


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    steps: tuple[Step, ...]
    earlier: bool = False  # there were more before these


class _Did(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened."""

    kind: StepKind
    text: str
    detail: str = ""
    note: str = ""
    failed: bool = False


def round_steps(standing: Standing, number: int, reply: str = "") -> Steps:
    """What the agent did in a round; without the message that is its `reply`."""
    opened = standing.state.open_round
    live = standing.alive and opened is not None and opened.round == number
    count = MOST_LIVE if live else MOST_LINES
    events, is_cut = outputs.last_events(standing, number, count)
    did = [*_did(events)]
    if did and did[-1].kind is StepKind.SAID and reply and did[-1].detail.strip() == reply.strip():
        did.pop()
    steps = [step for kind, those in groupby(did, key=_alike) for step in _steps(kind[0], [*those])]
    return Steps(steps=tuple(steps[-MOST_STEPS:]), earlier=is_cut or len(steps) > MOST_STEPS)


def _did(events: Iterable[Event]) -> Iterator[_Did]:
    begun: dict[str, _Did] = {}  # commands that have not ended
    for event in events:
        match event:
            case CommandStarted():
                begun[event.command] = _Did(kind=StepKind.COMMAND, text=event.command, note="no end seen")
            case CommandEnded():
                begun.pop(event.command, None)
                yield _command(event)
            case Message() if event.text.strip():
                yield _Did(kind=StepKind.SAID, text=shorten(event.text, _TITLE), detail=event.text)
            case Activity():
                yield _activity(event.text)
            case Denied() | Retry() | LimitNotice():
                kinds = {Denied: StepKind.DENIED, Retry: StepKind.RETRY, LimitNotice: StepKind.LIMIT}
                yield _Did(kind=kinds[type(event)], text=event.text, detail=event.text)
            case Notice() | Complaint():
                yield _Did(kind=StepKind.OTHER, text=readable(event), detail=event.text)
            case _:
                pass
    yield from begun.values()


def _command(event: CommandEnded) -> _Did:
    ended = f"exit {event.exit_code}" if event.exit_code is not None else "failed" if event.failed else ""
    return _Did(
        kind=StepKind.COMMAND, text=event.command, detail=event.output.rstrip(), note=ended, failed=event.failed
    )


def _activity(text: str) -> _Did:
    """Agents begin with a verb of ours; what is new to us is shown as it is."""
    found = _VERB.fullmatch(text)
    kinds = {
        "reading": StepKind.READ,
        "editing": StepKind.EDIT,
        "edited": StepKind.EDIT,
        "searching for": StepKind.SEARCH,
        "runs": StepKind.COMMAND,
        "running": StepKind.COMMAND,
    }
    kind = kinds.get(found[1]) if found else None
    return _Did(kind=kind, text=found[2]) if found and kind else _Did(kind=StepKind.OTHER, text=text)


def _alike(did: _Did) -> tuple[StepKind, object]:
    """What goes into one step: a failure and what was said have their own."""
    alone = did.failed or did.kind in (StepKind.SAID, StepKind.DENIED)
    return did.kind, id(did) if alone else None


def _steps(kind: StepKind, those: list[_Did]) -> Iterator[Step]:
    first, names = those[0], tuple(dict.fromkeys(each.text for each in those))
    match kind:
        case StepKind.SAID:
            whole = (first.detail,) if first.detail.strip() != first.text else ()
            yield Step(kind=kind, title=f"“{first.text}”", details=whole)
        case StepKind.DENIED:
            yield Step(kind=kind, title="Not allowed: ", code=shorten(first.text, _TITLE), note="sandbox")
        case StepKind.COMMAND if len(those) == 1:
            details = tuple(filter(None, (first.text if len(first.text) > _TITLE else "", first.detail)))
            code = shorten(first.text, _TITLE)
            yield Step(kind=kind, title="Ran ", code=code, note=first.note, details=details, failed=first.failed)
        case StepKind.COMMAND:
            details = tuple(shorten(each.text, _TITLE) for each in those)
            yield Step(kind=kind, title=f"Ran {plural(len(those), 'command')}", details=details)
        case StepKind.READ | StepKind.EDIT:
            verb = "Read" if kind is StepKind.READ else "Edited"
            if len(names) == 1:
                yield Step(kind=kind, title=f"{verb} ", code=shorten(names[0], _TITLE))
            else:
                yield Step(kind=kind, title=f"{verb} {plural(len(names), 'file')}", note=_few(names), details=names)
        case StepKind.SEARCH:
            details = names if len(names) > 1 else ()
            yield Step(kind=kind, title="Searched for ", code=_few(names), details=details)
        case StepKind.RETRY | StepKind.LIMIT:
            times = f"{len(those)} times" if len(those) > 1 else ""
            title = shorten(names[-1], _TITLE)
            yield Step(kind=kind, title=title, note=times, details=names if len(names) > 1 else ())
        case StepKind.OTHER:
            title = shorten(first.text, _TITLE) if len(those) == 1 else plural(len(those), "other step")
            yield Step(kind=kind, title=title, details=names if len(those) > 1 else ())


def _few(names: tuple[str, ...]) -> str:
    """`TODO.md, refunds.py …`"""
    shown = ", ".join(shorten(name.rpartition("/")[2] or name, 40) for name in names[:_NAMED])
    return f"{shown} …" if len(names) > _NAMED else shown
