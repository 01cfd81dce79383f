"""Codex: one builder for fresh and resumed turns, one verdict whatever happens."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.agents.codex import CodexAgent
from bydawn.core.agent import CommandEnded, CommandStarted, Ended, Event, Hopeless, Message, Turn
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.values import Usage

TURN = Turn(round=1, workspace="/ws")
STARTED = {"type": "thread.started", "thread_id": "t-1"}
COMPLETED = {"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2}}


def said(text: str) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"type": "agent_message", "text": text}}


def read(*lines: Any, turn: Turn = TURN, exit_: Exit | None = None, stderr: str = "") -> tuple[list[Event], Ended]:
    reader = CodexAgent().reader(turn)
    events = [event for line in lines for event in reader.read(json.dumps(line).encode())]
    return events, reader.end(exit_ or Exit(code=0), stderr)


ARGV = [
    (Turn(round=1, workspace="/ws"), "-s workspace-write --skip-git-repo-check -C /ws -"),
    (
        Turn(round=1, workspace="/ws", sandbox=Sandbox.READ_ONLY, model="m", profile="p"),
        "-s read-only --skip-git-repo-check -C /ws -m m -p p -",
    ),
    (
        Turn(round=1, workspace="/ws", sandbox=Sandbox.FULL, effort="high"),
        '--dangerously-bypass-approvals-and-sandbox --skip-git-repo-check -C /ws -c model_reasoning_effort="high" -',
    ),
    # a session remembers none of its permissions, and they are refused behind the word `resume`
    (
        Turn(round=2, workspace="/ws", session="t-1", arguments=("--search",)),
        "-s workspace-write --skip-git-repo-check -C /ws --search resume t-1 -",
    ),
    (
        Turn(round=1, workspace="/ws", commits=True),
        "-s workspace-write --skip-git-repo-check -C /ws --add-dir /ws/.git -",
    ),
    (
        Turn(round=2, workspace="/ws", session="t-1", schema="{}", schema_file="/loop/answer.schema.json"),
        "-s workspace-write --skip-git-repo-check -C /ws --output-schema /loop/answer.schema.json resume t-1 -",
    ),
]


@pytest.mark.parametrize(("turn", "flags"), ARGV)
def test_one_builder_serves_fresh_and_resumed_turns(turn: Turn, flags: str) -> None:
    assert " ".join(CodexAgent().command(turn).argv) == f"codex exec --json {flags}"


def test_the_reply_is_the_last_message_of_a_turn_that_was_completed() -> None:
    _, ended = read(STARTED, said("first"), said("last"), COMPLETED)
    assert (ended.outcome, ended.reply, ended.session) == (Outcome.OK, "last", "t-1")
    assert ended.usage == Usage(tokens_in=9, tokens_cached=4, tokens_out=2)
    assert ended.usage_is_total


def test_an_answer_by_schema_is_the_reply_and_its_summary_is_told() -> None:
    """C-068."""
    answer = '{"status": "complete", "summary": "rounds half up", "task_id": "01"}'
    events, ended = read(STARTED, said(answer), COMPLETED)
    assert ended.reply == answer
    assert Message("rounds half up") in events


PATHS = ("/srv/500/rate-limit.py: no such file", "cannot read timeout/429/overloaded.txt", "tests/http_503.rs:502: E")


@pytest.mark.parametrize("words", PATHS)
def test_words_of_transient_trouble_in_a_path_are_none(words: str) -> None:
    """C-046, and the original's known break: neither in a turn that failed, nor in what a command or the agent says."""
    failed = {"type": "turn.failed", "error": {"message": words}}
    assert read(STARTED, failed, exit_=Exit(code=1))[1].outcome is Outcome.FAILED
    assert read(exit_=Exit(code=1), stderr=words)[1].outcome is Outcome.FAILED
    item = {"type": "command_execution", "command": "make", "aggregated_output": words, "exit_code": 1}
    ran = {"type": "item.completed", "item": item}
    assert read(STARTED, ran, said(words), COMPLETED)[1].outcome is Outcome.OK


def test_a_schema_that_its_provider_refuses_stops_at_once_with_its_words() -> None:
    refused = "{'error': {'message': \"Invalid schema for response_format\", 'code': 'invalid_json_schema'}}"
    _, ended = read(STARTED, {"type": "turn.failed", "error": {"message": refused}}, exit_=Exit(code=1))
    assert ended.outcome is Outcome.CONFIG
    assert "Invalid schema for response_format" in ended.detail


def test_a_patch_that_the_sandbox_refuses_is_only_said_beside_the_stream() -> None:
    """X-01: as the real one says it; without an event, a read-only loop would go on to no avail."""
    said = "ERROR codex_core::tools: error=patch rejected: writing is blocked by read-only sandbox; rejected by user"
    _, ended = read(COMPLETED, stderr=f"warning: x\n{said}\n")
    assert ended.outcome is Outcome.DENIED
    assert ended.detail.startswith("not allowed: patch rejected: writing is blocked by read-only sandbox")


