"""Figures over all loops of a user: how they end, what they cost, how often a person has to help."""

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from statistics import median

import msgspec

from bydawn.core.state import LoopState
from bydawn.core.values import End, Usage
from bydawn.operations.amounts import plural, used
from bydawn.operations.sentences import Field
from bydawn.store.registry import Standing

_UNKNOWN = "—"  # never zero


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What `metrics --json` prints. Shares are from 0 to 1; None is unknown, never zero."""

    loops: int
    damaged: int  # loops whose record cannot be read; the other figures leave them out
    rounds: int
    ends: dict[str, int]  # how often a run ended, by state
    blockers: dict[str, int]  # what ended runs with work left, by rule
    unverified: int  # ends that no check has confirmed
    restarts: int  # by bydawn itself, after a process had died
    usage: Usage | None
    usage_is_priced: bool
    usd_per_task: float | None  # that is done, in loops whose price is known
    completed: int  # loops
    completed_before_limit: float | None  # share of those that completed or have ever reached a limit
    median_rounds: float | None  # of a completed loop
    interruptions: float | None  # per completed loop: how often a person had to do something
    resumes: int
    resumes_worked: float | None  # share


def metrics(found: Iterable[Standing]) -> Metrics:
    """Only from states, so a long loop costs no more than a short one."""
    loops = [*found]
    states, lives = [each.state for each in loops], [each.state.lifetime for each in loops]
    ends = _sums(each.ends for each in lives)
    done = [each.state for each in loops if each.finished]
    early = [each for each in done if End.LIMIT not in each.lifetime.ends]
    capped = [each for each in lives if End.LIMIT in each.ends]
    known = [each.usage for each in states if each.usage]
    # A resume of a loop that is running may still work.
    judged = sum(each.state.lifetime.resumes - (each.alive and each.state.lifetime.waits) for each in loops)
    return Metrics(
        loops=len(loops),
        damaged=sum(each.trouble is not None for each in loops),
        rounds=sum(each.rounds for each in states),
        ends=ends,
        blockers=_sums(each.rules for each in lives),
        unverified=ends.get(End.UNVERIFIED, 0),
        restarts=sum(each.restarts for each in lives),
        usage=reduce(Usage.plus, known) if known else None,
        usage_is_priced=bool(known) and all(_is_priced(each) for each in states if each.round),
        usd_per_task=_usd_per_task(states),
        completed=len(done),
        completed_before_limit=_per(len(early), len(early) + len(capped)),
        median_rounds=median(each.rounds for each in done) if done else None,
        interruptions=_per(sum(each.lifetime.interruptions for each in done), len(done)),
        resumes=sum(each.resumes for each in lives),
        resumes_worked=_per(sum(each.resumed for each in lives), judged),
    )


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """The most frequent first."""
    total = sum((Counter(each) for each in counts), Counter[str]())
    return dict(sorted(total.items(), key=lambda row: (-row[1], row[0])))


def _per(amount: float, count: int) -> float | None:
    return round(amount / count, 4) if count else None


def _is_priced(state: LoopState) -> bool:
    return state.usage is not None and state.usage.cost_usd is not None and not state.unpriced


def _usd_per_task(states: Iterable[LoopState]) -> float | None:
    """What loops with a list cost, over the tasks they did; work in vain costs too."""
    priced = [each for each in states if each.tasks and _is_priced(each)]
    usd = sum(each.usage.cost_usd or 0.0 for each in priced if each.usage)
    return _per(usd, sum(map(_tasks_done, priced))) if usd else None


def _tasks_done(state: LoopState) -> int:
    """Tasks that the loop itself has done, and that nothing speaks against."""
    settled = state.settled
    if settled.done:  # a task folder
        return len({*settled.done} - {*settled.doubted})
    still = min(len(state.closed), state.tasks.done if state.tasks else 0)  # some may be open again
    return max(0, still - len(state.doubted))


def metrics_fields(found: Metrics) -> list[Field]:
    """The same in words."""
    usd = "" if found.usd_per_task is None else f"${found.usd_per_task:.2f}"
    median_ = "" if found.median_rounds is None else f"{found.median_rounds:g} rounds per completed loop"
    each = "" if found.interruptions is None else f"{found.interruptions:.2g} per completed loop"
    before, worked = _percent(found.completed_before_limit), _percent(found.resumes_worked)
    return [
        Field("Loops", f"{found.loops}, {found.damaged} damaged"),
        Field("Rounds", f"{found.rounds:,}"),
        Field("Run ends", _counted(found.ends)),
        Field("Stopped by", _counted(found.blockers)),
        Field("Completed", f"{plural(found.completed, 'loop')}; {before} before a limit"),
        Field("Median", median_ or _UNKNOWN),
        Field("Interrupted", each or _UNKNOWN),
        Field("Resumes", f"{found.resumes}; {worked} worked"),
        Field("Restarts", str(found.restarts)),
        Field("Unverified", plural(found.unverified, "end")),
        Field("Used", used(found.usage, unpriced=not found.usage_is_priced)),
        Field("Per task", usd or _UNKNOWN),
    ]


def _counted(counts: dict[str, int]) -> str:
    return " · ".join(f"{name} {count}" for name, count in counts.items()) or _UNKNOWN


def _percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share:.0%}"
