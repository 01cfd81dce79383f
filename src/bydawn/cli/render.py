"""How things are shown: plain text that fits 48 columns, or JSON with a schema number."""

import itertools
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.core.text import duration, plain
from bydawn.core.values import Status

if TYPE_CHECKING:
    from bydawn.core.loop import Limits
    from bydawn.core.outcome import Outcome
    from bydawn.core.state import LoopState
    from bydawn.core.values import Usage
    from bydawn.operations.start import Rehearsal
    from bydawn.store.registry import Standing

SIGNS = {
    Status.COMPLETE: "✓",
    Status.UNVERIFIED: "✓",
    Status.BLOCKED: "!",
    Status.LIMIT: "◷",
    Status.CHECKPOINT: "?",
    Status.FAILED: "✗",
    Status.PAUSED: "‖",
    Status.STOPPED: "■",
    Status.RUNNING: "▶",
    Status.WAITING: "…",
    Status.CRASHED: "✗",
    Status.DAMAGED: "✗",
}
_COLOURS = {Status.COMPLETE: "green", Status.UNVERIFIED: "green", Status.RUNNING: "cyan", Status.WAITING: "cyan"}
# The commands that look for loops, or for what is trusted, in a state folder.
OF_LOOPS = (
    *("run", "resume", "demo", "status", "show", "logs", "events", "why"),
    *("tell", "tasks", "pause", "stop", "doctor", "trust"),
)
NEEDS_YOU = (*(Status.BLOCKED, Status.FAILED, Status.DAMAGED, Status.CRASHED, Status.CHECKPOINT, Status.LIMIT),)


def emit_json(data: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode({"schema": 1, **data}), indent=2).decode())


def me() -> str:
    """How this command was called: `scripts/bydawn` says it, so that what we print can be pasted."""
    return os.environ.get("BYDAWN_AS") or "bydawn"


def typed(words: str) -> str:
    """A command of ours as the person has to type it, so that it can be pasted and finds the same loops."""
    given = state_folder() if words.split()[0] in OF_LOOPS else []
    if not given:
        return f"{me()} {words}"
    import shlex

    return f"{me()} {words} {shlex.join(given)}"


def as_typed(text: str) -> str:
    """A text with our own commands in it, as the person has to type them."""
    return re.sub("`bydawn ([^`]+)`", lambda found: f"`{typed(found[1])}`", text)


def state_folder() -> list[str]:
    """`--state-dir X` if that was typed; what a variable or a file says of it holds the next time, too."""
    words = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    given = [word.partition("=")[2] for word in words if word.startswith("--state-dir=")]
    given += [after for word, after in itertools.pairwise(words) if word == "--state-dir"]
    return ["--state-dir", str(Path(given[-1]).absolute())] if given else []


def width() -> int:
    """Columns to write in: the terminal's, COLUMNS, or 100 where nobody says."""
    given = os.environ.get("COLUMNS", "")
    try:
        columns = int(given) if given.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        columns = 100
    return max(40, columns or 100)


def coloured() -> bool:
    """Colour only where a person looks and has not said no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def state(word: Status, pad: int = 0) -> str:
    """Sign, word and colour; never the colour alone."""
    text = f"{SIGNS[word]} {word}".ljust(pad)
    return click.style(text, fg=_COLOURS.get(word, "yellow")) if coloured() else text


def outcome(of: "Outcome") -> str:
    """How an agent's turn ended, as a word for people."""
    return of.value.replace("_", " ")


def ago(moment: datetime | None) -> str:
    if moment is None:
        return ""
    return f"{duration((datetime.now(UTC) - moment).total_seconds())} ago"


def counts(standing: "Standing") -> str:
    """`2/6 tasks · round 4 of 30`"""
    tasks = standing.state.tasks
    parts = [f"{tasks.done}/{tasks.open + tasks.done} tasks"] if tasks else []
    parts.append(rounds(standing.state))
    if standing.loop.sandbox == "full":
        parts.append("FULL ACCESS")
    return " · ".join(parts)


def rounds(state: "LoopState") -> str:
    """`3 rounds, 2 counted`: one that was cut short, or could not even begin, is none of those that are limited."""
    counted = f", {state.rounds} counted" if state.round - bool(state.open_round) != state.rounds else ""
    return f"{state.round} round{'s' if state.round != 1 else ''}{counted}"


