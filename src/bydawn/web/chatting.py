"""Questions about a repository: each is a process of its own, `bydawn chat`, whose lines we pass on."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.operations.service import program
from bydawn.process.refusals import Ear
from bydawn.store.registry import Standing
from bydawn.web.acts import with_workspace
from bydawn.web.calls import Site
from bydawn.web.news import Event
from bydawn.web.starting import environment, refuse_odd

_LONGEST = 4 << 20  # bytes of a line
_BEGIN = b'{"schema":'  # of every line
_ENDS = 1.0  # seconds that agents have to end in when the server does
_running: dict[asyncio.Task[None], asyncio.subprocess.Process] = {}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an answer, for all pages that are open: those about another loop leave it alone."""

    loop: str
    line: msgspec.Raw


async def answers(
    site: Site, standing: Standing, message: str, *, include: Iterable[str] | None = None
) -> AsyncGenerator[Any, None]:
    """Ask, and return what is said as server-sent events; the answer is kept even if no one listens."""
    if not message.strip():
        raise UserError("nothing to ask", cause="the question is empty", hint="type a question")
    with_workspace(standing)
    words = ["chat", standing.loop.id, "-", "-C", standing.loop.workspace, "--json"]
    chosen = () if include is None else [*include] or ["none"]
    words += [word for name in chosen for word in ("--include", name)]
    refuse_odd(words)
    with Ear() as ear:
        child = await asyncio.create_subprocess_exec(
            *(program("bydawn"), *words, "--state-dir", str(standing.folder.state_folder.path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=ear.variables(environment()),
            pass_fds=[ear.fd],
            limit=_LONGEST,
            start_new_session=True,
        )
        assert child.stdin and child.stdout  # noqa: S101 - pipes, as asked for
        child.stdin.write(message.encode())
        child.stdin.close()
        first = await child.stdout.readline()
        if not first:
            raise ear.error(await child.wait())
    said_so_far: asyncio.Queue[bytes | None] = asyncio.Queue()
    address = site.loops.address(standing)
    task = asyncio.create_task(_pass_on(site, address, child, first, said_so_far))
    _running[task] = child
    task.add_done_callback(lambda done: _running.pop(done, None))
    return _events(said_so_far)


async def _pass_on(
    site: Site, address: str, child: asyncio.subprocess.Process, first: bytes, heard: "asyncio.Queue[bytes | None]"
) -> None:
    assert child.stdout  # noqa: S101
    line = first
    while line:
        if line.startswith(_BEGIN):
            heard.put_nowait(line)
            said = Said(loop=address, line=msgspec.Raw(line.strip()))
            site.hub.tell(Event.of("chat", said, loop=address))
        try:
            line = await child.stdout.readline()
        except ValueError:  # a line that is too long: it is left out, and what is still to come of it has no beginning
            line = b"\n"
    heard.put_nowait(None)
    await child.wait()


async def _events(heard: "asyncio.Queue[bytes | None]") -> AsyncGenerator[Any, None]:
    while line := await heard.get():
        yield {"event": "chat", "data": line.decode(errors="replace").strip()}


async def end_all() -> None:
    """The server ends: so do the agents that it asked, if need be after us. Each question ends its own."""
    for child in _running.values():
        if child.returncode is None:
            child.terminate()
    if _running:
        await asyncio.wait([*_running], timeout=_ENDS)
