"""The task list of a loop as its page shows it: each task with its state, and what it has cost."""

from typing import Any

import msgspec

from bydawn.core import completion
from bydawn.core.errors import UserError
from bydawn.core.text import shorten
from bydawn.core.values import Status, Usage
from bydawn.core.worklist import Listed, Stand
from bydawn.operations.amounts import plural
from bydawn.operations.recent import Recent
from bydawn.operations.rounds import RoundRow, Tick
from bydawn.operations.tasks import of_loop
from bydawn.store.registry import Standing
from bydawn.web.words import UNKNOWN, money

_TASKS = 200  # that are listed


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task as the page shows it."""

    task: Listed
    stand: str  # of its row; `stuck` and `mark` are ours
    icon: str
    why: str = ""
    last: str = ""  # what it has cost, or in which round it was closed


_ICONS = {
    Stand.DONE: "done",
    Stand.NEXT: "next",
    Stand.OPEN: "open",
    Stand.WAITING: "waits",
    Stand.ASIDE: "aside",
    Stand.DOUBTED: "doubted",
    Stand.SKIPPED: "aside",
    Stand.REACHED: "checkpoint",
    Stand.APPROVED: "checkpoint",
    Stand.AHEAD: "checkpoint",
}


class _Work(msgspec.Struct, kw_only=True):
    """What the last rounds did about one task."""

    rounds: int = 0
    usage: Usage | None = None
    closed_in: int = 0


def task_rows(standing: Standing, history: Recent) -> dict[str, Any]:
    empty: dict[str, Any] = {"file": standing.loop.tasks, "tasks": [], "left_out": 0, "problem": "", "counts": None}
    if standing.trouble or not standing.loop.tasks:
        return empty
    try:
        board = of_loop(standing)
    except (UserError, OSError) as error:
        return empty | {"problem": str(error)}
    items, work = board.standings.items, _work(history.rounds)
    names = {item.id: item.text for item in items}
    rows = [_task_row(standing, item, work.get(item.id, _Work()), names) for item in _window(items)]
    counts = board.standings.counts
    return {
        "file": board.file,
        "tasks": rows,
        "left_out": len(items) - len(rows),
        "problem": board.trouble or "",
        "counts": (counts["done"], counts["done"] + counts["open"]),
    }


def _window(items: tuple[Listed, ...]) -> tuple[Listed, ...]:
    """Of a very long list, the part around the first task that is not done."""
    first = next((place for place, item in enumerate(items) if item.stand is not Stand.DONE), 0)
    begin = max(0, min(first - _TASKS // 4, len(items) - _TASKS))
    return items[begin : begin + _TASKS]


def _work(rounds: list[RoundRow]) -> dict[str, _Work]:
    found: dict[str, _Work] = {}
    for row in rounds:
        task, ended = row.attempt.started.task_id, row.attempt.ended
        if task is None:
            continue
        mine = found.setdefault(task, _Work())
        mine.rounds += 1
        if ended and ended.usage:
            mine.usage = ended.usage.plus(mine.usage)
        mine.closed_in = row.number if row.tick is Tick.CLOSED else mine.closed_in
    return found


def _task_row(standing: Standing, task: Listed, work: _Work, names: dict[str, str]) -> TaskRow:
    state, opened = standing.state, standing.state.open_round
    cost = money(work.usage)
    last = cost if cost != UNKNOWN else f"round {work.closed_in}" if work.closed_in else ""
    if task.number is None:
        return TaskRow(task=task, stand="mark", icon="checkpoint", last=task.stand.value)
    if opened and standing.alive and opened.started.task_id == task.id:
        return TaskRow(task=task, stand="next", icon="next", last="now")
    is_last = state.last is not None and state.last.task_id == task.id
    if standing.status is Status.BLOCKED and is_last and task.stand not in (Stand.DONE, Stand.DOUBTED, Stand.SKIPPED):
        place = f"{standing.loop.tasks}:{task.line}" if task.line else ""
        return TaskRow(task=task, stand="stuck", icon="stuck", why=place, last=plural(work.rounds, "round"))
    waits = " and ".join(f"“{shorten(names.get(id_, id_), 60)}”" for id_ in task.waits_for)
    words = {
        Stand.ASIDE: "set aside",
        Stand.DOUBTED: completion.DOUBTED,
        Stand.SKIPPED: "skipped",
    }
    proof = f"proof: {task.proof}" if task.proof else ""
    why = f"waits for {waits}" if waits else words.get(task.stand, proof)
    stand = "open" if task.stand is Stand.NEXT and not standing.alive else task.stand.value
    icon = "open" if stand == "open" else _ICONS[task.stand]
    return TaskRow(task=task, stand=stand, icon=icon, why=why, last=last)
