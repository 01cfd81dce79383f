"""codex-loop: what a project of the original says about itself."""

from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.dialects.codex_loop import original

STATE = (Path(__file__).parent / "original/state.json").read_text()
IDS = ("001-lexer", "002-parser", "003-docs", "004-new")


def test_done_tasks_numbers_and_sessions_are_taken_at_its_word() -> None:
    """C-003: only of tasks that are still there; a finished task needs no session, and a blocked one is open again."""
    fact, remarks = original.adopted(original.read(STATE), IDS)
    assert (fact.rounds, fact.agent, fact.done) == (7, "codex", ("001-lexer",))
    assert fact.sessions == {"002-parser": "0199d5a2-2222-7000-8000-000000000002"}
    assert fact.source == ".codex-loop/state.json: blocked at iteration 7"
    assert remarks == [
        "took over .codex-loop/state.json: blocked at iteration 7; its copy is beside it",
        "001-lexer: done by its word alone; nothing here has proven it",
        "003-docs: blocked there; tried again now",
    ]


def test_a_name_that_codex_gives_no_session_is_left_out() -> None:
    state = original.read('{"meta": {}, "tasks": {"a": {"status": "ready", "session_id": "--last"}}}')
    assert original.adopted(state, ["a"])[0].sessions == {}


def test_a_state_of_few_fields_is_enough() -> None:
    fact, remarks = original.adopted(original.read('{"meta": {"project_name": null, "x": 1}}'), IDS)
    assert (fact.rounds, fact.done, fact.sessions, len(remarks)) == (0, (), {}, 1)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "truncated"),
        ('{"meta": {"iteration": 7', "truncated"),
        ("[]", "Expected `object`"),
        ("{}", "missing required field `meta`"),
        ('{"meta": {"iteration": "seven"}}', "at `$.meta.iteration`"),
        ('{"meta": {"iteration": -1}}', "meta.iteration is -1"),
        ('{"meta": {"iteration": 99999999}}', "meta.iteration is 99999999"),
        ('{"meta": {"worktree_branch": "a\\u0000b"}}', "control characters"),
        ('{"meta": {"worktree_path": "\\ud800\\u0041"}}', "surrogate"),
        ('{"meta": {}, "tasks": {"a": 1}}', "at `$.tasks[...]`"),
        ('{"meta": ' + "[" * 100_000, "recursion"),
    ],
)
def test_a_damaged_state_is_refused_with_what_to_do(text: str, cause: str) -> None:
    """What is done there would be paid for once more."""
    with pytest.raises(UserError) as refused:
        original.read(text)
    assert refused.value.what == ".codex-loop/state.json cannot be taken over"
    assert cause in refused.value.cause
    assert "move it away, and `codex-loop run` begins with the first task" in refused.value.hint


def test_a_state_of_strict_agent_loop_is_told_apart() -> None:
    """X-03: its older layout has a file of the same name."""
    with pytest.raises(UserError, match=r"state\.json belongs to strict-agent-loop"):
        original.read('{"skill_name": "strict-agent-loop", "schema_version": 3, "task": {"id": "old"}}')


@pytest.mark.parametrize(
    ("data", "pid"),
    [
        (b"4711\n", 4711),
        (b'{"pid": 4711, "started_at": "2026-03-01T09:00:00+00:00"}', 4711),
        *((data, 0) for data in (b"", b"{", b"null", b'{"pid": true}', b'{"pid": "4711"}', b'{"pid": -1}', b"1e99")),
        (b"[" * 100_000, 0),
    ],
)
def test_a_lock_names_its_process_as_a_number_or_in_json(data: bytes, pid: int) -> None:
    assert original.pid_of(data) == pid
