"""What a person is offered to do next, for a loop as it stands: only commands that exist, and that help."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bydawn.cli.render import typed
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Status
from bydawn.operations import look, reasons
from bydawn.store.registry import Standing


def next_commands(standing: Standing) -> list[tuple[str, str]]:
    """The commands that make sense for a loop as it stands; only ones that exist."""
    name, word = standing.reference, standing.status
    said_last, red = _said_last(standing), _red(standing)
    flags, what = _beyond_limits(standing) if word == Status.LIMIT else ("", "")
    table: dict[Status, list[tuple[str, str] | None]] = {
        Status.RUNNING: [
            (f"logs {name} -f", "watch it"),
            (f"pause {name}", "stand still after this round"),
        ],
        Status.WAITING: [(f"why {name}", "what it waits for"), (f"stop {name}", "give up")],
        Status.BLOCKED: _when_blocked(standing) if word == Status.BLOCKED else [],
        Status.CHECKPOINT: [
            (f"show {name}", "what was done up to here"),
            (f"resume {name} --approve", "you have looked: go on"),
        ],
        Status.FAILED: [said_last, red, (f"resume {name}", "when the agent works again")],
        Status.LIMIT: [(f"resume {name} {flags}".strip(), what), red, said_last],
        Status.PAUSED: [(f"resume {name}", "go on"), red],
        Status.STOPPED: [(f"resume {name}", "go on after all"), red],
        Status.CRASHED: [(f"resume {name}", "go on from the last fact")],
        Status.DAMAGED: [(f"doctor --repair {name}", "set the damaged part aside")],
        Status.COMPLETE: [(f"show {name}", "the rounds"), said_last],
        Status.UNVERIFIED: [(f"show {name}", "the rounds"), said_last],
    }
    ours = [(typed(row[0]), row[1]) for row in table.get(word, []) if row]
    return [*_log_in(standing), *ours] if word == Status.FAILED else ours


def _log_in(standing: Standing) -> list[tuple[str, str]]:
    """The command of the agent's own that lets it in again; ours, and never one that somebody's output names."""
    last = standing.state.last
    if last is None or last.outcome is not Outcome.AUTH:
        return []
    from bydawn.operations.agents import KNOWN

    return [(KNOWN[last.agent].login, "log in")] if last.agent in KNOWN else []


def _said_last(standing: Standing) -> tuple[str, str] | None:
    """Where no agent could be started, or it printed nothing, there is nothing to see."""
    last = standing.state.round
    spoke = last and look.printed(standing, last)
    return (f"logs {standing.reference} --round {last}", "what the agent said last") if spoke else None


def _red(standing: Standing) -> tuple[str, str] | None:
    """Where to read what the checks that are red have printed."""
    state = standing.state
    count = sum(not verdict.passed for verdict in state.verdicts)
    if not count or not state.verdict_round:
        return None
    what = "the failing check" if count == 1 else "the failing checks"
    return f"show {standing.reference} --round {state.verdict_round}", f"what {what} printed"


def _when_blocked(standing: Standing) -> list[tuple[str, str] | None]:
    """What helps depends on what blocks it; a word to the agent is of use only where the agent can help."""
    name, last, stopped = standing.reference, standing.state.round, standing.state.stopped
    rule = stopped.decided.rule if stopped else ""
    said_last = _said_last(standing)
    tell = (f'tell {name} "…"', "say what to do differently")
    go_on = (f"resume {name} {_beyond_limits(standing)[0]}".strip(), "then go on")
    if rule == Rule.AGENT_BLOCKED:
        return [(f'tell {name} "…"', "your answer to it"), go_on, said_last]
    if rule == Rule.TAMPERED:
        return [
            (f"show {name} --round {last}", "what it did"),
            (f"resume {name}", "when you have put them back"),
            (f"resume {name} --accept", "or keep them as they are now"),
        ]
    if rule == Rule.TASK_FILE:
        accept = (f"resume {name} --accept", "or take it as it is now")
        return [*_mend_list(standing), None if look.trouble_with_tasks(standing) else accept]
    if rule == Rule.OBSTRUCTED and reasons.failed_hook(standing):
        return [(f"resume {name}", "when you have mended the hook"), _otherwise(standing, "hook")]
    if rule == Rule.OBSTRUCTED:
        return [(f"resume {name}", "when that is mended"), said_last]
    if rule == Rule.SAME_FAILURE and any(verdict.never_ran for verdict in standing.state.verdicts):
        return [(f"resume {name}", "when there is such a program"), _otherwise(standing, "check")]
    if rule == Rule.TASKS_ASIDE and (skipped := _after_skipping(standing)):
        return [*skipped, go_on]
    return [tell, _skip_aside(standing), go_on, _red(standing), said_last]


def _otherwise(standing: Standing, what: str) -> tuple[str, str] | None:
    """A loop keeps the commands that it was given; whoever wants another one starts another loop."""
    if standing.loop.dialect:
        return None
    from bydawn.operations.start import typed_again

    command, left_out = typed_again(standing.loop)
    return command, f"or start another with the right {what}" + (f"; {left_out}" if left_out else "")


def _mend_list(standing: Standing) -> list[tuple[str, str]]:
    """A folder has no file that could be opened for all of it, so it is said where it is."""
    name, loop = standing.reference, standing.loop
    if not loop.task_folder:
        return [(f"tasks edit {name}", "mend the list"), (f"resume {name}", "then go on")]
    where = Path(loop.workspace) / (loop.tasks or "")
    return [(f"tasks list {name}", "what is wrong now"), (f"resume {name}", f"when you have mended {where}")]


def _after_skipping(standing: Standing) -> list[tuple[str, str]]:
    """What can be done where open tasks wait for one that a person has skipped."""

    name = standing.reference
    skipped, waiting = reasons.stranded_by_skipping(standing)
    if not skipped:
        return []
    numbers = [" ".join(str(task.number) for task in tasks) for tasks in (skipped, waiting)]
    return [
        (f"tasks reopen {name} {numbers[0]}", "do after all what others wait for"),
        (f"tasks skip {name} {numbers[1]}", "or leave out what waits for it, too"),
    ]


def _skip_aside(standing: Standing) -> tuple[str, str] | None:
    """Tasks that nothing came of would be tried first again."""
    if not (aside := {*standing.state.settled.aside}):
        return None
    from bydawn.operations.tasks import of_loop

    numbers = [str(task.number) for task in of_loop(standing).standings.tasks if task.id in aside]
    skip = f"tasks skip {standing.reference} {' '.join(numbers)}"
    return (skip, "or leave out what nothing came of") if numbers else None


def _beyond_limits(standing: Standing) -> tuple[str, str]:
    """The flags of a `resume` that takes a loop beyond its limits, all of them at once, and what it does."""
    from bydawn.core import reach
    from bydawn.core.breakers import limits_of
    from bydawn.core.values import Now

    loop, state, now = standing.loop, standing.state, datetime.now(UTC)
    rule = state.stopped.decided.rule if state.stopped else ""
    flags = [reach.raised(each, state) for each in reach.all_used_up(loop, state, Now(now, state.elapsed))]
    if (until := limits_of(loop, state).until) and until <= now:
        flags.append("--until 09:00")
    if rule == Rule.LATEST_WAKE:
        flags.append(f"--latest-wake {_when_free(standing, now)}")
    if flags:
        return " ".join(flags), "raise the limit and go on"
    return "", "when the agent is free again" if rule == Rule.LIMIT_STOPS else "go on"


def _when_free(standing: Standing, now: datetime) -> str:
    """A moment at which the first of the agents is free again, as far as anybody knows."""
    known = [row.until for row in standing.state.limited if row.until and row.until > now]
    return f"{min(known).astimezone() + timedelta(minutes=5):%Y-%m-%dT%H:%M}" if known else "09:00"
