"""Another program's codex-loop in the same project: it is not taken over, and nothing of it is written."""

import os
import shlex
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.dialects.codex_loop.config import DAEMON, FOLDER, LOCK, METRICS, NAME, SCHEMA, STATE
from bydawn.dialects.codex_loop.files import HOOKS, LOGS, PROMPTS, RUNS
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import project
from bydawn.store import watches
from bydawn.system.reading import read_inside

_WHOLE = (STATE, METRICS, SCHEMA)
_BEFORE = f"{FOLDER}/before"


def refuse_live(root: Path) -> None:
    """It knows nothing of our lock."""
    for path in (LOCK, DAEMON):
        watch = watches.of(loops.registry_of(), root)
        if (pid := loops.named_by_another(root, path)) and not (watch and watch.pid == pid):
            raise UserError(
                "another codex-loop may be running here",
                cause=f"{path} names process {pid}, which is alive",
                hint=f"stop it first; if that process is something else, remove {path}",
                exit_code=8,
            )


def refuse_begun(root: Path, folder: str) -> None:
    """What it has begun is refused with the line that starts from scratch beside it; `folder` has the tasks."""
    theirs = [path for path in _WHOLE if os.path.lexists(root / path) and not loops.wrote(root, path)]
    found = _json(root, STATE)
    ours = found.get("bydawn") if isinstance(found, dict) else None
    known = {each.loop.uid for each in loops.registry_of().in_workspace(root)}
    if not theirs or (isinstance(ours, dict) and ours.get("uid") in known):
        return
    moved = [path for path in (*_WHOLE, LOGS, PROMPTS, RUNS, HOOKS) if os.path.lexists(root / path)]
    words = ["--done", ",".join(done)] if (done := _done(found, root, folder)) else []
    again = f"mkdir {_BEFORE} && {shlex.join(['mv', *moved, _BEFORE])} && {shlex.join([NAME, 'run', *words])}"
    if isinstance(ours, dict):
        raise UserError(
            "this project was begun in another folder, or its record is gone",
            cause="a record does not follow a folder that is renamed, copied or cloned",
            hint=f"if it was renamed, rename it back; or start from scratch here, and keep its files: `{again}`",
        )
    raise UserError(
        "another program has begun this project",
        cause=f"no loop that is on record wrote {theirs[0]}",
        hint=f"merge what it did; then start from scratch, and keep its files: `{again}`",
    )


def _done(found: object, root: Path, folder: str) -> list[str]:
    """The tasks that its file calls done, if they are in the list."""
    rows = found.get("tasks") if isinstance(found, dict) else None
    told = rows if isinstance(rows, dict) else {}
    done = {name for name, row in told.items() if isinstance(row, dict) and row.get("status") == "done"}
    return [task.id for task in project.tasks_of(root, folder) if task.id in done]


def _json(root: Path, path: str) -> Any:
    try:
        return msgspec.json.decode(read_inside(root, path) or b"")
    except (UserError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # no file of a codex-loop
        return None
