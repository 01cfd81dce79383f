"""Did the round make progress, how far is the loop, and how long will it take?"""

from bydawn.core.facts import TaskReading
from bydawn.core.state import LoopState, known_as, task_mark

ENOUGH_ROUNDS = 3  # with fewer, an estimate is a guess


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
