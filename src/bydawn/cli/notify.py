"""`notify`: test where notices are sent."""

from pathlib import Path

import click

from bydawn.cli import render
from bydawn.cli.command import group
from bydawn.cli.foreground import be_trusted
from bydawn.cli.options import as_json, cd, read, state_dir
from bydawn.core import kinds
from bydawn.core.errors import UserError
from bydawn.core.values import Act, Advice
from bydawn.operations.notices import try_out
from bydawn.operations.preconditions import found_workspace, refuse_inside_a_round
from bydawn.operations.settings import gather
from bydawn.settings.setting import Layer


@group()
def notify() -> None:
    """Test where notices are sent.

    \b
    Examples
      bydawn notify test
      bydawn notify test ntfy://my-topic
    """


@notify.command()
@click.argument("urls", nargs=-1, metavar="[URL]…")
@cd
@as_json
@state_dir
def test(urls: tuple[str, ...], cd: Path | None, as_json: bool, state_dir: Path | None) -> int:
    """Send a test notice to each URL, or to those in your settings."""
    refuse_inside_a_round()
    workspace = found_workspace(cd)
    addresses = tuple(read(kinds.address, url) for url in urls)
    if not urls:
        gathered = gather(workspace)
        gathered.refuse_problems()
        addresses = gathered.texts("notify")
        if gathered["notify"].layer is Layer.PROJECT:
            be_trusted(gathered, workspace, state_dir)
    if not addresses:
        test, keep = Act("notify test", "URL"), Act("config set --user", "notify", "URL")
        hint = Advice("add one (", test, "), or set it: ", keep)
        raise UserError("no address to send a notice to", cause="none was given, and none is set", hint=hint)
    tried = try_out(addresses, workspace)
    if as_json:
        render.emit_json({"notices": tried})
    else:
        for each in tried:
            detail = each.detail or ("sent" if each.sent else "not sent")
            click.echo(f"  {'✓' if each.sent else '✗'} {each.to}  {detail}")
    return 0 if all(each.sent for each in tried) else 1
