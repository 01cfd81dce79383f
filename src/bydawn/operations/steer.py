"""Pause, stop, tell and settle a task: a running loop is asked, one that stands still has it recorded by us."""

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import ITSELF, AnyFact
from bydawn.core.loop import COOKIE
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.requests import Pause, Request, SettleTask, Stop, Tell, as_fact
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import FINISHED, End, Now, TaskStatus
from bydawn.operations.preconditions import is_inside_a_round, take_lock, user
from bydawn.store import lock
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, load, read, records
from bydawn.store.registry import Standing
from bydawn.system import kernel
from bydawn.system.user_folders import has_settings_file

if TYPE_CHECKING:
    from bydawn.core.progress import Findings, Used

_PATIENCE = 10.0  # seconds that a worker gets to take a request


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request."""

    taken_by: str  # "the worker", or "the ledger" when no worker was there
    state: str = ""
    changed: bool = True  # or it stood so already, and nothing was written down


def pause(standing: Standing, *, now: bool) -> Answer:
    """Stand still after this round, or at once; `resume` goes on."""
    refuse_finished(standing)
    return _ask(standing, Pause(id=_new_id(), run="", by=user(), now=now))


def stop(standing: Standing, *, now: bool) -> Answer:
    """End the loop at once, or after this round."""
    refuse_finished(standing)
    return _ask(standing, Stop(id=_new_id(), run="", by=user(), now=now))


def tell(standing: Standing, text: str) -> Answer:
    """A note that stands in the next prompt."""
    if text.strip() in ("", PLACEHOLDER):
        cause = "it stands for your own words" if text.strip() else "the note is empty"
        raise UserError("there is nothing to tell", cause=cause, hint='bydawn tell LOOP "round half up"')
    refuse_finished(standing)
    by = ITSELF if is_inside_a_round() else user()
    return _ask(standing, Tell(id=_new_id(), run="", by=by, text=text))


def settle(standing: Standing, task: str, text: str, status: TaskStatus) -> Answer:
    """A person's word about one task."""
    refuse_finished(standing)
    return _ask(standing, SettleTask(id=_new_id(), run="", by=user(), task=task, text=text, status=status))


def _secrets() -> Secrets:
    """What must never be written down. Settings are loaded only where there are any: `stop` has to be quick."""
    if has_settings_file() or {"BYDAWN_SECRETS", "BYDAWN_NOT_SECRET"} & os.environ.keys():
        from bydawn.operations.settings import secrets

        return secrets()
    return Secrets(os.environ, (), ())


def _new_id() -> str:
    return os.urandom(6).hex()


def refuse_finished(standing: Standing) -> None:
    """Nothing can be asked of a loop that is done."""
    if standing.finished:
        from bydawn.operations.start import another  # for a message

        raise UserError(
            f"the loop {standing.loop.id} is {standing.status} already",
            cause="it has ended, and so nobody is there to do anything",
            hint=another(standing.loop),
        )


def _ask(standing: Standing, request: Request) -> Answer:
    folder = standing.folder
    if standing.alive and (run := lock.signature(folder.lock).get("run")):
        from bydawn.store import inbox  # only a running loop has one

        request = msgspec.structs.replace(request, run=run)
        state, offset = load(folder)
        posted = inbox.post(folder.inbox, rewritten(request, _secrets().hide))
        if _acknowledged(folder, request, offset, state.seq):
            return Answer(taken_by="the worker")
        posted.unlink(missing_ok=True)
        if lock.is_held(folder.lock):
            raise UserError(
                f"the worker of {standing.loop.id} did not answer",
                cause=f"it has not taken the request within {_PATIENCE:.0f} s; it is {lock.owner(folder.lock)}",
                hint="it may be stopped (Ctrl-Z) or hang in the kernel; nothing was changed",
                exit_code=1,
            )
    return _record(standing, request)


def _acknowledged(folder: LoopFolder, request: Request, offset: int, seq: int) -> bool:
    """Wait for the fact that says so; in vain if the worker dies."""
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


