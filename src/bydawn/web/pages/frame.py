"""What all pages of a loop have around them: the path, the tabs, the list of loops, the title of the window."""

from msgspec.structs import replace

from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.page import Crumb, Page, Section, Tab
from bydawn.web.pages import progress_of, rail
from bydawn.web.words import href


def loop_page(
    call: Call,
    standing: Standing,
    tab: Tab | None,
    here: str,
    *sections: Section,
    refreshes: bool = False,
    up: str = "",
    at: str = "",
    status: int = 200,
) -> Page:
    """A page of a loop, whose sections all know it and its address; `here` is the last step of its path, if any."""
    address = call.loops.address(standing)
    about = {"standing": standing, "address": address}
    path = (Crumb(standing.loop.id, href(address)), Crumb(here)) if here else (Crumb(standing.loop.id),)
    return Page(
        title=title(standing) + (f" · {here}" if here else ""),
        crumbs=(Crumb("Loops", "/"), *path),
        sections=tuple(replace(section, data=about | section.data) for section in sections),
        mark=standing.status,
        loop=address,
        tab=tab,
        up=up or (href(address) if here else "/"),
        rail=rail(call.loops, standing),
        refreshes=refreshes,
        at=at,
        status=status,
    )


def plain_page(here: str, *sections: Section) -> Page:
    """A page that is about no loop."""
    return Page(title=here, crumbs=(Crumb("Loops", "/"), Crumb(here)), sections=sections)


def title(standing: Standing) -> str:
    """`! billing 5/9`"""
    return f"{standing.status.sign} {standing.loop.id} {progress_of(standing)}".rstrip()
