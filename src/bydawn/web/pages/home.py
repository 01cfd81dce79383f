"""The first page: which loops need a person and why, then those that work, then the rest."""

from datetime import UTC, datetime, timedelta

import msgspec

from bydawn.core.progress import ENOUGH_ROUNDS
from bydawn.core.rules import Rule
from bydawn.core.text import plain, shorten
from bydawn.core.values import Status
from bydawn.operations import amounts, outputs, pending, reasons, views
from bydawn.operations.amounts import plural
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.ways import Way, ways
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.page import Page, Section
from bydawn.web.pages import Groups, grouped, recent_of, telling

_COUNTED = 40  # loops whose cost of the last day is added up
_TICKS = 30
_REASON, _WORDS = 300, 240  # characters


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One loop of the list."""

    standing: Standing
    address: str
    text: str  # why it needs a person, what it does, how it ended
    since: datetime | None
    ticks: tuple[str, ...]
    earlier: int
    evidence: str = ""  # the most telling line of what a check printed
    said: str = ""  # the agent's own words
    ways: tuple[Way, ...] = ()
    doing: str = ""  # what the agent does right now
    output_at: datetime | None = None
    more: str = ""  # the time that is left, or until when it waits


def home(call: Call) -> Page:
    loops, everything = call.loops, call.query.get("all") == "1"
    found = with_leftovers(loops.all())
    groups = grouped(found, everything=everything)

    def rows(name: str, group_of: list[Standing]) -> list[Row]:
        return [_row(each, loops.address(each), name) for each in group_of]

    def section(id_: str, template: str, **data: object) -> Section:
        return Section(id=id_, template=template, data=data)

    lists = {
        "needs-you": (groups.needs_you, "needs_you.html"),
        "working": (groups.working, "rows.html"),
        "finished": (groups.finished, "rows.html"),
        "resting": (groups.resting, "rows.html"),
    }
    needy, starts = groups.needs_you.loops, not loops.is_narrowed
    return Page(
        title=_title(groups),
        crumbs=(),
        mark=needy[0].status if needy else groups.working.loops[0].status if groups.working.loops else None,
        refreshes=True,
        sections=(
            section(
                "head", "home_head.html", empty=not found, title=_headline(groups), text=_summary(groups), starts=starts
            ),
            *(
                section(id_, template, group=group, rows=rows(id_, group.loops), kind=id_)
                for id_, (group, template) in lists.items()
            ),
            section(
                "foot",
                "foot.html",
                dismissed=groups.dismissed,
                everything=everything,
                cost=_last_day(found),
                starts=starts,
            ),
        ),
    )


def _title(groups: Groups) -> str:
    """The sign of the worst first: a narrow tab shows nothing else."""
    needy = groups.needs_you.loops
    if needy:
        return f"{needy[0].status.sign} {len(needy)} need{'s' if len(needy) == 1 else ''} you"
    return f"▶ {len(groups.working.loops)} working" if groups.working.loops else "Loops"


def _headline(groups: Groups) -> str:
    needy = len(groups.needs_you.loops)
    if needy:
        return f"{plural(needy, 'loop')} need{'s' if needy == 1 else ''} you"
    return "All is well" if groups.working.loops else "Nothing is running"


def _summary(groups: Groups) -> str:
    """`2 are working, 1 has finished, 1 is not running`"""
    working, finished = len(groups.working.loops), len(groups.finished.loops) + groups.finished.left_out
    resting = len(groups.resting.loops) + groups.resting.left_out
    parts = [
        f"{working} {'is' if working == 1 else 'are'} working" if working else "",
        f"{finished} {'has' if finished == 1 else 'have'} finished" if finished else "",
        f"{resting} {'is' if resting == 1 else 'are'} not running" if resting else "",
    ]
    return ", ".join(filter(None, parts))


def _row(standing: Standing, address: str, group: str) -> Row:
    history = recent_of(standing, _TICKS)
    ticks = tuple(tick.value for tick, _ in history.ticks)[-_TICKS:]
    row = Row(
        standing=standing,
        address=address,
        text=shorten(plain(views.reason(standing)), _REASON),
        since=views.since(standing),
        ticks=ticks,
        earlier=history.earlier,
    )
    if group == "needs-you":
        return _needy(row)
    if group == "working":
        return _working(row)
    if standing.status is Status.UNVERIFIED:
        return msgspec.structs.replace(row, text=f"{row.text}; {reasons.unproven(standing)}")
    return row


def _needy(row: Row) -> Row:
    standing, last = row.standing, row.standing.state.last
    stopped = standing.state.stopped
    says_so = stopped is not None and stopped.decided.rule == Rule.AGENT_BLOCKED
    speaks = last is not None and standing.status in (Status.BLOCKED, Status.FAILED) and not says_so
    said = shorten(plain(last.said), _WORDS) if last and speaks else ""
    red = [telling(verdict.excerpt, 1) or [verdict.detail] for verdict in standing.state.failed_checks]
    return msgspec.structs.replace(row, evidence="\n".join(red[0]) if red else "", said=said, ways=ways(standing))


def _working(row: Row) -> Row:
    standing, state = row.standing, row.standing.state
    opened, asked = state.open_round, pending.asked(state)
    task = shorten(plain(opened.task), 80) if opened and opened.task else ""
    words = views.hanging(standing) or (pending.waiting_words(state.waiting) if state.waiting else task)
    stops = pending.asked_words(asked) if asked else ""
    age = outputs.last_output_age(standing)
    told = opened is not None and len(state.recent_seconds) >= ENOUGH_ROUNDS
    return msgspec.structs.replace(
        row,
        text="; ".join(filter(None, (words, plain(state.waiting.reason) if state.waiting else "", stops))),
        doing=outputs.activity(standing),
        output_at=None if age is None else datetime.now(UTC) - timedelta(seconds=age),
        more=amounts.time_left_words(state) if told else "",
    )


def _last_day(found: list[Standing]) -> str:
    """What the rounds that ended in the last 24 hours cost; at least, if some do not say so or are too far back."""
    since, costs = datetime.now(UTC) - timedelta(days=1), list[float | None]()
    recent = [each for each in found if each.state.usage and each.state.updated_at and each.state.updated_at > since]
    for each in recent[:_COUNTED]:
        history = recent_of(each, _TICKS)
        ended = [row.attempt for row in history.rounds if row.attempt.ended_at and row.attempt.ended_at > since]
        costs += [each.ended.usage.cost_usd if each.ended and each.ended.usage else None for each in ended]
        costs += [None] if history.earlier and len(ended) == len(history.rounds) else []
    costs += [None] if len(recent) > _COUNTED else []
    known = [cost for cost in costs if cost is not None]
    at_least = "" if len(known) == len(costs) else "at least "
    return f"{at_least}${sum(known):.2f} in the last 24 hours" if known else ""
