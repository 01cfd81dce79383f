"""The files of waylon-smithers: state, last messages, events and the summary, each made from facts alone."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from bydawn.core.breakers import limits_of
from bydawn.core.facts import AnyFact, LoopStopped, RoundEnded, RunStarted
from bydawn.core.history import Attempt, History, counted
from bydawn.core.layout import REPLY, STDOUT
from bydawn.core.loop import Loop, Mode, Promise
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, End, Promised
from bydawn.dialects.seam import Files, Log, LogFile, Source, View, Whole
from bydawn.dialects.waylon_smithers import texts

ROOT = ".codex/waylon-smithers"
IGNORE = f"{ROOT}/.gitignore"
ANY = "*"  # stands for every number
MESSAGE, STREAM = "last_message_iter_{}.txt", "events_iter_{}.jsonl"  # of an iteration
# What the document has no word for keeps ours.
STATUS = {
    End.COMPLETE: "completed",
    End.UNVERIFIED: "completed",
    End.CHECKPOINT: "paused_hard_stop",
    End.PAUSED: "paused_user_interrupt",
    End.STOPPED: "canceled",
}


def default_state(name: str) -> str:
    return f"{ROOT}/loops/{name}.json"


class Paths:
    """Where the files of a loop are; relative ones begin in the workspace."""

    def __init__(self, loop: Loop) -> None:
        words = loop.dialect.words if loop.dialect else {}
        self.state = words.get("state_file") or default_state(loop.id)
        self.folder = (words.get("last_message_dir") or f"{ROOT}/loops/{loop.id}").rstrip("/")
        self.summary = words.get("summary_json") or f"{self.folder}/summary.json"
        self.events = words.get("jsonl_events", "")

    def message(self, number: int | str) -> str:
        return f"{self.folder}/{MESSAGE.format(number)}"

    def stream(self, number: int | str) -> str:
        return f"{self.folder}/{STREAM.format(number)}"


def files(loop: Loop) -> Files:
    """Only the very names that are written: anything else in a folder that a person chose is theirs."""
    paths = Paths(loop)
    in_folder = paths.events.endswith("/")
    streams = [f"{paths.events}{STREAM.format(ANY)}"] if in_folder else []
    return Files(
        whole=(paths.state, paths.summary, paths.message(ANY), paths.stream(ANY), *streams),
        logs=(LogFile(paths.events, is_line=is_event),) if paths.events and not in_folder else (),
        shared=(IGNORE,),
        exclusive=(paths.state,),
        folder=default_state(loop.id).removesuffix(".json"),
    )


def views(fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
    """After each fact the state; after each iteration what it said and did as well."""
    paths = Paths(loop)
    if isinstance(fact, RunStarted):
        yield Whole(IGNORE, "*\n", once=True)  # what is written here is for people, not for commits
    if isinstance(fact, RoundEnded) and history.attempts:
        yield from _copies(history.attempts[-1], paths)
    yield Whole(paths.state, as_json(state_of(loop, state)))
    if isinstance(fact, RoundEnded | LoopStopped):
        yield Whole(paths.summary, as_json(summary(loop, state, history)))


def _copies(attempt: Attempt, paths: Paths) -> Iterator[View]:
    """What an iteration said and did, from the files of its round."""
    number, events = attempt.counted, Source(attempt.round, STDOUT)
    yield Whole(paths.message(number), Source(attempt.round, REPLY))
    yield Whole(paths.stream(number), events)
    # `--jsonl-events`: one file that grows, or a folder with a file for each iteration
    if paths.events.endswith("/"):
        yield Whole(f"{paths.events}{STREAM.format(number)}", events)
    elif paths.events:
        yield Log(paths.events, events)


class _Event(msgspec.Struct, frozen=True):
    type: str


def is_event(line: bytes) -> bool:
    """A whole line of Codex's stream, and of nothing else that has a `type`."""
    try:
        kind = msgspec.json.decode(line, type=_Event).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return line.endswith(b"\n") and (kind == "error" or kind.startswith(("thread.", "turn.", "item.")))


def status_of(stopped: LoopStopped | None) -> str:
    if stopped is None:
        return "running"
    if stopped.decided.rule == Rule.ROUNDS:
        return "stopped_max_iterations"
    return STATUS.get(stopped.end, stopped.end.value)


