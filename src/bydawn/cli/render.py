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

if TYPE_CHECKING:
    from bydawn.core.facts import Usage
    from bydawn.core.outcome import Outcome
    from bydawn.host.registry import Standing
    from bydawn.operations.start import Rehearsal

SIGNS = {
    "complete": "✓",
    "unverified": "✓",
    "blocked": "!",
    "limit": "◷",
    "checkpoint": "?",
    "failed": "✗",
    "paused": "‖",
    "stopped": "■",
    "running": "▶",
    "waiting": "…",
    "crashed": "✗",
    "damaged": "✗",
}
_COLOURS = {"complete": "green", "unverified": "green", "running": "cyan", "waiting": "cyan"}
# The commands that look for loops, or for what is trusted, in a state folder.
OF_LOOPS = (
    *("run", "resume", "demo", "status", "show", "logs", "events", "why"),
    *("tell", "tasks", "pause", "stop", "doctor", "trust"),
)
NEEDS_YOU = ("blocked", "failed", "damaged", "crashed", "checkpoint", "limit")


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


def state(word: str, pad: int = 0) -> str:
    """Sign, word and colour; never the colour alone."""
    text = f"{SIGNS.get(word, ' ')} {word}".ljust(pad)
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
    parts.append(f"{standing.state.round} round{'s' if standing.state.round != 1 else ''}")
    if standing.loop.sandbox == "full":
        parts.append("FULL ACCESS")
    return " · ".join(parts)


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


def field(label: str, text: str, indent: int = 10) -> None:
    """A labelled paragraph; text from outside is made harmless first."""
    room = max(20, width() - indent - 2)
    rows = [row for line in plain(text).splitlines() or [""] for row in _wrapped(line, room)]
    for number, row in enumerate(rows):
        click.echo(f"  {label if number == 0 else '':<{indent - 2}}{row}")


def _wrapped(line: str, room: int) -> list[str]:
    import textwrap

    return textwrap.wrap(line, room, subsequent_indent="  ", break_on_hyphens=False) or [""]


def commands(rows: list[tuple[str, str]]) -> None:
    """What to do next, ready to be pasted."""
    if not rows:
        return
    click.echo("")
    click.echo("  Next")
    widest = max(len(command) for command, _ in rows)
    for command, what in rows:
        if len(command) + len(what) + 8 <= width():
            click.echo(f"    {command:<{widest}}  {what}")
        else:
            click.echo(f"    {command}\n      {what}")


def next_commands(standing: "Standing") -> list[tuple[str, str]]:
    """The commands that make sense for a loop as it stands; only ones that exist."""
    name, word = standing.called, standing.word
    look = _said_last(standing)
    flags, what = _beyond_limits(standing) if word == "limit" else ("", "")
    table: dict[str, list[tuple[str, str] | None]] = {
        "running": [
            (f"logs {name} -f", "watch it"),
            (f"pause {name}", "stand still after this round"),
        ],
        "waiting": [(f"why {name}", "what it waits for"), (f"stop {name}", "give up")],
        "blocked": _when_blocked(standing) if word == "blocked" else [],
        "checkpoint": [
            (f"show {name}", "what was done up to here"),
            (f"resume {name} --approve", "you have looked: go on"),
        ],
        "failed": [look, (f"resume {name}", "when the agent works again")],
        "limit": [(f"resume {name} {flags}".strip(), what), look],
        "paused": [(f"resume {name}", "go on")],
        "stopped": [(f"resume {name}", "go on after all")],
        "crashed": [(f"resume {name}", "go on from the last fact")],
        "damaged": [(f"doctor --repair {name}", "set the damaged part aside")],
        "complete": [(f"show {name}", "the rounds"), look],
        "unverified": [(f"show {name}", "the rounds"), look],
    }
    return [(typed(row[0]), row[1]) for row in table.get(word, []) if row]


def _said_last(standing: "Standing") -> tuple[str, str] | None:
    """Where no agent could be started, or it printed nothing, there is nothing to see."""
    from bydawn.operations import look

    last = standing.state.round
    spoke = last and look.printed(standing, last)
    return (f"logs {standing.called} --round {last}", "what the agent said last") if spoke else None


