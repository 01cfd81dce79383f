"""What a person can do next about a loop: only commands that exist, and that help."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Status
from bydawn.operations import outputs, reasons
from bydawn.operations.views import Next
from bydawn.store.registry import Standing


def next_steps(standing: Standing) -> list[Next]:
    """What makes sense for a loop as it is now, the most useful first."""
    return [step for step in _by_status(standing) if step]


def _ours(words: str, why: str) -> Next:
    return Next(command=f"bydawn {words}".strip(), why=why)


def _by_status(standing: Standing) -> list[Next | None]:
    name, last_words, red = standing.reference, _last_words(standing), _red_checks(standing)
    match standing.status:
        case Status.RUNNING:
            return [_ours(f"logs {name} -f", "watch it"), _ours(f"pause {name}", "stand still after this round")]
        case Status.WAITING:
            return [_ours(f"why {name}", "what it waits for"), _ours(f"stop {name}", "give up")]
        case Status.BLOCKED:
            return _when_blocked(standing)
        case Status.CHECKPOINT:
            look = _ours(f"show {name}", "what was done up to here")
            return [look, _ours(f"resume {name} --approve", "you have looked: go on")]
        case Status.FAILED:
            return [_log_in(standing), last_words, red, _ours(f"resume {name}", "when the agent works again")]
        case Status.LIMIT:
            return [_beyond_limits(standing), red, last_words]
        case Status.PAUSED:
            return [_ours(f"resume {name}", "go on"), red]
        case Status.STOPPED:
            return [_ours(f"resume {name}", "go on after all"), red]
        case Status.CRASHED:
            return [_ours(f"resume {name}", "go on from the last fact")]
        case Status.DAMAGED:
            return [_ours(f"doctor --repair {name}", "set the damaged part aside")]
        case Status.COMPLETE | Status.UNVERIFIED:
            return [_ours(f"show {name}", "the rounds"), last_words]


def _log_in(standing: Standing) -> Next | None:
    """The command of the agent's own that lets it in again; from our table, never from an agent's output."""
    last = standing.state.last
    if last is None or last.outcome is not Outcome.AUTH:
        return None
    from bydawn import agents

    return Next(command=agents.cli(last.agent).login, why="log in") if last.agent in agents.CLIS else None


def _last_words(standing: Standing) -> Next | None:
    """Where no agent could be started, or it printed nothing, there is nothing to see."""
    last = standing.state.round
    if not last or not outputs.has_printed(standing, last):
        return None
    return _ours(f"logs {standing.reference} --round {last}", "what the agent said last")


def _red_checks(standing: Standing) -> Next | None:
    """Where to read what the checks that are red have printed."""
    state = standing.state
    count = sum(not verdict.passed for verdict in state.verdicts)
    if not count or not state.verdict_round:
        return None
    what = "the failing check" if count == 1 else "the failing checks"
    return _ours(f"show {standing.reference} --round {state.verdict_round}", f"what {what} printed")


# -- blocked -----------------------------------------------------------------------------------------------------------


def _when_blocked(standing: Standing) -> list[Next | None]:
    """What helps depends on what blocks it; a word to the agent is of use only where the agent can help."""
    name, stopped = standing.reference, standing.state.stopped
    rule = stopped.decided.rule if stopped else ""
    last_words = _last_words(standing)
    go_on = _ours(f"resume {name} {_higher_limits(standing)}".strip(), "then go on")
    if rule == Rule.AGENT_BLOCKED:
        return [_ours(f'tell {name} "…"', "your answer to it"), go_on, last_words]
    if rule == Rule.TAMPERED:
        return [
            _ours(f"show {name} --round {standing.state.round}", "what it did"),
            _ours(f"resume {name}", "when you have put them back"),
            _ours(f"resume {name} --accept", "or keep them as they are now"),
        ]
    if rule == Rule.TASK_FILE:
        return [*_fix_list(standing), _accept_list(standing)]
    if rule == Rule.OBSTRUCTED and reasons.failed_hook(standing):
        return [_ours(f"resume {name}", "when you have mended the hook"), _start_another(standing, "hook")]
    if rule == Rule.OBSTRUCTED:
        return [_ours(f"resume {name}", "when that is mended"), last_words]
    if rule == Rule.SAME_FAILURE and any(verdict.never_ran for verdict in standing.state.verdicts):
        return [_ours(f"resume {name}", "when there is such a program"), _start_another(standing, "check")]
    if rule == Rule.TASKS_ASIDE and (skipped := _after_skipping(standing)):
        return [*skipped, go_on]
    tell = _ours(f'tell {name} "…"', "say what to do differently")
    return [tell, _skip_aside(standing), go_on, _red_checks(standing), last_words]


def _start_another(standing: Standing, what: str) -> Next | None:
    """A loop keeps the commands that it was given; another command needs another loop."""
    if standing.loop.dialect:
        return None
    from bydawn.operations.start import typed_again

    command, left_out = typed_again(standing.loop)
    return _ours(command, f"or start another with the right {what}" + (f"; {left_out}" if left_out else ""))


def _fix_list(standing: Standing) -> list[Next]:
    """A folder has no single file to open, so the step says where it is."""
    name, loop = standing.reference, standing.loop
    if not loop.task_folder:
        return [_ours(f"tasks edit {name}", "mend the list"), _ours(f"resume {name}", "then go on")]
    where = Path(loop.workspace) / (loop.tasks or "")
    fix = _ours(f"tasks list {name}", "what is wrong now")
    return [fix, _ours(f"resume {name}", f"when you have mended {where}")]


def _accept_list(standing: Standing) -> Next | None:
    """Accepting a list does not help while it cannot be read."""
    from bydawn.operations.tasks import trouble_if_accepted

    if trouble_if_accepted(standing):
        return None
    return _ours(f"resume {standing.reference} --accept", "or take it as it is now")


def _after_skipping(standing: Standing) -> list[Next]:
    """What can be done where open tasks wait for one that a person has skipped."""
    name = standing.reference
    skipped, waiting = reasons.stranded_by_skipping(standing)
    if not skipped:
        return []
    numbers = [" ".join(str(task.number) for task in tasks) for tasks in (skipped, waiting)]
    return [
        _ours(f"tasks reopen {name} {numbers[0]}", "do after all what others wait for"),
        _ours(f"tasks skip {name} {numbers[1]}", "or leave out what waits for it, too"),
    ]


def _skip_aside(standing: Standing) -> Next | None:
    """Tasks that nothing came of would be tried first again."""
    if not (aside := {*standing.state.settled.aside}):
        return None
    from bydawn.operations.tasks import of_loop

    numbers = [str(task.number) for task in of_loop(standing).standings.tasks if task.id in aside]
    skip = f"tasks skip {standing.reference} {' '.join(numbers)}"
    return _ours(skip, "or leave out what nothing came of") if numbers else None


# -- limits ------------------------------------------------------------------------------------------------------------


def _beyond_limits(standing: Standing) -> Next:
    flags, stopped = _higher_limits(standing), standing.state.stopped
    if flags:
        return _ours(f"resume {standing.reference} {flags}", "raise the limit and go on")
    is_limited = stopped is not None and stopped.decided.rule == Rule.LIMIT_STOPS
    return _ours(f"resume {standing.reference}", "when the agent is free again" if is_limited else "go on")


def _higher_limits(standing: Standing) -> str:
    """The flags of a `resume` that takes a loop beyond its limits, all of them at once."""
    from bydawn.core import reach
    from bydawn.core.breakers import limits_of
    from bydawn.core.values import Now

    loop, state, now = standing.loop, standing.state, datetime.now(UTC)
    flags = [reach.raised(each, state) for each in reach.all_used_up(loop, state, Now(now, state.elapsed))]
    if (until := limits_of(loop, state).until) and until <= now:
        flags.append("--until 09:00")
    if state.stopped and state.stopped.decided.rule == Rule.LATEST_WAKE:
        flags.append(f"--latest-wake {_when_free(standing, now)}")
    return " ".join(flags)


def _when_free(standing: Standing, now: datetime) -> str:
    """A moment at which the first of the agents is free again, as far as that is known."""
    known = [row.until for row in standing.state.limited if row.until and row.until > now]
    return f"{min(known).astimezone() + timedelta(minutes=5):%Y-%m-%dT%H:%M}" if known else "09:00"
