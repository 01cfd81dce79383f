"""Where a blocked loop is stuck: the task, its place in the list, and what was tried."""

from functools import reduce

import msgspec

from bydawn.core.history import Attempt
from bydawn.core.values import Usage
from bydawn.store.registry import Standing


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """The task of the last round, if it had one, and all rounds on that task."""

    task: str | None
    place: str | None  # `TODO.md:18`
    rounds: int
    seconds: float
    usage: Usage | None


def stuck(standing: Standing, attempts: list[Attempt]) -> Stuck:
    last = standing.state.last
    task = last.task_id if last else None
    ended = [each.ended for each in attempts if each.ended and (not task or each.started.task_id == task)]
    known = [each.usage for each in ended if each.usage]
    return Stuck(
        task=last.task if last else None,
        place=_place(standing, task) if task else None,
        rounds=len(ended),
        seconds=sum(each.seconds for each in ended),
        usage=reduce(Usage.plus, known) if known else None,
    )


def _place(standing: Standing, task: str) -> str | None:
    from bydawn.operations.tasks import of_loop

    line = next((item.line for item in of_loop(standing).standings.tasks if item.id == task), None)
    return f"{standing.loop.tasks}:{line}" if line else None
