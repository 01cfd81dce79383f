"""The pages: each function makes one from loops as they are now. What several of them need is here."""

from threading import Lock
from typing import NamedTuple

from bydawn.core.errors import UserError
from bydawn.core.values import Status
from bydawn.operations import views
from bydawn.operations.amounts import plural
from bydawn.operations.recent import Recent, recent
from bydawn.store.registry import Standing
from bydawn.web.loops import Loops
from bydawn.web.page import Section

_FEW = 20  # rows of a group, unless a person wants all
_KEPT = 300  # histories that stay in memory
_WORKING = (Status.RUNNING, Status.WAITING)


class Group(NamedTuple):
    """Loops under one heading."""

    title: str
    loops: list[Standing]
    left_out: int = 0


class Groups(NamedTuple):
    """All loops, as the first page and the rail show them."""

    needs_you: Group
    working: Group
    finished: Group
    resting: Group
    dismissed: int  # that are not listed


_grouped: dict[bool, tuple[list[Standing], Groups]] = {}


def grouped(found: list[Standing], *, everything: bool = False) -> Groups:
    """Those that need a person first, then the latest; ordered again only if one of them has changed."""
    known = _grouped.get(everything)
    if known is None or known[0] != found:  # loops that have not changed are the very same, so that this is quick
        known = _grouped[everything] = found, _order(found, everything=everything)
    return known[1]


def _order(found: list[Standing], *, everything: bool) -> Groups:
    ordered = views.by_need(found)
    listed = [each for each in ordered if everything or not each.state.dismissed]
    needs, working, finished, resting = list[Standing](), list[Standing](), list[Standing](), list[Standing]()
    for each in listed:
        if views.needs_you(each):
            needs.append(each)
        elif each.status in _WORKING:
            working.append(each)
        else:
            (finished if each.finished else resting).append(each)
    most = len(ordered) if everything else _FEW

    def few(title: str, loops: list[Standing]) -> Group:
        return Group(title, loops[:most], max(0, len(loops) - most))

    return Groups(
        Group("Needs you", needs),
        Group("Working", working),
        few("Finished", finished),
        few("Not running", resting),
        len(ordered) - len(listed),
    )


def rail(loops: Loops, shown: Standing) -> Section:
    """The list of loops beside a page about one of them, which is as the page shows it."""
    current = loops.address(shown)
    found = loops.all()
    ordered = grouped(found)[:4]
    listed = {str(each.folder) for group in ordered for each in group.loops}
    here = [each for each in found if loops.address(each) == current and str(each.folder) not in listed]
    groups = [
        (group.title, [(each, *_as_shown(loops, each, shown)) for each in group.loops], group.left_out)
        for group in (*ordered, *([Group("This loop", here)] if here else []))
    ]
    return Section(id="rail", template="rail.html", data={"groups": groups, "current": current})


def _as_shown(loops: Loops, standing: Standing, shown: Standing) -> tuple[str, str]:
    is_it = str(standing.folder) == str(shown.folder)
    return loops.address(standing), progress_of(shown if is_it else standing)


_read: dict[tuple[str, int, bool, int, int | None], Recent] = {}
_reading = Lock()


def recent_of(standing: Standing, count: int, before: int | None = None) -> Recent:
    """The last rounds of a loop, read again only after another fact; none if its ledger cannot be read."""
    key = (str(standing.folder), standing.state.seq, standing.alive, count, before)
    found = _read.get(key)
    if found is None:
        try:
            found = recent(standing, count, before)
        except (UserError, OSError):
            return Recent()
        with _reading:
            while len(_read) >= _KEPT:
                _read.pop(next(iter(_read)))
            _read[key] = found
    return found


def progress_of(standing: Standing) -> str:
    """`5/9`, or the number of rounds where there is no list."""
    tasks, number = standing.state.tasks, standing.state.round
    return f"{tasks.done}/{tasks.total}" if tasks else plural(number, "round") if number else ""
