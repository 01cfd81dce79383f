"""The files of rloop: a log in the project, and one table of all sessions."""

from collections.abc import Iterator
from datetime import UTC, datetime

from bydawn.core.agent import Event, Message, readable
from bydawn.core.breakers import limits_of
from bydawn.core.facts import AnyFact, LoopStopped, RoundEnded, RoundStarted, RunStarted, WaitStarted
from bydawn.core.history import Attempt, History, counted
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import EXIT_CODES, FINISHED, End, Promised
from bydawn.dialects.rloop import log, texts
from bydawn.dialects.rloop.config import IGNORE, LOG
from bydawn.dialects.seam import Entry, Files, Log, LogFile, Rotation, View, Whole

RUNNING, COMPLETE, FAILED, STOPPED, CRASHED = "running", "complete", "failed", "stopped", "crashed"
EXIT_CAP = 1
_BIGGEST_LOG, _OLDER_LOGS = 20_000_000, 10  # bytes, files


def words(loop: Loop) -> dict[str, str]:
    return loop.dialect.words if loop.dialect else {}


def cap(loop: Loop, state: LoopState) -> int:
    return limits_of(loop, state).rounds or 0


def left(state: LoopState) -> str:
    return str(state.tasks.open) if state.tasks else "?"


def files(loop: Loop) -> Files:
    kept = words(loop)
    return Files(
        logs=(LogFile(LOG, rotation=Rotation(_BIGGEST_LOG, files=_OLDER_LOGS, days=int(kept["retain_days"]))),),
        shared=(IGNORE,),
        together=(kept["state"],),
        claims=(f"the session {kept['session']}",),
    )


def views(fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
    at = state.updated_at
    assert at  # noqa: S101 - there was a fact
    match fact:
        case RunStarted():
            yield Whole(IGNORE, "*\n", once=True)
            is_new = state.runs == 1
            yield Log(LOG, _beginning(loop, state) if is_new else log.resumed(at), fresh=is_new)
        case RoundStarted():
            yield from _round_started(loop, state, history)
        case RoundEnded():
            yield Log(LOG, tuple(_round_ended(fact, loop, state)))
        case WaitStarted() if fact.decided.rule != Rule.PAUSE:
            yield Log(LOG, (log.waiting(fact.until, fact.seconds, fact.reason),))
        case LoopStopped():
            yield Log(LOG, ending(fact, state, at))
        case _:
            pass
    kept = words(loop)
    yield Entry(kept["state"], ("sessions", kept["session"]), session(loop, state), owner="started_at")


def _beginning(loop: Loop, state: LoopState) -> tuple[str, ...]:
    kept, at = words(loop), state.run_since or loop.created_at
    about = (loop.workspace, loop.tasks or "", cap(loop, state), kept["marker"], kept["model"])
    return log.opening(*about, at, left(state))


def _round_started(loop: Loop, state: LoopState, history: History) -> Iterator[View]:
    *earlier, mine = history.attempts
    if earlier and earlier[-1].counted == mine.counted and _is_of_now(earlier[-1], state):
        yield Log(LOG, log.again(mine.counted))
    else:
        yield Log(LOG, log.iteration(mine.counted, cap(loop, state), left(state)))


def _round_ended(fact: RoundEnded, loop: Loop, state: LoopState) -> Iterator[str]:
    told, is_waited_out = fact.words or fact.detail, POLICY[fact.outcome].backs_off and not POLICY[fact.outcome].counts
    if fact.outcome not in (Outcome.OK, Outcome.INTERRUPTED) and told and not is_waited_out:
        yield log.trouble(f"{loop.agent} had trouble: {told}")
    if fact.promise is Promised.GIVEN and state.tasks and state.tasks.open:
        yield log.trouble(f"The promise does not count: {texts.boxes(state.tasks.open)} still open")
    if fact.found.doubted:
        yield f"⏹ Ticked without any other change: {', '.join(fact.found.doubted)}"
    if POLICY[fact.outcome].counts:
        yield log.after(left(state))
    elif fact.outcome is Outcome.INTERRUPTED:
        yield log.cut()


def _is_of_now(attempt: Attempt, state: LoopState) -> bool:
    return state.run_since is not None and attempt.started_at > state.run_since


def ending(stopped: LoopStopped, state: LoopState, at: datetime) -> tuple[str, ...]:
    """The last lines: how it ended, what is left, when."""
    remaining, finished = f"Remaining tasks: {left(state)}", f"FINISHED: {log.moment(at)}"
    done = f"after {state.rounds} iterations"
    word, cause = status(stopped), why(stopped)
    if word == COMPLETE:
        return "", f"✅ Ralph complete {done}.", finished
    if cause == "max_iterations":
        return "", f"⚠️ Hit max iterations ({state.rounds})", remaining, finished
    how = {"error": "failed", "limit": "stopped at a limit"}.get(cause, cause)
    how = how if word == FAILED else "stopped" if word == STOPPED else "interrupted"
    sign = "❌" if word == FAILED else "⏹"
    return "", f"{sign} Ralph {how} {done}: {texts.reason(stopped)}", remaining, finished


def heard(event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:  # noqa: ARG001
    """What the agent says; with `level: debug` also what it does."""
    is_told = isinstance(event, Message) or words(loop)["level"] == "debug"
    if is_told and (text := readable(event).strip("\n")):
        lines = log.said(text)
        yield Log(LOG, lines if isinstance(event, Message) else lines[:-1])


# -- the table of all sessions -----------------------------------------------------------------------------------------


def status(stopped: LoopStopped | None) -> str:
    """What `state.json` says. A session that a shutdown ended is to go on: it still says `running`."""
    if stopped is None or stopped.by_machine:
        return RUNNING
    if stopped.end in FINISHED:
        return COMPLETE
    return STOPPED if stopped.end in (End.STOPPED, End.PAUSED) else FAILED


_WHY = {End.FAILED: "error", End.BLOCKED: "blocked", End.CHECKPOINT: "blocked", End.LIMIT: "limit"}


def why(stopped: LoopStopped) -> str:
    """The reason of a failure, as one word."""
    return "max_iterations" if stopped.decided.rule == Rule.ROUNDS else _WHY.get(stopped.end, "")


def session(loop: Loop, state: LoopState) -> dict[str, object]:
    """The row of a session."""
    kept, stopped = words(loop), state.stopped
    is_running = status(stopped) == RUNNING
    return {
        "name": kept["session"],
        "dir": loop.workspace,
        "task_file": loop.tasks,
        "pid": state.pid or None if is_running else None,
        "tmux_session": kept["tmux"] if stopped is None else "",
        "started_at": loop.created_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "iteration": counted(state),
        "max_iterations": cap(loop, state),
        "status": status(stopped),
        "last_task_count": state.tasks.open if state.tasks else None,
        "completion_marker": kept["marker"],
        "log_file": f"{loop.workspace}/{LOG}",
        "backend": kept["backend"],
        "model": kept["model"] or None,
        "webhook": kept["webhook"] or None,
        "reason": (why(stopped) or None) if stopped else None,
    }


def word(stopped: LoopStopped) -> str:
    return STOPPED if stopped.by_machine else status(stopped)


def exit_code(stopped: LoopStopped) -> int:
    if stopped.decided.rule == Rule.ROUNDS:
        return EXIT_CAP
    return 2 if stopped.is_refusal else EXIT_CODES[stopped.end]
