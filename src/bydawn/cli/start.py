"""`run`, `resume` and `demo`: what a worker does, under its guardian."""

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli.options import cd, loop_argument, state_dir
from bydawn.cli.values import count, moment, more, over, size, span
from bydawn.core.errors import UserError
from bydawn.guardian import Tether

if TYPE_CHECKING:  # imported when they are needed, so that `--help` is quick
    from bydawn.core.loop import Limits
    from bydawn.operations.start import Plan, Wish


@click.command()
@click.argument("prompt", required=False, metavar="[PROMPT|-|@FILE]")
@click.option("-a", "--agent", default="", metavar="NAME", help="The agent: demo, or cmd:PROGRAM ARGS.")
@click.option("-k", "--check", multiple=True, metavar="CMD", help="A command that must exit 0; repeatable.")
@click.option("-t", "--tasks", metavar="FILE", help="A Markdown file with `- [ ]` boxes.")
@click.option("-n", "--rounds", default=30, show_default=True, type=click.IntRange(0), help="Rounds at most; 0 = any.")
@click.option("--for", "for_", type=span, metavar="TIME", help="Work at most so long (8h, 90m).")
@click.option("--until", type=moment, metavar="MOMENT", help="Start no round after this moment (07:00).")
@click.option("--name", help="The loop's name; default: the folder's.")
@cd
@click.option("--once", is_flag=True, help="One round only, then stand still.")
@click.option("--new", is_flag=True, help="Start another loop even if one here is unfinished.")
@click.option("--dry-run", is_flag=True, help="Show command, prompt, checks and limits; run nothing.")
@click.option("--done-when", metavar="TEXT", help="The promise that the agent must give.")
@click.option("--done-mode", type=click.Choice(["tag", "line", "regex"]), help="How the promise is written.  [tag]")
@click.option("--require-path", multiple=True, metavar="PATH", help="A path that must exist; repeatable.")
@click.option("--require-text", multiple=True, metavar="FILE::TEXT", help="A text that must stand in a file.")
@click.option(
    "--round-timeout", type=span, metavar="TIME", default="30m", show_default=True, help="Longest round; 0 = no limit."
)
@click.option(
    "--silence-timeout", type=span, metavar="TIME", default="10m", show_default=True, help="Longest time without life."
)
@click.option(
    "--first-byte-timeout", type=span, metavar="TIME", default="5m", show_default=True, help="Longest wait for a word."
)
@click.option(
    "--linger-timeout",
    type=span,
    metavar="TIME",
    default="30s",
    show_default=True,
    help="Time to exit after the result.",
)
@click.option(
    "--output-limit", type=size, metavar="SIZE", default="1GB", show_default=True, help="Most output of one round."
)
@click.option("--check-timeout", type=span, metavar="TIME", default="5m", show_default=True, help="Longest check.")
@click.option("--max-no-change", type=click.IntRange(0), default=5, show_default=True, help="Rounds without progress.")
@click.option("--max-failures", type=click.IntRange(0), default=3, show_default=True, help="Agent failures in a row.")
@click.option("--plain", is_flag=True, help="Flat lines, no colour, nothing redrawn.")
@state_dir
@click.pass_obj
def run(tether: Tether, /, prompt: str | None, dry_run: bool, once: bool, plain: bool, **options: Any) -> int:
    """Start a loop in this folder, or go on with the one that has the same goal.

    PROMPT is what to do; `-` reads it from standard input, `@FILE` from a file. With neither
    --done-when, tasks nor checks the agent must end with <promise>TASK_COMPLETE</promise>.

    \b
    Examples
      bydawn run "fix the tests" -a "cmd:my-agent --print" -k "pytest -q"
      bydawn run -t TODO.md -a cmd:./agent.sh -k "make test" --until 07:00
      bydawn run - -a cmd:./agent.sh < goal.md
    """
    text = _prompt(prompt)
    _refuse_contradictions(options)

    from bydawn.operations import start

    planned = start.plan(_wish(text, options))
    if dry_run:
        from bydawn.cli.render import rehearsal

        rehearsal(start.rehearse(planned))
        return 0
    return _work(tether, planned, once=once, plain=plain)


@click.command()
@loop_argument
@cd
@click.option("-n", "--rounds", type=more(count), metavar="+N|N", help="Raise the limit of rounds.")
@click.option("--for", "for_", type=more(span), metavar="+TIME|TIME", help="Raise the time limit.")
@click.option("--until", type=moment, metavar="MOMENT", help="A new moment to end.")
@click.option("--max-no-change", type=more(count), metavar="+N|N", help="Raise the no-progress limit.")
@click.option("--max-failures", type=more(count), metavar="+N|N", help="Raise the limit of failures in a row.")
@click.option("--once", is_flag=True, help="One round only, then stand still.")
@click.option("--plain", is_flag=True, help="Flat lines, no colour, nothing redrawn.")
@state_dir
@click.pass_obj
def resume(
    tether: Tether, /, loop: str | None, cd: Path, state_dir: Path | None, once: bool, plain: bool, **limits: Any
) -> int:
    """Go on with a loop that stands still, with the settings it was started with.

    \b
    Examples
      bydawn resume
      bydawn resume shop-api --rounds +20 --for +2h
    """
    from bydawn.host.registry import Registry
    from bydawn.operations.start import plan_resume

    planned = plan_resume(Registry(state_dir).find(loop, cd.resolve()))
    return _work(tether, planned, once=once, plain=plain, raising=lambda current: _raised(current, limits))


