"""Remove what old loops have printed. What they did, replied and kept of the work tree stays."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from bydawn.core.values import Status
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store.ledger import load
from bydawn.store.lock import Lock, Owned
from bydawn.store.registry import Standing
from bydawn.store.rounds import Bulk, bulk

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


def clean(loops: Iterable[Standing], older_than: float, *, named: bool, apply: bool) -> Iterator[Cleaned]:
    """Each loop that ended so many seconds ago; a loop that a person has `named` in any case."""
    refuse_inside_a_round()
    for each in loops:
        stopped, found = each.state.stopped, Bulk()
        why = why_not(each, older_than, datetime.now(UTC))
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
