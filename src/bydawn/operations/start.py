"""Start a loop, or go on with one: everything is checked before anything is written or spent."""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bydawn import agents, kernel, lock
from bydawn.assemble import run_loop
from bydawn.core import prompt, tasks
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.facts import FINISHED, LimitsRaised, LoopCreated, LoopStopped
from bydawn.core.loop import (
    Check,
    CommandCheck,
    Limits,
    Loop,
    Mode,
    PathCheck,
    Promise,
    Sandbox,
    Sessions,
    TextCheck,
    Timeouts,
    differences,
)
from bydawn.core.ports import Agent, Command, Follower
from bydawn.core.redact import Secrets, Unnamed, rewritten
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.turn import turn_of
from bydawn.disk import make_private, others_can_write, sync_folder, write_durable
from bydawn.engine import COOKIE
from bydawn.files import read_text
from bydawn.guardian import Tether
from bydawn.host.registry import Registry, Standing, checked_name, free_name, new_uid, slug
from bydawn.ledger import LoopLedger, records
from bydawn.operations.agents import first_that_works

OPTIONS = ("model", "profile", "effort", "agent_args", "agent_commits")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for."""

    workspace: Path
    prompt: str
    agent: str
    agent_from: Path | None = None  # the folder that a relative path in `agent` starts from
    sandbox: Sandbox | None = None
    model: str | None = None
    profile: str | None = None
    effort: str | None = None
    agent_args: tuple[str, ...] = ()
    agent_commits: bool = False
    sessions: Sessions = Sessions.FRESH
    session_rounds: int = 20
    tasks: str | None = None
    progress: str | None = None
    opinions: str | None = None
    checks: tuple[Check, ...] = ()
    promise: Promise | None = None
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    name: str | None = None
    new: bool = False
    state_dir: Path | None = None
    secrets: Secrets


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that may be started: all checks have passed, nothing has been written."""

    loop: Loop
    folder: Path
    secrets: Secrets
    standing: Standing | None = None  # None when it is new
    warnings: tuple[str, ...] = ()

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
    loop = _loop(wish, workspace)
    registry = Registry(wish.state_dir)
    _refuse_unsafe(registry.root, workspace)
    there = registry.in_workspace(workspace)
    if standing := _meant(wish, loop, there):
        return Plan(loop=standing.loop, folder=standing.folder, standing=standing, secrets=wish.secrets)
    name = free_name(loop.id, [each.loop.id for each in there])
    warnings = (*_doubtful_tasks(workspace, loop.tasks), *_about_sandbox(loop))
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


def plan_resume(standing: Standing, secrets: Secrets) -> Plan:
    """Go on with a loop that stands still."""
    refuse_inside_a_round()
    if standing.trouble:
        raise standing.trouble
    if standing.finished:
        raise UserError(
            f"the loop {standing.loop.id} is {standing.word}; there is nothing to go on with",
            hint='start another with `bydawn run --new "PROMPT"`',
        )
    checked_workspace(Path(standing.loop.workspace))
    _checked_agent(standing.loop.agent)
    _refuse_if_secrets_are_missing(standing.loop, secrets)
    return Plan(loop=standing.loop, folder=standing.folder, standing=standing, secrets=secrets)


def rehearse(planned: Plan) -> Rehearsal:
    """What a round would be given, without running it."""
    state = planned.standing.state if planned.standing else LoopState()
    if planned.loop.tasks:
        text = read_text(Path(planned.loop.workspace), planned.loop.tasks) or ""
        state = msgspec.structs.replace(state, tasks=tasks.read(text).reading)
    agent = agents.find(planned.loop.agent)
    turn = turn_of(planned.loop, state.round + 1, None, "", is_root=os.getuid() == 0)
    return Rehearsal(
        plan=planned,
        sandbox=turn.sandbox.value if agent.abilities.sandboxes else "",
        command=rewritten(agent.command(turn), planned.secrets.hide),
        prompt=planned.secrets.hide(prompt.compose(planned.loop, state, state.round + 1, "0" * 16)),
    )


