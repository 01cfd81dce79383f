"""`agents`: list agents, and test one."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import group, option
from bydawn.cli.options import as_json, state_dir
from bydawn.core.errors import UserError
from bydawn.core.text import plain
from bydawn.core.values import Act, Advice, Next
from bydawn.operations.agents import cool_downs, forget_cool_down, found_here, login_needed
from bydawn.operations.preconditions import refuse_inside_a_round

_WORD = "ready.txt"
_PROMPT = f"Write the single word ready into the file {_WORD} in this folder, and say that you have done it."
_WIDE = "100"  # columns


@group()
def agents() -> None:
    """List agents, and test whether one works.

    \b
    Examples
      bydawn agents list
      bydawn agents test claude
    """


@agents.command(name="list")
@as_json
@state_dir
def list_(as_json: bool, state_dir: Path | None) -> None:
    """List agents: installed, version, logged in, usage limits."""
    found, limited = found_here(Path.cwd()), cool_downs(state_dir)
    if as_json:
        render.emit_json({"agents": found, "limited": limited})
        return
    for each in found:
        if each.path is None:
            click.echo(f"  ✗ {each.name:<9} not found")
            continue
        login = {True: "logged in", False: f"not logged in: {each.login}", None: "login unknown"}[each.logged_in]
        version = each.version or "version unknown"
        mark = "" if each.is_tested else f" (tested with {each.tested}x)"
        click.echo(f"  {'✗' if each.logged_in is False else '✓'} {each.name:<9} {plain(version)}{mark} · {login}")
        click.echo(f"    {plain(each.path)}")
    click.echo("  ✓ cmd:…     any program that reads a prompt from standard input")
    for cool_down in limited:
        until = f"{cool_down.until.astimezone():%a %H:%M}"
        click.echo(f"  ◷ {plain(cool_down.agent)} is at its usage limit until {until} (loop {plain(cool_down.loop)})")
    if limited:
        again = Act("agents test", limited[0].agent)
        render.next_steps([Next(command=again, why="try it; if it works, the limit is cleared")])


@agents.command()
@click.argument("name")
@option("-m", "--model", help="Model of the agent.")
@state_dir
def test(name: str, model: str | None, state_dir: Path | None) -> int:
    """Run one short turn in a temporary folder: can the agent start, log in and write a file?"""
    refuse_inside_a_round()
    chosen = ["-m", model] if model else []
    with tempfile.TemporaryDirectory(prefix="bydawn-agent-", ignore_cleanup_errors=True) as place:
        repo, state = f"{place}/repo", f"{place}/state"
        Path(repo).mkdir()
        command = [sys.argv[0], "run", _PROMPT, "-a", name, "-C", repo, "--state-dir", state, "-n", "1"]
        code = _tried([*command, "--require-path", _WORD, "--no-promise", "--no-project", "--plain", *chosen], state)
    if code:
        login = login_needed(name, Path.cwd())
        advice = f"log in with `{login}`, then run" if login else "once that is fixed, run"
        hint = Advice(f"{advice} ", Act("agents test", name))
        raise UserError(f"{name} does not work", cause="its output is above", hint=hint, exit_code=7)
    forget_cool_down(name, state_dir)
    click.echo(f"\n  ✓ {name} works.")
    return 0


def _tried(command: list[str], gone: str) -> int:
    """Run it and show its output, without the commands it offers: their folder is about to be removed."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "COLUMNS": _WIDE}) as process:
        assert process.stdout  # noqa: S101 - it was asked for
        is_gone = False
        for line in process.stdout:
            # What a command does may be on the next line, further in.
            is_gone = os.fsencode(gone) in line or (is_gone and line.startswith(b"      "))
            if not is_gone:
                click.echo(line, nl=False)
    return process.returncode