def a_command(command: str, output: str, code: int | None, kind: str = "item.completed") -> dict[str, Any]:
    item = {"type": "command_execution", "command": command, "aggregated_output": output, "exit_code": code}
    return {"type": kind, "item": item}


def test_a_command_that_ended_is_told_as_it_was_typed_with_its_exit_code_and_the_end_of_its_output() -> None:
    begun = a_command("/bin/bash -lc 'pytest -q'", "", None, "item.started")
    events, _ = read(begun, a_command("/bin/bash -lc 'pytest -q'", "x" * 9000 + "\n1 failed\n", 1))
    assert events[0] == CommandStarted("runs pytest -q", "pytest -q")
    [ended] = [event for event in events if isinstance(event, CommandEnded)]
    assert (ended.command, ended.exit_code, ended.failed) == ("pytest -q", 1, True)
    assert ended.output == "…\n1 failed\n"
    events, _ = read(a_command("/bin/bash -lc ls", "README.md\n", 0), a_command("sleep 'x", "", None))
    assert events == [
        CommandEnded(command="ls", exit_code=0, failed=False),
        CommandEnded(command="sleep 'x", failed=True),
    ]


def test_words_before_a_failure_are_no_reply() -> None:
    failed = {"type": "turn.failed", "error": {"message": "unexpected status 500 Internal Server Error"}}
    _, ended = read(STARTED, said("<promise>DONE</promise>"), failed, exit_=Exit(code=1))
    assert (ended.outcome, ended.reply) == (Outcome.TRANSIENT, "")


def test_a_session_that_was_not_the_one_asked_for_is_lost() -> None:
    """`resume --last` silently begins another; so might anything."""
    resumed = Turn(round=2, workspace="/ws", session="t-0")
    assert read(STARTED, said("x"), COMPLETED, turn=resumed)[1].outcome is Outcome.SESSION_LOST


def test_a_usage_limit_says_when_it_ends_in_its_own_words() -> None:
    text = "You’ve hit your usage limit. Visit … or try again at Nov 18th, 2026 9:19 PM."
    _, ended = read(STARTED, {"type": "turn.failed", "error": {"message": text}}, exit_=Exit(code=1))
    assert (ended.outcome, ended.reset) == (Outcome.LIMITED, "Nov 18th, 2026 9:19 PM")


def test_a_login_that_is_refused_again_and_again_is_hopeless_once() -> None:
    refused = {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 401 Unauthorized)"}
    events, ended = read(STARTED, refused, refused, refused, exit_=Exit(ending=Ending.ASKED, code=1))
    assert sum(isinstance(event, Hopeless) for event in events) == 1
    assert ended.outcome is Outcome.AUTH
    assert "codex login" in ended.detail


@pytest.mark.parametrize(
    "words", ["a server ended with exit code 403", "it exited with status 403", "(proxy.py, line 403)"]
)
def test_an_exit_code_or_a_line_is_no_refused_login(words: str) -> None:
    notice = {"type": "error", "message": f"Reconnecting... 1/5 ({words})"}
    events, _ = read(STARTED, notice, notice, notice, exit_=Exit(ending=Ending.ASKED, code=1))
    assert sum(isinstance(event, Hopeless) for event in events) == 0


@pytest.mark.parametrize(
    ("message", "headline"),
    [
        ("unexpected status 401 Unauthorized: Incorrect API key, url: http://x", "codex is not logged in"),
        ("unexpected status 403 Forbidden: not for you, url: http://x", "the provider refuses the log-in of codex"),
        (
            "unexpected status 401 Unauthorized, url: http://127.0.0.1:40322, request id: 402-403",
            "codex is not logged in",
        ),
    ],
)
def test_a_refused_login_has_a_headline_of_ours_and_its_words_beside_it(message: str, headline: str) -> None:
    _, ended = read(STARTED, {"type": "turn.failed", "error": {"message": message}}, exit_=Exit(code=1))
    assert ended.detail == f"{headline}; run `codex login`, or set the key that its configuration names"
    assert (ended.outcome, ended.words) == (Outcome.AUTH, message)


def test_one_refused_login_may_be_a_hiccup() -> None:
    refused = {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 401 Unauthorized)"}
    events, ended = read(STARTED, refused, said("fine"), COMPLETED)
    assert not any(isinstance(event, Hopeless) for event in events)
    assert ended.outcome is Outcome.OK


def test_exit_0_without_a_last_event_is_lost_output_and_never_success() -> None:
    assert read(STARTED, said("<promise>DONE</promise>"))[1].outcome is Outcome.LOST_OUTPUT


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_no_json_that_codex_prints_breaks_the_reader(value: Any) -> None:
    events = [{"type": kind, "item": value, "error": value} for kind in ("item.completed", "turn.failed", "error")]
    assert read(*events, exit_=Exit(code=1))[1].outcome in Outcome
