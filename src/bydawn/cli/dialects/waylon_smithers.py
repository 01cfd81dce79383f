"""The command line of waylon-smithers, and what it prints."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.dialects import FURTHER, WithNameless, given_in, options, running
from bydawn.cli.dialects.waylon_smithers_loops import elsewhere, find, refuse_anothers, state_of, typed
from bydawn.cli.voice import DialectVoice
from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.core.values import Act, Next, Status
from bydawn.dialects.waylon_smithers import DIALECT, arguments, files, texts
from bydawn.dialects.waylon_smithers.arguments import NAME, Changes, Words
from bydawn.operations import changing, first_files, steer
from bydawn.operations.amounts import plural
from bydawn.operations.dialects import begin, end, loops
from bydawn.operations.first_files import Fate
from bydawn.operations.installed_folder import home_of
from bydawn.operations.places import NameTaken
from bydawn.operations.preconditions import checked_workspace
from bydawn.process.guardian import Tether
from bydawn.store import lock
from bydawn.store.registry import Standing

HELP = {"help_option_names": ["-h", "--help"]}


# -- words that several commands share ---------------------------------------------------------------------------------


def _workspace(ctx: click.Context, param: click.Parameter, given: str | None) -> Path:  # noqa: ARG001 - click's
    return workspace_at(given)


def workspace_at(given: str | None) -> Path:
    arguments.refuse_blank("--cd", given)
    return checked_workspace(Path(given) if given else Path.cwd())


def _loop_id(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:  # noqa: ARG001 - click's
    arguments.refuse_blank("--loop-id", given)
    return given


_which = option("--loop-id", "name", metavar="ID", callback=_loop_id, help="Which loop.  [default: the only one here]")
_cd = option("--cd", "workspace", metavar="PATH", callback=_workspace, help="The workspace root.  [default: .]")
_as_json = option("--json", "as_json", is_flag=True, help="Print JSON.")

# -- start -------------------------------------------------------------------------------------------------------------

_EPILOG = f"""\b
Examples
  {NAME} "Fix the tests. Output <promise>DONE</promise> when all pass." \\
    --completion-promise DONE --max-iterations 25 --full-auto
  {NAME} resume --loop-id repo-2026-01-06T21-10-00

\b
Commands
  {NAME} status           show one loop
  {NAME} list             list the loops of this folder
  {NAME} resume           continue a loop: same session, next iteration
  {NAME} cancel           end a loop, running or not
  {NAME} install-helpers  write the skill and the prompt for Codex

\b
Exit codes
  0 completed  2 wrong usage  3 blocked  4 cap reached  5 HARD STOP
  7 Codex failed  8 already running  130 interrupted or canceled

