"""`status`: list all loops; also what `bydawn` alone does."""

from collections.abc import Iterator
from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.text import plain, shorten, visible
from bydawn.core.values import EXIT_CODES
from bydawn.operations import views
from bydawn.operations.amounts import plural
from bydawn.operations.leftovers import with_leftovers
from bydawn.store.registry import Registry


@command()
@loop_argument
@option("--all", "all_", is_flag=True, help="List dismissed loops too.")
@cd
@as_json
@option("--exit-code", is_flag=True, help="Exit with the code of the loop's state, not 0.")
@state_dir
def status(
    loop: str | None = None,
    all_: bool = False,
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
    registry = Registry(state_dir)
    loops = [registry.find(loop, cd)] if loop else registry.everywhere()
    listed = [each for each in loops if loop or all_ or not each.state.dismissed]
    found = views.by_need(with_leftovers(listed))
    if as_json:
        from bydawn.operations.next_steps import next_steps  # the list for people has only the first of them

        render.emit_json({"loops": [views.loop_view(each, next_steps(each)) for each in found]})
    else:
        _show([views.status_line(each) for each in found], len(loops) - len(listed))
        render.next_steps(render.typed_steps(views.first_step(found)))
    codes = [EXIT_CODES[each.state.stopped.end] for each in found if each.state.stopped and not each.trouble]
    return max(codes, default=0) if exit_code else 0


def _show(lines: list[views.StatusLine], hidden: int) -> None:
    if not lines and not hidden:
        click.echo("  No loops yet.\n")
        click.echo(f"  Watch one    {render.typed('demo')}")
        click.echo("  Start one    " + render.typed('run "…"'))
        return
    if lines:
        click.echo("\n".join(_rows(lines)))  # at once: with 1,000 loops every call would be felt
    if hidden:
        click.echo(f"  {plural(hidden, 'dismissed loop')} not listed: {render.typed('status --all')}")


def _rows(lines: list[views.StatusLine]) -> Iterator[str]:
    names = min(24, max(len(line.view.loop) for line in lines))
    width = render.width()
    for line in lines:
        begin = f"  {shorten(line.view.loop, names):<{names}}  {render.state(line.view.state, 13)}"
        rest = " · ".join(part for part in (line.progress, line.liveness) if part)
        folder = visible(render.tilde(line.view.workspace))
        if names + len(rest) + 18 > width:
            yield begin.rstrip()
            yield from (f"      {row}" for row in render.wrapped(rest, 6))
            yield f"      {folder if len(folder) <= width - 6 else '…' + folder[7 - width :]}"
        elif names + len(rest) + len(folder) + 20 > width:
            yield f"{begin} {rest}\n      {folder}"
        else:
            yield f"{begin} {rest}  {folder}"
        if line.reason:
            yield from (f"      {row}" for row in render.wrapped(shorten(plain(line.reason), 300), 6))
