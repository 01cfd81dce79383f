"""A loop's own page: what it does now, or why it ended and what helps; then its tasks, its course and its rounds."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from bydawn.core.breakers import limits_of
from bydawn.core.errors import UserError
from bydawn.core.text import duration, plain
from bydawn.core.values import Status
from bydawn.operations import amounts, reasons, views
from bydawn.operations.detail import EXPLAINED
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.plan import shared
from bydawn.operations.recent import Recent
from bydawn.operations.stuck import Stuck, stuck
from bydawn.operations.ways import ways
from bydawn.store.registry import Standing, beside
from bydawn.web.calls import Call
from bydawn.web.loops import readable
from bydawn.web.page import Page, Section, Tab
from bydawn.web.pages import recent_of
from bydawn.web.pages.course import course
from bydawn.web.pages.frame import loop_page
from bydawn.web.pages.task_rows import task_rows
from bydawn.web.words import href, money

_PLOTTED, _SHOWN, _FEW, _PAGE = 120, 30, 8, 100  # rounds: in plots, on this page, beside the tasks, on a page of rounds
_LINKED, _PICTURED = 60, 40  # ticks that are links; if there are more, the last ones are a picture
_LONG = 5000  # records of a ledger above which only its end is read


# Every part is there in both, if only as an empty one, so that one can follow the other while a person looks.
_AT_WORK = (
    ("head", "loop_head", ""),
    ("now", "now", ""),
    ("tell-form", "tell", ""),
    ("strip", "empty", ""),
    ("tasks", "tasks", "left"),
    ("missing", "missing", "left"),
    ("course", "course", "right"),
    ("rounds", "rounds", ""),
    ("why", "empty", ""),
)
_ENDED = (
    ("head", "empty", ""),
    ("now", "ended", ""),
    ("tell-form", "empty", ""),
    ("strip", "strip", ""),
    ("rounds", "rounds", "left"),
    ("tasks", "tasks", "right"),
    ("missing", "missing", "right"),
    ("course", "course", ""),
    ("why", "loop_why", ""),
)


def overview(call: Call) -> Page:
    [standing] = with_leftovers([views.with_current_tasks(call.standing)])
    working = standing.status in (Status.RUNNING, Status.WAITING)
    history = recent_of(standing, _PLOTTED)
    last = history.last(_SHOWN if working else _FEW)
    data: dict[str, Any] = {
        "ways": ways(standing),
        **_strip(history),
        **task_rows(standing, history),
        "course": course(standing, history) if not standing.trouble else None,
        "rows": last.rows[::-1],
        "earlier": last.earlier,
        "whole": False,
        "few": not working,
    }
    if working:
        data |= {"limits": _limits(standing), "shared": shared(beside(standing.folder, standing.loop))}
    else:
        data |= {"stuck": _stuck(standing, history), "proof": _proof(standing)}
    parts = _AT_WORK if working else _ENDED
    sections = [Section(id=id_, template=f"{name}.html", column=column, data=data) for id_, name, column in parts]
    refreshes = not call.visitor.steers  # what is being typed would be lost
    at = href(call.loops.address(standing))
    return loop_page(call, standing, Tab.OVERVIEW, "", *sections, refreshes=refreshes, at=at)


def all_rounds(call: Call) -> Page:
    """Every round, the newest first, so many on a page."""
    standing, before = readable(call.standing), call.count("before")
    history = recent_of(standing, _PAGE, before)
    newest = before is None
    data = {
        "rows": history.rows[::-1],
        "earlier": history.earlier,
        "first": history.rounds[0].number if history.rounds else 0,
        "newest": newest,
        "whole": True,
        "few": False,
    }
    section = Section(id="rounds", template="rounds.html", data=data, live=newest)
    return loop_page(call, standing, Tab.ROUNDS, "rounds", section, refreshes=newest)


def _strip(history: Recent) -> dict[str, Any]:
    """Every round as a link, or the last ones as a picture."""
    ticks = history.ticks
    if len(ticks) <= _LINKED and not history.earlier:
        return {"ticks": ticks, "before": 0, "is_picture": False}
    last = ticks[-_PICTURED:]
    first = next((number for _, number in last if number), 1)
    return {"ticks": last, "before": first - 1, "is_picture": True}


# -- while it runs -----------------------------------------------------------------------------------------------------


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What is used of a limit."""

    label: str
    text: str
    more: str = ""
    until: datetime | None = None  # a time in `more`
    share: tuple[float, float] | None = None  # None: there is no limit
    kind: str = ""


def _limits(standing: Standing) -> list[Limit]:
    state, limits = standing.state, limits_of(standing.loop, standing.state)
    found = []
    if state.tasks:
        done, total = state.tasks.done, state.tasks.total
        found.append(Limit(label="Tasks", text=f"{done} of {total}", share=(done, total), kind="ok"))
    rounds = f"{state.rounds} of {limits.rounds}" if limits.rounds else str(state.rounds)
    share = (state.rounds, limits.rounds) if limits.rounds else None
    found.append(Limit(label="Rounds", text=rounds, share=share))
    cost = money(state.usage, unpriced=state.unpriced)
    spent = (state.usage.cost_usd or 0 if state.usage else 0, limits.usd) if limits.usd else None
    found.append(Limit(label="Cost", text=f"{cost} of ${limits.usd:.2f}" if limits.usd else cost, share=spent))
    if limits.tokens:
        used = (state.usage.tokens or 0) if state.usage else 0
        words = f"{amounts.short_count(used)} of {amounts.short_count(limits.tokens)}"
        found.append(Limit(label="Tokens", text=words, share=(used, limits.tokens)))
    return [*found, _time(standing)]


def _time(standing: Standing) -> Limit:
    """How long it may still take, and how long it may work."""
    state, limits = standing.state, limits_of(standing.loop, standing.state)
    now = datetime.now(UTC)
    worked = f"worked for {duration(state.elapsed)}" + (f" of {duration(limits.seconds)}" if limits.seconds else "")
    more, share = worked, (state.elapsed, limits.seconds) if limits.seconds else None
    if limits.until:
        more = f"until {amounts.moment(limits.until)}"
        begun = state.run_since or now
        share = ((now - begun).total_seconds(), (limits.until - begun).total_seconds())
    left = amounts.time_left_words(state) or worked
    return Limit(label="Time", text=left, more=more, until=limits.until, share=share)


# -- once it has ended -------------------------------------------------------------------------------------------------


def _stuck(standing: Standing, history: Recent) -> Stuck | None:
    if standing.status is Status.BLOCKED and not standing.state.questions:
        with suppress(UserError):
            return stuck(standing, [row.attempt for row in history.rounds])
    return None


def _proof(standing: Standing) -> list[str]:
    """What confirms the end; of a very long history only what its last fact says."""
    stopped = standing.state.stopped
    if stopped is None or not (standing.finished or stopped.decided.rule in EXPLAINED):
        return []
    rows = reasons.evidence(standing) if standing.state.seq <= _LONG else stopped.evidence
    return [plain(row) for row in rows if row != reasons.unproven(standing)]
