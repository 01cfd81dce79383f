"""Print views: plain text that fits 48 columns, or JSON with a schema number."""

import itertools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bydawn.core.text import duration, is_plain, plain, visible
from bydawn.core.values import OURS, Act, Status, spelled, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import msgspec

    from bydawn.core.values import Next
    from bydawn.operations.start import Rehearsal

_COLORS = {Status.COMPLETE: "green", Status.RUNNING: "cyan", Status.WAITING: "cyan"}
# The commands that read loops or trust from a state folder.
OF_LOOPS = (
    *("run", "resume", "demo", "status", "show", "attach", "logs", "events", "why", "chat", "health", "metrics"),
    *("tell", "tasks", "pause", "stop", "dismiss", "clean", "doctor", "trust"),
)


def emit_json(view: "msgspec.Struct | Mapping[str, object]") -> None:
    """Print a value as one JSON document."""
    import msgspec

    echo_json(msgspec.Raw(b'{"schema":1,' + msgspec.json.encode(view, enc_hook=str)[1:]))


def echo_json(value: object) -> None:
    """Print a value as JSON; marks that would turn a line of a terminal around are spelled out, as JSON can."""
    import json

    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    seen = text if is_plain(text) else "".join(each if is_plain(each) else json.dumps(each)[1:-1] for each in text)
    click.echo(seen)


def me() -> str:
    """How bydawn was called: `scripts/bydawn` sets it, so that what we print can be pasted."""
    return os.environ.get("BYDAWN_AS") or "bydawn"


def typed(command: str) -> str:
    """A command as the person has to type it: an act of ours can be pasted and finds the same loops."""
    if not isinstance(command, Act) or command.program != OURS:
        return command
    of_loops = command.verb.partition(" ")[0] in OF_LOOPS
    return " ".join(filter(None, (me(), command.words, spelled({"state-dir": state_folder()}) if of_loops else "")))


def as_typed(text: str) -> str:
    """A sentence with the acts in it as the person has to type them."""
    return written(text, typed)


def state_folder() -> str | None:
    """The value of `--state-dir` if it was typed; a variable or a settings file applies next time too."""
    words = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    given = [word.partition("=")[2] for word in words if word.startswith("--state-dir=")]
    given += [after for word, after in itertools.pairwise(words) if word == "--state-dir"]
    return str(Path(given[-1]).absolute()) if given else None


def width() -> int:
    """Columns to write in: the terminal's, COLUMNS, or else 100."""
    given = os.environ.get("COLUMNS", "")
    try:
        columns = int(given) if given.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        columns = 100
    return max(40, columns or 100)


def colored() -> bool:
    """Use color only on a terminal, and only if the person has not turned it off."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def state(word: Status, pad: int = 0, text: str = "") -> str:
    """Sign, word (or a text) and color; never the color alone."""
    text = f"{word.sign} {text or word}".ljust(pad)
    return click.style(text, fg=_COLORS.get(word, "yellow")) if colored() else text


def field(label: str, text: str, indent: int = 10) -> None:
    """A labeled paragraph; the text is made harmless first."""
    rows = [row for line in plain(text).splitlines() or [""] for row in wrapped(line, indent)]
    for number, row in enumerate(rows):
        click.echo(f"  {label if number == 0 else '':<{indent - 2}}{row}")


def paragraph(text: str, indent: int = 2) -> None:
    """A text that is already harmless; it may contain color."""
    for row in wrapped(text, indent):
        click.echo(f"{' ' * indent}{row}")


def wrapped(line: str, indent: int) -> list[str]:
    """The line split to fit; a path is never split, and in a pipe nothing is."""
    if "COLUMNS" not in os.environ and not sys.stdout.isatty():
        return [line]
    import textwrap

    room = max(20, width() - indent - 2)
    broken = "/" not in line
    return textwrap.wrap(line, room, subsequent_indent="  ", break_on_hyphens=False, break_long_words=broken) or [""]


def next_steps(steps: "Sequence[Next]", *, numbered: bool = False) -> None:
    """What to do next, ready to paste."""
    if not steps:
        return
    click.echo("")
    click.echo("  Next")
    for line in step_lines(steps, numbered=numbered):
        click.echo(line)


def step_lines(steps: "Sequence[Next]", *, numbered: bool = False) -> "Iterator[str]":
    """Each step as it has to be typed, on a line or on two; plain advice has no command."""
    rows = [(pasteable(typed(step.command)), visible(step.why)) for step in steps]
    short = [len(command) for command, why in rows if len(command) + len(why) + 11 <= width()]
    widest = max(short, default=0)
    for number, (command, why) in enumerate(rows, 1):
        begin = f"    {number}  " if numbered else "    "
        if not command:
            yield from (f"{begin}{line}" for line in wrapped(why, len(begin)))
        elif max(widest, len(command)) + len(why) + len(begin) + 4 <= width():
            yield f"{begin}{command:<{widest}}  {why}"
        else:
            yield f"{begin}{command}"
            yield from (f"{' ' * len(begin)}  {line}" for line in wrapped(why, len(begin) + 2))


def pasteable(command: str) -> str:
    r"""A command in which everything can be seen: what cannot is quoted, so the quotes end for `$'\x1b'`."""
    return "".join(each if each.isprintable() else f"'$'{_in_hex(each)}''" for each in command)


def _in_hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(text))


def rehearsal(shown: "Rehearsal") -> None:
    """What `--dry-run` prints."""
    import shlex

    from bydawn.core import completion
    from bydawn.core.state import LoopState
    from bydawn.operations.amounts import totals
    from bydawn.settings.table import BY_KEY

    loop = shown.plan.loop
    field("Loop", f"{loop.id} ({'continues' if shown.plan.goes_on else 'new'}) in {loop.workspace}")
    field("Command", shlex.join(shown.command.argv))
    for check in loop.checks:
        field("Check", check.name)
    times = loop.timeouts
    failures = BY_KEY["max_failures"].usual if loop.limits.agent_failures is None else loop.limits.agent_failures
    streaks = f"no progress {loop.limits.no_progress} · agent failures {failures}"
    field("Limits", " · ".join([*totals(loop.limits), streaks]))
    field("Times", f"round {duration(times.round)} · silence {duration(times.silence)} · check {duration(times.check)}")
    if loop.sandbox or shown.sandbox:
        field("Sandbox", loop.sandbox or shown.sandbox)
    field("Files", str(shown.plan.folder))
    state = shown.plan.standing.state if shown.plan.standing else LoopState()
    field("Needs", " and ".join(completion.wanted(loop, state)))
    for warning in shown.plan.warnings:
        field("Warning", plain(warning))
    click.echo("\n  Prompt of the next round\n")
    click.echo(plain(shown.prompt))
    click.echo("  Nothing was run and nothing was written.")
