"""`cleanup`: remove old copies of prompts, logs and answers, and a worktree that is merged; nothing else."""

import os
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from bydawn.core.facts import RoundStarted
from bydawn.dialects import follower
from bydawn.dialects.codex_loop import DIALECT, files
from bydawn.dialects.codex_loop.config import Cleanup, Pruned
from bydawn.operations import worktrees
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import project
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.worktrees import Removal
from bydawn.store.ledger import records
from bydawn.store.registry import Standing
from bydawn.system.paths import open_parent

FOLDERS = {"logs": files.LOGS, "runs": files.RUNS, "prompts": files.PROMPTS}
_DAY = 86_400.0  # seconds


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person typed; the rest is in the configuration."""

    keep: int | None = None
    older_than_days: int | None = None
    directory_keep: Pruned = Pruned()
    directory_older_than_days: Pruned = Pruned()


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """What is removed, or would be."""

    files: tuple[str, ...] = ()
    bytes: int = 0
    stuck: dict[str, str] = {}  # files that could not be removed, and why
    worktree: Removal | None = None


class _File(msgspec.Struct, frozen=True):
    path: str
    size: int
    written: float


def rules(asked: Asked, usual: Cleanup) -> dict[str, tuple[int, int | None]]:
    """For each folder how many of the newest files stay, and how old another one has to be, if that is said.

    What is typed comes before the configuration, and what is for one folder before what is for all.
    """
    both = (asked, usual)
    return {name: (_first(name, "keep", both) or 0, _first(name, "older_than_days", both)) for name in FOLDERS}


def _first(folder: str, rule: str, sources: Iterable[Asked | Cleanup]) -> int | None:
    told = ((getattr(getattr(each, f"directory_{rule}"), folder), getattr(each, rule)) for each in sources)
    return next((number for numbers in told for number in numbers if number is not None), None)


def clean(root: Path, asked: Asked, *, with_worktree: bool, apply: bool) -> Cleaned:
    """Without `apply` nothing is removed, and the same is named."""
    if apply:
        refuse_inside_a_round()
    wanted = rules(asked, project.config_of(root).operator.cleanup)
    every = loops.in_workspace(DIALECT, root)
    if trouble := next((each.trouble for each in every if each.trouble), None):
        raise trouble
    ranks, now = _ranks(every), time.time()
    going = [each for name, rule in wanted.items() for each in _going(root, FOLDERS[name], ranks, *rule, now)]
    unchanged = [each.path for each in going if apply and _file(root, each.path) == each]
    _, stuck = follower.remove(root, unchanged)
    return Cleaned(
        files=tuple(each.path for each in going),
        bytes=sum(each.size for each in going),
        stuck=stuck,
        worktree=_worktree(every[-1], apply=apply) if every and with_worktree else None,
    )


def _ranks(every: list[Standing]) -> dict[str, tuple[int, int]]:
    """The files that these loops have written, the newest with the highest rank; without those of an open iteration."""
    found: dict[str, tuple[int, int]] = {}
    for place, each in enumerate(every):
        for record in records(each.folder):
            if isinstance(fact := record.fact, RoundStarted):
                found |= dict.fromkeys(_names(fact.round, fact.task_id), (place, fact.round))
        opened = each.state.open_round
        for path in _names(opened.round, opened.started.task_id) if opened else ():
            found.pop(path, None)
    return found


def _names(number: int, task: str | None) -> tuple[str, ...]:
    return files.prompt_of(number, task), files.log_of(number, task), files.answer_about(task)


def _going(
    root: Path, folder: str, ranks: Mapping[str, tuple[int, int]], keep: int, days: int | None, now: float
) -> list[_File]:
    ours = sorted((path for path in ranks if path.startswith(folder)), key=lambda path: ranks[path], reverse=True)
    there = [each for path in ours if (each := _file(root, path))]
    return [each for each in there[keep:] if days is None or (now - each.written) / _DAY >= days][::-1]


def _file(root: Path, path: str) -> _File | None:
    """A regular file, reached through no link; None for anything else."""
    try:
        with open_parent(root, path) as (folder, name):
            found = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    return _File(path, found.st_size, found.st_mtime) if stat.S_ISREG(found.st_mode) else None


def _worktree(standing: Standing, *, apply: bool) -> Removal | None:
    """What becomes of it; never by force, and only once the project is finished and all of it is merged."""
    every = loops.registry_of().everywhere()
    return next(worktrees.clean([standing], every, named=True, apply=apply), None)