def perform(
    planned: Plan,
    tether: Tether,
    *,
    followers: Sequence[Follower] = (),
    raised: Callable[[Limits], Limits] | None = None,
    once: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> LoopStopped:
    """Take the loop's lock, hand it to the guardian as well, and run until the loop stops."""
    loop, folder = planned.loop, planned.folder
    make_private(folder)
    held = take_lock(folder, loop.id)
    tether.share(held.fd, loop.id)
    ledger = LoopLedger(folder, say, planned.secrets.hide)
    try:
        _refuse_if_overtaken(planned, ledger.state)
        if ledger.state.seq == 0:
            _give_birth(loop, ledger)
        else:
            loop = _settings(folder)
        if raised:
            now = ledger.state.raised or loop.limits
            if (limits := raised(now)) != now:
                ledger.append(LimitsRaised(limits=limits, by=user()))
        allowed = 1 if once else None
        return run_loop(
            loop, ledger, held, tether, secrets=planned.secrets, followers=followers, rounds_allowed=allowed
        )
    finally:
        ledger.close()


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


def take_lock(folder: Path, name: str) -> lock.Lock:
    """The loop's lock, or an error that names its owner."""
    try:
        return lock.Lock.take(folder / "lock")
    except lock.Owned as owned:
        raise UserError(
            f"another worker owns the loop {name}",
            cause=f"it is {owned}",
            hint=f"watch it with `bydawn logs -f {name}`, or end it with `bydawn stop {name}`",
            exit_code=8,
        ) from None


def refuse_inside_a_round() -> None:
    """An agent may look and leave notes; it may not start, resume or repair loops, nor trust or set anything."""
    if os.environ.get(COOKIE) or any(kernel.has_variable(pid, COOKIE) for pid in kernel.ancestors()):
        raise UserError(
            "this cannot be done from inside a round",
            cause=f"{COOKIE} is set, here or where this was called from: an agent of a loop is asking",
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


def _loop(wish: Wish, workspace: Path) -> Loop:
    if not wish.prompt.strip() and not wish.tasks:
        raise UserError(
            "there is nothing to do",
            cause="the prompt is empty and no task file is given",
            hint='say what to do, for example "fix the failing tests", or give a checklist with -t TODO.md',
        )
    agent = _checked_agent(wish.agent or first_that_works(), wish.agent_from)
    _refuse_what_it_does_not_know(agents.find(agent), wish)
    if wish.tasks:
        _checked_tasks(workspace, wish.tasks)
    _checked_documents(workspace, wish)
    if wish.promise and wish.promise.mode is Mode.REGEX:
        _checked_pattern(wish.promise.text)
    name = checked_name(wish.name) if wish.name is not None else slug(workspace.name) or "loop"
    loop = Loop(
        id=name,
        uid=new_uid(),
        workspace=str(workspace),
        created_at=datetime.now(UTC),
        prompt=wish.prompt,
        agent=agent,
        sandbox=wish.sandbox,
        model=wish.model,
        profile=wish.profile,
        effort=wish.effort,
        agent_args=wish.agent_args,
        agent_commits=wish.agent_commits,
        sessions=wish.sessions,
        session_rounds=wish.session_rounds,
        tasks=wish.tasks,
        progress=wish.progress,
        opinions=wish.opinions,
        checks=wish.checks,
        promise=wish.promise,
        limits=wish.limits,
        timeouts=wish.timeouts,
    )
    return _without_secrets(loop, wish.secrets)


def _check_without(check: Check, secrets: Secrets) -> Check:
    match check:
        case CommandCheck():
            return CommandCheck(command=secrets.refer(check.command))
        case TextCheck():
            return TextCheck(path=secrets.refuse(check.path), text=secrets.refer(check.text))
        case PathCheck():
            return PathCheck(path=secrets.refuse(check.path))


def _without_secrets(loop: Loop, secrets: Secrets) -> Loop:
    """The loop as it may be written down: where the value of a variable stands in it, a reference to that variable."""
    refer, refuse = secrets.refer, secrets.refuse
    # Where a secret can stand by name, and where it cannot stand at all.
    kept: dict[str, Callable[[Any], Any]] = {
        "prompt": refer,
        "agent": refer,
        "checks": lambda checks: tuple(_check_without(check, secrets) for check in checks),
        **dict.fromkeys(("tasks", "progress", "opinions", "promise"), lambda value: rewritten(value, refuse)),
    }
    changed = {}
    for name, change in kept.items():
        try:
            changed[name] = change(getattr(loop, name))
        except Unnamed:
            raise UserError(
                f"a secret stands in the {name}",
                cause="it would be kept on the disk with the loop, and a command line can be read by everybody here",
                hint="put it into a variable (export MY_TOKEN=…) and say it again: then only the name is kept\n"
                "       if it only looks like one: `bydawn config set --user not_secret TEXT`",
            ) from None
    return msgspec.structs.replace(loop, **changed)


def _refuse_if_secrets_are_missing(loop: Loop, secrets: Secrets) -> None:
    names = secrets.missing(" ".join([loop.prompt, loop.agent, *(check.name for check in loop.checks)]))
    if names:
        raise UserError(
            f"the loop {loop.id} needs the variable {names[0]}",
            cause="a secret in its settings was kept by name only, and the environment does not have it",
            hint=f"export {names[0]}=…, then `bydawn resume {loop.id}`",
        )


def _checked_agent(spec: str, folder: Path | None = None) -> str:
    """The agent's name in its normal form, which means the same from every folder."""
    agent = agents.find(spec, folder)
    if trouble := agent.missing():
        cause, hint = trouble
        raise UserError(f"the agent {agent.name} cannot be started", cause=cause, hint=hint, exit_code=7)
    return agent.name


def _refuse_what_it_does_not_know(agent: Agent, wish: Wish) -> None:
    """A flag that an agent cannot obey is an error: somebody relies on it."""
    can = agent.abilities
    unknown = [name for name in OPTIONS if getattr(wish, name) and name not in can.options]
    if wish.sessions is not Sessions.FRESH and not can.resumes:
        unknown.append("session")
    if unknown:
        flag = f"--{unknown[0].replace('_', '-')}" if unknown[0] != "agent_args" else "arguments after `--`"
        raise UserError(
            f"the agent {agent.name} knows no {flag}", hint="leave it away, or choose another agent with -a"
        )
    if wish.limits.usd and not can.tells_cost:
        raise UserError(
            f"the agent {agent.name} does not say what it costs",
            cause="a budget in dollars could not be held",
            hint="give one in tokens (--budget 2Mtok), or limit rounds and time",
        )
    level = wish.sandbox or (Sandbox.WORKSPACE if can.sandboxes else None)
    if level and level not in can.sandboxes:
        known = ", ".join(sorted(can.sandboxes)) or "none: what it may do is up to its own command"
        raise UserError(
            f"the agent {agent.name} cannot be held to the sandbox {level.value}",
            cause=f"levels that it knows: {known}",
            hint=f"-s {max(can.sandboxes, key=list(Sandbox).index).value}" if can.sandboxes else "leave -s away",
        )


def _checked_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        what = f"--done-when {pattern!r} is not a regular expression"
        raise UserError(what, cause=str(error), hint="mend it, or leave --done-mode regex away") from None


def _checked_tasks(workspace: Path, path: str) -> None:
    text = read_text(workspace, path)
    if text is None:
        raise UserError(
            f"there is no task file {path}",
            cause=f"looked in {workspace}",
            hint="give a Markdown file with `- [ ]` boxes",
        )
    if not tasks.read(text).items:
        raise UserError(
            f"{path} has no tasks",
            cause="no line of it is a Markdown task such as `- [ ] write the tests`",
            hint="add boxes, or leave -t away and say in the prompt what to do",
        )


def _checked_documents(workspace: Path, wish: Wish) -> None:
    if wish.progress:
        read_text(workspace, wish.progress)  # the agent will write it; it only has to be in the workspace
    if wish.opinions and read_text(workspace, wish.opinions) is None:
        raise UserError(
            f"there is no file {wish.opinions}", cause=f"looked in {workspace}", hint="`bydawn edit opinions` writes it"
        )


def _about_sandbox(loop: Loop) -> tuple[str, ...]:
    if loop.sandbox is Sandbox.READ_ONLY:
        return ("the agent cannot edit anything here (--sandbox read-only)",)
    return ()


def _doubtful_tasks(workspace: Path, path: str | None) -> tuple[str, ...]:
    """Lines that a person may take for a task and Markdown does not."""
    if path is None:
        return ()
    return tuple(f"{path}, {warning}" for warning in tasks.read(read_text(workspace, path) or "").warnings)


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
            hint=f"go on with `bydawn resume {name}` (limits can be raised there), or start another with --new",
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