def used(usage: "Usage | None", *, unpriced: bool = False) -> str:
    """What was used, as far as agents say; what nobody says is `—`, never nought."""
    if usage is None:
        return "—"
    tokens = [(usage.tokens_in, "in"), (usage.tokens_cached, "of it cached"), (usage.tokens_out, "out")]
    parts = [f"{count:,} {word}" for count, word in tokens if count is not None]
    cost = f"${usage.cost_usd:.2f}" if usage.cost_usd is not None else "cost —"
    if unpriced and usage.cost_usd is not None:
        cost = f"at least {cost}" if usage.cost_usd >= 0.005 else "cost —"
    return f"{', '.join(parts) or 'tokens —'} · {cost}"


def totals(limits: "Limits", unit: str = "round") -> list[str]:
    """How much a loop may use of everything that somebody has set a limit to."""
    many = {0: f"any number of {unit}s", 1: f"1 {unit}"}.get(limits.rounds, f"{limits.rounds} {unit}s")
    rows = [
        duration(limits.seconds) if limits.seconds else "",
        f"until {moment(limits.until)}" if limits.until else "",
        f"{limits.tokens:,} tokens" if limits.tokens else "",
        f"${limits.usd:.2f}" if limits.usd else "",
        f"no wait beyond {moment(limits.latest_wake)}" if limits.latest_wake else "",
    ]
    return [many, *filter(None, rows)]


def moment(at: datetime) -> str:
    """A moment near enough for its time to say it, or else with its day."""
    local, now = at.astimezone(), datetime.now().astimezone()
    return f"{local:%H:%M}" if abs(local - now) < timedelta(hours=20) else f"{local:%Y-%m-%d %H:%M}"


def field(label: str, text: str, indent: int = 10) -> None:
    """A labelled paragraph; text from outside is made harmless first."""
    rows = [row for line in plain(text).splitlines() or [""] for row in _wrapped(line, indent)]
    for number, row in enumerate(rows):
        click.echo(f"  {label if number == 0 else '':<{indent - 2}}{row}")


def headline(text: str) -> None:
    """What a screen begins with, and an empty line below it."""
    paragraph(text)
    click.echo("")


def paragraph(text: str, indent: int = 2) -> None:
    """A text that is harmless already, as there may be colour in it."""
    for row in _wrapped(text, indent):
        click.echo(f"{' ' * indent}{row}")


def _wrapped(line: str, indent: int) -> list[str]:
    """The line in pieces, none of them half a path, which is of no use. In a pipe nobody wants pieces at all."""
    if "COLUMNS" not in os.environ and not sys.stdout.isatty():
        return [line]
    import textwrap

    room = max(20, width() - indent - 2)
    broken = "/" not in line
    return textwrap.wrap(line, room, subsequent_indent="  ", break_on_hyphens=False, break_long_words=broken) or [""]


def commands(rows: list[tuple[str, str]]) -> None:
    """What to do next, ready to be pasted."""
    if not rows:
        return
    click.echo("")
    click.echo("  Next")
    widest = max(len(command) for command, _ in rows)
    for command, what in rows:
        if widest + len(what) + 8 <= width():
            click.echo(f"    {command:<{widest}}  {what}")
        else:
            click.echo(f"    {command}\n      {what}")


def rehearsal(shown: "Rehearsal") -> None:
    """What `--dry-run` prints."""
    import shlex

    loop = shown.plan.loop
    field("Loop", f"{loop.id} ({'goes on' if shown.plan.goes_on else 'new'}) in {loop.workspace}")
    field("Command", shlex.join(shown.command.argv))
    for check in loop.checks:
        field("Check", check.name)
    times, streaks = (
        loop.timeouts,
        f"no progress {loop.limits.no_progress} · agent failures {loop.limits.agent_failures}",
    )
    field("Limits", " · ".join([*totals(loop.limits), streaks]))
    field("Times", f"round {duration(times.round)} · silence {duration(times.silence)} · check {duration(times.check)}")
    if loop.sandbox or shown.sandbox:
        field("Sandbox", loop.sandbox or shown.sandbox)
    field("Files", str(shown.plan.folder))
    field("Needs", " and ".join(loop.requires))
    for warning in shown.plan.warnings:
        field("Warning", plain(warning))
    click.echo("\n  Prompt of the next round\n")
    click.echo(plain(shown.prompt))
    click.echo("  Nothing was run and nothing was written.")
