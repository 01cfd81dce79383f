"""`health` and `metrics`: is all well, and figures over all loops."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import command
from bydawn.cli.options import as_json, cd, state_dir
from bydawn.core.text import plain, shorten
from bydawn.operations import health as healths
from bydawn.operations import metrics as figures
from bydawn.operations.amounts import plural
from bydawn.store.registry import Registry

_SIGNS = {"ok": "✓", "degraded": "!", "error": "✗"}
_INDENT = 15  # columns for the labels of figures


@command()
@cd
@as_json
@state_dir
def health(cd: Path | None, as_json: bool, state_dir: Path | None) -> int:
    """Say whether all is well: exit code 0, 2 if a loop needs you, 3 if something is broken.

    Broken means: a damaged loop, one that gives no sign of life, or a state folder that cannot be written.

    \b
    Examples
      bydawn health
      bydawn health --json
    """
    registry = Registry(state_dir)
    every = registry.here(cd) if cd else registry.everywhere()
    found = healths.health(registry.root, every, healths.of_service(registry))
    if as_json:
        render.emit_json(found)
        return found.verdict.exit_code
    for finding in found.findings:
        render.paragraph(f"{_SIGNS[finding.verdict]} {finding.verdict}: {shorten(plain(finding.what), 300)}")
        for step in [finding.hint] if finding.hint else []:
            click.echo(f"    → {render.typed(step.command) or step.why}")
    if not found.findings:
        click.echo(f"  {_SIGNS['ok']} ok: {plural(found.loops, 'loop')}" if found.loops else "  No loops.")
    return found.verdict.exit_code


@command()
@cd
@as_json
@state_dir
def metrics(cd: Path | None, as_json: bool, state_dir: Path | None) -> None:
    """Add up how loops ended, what they cost, and how often a person had to help.

    \b
    Examples
      bydawn metrics
      bydawn metrics --json
    """
    registry = Registry(state_dir)
    found = figures.metrics(registry.here(cd) if cd else registry.everywhere())
    if as_json:
        render.emit_json(found)
        return
    if not found.loops:
        click.echo("  No loops.")
        return
    for field in figures.metrics_fields(found):
        render.field(field.label, field.text, _INDENT)
