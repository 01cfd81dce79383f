"""`resume`: continue a paused, stopped or crashed loop, perhaps with new limits."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bydawn.cli.command import command, option
from bydawn.cli.foreground import detach, plain, run_in_foreground
from bydawn.cli.options import cd, loop_argument, read, state_dir
from bydawn.core import kinds
from bydawn.core.breakers import Limits, NewLimit
from bydawn.core.errors import UserError
from bydawn.core.kinds import Value
from bydawn.core.values import Act, Advice
from bydawn.operations import resume as operation
from bydawn.operations import settings
from bydawn.process.guardian import Tether
from bydawn.settings.setting import Setting
from bydawn.settings.table import TABLE
from bydawn.store.registry import Registry

# -- new limits --------------------------------------------------------------------------------------------------------


def moment(text: str) -> datetime:
    """A time in the future: `07:00` (the next one, local time) or `2026-11-16T07:00`."""
    now = datetime.now(UTC)
    found = kinds.next_moment(read(kinds.moment, text), now.astimezone())
    if found is None or found <= now:
        raise click.BadParameter(f"{text!r} is in the past")
    return found


class Raise:
    """A new value for a limit: `50`, or `+20` on top of the current one."""

    def __init__(self, text: str, unit: Callable[[str], Value]) -> None:
        self._text = text
        self._adds = text.startswith("+")
        value = read(unit, text.removeprefix("+"))
        self._value = value if isinstance(value, int | float) else 0

    def over(self, current: float | None, flag: str) -> float:
        """The new limit; `flag` is the option that sets it."""
        if self._adds and not current:
            # Adding to no limit would create one: the opposite of what is asked for.
            raise UserError(
                f"{flag} {self._text} has nothing to add to",
                cause="this loop has no such limit",
                hint=f"drop it, or set a limit for the whole loop: {flag} {self._text[1:]}",
            )
        return (current or 0) + self._value if self._adds else self._value


def new_limit(setting: Setting) -> Callable[[str], NewLimit]:
    """The type of an option that changes a limit."""
    field = setting.field.removeprefix("limits.")

    def at(text: str) -> NewLimit:
        found = moment(text)
        return NewLimit(field, lambda _: found)

    def more(text: str) -> NewLimit:
        wanted = Raise(text, setting.kind.read)
        return NewLimit(field, lambda limits: wanted.over(getattr(limits, field), setting.flags[-1]))

    if setting.kind is kinds.BUDGET:
        return _budget
    return at if setting.kind is kinds.MOMENT else more


def _budget(text: str) -> NewLimit:
    """A new budget: `5usd` instead of the current one, `+3usd` on top of it."""
    unit, _ = read(kinds.budget, text.removeprefix("+"))
    wanted = Raise(text, lambda word: kinds.budget(word)[1])

    def value(current: Limits) -> float:
        amounts = {"usd": current.usd, "tok": current.tokens}
        if text.startswith("+"):
            _refuse_other_unit(text, unit, amounts)
        new = wanted.over(amounts[unit], "--budget")
        return new if unit == "usd" else int(new)

    return NewLimit("usd" if unit == "usd" else "tokens", value)


def _refuse_other_unit(text: str, unit: str, amounts: dict[str, float | None]) -> None:
    """Dollars cannot be added to tokens; the budget that is used up would still stop the loop."""
    other, name = ("tok", "tokens") if unit == "usd" else ("usd", "dollars")
    if (amount := amounts[other]) and not amounts[unit]:
        now = kinds.amount_text(other, amount)
        raise UserError(
            f"--budget {text} cannot be added to this loop's budget",
            cause=f"it is in {name}: {now}",
            hint=f"raise it in the same unit, for example: --budget +{now}",
        )


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for every limit that can be changed; None if it is not given."""
    for setting in reversed([row for row in TABLE if row.raises]):
        word = setting.metavar or "N"
        command = option(
            *setting.flags,
            setting.key,
            type=new_limit(setting),
            metavar=word if setting.kind is kinds.MOMENT else f"+{word}|{word}",
            help=setting.raises,
        )(command)
    return command


# -- the command -------------------------------------------------------------------------------------------------------


@command()
@loop_argument
@cd
@limit_options
@option("--approve", is_flag=True, help="Approve the checkpoint and continue.")
@option("--accept", is_flag=True, help="Accept changes to protected files or the task list.")
@option("--once", is_flag=True, help="Run only one round.")
@option("--all", "all_", is_flag=True, help="Every loop that crashed or that a shutdown ended, in the background.")
@option("--stopped", is_flag=True, help="With --all, also those that a person paused or stopped.")
@option("--foreground", is_flag=True, help="With --all, stay and start them again if they die; for a service.")
@detach
@plain
@state_dir
@click.pass_obj
def resume(
    tether: Tether | None,
    /,
    loop: str | None,
    cd: Path | None,
    state_dir: Path | None,
    approve: bool,
    accept: bool,
    once: bool,
    all_: bool,
    stopped: bool,
    foreground: bool,
    detach: bool,
    plain: bool,
    **limits: NewLimit | None,
) -> int:
    """Continue a paused, stopped or crashed loop with the settings it was started with.

    \b
    Examples
      bydawn resume
      bydawn resume shop-api --rounds +20
      bydawn resume --all
    """
    new = [each for each in limits.values() if each]
    if all_ and (loop or new or approve or accept or once):
        cause = "each of them goes on with its own settings"
        raise UserError("--all takes no name, limit or approval", cause=cause, hint="resume that loop by its name")
    if stopped and not all_:
        hint = "add --all, or drop it: a loop that you name goes on however it ended"
        raise UserError("--stopped only works with --all", hint=hint)
    if foreground and (not all_ or stopped or detach or cd):
        cause = "it keeps every loop running that crashed or that a shutdown ended, in any folder"
        raise UserError(
            "--foreground only works with --all alone",
            cause=cause,
            hint=Advice(Act("resume", all=True, foreground=True)),
        )
    if all_:
        from bydawn.cli import many  # a single loop needs none of it

        return many.keep_all(state_dir) if foreground else many.resume_all(state_dir, cd, stopped=stopped)
    assert tether  # noqa: S101 - what starts one loop runs under a guardian
    gathered = settings.gather(None)
    gathered.refuse_problems()
    standing = Registry(state_dir).find(loop, cd, resting=True)
    planned = operation.plan(standing, settings.secrets_of(gathered), approve=approve, accept=accept, limits=new)
    return run_in_foreground(
        tether, planned, rounds_allowed=1 if once else None, plain=plain or gathered.switch("plain"), detach=detach
    )
