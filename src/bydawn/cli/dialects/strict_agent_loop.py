"""The command line of strict-agent-loop, which its scripts hand over to, and what it prints."""

import sys
from pathlib import Path
from typing import Any

import click

from bydawn.cli import render
from bydawn.cli.command import Group, command, option
from bydawn.cli.dialects import options
from bydawn.cli.dialects.strict_agent_loop_skill import HOW, install_skill
from bydawn.core.errors import UserError
from bydawn.core.records import Iteration
from bydawn.core.text import plain, visible
from bydawn.core.values import EXIT_CODES, End
from bydawn.dialects.strict_agent_loop import DIALECT, document
from bydawn.dialects.strict_agent_loop.contract import EFFORTS, MOST_ITERATIONS, SANDBOXES, Contract
from bydawn.dialects.strict_agent_loop.document import State
from bydawn.dialects.strict_agent_loop.paths import NAME, round_summary
from bydawn.operations.dialects.strict_agent_loop import recording, reporting, stopping, tasks
from bydawn.operations.dialects.strict_agent_loop.tasks import Task
from bydawn.process.guardian import Tether
from bydawn.settings.layers import Settings

_COUNT = click.IntRange(1, MOST_ITERATIONS)
_SECONDS = click.FloatRange(0, 1e7)
_EXIT_STOPPED = 2


def _addressed(function: Any) -> Any:
    """A task: by the path of its state, by its id, or the only one that is not over."""
    for each in (
        option("--task-id", metavar="ID", help="The task, without --state."),
        option("--workspace-root", metavar="PATH", help="Its repository, without --state.  [default: .]"),
        option("--state", metavar="PATH", help="The task: .codex-loop/tasks/<task-id>/state.json"),
    ):
        function = each(function)
    return function


_workspace = option("--workspace-root", metavar="PATH", default=".", help="The repository.  [default: .]")
_as_json = option("--json", "as_json", is_flag=True, help="Print JSON.")


# -- a task ------------------------------------------------------------------------------------------------------------


@command()
@option("--workspace-root", metavar="PATH", help="The repository; deliverables go there.")
@option("--task-id", metavar="ID", help="Letters, digits and -.  [default: from the time and the goal]")
@option("--state", metavar="PATH", help="The same as both: .codex-loop/tasks/<task-id>/state.json in the repository.")
@options(Contract)
@option("--force", is_flag=True, help="Start again; the old task is kept as <task-id>.1.")
def init_state(
    workspace_root: str | None,
    task_id: str | None,
    state: str | None,
    force: bool,
    **given: Any,
) -> int:
    """Make a task, or change one that has not begun"""
    from bydawn.operations.dialects.strict_agent_loop import creating, reporting, tasks

    workspace_root, task_id = tasks.place_of(state, workspace_root, task_id)
    if workspace_root is None:
        hint = f'`{NAME} init-state --workspace-root . --goal "…" --global-stop-condition "…"`'
        raise UserError("--workspace-root is missing", cause="a task belongs to a repository", hint=hint)
    folder = tasks.workspace_of(workspace_root)
    reporting.take_in(None, str(folder), _trust, _say)
    made = creating.init(folder, task_id, given, _trust, _say, force=force)
    now = made.now
    render.echo_json(
        {
            "state": made.state_path,
            "task_id": made.id,
            "task_root_dir": now.task.root_dir,
            "manager_dir": now.task.manager_dir,
            "registry_path": tasks.registry_path(folder),
            "status": now.status,
            "operating_mode": now.operating_mode,
            **_pending(now),
        }
    )
    return 0


@command()
@_addressed
@option("--kind", metavar="KIND", required=True, help="Such as round.started.")
@option("--message", metavar="TEXT", required=True, help="What happened.")
@option("--data", metavar="KEY=VALUE", multiple=True, help="More about it; repeatable.")
def append_event(
    state: str | None, workspace_root: str | None, task_id: str | None, kind: str, message: str, data: tuple[str, ...]
) -> int:
    """Record an event"""
    _refuse_blank({"--kind": kind, "--message": message})
    fields = dict(_pair(each) for each in data)
    recorded, event = recording.event(_ours(state, workspace_root, task_id), kind, message, fields, _say)
    render.echo_json(event | _pending(recorded))
    return 0


