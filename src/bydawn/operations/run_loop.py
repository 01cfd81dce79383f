"""Run a planned loop to its end."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.assemble import Worker, box_for, run_loop
from bydawn.core.digests import sha256
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.facts import AnyFact, CheckpointApproved, LimitsRaised, LoopCreated, LoopStopped, TamperingAccepted
from bydawn.core.loop import Loop
from bydawn.core.secret_settings import SecretSettings
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import take_lock, user
from bydawn.process import awake
from bydawn.process.box import Box
from bydawn.process.pulse import Pulse
from bydawn.store import heartbeat
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger
from bydawn.store.lock import Lock
from bydawn.system.writing import make_private, replace_private, sync


def run(planned: Plan, worker: Worker) -> LoopStopped:
    """Take the loop's lock, hand it to the guardian as well, and run until the loop stops."""
    loop, folder = planned.loop, planned.folder
    box = "" if loop.worktree else box_for(loop, folder)
    make_private(folder.path)
    held = _begins(planned)
    if folder.chat_lock.exists():
        from bydawn.store import chat  # few loops have one

        chat.end_leftovers(folder, loop.uid)
    pulse = Pulse((partial(heartbeat.touch, folder), *worker.beats))
    with pulse:
        keeping = awake.command(Path(loop.workspace)) if loop.keep_awake else ()
        worker.tether.share(held.fd, worker.go_on or f"bydawn resume {loop.id}", keeping)
        return _run(planned, replace(worker, moved=pulse.moved, restart=planned.restart), held, box)


def _begins(planned: Plan) -> Lock:
    if planned.loop.dialect is None:
        return take_lock(planned.folder, planned.loop)
    from bydawn.operations import places  # few loops have places of their own

    return places.take(planned)


def _turn(planned: Plan) -> AbstractContextManager[None]:
    if planned.loop.dialect is None:
        return nullcontext()
    from bydawn.operations import places

    return places.turn(planned)


def _run(planned: Plan, worker: Worker, held: Lock, box: Box | str) -> LoopStopped:
    loop, folder = planned.loop, planned.folder
    ledger = LoopLedger(folder, worker.say, planned.secrets.hide)
    try:
        refuse_if_overtaken(planned, ledger.state)
        loop = _settings(folder, ledger.state.settings) if ledger.state.seq else loop
        leftover = False
        if loop.worktree:
            from bydawn.operations import worktrees  # few loops have one

            leftover = worktrees.ready(loop, ledger.state, worker.say)
            box = box_for(loop, folder)
        if ledger.state.seq == 0:
            with _turn(planned):
                create(loop, ledger)
        for fact in _given(planned, loop, ledger.state):
            fact = ledger.append(fact).fact
            for follower in worker.followers:
                follower.saw(fact, loop, ledger.state)
        return run_loop(loop, ledger, held, planned.secrets, worker, box, leftover=leftover)
    finally:
        ledger.close()


def _given(planned: Plan, loop: Loop, state: LoopState) -> Iterator[AnyFact]:
    """What a person changes when they resume a loop, as facts."""
    now = state.raised or loop.limits
    if planned.before and not state.runs:
        yield planned.before
    yield from planned.settles
    if planned.raises and (limits := planned.raises(now)) != now:
        yield LimitsRaised(limits=limits, by=user())
    if mark := planned.approves:
        yield CheckpointApproved(mark=mark.id, text=mark.text, by=user())
    if planned.accepts:
        yield TamperingAccepted(paths=planned.accepts, by=user())


def refuse_if_overtaken(planned: Plan, state: LoopState) -> None:
    """Another process may have run between the plan and the lock; its goal must not be taken for ours."""
    born = planned.standing is None and state.seq > 0
    done = planned.standing is not None and state.stopped is not None and state.stopped.end in FINISHED
    done = done and not planned.finished
    before, stopped = planned.standing.state.stopped if planned.standing else None, state.stopped
    ended = stopped is not None and stopped != before and stopped.by_person
    if born or done or ended:
        why = "it started the loop at the same moment" if born else "the loop has finished in the meantime"
        raise UserError(
            f"another process was faster with the loop {planned.loop.id}",
            cause=f"{stopped.reason} in the meantime" if stopped and ended else why,
            hint="run the same command again",
            exit_code=8,
        )


def create(loop: Loop, ledger: LoopLedger) -> None:
    """The settings are on disk before the ledger's first fact, which has their digest."""
    data = stored(loop, ledger.folder)
    replace_private(ledger.folder.settings, data, durable=True)
    sync(ledger.folder.home)
    ledger.append(creation_of(loop, data))
    ledger.sync()


def stored(loop: Loop, folder: LoopFolder) -> bytes:
    """The settings as they are kept. Secrets have a file apart, which is written here."""
    apart = SecretSettings.of(loop)
    if apart == SecretSettings():
        folder.secrets.unlink(missing_ok=True)  # of a start that a power cut ended here
    else:
        replace_private(folder.secrets, msgspec.json.encode(apart), durable=True)
    return msgspec.json.format(msgspec.json.encode(apart.masked.put_into(loop)), indent=2)


def creation_of(loop: Loop, settings: bytes) -> LoopCreated:
    """The first fact of a ledger."""
    return LoopCreated(loop=loop.id, uid=loop.uid, settings=digest_of(settings))


def digest_of(settings: bytes) -> str:
    return sha256(settings).hexdigest()


def _settings(folder: LoopFolder, digest: str) -> Loop:
    """The settings that the ledger knows; refused if the file changed since."""
    data = folder.settings.read_bytes()
    if digest_of(data) != digest:
        data = _changed(folder, digest)
    return folder.with_secrets(msgspec.json.decode(data, type=Loop))


def _changed(folder: LoopFolder, digest: str) -> bytes:
    """The settings of a change that a power cut ended just before they were in their place."""
    with suppress(FileNotFoundError):
        data = folder.next_settings.read_bytes()
        if digest_of(data) == digest:
            folder.next_settings.replace(folder.settings)
            return data
    raise OwnFailure(
        f"{folder.settings} has changed since the loop was started",
        cause="its digest differs from the recorded one",
        hint="restore it, or start another loop with --new",
    )
