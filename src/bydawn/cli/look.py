"""`show` and `why`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bydawn import __version__
from bydawn.cli import offers, render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.cli.rows import OVER_BUDGET, check
from bydawn.cli.status import liveness
from bydawn.core import completion
from bydawn.core.facts import ChecksEnded, RoundEnded, RoundStarted
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import Given, Status, Verdict
from bydawn.operations import look, reasons
from bydawn.operations.look import cut_by_budget
from bydawn.store.registry import Registry, Standing

_LAST_LINES = 10  # of a failing check
_LONGEST_LINE = 500
_LONGEST_CHECK = 80
# Evidence that has a row of its own.
_FOUND = (completion.DOUBTED, completion.TAMPERED, completion.PUT_BACK, completion.ACCEPTED)
_TELLING = (Rule.OBSTRUCTED, Rule.TASKS_ASIDE)  # rules whose reason alone does not say what to do


@command()
@loop_argument
@option("--round", "round_", type=click.IntRange(1), help="One round only.")
@cd
@as_json
@state_dir
def show(loop: str | None, round_: int | None, cd: Path, as_json: bool, state_dir: Path | None) -> None:
    """One loop: what happened, what is missing, what to do next.

    \b
    Examples
      bydawn show
      bydawn show shop-api --round 3
    """
    standing = look.with_its_list(Registry(state_dir).find(loop, cd.resolve()))
    if as_json:
        render.emit_json(look.detail(standing, round_))
        return
    if round_ is not None:
        _show_round(standing, look.the_round(standing, round_))
        return
    _show_loop(standing)
    this = render.typed(f"show {standing.reference}")
    render.commands([row for row in offers.next_commands(standing) if row[0] != this])


def _show_loop(standing: Standing) -> None:
    loop, state = standing.loop, standing.state
    reason = look.reason(standing)
    render.headline(f"{render.state(standing.status)}  {loop.id}{': ' if reason else ''}{shorten(plain(reason), 300)}")
    render.field("Goal", shorten(plain(loop.prompt), 400) or f"the tasks in {loop.tasks}")
    render.field("Where", loop.workspace)
    render.field("So far", f"{render.counts(standing)}, {duration(state.elapsed)} of work, {liveness(standing)}")
    render.field("Agent", ", then ".join(loop.pool) + (f", {loop.sandbox.value} access" if loop.sandbox else ""))
    for row in state.limited:
        if row.until and row.until > datetime.now(UTC):
            render.field("Limited", f"{row.agent} until {row.until.astimezone():%a %H:%M}: {row.detail}")
    if state.usage:
        render.field("Used", render.used(state.usage, unpriced=state.unpriced))
        for task, usage in look.usage_by_task(standing).items():
            render.field("", f"{shorten(plain(task), 60)}: {render.used(usage, unpriced=state.unpriced)}")
    _show_reasons(standing)
    for condition in [] if standing.trouble else completion.missing(loop, state):
        render.field("Missing", look.missing(condition, standing))
    for verdict in state.verdicts:
        if not verdict.passed:
            known = ", and red before the first round" if verdict.check in (state.baseline or ()) else ""
            render.field("Check", f"{shorten(plain(verdict.check), _LONGEST_CHECK)} → {verdict.told}{known}")
    _show_findings(standing)
    if not standing.trouble:
        click.echo("")
        for each in look.rounds(standing):
            click.echo(_round_row(each, standing))


def _show_reasons(standing: Standing) -> None:
    """What bears out the end, as far as nothing below says it."""
    stopped = standing.state.stopped
    if stopped and (standing.finished or stopped.decided.rule in _TELLING):
        for told in reasons.evidence(standing):
            if not told.startswith(_FOUND):
                render.field("Proof" if standing.finished else "Because", told)
    if not stopped or stopped.decided.rule != Rule.OBSTRUCTED:
        for told, numbers in reasons.failed_hooks(standing).items():
            render.field("Hook", f"{told} (round{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))})")


def _show_findings(standing: Standing) -> None:
    """What a person should know of how it got there."""
    state = standing.state
    if state.doubted:
        render.field("Doubted", f"ticked without any other change: {', '.join(state.doubted)}")
    if state.tampered:
        render.field("Changed", f"protected files: {', '.join(state.tampered)}")
    if undone := look.told_of_put_back(standing):
        render.field("Undone", f"protected files were put back: {undone}")
    if state.accepted:
        render.field("Allowed", f"accepted by a person, as rounds made it: {', '.join(state.accepted)}")
    for tally in state.tallies:
        if tally.task in state.settled.aside:
            render.field("Aside", tally.text or tally.task)
    for note in state.notes:
        fate = "was never read: the loop ended first" if standing.finished else "waits for the next prompt"
        render.field("Note", f"“{shorten(plain(note.text), 200)}” {fate}")
    if state.last and state.last.promise is Given.MENTIONED:
        render.field("Promise", "the agent mentioned it without giving it: not accepted")
    if state.last and state.last.said:
        render.field("It said", f"“{shorten(state.last.said, 300)}”")


def _round_row(each: look.Round, standing: Standing) -> str:
    started = each.started.fact
    assert isinstance(started, RoundStarted)  # noqa: S101 - as `rounds` made it
    ended, checks = each.ended.fact if each.ended else None, each.checks.fact if each.checks else None
    outcome, seconds, changed = _without_end(standing), "", ""
    if isinstance(ended, RoundEnded):
        outcome = "over budget" if cut_by_budget(ended, asked=each.asked) else ended.outcome.value
        seconds = duration(ended.seconds + (checks.seconds if isinstance(checks, ChecksEnded) else 0))
        count = ended.changes.total
        changed = f"{count} file{'s' if count != 1 else ''}" if count else "not seen" if ended.unseen else "no change"
    said = check(checks if isinstance(checks, ChecksEnded) else None)
    row = f"  {started.round:>4}  {outcome:<12} {seconds:>8}  {changed:<10} {said:<6}"
    agent = f" {shorten(plain(started.agent), 12):<12}" if standing.loop.others else ""
    task = shorten(plain(started.task or ""), max(12, render.width() - 51 - len(agent)))
    if render.width() < 60:
        return f"  {started.round:>4} {outcome} {seconds} {said}{agent}".rstrip()
    return f"{row}{agent} {task}".rstrip()


def _without_end(standing: Standing) -> str:
    """How a round stands that has none: as it will be settled, if there is nobody any more to end it."""
    return "running" if standing.alive else render.outcome(Outcome.INTERRUPTED)


def _show_round(standing: Standing, each: look.Round) -> None:
    row, ended = look.as_row(each), each.ended.fact if each.ended else None
    if isinstance(ended, RoundEnded) and cut_by_budget(ended, asked=each.asked):
        row |= {"outcome": "over budget", "detail": OVER_BUDGET}
    render.field("Round", f"{row['round']} of {standing.loop.id}, {row['outcome'] or _without_end(standing)}")
    if row["task"]:
        render.field("Task", row["task"])
    render.field("Agent", row["agent"])
    if row["outcome"]:
        checks = f", and its checks {duration(row['check_seconds'])}" if row["verdicts"] else ""
        render.field("Took", f"{duration(row['seconds'])}{checks}")
        if row["detail"]:
            render.field("Ended", row["detail"])
        changes = row["files_changed"]
        render.field("Files", f"+{changes.added} ~{changes.modified} -{changes.deleted}")
        for path in changes.paths:
            render.field("", path)
        if row["usage"]:
            render.field("Used", render.used(row["usage"]))
        if row["tampered"]:
            render.field(
                "Changed", f"protected: {', '.join(row['tampered'])}{' (put back)' if row['restored'] else ''}"
            )
        if row["blocked"]:
            render.field("Blocked", row["blocked"])
        for text in row["denied"]:
            render.field("Denied", text)
        render.field("Said", row["said"] or "nothing")
        if row["promise"] != "absent":
            render.field("Promise", row["promise"])
        for left in row["leftovers"]:
            render.field("Ended", f"left behind: {left}")
    for verdict in row["verdicts"]:
        render.field("Check", f"{verdict.check} → {'pass' if verdict.passed else verdict.detail}")
        if not verdict.passed:
            _show_output(standing, row["round"], verdict)
    render.field("Folder", str(look.round_folder(standing, row["round"])))


def _show_output(standing: Standing, round_: int, verdict: Verdict) -> None:
    """The end of what a failing check printed, which is what the next prompt was given, and where all of it is."""
    printed = [line.rstrip() for line in plain(verdict.excerpt).splitlines() if line.strip()]
    if printed in ([], [verdict.detail]):
        return
    for line in printed[-_LAST_LINES:]:
        click.echo(f"          │ {line[:_LONGEST_LINE]}")
    if verdict.output:
        render.field("", str(look.round_folder(standing, round_) / verdict.output))


@command()
@loop_argument
@cd
@as_json
@state_dir
def why(loop: str | None, cd: Path, as_json: bool, state_dir: Path | None) -> None:
    """The rule that decided last, what it read, and whether the facts still say the same.

    \b
    Examples
      bydawn why shop-api
    """
    import msgspec

    standing = Registry(state_dir).find(loop, cd.resolve())
    reason = reasons.why(standing)
    if as_json:
        render.emit_json({"loop": standing.loop.id, "state": standing.status, **msgspec.to_builtins(reason)})
        return
    told, crashed = look.reason(standing), standing.status == Status.CRASHED
    render.headline(f"{standing.loop.id}  {plain(f'{standing.status}: {told}' if told else reason.what)}")
    if crashed:  # whatever it had decided before
        render.field("Before", f"{reason.rule}: {reason.what}")
    else:
        render.field("Rule", f"{reason.rule}: {reason.meaning}")
    render.field("When", f"{reason.at.astimezone():%Y-%m-%d %H:%M:%S} (fact {reason.seq})")
    for name, row in reason.readings.items():
        if told := _reading(name, row["reading"], row["limit"]):
            render.field("Read", told)
    for row in reasons.evidence(standing) if standing.state.stopped else reason.evidence:
        render.field("Proof", row)
    render.field("Again", _again(reason))
    if crashed:
        render.commands(offers.next_commands(standing))


def _reading(name: str, reading: Any, limit: Any) -> str:
    """What a rule read, next to its limit; nothing where none is set."""
    if name == "missing":
        return f"missing: {', '.join(reading)}" if reading else ""
    if name == "open tasks":
        return f"{name}: {reading}" if reading is not None else ""
    if not limit:
        return ""
    match name:
        case "seconds worked":
            return f"time worked: {duration(reading)} of {duration(limit)}"
        case "until":
            return f"clock: {reading.astimezone():%Y-%m-%d %H:%M}, until {limit.astimezone():%Y-%m-%d %H:%M}"
        case "dollars":
            return f"spent: {'—' if reading is None else f'${reading:.2f}'} of ${limit:.2f}"
        case _:
            return f"{name}: {'—' if reading is None else f'{reading:,}'} of {limit:,}"


def _again(reason: reasons.Reason) -> str:
    if reason.agrees:
        return "the same facts give the same answer"
    if reason.version != __version__:
        return f"bydawn {reason.version} decided so; by the rules of {__version__} the answer would be another"
    return "THE FACTS NOW GIVE ANOTHER ANSWER: a bug"
