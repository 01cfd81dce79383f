"""The real agents still speak as our recordings of them do."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from driving import Home
from real.model_server import Answer, Call, ModelServer
from real.turns import CLAUDE, CODEX, SANDBOX, Took, take_turn

Codex = Callable[..., Took]
Claude = Callable[..., Took]

# Codex lets its commands write to /tmp, where tests live, unless it is told not to.
CLOSED = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true")


@pytest.fixture
def codex(home: Home, codex_env: dict[str, str]) -> Codex:
    """One turn of Codex in the repository; arguments stand where its flags do."""

    def turn(*flags: str, prompt: str = "do it", resume: str = "") -> Took:
        session = ["resume", resume] if resume else []
        return take_turn(*CODEX, *flags, *session, "-", cwd=home.repo, env=codex_env, prompt=prompt)

    return turn


@pytest.fixture
def claude(home: Home, claude_env: dict[str, str]) -> Claude:
    """One turn of Claude Code in the repository."""

    def turn(*flags: str, prompt: str = "do it", env: dict[str, str] = claude_env) -> Took:
        return take_turn(*CLAUDE, "--settings", SANDBOX, *flags, cwd=home.repo, env=env, prompt=prompt)

    return turn


# -- Codex --------------------------------------------------------------------------------------------------------


def test_codex_does_a_plain_turn(codex: Codex, model: ModelServer) -> None:
    model.play([Answer(text="Nothing to do.")])
    took = codex(prompt="look around")
    assert took.code == 0
    assert [kind for kind in took.kinds if kind != "item.completed"] == [
        "thread.started",
        "turn.started",
        "turn.completed",
    ]
    assert [item["text"] for item in took.items("agent_message")] == ["Nothing to do."]
    assert took.last["usage"]["input_tokens"] == 1000
    [asked] = model.requests
    assert asked.path == "/v1/responses"
    assert "look around" in asked.text
    assert "exec_command" in asked.tools


def test_codex_writes_a_file_from_inside_its_sandbox_and_none_outside(
    codex: Codex, model: ModelServer, home: Home
) -> None:
    outside = home.root / "outside.txt"
    model.play([Answer(sh=f"echo data > {outside}; echo data > in.txt"), Answer(text="Done.")])
    took = codex(*CLOSED)
    [command] = took.items("command_execution")
    assert (command["status"], command["exit_code"]) == ("completed", 0)
    assert "Read-only file system" in command["aggregated_output"]
    assert (home.repo / "in.txt").read_text() == "data\n"
    assert not outside.exists()
    assert took.last["type"] == "turn.completed"


def test_codex_may_keep_to_itself_what_its_sandbox_refused(codex: Codex, model: ModelServer) -> None:
    """Nothing in the stream tells of a quick command that failed this way, unless the machine is slow."""
    model.play([Answer(sh="git commit --allow-empty --message x"), Answer(text="Done.")])
    took = codex()
    assert (took.code, took.last["type"]) == (0, "turn.completed")
    assert "Read-only file system" in model.asked[1].text
    assert [item["status"] for item in took.items("command_execution")] in ([], ["failed"])


def test_codex_goes_on_with_a_session_and_adds_up_its_tokens(codex: Codex, model: ModelServer) -> None:
    model.play([Answer(text="one"), Answer(text="two")])
    first = codex(prompt="the first word")
    second = codex(prompt="the second word", resume=first.events[0]["thread_id"])
    assert second.events[0] == first.events[0]
    assert second.last["usage"]["input_tokens"] == 2000
    assert "the first word" in model.asked[1].text


@pytest.mark.parametrize(
    ("answer", "says", "requests"),
    [
        (Answer(fault="unauthorized", times=0), r"unexpected status 401 Unauthorized: Incorrect API key", 2),
        # A minute from now is today, unless it is midnight; of another day the date is said, too.
        (
            Answer(fault="usage-limit", seconds=60),
            r"You’ve hit your usage limit\. .* try again at (?:\w{3} \d+\w\w, \d{4} )?\d+:\d\d [AP]M\.",
            1,
        ),
        (Answer(fault="usage-limit", seconds=3 * 86400), r"try again at \w{3} \d+\w\w, \d{4} \d+:\d\d [AP]M\.", 1),
        (Answer(fault="not-included"), r"To use Codex with your ChatGPT plan, upgrade to Plus", 1),
        (Answer(fault="quota"), r"Quota exceeded\. Check your plan and billing details\.", 1),
        (Answer(fault="rate-limit", seconds=1, times=0), r"exceeded retry limit, last status: 429", 2),
        (Answer(fault="unavailable", times=0), r"Selected model is at capacity", 2),
        (Answer(fault="stream:context_length_exceeded"), r"Codex ran out of room in the model's context window", 1),
        (Answer(fault="drop-midway", text="half", times=0), r"stream disconnected before completion", 2),
    ],
)
def test_codex_meets_a_fault(codex: Codex, model: ModelServer, answer: Answer, says: str, requests: int) -> None:
    model.play([answer])
    took = codex()
    assert took.code == 1
    assert took.last["type"] == "turn.failed"
    assert re.search(says, took.last["error"]["message"])
    assert took.of("error")[-1]["message"] == took.last["error"]["message"]
    assert len(model.asked) == requests


# -- Claude Code --------------------------------------------------------------------------------------------------


def test_claude_does_a_plain_turn(claude: Claude, model: ModelServer) -> None:
    model.play([Answer(text="Nothing to do.")])
    session = str(uuid4())
    took = claude("--session-id", session, prompt="look around")
    assert took.code == 0
    assert took.kinds == ["system", "assistant", "result"]
    assert {event["session_id"] for event in took.events} == {session}
    assert (took.last["subtype"], took.last["is_error"]) == ("success", False)
    assert took.last["result"] == "Nothing to do."
    assert took.last["usage"]["input_tokens"] == 800
    assert took.last["usage"]["cache_read_input_tokens"] == 200
    [asked] = model.asked
    assert asked.path == "/v1/messages"
    assert "look around" in asked.text
    assert {"Bash", "Write", "Edit"} <= {*asked.tools}


def test_claude_writes_files_from_inside_its_sandbox_and_none_outside(
    claude: Claude, model: ModelServer, home: Home
) -> None:
    outside = home.root / "outside.txt"
    python = "python3 -c \"open('py.txt', 'w').write('data')\""  # refused without the sandbox
    written = Call("Write", {"file_path": str(home.repo / "written.txt"), "content": "data"})
    model.play([Answer(sh=f"{python}; echo data > {outside}"), Answer(calls=(written,)), Answer(text="Done.")])
    took = claude()
    assert took.last["permission_denials"] == []
    assert took.last["result"] == "Done."
    assert (home.repo / "py.txt").read_text() == "data"
    assert (home.repo / "written.txt").read_text() == "data"
    assert not outside.exists()
    assert "Read-only file system" in model.asked[1].text


def test_claude_refuses_some_commands_in_its_sandbox_until_bash_is_allowed(
    claude: Claude, model: ModelServer, home: Home
) -> None:
    outside = home.root / "outside.txt"
    model.play([Answer(sh=f"env A=1 touch in.txt {outside}"), Answer(text="Done.")] * 2)
    refused = claude()
    assert (refused.code, len(refused.last["permission_denials"])) == (0, 1)
    assert not (home.repo / "in.txt").exists()
    allowed = claude("--allowedTools", "Bash")
    assert allowed.last["permission_denials"] == []
    assert (home.repo / "in.txt").exists()
    assert not outside.exists()


def test_claude_goes_on_with_a_session_and_counts_only_this_turn(claude: Claude, model: ModelServer) -> None:
    model.play([Answer(text="one"), Answer(text="two")])
    first = claude(prompt="the first word")
    second = claude("--resume", first.last["session_id"], prompt="the second word")
    assert second.last["session_id"] == first.last["session_id"]
    assert second.last["usage"] == first.last["usage"]
    assert "the first word" in model.asked[1].text


@pytest.mark.parametrize(
    ("answer", "error", "status", "says", "requests"),
    [
        (Answer(fault="unauthorized", times=0), "authentication_failed", 401, "Invalid API key", 2),
        (Answer(fault="forbidden", times=0), "authentication_failed", 403, "Failed to authenticate", 1),
        # With an API key a limit has no reset time; the long `retry-after` alone keeps it from trying again.
        (Answer(fault="usage-limit"), "rate_limit", 429, r"API Error: Request rejected \(429\)", 1),
        (Answer(fault="rate-limit", seconds=1, times=0), "rate_limit", 429, r"Request rejected \(429\)", 2),
        (Answer(fault="quota"), "billing_error", 400, "Credit balance is too low", 1),
        (Answer(fault="context", times=0), "invalid_request", 400, "Prompt is too long", 1),
        (Answer(fault="overloaded", times=0), "server_error", 529, "API Error: 529 Overloaded", 2),
    ],
)
def test_claude_meets_a_fault(
    claude: Claude, model: ModelServer, answer: Answer, error: str, status: int, says: str, requests: int
) -> None:
    model.play([answer])
    took = claude()
    assert took.code == 1
    assert took.of("assistant")[-1]["error"] == error
    assert (took.last["is_error"], took.last["api_error_status"]) == (True, status)
    assert re.search(says, took.last["result"])
    assert len(model.asked) == requests
    retries = [event for event in took.of("system") if event["subtype"] == "api_retry"]
    assert [event["error_status"] for event in retries] == [status] * (requests - 1)


@pytest.mark.parametrize(("window", "name"), [("five_hour", "session limit"), ("seven_day", "weekly limit")])
def test_claude_says_when_a_subscription_is_free_again(
    claude: Claude, model: ModelServer, claude_oauth_env: dict[str, str], window: str, name: str
) -> None:
    until = int(time.time()) + 7200
    model.play([Answer(fault="usage-limit", until=until, window=window)])
    took = claude(env=claude_oauth_env)
    [notice] = took.of("rate_limit_event")
    info = notice["rate_limit_info"]
    assert (info["status"], info["resetsAt"], info["rateLimitType"]) == ("rejected", until, window)
    assert re.match(rf"You've hit your {name} · resets ", took.last["result"])
    assert (took.code, took.last["api_error_status"]) == (1, 429)


def test_claude_warns_before_a_subscription_is_used_up(
    claude: Claude, model: ModelServer, claude_oauth_env: dict[str, str]
) -> None:
    until = int(time.time()) + 7200
    model.play([Answer(text="Done.", warning=0.92, until=until)])
    took = claude(env=claude_oauth_env)
    [notice] = took.of("rate_limit_event")
    info = notice["rate_limit_info"]
    assert (info["status"], info["utilization"], info["resetsAt"]) == ("allowed_warning", 0.92, until)
    assert (took.code, took.last["is_error"]) == (0, False)


# -- both ---------------------------------------------------------------------------------------------------------


def test_the_agents_are_the_ones_our_recordings_are_of(agents_bin: Path, home: Home, agent_env: dict[str, str]) -> None:
    versions = [
        subprocess.run([agents_bin / name, "--version"], env=agent_env, cwd=home.root, capture_output=True, timeout=20)
        for name in ("codex", "claude")
    ]
    assert [version.stdout.decode().strip() for version in versions] == [
        "codex-cli 0.166.0",
        "2.1.197 (Claude Code)",
    ]
