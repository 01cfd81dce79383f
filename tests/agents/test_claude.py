"""Claude Code: what it is asked, and what its stream means. Recorded streams are judged in `test_streams.py`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.agents import find
from bydawn.agents.claude import ClaudeAgent, ClaudeReader
from bydawn.core.agent import (
    Activity,
    CommandEnded,
    Denied,
    Ended,
    Event,
    Finished,
    Hopeless,
    LimitNotice,
    Message,
    Retry,
    Spent,
    Turn,
)
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.values import Usage

STREAMS = Path(__file__).with_name("streams") / "claude"
SESSION = "5820dd73-f354-46f5-9b72-672775bff8b4"
OTHER = "7e5b57a0-6c9a-4f2b-953b-f9d770e53032"
DONE = Exit(code=0)
PROMISE = "<promise>DONE</promise>"


# What it is asked


def test_a_turn_reads_its_prompt_from_stdin_and_speaks_json() -> None:
    argv = command().argv
    assert argv[:5] == ("claude", "-p", "--output-format", "stream-json", "--verbose")


@pytest.mark.parametrize("session", [None, SESSION])
@pytest.mark.parametrize(
    ("sandbox", "mode"),
    [(Sandbox.READ_ONLY, "default"), (Sandbox.WORKSPACE, "acceptEdits"), (Sandbox.FULL, "bypassPermissions")],
)
def test_permissions_are_sent_on_every_call(sandbox: Sandbox, mode: str, session: str | None) -> None:
    assert value("--permission-mode", sandbox=sandbox, session=session) == mode


def test_a_reader_of_files_has_no_tools_that_write() -> None:
    argv = command(sandbox=Sandbox.READ_ONLY, arguments=("word",)).argv
    assert value("--disallowedTools", sandbox=Sandbox.READ_ONLY) == "Edit,Write,NotebookEdit"
    # The flag takes all the words that follow it, so a flag must.
    assert argv[argv.index("--disallowedTools") + 2].startswith("--")


def test_in_the_workspace_its_sandbox_is_on_and_cannot_fail_open() -> None:
    assert json.loads(value("--settings"))["sandbox"] == {
        "enabled": True,
        "autoAllowBashIfSandboxed": True,
        "failIfUnavailable": True,
        "allowUnsandboxedCommands": False,
        "filesystem": {"denyWrite": ["/ws/.git"]},
    }


def test_an_agent_that_commits_may_write_to_the_repository() -> None:
    assert json.loads(value("--settings"))["permissions"] == {"allow": ["Bash"]}
    assert "filesystem" not in json.loads(value("--settings", commits=True))["sandbox"]


@pytest.mark.parametrize("sandbox", [Sandbox.READ_ONLY, Sandbox.FULL])
def test_the_sandbox_belongs_to_the_workspace_level_alone(sandbox: Sandbox) -> None:
    assert "--settings" not in command(sandbox=sandbox).argv


@pytest.mark.parametrize("sandbox", list(Sandbox))
@pytest.mark.parametrize("is_root", [True, False])
def test_only_a_root_with_full_permissions_is_called_a_sandbox(sandbox: Sandbox, is_root: bool) -> None:
    env = command(sandbox=sandbox, is_root=is_root).env
    assert ("IS_SANDBOX" in env) is (sandbox is Sandbox.FULL and is_root)
    assert env["DISABLE_AUTOUPDATER"] == env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"


def test_a_fresh_session_has_an_id_that_we_chose_and_another_is_resumed() -> None:
    assert value("--session-id", new_session=SESSION) == SESSION
    assert value("--resume", session=SESSION) == SESSION
    assert "--session-id" not in command(session=SESSION, new_session=OTHER).argv
    assert not {"--session-id", "--resume"} & {*command().argv}


def test_model_and_effort_are_passed_on_and_its_own_arguments_stand_last() -> None:
    assert value("--model", model="opus") == "opus"
    assert value("--effort", effort="high") == "high"
    assert command(model="opus", arguments=("--max-turns", "9")).argv[-2:] == ("--max-turns", "9")


def test_it_is_found_by_its_name_and_missing_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    complaint = find("claude").missing("/ws")
    assert complaint
    assert "npm install -g @anthropic-ai/claude-code" in complaint[1]


@pytest.mark.parametrize(
    ("result", "ended"),
    [
        ({"content": "Exit code 127\nsh: x: not found", "is_error": True}, (True, 127, "sh: x: not found")),
        ({"content": "Exit code 1", "is_error": True}, (True, 1, "")),
        (
            {"content": "This command requires approval", "is_error": True},
            (True, None, "This command requires approval"),
        ),
        ({"content": [{"type": "image"}], "is_error": True}, (True, None, "")),
        ({"content": "Exit code 1 is what it printed", "is_error": False}, (False, None, "")),
        ({"content": "fine"}, (False, None, "")),
        ({}, (False, None, "")),
    ],
)
def test_a_command_that_ended_is_told_with_its_exit_code(result: dict[str, Any], ended: tuple[Any, ...]) -> None:
    events, _ = read(uses("Bash", command="make"), answers(result))
    [found] = [event for event in events if isinstance(event, CommandEnded)]
    assert (found.failed, found.exit_code, found.output) == ended
    assert found.command == "make"


def test_what_another_tool_answers_and_what_a_person_says_is_no_command() -> None:
    said = {"type": "user", "message": {"role": "user", "content": "go on"}}
    events, _ = read(uses("Read", file_path="/ws/a"), answers({"content": "no such file", "is_error": True}), said)
    assert not any(isinstance(event, CommandEnded) for event in events)


# What its stream means


def test_the_reply_is_the_result_and_not_what_a_tool_printed() -> None:
    printed = {"type": "user", "message": {"content": [{"type": "tool_result", "content": PROMISE}]}}
    assert read(printed, says(PROMISE), result(result="not yet"))[1].reply == "not yet"


def test_a_schema_is_an_argument_and_what_fits_it_is_the_reply() -> None:
    """C-068."""
    assert value("--json-schema", schema="{}", schema_file="/x", session=SESSION) == "{}"
    assert "--json-schema" not in command().argv
    assert read(result(result="Done.", structured_output={"status": "complete"}))[1].reply == '{"status": "complete"}'
    assert read(result(result="Done.", structured_output=None))[1].reply == "Done."


@pytest.mark.parametrize("words", ["/srv/500/rate_limit.py: no such file", "cannot read timeout/429/overloaded.txt"])
def test_words_of_transient_trouble_in_a_path_are_none(words: str) -> None:
    """C-046."""
    assert read(result(is_error=True, result=words))[1].outcome is Outcome.FAILED
    assert read(says(words), result(result=words))[1].outcome is Outcome.OK


def test_a_turn_that_never_fits_its_schema_costs_a_round_and_is_no_failure() -> None:
    never = result(
        subtype="error_max_structured_output_retries", is_error=True, result=None, errors=["no valid output"]
    )
    assert read(never)[1].outcome is Outcome.TURN_LIMIT


def test_a_failed_turn_has_no_reply_in_which_a_promise_could_be_found() -> None:
    failed = result(is_error=True, result=PROMISE)
    assert read(says(PROMISE), failed)[1] == Ended(
        outcome=Outcome.FAILED, detail=PROMISE, session=SESSION, usage=Usage()
    )


def test_words_and_deeds_are_told() -> None:
    events, _ = read(
        says("I will."),
        uses("Bash", command="pytest -q\nls"),
        uses("Edit", file_path="/ws/src/settings.py"),
        uses("mcp__db__query", sql=["select"]),
        {**says("a helper's words"), "parent_tool_use_id": "toolu_1"},
        turn=a_turn(),
    )
    assert [event for event in events if not isinstance(event, Spent)] == [
        Message("I will."),
        Activity("runs pytest -q ls"),
        Activity("editing src/settings.py"),
        Activity("using mcp__db__query"),
    ]


def test_events_may_follow_a_result_and_the_last_result_counts() -> None:
    notice = {"type": "system", "subtype": "task_notification", "status": "completed"}
    events, ended = read(result(result="one"), notice, says("two"), result(result="two"))
    assert ended.reply == "two"
    assert events.count(Finished()) == 2


@pytest.mark.parametrize("asked", [{"session": SESSION}, {"new_session": SESSION}])
@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        ({}, Outcome.SESSION_LOST),
        ({"permission_denials": [{"tool_name": "Bash"}]}, Outcome.SESSION_LOST),
        # Whoever has to log in has to, whatever became of the session.
        ({"is_error": True, "api_error_status": 401}, Outcome.AUTH),
    ],
)
def test_another_session_than_the_one_asked_for_is_noticed(
    asked: dict[str, str], last: dict[str, Any], outcome: Outcome
) -> None:
    _, ended = read(result(session_id=OTHER, result=PROMISE, **last), turn=a_turn(**asked))
    assert (ended.outcome, ended.session, ended.reply) == (outcome, None, "")
    _, ended = read(result(result="fine"), turn=a_turn(**asked))
    assert (ended.outcome, ended.session, ended.reply) == (Outcome.OK, SESSION, "fine")


def test_a_used_up_subscription_says_until_when() -> None:
    until = datetime(2026, 11, 15, 23, 24, 51, tzinfo=UTC)
    events, ended = replay("oauth_usage_limit")
    assert LimitNotice(text="the five-hour limit is used up", until=until) in events
    assert (ended.outcome, ended.wait_until, ended.reset) == (Outcome.LIMITED, until, "11:24pm (UTC)")


def test_a_warning_before_the_limit_is_told_and_delays_nothing() -> None:
    events, ended = replay("oauth_warning")
    assert [event.text for event in events if isinstance(event, LimitNotice)] == ["92% of the five-hour limit is used"]
    assert (ended.outcome, ended.wait_until) == (Outcome.OK, None)


@pytest.mark.parametrize("epoch", [None, 0, -1, 1e300, 99999999999999])
def test_a_reset_in_no_year_is_none(epoch: float | None) -> None:
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": epoch}}
    ended = read(limit, result(is_error=True, api_error_status=429))[1]
    assert (ended.outcome, ended.wait_until) == (Outcome.LIMITED, None)


def test_a_429_that_it_retried_in_vain_passes_and_one_that_it_did_not_is_a_limit() -> None:
    rejected = result(is_error=True, api_error_status=429)
    outcomes = [
        read(*before, rejected)[1].outcome
        for before in ([retry(10, 429)], [], [retry(3, 429)], [retry(10, 529), says("recovered")])
    ]
    assert outcomes == [Outcome.TRANSIENT, Outcome.LIMITED, Outcome.LIMITED, Outcome.LIMITED]


def test_usage_is_that_of_the_turn_with_everything_that_was_read() -> None:
    events, ended = replay("ok_tool_skipperm")
    assert ended.usage == Usage(tokens_in=2400, tokens_cached=400, tokens_out=100, cost_usd=0.012700000000000001)
    # An answer comes in several lines, and each repeats its usage.
    spent = [event.usage.tokens_in for event in events if isinstance(event, Spent)]
    assert spent == [1200, 2400, 2400]


def test_usage_counts_answers_that_the_result_forgets() -> None:
    usage = replay("max_budget")[1].usage
    assert usage
    assert (usage.tokens_in, usage.tokens_out) == (2400, 100)


def test_what_nobody_said_is_unknown_and_not_zero() -> None:
    assert read(result())[1].usage == Usage()
    assert read(result(usage={"input_tokens": 5}))[1].usage == Usage(tokens_in=5, tokens_cached=0)
    assert read({"type": "system", "subtype": "init"})[1].usage is None
    killed = replay("sig_kill_tool")[1].usage
    assert killed == Usage(tokens_in=1200, tokens_cached=200, tokens_out=None, cost_usd=None)


def test_a_refused_key_is_hopeless_at_once_and_said_once() -> None:
    events, ended = replay("err_401")
    assert [type(event) for event in events[:3]] == [Retry, Hopeless, Retry]
    assert sum(isinstance(event, Hopeless) for event in events) == 1
    assert (ended.outcome, "claude /login" in ended.detail) == (Outcome.AUTH, True)


def test_a_refused_log_in_may_refresh_itself_once() -> None:
    start = {"type": "system", "subtype": "init", "apiKeySource": "none"}
    first, second = retry(1, 401), retry(2, 401)
    assert not any(isinstance(event, Hopeless) for event in read(start, first, result())[0])
    assert any(isinstance(event, Hopeless) for event in read(start, first, second)[0])


@pytest.mark.parametrize("ending", [Ending.ASKED, Ending.EXIT, Ending.TOTAL])
@pytest.mark.parametrize("last", [[], [{"is_error": True, "terminal_reason": "aborted_streaming"}]])
def test_what_was_hopeless_is_a_matter_of_the_log_in_however_we_stopped_it(
    ending: Ending, last: list[dict[str, Any]]
) -> None:
    lines = [retry(1, 401), *[result(**each) for each in last]]
    assert read(*lines, exit_=Exit(ending=ending, code=143))[1].outcome is Outcome.AUTH


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [(Ending.EXIT, Outcome.INTERRUPTED), (Ending.ASKED, Outcome.INTERRUPTED), (Ending.SILENCE, Outcome.HUNG)],
)
def test_an_aborted_turn_is_judged_by_who_aborted_it(ending: Ending, outcome: Outcome) -> None:
    aborted = result(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")
    assert read(aborted, exit_=Exit(ending=ending, code=0))[1].outcome is outcome


def test_what_was_forbidden_is_told_and_the_reply_kept() -> None:
    events, ended = replay("perm_default")
    assert [event.text for event in events if isinstance(event, Denied)] == [
        "Bash: echo data > out.txt",
        "Write: /ws/w.txt",
        """Bash: python3 -c 'open("p.txt","w")'""",
    ]
    assert (ended.outcome, ended.reply) == (Outcome.DENIED, "end")
    assert ended.detail.startswith("not allowed: Bash: echo data > out.txt (and 2 more)")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_auth", "claude is not logged in; run `claude /login`"),
        ("err_400_credit", "Credit balance is too low; add credit"),
        ("bad_flag", "unknown option '--nope'"),
        ("resume_unknown", "No conversation found"),
        ("sig_term_tool", "killed by signal 15 (Terminated)"),
        ("unknown_slash", "do not begin it with `/`"),
    ],
)
def test_the_reason_is_one_that_a_tired_person_understands(name: str, words: str) -> None:
    assert words in replay(name)[1].detail


def test_a_sandbox_that_cannot_start_is_for_a_person_to_install() -> None:
    # As recorded without bubblewrap; its own advice, to do without a sandbox, is left out.
    error = "Sandbox required but unavailable: bubblewrap (bwrap) not installed · Set sandbox.failIfUnavailable=false"
    ended = read(result(subtype="error_during_execution", is_error=True, errors=[error]), exit_=Exit(code=1))[1]
    assert ended.outcome is Outcome.CONFIG
    assert "install bubblewrap and socat" in ended.detail
    assert "failIfUnavailable" not in ended.detail


# Whatever comes


def test_a_cut_last_line_is_no_result() -> None:
    line = json.dumps(result(result=PROMISE)).encode()
    for cut in (1, len(line) // 2, len(line) - 1):
        reader = ClaudeReader(None)
        assert list(reader.read(line[:cut])) == []
        assert reader.end(DONE, "").outcome is Outcome.LOST_OUTPUT


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"npm warn deprecated",
        b"null",
        b"[]",
        b'{"type":"result"',
        b'{"type":7}',
        b'{"type":"new_event","session_id":"x"}',
        b'{"type":"assistant","message":{"content":"words"}}',
        b'{"type":"system","subtype":"api_retry","attempt":"many"}',
        b'{"type":"result","result":"\xff"}',
        b'{"type":"assistant","message":' + b"[" * 100_000,
        b'{"type":"assistant","message":{"content":[{"input":' + b'{"a":' * 100_000,
    ],
)
def test_what_cannot_be_understood_passes_by(line: bytes) -> None:
    reader = ClaudeReader(None)
    assert list(reader.read(line)) == []
    assert [*reader.read(json.dumps(result(result="fine")).encode())]
    assert reader.end(DONE, "").reply == "fine"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_LINES = [
    json.loads(line)
    for name in ("err_401", "oauth_usage_limit", "perm_default", "resume_unknown")
    for line in (STREAMS / f"{name}.jsonl").read_bytes().splitlines()
]
_KEYS = st.sampled_from(sorted({key for line in _LINES for key in line}))


@given(st.sampled_from(_LINES), st.dictionaries(_KEYS, _JSON))
def test_no_event_whatever_raises(line: dict[str, Any], fields: dict[str, Any]) -> None:
    read({**line, **fields, "type": line["type"]})


# How it is done


def answers(*results: dict[str, Any]) -> dict[str, Any]:
    """What the tools said; the id of a call made by `uses` is `call`."""
    rows = [{"type": "tool_result", "tool_use_id": "call", **result} for result in results]
    return {"type": "user", "message": {"role": "user", "content": rows}}


def a_turn(**asked: Any) -> Turn:
    return Turn(round=1, workspace="/ws", **asked)


def command(**asked: Any) -> Any:
    return ClaudeAgent().command(a_turn(**asked))


def value(flag: str, **asked: Any) -> str:
    argv = command(**asked).argv
    assert argv.count(flag) == 1
    return str(argv[argv.index(flag) + 1])


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": SESSION, **fields}


def says(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}}


def uses(tool: str, **what: Any) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": {"id": "m", "content": [{"type": "tool_use", "id": "call", "name": tool, "input": what}]},
    }


def retry(attempt: int, status: int) -> dict[str, Any]:
    return {"type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": 10, "error_status": status}


def read(*lines: dict[str, Any], turn: Turn | None = None, exit_: Exit = DONE) -> tuple[list[Event], Ended]:
    reader = ClaudeAgent().reader(turn)
    events = [event for line in lines for event in reader.read(json.dumps(line).encode())]
    return events, reader.end(exit_, "")


def replay(name: str) -> tuple[list[Event], Ended]:
    reader = ClaudeAgent().reader()
    events = [event for line in (STREAMS / f"{name}.jsonl").read_bytes().split(b"\n") for event in reader.read(line)]
    code = json.loads((STREAMS / f"{name}.meta.json").read_text())["exit_code"]
    stderr = STREAMS / f"{name}.stderr.txt"
    exit_ = Exit(code=code) if code >= 0 else Exit(signal=-code)
    return events, reader.end(exit_, stderr.read_text() if stderr.exists() else "")