@command()
@_addressed
@option("--task", metavar="TEXT", required=True, help="The atomic task of this round.")
@option("--local-done-condition", metavar="TEXT", required=True, help="When that was done.")
@option("--result-summary", metavar="TEXT", required=True, help="What came of it.")
@option("--verification-summary", metavar="TEXT", required=True, help="How that was verified.")
@option("--announcement", metavar="TEXT", default="", help="What was announced before.")
@option("--progress", type=click.Choice(("made", "none")), default="made", help="[default: made]")
@option(
    "--status",
    type=click.Choice(("running", "completed", "blocked", "failed")),
    default="running",
    help="[default: running]",
)
@option("--stop-met", is_flag=True, help="The global stop condition is met; failing stop checks still decide.")
@option("--stop-reason", metavar="TEXT", default="", help="Why it stops.")
@option("--needs-human-input", is_flag=True, help="Only a person can go on.")
@option("--next-task", metavar="TEXT", default="", help="The next atomic task.")
@option("--agent-id", metavar="ID", default="", help="Who did it.")
@option("--executor-inherited-context", "inherited_context", is_flag=True, help="It knew the rounds before.")
@option("--recovery", is_flag=True, help="It replaces an executor that was lost.")
@option("--evidence", metavar="TEXT", multiple=True, help="What shows the result; repeatable.")
@option("--artifact", "artifacts", metavar="PATH", multiple=True, help="A file that was made; repeatable.")
@option("--context-snapshot", metavar="TEXT", default="", help="Where the work stands, for the next session.")
def update_state(
    state: str | None, workspace_root: str | None, task_id: str | None, progress: str, **claim: Any
) -> int:
    """Record a verified iteration"""
    required = ("task", "local_done_condition", "result_summary", "verification_summary")
    _refuse_blank({f"--{name.replace('_', '-')}": claim[name] for name in required})
    task = _ours(state, workspace_root, task_id)
    now, number = recording.iteration(task, Iteration(progress=progress == "made", **claim), _say)
    render.echo_json(
        {
            "state": task.state_path,
            "iteration": number,
            "status": now.status,
            "no_progress_rounds": now.counters.no_progress_rounds,
            "round_summary_path": f"{task.workspace}/{round_summary(task.id, number)}",
            **_pending(now),
        }
    )
    return 0


@command()
@_addressed
@option("--keep-last", metavar="N", type=click.IntRange(1, 1000), default=8, help="[default: 8]")
@option("--max-archive-chars", metavar="N", type=click.IntRange(100, 1_000_000), default=8000, help="[default: 8000]")
def compact_state(
    state: str | None, workspace_root: str | None, task_id: str | None, keep_last: int, max_archive_chars: int
) -> int:
    """Shorten the history in state.json; the logs stay whole"""
    task = _ours(state, workspace_root, task_id)
    now = recording.compact(task, keep_last, max_archive_chars, _say)
    render.echo_json(
        {
            "state": task.state_path,
            "history_entries": len(now.history),
            "snapshot_chars": len(now.context_snapshot),
            **_pending(now),
        }
    )
    return 0


# -- is it over? -------------------------------------------------------------------------------------------------------


@command()
@_addressed
@click.pass_obj
def check_stop(tether: Tether | None, /, state: str | None, workspace_root: str | None, task_id: str | None) -> int:
    """Run the stop checks

    Exit codes: 0 success, 1 go on, 2 stopped without success.
    """
    stopping.refuse_inside_a_check()
    task = _confirmed(_ours(state, workspace_root, task_id))
    tasks.refuse_foreign(task)
    stopping.refuse_unconfirmed(task)
    assert tether  # noqa: S101 - this command runs under a guardian
    report = stopping.check(task, tether, _say)
    render.echo_json(report)
    return report.exit_code


@command()
@_addressed
@_as_json
@option("--label", metavar="TEXT", default="status.reported", help="[default: status.reported]")
def report_status(state: str | None, workspace_root: str | None, task_id: str | None, as_json: bool, label: str) -> int:
    """Say where it stands, and refresh the status files"""
    line, text = reporting.report(_find(state, workspace_root, task_id), label, _say)
    if as_json:
        render.echo_json(line)
    else:
        click.echo(visible(plain(text)), nl=False)
    return 0


# -- look --------------------------------------------------------------------------------------------------------------


@command()
@_workspace
@_as_json
def list_tasks(workspace_root: str, as_json: bool) -> int:
    """List the tasks of a repository"""
    found = reporting.listed(tasks.workspace_of(workspace_root), _trust, _say)
    if as_json:
        render.echo_json({"tasks": [reporting.entry(each) for each in found]})
    elif found:
        for each in found:
            click.echo("\n".join(visible(plain(row)) for row in reporting.rows(each)))
    else:
        click.echo(
            f'No tasks here. Make one: {NAME} init-state --workspace-root . --goal "…" --global-stop-condition "…"'
        )
    return 0


@command()
@_addressed
@_as_json
def show_task(state: str | None, workspace_root: str | None, task_id: str | None, as_json: bool) -> int:
    """Show one task"""
    task = _find(state, workspace_root, task_id)
    if as_json:
        render.echo_json(reporting.entry(task) | {"state": task.now})
    else:
        click.echo(visible(plain(reporting.shown(task))), nl=False)
    return 0


# -- the whole night ---------------------------------------------------------------------------------------------------


