"""`run`, `resume` and `demo`: what a worker does, under its guardian."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli.command import Command, command, option
from bydawn.cli.options import cd, given_by_flags, loop_argument, setting_options, state_dir
from bydawn.cli.values import budget, count, moment, more, span
from bydawn.core.errors import UserError
from bydawn.guardian import Tether

if TYPE_CHECKING:  # imported when they are needed, so that `--help` is quick
    from bydawn.cli.voice import Voice
    from bydawn.core.layers import Settings
    from bydawn.core.loop import Limits
    from bydawn.operations.start import Plan

plain = option("--plain", is_flag=True, help="Flat lines, no colour, nothing redrawn.")


class WithRest(Command):
    """Whatever stands after `--` is for the agent, even where a prompt is missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta["rest"] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)


@command(cls=WithRest)
@click.argument("prompt", required=False, metavar="[PROMPT|-|@FILE]")
@option("--name", help="The loop's name; default: the folder's.")
@cd
@option("--once", is_flag=True, help="One round only, then stand still.")
@option("--new", is_flag=True, help="Start another loop even if one here is unfinished.")
@option("--dry-run", is_flag=True, help="Show command, prompt, checks and limits; run nothing.")
@option("--dangerously-full-access", is_flag=True, help="The same as --sandbox full: no sandbox at all.")
@option("--no-project", is_flag=True, help="Leave out the settings of the folder's bydawn.toml.")
@setting_options
@click.pass_obj
def run(
    tether: Tether,
    /,
    prompt: str | None,
    name: str | None,
    cd: Path,
    once: bool,
    new: bool,
    dry_run: bool,
    dangerously_full_access: bool,
    no_project: bool,
    **flags: Any,
) -> int:
    """Start a loop in this folder, or go on with the one that has the same goal.

    PROMPT is what to do; `-` reads it from standard input, `@FILE` from a file. With neither
    --done-when, tasks nor checks the agent must end with <promise>TASK_COMPLETE</promise>.

    \b
    Examples
      bydawn run "fix the tests" -k "pytest -q"
      bydawn run -t TODO.md -a claude -a codex -k "make test" --until 07:00
      bydawn run - -a cmd:./agent.sh < goal.md
    """
    import msgspec

    from bydawn.config import strange_variables
    from bydawn.operations import settings, start

    workspace = start.checked_workspace(cd)
    rest = click.get_current_context().meta.get("rest", ())
    flags |= {"prompt": _prompt(prompt), "agent_args": (*flags["agent_args"], *rest)}
    if dangerously_full_access:
        flags["sandbox"] = "full"
    gathered = settings.gather(None if no_project else workspace, given_by_flags(flags))
    gathered.refuse_problems()
    planned = start.plan(settings.wish(gathered, workspace, name=name, new=new))
    planned = msgspec.structs.replace(planned, warnings=(*planned.warnings, *strange_variables(os.environ)))
    if dry_run:
        from bydawn.cli.render import rehearsal

        rehearsal(start.rehearse(planned))
        return 0
    if gathered.has_project:
        be_trusted(gathered, workspace, flags["state_dir"])
    warn_if_unbounded(planned)
    return work(tether, planned, once=once, plain=gathered.switch("plain"))


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
      bydawn resume shop-api --rounds +20 --for +2h
    """
    import msgspec

    from bydawn.core.breakers import limits_of
    from bydawn.host.registry import Registry
    from bydawn.operations import settings
    from bydawn.operations.start import plan_resume

    gathered = settings.gather(None)
    gathered.refuse_problems()
    standing = Registry(state_dir).find(loop, cd.resolve())
    asked = _asked(limits_of(standing.loop, standing.state), limits)
    planned = plan_resume(standing, settings.secrets_of(gathered), approve=approve, accept=accept, limits=asked)
    plain = plain or gathered.switch("plain")
    warn_if_unbounded(planned)

    def raised(current: "Limits") -> "Limits":
        return msgspec.structs.replace(current, **_asked(current, limits))

    return work(tether, planned, once=once, plain=plain, raising=raised)


@command()
@plain
@state_dir
@click.pass_obj
def demo(tether: Tether, /, plain: bool, state_dir: Path | None) -> int:
    """Watch a whole loop: a throw-away repository, the built-in agent, a real test suite.

    No account, no network. One round fails its check and is told so; once the agent says
    "all done" too early and is not believed.
    """
    import msgspec

    from bydawn.cli.voice import DemoVoice
    from bydawn.operations import settings, start
    from bydawn.operations.demo import prepare

    planned = start.plan(msgspec.structs.replace(prepare(), state_dir=state_dir))
    return work(tether, planned, plain=plain or settings.gather(None).switch("plain"), voice=DemoVoice())


def work(
    tether: Tether,
    planned: "Plan",
    *,
    once: bool = False,
    plain: bool = False,
    voice: "Voice | None" = None,
    raising: Callable[["Limits"], "Limits"] | None = None,
) -> int:
    """Run the loop to its end, here in the worker, in front of a person."""
    from bydawn.cli.render import state_folder
    from bydawn.cli.terminal import Terminal
    from bydawn.cli.voice import OwnVoice
    from bydawn.core.facts import End
    from bydawn.operations.start import perform

    voice = voice or OwnVoice()
    terminal = Terminal(planned, plain=plain, voice=voice)
    try:
        for warning in planned.warnings:
            terminal.warn(warning)
        stopped = perform(planned, tether, followers=(terminal,), once=once, raised=raising, say=terminal.warn)
        if stopped.end is End.CHECKPOINT and planned.loop.checkpoint and planned.loop.checkpoint.mode == "pause":
            ours = [*state_folder(), *(["--plain"] if plain else [])]
            tether.leave([*voice.go_on(planned.loop), *(ours if planned.loop.dialect is None else [])])
        return voice.exit_code(stopped)
    finally:
        terminal.close()


def warn_if_unbounded(planned: "Plan") -> None:
    """A banner, each time: nobody should have to remember what they allowed."""
    if planned.loop.sandbox == "full":
        click.echo(f"{'!' * 64}", err=True)
        click.echo(f"!! FULL ACCESS: {' and '.join(planned.loop.pool)} runs without any sandbox, as you.", err=True)
        click.echo(f"{'!' * 64}", err=True)


def _prompt(given: str | None) -> str | None:
    """Read while we are still in the terminal's foreground group."""
    if given == "-":
        given = sys.stdin.read()
    elif given and given.startswith("@"):
        path = Path(given[1:])
        try:
            given = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or str(error)
            raise UserError(
                f"the prompt {path} cannot be read", cause=cause, hint="give @FILE an existing text"
            ) from None
    return given if given and given.strip() else None


def be_trusted(gathered: "Settings", workspace: Path, state_dir: Path | None) -> None:
    """Nothing of a repository's own settings runs that a person has not agreed to."""
    from bydawn.cli.trust import asked
    from bydawn.host.registry import Registry
    from bydawn.operations import trust
    from bydawn.trust import Trusts

    trusts = Trusts(Registry(state_dir).root)
    question = trust.question(gathered, workspace, trusts)
    if question is None:
        trust.use(gathered, workspace, trusts)
    elif not sys.stdin.isatty():
        raise question.refusal()
    elif not asked(question):
        raise UserError("it was not trusted", cause="nothing was started", hint="run without it: --no-project")
    else:
        trust.agree(question.powers, workspace, trusts)


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
