"""A planned loop, run to its end: everything has been checked before anything is written or spent."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bydawn.assemble import run_loop
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.facts import (
    AnyFact,
    CheckpointApproved,
    LimitsRaised,
    LoopAdopted,
    LoopCreated,
    LoopStopped,
    TamperingAccepted,
)
from bydawn.core.loop import Limits, Loop
from bydawn.core.ports import Clock, Follower
from bydawn.core.redact import Secrets
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import FINISHED, Mark
from bydawn.engine.run import COOKIE
from bydawn.process.guardian import Tether
from bydawn.store import lock
from bydawn.store.ledger import LoopLedger, records
from bydawn.store.registry import Standing, reference
from bydawn.system import kernel
from bydawn.system.writing import make_private, sync_folder, write_durable


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that may be started: all checks have passed, nothing has been written."""

    loop: Loop
    folder: Path
    secrets: Secrets
    standing: Standing | None = None  # None when it is new
    warnings: tuple[str, ...] = ()
    approves: Mark | None = None  # the checkpoint that a person has looked at
    adopts: LoopAdopted | None = None  # what another program had done of it
    accepts: tuple[str, ...] = ()  # protected files, or a task list, that may stay as rounds have made them
    raises: Callable[[Limits], Limits] | None = None  # what the limits in force become

    @property
    def root(self) -> Path:
        """The state folder."""
        return self.folder.parents[2]

    @property
    def reference(self) -> str:
        """What a person has to type for it, wherever they are."""
        return reference(self.folder, self.loop)

    @property
    def goes_on(self) -> bool:
        return self.standing is not None


def perform(
    planned: Plan,
    tether: Tether,
    *,
    followers: Sequence[Follower] = (),
    once: bool = False,
    clock: Clock | None = None,
    say: Callable[[str], None] = lambda _: None,
    go_on: str = "",
) -> LoopStopped:
    """Take the loop's lock, hand it to the guardian as well, and run until the loop stops.

    `go_on` is the command that the guardian offers if the worker is killed.
    """
    loop, folder = planned.loop, planned.folder
    make_private(folder)
    held = take_lock(folder, loop)
    tether.share(held.fd, go_on or f"bydawn resume {loop.id}")
    ledger = LoopLedger(folder, say, planned.secrets.hide)
    try:
        _refuse_if_overtaken(planned, ledger.state)
        if ledger.state.seq == 0:
            _create(loop, ledger)
        else:
            loop = _settings(folder)
        for fact in _given(planned, loop, ledger.state):
            fact = ledger.append(fact).fact
            for follower in followers:
                follower.saw(fact, loop, ledger.state)
        allowed = 1 if once else None
        return run_loop(
            loop,
            ledger,
            held,
            tether,
            secrets=planned.secrets,
            state_folder=planned.root,
            clock=clock,
            followers=followers,
            rounds_allowed=allowed,
            say=say,
        )
    finally:
        ledger.close()


def _given(planned: Plan, loop: Loop, state: LoopState) -> Iterator[AnyFact]:
    """What a person brings along when they resume a loop."""
    now = state.raised or loop.limits
    if planned.adopts and not state.runs:
        yield planned.adopts
    if planned.raises and (limits := planned.raises(now)) != now:
        yield LimitsRaised(limits=limits, by=user())
    if mark := planned.approves:
        yield CheckpointApproved(mark=mark.id, text=mark.text, by=user())
    if planned.accepts:
        yield TamperingAccepted(paths=planned.accepts, by=user())


def _refuse_if_overtaken(planned: Plan, state: LoopState) -> None:
    """Between the plan and the lock somebody else may have been here; their goal must not be taken for ours."""
    born = planned.standing is None and state.seq > 0
    done = planned.standing is not None and state.stopped is not None and state.stopped.end in FINISHED
    if born or done:
        raise UserError(
            f"another worker was faster with the loop {planned.loop.id}",
            cause="it was started here at the same moment" if born else "it has finished in the meantime",
            hint="run the same command again",
            exit_code=8,
        )


def take_lock(folder: Path, loop: Loop) -> lock.Lock:
    """The loop's lock, or an error that names its owner."""
    try:
        return lock.Lock.take(folder / "lock")
    except lock.Owned as owned:
        name = reference(folder, loop)
        raise UserError(
            f"another worker owns the loop {loop.id}",
            cause=f"it is {owned}",
            hint=f"watch it with `bydawn logs {name} -f`, or end it with `bydawn stop {name}`",
            exit_code=8,
        ) from None


def _create(loop: Loop, ledger: LoopLedger) -> None:
    """The settings are on the disk before the ledger's first fact, which carries their digest."""
    data = msgspec.json.format(msgspec.json.encode(loop), indent=2)
    write_durable(ledger.folder / "loop.json", data)
    sync_folder(ledger.folder.parent)
    ledger.append(creation_of(loop, data))
    ledger.sync()


def creation_of(loop: Loop, settings: bytes) -> LoopCreated:
    """The first fact of a ledger."""
    return LoopCreated(loop=loop.id, uid=loop.uid, settings=hashlib.sha256(settings).hexdigest())


def _settings(folder: Path) -> Loop:
    """The settings a loop was started with; changed behind the ledger's back they are refused."""
    data = (folder / "loop.json").read_bytes()
    first = next(records(folder)).fact
    if not isinstance(first, LoopCreated) or first.settings != hashlib.sha256(data).hexdigest():
        raise OwnFailure(
            f"{folder / 'loop.json'} is not what the loop was started with",
            cause="its digest differs from the one in the ledger's first line",
            hint="put it back as it was, or start another loop with --new",
        )
    return msgspec.json.decode(data, type=Loop)


def is_inside_a_round() -> bool:
    """Does an agent or a hook of a loop ask, or something that they left behind?"""
    marked = (kernel.has_variable(pid, COOKIE) or kernel.is_worker(pid) for pid in kernel.ancestors())
    return bool(os.environ.get(COOKIE)) or any(marked)


def refuse_inside_a_round() -> None:
    """An agent may look and leave notes; it may not start, resume or repair loops, nor trust or set anything."""
    if is_inside_a_round():
        raise UserError(
            "this cannot be done from inside a round",
            cause="an agent of a loop, or something that it left behind, is asking",
            hint="a person has to do it, in a terminal of their own",
        )


def checked_workspace(path: Path) -> Path:
    """The real path of a folder that is there."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"there is no folder {path}", cause=_reason(error), hint="give an existing one with -C"
        ) from None
    if not real.is_dir():
        raise UserError(f"{path} is not a folder", hint="give a folder with -C")
    try:
        str(real).encode()
    except UnicodeEncodeError:
        raise UserError("the folder's name is not UTF-8", cause=ascii(str(real)), hint="rename it") from None
    return real


def gone(standing: Standing) -> UserError | None:
    """What is wrong if a loop's folder is not there any more: no flag can name another, it works in that one alone."""
    loop = standing.loop
    if Path(loop.workspace).is_dir():
        return None
    return UserError(
        f"the workspace of {loop.id} is gone: {loop.workspace}",
        cause="it was removed, renamed or not mounted; a loop stays in the folder that it was started in",
        hint=f"bring it back (or mount it), then `bydawn resume {standing.reference}`; or start a new loop elsewhere",
    )


def user() -> str:
    """Who is at the keyboard, for the record."""
    return plain(os.environ.get("USER") or os.environ.get("LOGNAME") or _by_number() or "somebody")


def _by_number() -> str:
    """The name that the system has for us: cron, containers and services set no variable."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
