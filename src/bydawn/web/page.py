"""A page as data: a heading and sections. Whole pages and live fragments come from the same templates."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bydawn import __version__
from bydawn.core.values import Status
from bydawn.store.web_keys import Role

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"


class Tab(StrEnum):
    """What a loop's pages show, in the order of the tabs."""

    OVERVIEW = "overview"
    ROUNDS = "rounds"
    DOCS = "docs"
    LOG = "log"
    CHAT = "chat"


class Crumb(msgspec.Struct, frozen=True):
    """A step of the path in the top bar; the last one has no address."""

    text: str
    href: str = ""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a page. A live one is sent again whenever it differs from what was sent last."""

    id: str  # of its HTML element
    template: str  # a file in templates/sections/
    data: dict[str, Any] = {}
    live: bool = True
    settled: str = ""  # if it is given: it is drawn again only if this differs
    column: str = ""  # "left" or "right" where a page has two


class Page(msgspec.Struct, frozen=True, kw_only=True):
    title: str  # of the window: `! billing 5/9`
    crumbs: tuple[Crumb, ...]
    sections: tuple[Section, ...]
    mark: Status | None = None  # the state that the icon of the window shows
    loop: str = ""  # the reference of the loop that it is about, if it is about one
    tab: Tab | None = None
    up: str = "/"  # where `u` and the arrow on a phone lead
    rail: Section | None = None  # the list of loops beside it, on wide screens
    at: str = ""  # where it is kept fresh from, if that is not the address of the request
    refreshes: bool = False  # without scripts it is loaded again after 30 s
    status: int = 200


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at a page."""

    role: Role
    csrf: str = ""  # what their forms carry; a script fills it into fragments, which all visitors share
    theme: str = ""  # "light", "dark", or as the system has it
    keys: bool = True  # are single-key shortcuts on?

    @property
    def steers(self) -> bool:
        return self.role is Role.STEER


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a form: above the page, once."""

    text: str
    failed: bool = False
    cause: str = ""
    hint: str = ""


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from bydawn.web import words

    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.globals |= {"version": __version__, "Status": Status, "Tab": Tab, **words.GLOBALS}
    found.filters |= words.FILTERS
    return found


def whole(
    page: Page,
    visitor: Visitor,
    *,
    path: str = "",
    notice: Notice | None = None,
    kept: Mapping[str, str] | None = None,
) -> str:
    """The page as a document; `kept` is what was typed into a form that was refused."""
    now = datetime.now(UTC)
    template = _templates().get_template("page.html")
    return template.render(page=page, visitor=visitor, path=path, notice=notice, kept=kept or {}, now=now)


def fragment(section: Section, visitor: Visitor) -> str:
    """One section, as it is in the page."""
    template = _templates().get_template("section.html")
    return template.render(section=section, visitor=visitor, kept={}, now=datetime.now(UTC))


def rendered(template: str, **data: Any) -> str:
    """A part of a page that is not a section, such as new lines of a log."""
    return _templates().get_template(template).render(**data)
