"""Remove what old loops have printed. What they did, replied and kept of the work tree stays."""

import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

import msgspec

from bydawn.core.layout import ROUNDS
from bydawn.core.loop import COOKIE
from bydawn.core.values import Status
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.ledger import load
from bydawn.store.lock import Lock, Owned
from bydawn.store.registry import Standing
from bydawn.store.rounds import Bulk, bulk
from bydawn.system import kernel
from bydawn.system.paths import open_folder

STARTED = "it was started again"


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    """What is removed of one loop, or would be."""

    loop: str
    workspace: str
    state: Status
    ended: datetime | None
    files: int
    bytes: int
    skipped: str  # why it is left alone


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question to an agent left behind, outside any loop: it failed, or was cut short."""

    folder: str
    asked: datetime  # or when its agent last printed something
    files: int
    bytes: int


def clean(
    loops: Iterable[Standing], older_than: float, *, named: bool, apply: bool, keep: int = 0
) -> Iterator[Cleaned]:
    """Each loop that ended so many seconds ago, but the last few; a loop that a person has `named` in any case."""
    refuse_inside_a_round()
    meant, now = [*loops], datetime.now(UTC)
    kept = _last(keep, [each for each in meant if not why_not(each, older_than, now)])
    for each in meant:
        stopped, found = each.state.stopped, Bulk()
        why = why_not(each, older_than, now) or (f"--keep {keep} keeps it" if each.folder in kept else "")
        if why and not named:
            continue
        if not why:
            found, why = _removed(each) if apply else (bulk(each.folder), "")
            why = why or ("" if found.files else "nothing is left to remove")
        if found.files or named:
            yield Cleaned(
                loop=each.loop.id,
                workspace=each.loop.workspace,
                state=each.status,
                ended=stopped.decided.at if stopped else None,
                files=found.files,
                bytes=found.bytes,
                skipped=why,
            )


def why_not(standing: Standing, older_than: float, now: datetime) -> str:
    """Why a loop keeps everything; nothing if it has finished or was dismissed, long enough ago."""
    stopped = standing.state.stopped
    if standing.trouble or standing.alive or stopped is None:
        return f"it {standing.status.words}"
    if not standing.finished and not standing.state.dismissed:
        return f"it {standing.status.words} and can go on; dismiss it first"
    is_old = (now - stopped.decided.at).total_seconds() >= older_than
    return "" if is_old else "it has ended too recently; see --older-than"


def _last(count: int, loops: list[Standing]) -> set[LoopFolder]:
    """The loops that ended last."""
    ended = [(each.state.stopped.decided.at, each.folder) for each in loops if each.state.stopped]
    return {folder for _, folder in sorted(ended, key=itemgetter(0), reverse=True)[:count]}


def _removed(standing: Standing) -> tuple[Bulk, str]:
    with alone(standing) as is_alone:
        return (bulk(standing.folder, remove=True), "") if is_alone else (Bulk(), STARTED)


@contextmanager
def alone(standing: Standing) -> Iterator[bool]:
    """While we hold its lock, no one can continue it; False if someone has."""
    try:
        held = Lock.take(standing.folder.lock)
    except Owned:
        yield False
        return
    try:
        yield load(standing.folder)[0].seq == standing.state.seq
    finally:
        held.release()


# -- questions ---------------------------------------------------------------------------------------------------------


def clean_questions(root: StateFolder, older_than: float, *, apply: bool) -> Iterator[Question]:
    """What is left of each question to which so many seconds have added nothing; never of one that is being asked."""
    refuse_inside_a_round()
    for place, written in _old_questions(root.asked, older_than):
        found = bulk(place, remove=apply)
        if apply:
            _remove_empty(place)
        asked = datetime.fromtimestamp(written, UTC)
        yield Question(folder=str(place), asked=asked, files=found.files, bytes=found.bytes)


def _old_questions(folder: Path, older_than: float) -> Iterator[tuple[LoopFolder, float]]:
    """Their folders, and when something was last written there."""
    names = sorted(os.listdir(folder)) if folder.is_dir() and not folder.is_symlink() else []
    known = ((place, _written(place)) for place in (LoopFolder(folder / name) for name in names))
    old = [(place, at) for place, at in known if time.time() - at >= older_than]
    if old:
        traces = [kernel.Trace(f"{COOKIE}={place.name}.", str(place.rounds)) for place, _ in old]
        yield from (row for row, pids in zip(old, kernel.left_of(traces), strict=True) if not pids)


def _written(place: LoopFolder) -> float:
    """When a file of a question was last written; if there is none, it is not over."""
    with suppress(OSError), open_folder(place.path, [ROUNDS, place.round(1).name]):
        return max((each.lstat().st_mtime for each in place.round(1).iterdir()), default=math.inf)
    return math.inf


def _remove_empty(place: LoopFolder) -> None:
    """The folders of a question, if nothing else is in them; through no link."""
    names = [place.name, ROUNDS, place.round(1).name]
    while names:
        name = names.pop()
        with suppress(OSError), open_folder(place.path.parent, names) as outer:
            os.rmdir(name, dir_fd=outer)
