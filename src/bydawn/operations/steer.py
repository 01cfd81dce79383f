"""Pause, stop, tell, settle a task: ask a running loop, or record it ourselves if none runs."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import ITSELF, AnyFact, LoopDismissed, RestartsUsedUp
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.requests import AskAdd, AskNote, AskPause, AskSettle, AskStop, Request, as_fact
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER, plain, shorten
from bydawn.core.values import FINISHED, Act, Advice, End, Findings, Line, Now, Restart, TaskStatus
from bydawn.operations.preconditions import (
    is_inside_a_round,
    refuse_during_a_chat,
    refuse_inside_a_round,
    refuse_to_end,
    take_lock,
    user,
)
from bydawn.store import lock
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, load, read, records
from bydawn.store.registry import Registry, Standing
from bydawn.system import kernel
from bydawn.system.user_folders import has_settings_file

if TYPE_CHECKING:
    from bydawn.core.progress import Used

_PATIENCE = 10.0  # seconds that a worker has to take a request
_NAME = 100  # characters of a process's command line
_OCCUPIED = 8  # the exit code if another process runs the loop


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request."""

    taken_by: str  # "worker", or "ledger" if no worker was running
    state: str = ""
    changed: bool = True  # False if that was already so, and nothing was recorded
    ended: tuple[str, ...] = ()  # processes that a crash had left running


def pause(standing: Standing, *, now: bool) -> Answer:
    """Pause after this round, or now; `resume` continues."""
    refuse_to_end(standing.folder)
    return _ask(standing, AskPause(id=_new_id(), run="", by=user(), now=now))


def stop(standing: Standing, *, now: bool) -> Answer:
    """End the loop now, or after this round."""
    refuse_to_end(standing.folder)
    return _ask(standing, AskStop(id=_new_id(), run="", by=user(), now=now))


def give_up(standing: Standing, restart: Restart) -> Answer:
    """End a loop whose process died too many times in a row; nothing of it runs."""
    return _record(standing, RestartsUsedUp(restart=restart))


def at_work(registry: Registry, cd: Path | None) -> list[Standing]:
    """Every loop that runs, or did until it crashed; of one folder if a person named it."""
    refuse_inside_a_round()
    found = registry.here(cd) if cd else registry.everywhere()
    return [each for each in found if each.state.stopped is None and (each.alive or not each.trouble)]


def tell(standing: Standing, text: str) -> Answer:
    """Add a note to the next prompt."""
    if text.strip() in ("", PLACEHOLDER):
        cause = f"{PLACEHOLDER!r} is a placeholder" if text.strip() else "the note is empty"
        raise UserError("nothing to tell", cause=cause, hint=Advice("for example: ", Act('tell LOOP "round half up"')))
    by = ITSELF if is_inside_a_round() else user()
    return _ask(standing, AskNote(id=_new_id(), run="", by=by, text=text))


def dismiss(standing: Standing) -> None:
    """Take a loop that has ended out of the list; a new run brings it back."""
    refuse_to_end(standing.folder)
    if standing.trouble:
        raise standing.trouble
    if standing.alive or standing.state.stopped is None:
        raise UserError(
            f"{standing.loop.id} {standing.status.words}",
            cause="only a loop that has ended can be dismissed",
            hint=Advice("end it first: ", Act("stop", standing.reference)),
        )
    held = take_lock(standing.folder, standing.loop)
    ledger = LoopLedger(standing.folder, lambda _: None, secrets_of(standing).hide)
    try:
        if not ledger.state.dismissed:
            ledger.append(LoopDismissed(by=user()))
            ledger.sync()
            ledger.snapshot()
    finally:
        ledger.close()
        held.release()


def settle(standing: Standing, task: str, text: str, status: TaskStatus) -> Answer:
    """Record what a person decided about one task."""
    return _ask(standing, AskSettle(id=_new_id(), run="", by=user(), task=task, text=text, status=status))


