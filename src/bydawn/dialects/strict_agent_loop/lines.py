"""The lines of `events.jsonl` and `iterations.jsonl`, made from facts."""

from collections.abc import Iterator
from datetime import datetime

from bydawn.core.facts import (
    AnyFact,
    EventRecorded,
    IterationRecorded,
    LoopCreated,
    LoopStopped,
    RoundEnded,
    RoundStarted,
)
from bydawn.core.loop import Loop, Sessions
from bydawn.core.outcome import Outcome
from bydawn.core.records import RUNNING, Entry
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.dialects.strict_agent_loop import texts
from bydawn.dialects.strict_agent_loop.document import history_entry, reason, state_of, status_of
from bydawn.dialects.strict_agent_loop.formats import Datum, Event, IterationLine, State, StopReport, Time, moment

INVOCATION = "supervisor.invocation."
_LOST = (Outcome.SESSION_LOST, Outcome.CONTEXT_FULL)  # the next invocation begins from disk


def events_of(fact: AnyFact, loop: Loop, state: LoopState) -> Iterator[Event]:
    """What to write after this fact; `state` is the state after it."""
    now = state_of(loop, state)
    match fact:
        case LoopCreated():
            yield initialized(now)
        case EventRecorded() | IterationRecorded():
            yield event_of_claim(now, fact)
        case RoundStarted():
            number: dict[str, Datum] = {"iteration": state.records.iterations + 1}
            about = {"invocation": fact.round, "thread_id": fact.session, **number}
            yield _event(now, f"{INVOCATION}started", f"invocation {fact.round} begins", about)
            yield _event(now, "round.started", "\n".join(texts.announcement(now)), number)
        case RoundEnded():
            yield from _round_ended(fact, loop, state, now)
        case LoopStopped() if fact.decided.rule != Rule.ONLY_CHECKS:
            word = status_of(fact)
            kind = f"{INVOCATION}interrupted" if word == RUNNING else f"loop.{word}"
            if word != RUNNING or state.runs:  # else it is only prepared
                yield _event(now, kind, reason(fact), {"end": fact.end, "by": fact.by, "invocation": state.round})
        case _:
            pass


def _round_ended(fact: RoundEnded, loop: Loop, state: LoopState, now: State) -> Iterator[Event]:
    count = state.records.in_round
    if entry := new_entry(fact, state):
        yield _iteration(now, entry.claim.task, now.updated_at, {"from_reply": True})
    words = {Outcome.OK: "finished", Outcome.INTERRUPTED: "interrupted"}
    word = words.get(fact.outcome, "progressed" if count else "failed")
    detail = f": {fact.detail}" if fact.detail else ""
    about: dict[str, Datum] = {"invocation": fact.round, "outcome": fact.outcome, "exit_code": fact.exit_code}
    figures: dict[str, Datum] = {"iterations": count, "seconds": round(fact.seconds)}
    if not (word == "interrupted" and state.pause):  # else the end of the run tells of it
        yield _event(now, INVOCATION + word, f"invocation {fact.round} {word}{detail}", about | figures)
    if loop.sessions is Sessions.FRESH:
        return
    if fact.outcome in _LOST:
        yield _event(now, "supervisor.thread.reset", "the thread is lost; the next invocation begins from disk")
    if fact.commands.read_only and not state.resumes:
        said = "a command failed because the file system is read-only; every invocation begins from disk now"
        yield _event(now, "supervisor.resume.disabled", said)


def initialized(document: State) -> Event:
    """The first line of a task."""
    about: dict[str, Datum] = {"operating_mode": document.operating_mode}
    about["max_iterations"] = document.limits.max_iterations
    return _event(document, "loop.initialized", document.goal, about, document.created_at)


def event_of_claim(document: State, fact: EventRecorded | IterationRecorded) -> Event:
    """What was recorded; `document` has it already."""
    if isinstance(fact, EventRecorded):
        return _event(document, fact.kind, fact.message, {**fact.data}, moment(fact.at))
    claim = fact.claim
    about: dict[str, Datum] = {"status": claim.status, "progress_made": claim.progress, "batched": fact.batched or None}
    return _iteration(document, claim.task, moment(fact.at), about)


def broadcast(document: State, stop: StopReport, at: datetime) -> Event:
    """The run lives (S-037)."""
    said = "; ".join(texts.heartbeat(document, stop, at))
    return _event(document, "supervisor.broadcast", said, {"iteration": document.counters.iteration}, moment(at))


def parallel(document: State, running: str, started: str, at: datetime) -> Event:
    """The agent ran two commands at once, although a round does one thing."""
    about: dict[str, Datum] = {"running": texts.line(running), "started": texts.line(started)}
    kind, said = "supervisor.protocol.parallel-commands", "two commands ran at the same time"
    return _event(document, kind, said, about, moment(at))


def new_entry(fact: AnyFact, state: LoopState) -> Entry | None:
    """The iteration that this fact added: one that was recorded, or the reply of a round that recorded none."""
    last = state.records.entries[-1] if state.records.entries else None
    if last is None or isinstance(fact, IterationRecorded):
        return last
    return last if isinstance(fact, RoundEnded) and last.from_reply and last.round == fact.round else None


def iteration_of(document: State, entry: Entry) -> IterationLine:
    return IterationLine(
        recorded_at=moment(entry.at),
        task_id=document.task.id,
        state_path=document.path,
        operating_mode=document.operating_mode,
        goal=document.goal,
        global_stop_condition=document.global_stop_condition,
        entry=history_entry(entry, document),
    )


def _iteration(document: State, task: str, at: Time, data: dict[str, Datum]) -> Event:
    number = document.counters.iteration
    return _event(document, "iteration.recorded", f"iteration {number}: {task}", {"iteration": number, **data}, at)


def _event(
    document: State, kind: str, message: str, data: dict[str, Datum] | None = None, at: Time | None = None
) -> Event:
    return Event(
        timestamp=at or document.updated_at,
        kind=kind,
        message=message,
        task_id=document.task.id,
        state_path=document.path,
        data=data or {},
    )