{FURTHER}"""


@command(name=NAME, epilog=_EPILOG, context_settings=HELP)
@click.argument("prompt", required=False, metavar="PROMPT")
@options(Words)
@click.pass_obj
def start(tether: Tether | None, /, **given: Any) -> int:
    """Run Codex on a prompt again and again, in one session, until it gives its promise."""
    words = Words(**{"prompt": None} | given_in(given))
    workspace = workspace_at(words.cd)
    _refuse_stray_command(words.prompt)
    wanted = arguments.start(words, loops.place_of(workspace))
    try:
        if words.loop_id:
            refuse_anothers(words.loop_id, workspace)
        _refuse_outside_git(workspace, allowed=words.skip_git_repo_check)
        return running.start(DIALECT, wanted, workspace, tether)
    except NameTaken as taken:
        look = typed(workspace, "status", "--loop-id", taken.name)
        hint = f"choose another --loop-id, or see how it stands and how to go on: `{look}`"
        raise UserError(taken.what, cause=taken.cause, hint=hint) from None


def _refuse_stray_command(prompt: str | None) -> None:
    """`waylon-smithers --cd . status` means the command, not a loop with that word for a task."""
    word = (prompt or "").strip().lower()
    if word in {"help", "version", *COMMANDS.commands}:
        hint = f"`{NAME} {word} …`: the command comes first, then its options"
        raise UserError(f"{word!r} alone is not a task", cause="it looks like a command in the wrong place", hint=hint)


def _refuse_outside_git(workspace: Path, *, allowed: bool) -> None:
    if not allowed and not begin.in_git(workspace):
        raise UserError(
            f"{workspace} is in no git repository",
            cause="the agent's changes could not be seen apart from what was there before",
            hint="`git init`, or say --skip-git-repo-check",
        )


# -- resume ------------------------------------------------------------------------------------------------------------


@command(name="resume")
@_which
@_cd
@option("--max-iterations", "cap", metavar="N", type=int, help="A new cap.")
@options(Changes)
@option("--note", metavar="TEXT", help="An answer, or what to do differently; it goes into the next prompt.")
@option("--accept", is_flag=True, help="Keep protected files, and lines of the list, as Codex has changed them.")
@click.pass_obj
def resume(
    tether: Tether | None,
    /,
    name: str | None,
    workspace: Path,
    cap: int | None,
    note: str | None,
    accept: bool,
    **given: Any,
) -> int:
    """Go on with a loop: same session, next iteration"""
    if cap is not None:
        arguments.checked_cap(cap)
    for key, value in (("completion-promise", given["completion_promise"]), ("model", given["model"]), ("note", note)):
        arguments.refuse_blank(f"--{key}", value)
    standing = find(name, workspace)
    if standing.alive and not lock.wait_for_the_dying(standing.folder.lock):
        standing = find(name, workspace)  # all that a kill had left of it is gone
    _refuse_to_resume(standing, cap)
    planned = begin.plan_resume(standing, accept=accept)
    if any(given.values()):
        loop = arguments.changed(planned.loop, Changes(**given_in(given)))
        changing.change(standing, loop)
    if note:
        steer.tell(standing, note)
    if note or any(given.values()):
        planned = begin.plan_resume(find(standing.loop.id, workspace), accept=accept)
    if cap is not None:
        planned = msgspec.structs.replace(planned, raises=lambda limits: msgspec.structs.replace(limits, rounds=cap))
    return running.resume(DIALECT, planned, tether)


def _refuse_to_resume(standing: Standing, cap: int | None) -> None:
    there, name = elsewhere(Path(standing.loop.workspace)), standing.loop.id
    if standing.alive:
        hint = f"`{NAME} status --loop-id {name}{there}` says how it stands; `cancel` instead of `status` ends it"
        raise UserError(f"the loop {name} is running already", hint=hint, exit_code=8)
    if standing.finished:
        hint = f'start another: {NAME} "…"{elsewhere(Path(standing.loop.workspace))}'
        raise UserError(f"the loop {standing.loop.id} is completed; there is nothing to go on with", hint=hint)
    if cap is not None and cap <= (done := standing.state.rounds):
        raise UserError(
            f"--max-iterations {cap} is used up already",
            cause=f"{standing.loop.id} has had {done}",
            hint=f"--max-iterations {done + 10}",
        )


# -- look --------------------------------------------------------------------------------------------------------------


@command(name="status")
@_which
@_cd
@option("--human", is_flag=True, help="Words for a person instead.")
@_as_json
def status(name: str | None, workspace: Path, human: bool, as_json: bool) -> int:
    """How a loop stands, as its state file says it: JSON"""
    standing = find(name, workspace)
    state = state_of(standing)
    _show(state, standing, workspace) if human and not as_json else render.echo_json(state)
    return 0


def _show(state: Mapping[str, Any], standing: Standing, workspace: Path) -> None:
    click.echo(f"  {standing.loop.id}  {state['status']}\n")
    rows = {
        "Task": shorten(plain(str(state["prompt"])), 300),
        "Where": state["workspace_root"],
        "Iteration": f"{state['iteration']} of {state['max_iterations']}",
        "Session": state["codex"]["session_id"] or "—",
        "State file": _if_there(standing, files.Paths(standing.loop).state),
        "Artifacts": _if_there(standing, state["artifacts"]["dir"]),
        "Last message": _last_message(standing, state["artifacts"]),
        "Reason": state["reason"],
    }
    for label, text in rows.items():
        if text:
            render.field(label, str(text), 16)
    if standing.state.stopped:
        steps = DialectVoice(DIALECT).next_steps(standing)
        _next([step for step in steps if not _is_status(step)])
    elif state["status"] == Status.CRASHED:
        again = typed(workspace, "resume", "--loop-id", standing.loop.id)
        render.next_steps([Next(command=again, why="continue")])


def _is_status(step: Next) -> bool:
    return isinstance(step.command, Act) and step.command.verb == "status"


def _next(steps: list[Next]) -> None:
    """What can be pasted, and advice that no command can take."""
    advice = [step.why for step in steps if not step.command]
    render.next_steps([step for step in steps if step.command])
    if len(advice) == len(steps) > 0:
        click.echo("\n  Next")
    for what in advice:
        render.field("", what, 4)


def _if_there(standing: Standing, path: str) -> str:
    """A file of the loop, unless it was cleaned up."""
    return path if os.path.lexists(Path(standing.loop.workspace) / path) else ""


def _last_message(standing: Standing, artifacts: Mapping[str, str | None]) -> str:
    name = artifacts["last_message_path"]
    return _if_there(standing, f"{artifacts['dir']}{name}") if name else "—"


@command(name="list")
@_cd
@_as_json
def list_(workspace: Path, as_json: bool) -> int:
    """All loops of this folder"""
    rows = {each.loop.id: state_of(each) for each in loops.in_workspace(DIALECT, workspace)}
    if as_json:
        render.echo_json([*rows.values()])
        return 0
    if not rows:
        click.echo("No loops found.")
    for name, state in rows.items():
        click.echo(f"  {name}  {state['status']}  iteration {state['iteration']} of {state['max_iterations']}")
    return 0


# -- cancel ------------------------------------------------------------------------------------------------------------


@command(name="cancel")
@_which
@_cd
@option(
    "--cleanup-artifacts", "cleanup", is_flag=True, help="And remove the files that were written for it; nothing else."
)
def cancel(name: str | None, workspace: Path, cleanup: bool) -> int:
    """End a loop, running or not"""
    standing = find(name, workspace)
    if standing.finished and not cleanup:
        raise UserError(
            f"the loop {standing.loop.id} is completed already",
            cause="there is nothing to cancel",
            hint="--cleanup-artifacts removes the files that were written for it",
        )
    standing = end.cancel(standing)
    cleaned = end.clean_up(DIALECT, standing) if cleanup else None
    stopped = standing.state.stopped
    click.echo(f"  {standing.loop.id} is {DIALECT.word(stopped) if stopped else standing.status}.")
    if cleaned:
        _say_cleaned(cleaned)
    return 0


def _say_cleaned(cleaned: end.Cleaned) -> None:
    many = f"{plural(len(cleaned.removed), 'file')} {'was' if len(cleaned.removed) == 1 else 'were'}"
    how = ", as written for this loop; nothing else was touched" if cleaned.removed else ""
    click.echo(f"  {many} removed{how}.")
    for path, why in cleaned.left.items():
        click.echo(f"  left: {plain(path)} ({why})")
    for path, why in cleaned.stuck.items():
        click.echo(f"  not removed: {plain(path)} ({why})")
    if cleaned.stuck:
        what = f"{plural(len(cleaned.stuck), 'file')} of this loop could not be removed"
        hint = "look at the permissions of the folder, then ask again"
        raise UserError(what, cause=next(iter(cleaned.stuck.values())), hint=hint, exit_code=1)


# -- install-helpers ---------------------------------------------------------------------------------------------------


_NEW = "written; a copy of yours is beside it"
_FATES = {Fate.CREATED: "written", Fate.REPLACED: _NEW, Fate.SAME: "is as it should be"}


@command(name="install-helpers")
@_cd
@option("--completion-promise", "promise", metavar="TEXT", default="", help="What they are to say of the promise.")
@option("--loop-id", "name", metavar="ID", default="", help="The loop that they are to speak of.")
@option("--force", is_flag=True, help="Over what is there; a copy of it is kept.")
def install_helpers(workspace: Path, promise: str, name: str, force: bool) -> int:
    """Write the skill and the prompt for Codex"""
    home = home_of("codex")
    rows = {str(home / each.path) if each.home else each.path: each for each in texts.HELPERS}
    contents = {path: each.filled_in(promise, name) for path, each in rows.items()}
    for path, fate in first_files.fates(workspace, contents, force=force).items():
        if fate is Fate.LEFT:
            given = (("--completion-promise", promise), ("--loop-id", name))
            words = [word for pair in given if pair[1] for word in pair]
            hint = f"`{typed(workspace, 'install-helpers', *words, '--force')}` replaces it, and keeps a copy"
            raise UserError(f"{workspace / path} differs", cause="nothing was written", hint=hint)
    for path, fate in first_files.write(workspace, contents, force=force).items():
        remark = f" ({rows[path].remark})" if rows[path].remark else ""
        click.echo(f"  {plain(str(workspace / path))}: {_FATES[fate]}{remark}")
    return 0


# -- all of them -------------------------------------------------------------------------------------------------------


COMMANDS = WithNameless(
    start, name=NAME, commands=[status, list_, resume, cancel, install_helpers], context_settings=HELP
)
