"""The application: every row of the table behind one gate, with one way to answer and one way to refuse."""

import asyncio
import hmac
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from hashlib import sha256
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, quote, unquote

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as Path

from bydawn.core.errors import NotFound, OwnFailure, UserError
from bydawn.core.text import plain
from bydawn.store.web_keys import Role
from bydawn.web.acts import TooLate
from bydawn.web.api import Refusal
from bydawn.web.auth import Access, Gate, Refused, refuse_forged
from bydawn.web.calls import Act, Call, Events, Kind, Raw, Route, Sent, Site
from bydawn.web.failures import own_failure
from bydawn.web.page import Notice, Page, Visitor, whole
from bydawn.web.pages.question import error_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "content-security-policy": _CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with no-referrer, browsers do not say that a form is our own
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
_TOLD = "bydawn-told"  # the cookie with what the next page says, once
_LONGEST_TOLD = 300  # characters; some take twelve in a cookie, which browsers drop above 4096
_MOST_FIELDS = 20_000  # a list of tasks without scripts sends four for each box
_PING = 300  # seconds between comments in a stream; the hub sends signs of life itself, after it has looked
_STUCK = 30  # seconds after which a reader that takes nothing is let go
_CHECKED = 15.0  # seconds between two looks whether the session of a stream is still good


def application(site: Site, table: Iterable[Route]) -> "ASGIApp":
    rows = [*table]
    routes = [Path(row.path, _endpoint(site, row), methods=[row.method], name=row.name) for row in rows]

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for these
        is_missing = error.status_code == 404
        allowed = ", ".join(_methods(routes, request.scope["path"]))
        what = "there is no such page" if is_missing else "this cannot be done here"
        cause = "" if is_missing else f"{request.method[:20]} is not one of {allowed}"
        refused = Refused(error.status_code, what, cause, "go back to the list of loops")
        is_page = not request.url.path.startswith("/api") and _wants_a_page(site, request)
        response = _refusal(refused, None, is_page=is_page)
        if allowed:
            response.headers["allow"] = allowed
        return response

    app = Starlette(routes=routes, exception_handlers={HTTPException: on_http_error})
    app.router.redirect_slashes = False
    return _Guarded(app, site.gate)


def _wants_a_page(site: Site, request: Request) -> bool:
    return not site.for_programs or "text/html" in request.headers.get("accept", "")


def _methods(routes: Iterable[Path], path: str) -> list[str]:
    """What an address can be asked for."""
    return sorted({method for route in routes if route.path_regex.match(path) for method in route.methods or ()})


class _Guarded:
    """Around everything, unknown addresses too: is it our name, and what browsers must be told in every answer."""

    def __init__(self, app: "ASGIApp", gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        asking = _asking(scope, self._gate.names.cors)

        async def told(message: "Message") -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (_HEADERS | asking).items():
                    headers.setdefault(name, value)
            await send(message)

        if asking and scope["method"] == "OPTIONS":  # a browser asks beforehand; the request itself needs a token
            await Response(status_code=204)(scope, receive, told)
            return

        given = {name for name, _ in scope["headers"]}
        try:
            # A program with a token may use any name. A page that sends one may not: the token may have leaked, and a
            # name that leads to us makes its page one of ours in the eyes of a browser.
            if b"authorization" not in given or (b"origin" in given and not asking):
                self._gate.names.checked(scope)
        except Refused as refused:
            response = _refusal(refused, None, is_page=False)
            await response(scope, receive, told)
            return
        await self._app(scope, receive, told)


def _asking(scope: "Scope", allowed: tuple[str, ...]) -> dict[str, str]:
    """What a browser is told if a page that was allowed to ask does so; no page is, unless it was named."""
    origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), "")
    if origin not in allowed:
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-headers": "authorization, content-type",
        "access-control-allow-methods": "GET, POST",
        "cross-origin-resource-policy": "cross-origin",
        "vary": "origin",
    }


