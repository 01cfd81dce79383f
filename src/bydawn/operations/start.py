"""Start a loop, or continue the matching one, after checking everything."""

import os
import shlex
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bydawn import agents
from bydawn.core import answers, kinds
from bydawn.core.agent import AgentCommand, turn_of
from bydawn.core.errors import UserError
from bydawn.core.loop import CommitMode, Loop, Promise, differences
from bydawn.core.redact import rewritten
from bydawn.core.state import LoopState
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import Act, Advice
from bydawn.core.worklist import WorkList
from bydawn.operations.checked_loop import checked_loop, doubts
from bydawn.operations.loop_request import LoopRequest
from bydawn.operations.plan import Plan, warned
from bydawn.operations.preconditions import checked_workspace, refuse_by_hand, refuse_inside_a_round
from bydawn.settings.setting import Setting
from bydawn.settings.table import TABLE
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import OVER, Registry, Standing, beside, free_name
from bydawn.system.reading import FileTexts
from bydawn.system.writing import others_can_write


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What `--dry-run` shows."""

    plan: Plan
    command: AgentCommand
    prompt: str
    sandbox: str  # the sandbox we impose; empty if the agent decides itself


def plan(wanted: LoopRequest) -> Plan:
    """Which loop this request means. Raises `UserError`; writes nothing."""
    refuse_inside_a_round()
    workspace = checked_workspace(Path(wanted.loop.workspace))
    registry = Registry(wanted.state_dir)
    there = [replace(each, loop=each.folder.with_secrets(each.loop)) for each in registry.in_workspace(workspace)]
    crashed = any(each.state.runs and each.state.stopped is None for each in there)
    loop = checked_loop(wanted, workspace, repairs=crashed)
    _refuse_unsafe(registry.root.path, workspace)
    if standing := _meant(wanted, loop, there):
        company = warned(beside(standing.folder, standing.loop))
        return Plan(
            loop=standing.loop, folder=standing.folder, standing=standing, secrets=wanted.secrets, warnings=company
        )
    loop = checked_loop(wanted, workspace) if crashed else loop
    name = free_name(loop.id, [each.loop.id for each in there])
    folder, loop = LoopFolder(registry.home(workspace) / name), replace(loop, id=name)
    warnings = [*doubts(loop, wanted.secrets)]
    if loop.worktree:
        from bydawn.operations import worktrees  # few loops have one

        tree = worktrees.planned(loop, loop.worktree.branch, wanted.worktrees, registry.everywhere())
        loop = replace(loop, worktree=tree)
        warnings += worktrees.remarks(loop)
    warnings += warned(beside(folder, loop))
    if not wanted.new and wanted.name is None:
        warnings += _alike(loop, there)
    return Plan(loop=loop, folder=folder, secrets=wanted.secrets, warnings=tuple(warnings))


def _refuse_unsafe(root: Path, workspace: Path) -> None:
    """No one else may write to loop state or to what a person trusts."""
    if root.resolve().is_relative_to(workspace):
        raise UserError(
            f"the state folder {root} is inside the workspace",
            cause="the agent could change the loop's state, and every round would look like progress",
            hint="set --state-dir to a folder outside the workspace",
        )
    if root.exists() and others_can_write(root.stat()):
        raise UserError(
            f"other users can write to the state folder {root}",
            cause="they could forge the state of your loops and what you trust",
            hint=f"chmod go-w {shlex.quote(str(root))}",
        )
    if root.exists() and os.getuid() not in (0, root.stat().st_uid):
        raise UserError(
            f"the state folder {root} belongs to another user",
            cause=f"its owner is user {root.stat().st_uid}",
            hint="set --state-dir to a folder of your own",
        )


_SHORT = 200  # characters of a prompt that is still easy to paste


def another(loop: Loop) -> str:
    """How to start the same loop again; the new one does not know what this one did."""
    if loop.dialect:
        return f"start a new one with {loop.dialect.name}"
    command, left_out = typed_again(loop)
    return Advice("start a new one: ", command, f", where {left_out}" if left_out else "")


def typed_again(loop: Loop) -> tuple[Act, str]:
    """The command that starts the same loop again, and what a `…` in it means."""
    usual = CommitMode.ON if loop.worktree else CommitMode.OFF
    default = Loop(id="", uid="", workspace="", created_at=loop.created_at, prompt=loop.prompt, agent="", commit=usual)
    typed, rest = [*_goal_again(loop)], []
    for row in TABLE:
        value = _said(row, loop)
        if not row.flags or value in (None, (), _said(row, default)):
            continue
        # A secret is not for anyone to read, a time has passed by then, and of a template only its text was kept.
        if row.secret or row.kind is kinds.MOMENT or row.key == "template":
            rest.append(row.key)
        else:
            typed += _flag_again(row, value)
    words = [shlex.quote(word) for word in typed]
    if any("`" in word or not word.isprintable() for word in words):  # it would be unclear where the command ends
        return Act("run --new", PLACEHOLDER), ""
    left_out = f"{PLACEHOLDER} is the rest of its settings: {', '.join(rest)}" if rest else ""
    return Act(" ".join(["run --new", *words, *([PLACEHOLDER] if rest else [])])), left_out


def _goal_again(loop: Loop) -> Iterator[str]:
    if loop.prompt:
        is_short = len(loop.prompt) <= _SHORT and loop.prompt.isprintable() and loop.prompt[0] not in "-@"
        yield loop.prompt if is_short else PLACEHOLDER
    if Path.cwd() != Path(loop.workspace):
        yield from ("-C", loop.workspace)


def _said(row: Setting, loop: Loop) -> Any:
    """What a loop says of a setting, as its kind writes it; None if a loop does not know it."""
    match row.key:
        case "prompt":
            return None  # it is not a flag
        case "agent":
            return tuple(filter(None, loop.pool))
        case "check" | "require_path" | "require_text":
            return tuple(check.as_text for check in loop.checks if check.setting == row.key)
        case "checkpoint" if loop.checkpoint:
            return f"{loop.checkpoint.token}:{loop.checkpoint.mode}"
        case "done_when":
            return loop.promise.text if loop.promise else None
        case "done_mode" | "done_match":
            return getattr(loop.promise or Promise(), row.key.removeprefix("done_"))
        case "budget":
            unit, amount = ("usd", loop.limits.usd) if loop.limits.usd else ("tok", loop.limits.tokens)
            return kinds.amount_text(unit, amount) if amount else None
        case "worktree":
            return loop.worktree is not None or None  # the new loop needs a branch of its own
        case _:
            return attrgetter(row.field)(loop) if row.field else None


def _flag_again(row: Setting, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [row.flags[0 if value is False else -1]]
    items = value if row.kind.many else [row.kind.write(value)]
    return [word for item in items for word in (row.flags[0], item)]


def rehearse(planned: Plan) -> Rehearsal:
    """What the next round would run, without running it."""
    from bydawn.engine.prompting import Sources, composed  # only a rehearsal needs these here
    from bydawn.store.rounds import Rounds

    state = planned.standing.state if planned.standing else LoopState()
    root = Path(planned.loop.list_root)  # a worktree is made when the loop first runs
    texts = FileTexts(root if root.is_dir() else Path(planned.loop.workspace))
    pool = agents.pool(planned.loop)
    listed = WorkList(planned.loop, texts)
    state = replace(state, tasks=listed.read(state, None))
    task_text = listed.text_of(state.tasks.next_id) if state.tasks else ""
    rounds = Rounds(planned.folder, planned.secrets)
    sources = Sources(loop=planned.loop, state=state, texts=texts, files=rounds, agents=pool)
    agent = pool[planned.loop.agent]
    schema = str(planned.folder.schema) if answers.wanted(planned.loop) else ""
    turn = turn_of(planned.loop, state.round + 1, None, "", is_root=os.getuid() == 0, schema_file=schema)
    return Rehearsal(
        plan=planned,
        sandbox=turn.sandbox.value if agent.abilities.sandboxes else "",
        command=rewritten(agent.command(turn), planned.secrets.hide),
        prompt=planned.secrets.hide(composed(sources, turn, agent, task_text, "0" * 16)),
    )


def _meant(wanted: LoopRequest, loop: Loop, there: list[Standing]) -> Standing | None:
    """The unfinished loop this request continues; None for a new one; an error if that is unclear."""
    if wanted.new:
        return None
    if wanted.name is not None:
        named = [each for each in there if each.loop.id.casefold() == loop.id.casefold()]
        return _go_on(loop, named[0]) if named else None
    unfinished = [each for each in there if not each.finished]
    for each in unfinished:
        if not _differences(each, loop):
            return each
    in_the_way = [each for each in unfinished if each.status not in OVER and not each.state.dismissed]
    in_the_way = [each for each in in_the_way if not (each.loop.recording and each.loop.recording.by_hand)]
    return _go_on(loop, in_the_way[-1]) if in_the_way else None


def _differences(standing: Standing, loop: Loop) -> list[str]:
    """In which settings two loops differ; without the name of a branch, the worktree that is there is meant."""
    asked, there = loop.worktree, standing.loop.worktree
    if asked and there and asked.branch in ("", there.branch):
        loop = replace(loop, worktree=there)
    return differences(standing.loop, loop)


def _alike(loop: Loop, there: list[Standing]) -> list[str]:
    """A hint, in case the person meant to continue a loop with the same goal."""
    over = [each for each in there if each.status in OVER]
    for each in reversed(over):
        if {"prompt", "tasks"}.isdisjoint(differences(each.loop, loop)):
            also = f"{each.loop.id} has the same goal and {each.status.words}"
            return [Advice(f"this is a new loop; {also}: continue it with ", Act("resume", each.reference))]
    return []


# The first setting in which two loops differ, as the beginning of a sentence.
_CALLED = {
    "prompt": "this prompt is",
    "agent": "this agent is",
    "others": "these agents are",
    "tasks": "this task list is",
    "checks": "these checks are",
    "hooks": "these hooks are",
    "limits": "these limits are",
    "promise": "this promise is",
}


def _go_on(loop: Loop, standing: Standing) -> Standing:
    name = standing.loop.id
    if standing.finished:
        raise UserError(f"the loop {name} is already {standing.status}", hint=another(loop))
    if standing.trouble:
        raise standing.trouble
    refuse_by_hand(standing.loop)
    changed = _differences(standing, loop)
    if changed:
        what = ", ".join("limits (rounds, --for, --until …)" if field == "limits" else field for field in changed)
        raise UserError(
            f"the loop {name} {standing.status.words}, and {_CALLED.get(changed[0], 'these settings are')} different",
            cause=f"a loop keeps its settings; these differ: {what}",
            hint=Advice(
                "continue with ", Act("resume", standing.reference), " (it can raise limits), or ", another(loop)
            ),
        )
    return standing
