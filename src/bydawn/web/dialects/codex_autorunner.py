"""The endpoints of codex-autorunner, for the one repository that its server was started in."""

import asyncio
import subprocess
import time
from collections.abc import AsyncGenerator, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from bydawn.core.errors import NotFound, OwnFailure, UserError
from bydawn.dialects.codex_autorunner import DIALECT
from bydawn.dialects.codex_autorunner.config import NAME
from bydawn.operations.dialects.codex_autorunner import documents, logs, repository, running
from bydawn.operations.service import program
from bydawn.process.refusals import Ear
from bydawn.store.registry import Standing
from bydawn.web import calls
from bydawn.web.calls import MOST_DOCUMENT, Answer, Call, Events, Route, Site
from bydawn.web.chatting import answers
from bydawn.web.starting import environment

_BEGINS = 30.0  # seconds in which a run has to have begun
_TAIL = 10_000  # lines of the log at most


class Once(msgspec.Struct, frozen=True):
    once: bool = False


class Content(msgspec.Struct, frozen=True):
    content: str


class Which(msgspec.Struct, frozen=True):
    run_id: int | None = None
    tail: int | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    include_todo: bool = True
    include_progress: bool = True
    include_opinions: bool = True

    @property
    def include(self) -> list[str]:
        rows = zip(documents.KINDS, (self.include_todo, self.include_progress, self.include_opinions), strict=True)
        return [kind for kind, wanted in rows if wanted]


def shown_in(root: Path) -> Any:
    """Only the loops of this repository, and of this tool."""

    def is_shown(standing: Standing) -> bool:
        dialect = standing.loop.dialect
        return dialect is not None and dialect.name == DIALECT.name and standing.loop.workspace == str(root)

    return is_shown


@cache
def _followers() -> anyio.CapacityLimiter:
    """Each reader of the log keeps a thread; they must not take those that everything else needs."""
    return anyio.CapacityLimiter(32)


# -- documents, state, logs --------------------------------------------------------------------------------------------


def get_docs(call: Call) -> dict[str, Any]:
    root = call.site.folder
    return documents.read(root, repository.config_of(root))


def put_doc(call: Call) -> dict[str, Any]:
    root, kind = call.site.folder, call.path["kind"]
    if kind not in documents.KINDS:
        raise NotFound(f"there is no document {kind[:20]!r}", cause=f"they are {', '.join(documents.KINDS)}")
    documents.write(root, repository.config_of(root), kind, call.body.content)
    return {"kind": kind, "content": call.body.content}


def get_state(call: Call) -> dict[str, Any]:
    """What `codex-autorunner status --json` prints, and whether anything runs."""
    return _state(call.site.folder)


def _state(root: Path) -> dict[str, Any]:
    found = repository.standing(root)
    fields: dict[str, Any] = msgspec.json.decode(found.text)
    return {**fields, "outstanding_count": found.outstanding, "running": running.alive(root) is not None}


def get_logs(call: Call) -> dict[str, Any]:
    asked, root = call.asked(Which), call.site.folder
    tail = min(max(1, asked.tail), _TAIL) if asked.tail is not None else None
    try:
        if asked.run_id is None and tail:
            lines = logs.last_lines(root, tail)
        else:
            lines = [*logs.block(root, asked.run_id, tail)]
    except UserError as error:
        raise NotFound.of(error) from None
    return {"run_id": asked.run_id or logs.last_run(root), "log": "\n".join(lines)}


async def stream_logs(call: Call) -> Answer:
    """Each line of the log as it is written."""
    return Events(events=_lines(call.site.folder))


async def _lines(root: Path) -> AsyncGenerator[Any, None]:
    try:
        follower = logs.follow(root)
        while True:
            line = await anyio.to_thread.run_sync(next, follower, limiter=_followers())
            if line is not None:
                yield {"data": line}
    except (FileNotFoundError, StopIteration):
        yield {"event": "error", "data": "there is no log yet"}


# -- run ---------------------------------------------------------------------------------------------------------------


def run_start(call: Call) -> dict[str, Any]:
    running.refuse_beside_another(call.site.folder)
    return _begun(call.site.folder, "once" if call.body.once else "run")


def run_resume(call: Call) -> dict[str, Any]:
    running.refuse_beside_another(call.site.folder)
    return _begun(call.site.folder, "resume", *(["--once"] if call.body.once else []))


def _begun(root: Path, *words: str) -> dict[str, Any]:
    """Start it as a person would, in the background, and wait until it runs or says why not."""
    argv = [program(NAME), *words, "--repo", str(root)]
    quiet, deadline = subprocess.DEVNULL, time.monotonic() + _BEGINS
    with Ear() as ear:
        child = subprocess.Popen(
            argv,
            cwd=root,
            env=ear.variables(environment()),
            pass_fds=[ear.fd],
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
        )
        while time.monotonic() < deadline:
            if running.alive(root):
                return _state(root)
            if child.poll() is not None:
                if error := ear.heard():
                    raise error
                return _state(root)  # it has ended already
            time.sleep(0.05)
    raise OwnFailure("it has not begun yet", cause=f"that took more than {_BEGINS:.0f} s", hint="look at /api/state")


def run_stop(call: Call) -> dict[str, Any]:
    """After the current run."""
    running.stop(call.site.folder)
    return _state(call.site.folder)


def run_kill(call: Call) -> dict[str, Any]:
    running.kill(call.site.folder)
    return _state(call.site.folder)


async def chat(call: Call) -> Answer:
    standing = await asyncio.to_thread(repository.newest, call.site.folder)
    if standing is None:
        raise UserError("nothing has run here yet", cause="a chat belongs to a loop", hint=f"`{NAME} run`", exit_code=8)
    body = call.body
    return Events(events=await answers(call.site, standing, body.message, include=body.include))


def routes(site: Site) -> Iterable[Route]:  # noqa: ARG001 - the same for every server
    look, steer = partial(calls.look, bare=True), partial(calls.steer, bare=True)
    yield look("/api/docs", get_docs)
    yield steer("/api/docs/{kind}", put_doc, Content, method="PUT", most=MOST_DOCUMENT)
    yield look("/api/state", get_state)
    yield look("/api/logs", get_logs, asks=Which)
    yield look("/api/logs/stream", stream_logs)
    yield steer("/api/run/start", run_start, Once)
    yield steer("/api/run/stop", run_stop)
    yield steer("/api/run/kill", run_kill)
    yield steer("/api/run/resume", run_resume, Once)
    yield steer("/api/chat", chat, Question)
