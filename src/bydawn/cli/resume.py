"""`resume`: continue a paused, stopped or crashed loop."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli.command import command, option
from bydawn.cli.foreground import plain, run_in_foreground, warn_if_unbounded
from bydawn.cli.options import cd, loop_argument, state_dir
from bydawn.cli.values import new_limit
from bydawn.process.guardian import Tether

if TYPE_CHECKING:  # imported when they are needed, so that `--help` is quick
    from bydawn.core.breakers import NewLimit


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for every limit that can be changed; None if it is not given."""
    from bydawn.core.kinds import MOMENT
    from bydawn.settings.table import TABLE

    for setting in reversed([row for row in TABLE if row.raises]):
        word = setting.metavar or "N"
        command = option(
            *setting.flags,
            setting.key,
            type=new_limit(setting),
            metavar=word if setting.kind is MOMENT else f"+{word}|{word}",
            help=setting.raises,
        )(command)
    return command


@command()
@loop_argument
@cd
@limit_options
@option("--approve", is_flag=True, help="Approve the checkpoint and continue.")
@option("--accept", is_flag=True, help="Accept changes to protected files or the task list.")
@option("--once", is_flag=True, help="Run only one round.")
@plain
@state_dir
@click.pass_obj
def resume(
    tether: Tether,
    /,
    loop: str | None,
    cd: Path,
    state_dir: Path | None,
    approve: bool,
    accept: bool,
    once: bool,
    plain: bool,
    **limits: "NewLimit | None",
) -> int:
    """Continue a paused, stopped or crashed loop with the settings it was started with.

    \b
    Examples
      bydawn resume
      bydawn resume shop-api --rounds +20
    """
    from bydawn.operations import resume as operation
    from bydawn.operations import settings
    from bydawn.store.registry import Registry

    gathered = settings.gather(None)
    gathered.refuse_problems()
    standing = Registry(state_dir).find(loop, cd.resolve())
    new = [each for each in limits.values() if each]
    planned = operation.plan(standing, settings.secrets_of(gathered), approve=approve, accept=accept, limits=new)
    warn_if_unbounded(planned)
    return run_in_foreground(tether, planned, once=once, plain=plain or gathered.switch("plain"))