def add(standing: Standing, line: Line) -> Answer:
    """Record a task that a person adds, before it is in the file."""
    return _ask(standing, AskAdd(id=_new_id(), run="", by=user(), line=line))


def secrets_of(standing: Standing) -> Secrets:
    """What must never be written to disk. Settings are loaded only if there are any: `stop` has to be quick."""
    if has_settings_file() or {"BYDAWN_SECRETS", "BYDAWN_NOT_SECRET"} & os.environ.keys():
        from bydawn.operations.settings import secrets

        return secrets().knowing(standing.folder.secret_texts())
    return Secrets(os.environ, standing.folder.secret_texts())


def _new_id() -> str:
    return os.urandom(6).hex()


def refuse_finished(standing: Standing) -> None:
    """A finished loop takes no requests."""
    if standing.finished:
        from bydawn.operations.start import another  # for a message

        raise UserError(
            f"{standing.loop.id} is already {standing.status}",
            cause="the loop has already finished",
            hint=another(standing.loop),
        )


def _ask(standing: Standing, request: Request) -> Answer:
    refuse_finished(standing)
    if not standing.alive:
        try:
            return _record(standing, request)
        except UserError as error:
            if error.exit_code != _OCCUPIED:
                raise  # a process begins to run it at this very moment; it will listen
    folder = standing.folder
    if run := _running(folder):
        refuse_during_a_chat(folder, standing.loop)
        from bydawn.store import inbox  # only a running loop has one

        request = msgspec.structs.replace(request, run=run)
        state, offset = load(folder)
        posted = inbox.post(folder.inbox, rewritten(request, secrets_of(standing).hide))
        if _acknowledged(folder, request, offset, state.seq):
            return Answer(taken_by="worker")
        posted.unlink(missing_ok=True)
        if lock.is_held(folder.lock):
            raise UserError(
                f"{standing.loop.id} did not answer within {_PATIENCE:.0f} s",
                cause=f"its process ({lock.owner(folder.lock)}) may be suspended (Ctrl-Z) or hang; nothing was changed",
                hint="try again in a moment",
                exit_code=1,
            )
    return _record(standing, request)


def _running(folder: LoopFolder) -> str:
    """The run that holds the lock, once it has signed; empty if there is none."""
    # What an earlier run signed says nothing. A process in a sandbox cannot tell, but the run that it is in has signed.
    deadline = time.monotonic() + _PATIENCE
    while not is_inside_a_round() and not lock.owner(folder.lock):
        if not lock.is_held(folder.lock) or time.monotonic() > deadline:
            return ""
        time.sleep(0.02)
    return lock.signature(folder.lock).get("run", "")


def _acknowledged(folder: LoopFolder, request: Request, offset: int, seq: int) -> bool:
    """Wait for the fact that answers the request; False if the worker dies."""
    path, watch = folder.ledger, kernel.Watch()
    watch.add(str(path))
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        for record, end in read(path, offset, seq):
            offset, seq = end, record.seq
            if getattr(record.fact, "request", None) == request.id:
                return True
        if not lock.is_held(folder.lock):
            return False
        watch.wait(0.2)
    return False


