"""The table of commands, and the one place where errors become messages and exit codes."""

import importlib
import os
import sys
from collections.abc import Callable

import click

from bydawn import __version__
from bydawn.cli.command import Group, Option
from bydawn.cli.main import starts_a_loop
from bydawn.core.errors import UserError
from bydawn.core.values import Act, Advice

# Under each heading: command, module, what it does. Help and dispatch read the same table.
TABLE: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Start": (
        ("run", "start", "start a loop here, or continue one"),
        ("resume", "resume", "continue a paused, stopped or crashed loop"),
        ("demo", "start", "watch a whole loop; no account needed"),
    ),
    "Look": (
        ("status", "status", "list all loops and their state"),
        ("show", "look", "show a loop: rounds, what is missing"),
        ("attach", "attach", "watch a running loop live"),
        ("serve", "serve", "show all loops on a web page"),
        ("logs", "logs", "print what the agent said"),
        ("events", "logs", "print everything that was recorded"),
        ("why", "look", "explain the last decision"),
        ("chat", "chat", "ask an agent about the repository"),
        ("health", "health", "say whether all is well"),
        ("metrics", "health", "add up figures of all loops"),
    ),
    "Steer": (
        ("tell", "steer", "add a note to the next prompt"),
        ("tasks", "tasks", "list, add, skip or reopen tasks"),
        ("pause", "steer", "pause after this round"),
        ("stop", "steer", "end a loop"),
        ("dismiss", "steer", "take an old loop out of the list"),
        ("clean", "clean", "remove the logs of old loops"),
    ),
    "Set up": (
        ("agents", "agents", "list agents, or test one"),
        ("notify", "notify", "test where notices are sent"),
        ("service", "service", "continue loops after a reboot"),
        ("config", "config", "show and change settings"),
        ("trust", "trust", "allow what a repository wants to run"),
        ("edit", "edit", "open tasks, notes or settings in an editor"),
        ("doctor", "setup", "check the setup, repair damage"),
        ("version", "setup", "print the version"),
    ),
}
MODULES = {name: module for rows in TABLE.values() for name, module, _ in rows}
_NEAR = 0.65  # of 1, without the dashes that all options share
EPILOG = """\b
Examples
  bydawn demo
  bydawn run "fix it" -k "make test"
  bydawn run -t TODO.md -a claude --for 8h

\b
Exit codes
  0 complete       1 internal error
  2 wrong usage    3 blocked: needs you
  4 limit reached  5 checkpoint
  7 agent missing or failed
  8 already running in another process
  130 paused or stopped; `resume` continues
"""


class Commands(Group):
    """Loads a command's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in MODULES:
            return None
        module = importlib.import_module(f"bydawn.cli.{MODULES[cmd_name]}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101 - the table names commands
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or an error that suggests one."""
        word = args[0]
        if word in MODULES:
            return super().resolve_command(ctx, args)
        if starts_a_loop(args):
            return super().resolve_command(ctx, ["run", *args])
        import difflib

        close = difflib.get_close_matches(word, MODULES, n=1)
        hint = Advice("did you mean ", Act(close[0]), "?") if close else Advice(Act("--help"), " lists the commands")
        raise UserError(f"there is no command {word!r}", cause="nothing was started", hint=hint)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for heading, rows in TABLE.items():
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
    """Run a coding agent again and again on one goal until checks prove that the work is done.

    Without a command it lists all loops; it never starts anything.
    """
    if ctx.invoked_subcommand is None:
        from bydawn.cli.status import status

        with status.make_context("status", [], parent=ctx) as alone:
            status.invoke(alone)


def run(arguments: list[str], tool: str = "", tether: object = None) -> int:
    """Run a command line, of `tool` or our own, and return its exit code; with a tether, in the worker."""
    if unreadable := [word for word in arguments if not word.isascii() and _is_broken(word)]:
        return _say("an argument is not UTF-8 text", ascii(unreadable[0]), "use UTF-8", 2)
    if tool:
        from bydawn.cli.dialects import speak

        return shielded(lambda: speak(tool, arguments, tether))
    return shielded(lambda: bydawn.main(arguments, prog_name="bydawn", standalone_mode=False, obj=tether))


def _is_broken(word: str) -> bool:
    """Bytes that are not UTF-8 arrive as lone surrogates, which none of our files can hold."""
    return any("\ud800" <= character <= "\udfff" for character in word)


def shielded(work: Callable[[], object]) -> int:
    """Run it; an error becomes three lines and an exit code."""
    try:
        code = work()
    except UserError as error:
        return _say(error.what, error.cause, error.hint, error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bydawn"
        return _say(_mistake(error), "", f"`{command} --help` lists the options", 2)
    except click.ClickException as error:
        return _say(error.format_message(), "", "", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (BrokenPipeError, SystemExit):
        # Click turns the former into the latter, and exits so after completing a word.
        # The reader has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" on {error.filename}" if error.filename else ""
        return _say(f"I/O error{where}", error.strerror or str(error), "check disk space and permissions", 1)
    except Exception as error:  # a bug must end neither in silence nor in a traceback
        if os.environ.get("BYDAWN_DEBUG"):
            raise
        return _say(
            "internal error", f"{type(error).__name__}: {error}", "please report it; BYDAWN_DEBUG=1 shows where", 1
        )
    return code if isinstance(code, int) else 0


def _mistake(error: click.UsageError) -> str:
    """Click's message; of its suggestions only one that is close."""
    if not isinstance(error, click.NoSuchOption):
        return error.format_message().rstrip(".")
    import difflib

    names = {name.lstrip("-"): name for name in error.possibilities or ()}
    near = difflib.get_close_matches(error.option_name.lstrip("-"), names, n=1, cutoff=_NEAR)
    return error.message.rstrip(".") + (f"; did you mean {names[near[0]]}?" if near else "")


def _say(what: str, cause: str, hint: str, code: int) -> int:
    from bydawn.cli.render import as_typed
    from bydawn.core.text import plain
    from bydawn.process import refusals

    hide = _hiding()
    refusals.tell(code, *(hide(plain(text)) for text in (what, cause, hint)))
    for label, text in [("error", what), ("cause", cause), (" hint", as_typed(hint))]:
        if text:
            click.echo(f"{label}: {hide(plain(text))}", err=True)
    return code


def _hiding() -> Callable[[str], str]:
    """Hides secrets: an error may quote anything. If settings cannot be read, at least those of the environment."""
    try:
        from bydawn.operations.settings import secrets

        return secrets().hide
    except (UserError, OSError):
        from bydawn.core.redact import Secrets

        return Secrets(os.environ).hide
