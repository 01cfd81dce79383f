"""`clean`: remove the logs of loops that ended long ago, or worktrees that are merged."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, read, state_dir
from bydawn.core import kinds
from bydawn.core.errors import UserError
from bydawn.core.text import visible
from bydawn.operations import clean as cleaning
from bydawn.operations import worktrees as trees
from bydawn.operations.amounts import moment, plural, size
from bydawn.store.registry import Registry, Standing
from bydawn.system.user_folders import tilde


@command()
@click.argument("loops", nargs=-1, metavar="[LOOP]...")
@option("--older-than", default="7d", metavar="DURATION", help="Only loops that ended so long ago.  [default: 7d]")
@option("--keep", type=click.IntRange(0), default=0, metavar="N", help="Remove nothing of the N that ended last.")
@option("--worktrees", is_flag=True, help="Remove worktrees instead, whose work is merged, and their branches.")
@option("--apply", "apply_", is_flag=True, help="Remove it; without this, only say what would be removed.")
@cd
@as_json
@state_dir
def clean(
    loops: tuple[str, ...],
    older_than: str,
    keep: int,
    worktrees: bool,
    apply_: bool,
    cd: Path | None,
    as_json: bool,
    state_dir: Path | None,
) -> None:
    """Remove what old loops printed: output of agents and checks, prompts, and worker.log.

    Only of loops that are complete or dismissed. Their history, replies and saved work trees stay. Unless you name a
    loop or a folder, also what is left of questions to agents that failed, such as those of `codex-loop init`.

    \b
    Examples
      bydawn clean
      bydawn clean --older-than 30d --keep 5 --apply
      bydawn clean --worktrees --apply
    """
    if worktrees and keep:
        cause = "--keep is about what loops printed; worktrees stay until their work is merged"
        raise UserError("--worktrees and --keep cannot be combined", cause=cause, hint="drop one of them")
    registry, seconds = Registry(state_dir), read(kinds.span, older_than)
    every = registry.here(cd) if cd else registry.everywhere()
    meant = [registry.find(name, cd) for name in loops] if loops else every
    if worktrees:
        _clean_worktrees(meant, registry.everywhere(), named=bool(loops), apply=apply_, as_json=as_json)
        return
    rows = [*cleaning.clean(meant, seconds, named=bool(loops), apply=apply_, keep=keep)]
    questions = [] if loops or cd else [*cleaning.clean_questions(registry.root, seconds, apply=apply_)]
    total = sum(row.bytes for row in rows) + sum(row.bytes for row in questions)
    if as_json:
        render.emit_json({"applied": apply_, "bytes": total, "loops": rows, "questions": questions})
        return
    names = max((len(row.loop) for row in rows), default=0)
    for row in rows:
        what = row.skipped or f"{size(row.bytes)} · {row.state} since {moment(row.ended) if row.ended else '?'}"
        render.paragraph(f"{row.loop:<{names}}  {what}  {visible(tilde(row.workspace))}")
    for question in questions:
        what = f"{size(question.bytes)} · a question of {moment(question.asked)}"
        render.paragraph(f"{what}  {visible(tilde(question.folder))}")
    freed = plural(sum(not row.skipped for row in rows), "loop")
    freed += f" and {plural(len(questions), 'question')}" if questions else ""
    if not questions and all(row.skipped for row in rows):
        click.echo("  Nothing to remove.")
    elif apply_:
        click.echo(f"  Freed {size(total)} of {freed}.")
    else:
        click.echo(f"  {size(total)} of {freed} would be freed; add --apply to remove it.")


def _clean_worktrees(meant: list[Standing], every: list[Standing], *, named: bool, apply: bool, as_json: bool) -> None:
    rows = [*trees.clean(meant, every, named=named, apply=apply)]
    if as_json:
        render.emit_json({"applied": apply, "worktrees": rows})
        return
    for row in rows:
        fate = f"kept: {row.kept}" if row.kept else "removed" if apply else "can be removed"
        render.paragraph(f"{row.loop}  {visible(fate)}  {visible(tilde(row.worktree.path))}")
    free = sum(not row.kept for row in rows)
    if not free:
        click.echo("  Nothing to remove.")
    elif not apply:
        click.echo(f"  {plural(free, 'worktree')} would be removed; add --apply to do it.")
