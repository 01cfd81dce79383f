"""`show` and `why`: one loop in full, and its last decision."""

from collections.abc import Iterable
from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.cli.rows import Layout, used_columns
from bydawn.core.text import fit, plain, shorten
from bydawn.core.values import Act, Status
from bydawn.operations import decisions, outputs, views
from bydawn.operations.amounts import moment
from bydawn.operations.changed import Changed, changed, look
from bydawn.operations.detail import last_printed, loop_detail, loop_fields, round_fields
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.next_steps import next_steps
from bydawn.operations.recent import rounds, the_round
from bydawn.operations.rounds import RoundRow
from bydawn.operations.sentences import Field
from bydawn.store.registry import Registry, Standing

_LONGEST_LINE = 500  # of a failing check's output


@command()
@loop_argument
@option("--round", "round_", type=click.IntRange(1), metavar="N", help="Show only this round.")
@cd
@as_json
@state_dir
def show(loop: str | None, round_: int | None, cd: Path | None, as_json: bool, state_dir: Path | None) -> None:
    """Show one loop: what happened, what is missing, what to do next.

    \b
    Examples
      bydawn show
      bydawn show shop-api --round 3
    """
    [standing] = with_leftovers([views.with_current_tasks(Registry(state_dir).find(loop, cd))])
    if as_json:
        render.emit_json(loop_detail(standing, round_))
        return
    if round_ is not None:
        _show_round(standing, the_round(standing, round_))
        return
    found = changed(standing)
    _show_loop(standing, found)
    this = Act("show", standing.reference)
    steps = [step for step in next_steps(standing) if step.command != this]
    if found:
        steps.append(look(standing, found, Path.cwd()))
    render.next_steps(steps, numbered=standing.status is Status.BLOCKED)


def _show_fields(fields: Iterable[Field]) -> None:
    for field in fields:
        render.field(field.label, field.text)


def _show_loop(standing: Standing, found: Changed | None) -> None:
    _headline(standing, views.reason(standing))
    _show_fields(loop_fields(standing, found))
    if not standing.trouble:
        _show_rounds(rounds(standing))


def _show_rounds(rows: list[RoundRow]) -> None:
    layout = Layout(render.width(), used_columns(rows))
    click.echo("")
    for line in (*(layout.header("round") if rows else ()), *(line for row in rows for line in layout.row(row))):
        click.echo(line)


def _headline(standing: Standing, reason: str) -> None:
    name, status = standing.loop.id, standing.status
    if reason.startswith(status):  # "paused by maria"
        text = f"{name} was {reason}"
    else:
        text = f"{name} {status.words}{_since(standing)}{': ' if reason else ''}{reason}"
    render.paragraph(render.state(status, text=shorten(plain(text), 300)))
    click.echo("")


def _since(standing: Standing) -> str:
    """` since 03:12 (round 11)`, for a loop that waits for a person."""
    stopped = standing.state.stopped
    if stopped is None or standing.status is not Status.BLOCKED:
        return ""
    return f" since {moment(stopped.decided.at)} (round {standing.state.round})"


def _show_round(standing: Standing, row: RoundRow) -> None:
    checks, number = row.attempt.checks, row.number
    _show_fields(round_fields(standing, row))
    for verdict in checks.verdicts if checks else ():
        render.field("Check", f"{verdict.check} → {'pass' if verdict.passed else verdict.detail}")
        printed = last_printed(verdict)
        for line in printed:
            click.echo(f"          │ {fit(line, _LONGEST_LINE)}")
        if printed and verdict.output:
            render.field("", outputs.place(standing.folder.round_file(number, verdict.output)))
    if outputs.is_removed(standing, number):
        render.field("Output", outputs.REMOVED)
    render.field("Folder", str(standing.folder.round(number)))


@command()
@loop_argument
@cd
@as_json
@state_dir
def why(loop: str | None, cd: Path | None, as_json: bool, state_dir: Path | None) -> None:
    """Explain the last decision: the rule, the limits, and whether a replay decides the same.

    \b
    Examples
      bydawn why shop-api
    """
    standing = Registry(state_dir).find(loop, cd)
    decision = decisions.why(standing)
    if as_json:
        render.emit_json(decision)
        return
    crashed = standing.status == Status.CRASHED
    _headline(standing, views.reason(standing))
    first, *rest = decisions.why_fields(standing, decision)
    when = Field("When", f"{decision.at.astimezone():%Y-%m-%d %H:%M:%S} (event {decision.seq})")
    _show_fields([first, when, *rest])
    render.paragraph(f"Replayed: {plain(decision.replayed)}")
    if crashed:
        render.next_steps(next_steps(standing))