def _record(standing: Standing, request: Request | RestartsUsedUp) -> Answer:
    """No process runs the loop: take the lock and record the request, and what follows from it, ourselves."""
    if isinstance(request, AskPause | AskStop):
        request = msgspec.structs.replace(request, now=True)
    held = take_lock(standing.folder, standing.loop)
    hidden = secrets_of(standing)
    ledger = LoopLedger(standing.folder, lambda _: None, hidden.hide)
    before = ledger.state.seq
    ended: tuple[str, ...] = ()
    try:
        if isinstance(request, AskNote | AskSettle | AskAdd):
            # It may have finished while we asked.
            refuse_finished(Standing(folder=standing.folder, loop=standing.loop, state=ledger.state, alive=False))
            ledger.append(as_fact(request))
        elif ledger.state.stopped is None or _can_be_stopped(ledger, request):
            # What a crash left behind: an agent that still runs, and secrets in the files of its round.
            if left := lock.trace_of(standing.folder, standing.loop.uid):
                ended = tuple(shorten(hidden.hide(plain(name)), _NAME) for name in kernel.sweep(left))
            elapsed = ledger.state.elapsed
            if ledger.state.stopped is None or standing.folder.round(ledger.state.round + 1).exists():
                elapsed += _mask_after_crash(standing, ledger.state, hidden)
            fact = request if isinstance(request, RestartsUsedUp) else as_fact(request)
            _record_end(standing, ledger, hidden, fact, elapsed, ended)
        ledger.sync()
        ledger.snapshot()
        _follow(standing, ledger)
        end = ledger.state.stopped
        changed = ledger.state.seq > before
        return Answer(taken_by="ledger", state=end.end.value if end else "", changed=changed, ended=ended)
    finally:
        ledger.close()
        held.release()


def _mask_after_crash(standing: Standing, state: LoopState, hidden: Secrets) -> float:
    """Mask the secrets in what a killed worker left, even just a prompt; the seconds it worked since its last fact."""
    from bydawn.store.rounds import Rounds  # only needed after a crash

    rounds = Rounds(standing.folder, hidden)
    unrecorded = rounds.unrecorded(standing.loop, state)  # before masking touches the files
    for number in {state.round, rounds.last()}:
        rounds.mask(number)
    return unrecorded


def _follow(standing: Standing, ledger: LoopLedger) -> None:
    """Update the files of another tool too, since no worker is running to do so."""
    if standing.loop.dialect is None:
        return
    from bydawn.dialects.follower import followers_of  # most loops have none

    loop, folder = standing.loop, standing.folder
    for follower in followers_of(loop, folder.path, lambda: records(folder), lambda _: None, at_work=False):
        *_, last = records(folder)
        follower.saw(last.fact, loop, ledger.state)


def _can_be_stopped(ledger: LoopLedger, request: Request | RestartsUsedUp) -> bool:
    """A loop that paused for another reason can be; one that finished while we asked stays finished."""
    stopped = ledger.state.stopped
    if isinstance(request, RestartsUsedUp):
        return stopped is not None and stopped.by_machine
    return isinstance(request, AskStop) and stopped is not None and stopped.end not in {*FINISHED, End.STOPPED}


def _record_end(
    standing: Standing, ledger: LoopLedger, hidden: Secrets, fact: AnyFact, elapsed: float, ended: tuple[str, ...]
) -> None:
    from bydawn.core import decide  # not needed to ask a running loop

    loop, before = standing.loop, ledger.state.stopped
    unseen = before is None or before.unseen  # stopping it again shows nothing new
    ledger.append(fact)
    now = Now(datetime.now(UTC), elapsed)
    action = decide.next_action(loop, ledger.state, now)
    if isinstance(action, decide.Settle):
        last = decide.end_unseen(action, now, *_left_open(standing, ledger.state, hidden), unseen=True)
        ledger.append(msgspec.structs.replace(last, leftovers=ended))
        action = decide.next_action(loop, ledger.state, now)
    assert isinstance(action, decide.Pause | decide.Stop)  # noqa: S101 - a request for now leads nowhere else
    ledger.append(msgspec.structs.replace(decide.last_word(action, now), unseen=unseen))


def _left_open(standing: Standing, state: LoopState, hidden: Secrets) -> "tuple[Findings, Used]":
    """What a round that was cut short changed, which is not known yet, and what it used."""
    from bydawn import agents
    from bydawn.core.agent import spent_unseen
    from bydawn.store.rounds import Rounds

    rounds = Rounds(standing.folder, hidden)
    used = spent_unseen(standing.loop, state, agents.pool(standing.loop), rounds.lines)
    return Findings(tree=state.tree, work=state.work), used
