"""The first page: which loops need a person and why, then those that work, then the rest."""

from datetime import UTC, datetime, timedelta

from bydawn.core.progress import ENOUGH_ROUNDS
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import Status
from bydawn.operations import amounts, pending, views
from bydawn.operations.amounts import plural
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.ways import ways
from bydawn.store.registry import Standing
from bydawn.web.calls import Call
from bydawn.web.page import Page, Section
from bydawn.web.pages import Groups, grouped, recent_of

_COUNTED = 40  # loops whose cost of the last day is added up
_TICKS = 30


def home(call: Call) -> Page:
    loops, everything = call.loops, call.query.get("all") == "1"
    found = with_leftovers(loops.all())
    groups = grouped(found, everything=everything)
    needy, working = groups.needs_you.loops, groups.working.loops
    starts = not loops.is_narrowed
    rows = {
        "address": loops.address,
        "recent": lambda each: recent_of(each, _TICKS),
        "doing": _doing,
        "left": _left,
        "said": _said,
        "ways": ways,
    }
    head = {"empty": not found, "title": _headline(groups), "text": _summary(groups), "starts": starts}
    foot = {"dismissed": groups.dismissed, "everything": everything, "cost": _last_day(found), "starts": starts}
    lists = (
        ("needs-you", "needs_you.html", groups.needs_you),
        ("working", "rows.html", groups.working),
        ("finished", "rows.html", groups.finished),
        ("resting", "rows.html", groups.resting),
    )
    return Page(
        title=_title(groups),
        crumbs=(),
        mark=needy[0].status if needy else working[0].status if working else None,
        refreshes=True,
        sections=(
            Section(id="head", template="home_head.html", data=head),
            *(Section(id=id_, template=file, data={**rows, "group": group, "kind": id_}) for id_, file, group in lists),
            Section(id="foot", template="foot.html", data=foot),
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


def _said(standing: Standing) -> str:
    """The agent's own words, unless the reason has them already."""
    last, stopped = standing.state.last, standing.state.stopped
    says_so = stopped is not None and stopped.decided.rule == Rule.AGENT_BLOCKED
    speaks = last is not None and standing.status in (Status.BLOCKED, Status.FAILED) and not says_so
    return last.ended.said if last and speaks else ""


def _doing(standing: Standing) -> str:
    """What it works on or waits for, and what was asked of it."""
    state, asked = standing.state, pending.asked(standing.state)
    task = shorten(plain(state.open_round.started.task or ""), 80) if state.open_round else ""
    words = views.hanging(standing) or (pending.waiting_words(state.waiting) if state.waiting else task)
    stops = pending.asked_words(asked) if asked else ""
    return "; ".join(filter(None, (words, plain(state.waiting.reason) if state.waiting else "", stops)))


def _left(state: LoopState) -> str:
    """The time that is left, once that can be told."""
    is_known = state.open_round is not None and len(state.recent_seconds) >= ENOUGH_ROUNDS
    return amounts.time_left_words(state) if is_known else ""


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
