"""Start a loop, or go on with one: everything is checked before anything is written or spent."""

import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from bydawn import agents, kernel, lock
from bydawn.assemble import run_loop
from bydawn.core import prompt, reach
from bydawn.core.decide import checkpoint_of
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.facts import (
    FINISHED,
    AnyFact,
    CheckpointApproved,
    LimitsRaised,
    LoopAdopted,
    LoopCreated,
    LoopStopped,
    Mark,
    Now,
    TamperingAccepted,
)
from bydawn.core.loop import (
    CommandCheck,
    Limits,
    Loop,
    PathCheck,
    TextCheck,
    differences,
)
from bydawn.core.ports import Clock, Command, Follower
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.replay import forgiven
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER, plain
from bydawn.core.turn import turn_of
from bydawn.core.worklist import WorkList
from bydawn.disk import make_private, others_can_write, sync_folder, write_durable
from bydawn.engine import COOKIE
from bydawn.files import Texts
from bydawn.guardian import Tether
from bydawn.host.registry import Registry, Standing, called, free_name
from bydawn.ledger import LoopLedger, records
from bydawn.operations.look import trouble_with_tasks
from bydawn.operations.wish import (
    Wish,
    checked_agent,
    doubts,
    loop_of,
    refuse_budget_without_costs,
    refuse_if_secrets_are_missing,
)


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

    @property
    def root(self) -> Path:
        """The state folder."""
        return self.folder.parents[2]

    @property
    def goes_on(self) -> bool:
        return self.standing is not None


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What `--dry-run` shows."""

    plan: Plan
    command: Command
    prompt: str
    sandbox: str  # what the agent is held to; empty where that is up to itself


def plan(wish: Wish) -> Plan:
    """Which loop this wish means. Raises `UserError`; touches nothing."""
    refuse_inside_a_round()
    workspace = checked_workspace(wish.workspace)
    loop = loop_of(wish, workspace)
    registry = Registry(wish.state_dir)
    _refuse_unsafe(registry.root, workspace)
    there = registry.in_workspace(workspace)
    if standing := _meant(wish, loop, there):
        return Plan(loop=standing.loop, folder=standing.folder, standing=standing, secrets=wish.secrets)
    name = free_name(loop.id, [each.loop.id for each in there])
    busy = [each.loop.id for each in there if each.alive]
    shared = (
        [f"{', '.join(busy)} is at work in this folder too: each takes the other's changes for progress"]
        if busy
        else []
    )
    warnings = (*doubts(loop), *shared)
    return Plan(
        loop=msgspec.structs.replace(loop, id=name),
        folder=registry.home(workspace) / name,
        secrets=wish.secrets,
        warnings=warnings,
    )


def _refuse_unsafe(root: Path, workspace: Path) -> None:
    """The truth, and what a person has trusted, must be out of everybody else's reach."""
    if root.resolve().is_relative_to(workspace):
        raise UserError(
            f"the state folder {root} is inside of the workspace",
            cause="the agent could reach the truth there, and every round would look like progress",
            hint="give --state-dir a folder outside of it",
        )
    if root.exists() and others_can_write(root.stat()):
        raise UserError(
            f"others can write to the state folder {root}",
            cause="they could forge what has happened and what you trust",
            hint=f"chmod go-w {shlex.quote(str(root))}",
        )
    if root.exists() and os.getuid() not in (0, root.stat().st_uid):
        raise UserError(
            f"the state folder {root} belongs to somebody else",
            cause=f"its owner is user {root.stat().st_uid}",
            hint="give --state-dir a folder of your own",
        )


