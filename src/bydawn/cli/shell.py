"""From words on a command line to an exit code; errors end here, in three parts."""

import importlib
import os
import sys
from collections.abc import Callable

import click

from bydawn import __version__
from bydawn.core.errors import UserError

# (heading, ((command, module, what it does), …)): help and dispatch read the same table.
TABLE: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Start",
        (
            ("run", "start", "start a loop in this folder, or go on with one"),
            ("resume", "start", "go on with a loop that stands still; limits can be raised"),
            ("demo", "start", "watch a whole loop with the built-in agent; no account needed"),
        ),
    ),
    (
        "Look",
        (
            ("status", "look", "all loops and how they stand"),
            ("show", "look", "one loop: its rounds, what is missing, what to do"),
            ("logs", "look", "what the agent said"),
            ("events", "look", "the ledger, fact by fact"),
            ("why", "look", "the rule that decided, and what it read"),
        ),
    ),
    (
        "Steer",
        (
            ("tell", "steer", "leave a note for the next prompt"),
            ("pause", "steer", "stand still after this round"),
            ("stop", "steer", "end a loop"),
        ),
    ),
    (
        "Set up",
        (
            ("doctor", "setup", "is everything in order? --repair mends a damaged ledger"),
            ("version", "setup", "which bydawn this is"),
        ),
    ),
)
MODULES = {name: module for _, rows in TABLE for name, module, _ in rows}
EPILOG = """\b
Examples
  bydawn demo
  bydawn run "fix the tests" -a "cmd:my-agent --print" -k "pytest -q"
  bydawn run @goal.md -a cmd:./agent.sh -t TODO.md --until 07:00

\b
Exit codes
  0 complete   1 our failure   2 wrong usage   3 blocked   4 limit
  5 checkpoint   7 agent   8 owned by another worker   130 paused or stopped
"""


class Commands(click.Group):
    """Loads a command's module when it is called, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in MODULES:
            return None
        command = getattr(importlib.import_module(f"bydawn.cli.{MODULES[cmd_name]}"), cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - the table names commands
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A word with a space in it can only be a prompt; a single unknown word is a typo and must start nothing."""
        word = args[0]
        if word in MODULES:
            return super().resolve_command(ctx, args)
        if " " in word.strip():
            return super().resolve_command(ctx, ["run", *args])
        import difflib

        close = difflib.get_close_matches(word, MODULES, n=1)
        hint = f"did you mean `bydawn {close[0]}`?" if close else "`bydawn --help` lists the commands"
        raise UserError(f"there is no command {word!r}", cause="nothing was started", hint=hint)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for heading, rows in TABLE:
            with formatter.section(heading):
                formatter.write_dl([(name, what) for name, _, what in rows])


@click.command(
    cls=Commands,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="bydawn", message="%(prog)s %(version)s")
@click.pass_context
def bydawn(ctx: click.Context) -> None:
    """Run a coding agent again and again on one goal until machines agree that the work is done.

    Alone, it shows how all loops stand; it never starts anything.
    """
    if ctx.invoked_subcommand is None:
        from bydawn.cli.look import status

        ctx.invoke(status)


def run(arguments: list[str]) -> int:
    """Run the command line; the exit code."""
    return shielded(lambda: bydawn.main(arguments, prog_name="bydawn", standalone_mode=False))


def shielded(work: Callable[[], object]) -> int:
    """What went wrong, said in three parts; the one place where errors end."""
    try:
        code = work()
    except UserError as error:
        return _say(error.what, error.cause, error.hint, error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bydawn"
        return _say(error.format_message().rstrip("."), "", f"`{command} --help` says what there is", 2)
    except click.ClickException as error:
        return _say(error.format_message(), "", "", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _say(
            f"the system refused{where}", error.strerror or str(error), "look at the disk and its permissions", 1
        )
    return code if isinstance(code, int) else 0


def _say(what: str, cause: str, hint: str, code: int) -> int:
    from bydawn.cli.render import as_typed

    for label, text in [("error", what), ("cause", cause), (" hint", as_typed(hint))]:
        if text:
            click.echo(f"{label}: {text}", err=True)
    return code