def _endpoint(site: Site, row: Route) -> Any:
    async def endpoint(request: Request) -> Response:
        visitor: Visitor | None = None
        call: Call | None = None
        is_page = row.kind is not Kind.API and _wants_a_page(site, request)
        try:
            visitor = site.gate.admit(request, row.access, is_page=is_page)
            call = await _read(request, site, row, visitor)
            return await _answer(request, row, call, await _done(row, call))
        except ClientDisconnect:
            return Response(status_code=400)
        except UserError as error:
            if row.behind and call:
                return await _again(request, row.behind, call, error)
            await asyncio.sleep(error.wait if isinstance(error, Refused) else 0)
            return _refusal(error, visitor, is_page=is_page)
        except Exception:  # a bug must be told in words here too
            return _refusal(own_failure(), visitor, is_page=is_page, status=500)

    return endpoint


async def _done(row: Route, call: Call) -> object:
    return await row.act(call) if iscoroutinefunction(row.act) else await run_in_threadpool(row.act, call)


# -- reading -----------------------------------------------------------------------------------------------------------


async def _read(request: Request, site: Site, row: Route, visitor: Visitor | None) -> Call:
    call = Call(
        site=site,
        visitor=visitor or site.gate.nobody,
        path={name: str(value) for name, value in request.path_params.items()},
        query=dict(request.query_params),
        form={},
        headers=dict(request.headers),
        request=request,
    )
    if row.method == "GET":
        return call
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    data = await _body(request, row.most)
    if row.kind is Kind.FORM:
        if kind != "application/x-www-form-urlencoded":
            raise Refused(415, "this is not a form", f"its content type is {kind or 'missing'}")
        call.form = _fields(data)
        if row.access is not Access.OPEN:  # one who is signed in may open a new link; its page has no session yet
            refuse_forged(visitor, call.field("csrf"))
        return call
    if kind != "application/json" and (data or kind):
        raise Refused(415, "this is not JSON", f"its content type is {kind or 'missing'}", "send application/json")
    refuse_forged(visitor, request.headers.get("x-csrf", ""))
    if row.takes:
        try:
            call.body = msgspec.json.decode(data or b"{}", type=row.takes)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UserError("this JSON cannot be used", cause=str(error), hint="see /api/openapi.json") from None
    return call


async def _body(request: Request, most: int) -> bytes:
    too_much = Refused(413, "this is too large", f"at most {most >> 20} MB are taken")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        raise too_much
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise too_much
    return bytes(data)


def _fields(data: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError) as error:
        cause = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise UserError("this form cannot be read", cause=cause, hint="reload the page, then try again") from None


# -- answering ---------------------------------------------------------------------------------------------------------


async def _answer(request: Request, row: Route, call: Call, answer: object) -> Response:
    match answer:
        case Page():
            return await run_in_threadpool(_html, request, call.visitor, answer)
        case Sent():
            return _sent(answer, call.visitor)
        case Raw():
            saved = {
                "content-disposition": f"attachment; filename*=UTF-8''{quote(answer.name, safe='')}",
                "content-security-policy": "sandbox; default-src 'none'",
            }
            headers = {**(saved if answer.attached else {}), **answer.headers}
            return Response(answer.data, answer.status, headers, answer.media)
        case Events() if request.method == "HEAD":  # nothing would ever be sent, and so nothing would end it
            return Response(media_type="text/event-stream")
        case Events():
            from sse_starlette import EventSourceResponse

            events = _while_signed_in(call, request, answer.events)
            return EventSourceResponse(events, ping=_PING, send_timeout=_STUCK, sep="\n")
        case _:
            clashes = row.clashes is not None and isinstance(answer, row.clashes)
            return _json(answer, 412 if clashes else row.status, bare=row.bare)


