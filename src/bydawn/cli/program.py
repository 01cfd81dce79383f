"""From words on a command line to an exit code; errors end here, in three parts."""

import importlib
import os
import sys
from collections.abc import Callable

import click

from bydawn import __version__
from bydawn.cli.command import Group, Option
from bydawn.cli.main import starts_a_loop
from bydawn.core.errors import UserError

# (heading, ((command, module, what it does), …)): help and dispatch read the same table.
TABLE: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Start",
        (
            ("run", "start", "start a loop here, or go on with one"),
            ("resume", "resume", "go on with a loop that stands still"),
            ("demo", "start", "watch a whole loop, no account needed"),
            ("as", "dialects", "speak as another tool"),
        ),
    ),
    (
        "Look",
        (
            ("status", "status", "all loops and how they stand"),
            ("show", "look", "one loop: rounds, what is missing"),
            ("logs", "logs", "what the agent said"),
            ("events", "logs", "the ledger, fact by fact"),
            ("why", "look", "which rule decided, and on what"),
        ),
    ),
    (
        "Steer",
        (
            ("tell", "steer", "leave a note for the next prompt"),
            ("tasks", "tasks", "see, add, skip or reopen tasks"),
            ("pause", "steer", "stand still after this round"),
            ("stop", "steer", "end a loop"),
        ),
    ),
    (
        "Set up",
        (
            ("agents", "agents", "which agents are here, do they work"),
            ("config", "config", "settings, and where each came from"),
            ("trust", "trust", "agree to what a repository runs"),
            ("edit", "edit", "open tasks, notes or settings"),
            ("doctor", "setup", "is everything in order? can mend"),
            ("version", "setup", "which bydawn this is"),
        ),
    ),
)
MODULES = {name: module for _, rows in TABLE for name, module, _ in rows}
_NEAR = 0.65  # of 1; the dashes that every option has make no two of them alike
EPILOG = """\b
Examples
  bydawn demo
  bydawn run "fix it" -k "make test"
  bydawn run -t TODO.md -a claude --for 8h

\b
Exit codes
  0 complete      1 our own failure
  2 wrong usage   3 blocked: needs a person
  4 limit         5 checkpoint
  7 the agent     8 owned by another worker
  130 paused or stopped; resume goes on
"""


class Commands(Group):
    """Loads a command's module when it is called, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in MODULES:
            return None
        module = importlib.import_module(f"bydawn.cli.{MODULES[cmd_name]}")
        command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")  # `as` is a word of Python's
        assert isinstance(command, click.Command)  # noqa: S101 - the table names commands
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that a word means, or what it may have meant."""
        word = args[0]
        if word in MODULES:
            return super().resolve_command(ctx, args)
        if starts_a_loop(args):
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
@click.version_option(__version__, cls=Option, prog_name="bydawn", message="%(prog)s %(version)s")
@click.pass_context
def bydawn(ctx: click.Context) -> None:
    """Run a coding agent again and again on one goal until machines agree that the work is done.

    Alone, it shows how all loops stand; it never starts anything.
    """
    if ctx.invoked_subcommand is None:
        from bydawn.cli.status import status

        with status.make_context("status", [], parent=ctx) as alone:
            status.invoke(alone)


def run(arguments: list[str], tether: object = None) -> int:
    """Run the command line, in a worker if there is a tether to a guardian; the exit code."""
    if unreadable := [word for word in arguments if not word.isascii() and _is_broken(word)]:
        return _say("an argument is not UTF-8 text", ascii(unreadable[0]), "write it in UTF-8", 2)
    return shielded(lambda: bydawn.main(arguments, prog_name="bydawn", standalone_mode=False, obj=tether))


def _is_broken(word: str) -> bool:
    """Bytes that are no UTF-8 arrive as lone surrogates, which no file of ours can hold."""
    return any("\ud800" <= character <= "\udfff" for character in word)


def shielded(work: Callable[[], object]) -> int:
    """What went wrong, said in three parts; the one place where errors end."""
    try:
        code = work()
    except UserError as error:
        return _say(error.what, error.cause, error.hint, error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bydawn"
        return _say(_mistake(error), "", f"`{command} --help` says what there is", 2)
    except click.ClickException as error:
        return _say(error.format_message(), "", "", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (BrokenPipeError, SystemExit):  # click makes the latter of the former, and when it has completed a word
        # Whoever read our output has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _say(
            f"the system refused{where}", error.strerror or str(error), "look at the disk and its permissions", 1
        )
    except Exception as error:  # the last net: a bug must not look like silence, nor like a traceback
        if os.environ.get("BYDAWN_DEBUG"):
            raise
        return _say(
            "bydawn made a mistake", f"{type(error).__name__}: {error}", "BYDAWN_DEBUG=1 shows where; report it", 1
        )
    return code if isinstance(code, int) else 0


def _mistake(error: click.UsageError) -> str:
    """Click's words; of the options that it takes for the one that was meant, only those that are near to it."""
    if not isinstance(error, click.NoSuchOption):
        return error.format_message().rstrip(".")
    import difflib

    names = {name.lstrip("-"): name for name in error.possibilities or ()}
    near = difflib.get_close_matches(error.option_name.lstrip("-"), names, n=1, cutoff=_NEAR)
    return error.message.rstrip(".") + (f"; did you mean {names[near[0]]}?" if near else "")


def _say(what: str, cause: str, hint: str, code: int) -> int:
    from bydawn.cli.render import as_typed
    from bydawn.core.text import plain

    hide = _hiding()
    for label, text in [("error", what), ("cause", cause), (" hint", as_typed(hint))]:
        if text:
            click.echo(f"{label}: {hide(plain(text))}", err=True)
    return code


def _hiding() -> Callable[[str], str]:
    """An error may quote anything; if the settings cannot even be looked at, the environment still can."""
    try:
        from bydawn.operations.settings import secrets

        return secrets().hide
    except (UserError, OSError):
        from bydawn.core.redact import Secrets

        return Secrets(os.environ).hide
