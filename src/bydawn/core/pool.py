"""Which agent works next: the first in the pool that is not limited, or none for a while."""

import zlib
from datetime import datetime

import msgspec

from bydawn.core.loop import Loop, OnLimit, Sessions
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.state import Limited, LoopState
from bydawn.core.values import Now

# When rounds make no progress: say so in the prompt, start a fresh conversation, try another agent, then stop.
FRESH_SESSION_AFTER = 2  # rounds without progress
OTHER_AGENT_AFTER = 3
SLOWER_AFTER = 10

_BACK_OFF = {Outcome.TRANSIENT: (2.0, 300.0), Outcome.LIMITED: (60.0, 1800.0)}  # first, longest
_AFTER_FAILURES = (5.0, 60.0, 300.0, 900.0)


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """No agent can work before this is over."""

    agent: str  # the one that is free first
    detail: str
    seconds: float
    until: datetime | None  # None: no time was given, and the seconds are a guess


def next_agent(loop: Loop, state: LoopState, now: Now) -> str | Rest:
    """The agent for the next round; always the first one again as soon as it is free."""
    rests = []
    for agent in _candidates(loop, state):
        limited = next((row for row in state.limited if row.agent == agent), None)
        seconds = _seconds_left(loop, state, limited, now) if limited else 0.0
        if limited is None or seconds <= 0:
            return agent
        until = limited.until if limited.until and now.at < limited.until else None
        rests.append(Rest(agent=agent, detail=limited.detail, seconds=seconds, until=until))
    return min(rests, key=lambda rest: rest.seconds)


def _candidates(loop: Loop, state: LoopState) -> tuple[str, ...]:
    """The agents that may work, in order. If one makes no progress, another might: the third step of a stall."""
    if loop.others and state.rounds_without_progress >= OTHER_AGENT_AFTER:
        first = (state.rounds_without_progress - OTHER_AGENT_AFTER + 1) % len(loop.pool)
        return (*loop.pool[first:], *loop.pool[:first])
    return loop.pool if loop.on_limit is OnLimit.SWITCH else loop.pool[:1]


def _seconds_left(loop: Loop, state: LoopState, limited: Limited, now: Now) -> float:
    if limited.until and now.at < limited.until:
        return (limited.until - now.at).total_seconds()
    if limited.until and limited.times < 2:
        return 0.0  # the reset time has come; if the agent is still limited, back off as usual
    return limited.elapsed + back_off(loop, state, Outcome.LIMITED, limited.times) - now.elapsed


def slow_down(state: LoopState) -> float:
    """Seconds to rest when rounds make no progress and no breaker ends the loop: it must not spin all night."""
    idle = state.rounds_without_progress - SLOWER_AFTER
    took = state.recent_seconds[-1] if state.recent_seconds else 0.0
    return max(0.0, min(2.0 ** min(idle, 20), 60.0) - took) if idle >= 0 else 0.0


def back_off(loop: Loop, state: LoopState, outcome: Outcome, times: int = 0) -> float:
    """Longer each time; the jitter comes from the loop's id, so that a replay waits just as long."""
    if POLICY[outcome].failure:  # never shorter, so that the fifth failure is late enough to end the loop
        times = state.failing.times or min(1, state.rounds_this_run)  # a person who goes on need not wait
        return max((0.0, *_AFTER_FAILURES[:times])) * (1 + _jitter(loop, state) / 4)
    first, longest = _BACK_OFF.get(outcome, (1.0, 60.0))
    times = times or state.blips_in_a_row
    return min(first * 2.0 ** min(times - 1, 20), longest) * (0.75 + _jitter(loop, state) / 2)


def pause(loop: Loop, state: LoopState) -> float:
    """Seconds to rest between two rounds of one run. An attempt that cost no round is not followed by another one."""
    more = loop.by_task.pause_jitter if loop.by_task else loop.pause / 10
    rests = state.rounds_this_run and state.last and state.last.counts
    return loop.pause + more * _jitter(loop, state) if rests else 0.0


def _jitter(loop: Loop, state: LoopState) -> float:
    return zlib.crc32(f"{loop.uid}/{state.round}".encode()) / 0xFFFFFFFF


def session_for(loop: Loop, state: LoopState, agent: str, task: str | None, task_id: str | None) -> str | None:
    """The conversation to continue; always by its own id, never "the last one"."""
    session = state.session
    if loop.sessions is Sessions.PER_TASK and task_id:
        session = next((each for each in state.sessions if each.task_id == task_id), session)
    if session is None or not state.resumes or session.agent != agent or session.rounds >= loop.session_rounds > 0:
        return None
    if loop.session_rounds and loop.fresh_if_lost and state.rounds_without_progress >= FRESH_SESSION_AFTER:
        return None  # what it remembers keeps it going in circles
    same_task = session.task == task or (task_id is not None and session.task_id == task_id)
    wanted = {Sessions.FRESH: False, Sessions.RESUME: True, Sessions.PER_TASK: same_task}
    return session.id if wanted[loop.sessions] else None
