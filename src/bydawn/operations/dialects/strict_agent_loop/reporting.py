"""Say which tasks there are and where each stands; a command outside a sandbox first takes in what was recorded."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.dialects import own_words
from bydawn.dialects.strict_agent_loop import DIALECT, document, files, paths, texts
from bydawn.dialects.strict_agent_loop.document import State
from bydawn.operations import recording as native
from bydawn.operations.amounts import plural
from bydawn.operations.dialects.strict_agent_loop import sandboxed, stopping, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.operations.preconditions import is_inside_a_round

if TYPE_CHECKING:
    from bydawn.operations.dialects.begin import Trust

Say = Callable[[str], None]


def take_in(state: str | None, workspace: str | None, trust: "Trust", say: Say) -> None:
    """Make loops of what sandboxed sessions began in this workspace, if we can."""
    folder = tasks.place_of(state, workspace, None)[0] or "."
    if not is_inside_a_round() and Path(folder).is_dir():
        real = tasks.workspace_of(folder)
        if any((real / paths.TASKS).glob(f"*/{paths.DROP}/{paths.CONTRACT}")) and tasks.can_make(real):
            from bydawn.operations.dialects.strict_agent_loop import creating  # rare, and most scripts should be quick

            creating.take_in(real, trust, say)
        if moved := tasks.of_another_path(real):
            from bydawn.operations.dialects.strict_agent_loop import arriving

            arriving.follow(real, moved, say)
        if not os.path.lexists(real / paths.REGISTRY):
            _rebuild_registry(real, say)


def _rebuild_registry(workspace: Path, say: Say) -> None:
    """The list of all tasks is gone: what each says of itself is still known."""
    found = [each.now for each in tasks.every(workspace) if each.standing and not each.standing.trouble]
    sandboxed.write(workspace, [view for now in found for view in files.of_registry(now)], say)


def up_to_date(task: Task, say: Say) -> Task:
    """The task with all that waits for it in its drop folder; a running worker takes that itself."""
    standing = task.standing
    if standing is None or standing.trouble or standing.alive:
        return task
    return tasks.find(task.state_path) if native.take_in(standing, say) else task


def listed(workspace: Path, trust: "Trust", say: Say) -> list[Task]:
    take_in(None, str(workspace), trust, say)
    found = (each for each in tasks.every(workspace) if _is_readable(each, say))
    if is_inside_a_round():
        return [*found]
    return [up_to_date(each, say) if each.is_ours else each for each in found]


def _is_readable(task: Task, say: Say) -> bool:
    try:
        return bool(task.now)
    except UserError as error:  # the others are shown
        own_words.retell(error, DIALECT.name, DIALECT.unit, DIALECT.own, ())
        say(f"{task.id} cannot be shown: {error.what}. {error.hint}")
        return False


def report(task: Task, label: str, say: Say) -> tuple[dict[str, Any], str]:
    """One more line of the status history, and the status as a text; the status files are refreshed (S-030)."""
    tasks.refuse_foreign(task)
    now, stop = task.now, stopping.last(task)
    line = texts.status_line(now, stop, label, datetime.now(UTC))
    text = texts.status_text(now, stop)
    running = task.standing is not None and task.standing.alive
    views = [] if running else [*files.of_task(now, stop)]  # else its own process does it
    sandboxed.write(task.workspace, [files.line(paths.of(task.id, paths.STATUSES), line), *views], say)
    return msgspec.to_builtins(line), text


# -- what is shown -----------------------------------------------------------------------------------------------------


def entry(task: Task) -> dict[str, Any]:
    """What the registry says of it."""
    found = document.registry_entry(task.now)
    return found | ({} if task.is_ours else {"program": "another"})


def rows(task: Task) -> Iterator[str]:
    now = task.now
    other = "" if task.is_ours else " · another program's"
    crashed = task.standing is not None and task.standing.status == "crashed"
    at_work = "at work" if task.standing and task.standing.alive else "crashed" if crashed else ""
    words = [now.status, now.operating_mode, plural(now.counters.iteration, "iteration"), at_work]
    waiting = "recorded in a sandbox, not taken in yet" if now.pending else ""
    yield f"{task.id}  {' · '.join(filter(None, [*words, waiting]))}{other}"
    yield f"  {' '.join(now.goal.split())[:100]}"
    if now.next_task:
        yield f"  next: {' '.join(now.next_task.split())[:100]}"
    yield f"  {task.state_path}"


def shown(task: Task) -> str:
    now = task.now
    head = "\n".join([*rows(task), f"  stop when: {' '.join(now.global_stop_condition.split())}", ""])
    return head + "\n" + texts.status_text(now, stopping.last(task)) + "".join(_recent(now))


def _recent(now: State) -> Iterator[str]:
    if now.history:
        yield "\nRecorded last (claims):\n"
    for each in now.history[-5:]:
        yield f"  {each.iteration}. {' '.join(each.task.split())[:80]}: {' '.join(each.result_summary.split())[:120]}\n"
