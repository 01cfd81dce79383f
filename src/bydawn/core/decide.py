"""Given what the ledger says, what do we do next?"""

from datetime import datetime, timedelta

import msgspec

from bydawn.core import breakers, completion, pool
from bydawn.core.facts import Changes, Decided, End, LoopStopped, Now, RoundEnded
from bydawn.core.loop import Loop, OnLimit, Sessions
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.progress import duration
from bydawn.core.state import LoopState

RULES: dict[str, str] = {
    "interrupted-round": "a round was started and never ended, so it is settled before anything else",
    "asked-to-stop": "a person asked the loop to stop",
    "asked-to-pause": "a person or a signal asked the loop to pause",
    "obstructed": "something outside the agent's turn makes going on impossible",
    "checks-due": "the work tree has changed since the checks last ran, or they failed",
    "complete": "everything that this loop requires is there",
    "task-file": "the task file cannot be believed, and an unreadable list is never an empty one",
    "agent-stop": "the agent cannot work until a person does something; trying again would only burn the night",
    "agent-failures": "the agent failed too many times in a row",
    "no-progress": "too many rounds in a row left the work tree as it was, or as it had been before",
    "rounds": "the limit of rounds is used up",
    "rounds-this-run": "this run was allowed only so many rounds",
    "time": "the loop has worked as long as it was allowed to",
    "tokens": "the budget of tokens is used up",
    "cost": "the budget of dollars is used up",
    "until": "the time it was allowed to work until has come",
    "limit-stops": "the provider's limit is used up, and this loop is not to wait for it",
    "latest-wake": "the provider's limit ends later than this loop may wait",
    "agent-limit": "the provider's limit has not been reset yet",
    "back-off": "the agent had trouble just now; waiting a little costs nothing",
    "next-round": "nothing above applies and there is work left",
}


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    rule: str


class Settle(_Action, frozen=True, kw_only=True):
    """Record that a round is over which was begun and has no end."""

    round: int
    reason: str = "the worker died during this round"


class StartRound(_Action, frozen=True, kw_only=True):
    round: int
    agent: str
    task: str | None = None
    session: str | None = None  # to go on with


class RunChecks(_Action, frozen=True, kw_only=True):
    round: int


class Wait(_Action, frozen=True, kw_only=True):
    """Sleep; until an instant if the agent named one."""

    seconds: float
    reason: str
    until: datetime | None = None


class Pause(_Action, frozen=True, kw_only=True):
    reason: str
    by: str


class Stop(_Action, frozen=True, kw_only=True):
    end: End
    reason: str
    evidence: tuple[str, ...] = ()
    by: str | None = None


Action = Settle | StartRound | RunChecks | Wait | Pause | Stop


def last_word(action: Pause | Stop, now: Now) -> LoopStopped:
    """The fact with which a run ends."""
    return LoopStopped(
        end=action.end if isinstance(action, Stop) else End.PAUSED,
        reason=action.reason,
        decided=Decided(rule=action.rule, at=now.at, elapsed=now.elapsed),
        evidence=action.evidence if isinstance(action, Stop) else (),
        by=action.by,
    )


def settled(action: Settle, tree: str, now: Now, changes: Changes | None = None) -> RoundEnded:
    """The fact that ends a round which nobody saw the end of; what it changed stays."""
    return RoundEnded(
        round=action.round,
        outcome=Outcome.INTERRUPTED,
        detail=action.reason,
        tree=tree,
        changes=changes or Changes(),
        progress=False,
        elapsed=now.elapsed,
    )


def next_action(loop: Loop, state: LoopState, now: Now) -> Action:
    """Order is meaning: a finished loop must not "give up", and a person's word comes first."""
    if state.open_round:
        return Settle(rule="interrupted-round", round=state.open_round.round)
    if state.stop_now:
        return _asked(state)
    if state.obstructed:
        return _obstructed(state)
    if loop.checks and ((state.awaiting_checks and not state.checks_passed) or completion.unproven(loop, state)):
        return RunChecks(rule="checks-due", round=state.round)
    if not completion.missing(loop, state):
        return _finished(loop, state)
    if state.stop or state.pause:
        return _asked(state)
    return _stuck(loop, state, now) or _back_off(loop, state, now) or _next_round(loop, state, now)


def _asked(state: LoopState) -> Action:
    if state.stop:
        return Stop(rule="asked-to-stop", end=End.STOPPED, reason=f"asked by {state.stop.by}", by=state.stop.by)
    assert state.pause  # noqa: S101 - the caller has seen one of the two
    by = state.pause.signal or state.pause.by
    return Pause(rule="asked-to-pause", reason=f"paused by {by}", by=by)


def _obstructed(state: LoopState) -> Action:
    assert state.obstructed  # noqa: S101 - the caller has seen it
    kind, detail = state.obstructed.kind, state.obstructed.detail
    return Stop(rule="obstructed", end=End.BLOCKED, reason=detail, evidence=(kind,))


