"""The status server of rloop: `GET /`, `GET /status`, `GET /status/:name`, `POST /stop/:name`."""

from collections.abc import Iterable
from typing import Any

from bydawn import __version__
from bydawn.core.errors import NotFound, UserError
from bydawn.dialects.rloop import DIALECT
from bydawn.dialects.rloop.config import NAME
from bydawn.dialects.rloop.files import CRASHED
from bydawn.operations.dialects.rloop import sessions, starting
from bydawn.operations.dialects.rloop.sessions import Session
from bydawn.store.registry import Standing
from bydawn.web.calls import Call, Route, Site, look, page, steer
from bydawn.web.page import Page
from bydawn.web.pages.home import home

_ENDPOINTS = ("GET /status", "GET /status/:name", "POST /stop/:name")


def is_shown(standing: Standing) -> bool:
    """A server that this command started shows its sessions and no other loops."""
    return standing.loop.dialect is not None and standing.loop.dialect.name == DIALECT.name


def first(call: Call) -> Page | dict[str, Any]:
    """The page for a browser; for programs what there is to ask."""
    if "text/html" in call.headers.get("accept", ""):
        return home(call)
    service = {"service": f"{NAME} status server", "status": "ok"}
    return {"name": NAME, **service, "version": __version__, "endpoints": _ENDPOINTS}


def all_sessions(call: Call) -> dict[str, Any]:  # noqa: ARG001 - the same for everyone
    return {"sessions": [sessions.document(each) for each in sessions.table()]}


def one_session(call: Call) -> dict[str, Any]:
    return sessions.document(_found(call))


def stop_session(call: Call) -> dict[str, Any]:
    """The same as `rloop stop NAME`."""
    found = _found(call)
    if found.is_alive or found.status == CRASHED:
        starting.stop(found)
        starting.until_it_is_gone(found)
        return sessions.document(sessions.find(found.name, lambda _: None))
    raise UserError(f"{found.name} is not running", cause=f"it is {found.status}", exit_code=8)


def _found(call: Call) -> Session:
    try:
        return sessions.find(call.path["name"], lambda _: None)
    except UserError as error:
        raise NotFound.of(error) from None


def routes(site: Site) -> Iterable[Route]:  # noqa: ARG001 - the same for every server
    yield page("/", first, bare=True)
    yield look("/status", all_sessions, bare=True)
    yield look("/status/{name}", one_session, bare=True)
    yield steer("/stop/{name}", stop_session, bare=True)
