"""The documents of a loop: read them, tick their boxes, edit them; and what to do if two people did so at once."""

from collections.abc import Mapping

import msgspec
from markupsafe import Markup

from bydawn.core import checkpoint
from bydawn.core.checkpoint import Mark
from bydawn.core.errors import UserError
from bydawn.core.loop import CheckpointMode
from bydawn.core.merging import Kind
from bydawn.core.text import plain, visible
from bydawn.core.worklist import Listed, Stand
from bydawn.operations import documents
from bydawn.operations.amounts import plural
from bydawn.operations.documents import Box, Clash, Conflict, Document, DocumentName
from bydawn.operations.tasks import of_loop
from bydawn.store.registry import Standing
from bydawn.web import markdown
from bydawn.web.acts import with_workspace
from bydawn.web.calls import Call
from bydawn.web.markdown import Bar, TickBox
from bydawn.web.page import Page, Section, Tab
from bydawn.web.pages import recent_of
from bydawn.web.pages.frame import loop_page
from bydawn.web.words import href

_LOOKED_AT = 120  # last rounds, for the one that closed a task
_TODO = "todo"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A document as HTML, and its boxes."""

    html: Markup
    boxes: tuple[Box, ...] = ()
    done: int = 0


def document_page(call: Call) -> Page:
    """A document to `read` or to `edit`, or how a text that is not saved yet will look (`preview`)."""
    standing = with_workspace(call.standing)
    names = documents.documents(standing)
    if not names:
        return loop_page(call, standing, Tab.DOCS, "docs", Section(id="document", template="no_documents.html"))
    found = documents.read(standing, call.path.get("key") or names[0].key)
    can_edit = found.editable and call.visitor.steers
    is_draft = can_edit and call.field("preview") == "1"
    mode = "preview" if is_draft else "edit" if can_edit and call.query.get("mode") == "edit" else "read"
    text = call.field("text") if is_draft else found.text
    version = call.field("version", found.version) if is_draft else found.version
    data = {
        "document": found,
        "names": names,
        "mode": mode,
        "text": text,
        # What the person began with.
        "base": found.text if version == found.version else call.form.get("base", [None])[0],
        "version": version,
        "reading": _reading(standing, found, text, can_tick=can_edit and mode == "read"),
        "takes_tasks": bool(standing.loop.tasks) and (found.key == _TODO or found.key.startswith("task-")),
        "file": _name(found),
    }
    live = mode == "read"
    section = Section(id="document", template="document.html", live=live, data=data)
    at = href(call.loops.address(standing), "docs", found.key) if live else ""
    return loop_page(call, standing, Tab.DOCS, _name(found), section, at=at)


def conflict_page(call: Call, conflict: Conflict) -> Page:
    """Nothing was saved: what both made of it, and a text with both to go on from."""
    standing, found = call.standing, conflict.document
    data = {
        "document": found,
        "names": documents.documents(standing),
        "conflict": conflict,
        "places": [(clash, _where(clash)) for clash in conflict.clashes],
        "summary": _summary(conflict),
        "only_looked": conflict.yours == conflict.theirs,
        "file": _name(found),
    }
    section = Section(id="conflict", template="conflict.html", live=False, data=data)
    return loop_page(call, standing, Tab.DOCS, _name(found), section, status=409)


def _name(found: DocumentName) -> str:
    return visible(found.path.rpartition("/")[2]) or found.title


# -- reading -----------------------------------------------------------------------------------------------------------


def _reading(standing: Standing, found: Document, text: str, *, can_tick: bool) -> Reading:
    if not text and not found.text:
        return Reading(html=Markup())
    boxes = documents.boxes(text)
    listed = _listed(standing) if found.key == _TODO else {}
    closed = _closed_in(standing)
    opened = standing.state.open_round if standing.alive else None
    now = opened.started.task_id if opened else None
    ticks = {}
    for box in boxes:
        item = listed.get(box.line)
        is_now = item is not None and now == item.id
        note = "now" if is_now else closed.get(box.text, "") if box.ticked else _note(item)
        ticks[box.line] = TickBox(done=box.ticked, shown=box.text, note=note, now=is_now)
    bars = _bars(standing, text, listed) if found.key == _TODO else {}
    html = markdown.document(text, ticks, bars, can_tick=can_tick)
    return Reading(html=html, boxes=boxes, done=sum(box.ticked for box in boxes))


def _listed(standing: Standing) -> dict[int, Listed]:
    """The tasks and checkpoints of the list by line, as the loop sees them."""
    try:
        return {item.line: item for item in of_loop(standing).standings.items if item.line is not None}
    except (UserError, OSError):
        return {}


def _note(item: Listed | None) -> str:
    words = {Stand.ASIDE: "set aside", Stand.SKIPPED: "skipped", Stand.WAITING: "waits for another"}
    return words.get(item.stand, "") if item else ""


def _closed_in(standing: Standing) -> Mapping[str, str]:
    """In which round each task was closed, by its text."""
    rounds = [row.attempt for row in recent_of(standing, _LOOKED_AT).rounds]
    return {text: f"round {each.round}" for each in rounds if each.ended for text in each.ended.found.closed}


def _bars(standing: Standing, text: str, listed: Mapping[int, Listed]) -> dict[int, Bar]:
    mark = standing.loop.checkpoint
    if mark is None:
        return {}
    stops = "stops" if mark.mode is CheckpointMode.EXIT else "pauses"
    found: dict[int, Bar] = {}
    for each in checkpoint.marks(text, mark.token):
        item = listed.get(each.line)
        found[each.line] = _bar(each, item.stand if item else None, stops)
    return found


def _bar(mark: Mark, stand: Stand | None, stops: str) -> Bar:
    words = plain(mark.text)
    if stand is Stand.APPROVED:
        return Bar(text=f"{words}: approved", approved=True)
    if stand is Stand.REACHED:
        return Bar(text=f"{words}: the loop has reached this; look at it, then approve")
    return Bar(text=f"{words}: the loop {stops} here until you approve")


# -- conflicts ---------------------------------------------------------------------------------------------------------


def _where(clash: Clash) -> str:
    """`Lines 14-15`"""
    if clash.last_line < clash.first_line:
        return f"Before line {clash.first_line}"
    if clash.last_line == clash.first_line:
        return f"Line {clash.first_line}"
    return f"Lines {clash.first_line}-{clash.last_line}"


def _summary(conflict: Conflict) -> str:
    clashes = sum(clash.kind is Kind.CLASH for clash in conflict.clashes)
    fits = len(conflict.clashes) - clashes
    parts = [
        f"{plural(clashes, 'place')} {'needs' if clashes == 1 else 'need'} a choice" if clashes else "",
        f"{plural(fits, 'change')} {'fits' if fits == 1 else 'fit'} by {'itself' if fits == 1 else 'themselves'}"
        if fits
        else "",
    ]
    return "; ".join(filter(None, parts))
