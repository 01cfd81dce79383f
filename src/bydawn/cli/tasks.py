"""`tasks`: list, add, skip, reopen and edit tasks."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import click

from bydawn.cli import render
from bydawn.cli.command import group, option
from bydawn.cli.edit import edit_document
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.redact import rewritten
from bydawn.core.text import plain, shorten, visible
from bydawn.core.values import Act, TaskStatus
from bydawn.core.worklist import Listed
from bydawn.operations import edit as editing
from bydawn.operations import last_list, start
from bydawn.operations import tasks as operation
from bydawn.operations.preconditions import found_workspace, from_here
from bydawn.operations.settings import secrets
from bydawn.operations.tasks import Board, SettledNow
from bydawn.store.registry import Registry, Standing

T = TypeVar("T")

# The keys are those of `core/worklist.py: Stand`.
_SIGNS = {
    "next": "▶",
    "open": "○",
    "waiting": "…",
    "aside": "!",
    "done": "✓",
    "doubted": "~",
    "skipped": "–",
    "reached": "?",
    "approved": "✓",
    "ahead": "‖",
}
_COLORS = {"next": "cyan", "done": "green", "approved": "green", "aside": "yellow", "doubted": "yellow"}
_WORDS = {"aside": "set aside"}
_WIDEST_WORD = 9
_NARROW = 72
_LONGEST_ID = 28


@group()
def tasks() -> None:
    """List, add, skip, reopen or edit the tasks of a loop.

    TASK is its number in the list, its id, or the start of its text.

    \b
    Examples
      bydawn tasks list
      bydawn tasks add shop-api "write the changelog"
      bydawn tasks skip shop-api 3 "rename the"
    """


@tasks.command(name="list")
@loop_argument
@option("-t", "--tasks", "path", metavar="PATH", help="Read this checklist or folder, without a loop.")
@cd
@as_json
@state_dir
def list_(loop: str | None, path: str | None, cd: Path | None, as_json: bool, state_dir: Path | None) -> None:
    """List every task with its current state.

    \b
    next       the next round works on it
    open       not started
    waiting    depends on another task, or belongs to one that needs you
    set aside  failed too often, or needs your answer; resume tries it again
    done       ticked or proven
    doubted    ticked or claimed while nothing else changed
    skipped    you decided against it

    \b
    Examples
      bydawn tasks list shop-api
      bydawn tasks list -t TODO.md
    """
    board = _without_secrets(_board(loop, path, cd, state_dir))
    if as_json:
        render.emit_json(operation.list_view(board))
        return
    _show(board)


def _board(loop: str | None, path: str | None, cd: Path | None, state_dir: Path | None) -> Board:
    if path is not None:
        if loop is not None:
            raise click.UsageError("-t reads a list without a loop; give one or the other")
        workspace = found_workspace(cd)
        return operation.without_loop(from_here(path, workspace) if cd is None else path, workspace)
    registry = Registry(state_dir)
    if loop is None and not registry.here(cd):
        return operation.set_here(found_workspace(cd))
    return operation.of_loop(registry.find(loop, cd))


def _without_secrets(shown: T) -> T:
    """A task file may contain secrets, and what is shown ends up in logs and screenshots."""
    return rewritten(shown, secrets().hide)


def _show(board: Board) -> None:
    if not board.loop.tasks:
        click.echo(f"  {board.loop.id} has no task list; it only has a prompt.")
        return
    for item in board.standings.items:
        for row in _rows(item, board):
            click.echo(row.rstrip())
    _summary(board)


def _rows(item: Listed, board: Board) -> Iterable[str]:
    digits = len(str(len(board.standings.tasks)))
    word = f"{_SIGNS[item.stand]} {_WORDS.get(item.stand, item.stand):<{_WIDEST_WORD}}"
    shown = click.style(word, fg=_COLORS[item.stand]) if item.stand in _COLORS and render.colored() else word
    indent = digits + _WIDEST_WORD + 8
    room = render.width() - indent
    begin = f"  {item.number or '':>{digits}}  {shown}  "
    text = item.text if item.number else f"── {item.text}"
    if not board.loop.task_folder:
        yield begin + shorten(plain(text), room)
    elif render.width() < _NARROW:
        yield begin + shorten(plain(item.id), room)
        yield " " * indent + shorten(plain(text), room)
    else:
        widest = min(_LONGEST_ID, max(len(plain(each.id)) for each in board.standings.tasks))
        yield f"{begin}{shorten(plain(item.id), widest):<{widest}}  {shorten(plain(text), room - widest - 2)}"
    if item.proof:
        yield " " * indent + shorten(f"proof: {item.proof}", room)
    if item.waits_for:
        yield " " * indent + shorten(plain(f"waits for {_named(item.waits_for, board)}"), room)


def _named(ids: tuple[str, ...], board: Board) -> str:
    """What a task waits for, and why that may never be done."""
    stands = {each.id: each.stand for each in board.standings.tasks}
    return ", ".join(
        f"{id_} ({_WORDS.get(stands[id_], stands[id_])})" if stands.get(id_) in ("skipped", "aside") else id_
        for id_ in ids
    )


def _summary(board: Board) -> None:
    """One line of counts, and what is wrong."""
    counts = board.standings.counts
    parts = []
    for name, special in (("open", ("aside", "waiting")), ("done", ("doubted",)), ("skipped", ())):
        inside = ", ".join(f"{counts[each]} {_WORDS.get(each, each)}" for each in special if counts[each])
        if counts[name] or name != "skipped":
            parts.append(f"{counts[name]} {name}{f' ({inside})' if inside else ''}")
    if board.standings.items:
        click.echo("")
        file = visible(board.file)
        render.field(file, " · ".join(parts), indent=len(file) + 4)
    if board.trouble:
        render.field("!", board.trouble, indent=4)
    for warning in board.standings.warnings:
        render.field("!", f"{board.file}, {warning}" if warning.startswith("line") else warning, indent=4)


@tasks.command()
@click.argument("loop")
@click.argument("text", nargs=-1, required=True)
@cd
@state_dir
def add(loop: str, text: tuple[str, ...], cd: Path | None, state_dir: Path | None) -> None:
    """Add a task to the list.

    It becomes a box below the last one or, in a folder of tasks, a file of its own.

    \b
    Examples
      bydawn tasks add shop-api "write the changelog"
    """
    standing = Registry(state_dir).find(loop, cd)
    added = operation.add(standing, " ".join(text))
    board, task = added.board, added.task
    where = f"{board.file}{'/' if board.loop.task_folder else ''}"
    if not added.written:
        click.echo(f"  Recorded. {where} could not be changed just now, so the next prompt asks for it.")
    elif task is None or task.number is None:
        click.echo(f"  Added to {where}" + (": a checkpoint." if task else "."))
    elif board.loop.task_folder:
        click.echo(f"  Added as task {task.number}: {where.rstrip('/')}/{plain(task.id)}.md")
    else:
        click.echo(f"  Added as task {task.number} to {where}, line {task.line}.")
    if standing.finished:
        another = render.as_typed(start.another(standing.loop))
        click.echo(f"  {standing.loop.id} is already {standing.status}. For the new task, {plain(another)}")
    else:
        _go_on(standing)


@tasks.command()
@click.argument("loop")
@click.argument("task", nargs=-1, required=True, metavar="TASK...")
@cd
@state_dir
def skip(loop: str, task: tuple[str, ...], cd: Path | None, state_dir: Path | None) -> None:
    """Skip tasks.

    No round works on them anymore, and the loop can complete without them. Work already done stays.

    \b
    Examples
      bydawn tasks skip shop-api 3
      bydawn tasks skip shop-api "rename the"
    """
    standing = Registry(state_dir).find(loop, cd)
    _settled(standing, operation.settle(standing, task, TaskStatus.SKIPPED), "Skipped")


@tasks.command()
@click.argument("loop")
@click.argument("task", nargs=-1, required=True, metavar="TASK...")
@cd
@state_dir
def reopen(loop: str, task: tuple[str, ...], cd: Path | None, state_dir: Path | None) -> None:
    """Reopen tasks.

    Works for tasks that were skipped or set aside, and for done tasks of a folder. To reopen a ticked box, untick it
    in the file.

    \b
    Examples
      bydawn tasks reopen shop-api 3
    """
    standing = Registry(state_dir).find(loop, cd)
    _settled(standing, operation.settle(standing, task, TaskStatus.OPEN), "Reopened")


def _settled(standing: Standing, rows: Iterable[SettledNow], what: str) -> None:
    changed = False
    for row in map(_without_secrets, rows):
        name = f"{row.task.number} “{shorten(row.task.text, max(20, render.width() - 36))}”"
        if row.taken_by is None:
            stand = "open" if row.task.stand in ("next", "waiting") else row.task.stand
            render.field("", f"{name} is already {_WORDS.get(stand, stand)}; nothing was changed.", indent=2)
            continue
        changed = True
        render.field("", f"{what}: {name}", indent=2)
        if row.round:
            render.field("", f"round {row.round} is working on it and will finish first", indent=4)
        if what == "Skipped" and row.stranded:
            names = ", ".join(each.id for each in row.stranded)
            render.field("!", f"{names} will not run: skip that too, or change what it depends on", indent=4)
    if changed:
        _go_on(standing)


def _go_on(standing: Standing) -> None:
    if not standing.alive:
        click.echo(f"  Continue: {render.typed(Act('resume', standing.reference))}")


@tasks.command()
@loop_argument
@click.argument("task", required=False, metavar="[TASK]")
@cd
@state_dir
def edit(loop: str | None, task: str | None, cd: Path | None, state_dir: Path | None) -> None:
    """Open the list in $EDITOR (or vi).

    For a folder, name the task whose file to open. A missing list is restored first.

    \b
    Examples
      bydawn tasks edit
      bydawn tasks edit shop-api 3
    """
    registry = Registry(state_dir)
    if loop is None and not registry.here(cd):
        edit_document("tasks", found_workspace(cd))
        return
    standing = registry.find(loop, cd)
    path, meant = operation.file_of(operation.of_loop(standing), task)
    if meant and meant.line:
        text = _without_secrets(meant.text)
        click.echo(f"  “{shorten(plain(text), max(20, render.width() - 24))}” is in line {meant.line}.")
    _say_what_was_lost(standing)
    editing.open_editor(path)
    _summary(operation.of_loop(standing))


def _say_what_was_lost(standing: Standing) -> None:
    """Restore a missing list, but leave a damaged one alone: a person may have begun to fix it."""
    if (last := last_list.wanted(standing)) is None:
        return
    if last_list.put_back(standing, last):
        render.field("", f"{standing.loop.tasks} was missing and is restored, {last.when}.", indent=2)
    else:
        render.field("", f"{standing.loop.tasks} {last.when}:", indent=2)
        click.echo(f"    {plain(last.command)}")
