"""What a person can do next about a loop: only commands that exist and help."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from bydawn.core.facts import COMMIT
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.text import PLACEHOLDER
from bydawn.core.values import Act, Flag, Next, Status
from bydawn.operations import outputs, reasons
from bydawn.operations.pending import asked
from bydawn.operations.views import limited_now
from bydawn.store.ledger import OtherVersion
from bydawn.store.registry import Standing


def next_steps(standing: Standing) -> list[Next]:
    """Useful commands for a loop in its current state, the most useful first."""
    steps = [step for step in _by_status(standing) if step]
    answer = _answer(standing)
    steps = [answer, *steps] if standing.state.questions and answer not in steps else steps
    if standing.loop.worktree is None:
        return steps
    from bydawn.operations.worktrees import merge_steps

    merge = merge_steps(standing)
    return [*merge, *steps] if standing.finished else [*steps, *merge]


def _of_its_dialect(standing: Standing) -> list[Next]:
    from bydawn.dialects import of_loop

    dialect, stopped = of_loop(standing.loop), standing.state.stopped
    return dialect.next_steps(standing.loop, standing.state, stopped) if dialect and stopped else []


def _by_status(standing: Standing) -> list[Next | None]:
    name, last_words, red = standing.reference, _last_words(standing), _red_checks(standing)
    resume = Act("resume", name)
    if standing.loop.recording and standing.loop.recording.by_hand and not standing.alive:
        return [Next(Act("show", name), "what its session recorded"), *_of_its_dialect(standing), red]
    match standing.status:
        case Status.RUNNING:
            return [Next(Act("logs", name, f=True), "watch it"), _pause_or_stop(standing)]
        case Status.WAITING:
            return [Next(Act("why", name), "what it is waiting for"), Next(Act("stop", name), "give up")]
        case Status.BLOCKED:
            return _when_blocked(standing)
        case Status.CHECKPOINT:
            look = Next(Act("show", name), "what was done so far")
            return [look, Next(Act("resume", name, approve=True), "approve and continue")]
        case Status.FAILED:
            return [_log_in(standing), last_words, red, Next(resume, "once the agent works again")]
        case Status.LIMIT:
            return [_beyond_limits(standing), _take_tests(standing), red, last_words]
        case Status.PAUSED:
            stopped = standing.state.stopped
            return [Next(resume, "begin" if stopped and stopped.is_preparation else "continue"), red]
        case Status.STOPPED:
            # What was refused at the start would be refused again.
            refused = standing.state.stopped is not None and standing.state.stopped.is_refusal
            return [Next(resume, "continue after all") if not refused else None, red]
        case Status.CRASHED:
            ends = Next(Act("stop", name), "end what is still running") if standing.left else None
            return [ends, Next(resume, "continue where it left off")]
        case Status.DAMAGED if isinstance(standing.trouble, OtherVersion):
            return []  # what is wrong says what to do
        case Status.DAMAGED:
            return [Next(Act("doctor --repair", name), "move the damaged part away")]
        case Status.COMPLETE | Status.UNVERIFIED:
            return [Next(Act("show", name), "what happened in each round"), last_words]


def _pause_or_stop(standing: Standing) -> Next | None:
    """Not what has been asked already."""
    if (pending := asked(standing.state)) is None:
        return Next(Act("pause", standing.reference), "pause after this round")
    is_last = pending.what == "stop" and pending.after_round is None
    return None if is_last else Next(Act("stop", standing.reference), "end it now")


def _answer(standing: Standing) -> Next:
    return Next(Act("tell", standing.reference, PLACEHOLDER), "answer the agent")


def _log_in(standing: Standing) -> Next | None:
    """The agent's own log-in command; from our table, never from an agent's output."""
    last = standing.state.last
    if last is None or last.ended.outcome is not Outcome.AUTH:
        return None
    from bydawn import agents

    return Next(command=agents.cli(last.agent).login, why="log in") if agents.is_cli(last.agent) else None


def _last_words(standing: Standing) -> Next | None:
    """Nothing if the agent did not start or printed nothing."""
    last = standing.state.round
    if not last or not outputs.has_printed(standing, last):
        return None
    return Next(Act("logs", standing.reference, round=last), "what the agent said last")


def _red_checks(standing: Standing) -> Next | None:
    """Where to read the output of failing checks."""
    state = standing.state
    count = len(state.failed_checks)
    if not count or not state.verdict_round:
        return None
    what = "the failing check" if count == 1 else "the failing checks"
    return Next(Act("show", standing.reference, round=state.verdict_round), f"what {what} printed")


# -- blocked -----------------------------------------------------------------------------------------------------------


def _when_blocked(standing: Standing) -> list[Next | None]:
    """What helps depends on what blocks it; a note to the agent helps only if the agent can do something."""
    name, stopped = standing.reference, standing.state.stopped
    resume, accept = Act("resume", name), Act("resume", name, accept=True)
    rule = stopped.decided.rule if stopped else ""
    last_words = _last_words(standing)
    go_on = Next(Act("resume", name, flags=_higher_limits(standing)), "then continue")
    if rule in (Rule.AGENT_BLOCKED, Rule.RECORDED_END):
        return [_answer(standing), go_on, last_words]
    if rule == Rule.TAMPERED:
        return [
            Next(Act("show", name, round=standing.state.round), "what the round changed"),
            Next(resume, "once you have restored the files"),
            Next(accept, "or keep the changes"),
        ]
    if rule == Rule.CHANGED_TESTS:
        return [
            Next(Act("show", name), "which tests, and why"),
            Next(accept, "take them as they are"),
            Next(resume, "or go on, once you have put them back"),
        ]
    if standing.state.proofs.refused:
        take = Next(accept, "take the changed tests as they are")
        return [Next(Act("show", name), "which tests"), take, go_on, _red_checks(standing), last_words]
    if rule == Rule.RESTARTS:
        why = Next(Act("events", name), "when it died")
        return [why, last_words, Next(resume, "once you know why")]
    if rule == Rule.TASK_FILE:
        return [*_fix_list(standing), _accept_list(standing)]
    obstacle = standing.state.obstructed
    if rule == Rule.OBSTRUCTED and obstacle and obstacle.kind == "hook":
        return [Next(resume, "once you have fixed the hook"), _start_another(standing, "hook")]
    if rule == Rule.OBSTRUCTED and obstacle and obstacle.kind == COMMIT:
        return [
            Next(Act("show", name, round=standing.state.round), "what git said"),
            Next(resume, "once that is fixed: then it is committed first"),
        ]
    if rule == Rule.OBSTRUCTED:
        keep = Next(accept, "or keep the changed files") if standing.state.tampered else None
        return [Next(resume, "once that is fixed"), keep, last_words]
    if rule == Rule.SAME_FAILURE and any(verdict.never_ran for verdict in standing.state.verdicts):
        return [Next(resume, "once that program exists"), _start_another(standing, "check")]
    if rule == Rule.TASKS_ASIDE and (skipped := _after_skipping(standing)):
        return [*skipped, go_on]
    tell = Next(Act("tell", name, PLACEHOLDER), "tell the agent what to do differently")
    return [tell, _skip_aside(standing) or _skip_stuck(standing), go_on, _red_checks(standing), last_words]


def _take_tests(standing: Standing) -> Next | None:
    """Changed tests for which the checks count as failed; a limit came before it was settled."""
    if not standing.state.proofs.refused:
        return None
    take = Act("resume", standing.reference, accept=True, flags=_higher_limits(standing))
    return Next(take, "or take the changed tests as they are")


def _start_another(standing: Standing, what: str) -> Next | None:
    """A loop keeps the commands it was started with; another command needs another loop."""
    if standing.loop.dialect:
        return None
    from bydawn.operations.start import typed_again

    command, left_out = typed_again(standing.loop)
    return Next(command, f"or start a new loop with the right {what}" + (f"; {left_out}" if left_out else ""))


def _fix_list(standing: Standing) -> list[Next]:
    """A folder has no single file to open, so the step names the folder."""
    name, loop = standing.reference, standing.loop
    if not loop.task_folder:
        return [Next(Act("tasks edit", name), "fix the list"), Next(Act("resume", name), "then continue")]
    where = Path(loop.list_root) / (loop.tasks or "")
    fix = Next(Act("tasks list", name), "what is wrong with it")
    return [fix, Next(Act("resume", name), f"once you have fixed {where}")]


def _accept_list(standing: Standing) -> Next | None:
    """A list that cannot be read cannot be accepted."""
    from bydawn.operations.tasks import trouble_if_accepted

    if trouble_if_accepted(standing):
        return None
    return Next(Act("resume", standing.reference, accept=True), "or accept the list as it is now")


def _after_skipping(standing: Standing) -> list[Next]:
    """What to do when open tasks wait for a skipped one."""
    name = standing.reference
    skipped, waiting = reasons.stranded_by_skipping(standing)
    if not skipped:
        return []
    numbers = [[str(task.number) for task in tasks] for tasks in (skipped, waiting)]
    return [
        Next(Act("tasks reopen", name, *numbers[0]), "do the skipped task after all"),
        Next(Act("tasks skip", name, *numbers[1]), "or skip the tasks that wait for it too"),
    ]


def _skip_aside(standing: Standing) -> Next | None:
    """Otherwise the tasks that were set aside are tried first again."""
    if not (aside := {*standing.state.settled.aside}):
        return None
    from bydawn.operations.tasks import of_loop

    numbers = [str(task.number) for task in of_loop(standing).standings.tasks if task.id in aside]
    skip = Act("tasks skip", standing.reference, *numbers)
    return Next(skip, "or skip what was set aside") if numbers else None


def _skip_stuck(standing: Standing) -> Next | None:
    """Leave the task that it does not get done, if there are others."""
    last = standing.state.last
    if last is None or not last.task_id:
        return None
    from bydawn.core.worklist import Stand
    from bydawn.operations.amounts import plural
    from bydawn.operations.tasks import of_loop

    still = [task for task in of_loop(standing).standings.tasks if task.stand in (Stand.OPEN, Stand.NEXT)]
    mine = [task for task in still if task.id == last.task_id]
    others = len(still) - len(mine)
    if not mine or not others:
        return None
    are_open = f"{plural(others, 'other task')} {'is' if others == 1 else 'are'} open"
    return Next(Act("tasks skip", standing.reference, str(mine[0].number)), f"or leave this task: {are_open}")


# -- limits ------------------------------------------------------------------------------------------------------------


def _beyond_limits(standing: Standing) -> Next:
    flags, stopped = _higher_limits(standing), standing.state.stopped
    if flags:
        return Next(Act("resume", standing.reference, flags=flags), "raise the limit and continue")
    is_limited = stopped is not None and stopped.decided.rule == Rule.LIMIT_STOPS
    return Next(Act("resume", standing.reference), "once the usage limit has reset" if is_limited else "continue")


def _higher_limits(standing: Standing) -> dict[str, Flag]:
    """The flags of `resume` that raise every used-up limit at once."""
    from bydawn.core import breakers
    from bydawn.core.values import Now

    loop, state, now = standing.loop, standing.state, datetime.now(UTC)
    flags = breakers.raised(breakers.all_used_up(loop, state, Now(now, state.elapsed)), state)
    if (until := breakers.limits_of(loop, state).until) and until <= now:
        flags["until"] = "09:00"
    if state.stopped and state.stopped.decided.rule == Rule.LATEST_WAKE:
        # Just after the first usage limit resets, if that is known.
        known = [row.until.astimezone() for row in limited_now(standing) if row.until]
        free = f"{min(known) + timedelta(minutes=5):%Y-%m-%dT%H:%M}" if known else "09:00"
        flags["latest_wake"] = free
    return flags
