"""What did a round leave behind, did it make progress, and how long will the rest take?"""

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import RoundEnded
from bydawn.core.outcome import POLICY
from bydawn.core.state import LoopState, Tally, known_as, task_mark
from bydawn.core.values import Changes, TaskReading, TaskStatus, Usage

ENOUGH_ROUNDS = 3  # with fewer, an estimate is a guess


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What is found in the workspace after a round, or when a run begins."""

    tree: str
    work: str = ""  # the tree without documents and task list, where that differs
    changes: Changes = Changes()
    tampered: tuple[str, ...] = ()  # protected files that were changed
    restored: bool = False  # and they are as they were before
    tasks: TaskReading | None = None
    closed: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # of these: nothing but the list was changed
    rewritten: tuple[str, ...] = ()  # open tasks of a folder, not the round's own, whose text was changed
    progress: bool = False


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn used, and the whole session so far where its agent counts on from turn to turn."""

    turn: Usage | None = None
    session: Usage | None = None


def made(state: LoopState, work: str, closed: tuple[str, ...]) -> bool:
    """A work tree not seen before, or a task closed for the first time; never what the agent says it changed.

    `work` is the tree without notes and task list; `closed` leaves out tasks ticked without any other change.
    """
    return known_as(work) not in state.trees or any(task_mark(task) not in state.closed for task in closed)


def fewer(state: LoopState, now: TaskReading | None) -> bool:
    """Are fewer tasks open than ever before? Adding a box and ticking it is not progress."""
    return now is not None and not now.problem and (state.fewest is None or now.open < state.fewest)


def time_left(state: LoopState) -> tuple[float, float] | None:
    """A range of seconds from the recent rounds and the tasks they closed; None if it is too early to tell."""
    recent = state.recent_seconds
    if state.tasks is None or not state.closed or len(recent) < ENOUGH_ROUNDS:
        return None
    rounds_left = state.tasks.open * max(state.rounds, 1) / len(state.closed)
    ordered = sorted(recent)
    quarter = (len(ordered) - 1) / 4
    return rounds_left * ordered[int(quarter)], rounds_left * ordered[-1 - int(quarter)]


def tally_of(tallies: tuple[Tally, ...], task: str | None) -> Tally:
    return next((tally for tally in tallies if tally.task == task), Tally(task=task or ""))


def tallies_after_round(tallies: tuple[Tally, ...], task: str | None, text: str, fact: RoundEnded) -> tuple[Tally, ...]:
    """Add this round; one without progress has failed its task."""
    if task is None:
        return tallies
    mine = tally_of(tallies, task)
    if not POLICY[fact.outcome].counts:  # it neither failed nor claimed anything, but its changes are there
        return _with_tally(tallies, replace(mine, text=text, progress=True)) if fact.progress else tallies
    failed = POLICY[fact.outcome].failure or not fact.progress
    said_done = fact.claim is not None and fact.claim.status == TaskStatus.DONE
    return _with_tally(
        tallies,
        replace(
            mine,
            text=text,
            failures=mine.failures + 1 if failed else 0,
            before=mine.failures,
            progress=mine.progress or fact.progress,
            claims=mine.claims + 1 if said_done else 0,
        ),
    )


def tallies_after_red_checks(tallies: tuple[Tally, ...], task: str, *, got_on: bool) -> tuple[Tally, ...]:
    """A round with progress still failed its task if its checks failed."""
    mine = tally_of(tallies, task)
    return _with_tally(tallies, replace(mine, failures=mine.before + 1)) if got_on else tallies


def _with_tally(tallies: tuple[Tally, ...], mine: Tally) -> tuple[Tally, ...]:
    return (*(tally for tally in tallies if tally.task != mine.task), mine)
