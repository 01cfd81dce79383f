"""What codex-loop's operator reads: `events`, `sessions`, `snapshots`, `health`; and `cleanup`."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from bydawn.cli.command import command, option
from bydawn.cli.dialects import WithNameless
from bydawn.cli.dialects.codex_loop_options import HELP, in_project
from bydawn.cli.dialects.log_screen import line
from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.dialects.codex_loop.config import Pruned
from bydawn.dialects.codex_loop.document import text_of
from bydawn.operations.amounts import plural, size

_FAILED = 1
_FILE = click.Path(path_type=Path)
_json = option("--json", "as_json", is_flag=True, help="As JSON.")


def _count(flag: str, usual: int | None, about: str, least: int = 0) -> Callable[[Any], Any]:
    default = "" if usual is None else f"  [default: {usual}]"
    return option(flag, metavar="N", type=click.IntRange(least), default=usual, help=f"{about}{default}")


# -- events, sessions --------------------------------------------------------------------------------------------------


@command()
@in_project
@_count("--limit", None, "The last so many.  [default: operator.events.default_limit, 20]", 1)
@option("--task-id", metavar="ID", help="Of this task.")
@option("--event-type", metavar="TYPE", help="A type (blocked) or a whole label (blocked:max_iterations).")
@option("--since", metavar="TIME", help="From this time on, with its zone: 2026-01-06T12:00Z.")
@option("--until", metavar="TIME", help="Up to this time.")
@option("--summary", is_flag=True, help="Count them.")
@_json
@option("--output", metavar="FILE", type=_FILE, help="Write it to this file.")
def events(
    root: Path,
    limit: int | None,
    task_id: str | None,
    event_type: str | None,
    since: str | None,
    until: str | None,
    summary: bool,
    as_json: bool,
    output: Path | None,
) -> int:
    """What happened, a line each"""
    from bydawn.dialects.codex_loop import events as rows
    from bydawn.operations.dialects.codex_loop import reports

    remark = ""
    if limit is None:
        limit, remark = reports.default_limit(root)
    kind, span = rows.checked_type(event_type), rows.period(since, until)
    found = reports.events(root, rows.Wanted(limit=limit, task_id=task_id, event_type=kind, period=span))
    for text in filter(None, (remark, found.remark)):
        line(f"  ! {plain(text)}", err=True)
    shown = rows.summary_of(found.rows) if summary else found.rows
    return _give(shown, as_json=as_json, output=output, nothing="No events.")


@command()
@in_project
@option("--latest", is_flag=True, help="Of the task that was worked on last.")
@option("--task-id", metavar="ID", help="Of this task.")
@_json
def sessions(root: Path, latest: bool, task_id: str | None, as_json: bool) -> int:
    """Which Codex session each task has"""
    from bydawn.operations.dialects.codex_loop import reports

    if latest and task_id is not None:
        cause = "each of them asks for something else"
        raise UserError("--latest and --task-id contradict each other", cause=cause, hint="drop --task-id")
    return _give(reports.sessions(root, task_id, latest=latest), as_json=as_json, nothing="No tasks.")


# -- snapshots, health -------------------------------------------------------------------------------------------------


@command(name="list")
@in_project
@option("--task-id", metavar="ID", help="Of this task.")
@_count("--limit", None, "The newest so many.", 1)
@_json
def list_(root: Path, task_id: str | None, limit: int | None, as_json: bool) -> int:
    """What each iteration left, oldest first; `snapshots show N` has all about one"""
    from bydawn.dialects.codex_loop.events import snapshot_line
    from bydawn.operations.dialects.codex_loop import reports

    found = reports.snapshots(root, task_id, limit)
    return _give(found, as_json=as_json, line_of=snapshot_line, nothing="No snapshots.")


@command()
@in_project
@click.argument("iteration", type=click.IntRange(1))
@_json
def show(root: Path, iteration: int, as_json: bool) -> int:
    """All about what one iteration left"""
    from bydawn.operations.dialects.codex_loop import reports

    return _give(reports.snapshot(root, iteration), as_json=as_json)


snapshots = WithNameless(
    list_, name="snapshots", help="What each iteration left", commands=[list_, show], context_settings=HELP
)


@command()
@option("--project-dir", "given", metavar="PATH", type=_FILE, default=".", help="The project.  [default: .]")
@_count("--events-limit", 20, "Look at the last so many events.", 1)
@_json
def health(given: Path, events_limit: int, as_json: bool) -> int:
    """Is all well? 0 yes, 2 it needs you, 3 an error"""
    from bydawn.operations.dialects.codex_loop import reports

    found = reports.health(given, events_limit)
    _give(found, as_json=as_json)
    return found.health.exit_code


# -- cleanup -----------------------------------------------------------------------------------------------------------


def _for_each_folder(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options for single folders."""
    for name in ("prompts", "runs", "logs"):
        function = _count(f"--{name}-older-than-days", None, f"Only in {name}/: remove nothing younger.")(function)
        function = _count(f"--{name}-keep", None, f"Only in {name}/: keep the newest so many.")(function)
    return function


