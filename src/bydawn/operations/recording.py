"""Write to the ledger of a loop that does not run: what others recorded for it, and what becomes of it then."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bydawn.core import decide, taking
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, EventRecorded, IterationRecorded
from bydawn.core.loop import Loop
from bydawn.core.ports import Follower
from bydawn.core.values import FINISHED, Now
from bydawn.operations.preconditions import is_inside_a_round, refuse_inside_a_round, take_lock
from bydawn.operations.steer import secrets_of
from bydawn.store import drop, lock
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, records
from bydawn.store.registry import Standing
from bydawn.system import kernel

Claim = EventRecorded | IterationRecorded
Say = Callable[[str], None]
_PATIENCE = 10.0  # seconds that the process which runs a loop has to take a record


class Writer:
    """The ledger of a loop whose lock we hold; the files of its dialect follow each fact."""

    def __init__(self, loop: Loop, ledger: LoopLedger, say: Say) -> None:
        self.loop = loop
        self.ledger = ledger
        self._followers = _followers(loop, ledger.folder, say)

    def add(self, fact: AnyFact) -> None:
        fact = self.ledger.append(fact).fact
        for follower in self._followers:
            follower.saw(fact, self.loop, self.ledger.state)


@contextmanager
def writing(folder: LoopFolder, loop: Loop, hide: Callable[[str], str], say: Say) -> Iterator[Writer]:
    """Hold the loop's lock; what was added is on disk in the end."""
    held = take_lock(folder, loop)
    try:
        ledger = LoopLedger(folder, say, hide)
        try:
            yield Writer(loop, ledger, say)
            ledger.sync()
            ledger.snapshot()
        finally:
            ledger.close()
    finally:
        held.release()


def record(standing: Standing, fact: Claim, say: Say = lambda _: None) -> bool:
    """Record a claim of someone outside the loop; False if it still waits for the process that runs the loop.

    After the end, too: what is shown then changes, and nothing that was decided.
    """
    if lock.is_held(standing.folder.lock):  # by that process, or by a command as short as this one
        posted = drop.post(_place(standing), fact)
        if _is_taken(standing.folder, posted):
            return True
        if lock.is_held(standing.folder.lock):
            return False
        return take_in(standing, say) > 0 or not posted.exists()
    refuse_inside_a_round()
    _write(standing, [fact], say)
    return True


def record_all(standing: Standing, facts: Sequence[Claim], say: Say) -> None:
    """Record many claims of a loop that rests."""
    _write(standing, facts, say)


def take_in(standing: Standing, say: Say = lambda _: None) -> int:
    """Record what waits in the drop folder, if no process runs the loop; how much that was."""
    if standing.loop.recording is None or is_inside_a_round() or lock.is_held(standing.folder.lock):
        return 0
    if drop.is_empty(_place(standing)):
        return 0
    return _write(standing, (), say)


def _place(standing: Standing) -> Path:
    loop = standing.loop
    if loop.recording is None:
        raise UserError(f"nothing can be recorded for {loop.id}", cause="it is not a loop whose agents record")
    return Path(loop.workspace) / loop.recording.drop


def _write(standing: Standing, facts: Sequence[Claim], say: Say) -> int:
    place, count = _place(standing), 0
    drops = drop.Drop(place.parent, place.name, say)
    with writing(standing.folder, standing.loop, secrets_of(standing).hide, say) as writer:
        while count < drop.WAITING and (found := drops.take(writer.ledger.state.records.known)):
            for fact in found:
                _take(writer, fact, inside=True)
            writer.ledger.sync()
            for fact in found:
                drops.done(fact)
            count += len(found)
        for fact in facts:
            _take(writer, fact, inside=False)
        _end(writer)
    return count


def _take(writer: Writer, fact: Claim, *, inside: bool) -> None:
    writer.add(taking.taken(fact, writer.loop, writer.ledger.state, datetime.now(UTC), inside=inside))
    if shorter := taking.shortening(fact, writer.loop, writer.ledger.state):
        writer.add(shorter)


def _end(writer: Writer) -> None:
    """No process will decide what follows from a record for a loop that rests, so it is decided here."""
    state = writer.ledger.state
    if state.stopped is None or state.stopped.end in FINISHED:
        return
    now = Now(datetime.now(UTC), state.elapsed)
    stopped = decide.last_word(taking.at_rest(writer.loop, state, now), now)
    if (stopped.end, stopped.reason) != (state.stopped.end, state.stopped.reason):
        writer.add(stopped)


def _is_taken(folder: LoopFolder, posted: Path) -> bool:
    deadline, watch = time.monotonic() + _PATIENCE, kernel.Watch()
    watch.add(str(folder.ledger))
    while posted.exists() and lock.is_held(folder.lock) and time.monotonic() < deadline:
        watch.wait(0.05)
    watch.close()
    return not posted.exists()


def _followers(loop: Loop, folder: LoopFolder, say: Say) -> Sequence[Follower]:
    if loop.dialect is None:
        return ()
    from bydawn.dialects.follower import followers_of  # most loops have none

    return followers_of(loop, folder.path, lambda: records(folder), say, at_work=False)
