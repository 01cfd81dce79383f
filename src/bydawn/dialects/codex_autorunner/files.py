"""The files of codex-autorunner: state, lock and log, each made from facts and from what is heard."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from bydawn.core.agent import Event, readable
from bydawn.core.facts import AnyFact, LoopStopped, RoundEnded, RoundStarted, RunStarted, WaitStarted
from bydawn.core.history import Attempt, History, counted
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import EXIT_CODES, End
from bydawn.dialects.codex_autorunner import log, texts
from bydawn.dialects.codex_autorunner.config import IGNORE, LOCK, LOG, STATE
from bydawn.dialects.seam import Files, Log, LogFile, View, Whole

IDLE, RUNNING, ERROR = "idle", "running", "error"
INTERRUPTED = "interrupted"  # the code of a run whose end no one saw
_WRONG = (End.BLOCKED, End.FAILED, End.STOPPED)  # a person must look


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`, field by field as the document has them, and ours behind."""

    last_run_id: int | None = None
    status: str = IDLE
    last_exit_code: int | None = None
    last_run_started_at: str | None = None
    last_run_finished_at: str | None = None
    reason: str | None = None
    outstanding: int | None = None
    loop: str | None = None

    @property
    def text(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def run_id(state: LoopState) -> int:
    """The id of the running or the last run: one that was cut short has used up its own."""
    return counted(state, numbers_cut=True)


def files(loop: Loop) -> Files:  # noqa: ARG001 - the same for every loop
    return Files(common=(STATE, LOCK), logs=(LogFile(LOG),), shared=(IGNORE,))


def views(fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
    """After each fact the state; around each run its markers."""
    run, at = run_id(state), state.updated_at
    assert at  # noqa: S101 - there was a fact
    match fact:
        case RunStarted():
            yield Whole(IGNORE, texts.IGNORE, once=True)
            yield Whole(LOCK, f"{fact.pid}\n")
        case RoundStarted() if _is_open(history.attempts[:-1], state):
            yield Log(LOG, (log.ours(run, at, "Codex CLI started again..."),))
        case RoundStarted():
            left = _left_open(history)
            yield Log(LOG, (*left, log.start(run), log.ours(run, at, "Codex CLI started...")))
        case RoundEnded():
            yield Log(LOG, tuple(_ended(fact, run, at)))
        case WaitStarted() if _is_open(history.attempts, state):
            until = f"until {log.moment(fact.until)}" if fact.until else f"for {fact.seconds:.0f} s"
            yield Log(LOG, (log.ours(run, at, f"waiting {until}: {fact.reason}"),))
        case LoopStopped() if _is_open(history.attempts, state):
            yield Log(LOG, (log.end(run, code_of(history.attempts[-1].ended)),))
        case _:
            pass
    yield Whole(STATE, state_of(loop, state, history).text)
    if isinstance(fact, LoopStopped):
        yield Whole(LOCK, None)


def heard(event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:  # noqa: ARG001
    """What Codex says and does, as it comes."""
    if lines := tuple(log.said(run_id(state), at, readable(event))):
        yield Log(LOG, lines)


def _ended(fact: RoundEnded, run: int, at: datetime) -> Iterator[str]:
    """A hiccup or a limit is waited out within the run; everything else is the end of it."""
    if fact.outcome is not Outcome.OK and (told := fact.words or fact.detail):
        how = "had trouble" if _is_free(fact) else "ended"
        yield log.ours(run, at, f"Codex CLI {how}: {told}")
    if not _is_free(fact):
        yield log.end(run, code_of(fact))


def _is_free(ended: RoundEnded) -> bool:
    """Did Codex merely have trouble, so that it is tried again?"""
    policy = POLICY[ended.outcome]
    return not policy.counts and not policy.stops and ended.outcome is not Outcome.INTERRUPTED


def _is_open(attempts: Sequence[Attempt], state: LoopState) -> bool:
    """Is a run of this very process waiting for its next try?"""
    if not attempts or attempts[-1].ended is None:
        return False
    return _is_free(attempts[-1].ended) and _is_of_now(attempts[-1], state)


def _left_open(history: History) -> tuple[str, ...]:
    """The end of the run before this one, if the process was killed while that waited for its next try."""
    *earlier, _ = history.attempts
    last = earlier[-1] if earlier else None
    if last is None or last.ended is None or not _is_free(last.ended):
        return ()
    stopped = any(event.stopped and event.attempts == len(earlier) for event in history.events)
    return () if stopped else (log.end(last.counted + last.cut, INTERRUPTED),)


def _is_of_now(attempt: Attempt, state: LoopState) -> bool:
    """Was it begun since the command was typed that runs, or ran last?"""
    return state.run_since is not None and attempt.started_at >= state.run_since


def code_of(ended: RoundEnded | None) -> int | str:
    """The exit code, as Python has it: a signal is negative."""
    if ended is None:
        return INTERRUPTED
    if ended.outcome is Outcome.OK:  # even if it did not exit by itself after its last word
        return 0
    if ended.exit_code is not None:
        return ended.exit_code
    return -ended.signal if ended.signal else INTERRUPTED if ended.outcome is Outcome.INTERRUPTED else 1


def state_of(loop: Loop, state: LoopState, history: History) -> State:
    """The state after a fact. What an earlier loop's last run left is in the words of this one until it has its own."""
    words = loop.dialect.words if loop.dialect else {}
    last = history.attempts[-1] if history.attempts else None
    ended = next((each for each in reversed(history.attempts) if each.ended), None)
    told = str(code_of(ended.ended)) if ended else words.get("last_exit_code", "")
    code = int(told) if told.lstrip("-").isdigit() else None
    finished = ended.ended_at if ended and ended is last else None
    return State(
        last_run_id=run_id(state) or None,
        status=_status(state, history, code if ended and _is_of_now(ended, state) else None),
        last_exit_code=code,
        last_run_started_at=log.moment(last.started_at) if last else words.get("last_run_started_at"),
        last_run_finished_at=_moment(finished) if last else words.get("last_run_finished_at"),
        reason=texts.reason(state.stopped) if state.stopped else None,
        outstanding=state.tasks.open if state.tasks else None,
        loop=loop.id,
    )


def _moment(at: datetime | None) -> str | None:
    return log.moment(at) if at else None


def _status(state: LoopState, history: History, code: int | None) -> str:
    if state.stopped is None and (state.open_round or _is_open(history.attempts, state)):
        return RUNNING
    wrong = state.stopped is not None and state.stopped.end in _WRONG
    return ERROR if code or wrong else IDLE


def word(stopped: LoopStopped) -> str:
    return ERROR if stopped.end in _WRONG else IDLE


def exit_code(stopped: LoopStopped) -> int:
    """`stop_after_runs` is a good end."""
    if stopped.decided.rule == Rule.ROUNDS_THIS_RUN:
        return 0
    return 2 if stopped.is_refusal else EXIT_CODES[stopped.end]
