"""codex-loop: which files are written when, from facts alone."""

from typing import Any

import msgspec

from bydawn.core.facts import AnyFact, ChecksEnded, CommitEnded, LoopStopped, RunStarted, TasksRead
from bydawn.core.loop import SpokenDialect
from bydawn.core.values import TaskStatus
from bydawn.dialects.codex_loop import files
from bydawn.dialects.codex_loop.config import METRICS, STATE, Config
from bydawn.dialects.seam import Whole
from dialects.codex_loop_made import (
    COMPLETE,
    LEXER,
    WORDS,
    a_project,
    an_iteration,
    begun,
    past,
    settled,
    tasks,
    verified,
)

CONFIG = msgspec.json.encode(Config()).decode()
PROJECT = a_project(dialect=SpokenDialect(name="codex-loop", words=WORDS | {"config": CONFIG}))
OPENED, ENDED = an_iteration(1, claim="done")
STORY: list[Any] = [
    begun(LEXER),
    OPENED,
    ENDED,
    CommitEnded(round=1, commit="c1"),
    verified(1),
    settled(LEXER, TaskStatus.DONE),
    TasksRead(tasks=tasks(done=1), tree="tree-1"),
    COMPLETE,
]


def written(fact: AnyFact) -> tuple[list[str], dict[str, Any]]:
    """The paths that are written or removed after a fact of the story, and what the state says then."""
    before = STORY[: STORY.index(fact) + 1]
    views = [*files.views(fact, PROJECT, *past(*before))]
    texts = [
        view.text for view in views if isinstance(view, Whole) and isinstance(view.text, str) and view.path == STATE
    ]
    paths = [view.path for view in views if isinstance(view, Whole) and not isinstance(view.text, str)]
    return paths, msgspec.json.decode(texts[0]) if texts else {}


def test_each_iteration_has_its_prompt_its_log_and_its_last_answer() -> None:
    """C-003"""
    assert written(OPENED)[0] == [f".codex-loop/prompts/0001-{LEXER}.txt"]
    assert written(ENDED)[0] == [f".codex-loop/logs/0001-{LEXER}.jsonl", f".codex-loop/runs/{LEXER}-last.json"]
    assert written(COMPLETE)[0] == [".codex-loop/run.lock"]


def test_who_waits_for_a_verification_or_the_next_iteration_sees_how_it_stands() -> None:
    """C-003: both take minutes. Nothing is written where another fact follows at once.

    After a commit, too, so that the file is not behind the record while the verification runs.
    """
    seen = [written(fact)[1] for fact in STORY]
    stands = [(state["tasks"][LEXER]["status"], len(state["history"])) if state else None for state in seen]
    assert stands == [
        ("ready", 0),
        ("in_progress", 0),
        ("in_progress", 1),
        ("in_progress", 1),
        ("in_progress", 1),
        None,
        ("done", 1),
        ("done", 1),
    ]
    assert seen[-1]["meta"]["overall_status"] == "completed"


def test_the_numbers_are_written_together_with_the_state_and_from_the_same_document() -> None:
    """C-016: also in the list of common files, so that no one takes it for work of the agent."""
    assert METRICS in files.files(PROJECT).common
    for place, fact in enumerate(STORY):
        state, history = past(*STORY[: place + 1])
        views = [view for view in files.views(fact, PROJECT, state, history) if isinstance(view, Whole)]
        texts = {view.path: msgspec.json.decode(str(view.text)) for view in views if view.path in (STATE, METRICS)}
        counts = isinstance(fact, RunStarted | ChecksEnded | LoopStopped)  # each iteration of the story is verified
        assert (METRICS in texts) is counts, fact
        if counts:
            assert texts[METRICS]["generated_at"] == texts[STATE]["meta"]["updated_at"]
            assert texts[METRICS]["history_entries"] == len(texts[STATE]["history"])
