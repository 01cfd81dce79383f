"""Start a loop, or go on with the one that is meant: everything is checked before anything is written or spent."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bydawn import agents
from bydawn.core import kinds, prompt
from bydawn.core.agent import Command, turn_of
from bydawn.core.breakers import Limits
from bydawn.core.errors import UserError
from bydawn.core.loop import Hooks, Loop, OnHookFailure, differences
from bydawn.core.redact import rewritten
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.worklist import WorkList
from bydawn.operations.checked_loop import checked_loop, doubts
from bydawn.operations.loop_request import LoopRequest
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import checked_workspace, refuse_inside_a_round
from bydawn.settings.table import BY_KEY
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Registry, Standing, free_name
from bydawn.system.reading import Texts
from bydawn.system.writing import others_can_write


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What `--dry-run` shows."""

    plan: Plan
    command: Command
    prompt: str
    sandbox: str  # what the agent is held to; empty where that is up to itself


def plan(wanted: LoopRequest) -> Plan:
    """Which loop this request means. Raises `UserError`; touches nothing."""
    refuse_inside_a_round()
    workspace = checked_workspace(Path(wanted.loop.workspace))
    loop = checked_loop(wanted, workspace)
    registry = Registry(wanted.state_dir)
    _refuse_unsafe(registry.root.path, workspace)
    there = registry.in_workspace(workspace)
    if standing := _meant(wanted, loop, there):
        return Plan(loop=standing.loop, folder=standing.folder, standing=standing, secrets=wanted.secrets)
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
        folder=LoopFolder(registry.home(workspace) / name),
        secrets=wanted.secrets,
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


_SHORT = 200  # characters of a prompt that can be pasted
_WORDS = ("sandbox", "model", "profile", "effort", "progress", "opinions")  # settings that are one word each
_TYPED_AGAIN = {"prompt", "agent", "others", "tasks", "task_folder", "checks", "protect", "hooks", *_WORDS}


def another(loop: Loop) -> str:
    """How a person starts such a loop once more; a new one knows nothing of what this one has done."""
    if loop.dialect:
        return f"start another with {loop.dialect.name}"
    command, left_out = typed_again(loop)
    return f"start another: `bydawn {command}`" + (f", where {left_out}" if left_out else "")


def typed_again(loop: Loop) -> tuple[str, str]:
    """The words after `bydawn` that start such a loop once more, and what a `…` among them stands for."""
    words = [shlex.quote(word) for word in _typed_again(loop)]
    if any("`" in word or not word.isprintable() for word in words):  # nobody could see where the command ends
        return f'run --new "{PLACEHOLDER}"', ""
    typed = _TYPED_AGAIN | ({"limits"} if _are_typed(loop.limits) else set())
    rest = [name for name in differences(_without_settings(loop), loop) if name not in typed]
    left_out = f"{PLACEHOLDER} is what else it was given: {', '.join(rest)}" if rest else ""
    return " ".join(["run --new", *words, *([PLACEHOLDER] if rest else [])]), left_out


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
        yield from (BY_KEY[check.setting].flags[0], check.as_text)
    for name in _WORDS:
        if value := getattr(loop, name):
            yield from (f"--{name}", str(value))
    for glob in loop.protect:
        yield from ("--protect", glob)
    yield from _hooks_again(loop.hooks)
    if _are_typed(loop.limits):
        yield from _limits_again(loop.limits)


def _hooks_again(hooks: Hooks) -> Iterator[str]:
    for name in Hooks.__struct_fields__:
        if name != "on_failure" and (command := getattr(hooks, name)):
            yield from (f"--{name.replace('_', '-')}", command)
    if hooks.on_failure is not OnHookFailure.IGNORE:
        yield from ("--on-hook-failure", hooks.on_failure.value)


def _limits_again(limits: Limits) -> Iterator[str]:
    if limits.rounds != Limits().rounds:
        yield from ("-n", str(limits.rounds))
    if limits.seconds:
        yield from ("--for", kinds.span_text(limits.seconds))
    if limits.tokens:
        yield from ("--budget", kinds.amount_text("tok", limits.tokens))
    if limits.usd:
        yield from ("--budget", kinds.amount_text("usd", limits.usd))


def _are_typed(limits: Limits) -> bool:
    """Are there no others than those that people usually set? A moment to end has passed by then."""
    return limits == Limits(rounds=limits.rounds, seconds=limits.seconds, tokens=limits.tokens, usd=limits.usd)


def _without_settings(loop: Loop) -> Loop:
    """The same goal, with nothing but what holds where nobody says anything."""
    return Loop(
        id=loop.id,
        uid=loop.uid,
        workspace=loop.workspace,
        created_at=loop.created_at,
        prompt=loop.prompt,
        agent=loop.agent,
    )


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


def _meant(wanted: LoopRequest, loop: Loop, there: list[Standing]) -> Standing | None:
    """The unfinished loop that this request goes on with; None for a new one; an error if it is not clear."""
    if wanted.new:
        return None
    if wanted.name is not None:
        named = [each for each in there if each.loop.id.casefold() == loop.id.casefold()]
        return _go_on(loop, named[0]) if named else None
    unfinished = [each for each in there if not each.finished]
    for each in unfinished:
        if not differences(each.loop, loop):
            return each
    return _go_on(loop, unfinished[-1]) if unfinished else None


# How a loop stands, as the end of a sentence; where no row is, "is paused" and the like will do.
_STANDS = {"limit": "has reached a limit", "checkpoint": "stands at a checkpoint", "failed": "has failed"}
# What people call the settings in which two loops differ.
_CALLED = {
    "prompt": "another prompt",
    "agent": "another agent",
    "others": "other agents",
    "tasks": "another task list",
    "checks": "other checks",
    "hooks": "other hooks",
    "limits": "other limits",
    "promise": "another promise",
}


def _go_on(loop: Loop, standing: Standing) -> Standing:
    name = standing.loop.id
    if standing.finished:
        raise UserError(f"the loop {name} is {standing.status}", hint=f"beside it, {another(loop)}")
    if standing.trouble:
        raise standing.trouble
    changed = differences(standing.loop, loop)
    if changed:
        what = ", ".join("limits (rounds, --for, --until …)" if field == "limits" else field for field in changed)
        raise UserError(
            f"the loop {name} {_STANDS.get(standing.status, f'is {standing.status}')}, and you ask for "
            f"{_CALLED.get(changed[0], 'other settings')}",
            cause=f"it keeps what it was started with; differs in: {what}",
            hint=f"go on with `bydawn resume {standing.reference}` (limits can be raised there), or {another(loop)}",
        )
    return standing