@command()
@_addressed
@option("--max-cycles", metavar="N", type=_COUNT, default=200, help="Invocations of this run.  [default: 200]")
@option("--sleep-seconds", "pause", metavar="S", type=_SECONDS, help="Between two invocations.  [default: 0]")
@option("--heartbeat-seconds", metavar="S", type=_SECONDS, default=30.0, help="0: none.  [default: 30]")
@option("--prompt-note", metavar="TEXT", help="A note for the next invocation.")
@option("--max-rounds-per-invocation", "budget", metavar="N", type=_COUNT, help="Iterations of one invocation.")
@option("--max-iterations", metavar="N", type=_COUNT, help="Of the whole task.")
@option("--max-invocation-seconds", "invocation_seconds", metavar="S", type=_SECONDS, help="0: the loop's own limit.")
@option("--codex-bin", metavar="PATH", help="Which Codex.")
@option("--model", metavar="MODEL", help="Which model.")
@option("--reasoning-effort", "effort", type=click.Choice(EFFORTS), help="How much it thinks.")
@option("--sandbox", type=click.Choice(SANDBOXES), help="What Codex may do.")
@click.pass_obj
def supervise(
    tether: Tether | None,
    /,
    state: str | None,
    workspace_root: str | None,
    task_id: str | None,
    max_cycles: int,
    heartbeat_seconds: float,
    prompt_note: str | None,
    **given: Any,
) -> int:
    """Run Codex again and again until the stop checks pass

    Exit codes: 0 success, 2 stopped without success, 130 interrupted.
    """
    from bydawn.cli.dialects import running
    from bydawn.cli.dialects.strict_agent_loop_screen import Screen
    from bydawn.operations.dialects.strict_agent_loop import supervising

    task = _confirmed(_ours(state, workspace_root, task_id))
    if task.standing and task.standing.finished and (stopped := task.standing.state.stopped):
        again = f'{NAME} init-state {task.flags} --force --goal "…" --global-stop-condition "…"'
        click.echo(plain(f"  {task.id} {DIALECT.reason(stopped)}\n  Start it again: {again}"))
        return DIALECT.exit_code(stopped)
    try:
        planned = supervising.plan(task, given, prompt_note, _trust)
    except UserError as error:
        if error.exit_code != EXIT_CODES[End.FAILED]:
            raise
        # Codex cannot work: for this command that is one more way to stop without success.
        raise UserError(error.what, cause=error.cause, hint=error.hint, exit_code=_EXIT_STOPPED) from None
    screen = Screen(DIALECT, cycles=max_cycles, heartbeat=heartbeat_seconds)
    return running.resume(DIALECT, planned, tether, run=screen.run)


def _find(state: str | None, workspace: str | None, task: str | None) -> Task:
    reporting.take_in(state, workspace, _trust, _say)
    return reporting.up_to_date(tasks.find(state, workspace, task), _say)


def _ours(state: str | None, workspace: str | None, task: str | None) -> Task:
    """The same, to go on with it: if it came with its folder, it becomes ours here."""
    found = _find(state, workspace, task)
    if found.standing:
        return found
    from bydawn.operations.dialects.strict_agent_loop import arriving

    return arriving.take_over(found, _trust, _say)


def _confirmed(task: Task) -> Task:
    """Ask about stop commands that no person has given, if one is here; else they are refused later."""
    commands = document.unconfirmed(task.standing.loop) if task.standing else ()
    if not commands or not sys.stdin.isatty():
        return task
    from bydawn.cli.trust import agreed
    from bydawn.operations.dialects.strict_agent_loop import creating

    click.echo(f"  These stop commands of {task.id} came with its folder or from a sandbox:\n", err=True)
    for each in commands:
        click.echo(f"    {visible(plain(each))}", err=True)
    if not agreed("\n  Do you trust them? They run with your permissions."):
        return task
    return creating.init(task.workspace, task.id, {"commands": commands}, _trust, _say)


def _refuse_blank(given: dict[str, str]) -> None:
    for option_, text in given.items():
        if not text.strip():
            raise UserError(f"{option_} is empty", cause="what is recorded has to say something", hint=f'{option_} "…"')


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UserError(f"--data {text!r} cannot be read", cause="it needs KEY=VALUE", hint="--data round=3")
    return key, value


def _pending(now: State) -> dict[str, object]:
    return {"pending": True} if now.pending else {}


def _trust(gathered: Settings, workspace: Path, state_folder: Path, config: str) -> None:
    from bydawn.cli.foreground import be_trusted

    be_trusted(gathered, workspace, state_folder, config=config)


def _say(text: str) -> None:
    click.echo(f"  ! {visible(plain(text))}", err=True)


class _Commands(Group):
    """The help says how to use it, with a command for each point (S-004)."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        formatter.write(f"\n{HOW}")


COMMANDS = _Commands(
    name=NAME,
    help="One small verified task per round, recorded on disk, until machines say stop.",
    commands=[
        init_state,
        append_event,
        update_state,
        check_stop,
        report_status,
        compact_state,
        list_tasks,
        show_task,
        supervise,
        install_skill,
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