async def _while_signed_in(call: Call, request: Request, events: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
    """A stream does not outlive the session that it was opened with."""
    checked = time.monotonic()
    async with aclosing(events):
        async for event in events:
            if time.monotonic() - checked >= _CHECKED:
                checked = time.monotonic()
                if not await run_in_threadpool(call.site.gate.is_still_in, request):
                    return
            yield event


def _html(
    request: Request,
    visitor: Visitor,
    page: Page,
    notice: Notice | None = None,
    kept: Mapping[str, str] | None = None,
) -> Response:
    told = request.cookies.get(_TOLD, "")
    said = told.partition(".")[2]
    if visitor.csrf and hmac.compare_digest(told.encode(), _signed(said, visitor).encode()):
        notice = notice or Notice(text=plain(unquote(said)))
    path = request.scope["raw_path"].decode("latin-1") + (f"?{request.url.query}" if request.url.query else "")
    text = whole(page, visitor, path=path if request.method != "POST" else "", notice=notice, kept=kept)
    response = Response(text, status_code=page.status, media_type="text/html")
    if told:
        response.delete_cookie(_TOLD, path="/", httponly=True, samesite="strict")
    return response


def _signed(said: str, visitor: Visitor) -> str:
    """What a page says once: only to the session that it was said to. Other ports of this name can set cookies, too."""
    return f"{hmac.new(visitor.csrf.encode(), said.encode(), sha256).hexdigest()[:32]}.{said}"


def _sent(answer: Sent, visitor: Visitor) -> Response:
    response = RedirectResponse(answer.to, status_code=303)
    if answer.told and visitor.csrf:
        said = _signed(quote(answer.told[:_LONGEST_TOLD]), visitor)
        response.set_cookie(_TOLD, said, max_age=20, path="/", httponly=True, samesite="strict")
    for name, value in answer.cookies.items():
        response.set_cookie(name, value, max_age=365 * 86_400, path="/", httponly=True, samesite="strict")
    if answer.prepared:
        answer.prepared(response)
    return response


async def _again(request: Request, behind: Act, call: Call, error: UserError) -> Response:
    """The page of a form that was refused, with what was typed into it."""
    kept = {name: values[0] for name, values in call.form.items() if name not in ("csrf", "expect_seq")}
    notice = Notice(text=_sentence(error.what), cause=_sentence(error.cause), hint=_sentence(error.hint), failed=True)
    try:
        page = cast("Page", await run_in_threadpool(behind, call))
        page = msgspec.structs.replace(page, status=status_of(error))
        return await run_in_threadpool(_html, request, call.visitor, page, notice, kept)
    except Exception as another:  # also a bug in that page must not hide why the form was refused
        if not isinstance(another, UserError):
            own_failure()
        return _refusal(error, call.visitor, is_page=True)


def _sentence(text: str) -> str:
    return plain(text[:1].upper() + text[1:])


def _refusal(error: UserError, visitor: Visitor | None, *, is_page: bool, status: int = 0) -> Response:
    status = status or status_of(error)
    if is_page:
        text = whole(error_page(status, error, visitor), visitor or Visitor(role=Role.LOOK))
        response = Response(text, status_code=status, media_type="text/html")
    else:
        refusal = Refusal(error=plain(error.what), cause=plain(error.cause), hint=plain(error.hint))
        if isinstance(error, TooLate):
            refusal = msgspec.structs.replace(refusal, state=error.state, reason=error.reason)
        response = _json(refusal, status)
    if status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def _json(value: Any, status: int, *, bare: bool = False) -> Response:
    data = msgspec.json.encode(value, enc_hook=str)
    if not bare:
        data = b'{"schema":1' + (b"," if len(data) > 2 else b"") + data[1:]
    return Response(data, status_code=status, media_type="application/json")


def status_of(error: UserError) -> int:
    """The status that stands for an error of the command line."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, OwnFailure):
        return 503
    return {2: 400, 1: 503}.get(error.exit_code, 409)
