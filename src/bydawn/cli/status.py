"""`status`: list all loops; also what `bydawn` alone does."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.errors import UserError
from bydawn.core.text import PLACEHOLDER, plain, shorten, visible
from bydawn.core.values import EXIT_CODES, Act
from bydawn.operations import views
from bydawn.operations.amounts import plural
from bydawn.operations.leftovers import with_leftovers
from bydawn.store.registry import Registry, Standing
from bydawn.system.user_folders import tilde


class _Found(NamedTuple):
    listed: list[Standing]
    hidden: int  # dismissed ones


@command()
@loop_argument
@option("--all", "all_", is_flag=True, help="List dismissed loops too.")
@option("-w", "--watch", is_flag=True, help="Look again every 2 seconds until you press `q` or Ctrl-C.")
@cd
@as_json
@option("--exit-code", is_flag=True, help="Exit with the code of the loop's state, not 0.")
@state_dir
def status(
    loop: str | None = None,
    all_: bool = False,
    watch: bool = False,
    cd: Path | None = None,
    as_json: bool = False,
    exit_code: bool = False,
    state_dir: Path | None = None,
) -> int:
    """List all loops and their state; those that need you come first.

    \b
    Examples
      bydawn status
      bydawn status shop-api --json
    """
    if watch and as_json:
        cause = "--watch redraws a screen, --json prints a document once"
        raise UserError("--watch and --json cannot be combined", cause=cause, hint="drop one of them")

    def look() -> _Found:
        loops = [Registry(state_dir).find(loop, cd)] if loop else Registry(state_dir).everywhere()
        listed = [each for each in loops if loop or all_ or not each.state.dismissed]
        return _Found(views.by_need(with_leftovers(listed)), len(loops) - len(listed))

    if watch:
        from bydawn.cli.watch import watch as keep_looking

        found = keep_looking(look, _lines).listed
    elif as_json:
        from bydawn.operations.next_steps import next_steps  # the list for people has only the first of them

        found = look().listed
        render.emit_json({"loops": [views.loop_view(each, next_steps(each)) for each in found]})
    else:
        seen = look()
        found = seen.listed
        click.echo("\n".join(_lines(seen)))  # at once: with 1,000 loops every call would be felt
    codes = [EXIT_CODES[each.state.stopped.end] for each in found if each.state.stopped and not each.trouble]
    return max(codes, default=0) if exit_code else 0


def _lines(seen: _Found, height: int = sys.maxsize) -> list[str]:
    """The loops and what to do next; in a window, only as many loops as fit."""
    if not seen.listed and not seen.hidden:
        start = render.typed(Act("run", PLACEHOLDER))
        return ["  No loops yet.", "", f"  Watch one    {render.typed(Act('demo'))}", f"  Start one    {start}"]
    steps = views.first_step(seen.listed)
    end = ["", "  Next", *render.step_lines(steps)] if steps else []
    if seen.hidden:
        end.insert(0, f"  {plural(seen.hidden, 'dismissed loop')} not listed: {render.typed(Act('status', all=True))}")
    room, rows, shown = max(1, height - len(end) - 1), list[str](), 0
    lines = [views.status_line(each) for each in seen.listed[:room]]
    names = min(24, max((len(line.view.loop) for line in lines), default=0))
    for line in lines:
        block = [*_rows(line, names, render.width())]
        if len(rows) + len(block) > room:
            break
        rows += block
        shown += 1
    more = len(seen.listed) - shown
    return [*rows, *([f"  … and {plural(more, 'more loop')}"] if more else []), *end]


def _rows(line: views.StatusLine, names: int, width: int) -> Iterator[str]:
    begin = f"  {shorten(line.view.loop, names):<{names}}  {render.state(line.view.state, 13)}"
    rest = " · ".join(part for part in (line.progress, line.liveness) if part)
    folder = visible(tilde(line.view.workspace))
    if names + len(rest) + 18 > width:
        yield begin.rstrip()
        yield from (f"      {row}" for row in render.wrapped(rest, 6))
        yield f"      {folder if len(folder) <= width - 6 else '…' + folder[7 - width :]}"
    elif names + len(rest) + len(folder) + 20 > width:
        yield from (f"{begin} {rest}", f"      {folder}")
    else:
        yield f"{begin} {rest}  {folder}"
    if line.reason:
        yield from (f"      {row}" for row in render.wrapped(shorten(plain(line.reason), 300), 6))
