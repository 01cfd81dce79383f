"""One loop as `status` shows it, as data and in words; loops that need a person come first."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from bydawn.core import completion
from bydawn.core.breakers import limits_of
from bydawn.core.loop import Sandbox, Worktree
from bydawn.core.progress import ENOUGH_ROUNDS
from bydawn.core.proof import summary
from bydawn.core.rules import Rule
from bydawn.core.state import Limited, LoopState
from bydawn.core.text import duration
from bydawn.core.values import Act, Next, Result, Status, Usage
from bydawn.operations import amounts, outputs, pending
from bydawn.operations.leftovers import left_words
from bydawn.operations.pending import Asked, Waiting
from bydawn.store import heartbeat
from bydawn.store.registry import Left, Standing, beside

MET = {
    "promise": "the promise was given",
    "checks": "every check passed",
    "tasks": "every task is done",
    "record": "it was recorded as done",
}
# The states in which a loop needs a person, the worst first.
NEEDS_YOU = (Status.DAMAGED, Status.CRASHED, Status.FAILED, Status.BLOCKED, Status.CHECKPOINT, Status.LIMIT)


class TaskCounts(msgspec.Struct, frozen=True, kw_only=True):
    open: int
    done: int


class LoopView(msgspec.Struct, frozen=True, kw_only=True):
    """One loop of `status --json`."""

    loop: str
    workspace: str
    worktree: Worktree | None  # where its agent works, if not there
    state: Status
    reason: str | None
    round: int
    rounds_limit: int | None
    tasks: TaskCounts | None
    agent: str
    agents: tuple[str, ...]
    limited: tuple[Limited, ...]
    sandbox: Sandbox | None
    usage: Usage | None
    usage_is_priced: bool
    alive: bool
    last_output_age_s: float | None
    updated_at: datetime | None
    waiting: Waiting | None
    asked: Asked | None
    left_running: tuple[Left, ...]  # processes of a loop that has crashed
    also_here: tuple[str, ...]  # other loops that run in the same workspace while this one does
    needs_you: bool
    dismissed: bool
    since: datetime | None  # when its state began; None if that is unknown
    strip: tuple[Result, ...]  # the last rounds, the latest last
    offers: tuple[Next, ...]
    seq: int  # of its last fact


class StatusLine(msgspec.Struct, frozen=True, kw_only=True):
    """The same loop in words."""

    view: LoopView
    progress: str  # `2/6 tasks · 4 rounds · 12 m 00`
    liveness: str
    reason: str  # why it needs a person; otherwise empty


def loop_view(standing: Standing, offers: Iterable[Next] = ()) -> LoopView:
    loop, state = standing.loop, standing.state
    return LoopView(
        loop=loop.id,
        workspace=loop.workspace,
        worktree=loop.worktree,
        state=standing.status,
        reason=state.stopped.reason if state.stopped else reason(standing) or None,
        round=state.round,
        rounds_limit=limits_of(loop, state).rounds or None,
        tasks=TaskCounts(open=state.tasks.open, done=state.tasks.done) if state.tasks else None,
        agent=state.open_round.started.agent if state.open_round else loop.agent,
        agents=loop.pool,
        limited=limited_now(standing),
        sandbox=loop.sandbox,
        usage=state.usage,
        usage_is_priced=bool(state.usage) and not state.unpriced,
        alive=standing.alive,
        last_output_age_s=outputs.last_output_age(standing),
        updated_at=state.updated_at,
        waiting=pending.waiting(state) if standing.status == Status.WAITING else None,
        asked=pending.asked(state) if standing.alive else None,
        left_running=standing.left,
        also_here=beside(standing.folder, loop) if standing.alive else (),
        needs_you=needs_you(standing),
        dismissed=state.dismissed,
        since=since(standing),
        strip=state.strip,
        offers=tuple(offers),
        seq=state.seq,
    )


def status_line(standing: Standing) -> StatusLine:
    view, why = loop_view(standing), reason(standing) if needs_you(standing) else ""
    return StatusLine(view=view, progress=_so_far(standing), liveness=liveness(standing), reason=why)


def _so_far(standing: Standing) -> str:
    """`2/6 tasks · 4 rounds · 12 m 00 · $0.61 · about 50 m 00 left`"""
    state = standing.state
    cost = "" if state.usage is None or state.unpriced else amounts.dollars(state.usage)
    left = amounts.time_left_words(state) if standing.alive and len(state.recent_seconds) >= ENOUGH_ROUNDS else ""
    return " · ".join(filter(None, [amounts.progress(standing), duration(state.elapsed), cost, left]))


def by_need(found: Iterable[Standing]) -> list[Standing]:
    """Loops that need a person, the worst and the oldest first; then running loops, then the rest, the latest first."""

    def rank(each: Standing) -> tuple[int, float]:
        began = moment.timestamp() if (moment := since(each)) else 0.0
        if needs_you(each):
            return NEEDS_YOU.index(each.status), began
        return len(NEEDS_YOU) + (not each.alive), -began

    return sorted(found, key=rank)


def needs_you(standing: Standing) -> bool:
    """Is there something that only a person can do, and have they not dismissed it?"""
    return standing.status in NEEDS_YOU and not standing.state.dismissed


def since(standing: Standing) -> datetime | None:
    """When its state began."""
    state = standing.state
    if standing.trouble:
        return None
    if state.stopped:
        return state.stopped.decided.at
    if not standing.alive:
        return outputs.last_sign(standing)
    return state.waiting.decided.at if state.waiting else state.run_since


def first_step(found: Iterable[Standing]) -> list[Next]:
    """Look at the first loop that needs a person, if there is one."""
    needy = next(filter(needs_you, found), None)
    return [Next(command=Act("show", needy.reference), why="what happened and what to do")] if needy else []


def limited_now(standing: Standing) -> tuple[Limited, ...]:
    """The agents whose usage limit has not reset yet."""
    now = datetime.now(UTC)
    return tuple(row for row in standing.state.limited if row.until and row.until > now)


def reason(standing: Standing) -> str:
    """Why it is not running, in a sentence; empty if it runs."""
    stopped = standing.state.stopped
    if standing.trouble:
        return standing.trouble.what
    if standing.status == Status.CRASHED:
        opened = standing.state.open_round
        when = f"{outputs.last_sign(standing).astimezone():%Y-%m-%d %H:%M}"
        where = f", in round {opened.round}" if opened else ""
        return f"its process died around {when}{where}" + (f"; {left_words(standing.left)}" if standing.left else "")
    if stopped and stopped.decided.rule == Rule.AGENT_BLOCKED:
        return f"the agent says: “{stopped.reason}”"
    if stopped and standing.finished:
        if standing.loop.checks and (doubt := completion.doubt(standing.loop, standing.state)):
            return "; ".join(filter(None, (doubt, left_uncommitted(standing.state))))
        wanted = completion.wanted(standing.loop, standing.state)
        *first, last = (MET[condition] for condition in wanted)
        met, found = f"{', '.join(first)} and {last}" if first else last, at_first_sight(standing.state)
        return f"{met}; {found}" if found and not standing.loop.dialect else met
    return stopped.reason if stopped else ""


def at_first_sight(state: LoopState) -> str:
    """What a person has to know of a loop that is done, in its first line."""
    return "; ".join(filter(None, (summary(state.proofs), left_uncommitted(state))))


def left_uncommitted(state: LoopState) -> str:
    return "the last changes are not committed" if state.commits and state.uncommitted else ""


def liveness(standing: Standing) -> str:
    """`alive, last output 3 s ago`, what it is waiting for, or how long ago it ended."""
    stopped = standing.state.stopped
    if standing.alive and not stopped:
        asked = pending.asked(standing.state)
        return _doing(standing) + (f"; {pending.asked_words(asked)}" if asked else "")
    if stopped is None:
        return amounts.ago(standing.state.updated_at)
    if stopped.is_preparation:  # nothing has ended
        return f"prepared {amounts.moment(stopped.decided.at)}, {stopped.reason.partition(': ')[2]}"
    return f"ended {amounts.moment(stopped.decided.at)}, {amounts.ago(stopped.decided.at)}"


def _doing(standing: Standing) -> str:
    if hangs := hanging(standing):
        return hangs
    if standing.state.waiting:
        return pending.waiting_words(standing.state.waiting)
    age = outputs.last_output_age(standing)
    return "alive" if age is None else f"alive, last output {duration(age)} ago"


def hanging(standing: Standing) -> str:
    """`no sign of life for 6 m 40; it may hang`; empty unless its process has been silent for too long."""
    works = standing.alive and not standing.state.stopped and not standing.trouble
    if not works or not heartbeat.is_stale(standing.folder):
        return ""
    return f"no sign of life for {duration(heartbeat.age(standing.folder) or 0.0)}; it may hang"


def with_current_tasks(standing: Standing) -> Standing:
    """A loop that is not running, with its task list as it is now: people may have changed it."""
    tasks = standing.state.tasks
    if standing.alive or standing.finished or tasks is None or tasks.problem:
        return standing
    from bydawn.operations.tasks import of_loop

    board = of_loop(standing)
    if board.trouble:
        return standing
    counts = board.standings.counts
    tasks = replace(tasks, open=counts["open"], done=counts["done"])
    return replace(standing, state=replace(standing.state, tasks=tasks))
