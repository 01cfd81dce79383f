"""The log of a round: what its agent said and did, line by line."""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple
from urllib.parse import urlencode

from bydawn.core.errors import NotFound, UserError
from bydawn.operations.round_log import LINES, LogPage, LogRow
from bydawn.operations.round_log import log_page as page_of_log
from bydawn.operations.rounds import RoundRow
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.loops import readable
from bydawn.web.page import Page, Section, Tab, rendered
from bydawn.web.pages import recent_of
from bydawn.web.pages.frame import loop_page
from bydawn.web.words import KINDS, href

_ROUNDS = 300  # in the list to choose from
_HITS = 20  # lines with a hit that are named
_LONGEST = 200  # characters of a search
_ABOVE = 20  # lines above one that a link leads to
_ICONS = {
    "message": "speech",
    "commandstarted": "terminal",
    "commandended": "terminal",
    "denied": "denied",
    "retry": "retry",
    "limitnotice": "limit",
    "stderr": "warning",
    "complaint": "warning",
    "notice": "info",
}
_VERBS = {"reading": "file", "editing": "pencil", "edited": "pencil", "searching": "search", "runs": "terminal"}


class Marked(NamedTuple):
    """A part of a text; is it what was searched for?"""

    text: str
    is_hit: bool


class LogLine(NamedTuple):
    """A row as it is drawn."""

    row: LogRow
    id: str  # empty if the line has a row before this one
    icon: str
    is_failed: bool
    parts: tuple[Marked, ...]


def log_page(call: Call) -> Page:
    """A window of the log of one round: around what was searched for, or else its end."""
    chosen, first = call.count("round"), call.count("from")
    q, wrap = call.query.get("q", "")[:_LONGEST], call.query.get("wrap") != "0"
    standing = readable(call.standing)
    address, last = call.loops.address(standing), standing.state.round
    number = last if chosen is None else chosen
    if number > last:
        cause = f"its last round so far is {last}" if last else "it has had no round yet"
        raise NotFound(f"{standing.loop.id} has no round {number}", cause=cause, hint="choose another round")
    shown = {"round": number, "q": q, "wrap": wrap}
    where = {"number": number, "q": q, "wrap": wrap, "page": href(address, "log")}
    running = _running(standing)

    @cache  # read and searched only by the page itself, not each time that a part of it is sent again
    def found() -> LogPage | None:
        try:
            return page_of_log(standing, number, first=first, search=q) if number else None
        except (UserError, KeyError, ValueError):  # its agent, or the agent's program, is not what it was
            return None

    tools = where | {
        "rounds": range(last, max(0, last - _ROUNDS), -1),
        "running": running,
        "found": found,
        "hits": lambda: _hits(found(), shown),
        "other_wrap": _link(shown, wrap=not wrap),
    }
    sections = (
        Section(id="log-tools", template="log_tools.html", live=False, data=tools),
        Section(
            id="log",
            template="log.html",
            live=False,
            data=where | {"window": lambda: _window(standing, address, found(), shown)},
        ),
        Section(id="log-end", template="log_end.html", data=where | _end(standing, number)),
    )
    here = f"log of round {number}" if number else "log"
    # With the next round it stays at this one, and leads to the next.
    at = f"{href(address, 'log')}{_link(shown, first=first)}"
    return loop_page(call, standing, Tab.LOG, here, *sections, at=at)


def log_rows(rows: Iterable[LogRow], number: int, left_out: int = 0) -> str:
    """New rows of a round as HTML, for a page that is open already; `left_out`: those before this line are missing."""
    lines, shown = _lines(rows, ""), {"round": number, "q": "", "wrap": True}
    before = {"line": left_out, "href": _link(shown, first=max(1, left_out - LINES))} if left_out else None
    base = _link(shown, first=lines[0].row.line) if lines else ""
    return rendered("log_rows.html", lines=lines, base=base, left_out=before)


def _running(standing: Standing) -> int:
    opened = standing.state.open_round
    return opened.round if standing.alive and opened else 0


def _window(standing: Standing, address: str, found: LogPage | None, shown: dict[str, object]) -> dict[str, object]:
    if found is None:
        return {"found": None, "lines": [], "past": None}
    grows = found.is_open and not found.lines_after
    q = str(shown["q"])
    return {
        "found": found,
        "lines": _lines(found.rows, q),
        "base": _link(shown, first=found.first),  # the same lines, also when there are more
        "place": f"{address}:{found.round}:{found.next_offset}:{found.last + 1}",
        "grows": grows,
        "earlier": _link(shown, first=max(1, found.first - LINES)) if found.lines_before else "",
        "later": _link(shown, first=found.last + 1) if found.lines_after else "",
        "end": _link(shown),
        "past": _past(standing, found.round) if not found.lines_before else None,
    }


def _end(standing: Standing, number: int) -> dict[str, object]:
    """How the round ended, once it has, and whether a newer one has begun."""
    past = _past(standing, number)
    ended = past is not None and past.attempt.ended is not None
    newer = standing.state.round if standing.state.round > number else 0
    kind = KINDS[past.tick] if past else None
    return {"past": past, "ended": ended, "kind": kind, "newer": newer, "running": _running(standing)}


def _past(standing: Standing, number: int) -> RoundRow | None:
    rounds = recent_of(standing, 1, number + 1).rounds if number else []
    return rounds[-1] if rounds and rounds[-1].number == number else None


def _hits(found: LogPage | None, shown: dict[str, object]) -> list[tuple[int, str]]:
    """Where to find what was searched for."""
    lines = found.hit_lines[-_HITS:] if found else ()
    return [(line, f"{_link(shown, first=max(1, line - _ABOVE))}#L{line}") for line in lines]


def _link(shown: dict[str, object], *, first: int | None = None, wrap: bool | None = None) -> str:
    """The same page with another window."""
    wraps = shown["wrap"] if wrap is None else wrap
    words = {"round": shown["round"], "q": shown["q"], "from": first or "", "wrap": "" if wraps else "0"}
    return f"?{urlencode({name: value for name, value in words.items() if value != ''})}"


# -- rows --------------------------------------------------------------------------------------------------------------


def _lines(rows: Iterable[LogRow], q: str) -> list[LogLine]:
    found, above = [], None
    for row in rows:
        id_ = f"L{row.line}" if row.line is not None and row.line != above else ""
        above = row.line
        is_failed = row.event == "commandended" and row.text.startswith("✗")
        found.append(LogLine(row, id_, _icon(row), is_failed, tuple(_marked(row, q))))
    return found


def _icon(row: LogRow) -> str:
    if row.event in _ICONS:
        return _ICONS[row.event]
    return _VERBS.get(row.text.partition(" ")[0], "")


def _marked(row: LogRow, q: str) -> Iterable[Marked]:
    """The text in parts; what was searched for is marked wherever it is."""
    if not row.hit or not q:
        yield Marked(row.text, False)
        return
    for place, part in enumerate(re.split(f"({re.escape(q)})", row.text, flags=re.IGNORECASE)):
        if part:
            yield Marked(part, place % 2 == 1)
