"""`doctor` and `version`: check the setup, repair damage, print the version."""

from collections.abc import Iterable
from pathlib import Path

import click

from bydawn import __version__
from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.redact import rewritten
from bydawn.core.text import plain
from bydawn.operations import doctor as operation
from bydawn.operations.doctor import Finding
from bydawn.operations.preconditions import found_workspace
from bydawn.operations.settings import secrets
from bydawn.store.registry import Registry


@command()
@loop_argument
@option("--repair", is_flag=True, help="Move the damaged part of a loop's history to a file.")
@cd
@as_json
@state_dir
def doctor(loop: str | None, repair: bool, cd: Path | None, as_json: bool, state_dir: Path | None) -> int:
    """Check this machine, the settings, and the history of every loop.

    \b
    Examples
      bydawn doctor
      bydawn doctor --repair shop-api
    """
    registry = Registry(state_dir)
    loops = [registry.find(loop, cd)] if loop else registry.everywhere()
    if repair:
        findings = [operation.repair(each) for each in loops if loop or each.trouble]
    else:
        findings = [*operation.examine(registry, loops, found_workspace(cd))]
    return show_findings(findings, as_json=as_json)


def show_findings(found: Iterable[Finding], *, as_json: bool) -> int:
    """Print what was looked at; the exit code says whether all of it is well."""
    hide = secrets().hide
    findings = [rewritten(finding, lambda text: hide(plain(text))) for finding in found]
    ok = all(finding.ok for finding in findings)
    if as_json:
        render.emit_json({"ok": ok, "findings": findings})
        return 0 if ok else 1
    for finding in findings:
        click.echo(f"  {'✓' if finding.ok else '✗'} {finding.name}: {finding.detail}")
        if finding.hint:
            click.echo(f"    → {render.as_typed(finding.hint)}")
    if not findings:
        click.echo("  Nothing to repair.")
    return 0 if ok else 1


@command()
@as_json
def version(as_json: bool) -> None:
    """Print the version."""
    if as_json:
        render.emit_json({"version": __version__})
    else:
        click.echo(f"bydawn {__version__}")
