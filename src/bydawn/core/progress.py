"""What did the round leave behind, did it get anywhere, and how long will the rest take?"""

import msgspec

from bydawn.core.state import LoopState, known_as, task_mark
from bydawn.core.values import Changes, TaskReading, Usage

ENOUGH_ROUNDS = 3  # before that, an estimate is a guess


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

    `work` is the tree without notes and task list, and `closed` has none that was ticked without any other change.
    """
    return known_as(work) not in state.trees or any(task_mark(task) not in state.closed for task in closed)


def fewer(state: LoopState, now: TaskReading | None) -> bool:
    """Are fewer tasks open than ever before? Who adds a box and ticks it has done nothing that was asked for."""
    return now is not None and not now.problem and (state.fewest is None or now.open < state.fewest)


def time_left(state: LoopState) -> tuple[float, float] | None:
    """A range of seconds from the recent rounds and the tasks they closed; None while it is too early to tell."""
    recent = state.recent_seconds
    if state.tasks is None or not state.closed or len(recent) < ENOUGH_ROUNDS:
        return None
    rounds_left = state.tasks.open * max(state.rounds, 1) / len(state.closed)
    ordered = sorted(recent)
    quarter = (len(ordered) - 1) / 4
    return rounds_left * ordered[int(quarter)], rounds_left * ordered[-1 - int(quarter)]
