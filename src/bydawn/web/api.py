"""The API: what `--json` prints, and what commands do, for programs and for our own pages."""

from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool

from bydawn.core.errors import UserError
from bydawn.core.values import Status
from bydawn.operations import decisions, documents, tasks
from bydawn.operations.chat import Turn, history
from bydawn.operations.detail import LoopDetail, loop_detail
from bydawn.operations.health import Health, health, of_service
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.metrics import Metrics, metrics
from bydawn.operations.next_steps import next_steps
from bydawn.operations.recent import the_round
from bydawn.operations.round_log import LogPage, log_page
from bydawn.operations.rounds import RoundView, round_view
from bydawn.operations.startable import Startable
from bydawn.operations.views import LoopView, by_need, loop_view, with_current_tasks
from bydawn.store.ledger import read
from bydawn.web.acts import VERBS, Done, Verb, perform, with_workspace
from bydawn.web.calls import MOST_DOCUMENT, Call, Events, Route, look, steer
from bydawn.web.chatting import answers
from bydawn.web.loops import readable
from bydawn.web.starting import on_offer, start

_MOST_EVENTS = 1000
_MOST_LINES = 2000


# -- what it reads and writes ------------------------------------------------------------------------------------------


class LoopList(msgspec.Struct, frozen=True, kw_only=True):
    loops: list[LoopView]


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    at: datetime
    type: str
    data: dict[str, Any]


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """Facts in order; ask for more with `after` = the last `seq`."""

    events: list[EventRow]


class DocumentList(msgspec.Struct, frozen=True, kw_only=True):
    documents: tuple[documents.DocumentName, ...]


