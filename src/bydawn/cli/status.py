"""`status`, which is also what `bydawn` alone says."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import EXIT_CODES
from bydawn.operations import look
from bydawn.store.registry import Registry, Standing


@command()
@loop_argument
@cd
@as_json
@option("--exit-code", is_flag=True, help="Exit with the code of the loop's state instead of 0.")
@state_dir
def status(
    loop: str | None = None,
    cd: Path = Path(),
    as_json: bool = False,
    exit_code: bool = False,
    state_dir: Path | None = None,
) -> int:
    """All loops and how they stand; those that need you come first.

    \b
    Examples
      bydawn status
      bydawn status shop-api --json
    """
    registry = Registry(state_dir)
    found = [registry.find(loop, cd.resolve())] if loop else _by_need(registry.everywhere())
    if as_json:
        render.emit_json({"loops": [look.summary(each) for each in found]})
    else:
        _status_rows(found)
    codes = [EXIT_CODES[each.state.stopped.end] for each in found if each.state.stopped and not each.trouble]
    return max(codes, default=0) if exit_code else 0


def _by_need(found: list[Standing]) -> list[Standing]:
    def rank(each: Standing) -> tuple[int, float]:
        changed = each.state.updated_at.timestamp() if each.state.updated_at else 0.0
        return (0 if each.status in render.NEEDS_YOU else 1 if each.alive else 2), -changed

    return sorted(found, key=rank)


def _status_rows(found: list[Standing]) -> None:
    if not found:
        click.echo("  No loops yet.\n")
        click.echo(f"  Watch one    {render.typed('demo')}")
        click.echo("  Start one    " + render.typed('run "…"'))
        return
    names = min(24, max(len(each.loop.id) for each in found))
    width = render.width()
    for each in found:
        name = shorten(each.loop.id, names)
        line = f"  {name:<{names}}  {render.state(each.status, 13)}"
        rest = " · ".join(part for part in (render.counts(each), liveness(each)) if part)
        narrow = len(each.loop.id) + len(rest) + 24 > width
        click.echo(f"{line}\n      {rest}" if narrow else f"{line} {rest}")
        if (reason := look.reason(each)) and each.status in render.NEEDS_YOU:
            render.paragraph(shorten(plain(reason), 300), indent=6)
    needy = next((each for each in found if each.status in render.NEEDS_YOU), None)
    if needy:
        render.commands([(render.typed(f"show {needy.reference}"), "what happened and what to do")])


def liveness(each: Standing) -> str:
    age = look.last_output_age(each)
    if age is not None:
        return f"alive, last output {duration(age)} ago"
    return "alive" if each.alive else render.ago(each.state.updated_at)