def _when_blocked(standing: "Standing") -> list[tuple[str, str] | None]:
    """What helps depends on what blocks it; a word to the agent is of use only where the agent can help."""
    from bydawn.operations import look

    name, last, stopped = standing.called, standing.state.round, standing.state.stopped
    rule = stopped.decided.rule if stopped else ""
    said_last = _said_last(standing)
    tell = (f'tell {name} "…"', "say what to do differently")
    go_on = (f"resume {name}", "then go on")
    if rule == "tampered":
        return [
            (f"show {name} --round {last}", "what it did"),
            (f"resume {name}", "when you have put them back"),
            (f"resume {name} --accept", "or keep them as they are now"),
        ]
    if rule == "task-file":
        accept = (f"resume {name} --accept", "or take it as it is now")
        return [*_mend_list(standing), None if look.trouble_with_tasks(standing) else accept]
    if rule == "obstructed":
        what = "when you have mended the hook" if look.failed_hook(standing) else "when that is mended"
        return [(f"resume {name}", what), None if look.failed_hook(standing) else said_last]
    if rule == "tasks-aside" and (skipped := _after_skipping(standing)):
        return [*skipped, go_on]
    return [tell, go_on, said_last]


def _mend_list(standing: "Standing") -> list[tuple[str, str]]:
    """A folder has no file that could be opened for all of it, so it is said where it is."""
    name, loop = standing.called, standing.loop
    if not loop.task_folder:
        return [(f"tasks edit {name}", "mend the list"), (f"resume {name}", "then go on")]
    where = Path(loop.workspace) / (loop.tasks or "")
    return [(f"tasks list {name}", "what is wrong now"), (f"resume {name}", f"when you have mended {where}")]


def _after_skipping(standing: "Standing") -> list[tuple[str, str]]:
    """What can be done where open tasks wait for one that a person has skipped."""
    from bydawn.operations import look

    name = standing.called
    skipped, waiting = look.stranded_by_skipping(standing)
    if not skipped:
        return []
    numbers = [" ".join(str(task.number) for task in tasks) for tasks in (skipped, waiting)]
    return [
        (f"tasks reopen {name} {numbers[0]}", "do after all what others wait for"),
        (f"tasks skip {name} {numbers[1]}", "or leave out what waits for it, too"),
    ]


def _beyond_limits(standing: "Standing") -> tuple[str, str]:
    """The flags of a `resume` that takes a loop beyond its limits, all of them at once, and what it does."""
    from bydawn.core import reach
    from bydawn.core.breakers import limits_of
    from bydawn.core.facts import Now

    loop, state, now = standing.loop, standing.state, datetime.now(UTC)
    rule = state.stopped.decided.rule if state.stopped else ""
    flags = [reach.raised(each, state) for each in reach.all_used_up(loop, state, Now(now, state.elapsed))]
    if (until := limits_of(loop, state).until) and until <= now:
        flags.append("--until 09:00")
    if rule == "latest-wake":
        flags.append(f"--latest-wake {_when_free(standing, now)}")
    if flags:
        return " ".join(flags), "raise the limit and go on"
    return "", "when the agent is free again" if rule == "limit-stops" else "go on"


def _when_free(standing: "Standing", now: datetime) -> str:
    """A moment at which the first of the agents is free again, as far as anybody knows."""
    known = [row.until for row in standing.state.limited if row.until and row.until > now]
    return f"{min(known).astimezone() + timedelta(minutes=5):%Y-%m-%dT%H:%M}" if known else "09:00"


def rehearsal(shown: "Rehearsal") -> None:
    """What `--dry-run` prints."""
    import shlex

    loop = shown.plan.loop
    field("Loop", f"{loop.id} ({'goes on' if shown.plan.goes_on else 'new'}) in {loop.workspace}")
    field("Command", shlex.join(shown.command.argv))
    for check in loop.checks:
        field("Check", check.name)
    limits, times = loop.limits, loop.timeouts
    field(
        "Limits",
        f"{limits.rounds or 'any number of'} rounds · no progress {limits.no_progress} · "
        f"agent failures {limits.agent_failures}"
        + (f" · {duration(limits.seconds)}" if limits.seconds else "")
        + (f" · until {limits.until.astimezone():%Y-%m-%d %H:%M}" if limits.until else ""),
    )
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
