"""`resume`: go on with a loop that stands still."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli.command import command, option
from bydawn.cli.options import cd, loop_argument, state_dir
from bydawn.cli.values import budget, count, moment, more, span
from bydawn.cli.work import plain, warn_if_unbounded, work
from bydawn.process.guardian import Tether

if TYPE_CHECKING:  # imported when they are needed, so that `--help` is quick
    from bydawn.core.loop import Limits


@command()
@loop_argument
@cd
@option("-n", "--rounds", type=more(count), metavar="+N|N", help="Raise the limit of rounds.")
@option("--for", "for_", type=more(span), metavar="+TIME|TIME", help="Raise the time limit.")
@option("--until", type=moment, metavar="MOMENT", help="A new moment to end.")
@option("--latest-wake", type=moment, metavar="MOMENT", help="A new moment up to which limits are waited out.")
@option("--budget", type=budget, metavar="+AMOUNT|AMOUNT", help="Raise the budget (+3usd, 5Mtok).")
@option("--max-no-change", type=more(count), metavar="+N|N", help="Raise the no-progress limit.")
@option("--max-failures", type=more(count), metavar="+N|N", help="Raise the limit of failures in a row.")
@option("--max-check-failures", type=more(count), metavar="+N|N", help="Raise the limit of red rounds in a row.")
@option("--max-same-failure", type=more(count), metavar="+N|N", help="Raise the limit of the very same failure.")
@option("--max-task-failures", type=more(count), metavar="+N|N", help="Raise what one task may fail.")
@option("--approve", is_flag=True, help="You have looked: go on past the checkpoint it stands at.")
@option("--accept", is_flag=True, help="Changed protected files, or the task list, may stay so.")
@option("--once", is_flag=True, help="One round only, then stand still.")
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
    **limits: Any,
) -> int:
    """Go on with a loop that stands still, with the settings it was started with.

    \b
    Examples
      bydawn resume
      bydawn resume shop-api --rounds +20
    """
    import msgspec

    from bydawn.core.breakers import limits_of
    from bydawn.operations import resume as operation
    from bydawn.operations import settings
    from bydawn.store.registry import Registry

    gathered = settings.gather(None)
    gathered.refuse_problems()
    standing = Registry(state_dir).find(loop, cd.resolve())
    asked = _asked(limits_of(standing.loop, standing.state), limits)
    planned = operation.plan(standing, settings.secrets_of(gathered), approve=approve, accept=accept, limits=asked)
    plain = plain or gathered.switch("plain")
    warn_if_unbounded(planned)

    def raised(current: "Limits") -> "Limits":
        return msgspec.structs.replace(current, **_asked(current, limits))

    return work(tether, planned, once=once, plain=plain, raising=raised)


_COUNTED = {  # an option of `resume`, the flag that it is, and the limit that it sets
    "rounds": ("--rounds", "rounds"),
    "for_": ("--for", "seconds"),
    "max_no_change": ("--max-no-change", "no_progress"),
    "max_failures": ("--max-failures", "agent_failures"),
    "max_check_failures": ("--max-check-failures", "check_failures"),
    "max_same_failure": ("--max-same-failure", "same_failure"),
    "max_task_failures": ("--max-task-failures", "task_failures"),
}


def _asked(current: "Limits", options: dict[str, Any]) -> dict[str, Any]:
    """The limits that a person asks for, by name; what they say nothing of stays as it is."""
    found = {name: options[name] for name in ("until", "latest_wake") if options[name]}
    for said, (flag, name) in _COUNTED.items():
        if (wanted := options[said]) is not None:
            found[name] = wanted.over(getattr(current, name), flag)
    return found | (options["budget"](current) if options["budget"] else {})
