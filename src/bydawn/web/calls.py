"""A request that was let in, and what an answer can be."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import msgspec

from bydawn.core.errors import NotFound, UserError
from bydawn.store.registry import Standing
from bydawn.web.auth import Access, Gate
from bydawn.web.loops import Loops
from bydawn.web.page import Page, Visitor

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bydawn.web.stream import Hub

T = TypeVar("T")
MOST_BODY = 1 << 20  # bytes
MOST_DOCUMENT = 4 << 20  # a form that has a document in it: other letters than English ones take three times the room


def number(text: str, digits: int = 9) -> int | None:
    """What a browser or a program says is a number, if it is one of at most so many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


class Site(msgspec.Struct, kw_only=True):
    """What one server shows, and to whom."""

    name: str  # `bydawn`, or the tool that it speaks for
    folder: Path  # where it was started
    loops: Loops
    gate: Gate
    hub: "Hub"
    for_programs: bool = False  # it answers in JSON unless a page is asked for


class Call(msgspec.Struct, kw_only=True):
    """A request of someone who may make it."""

    site: Site
    visitor: Visitor
    path: dict[str, str]
    query: dict[str, str]
    form: dict[str, list[str]]
    body: Any = None  # what was sent as JSON, read as the type that the route wants
    headers: dict[str, str] = {}
    request: "Request | None" = None

    @property
    def loops(self) -> Loops:
        return self.site.loops

    @property
    def standing(self) -> Standing:
        """The loop that the address names."""
        return self.site.loops.find(self.path["loop"])

    def number(self, name: str) -> int:
        """The number of a round in the address."""
        text = self.path[name]
        if (found := number(text)) is None:
            raise NotFound(f"there is no round “{text[:20]}”", cause="rounds are numbered from 1 on")
        return found

    def count(self, name: str) -> int | None:
        """A number after `?`."""
        text = self.query.get(name, "")
        if text and number(text) is None:
            raise UserError("this address cannot be read", cause=f"{name}={text[:20]!r} is not a number")
        return number(text)

    def field(self, name: str, usual: str = "") -> str:
        """A field of a form."""
        return self.form.get(name, [usual])[0]

    def asked(self, kind: type[T]) -> T:
        """The words after `?`, as values."""
        try:
            return msgspec.convert(self.query, kind, strict=False)
        except msgspec.ValidationError as error:
            raise UserError("this address cannot be read", cause=str(error), hint="see /api/openapi.json") from None


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """The next page after a form."""

    to: str
    told: str = ""  # said above it, once
    cookies: dict[str, str] = {}  # choices of the visitor, such as the theme
    prepared: "Callable[[Response], None] | None" = None  # what else the answer carries


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """A file; what agents and loops wrote is saved, never shown as a page."""

    data: bytes
    name: str
    media: str = "application/octet-stream"
    attached: bool = True
    status: int = 200
    headers: dict[str, str] = {}


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that goes on."""

    events: AsyncGenerator[Any, None]


Answer = Page | Sent | Raw | Events
Act = Callable[[Call], object] | Callable[[Call], Awaitable[object]]  # an `Answer`, or else a value: it is sent as JSON


def either(kind: Any) -> tuple[Any, ...]:
    """A type, or those of a union."""
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


class Kind(StrEnum):
    PAGE = "page"
    FORM = "form"
    API = "api"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: routing, access and the OpenAPI document follow from it."""

    method: str
    path: str
    act: Act
    kind: Kind
    access: Access
    says: str = ""  # what it does, for programs that read the OpenAPI document
    asks: type | None = None  # the words after `?`
    takes: type | None = None  # the JSON that it reads
    clashes: type | None = None  # what it gives with 412, if there is another version than `If-Match` names
    status: int = 200
    bare: bool = False  # its JSON is without our own `"schema": 1`: another tool's format
    most: int = MOST_BODY
    behind: Act | None = None  # the page that a form is on: shown again, with what was typed, if it is refused

    @property
    def name(self) -> str:
        return self.act.__name__

    @property
    def gives(self) -> tuple[Any, ...]:
        """The types of its answers; of an API's, the JSON that it writes."""
        return either(get_type_hints(self.act)["return"])

    @property
    def streams(self) -> bool:
        return self.gives == (Events,)


def page(path: str, act: Act, access: Access = Access.LOOK, *, bare: bool = False) -> Route:
    return Route(method="GET", path=path, act=act, kind=Kind.PAGE, access=access, bare=bare)


def form(path: str, act: Act, behind: Act | None = None, access: Access = Access.STEER, most: int = MOST_BODY) -> Route:
    return Route(method="POST", path=path, act=act, kind=Kind.FORM, access=access, most=most, behind=behind)


def look(path: str, act: Act, says: str = "", **more: Any) -> Route:
    """Something of the API to look at."""
    return Route(method="GET", path=path, act=act, kind=Kind.API, access=Access.LOOK, says=says, **more)


def steer(path: str, act: Act, takes: type | None = None, says: str = "", method: str = "POST", **more: Any) -> Route:
    """Something of the API that changes something."""
    return Route(method=method, path=path, act=act, kind=Kind.API, access=Access.STEER, takes=takes, says=says, **more)