class TurnList(msgspec.Struct, frozen=True, kw_only=True):
    turns: tuple[Turn, ...]


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was not done; a loop that has gone on since is given as it is now."""

    error: str
    cause: str = ""
    hint: str = ""
    state: Status | None = None
    reason: str | None = None


class Which(msgspec.Struct, frozen=True, kw_only=True):
    all: bool = False  # dismissed loops too


class Following(msgspec.Struct, frozen=True, kw_only=True):
    """`loops`: names, or `*`; `page`: addresses; `log`: NAME:ROUND:OFFSET:LINE."""

    loops: str = "*"
    page: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


class Since(msgspec.Struct, frozen=True, kw_only=True):
    after: int = 0
    limit: int = 200


class LogWindow(msgspec.Struct, frozen=True, kw_only=True):
    round: int | None = None
    first: int | None = msgspec.field(default=None, name="from")
    lines: int = 500
    q: str = ""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A document; `base` is the text that it was made from: with it, a clash is only where both changed something."""

    text: str
    base: str | None = None


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Start the demo, or what the settings of a folder say; `config` is the key of one of the folders on offer."""

    config: str = ""
    demo: bool = False


class StartList(msgspec.Struct, frozen=True, kw_only=True):
    """What can be started: the `key` of a row that is ready is a `config`."""

    folders: list[Startable]


class Started(msgspec.Struct, frozen=True, kw_only=True):
    loop: str
    told: str


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    include: tuple[str, ...] | None = None


# -- looking -----------------------------------------------------------------------------------------------------------


def list_loops(call: Call) -> LoopList:
    everything = call.asked(Which).all
    listed = [each for each in call.loops.all() if everything or not each.state.dismissed]
    found = by_need(with_leftovers(listed))
    return LoopList(loops=[loop_view(each, next_steps(each)) for each in found])


def get_loop(call: Call) -> LoopDetail:
    [standing] = with_leftovers([with_current_tasks(readable(call.standing))])
    return loop_detail(standing)


def get_round(call: Call) -> RoundView:
    return round_view(the_round(readable(call.standing), call.number("number")))


def get_tasks(call: Call) -> tasks.TaskListView:
    return tasks.list_view(tasks.of_loop(readable(call.standing)))


def get_why(call: Call) -> decisions.Reason:
    return decisions.why(readable(call.standing))


def get_log(call: Call) -> LogPage:
    asked, standing = call.asked(LogWindow), readable(call.standing)
    number = standing.state.round if asked.round is None else asked.round
    if number:
        the_round(standing, number)
    lines = min(max(1, asked.lines), _MOST_LINES)
    return log_page(standing, number, first=asked.first, count=lines, search=asked.q)


def get_events(call: Call) -> EventList:
    asked = call.asked(Since)
    records = (record for record, _ in read(readable(call.standing).folder.ledger) if record.seq > asked.after)
    rows = []
    for record in islice(records, min(max(1, asked.limit), _MOST_EVENTS)):
        data = msgspec.to_builtins(record.fact)
        rows.append(EventRow(seq=record.seq, at=record.at, type=data.pop("type"), data=data))
    return EventList(events=rows)


def list_documents(call: Call) -> DocumentList:
    return DocumentList(documents=documents.documents(with_workspace(call.standing)))


def get_document(call: Call) -> documents.Document:
    return documents.read(with_workspace(call.standing), call.path["key"])


def get_chat(call: Call) -> TurnList:
    return TurnList(turns=history(call.standing))


def list_startable(call: Call) -> StartList:
    return StartList(folders=on_offer(call.site))


def get_metrics(call: Call) -> Metrics:
    return metrics(call.loops.all())


def get_health(call: Call) -> Health:
    registry = call.loops.registry
    return health(registry.root, call.loops.all(), of_service(registry))


# -- steering ----------------------------------------------------------------------------------------------------------


def verb(row: Verb) -> Route:
    """Something that a person does to a loop; it may take effect later."""

    def act(call: Call) -> Done:
        return perform(row, call.standing, call.body)

    act.__name__ = row.act.__name__
    return steer(f"{LOOP}/{row.name}", act, row.takes, row.says, status=202)


def start_loop(call: Call) -> Started:
    standing = start(call.site, key=call.body.config, demo=call.body.demo)
    told = f"{standing.loop.id} has begun."
    return Started(loop=call.loops.address(standing), told=told)


def put_document(call: Call) -> documents.Saved | documents.Conflict:
    """With `If-Match: VERSION`, the one that the text was made from."""
    version = call.headers.get("if-match", "").strip('"')
    if not version:
        hint = "ask for it (GET), and send its version as `If-Match`"
        raise UserError("this document names no version", cause="it would overwrite what it has not seen", hint=hint)
    standing = with_workspace(call.standing)
    return documents.save(standing, call.path["key"], call.body.text, version, call.body.base)


async def ask(call: Call) -> Events:
    """The answer of an agent, as it is written."""
    return Events(events=await answers(call.site, call.standing, call.body.message, include=call.body.include))


async def stream(call: Call) -> Events:
    """News of loops: facts, what agents do, output, and parts of pages."""
    names = call.query.get("loops", "*")
    loops = await run_in_threadpool(_addresses, call, [] if names == "*" else names.split(","))
    return Events(events=call.site.hub.stream(call, loops))


def _addresses(call: Call, names: list[str]) -> frozenset[str]:
    return frozenset(call.loops.address(call.loops.find(name)) for name in names)


# -- the table ---------------------------------------------------------------------------------------------------------


LOOP = "/api/loops/{loop}"


ROUTES: tuple[Route, ...] = (
    look("/api/loops", list_loops, "All loops; those that need a person come first", asks=Which),
    look(LOOP, get_loop, "One loop with its rounds"),
    look(f"{LOOP}/rounds/{{number}}", get_round, "One round"),
    look(f"{LOOP}/tasks", get_tasks, "The task list"),
    look(f"{LOOP}/why", get_why, "The last decision"),
    look(f"{LOOP}/log", get_log, "What the agent said in a round", asks=LogWindow),
    look(f"{LOOP}/events", get_events, "Everything that was recorded", asks=Since),
    look(f"{LOOP}/docs", list_documents, "The documents of a loop"),
    look(f"{LOOP}/docs/{{key}}", get_document, "One document, with its version"),
    look(f"{LOOP}/chat", get_chat, "Questions about the repository, and their answers"),
    look("/api/start", list_startable, "Folders whose settings name a goal"),
    look("/api/metrics", get_metrics, "Figures over all loops"),
    look("/api/health", get_health, "Is all well?"),
    look("/api/stream", stream, "News of loops, as server-sent events", asks=Following),
    *map(verb, VERBS),
    steer(
        f"{LOOP}/docs/{{key}}",
        put_document,
        Text,
        "Save a document; the header If-Match names the version that it was made from",
        method="PUT",
        clashes=documents.Conflict,
        most=MOST_DOCUMENT,
    ),
    steer(f"{LOOP}/chat", ask, Ask, "Ask an agent about the repository"),
    steer("/api/loops", start_loop, Start, "Start the demo, or what trusted settings of a folder say", status=202),
)