@command()
@in_project
@option("--apply", "apply_", is_flag=True, help="Remove them; without it they are only named.")
@_count("--keep", None, "Keep the newest so many in each folder.  [default: operator.cleanup.keep, 10]")
@_count("--older-than-days", None, "Of the others, remove nothing younger.")
@_for_each_folder
@option("--no-worktrees", is_flag=True, help="Leave the worktree, even if all of it is merged.")
def cleanup(
    root: Path, apply_: bool, keep: int | None, older_than_days: int | None, no_worktrees: bool, **each: int | None
) -> int:
    """Remove old logs, prompts and answers"""
    from bydawn.operations.dialects.codex_loop.cleanup import FOLDERS, Asked, clean

    asked = Asked(
        keep=keep,
        older_than_days=older_than_days,
        directory_keep=Pruned(**{name: each[f"{name}_keep"] for name in FOLDERS}),
        directory_older_than_days=Pruned(**{name: each[f"{name}_older_than_days"] for name in FOLDERS}),
    )
    found = clean(root, asked, with_worktree=not no_worktrees, apply=apply_)
    for path in found.files:
        line(plain(path) + (f": {found.stuck[path]}" if path in found.stuck else ""))
    tree = found.worktree
    if tree:
        line(plain(tree.worktree.path) + (f" stays: {tree.kept}" if tree.kept else ""))
    count, gone = len(found.files), bool(tree and not tree.kept)
    files = f"{plural(count, 'file')}, {size(found.bytes)}" if count else ""
    what = ", and ".join(filter(None, [files, "the worktree" if gone else ""]))
    if not count and not gone:
        line("Nothing to remove.")
    else:
        line(f"Removed {what}." if apply_ else f"Would remove {what}. Add --apply to do it.")
    return _FAILED if found.stuck else 0


# -- what is shown -----------------------------------------------------------------------------------------------------


def _give(
    value: Any,
    *,
    as_json: bool,
    output: Path | None = None,
    line_of: Callable[[Any], str] = attrgetter("line"),
    nothing: str = "",
) -> int:
    """Print it, or write it to a file."""
    if as_json:
        text = text_of(value)
    elif isinstance(value, tuple):
        text = "".join(f"{plain(line_of(each))}\n" for each in value) or f"{nothing}\n"
    else:
        text = "".join(f"{plain(row)}\n" for row in _outline(_shown(value)))
    if output is None:
        click.echo(text, nl=False)
        return 0
    from bydawn.operations.dialects.codex_loop.reports import write_report

    write_report(output, text)
    click.echo(f"Written to {plain(str(output))}")
    return 0


def _shown(value: Any, *, inner: bool = False) -> Any:
    """A value for people: what has a line of its own is that line, and what is empty deep inside is left out."""
    if hasattr(value, "line"):
        return value.line
    if isinstance(value, tuple | list):
        return [_shown(each, inner=True) for each in value]
    fields = {name: getattr(value, name) for name in getattr(value, "__struct_fields__", ())}
    shown = {name: _shown(each, inner=True) for name, each in fields.items()}
    return {name: each for name, each in shown.items() if each or each == 0 or not inner} if fields else value


def _outline(value: Any, indent: str = "") -> Iterator[str]:
    """`name: value`, and what is in it below, indented."""
    named = value.items() if isinstance(value, dict) else (("", each) for each in value)
    for name, each in named:
        label = f"{name}:" if name else "-"
        is_text, is_more = isinstance(each, str) and "\n" in each, isinstance(each, dict | list) and bool(each)
        yield f"{indent}{label}" if is_text or is_more else f"{indent}{label} {_word(each)}"
        if is_more:
            yield from _outline(each, f"{indent}  ")
        elif is_text:
            yield from (f"{indent}  {row}" for row in each.splitlines())


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value or value == 0 else "none"


REPORTS = [events, sessions, snapshots, health, cleanup]