@click.command()
@click.option("--plain", is_flag=True, help="Flat lines, no colour, nothing redrawn.")
@state_dir
@click.pass_obj
def demo(tether: Tether, /, plain: bool, state_dir: Path | None) -> int:
    """Watch a whole loop: a throw-away repository, the built-in agent, a real test suite.

    No account, no network. One round fails its check and is told so; once the agent says
    "all done" too early and is not believed.
    """
    import msgspec

    from bydawn.operations import start
    from bydawn.operations.demo import prepare

    planned = start.plan(msgspec.structs.replace(prepare(), state_dir=state_dir))
    return _work(tether, planned, plain=plain, is_demo=True)


def _work(
    tether: Tether,
    planned: "Plan",
    *,
    once: bool = False,
    plain: bool = False,
    is_demo: bool = False,
    raising: Callable[["Limits"], "Limits"] | None = None,
) -> int:
    """Run the loop to its end, here in the worker, in front of a person."""
    from bydawn.cli.terminal import Terminal
    from bydawn.core.facts import EXIT_CODES
    from bydawn.operations.start import perform

    terminal = Terminal(planned, plain=plain, is_demo=is_demo)
    try:
        for warning in planned.warnings:
            terminal.warn(warning)
        stopped = perform(planned, tether, followers=(terminal,), once=once, raised=raising, say=terminal.warn)
        return EXIT_CODES[stopped.end]
    finally:
        terminal.close()


def _prompt(given: str | None) -> str:
    """Read while we are still in the terminal's foreground group."""
    if given == "-":
        return sys.stdin.read()
    if given and given.startswith("@"):
        path = Path(given[1:])
        try:
            return path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or str(error)
            raise UserError(
                f"the prompt {path} cannot be read", cause=cause, hint="give @FILE an existing text"
            ) from None
    return given or ""


def _refuse_contradictions(options: dict[str, Any]) -> None:
    for command in options["check"]:
        if not command.strip():
            raise UserError("a check is empty", cause="-k was given no command", hint='-k "pytest -q"')
    for text in options["require_text"]:
        path, separator, wanted = text.partition("::")
        if not (path and separator and wanted):
            raise UserError(f"--require-text {text!r} names no text", hint='--require-text "README.md::Quick start"')
    if options["done_when"] is not None and not options["done_when"].strip():
        raise UserError("the promise is empty", cause="--done-when was given no text", hint="--done-when ALL_GREEN")
    if options["done_mode"] and options["done_when"] is None and options["done_mode"] != "tag":
        raise UserError(
            f"--done-mode {options['done_mode']} needs a text", hint="give it with --done-when, or leave both away"
        )
    if options["for_"] == 0:
        raise UserError("--for 0 leaves no time to work", hint="--for 8h")


def _wish(text: str, options: dict[str, Any]) -> "Wish":
    from bydawn.core.loop import CommandCheck, Limits, Mode, PathCheck, Promise, TextCheck, Timeouts
    from bydawn.operations.start import Wish

    asked = options["done_when"] is not None or options["done_mode"]
    until: datetime | None = options["until"]
    return Wish(
        workspace=options["cd"],
        prompt=text,
        agent=options["agent"],
        tasks=options["tasks"],
        checks=(
            *(CommandCheck(command=command) for command in options["check"]),
            *(PathCheck(path=path) for path in options["require_path"]),
            *(TextCheck(path=p, text=t) for p, _, t in (each.partition("::") for each in options["require_text"])),
        ),
        promise=Promise(text=options["done_when"] or Promise().text, mode=Mode(options["done_mode"] or "tag"))
        if asked
        else None,
        limits=Limits(
            rounds=options["rounds"],
            seconds=options["for_"],
            until=until,
            no_progress=options["max_no_change"],
            agent_failures=options["max_failures"],
        ),
        timeouts=Timeouts(
            round=options["round_timeout"],
            silence=options["silence_timeout"],
            first_byte=options["first_byte_timeout"],
            linger=options["linger_timeout"],
            check=options["check_timeout"],
            output=options["output_limit"],
        ),
        name=options["name"],
        new=options["new"],
        state_dir=options["state_dir"],
    )


def _raised(current: "Limits", wanted: dict[str, Any]) -> "Limits":
    import msgspec

    return msgspec.structs.replace(
        current,
        rounds=int(over(current.rounds, wanted["rounds"]) or 0),
        seconds=over(current.seconds, wanted["for_"]),
        until=wanted["until"] or current.until,
        no_progress=int(over(current.no_progress, wanted["max_no_change"]) or 0),
        agent_failures=int(over(current.agent_failures, wanted["max_failures"]) or 0),
    )