def _record(standing: Standing, request: Request) -> Answer:
    """Nobody runs the loop: take the lock and write it down ourselves, settled and all; nothing is waited for."""
    if isinstance(request, Pause | Stop):
        request = msgspec.structs.replace(request, now=True)
    held = take_lock(standing.folder, standing.loop)
    hidden = _secrets()
    ledger = LoopLedger(standing.folder, lambda _: None, hidden.hide)
    before = ledger.state.seq
    try:
        if isinstance(request, Tell | SettleTask):
            # It may have come to its end while we asked.
            refuse_finished(Standing(folder=standing.folder, loop=standing.loop, state=ledger.state, alive=False))
            ledger.append(as_fact(request))
        elif ledger.state.stopped is None or _can_be_stopped(ledger, request):
            # What a crash left behind: an agent that lives on, and secrets in the files of the round it was in.
            kernel.sweep(f"{COOKIE}={standing.loop.uid}.")
            elapsed = ledger.state.elapsed
            if ledger.state.stopped is None or standing.folder.round(ledger.state.round + 1).exists():
                elapsed += _mask_after_crash(standing, ledger.state, hidden)
            _record_end(standing, ledger, hidden, as_fact(request), elapsed)
        ledger.sync()
        ledger.snapshot()
        _follow(standing, ledger)
        end = ledger.state.stopped
        changed = ledger.state.seq > before
        return Answer(taken_by="the ledger", state=end.end.value if end else "", changed=changed)
    finally:
        ledger.close()
        held.release()


def _mask_after_crash(standing: Standing, state: LoopState, hidden: Secrets) -> float:
    """Mask the secrets in what a killed worker left, if only a prompt; the seconds it worked since its last fact."""
    from bydawn.store.rounds import Rounds  # only needed after a crash

    rounds = Rounds(standing.folder, hidden)
    unrecorded = rounds.unrecorded(standing.loop, state)  # before masking touches the files
    for number in {state.round, rounds.last()}:
        rounds.mask(number)
    return unrecorded


def _follow(standing: Standing, ledger: LoopLedger) -> None:
    """Files in another tool's words say the same, although no worker was there to write them."""
    if standing.loop.dialect is None:
        return
    from bydawn.dialects.follower import followers_of  # most loops have none

    for follower in followers_of(standing.loop, standing.folder.path, lambda: records(standing.folder), lambda _: None):
        *_, last = records(standing.folder)
        follower.saw(last.fact, standing.loop, ledger.state)


def _can_be_stopped(ledger: LoopLedger, request: Request) -> bool:
    """One that stands still for another reason can be; its good end, reached while we asked, a loop keeps."""
    stopped = ledger.state.stopped
    return isinstance(request, Stop) and stopped is not None and stopped.end not in {*FINISHED, End.STOPPED}


def _record_end(standing: Standing, ledger: LoopLedger, hidden: Secrets, fact: AnyFact, elapsed: float) -> None:
    from bydawn.core import decide  # not needed to ask a running loop

    loop, before = standing.loop, ledger.state.stopped
    unseen = before is None or before.unseen  # stopping it a second time shows nothing new
    ledger.append(fact)
    now = Now(datetime.now(UTC), elapsed)
    action = decide.next_action(loop, ledger.state, now)
    if isinstance(action, decide.Settle):
        ledger.append(decide.settled(action, now, *_left_open(standing, ledger.state, hidden), unseen=True))
        action = decide.next_action(loop, ledger.state, now)
    assert isinstance(action, decide.Pause | decide.Stop)  # noqa: S101 - a request that holds now leads nowhere else
    ledger.append(msgspec.structs.replace(decide.last_word(action, now), unseen=unseen))


def _left_open(standing: Standing, state: LoopState, hidden: Secrets) -> "tuple[Findings, Used]":
    """What a round that was left open changed, which no one has looked at, and what it used."""
    from bydawn import agents
    from bydawn.core.agent import spent_unseen
    from bydawn.core.progress import Findings
    from bydawn.store.rounds import Rounds

    rounds = Rounds(standing.folder, hidden)
    used = spent_unseen(standing.loop, state, agents.pool(standing.loop), rounds.lines)
    return Findings(tree=state.tree, work=state.work), used
