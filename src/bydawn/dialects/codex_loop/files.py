"""The files of a project: what is in `.codex-loop/`, for people, scripts and agents."""

from collections.abc import Iterator

from bydawn.core import answers
from bydawn.core.facts import (
    AnyFact,
    ChecksEnded,
    HookEnded,
    LoopStopped,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TaskSettled,
)
from bydawn.core.history import History
from bydawn.core.layout import PROMPT, REPLY, STDOUT
from bydawn.core.loop import Loop
from bydawn.core.outcome import POLICY
from bydawn.core.state import LoopState
from bydawn.dialects.codex_loop import document, history
from bydawn.dialects.codex_loop.arguments import config_of
from bydawn.dialects.codex_loop.config import FOLDER, LOCK, METRICS, NAME, SCHEMA, STATE
from bydawn.dialects.codex_loop.metrics import metrics_of
from bydawn.dialects.seam import Files, Log, LogFile, Source, View, Whole

LOGS, PROMPTS, RUNS, HOOKS = (f"{FOLDER}/{name}/" for name in ("logs", "prompts", "runs", "hooks"))


def files(loop: Loop) -> Files:
    return Files(
        common=(STATE, METRICS, SCHEMA, LOCK),
        owned=(LOGS, PROMPTS, RUNS, HOOKS),
        logs=tuple(LogFile(f"{HOOKS}{event}.jsonl", is_json=True) for event in history.HOOK_EVENTS),
        claims=(f"{NAME} in {loop.workspace}",),
    )


def views(fact: AnyFact, loop: Loop, state: LoopState, past: History) -> Iterator[View]:
    if isinstance(fact, HookEnded) and state.updated_at:
        event, fields = history.hook_line(fact, state.updated_at)
        yield Log(f"{HOOKS}{event}.jsonl", fields)
    if isinstance(fact, RunStarted):
        yield Whole(LOCK, f'{{"pid": {fact.pid}, "started_at": "{history.moment(state.updated_at)}"}}\n')
    elif isinstance(fact, LoopStopped):
        yield Whole(LOCK, None)
    saved = config_of(loop.dialect.words).logging if loop.dialect else None
    if isinstance(fact, RoundStarted) and saved and saved.save_prompts:
        yield Whole(prompt_of(fact.round, fact.task_id), Source(fact.round, PROMPT))
    elif isinstance(fact, RoundEnded) and past.attempts:
        task = past.attempts[-1].started.task_id
        if saved and saved.save_jsonl:
            yield Whole(log_of(fact.round, task), Source(fact.round, STDOUT))
        if fact.said:  # an iteration that was cut leaves the last answer as it is
            yield Whole(answer_about(task), Source(fact.round, REPLY))
    yield Whole(SCHEMA, answers.SCHEMA)
    if state.updated_at and not isinstance(fact, TaskSettled):  # another fact follows that at once
        now = document.document_of(loop, state, past)
        yield Whole(STATE, document.text_of(now))
        if _is_counted(fact):
            yield Whole(METRICS, document.text_of(metrics_of(now)))


def _is_counted(fact: AnyFact) -> bool:
    """Does a number change with it, or with none that follows at once? An iteration is counted when it is verified."""
    is_whole = isinstance(fact, RoundEnded) and not POLICY[fact.outcome].checks
    return is_whole or isinstance(fact, RunStarted | ChecksEnded | LoopStopped)


def prompt_of(round_: int, task: str | None) -> str:
    return f"{PROMPTS}{_name(round_, task)}.txt"


def log_of(round_: int, task: str | None) -> str:
    return f"{LOGS}{_name(round_, task)}.jsonl"


def answer_about(task: str | None) -> str:
    return f"{RUNS}{task or 'whole'}-last.json"


def _name(round_: int, task: str | None) -> str:
    return f"{round_:04}-{task or 'whole'}"