def plan_resume(
    standing: Standing,
    secrets: Secrets,
    *,
    approve: bool = False,
    accept: bool = False,
    limits: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """Go on with a loop that stands still; past its checkpoint, or with changed protected files, if a person looked.

    `limits` are those that they set anew, by name.
    """
    refuse_inside_a_round()
    if standing.trouble:
        raise standing.trouble
    if standing.finished:
        raise UserError(
            f"the loop {standing.loop.id} is {standing.word}; there is nothing to go on with",
            hint=another(standing.loop),
        )
    checked_workspace(Path(standing.loop.workspace))
    for name in standing.loop.pool:
        checked_agent(name)
    refuse_if_secrets_are_missing(standing.loop, standing.called, secrets)
    for agent in agents.pool(standing.loop).values():
        refuse_budget_without_costs(agent, limits.get("usd"))
    _refuse_used_up(standing, limits)
    mark = _approved(standing) if approve else None
    state = standing.state
    if accept and not state.tampered and not (state.tasks and state.tasks.problem):
        raise UserError(
            f"there is nothing to accept in {standing.loop.id}",
            cause="no protected file was changed, and its task list was believed",
            hint=f"go on with `bydawn resume {standing.called}`",
        )
    if accept and not state.tampered:
        _refuse_unreadable(standing)
    accepts = (*state.tampered, *((standing.loop.tasks or "",) if state.tasks and state.tasks.problem else ()))
    if standing.loop.dialect and not standing.alive:  # or it is refused for that
        from bydawn.operations import places  # most loops have none

        places.take_up(standing)
    return Plan(
        loop=standing.loop,
        folder=standing.folder,
        standing=standing,
        secrets=secrets,
        approves=mark,
        accepts=accepts if accept else (),
    )


_SHORT = 200  # characters of a prompt that can be pasted
_TYPED_AGAIN = {"prompt", "agent", "others", "tasks", "task_folder", "checks"}


def another(loop: Loop) -> str:
    """How a person starts such a loop once more; a new one knows nothing of what this one has done."""
    if loop.dialect:
        return f"start another with {loop.dialect.name}"
    words = [shlex.quote(word) for word in _typed_again(loop)]
    if any("`" in word for word in words):  # nobody could see where the command ends
        return f'start another: `bydawn run --new "{PLACEHOLDER}"`'
    rest = [name for name in differences(_without_settings(loop), loop) if name not in _TYPED_AGAIN]
    left_out = f", where {PLACEHOLDER} is what else it was given: {', '.join(rest)}" if rest else ""
    command = " ".join(["bydawn run --new", *words, *([PLACEHOLDER] if rest else [])])
    return f"start another: `{command}`{left_out}"


def _typed_again(loop: Loop) -> Iterator[str]:
    if loop.prompt:
        is_short = len(loop.prompt) <= _SHORT and loop.prompt.isprintable() and loop.prompt[0] not in "-@"
        yield loop.prompt if is_short else PLACEHOLDER
    if Path.cwd() != Path(loop.workspace):
        yield from ("-C", loop.workspace)
    if loop.tasks:
        yield from ("-t", loop.tasks)
    for agent in loop.pool:
        yield from ("-a", agent)
    for check in loop.checks:
        match check:
            case CommandCheck():
                yield from ("-k", check.command)
            case PathCheck():
                yield from ("--require-path", check.path)
            case TextCheck():
                yield from ("--require-text", f"{check.path}::{check.text}")


def _without_settings(loop: Loop) -> Loop:
    """The same goal, with nothing but what holds where nobody says anything."""
    given = {name: getattr(loop, name) for name in ("id", "uid", "workspace", "created_at", "prompt", "agent")}
    return Loop(**given)


def _refuse_used_up(standing: Standing, limits: Mapping[str, Any]) -> None:
    """A limit that would end the loop at once is a slip of the hand."""
    name, state = standing.loop.id, forgiven(standing.state)
    now = Now(datetime.now(UTC), state.elapsed)
    if found := reach.used_up(standing.loop, state, limits, now):
        raise UserError(
            f"{reach.asked(found)} is used up already",
            cause=f"{name} {reach.used(found)}; nothing was changed",
            hint=f"`bydawn resume {standing.called} {reach.enough(found, state)}`",
        )


def _refuse_unreadable(standing: Standing) -> None:
    """A person can accept that tasks are gone, and not that nobody knows which there are, or which comes first."""
    if trouble := trouble_with_tasks(standing):
        raise UserError(
            f"the tasks of {standing.loop.id} cannot be accepted as they are",
            cause=trouble,
            hint=f"mend it, then `bydawn resume {standing.called}`",
        )


def _approved(standing: Standing) -> Mark:
    if mark := due(standing):
        return mark
    moved = checkpoint_of(standing.loop, standing.state)
    raise UserError(
        f"the loop {standing.loop.id} stands at no checkpoint",
        cause=f"in {standing.loop.tasks} there is open work before it now" if moved else f"it is {standing.word}",
        hint=f"go on with `bydawn resume {standing.called}`" + ("; it stops there again" if moved else ""),
    )


def due(standing: Standing) -> Mark | None:
    """The checkpoint that the loop stands at, unless the list says by now that it has not come to that."""
    loop, state = standing.loop, standing.state
    mark, reading = checkpoint_of(loop, state), WorkList(loop, Texts(Path(loop.workspace))).read(forgiven(state), None)
    if mark is None or reading is None or reading.problem:
        return mark
    again = checkpoint_of(loop, msgspec.structs.replace(state, tasks=reading))
    return mark if again and again.id == mark.id else None


def rehearse(planned: Plan) -> Rehearsal:
    """What a round would be given, without running it."""
    state = planned.standing.state if planned.standing else LoopState()
    listed = WorkList(planned.loop, Texts(Path(planned.loop.workspace)))
    state = msgspec.structs.replace(state, tasks=listed.read(state, None))
    agent = agents.pool(planned.loop)[planned.loop.agent]
    turn = turn_of(planned.loop, state.round + 1, None, "", is_root=os.getuid() == 0)
    return Rehearsal(
        plan=planned,
        sandbox=turn.sandbox.value if agent.abilities.sandboxes else "",
        command=rewritten(agent.command(turn), planned.secrets.hide),
        prompt=planned.secrets.hide(
            prompt.compose(
                planned.loop,
                state,
                state.round + 1,
                "0" * 16,
                task_text=listed.text_of(state.tasks.next_id) if state.tasks else "",
                template=planned.loop.template,
                length=agent.abilities.prompt_length,
            )
        ),
    )


def perform(
    planned: Plan,
    tether: Tether,
    *,
    followers: Sequence[Follower] = (),
    raised: Callable[[Limits], Limits] | None = None,
    once: bool = False,
    clock: Clock | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LoopStopped:
    """Take the loop's lock, hand it to the guardian as well, and run until the loop stops."""
    loop, folder = planned.loop, planned.folder
    make_private(folder)
    held = take_lock(folder, loop)
    tether.share(held.fd, loop.id)
    ledger = LoopLedger(folder, say, planned.secrets.hide)
    try:
        _refuse_if_overtaken(planned, ledger.state)
        if ledger.state.seq == 0:
            _give_birth(loop, ledger)
        else:
            loop = _settings(folder)
        for fact in _given(planned, loop, ledger.state, raised):
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


def _given(planned: Plan, loop: Loop, state: LoopState, raised: Callable[[Limits], Limits] | None) -> Iterator[AnyFact]:
    """What a person brings along when they resume a loop."""
    now = state.raised or loop.limits
    if planned.adopts and not state.runs:
        yield planned.adopts
    if raised and (limits := raised(now)) != now:
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
        name = called(folder, loop)
        raise UserError(
            f"another worker owns the loop {loop.id}",
            cause=f"it is {owned}",
            hint=f"watch it with `bydawn logs {name} -f`, or end it with `bydawn stop {name}`",
            exit_code=8,
        ) from None


def refuse_inside_a_round() -> None:
    """An agent may look and leave notes; it may not start, resume or repair loops, nor trust or set anything."""
    marked = (kernel.has_variable(pid, COOKIE) or kernel.is_worker(pid) for pid in kernel.ancestors())
    if os.environ.get(COOKIE) or any(marked):
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


def user() -> str:
    """Who is at the keyboard, for the record."""
    return plain(os.environ.get("USER") or os.environ.get("LOGNAME") or "somebody")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _meant(wish: Wish, loop: Loop, there: list[Standing]) -> Standing | None:
    """The unfinished loop that this wish goes on with; None for a new one; an error if it is not clear."""
    if wish.new:
        return None
    if wish.name is not None:
        named = [each for each in there if each.loop.id.casefold() == loop.id.casefold()]
        return _go_on(loop, named[0]) if named else None
    unfinished = [each for each in there if not each.finished]
    for each in unfinished:
        if not differences(each.loop, loop):
            return each
    return _go_on(loop, unfinished[-1]) if unfinished else None


def _go_on(loop: Loop, standing: Standing) -> Standing:
    name = standing.loop.id
    if standing.finished:
        raise UserError(f"the loop {name} is {standing.word}", hint="start another one beside it with --new")
    if standing.trouble:
        raise standing.trouble
    changed = differences(standing.loop, loop)
    if changed:
        what = ", ".join("limits (rounds, --for, --until …)" if field == "limits" else field for field in changed)
        raise UserError(
            f"the loop {name} is {standing.word}, and this is another {changed[0]}",
            cause=f"differs in: {what}",
            hint=f"go on with `bydawn resume {standing.called}` (limits can be raised there), or start another: --new",
        )
    return standing


def _give_birth(loop: Loop, ledger: LoopLedger) -> None:
    """The settings are on the disk before the ledger's first fact, which carries their digest."""
    data = msgspec.json.format(msgspec.json.encode(loop), indent=2)
    write_durable(ledger.folder / "loop.json", data)
    sync_folder(ledger.folder.parent)
    ledger.append(birth(loop, data))
    ledger.sync()


def birth(loop: Loop, settings: bytes) -> LoopCreated:
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