def state_of(loop: Loop, state: LoopState) -> dict[str, Any]:
    """The state file, field by field as the document has them, and ours behind."""
    words = loop.dialect.words if loop.dialect else {}
    paths, promise, number = Paths(loop), loop.promise or Promise(), counted(state)
    ended = number - bool(state.open_round)  # the last iteration that has files
    last, stopped = state.last, state.stopped
    return {
        "loop_id": loop.id,
        "created_at": words.get("created_at") or loop.created_at.isoformat(timespec="seconds"),
        "workspace_root": loop.workspace,
        "prompt": loop.prompt,
        "completion_promise": promise.text,
        "promise_mode": promise.mode.value if promise.mode is not Mode.LINE else Mode.PLAIN.value,
        "max_iterations": limits_of(loop, state).rounds,
        "iteration": number,
        "status": status_of(stopped),
        "codex": {
            "session_id": _session(state),
            "model": loop.model,
            "sandbox": words.get("sandbox"),
            "approval": words.get("approval"),
            "profile": loop.profile,
        },
        "todo": {
            "path": loop.tasks,
            "hard_stop_token": loop.checkpoint.token if loop.checkpoint else None,
            "hard_stop_mode": loop.checkpoint.mode.value if loop.checkpoint else None,
            "paused_for_hard_stop": stopped is not None and stopped.end is End.CHECKPOINT,
        },
        "artifacts": {
            "dir": f"{paths.folder}/",
            "last_message_path": MESSAGE.format(ended) if ended > 0 and last else None,
            "jsonl_path": STREAM.format(ended) if ended > 0 and last else None,
            "summary_json_path": paths.summary.removeprefix(f"{paths.folder}/"),
        },
        "last_result": {
            "exit_code": last.ended.exit_code if last else None,
            "detected_promise": last is not None and last.ended.promise is Promised.GIVEN,
        },
        "updated_at": _moment(state.updated_at),
        "reason": _reason(loop, stopped),
    }


def _reason(loop: Loop, stopped: LoopStopped | None) -> str | None:
    if stopped is None or stopped.end not in FINISHED:
        return texts.reason(stopped) if stopped else None
    return "the promise was given" + (", and all checks passed" if loop.checks else "")


def _session(state: LoopState) -> str | None:
    if state.session:
        return state.session.id
    return state.open_round.session if state.open_round else None


def summary(loop: Loop, state: LoopState, history: History) -> dict[str, Any]:
    """Every iteration, how it all ended, and what to do next."""
    stopped, used = state.stopped, state.usage
    steps = texts.next_steps(loop, state, stopped) if stopped else []
    return {
        "loop_id": loop.id,
        "workspace_root": loop.workspace,
        "status": status_of(stopped),
        "reason": _reason(loop, stopped),
        "evidence": list(stopped.evidence) if stopped else [],
        "iteration": counted(state),
        "max_iterations": limits_of(loop, state).rounds,
        "session_id": _session(state),
        "usage": msgspec.to_builtins(used) if used else None,
        "iterations": [_row(attempt, attempt.ended) for attempt in history.attempts if attempt.ended],
        "what_to_do_next": [f"{step.command}  # {step.why}" if step.command else step.why for step in steps],
    }


def _row(attempt: Attempt, ended: RoundEnded) -> dict[str, Any]:
    return {
        "iteration": attempt.counted,
        "started_at": _moment(attempt.started_at),
        "ended_at": _moment(attempt.ended_at),
        "seconds": ended.seconds,
        "outcome": ended.outcome.value,
        "detail": ended.detail,
        "exit_code": ended.exit_code,
        "detected_promise": ended.promise is Promised.GIVEN,
        "promise_mentioned": ended.promise is Promised.MENTIONED,
        "session_id": ended.session or attempt.started.session,
        "files_changed": ended.found.changes.total,
        "progress": ended.found.progress,
        "checks_passed": attempt.checks.passed if attempt.checks else None,
        "usage": msgspec.to_builtins(ended.usage) if ended.usage else None,
        "last_message_path": MESSAGE.format(attempt.counted),
        "jsonl_path": STREAM.format(attempt.counted),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None


def as_json(data: object) -> str:
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"