def _finished(loop: Loop, state: LoopState) -> Action:
    evidence = []
    if state.tasks and loop.tasks:
        evidence.append(f"{loop.tasks}: {state.tasks.done} of {state.tasks.done} tasks done")
    evidence += [f"{verdict.check}: passed" for verdict in state.verdicts if loop.checks]
    if state.promise_given:
        evidence.append(f"the promise was given in round {state.round}")
    return Stop(
        rule="complete",
        end=completion.finished(loop),
        reason=" and ".join(loop.requires),
        evidence=tuple(evidence),
    )


def _stuck(loop: Loop, state: LoopState, now: Now) -> Action | None:
    if state.tasks and state.tasks.problem:
        return Stop(rule="task-file", end=End.BLOCKED, reason=f"{loop.tasks} {state.tasks.problem}")
    last = state.last
    if last and (POLICY[last.outcome].stops or (POLICY[last.outcome].stops_idle and not last.progress)):
        return Stop(rule="agent-stop", end=End.FAILED, reason=last.detail, evidence=(last.outcome.value,))
    if breaker := breakers.tripped(loop, state, now):
        return Stop(rule=breaker.name, end=breaker.end, reason=_why(breaker, state), evidence=_evidence(loop, state))
    return None


def _why(breaker: breakers.Tripped, state: LoopState) -> str:
    count = int(breaker.reading)
    last = state.last.detail if state.last else ""
    match breaker.name:
        case "agent-failures":
            return f"the agent failed {count} times in a row; last: {last}"
        case "no-progress":
            return f"{count} rounds in a row changed nothing that had not been seen before"
        case "rounds":
            return f"all {int(breaker.limit)} rounds are used up"
        case "rounds-this-run":
            return f"this run was allowed {int(breaker.limit)} {'round' if breaker.limit == 1 else 'rounds'}"
        case "tokens":
            return f"{count:,} tokens are used, of a budget of {int(breaker.limit):,}"
        case "cost":
            return f"${breaker.reading:.2f} are spent, of a budget of ${breaker.limit:.2f}"
        case "time":
            return f"the loop has worked for {duration(breaker.limit)}"
        case _:
            return "the time it was allowed to work until has come"


def _evidence(loop: Loop, state: LoopState) -> tuple[str, ...]:
    """What is still missing, with the failing checks' own words."""
    rows = [completion.describe(condition, loop, state) for condition in completion.missing(loop, state)]
    rows += [f"{verdict.check}: {verdict.told}" for verdict in state.verdicts if not verdict.passed]
    return tuple(rows)


def _back_off(loop: Loop, state: LoopState, now: Now) -> Action | None:
    last = state.last
    if last is None or not POLICY[last.outcome].backs_off or last.outcome is Outcome.LIMITED:
        return None  # a limit is the business of the agent that has it, and another one may work meanwhile
    seconds = last.elapsed + pool.back_off(loop, state, last.outcome) - now.elapsed
    seconds = min(seconds, breakers.time_left(loop, state, now))
    return Wait(rule="back-off", seconds=seconds, reason=last.detail) if seconds > 0 else None


def _next_round(loop: Loop, state: LoopState, now: Now) -> Action:
    agent = pool.next_agent(loop, state, now)
    if isinstance(agent, pool.Rest):
        return _rest(loop, state, agent, now)
    task = state.tasks.next if state.tasks else None
    session = _session(loop, state, agent, task)
    return StartRound(rule="next-round", round=state.round + 1, agent=agent, task=task, session=session)


def _rest(loop: Loop, state: LoopState, rest: pool.Rest, now: Now) -> Action:
    """A wait never outlasts the loop's own limits: a reset at nine is of no use to a loop that ends at seven."""
    reason = f"{rest.agent}: {rest.detail}" if loop.others else rest.detail
    over, latest = now.at + timedelta(seconds=rest.seconds), breakers.limits_of(loop, state).latest_wake
    rule = "limit-stops" if loop.on_limit is OnLimit.STOP else "latest-wake" if latest and over > latest else None
    if rule:
        free = f"{rest.agent} is free again at {over.astimezone():%Y-%m-%d %H:%M}{'' if rest.until else ' (a guess)'}"
        return Stop(rule=rule, end=End.LIMIT, reason=reason or "a usage limit", evidence=(free,))
    seconds = min(rest.seconds, breakers.time_left(loop, state, now))
    return Wait(rule="agent-limit" if rest.until else "back-off", seconds=seconds, until=rest.until, reason=reason)


def _session(loop: Loop, state: LoopState, agent: str, task: str | None) -> str | None:
    """The conversation to go on with; always by its own id, never "the last one"."""
    session = state.session
    if session is None or session.agent != agent or session.rounds >= loop.session_rounds > 0:
        return None
    wanted = {Sessions.FRESH: False, Sessions.RESUME: True, Sessions.PER_TASK: session.task == task}
    return session.id if wanted[loop.sessions] else None
