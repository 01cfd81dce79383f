"""opencode: its command line, what its events mean, and the runaways that somebody has to stop."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.agents import find
from bydawn.agents.opencode import OpencodeAgent, OpencodeReader
from bydawn.core.agent import Activity, CommandEnded, Denied, Event, Hopeless, Message, Retry, Spent, Turn
from bydawn.core.errors import UserError
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.values import Usage

RUN = ("opencode", "run", "--format", "json")
GONE = Exit(code=0)
STOPPED_BY_US = Exit(ending=Ending.ASKED, signal=15)
DONE = "<promise>DONE</promise>"

# The command


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        ({}, ()),
        ({"sandbox": Sandbox.FULL}, ("--auto",)),
        ({"model": "mock/m1"}, ("-m", "mock/m1")),
        ({"session": "ses_1"}, ("-s", "ses_1")),
        # It cannot be told the id of a fresh session.
        ({"new_session": "5f0c"}, ()),
        ({"arguments": ("--agent", "build")}, ("--agent", "build")),
        (
            {"sandbox": Sandbox.FULL, "session": "ses_1", "model": "a/b", "arguments": ("--thinking",)},
            ("--auto", "-m", "a/b", "-s", "ses_1", "--thinking"),
        ),
    ],
)
def test_a_turn_becomes_a_command_line(asked: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert OpencodeAgent().command(a_turn(**asked)).argv == (*RUN, *flags)


def test_it_cannot_be_held_to_reading_and_is_not_trusted_to() -> None:
    assert OpencodeAgent().abilities.sandboxes == {Sandbox.WORKSPACE, Sandbox.FULL}
    with pytest.raises(UserError, match="has no --sandbox read-only"):
        OpencodeAgent().command(a_turn(sandbox=Sandbox.READ_ONLY))


def test_it_is_found_by_name_and_missed_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find("opencode") == OpencodeAgent()
    _, hint = find("opencode").missing("/ws") or ("", "")
    assert hint == "install it: npm install -g opencode-ai"
    (tmp_path / "opencode").touch(mode=0o755)
    assert find("opencode").missing("/ws") is None


# What it says and does


def test_the_reply_is_what_it_said_in_its_last_step() -> None:
    reader, events = fed([start(), text("I will"), tool("bash", command="ls"), finish("tool-calls"), *a_step(DONE)])
    assert reader.end(GONE, "").reply == DONE
    assert shown(events) == [Message("I will"), CommandEnded(command="ls", failed=False), Message(DONE)]


@pytest.mark.parametrize(
    "lines",
    [
        lambda: [start(), text(DONE), finish("tool-calls")],
        lambda: [start(), text(DONE)],
        # After a compaction it speaks to itself and goes on, or should.
        lambda: [*a_step(DONE), text("Continue if you have next steps", synthetic=True)],
        lambda: [*a_step(DONE), start()],
    ],
)
def test_without_a_last_step_nothing_is_a_reply(lines: Any) -> None:
    ended = fed(lines())[0].end(GONE, "")
    assert (ended.outcome, ended.reply) == (Outcome.LOST_OUTPUT, "")


def test_a_last_step_without_words_does_not_borrow_those_of_an_earlier_one() -> None:
    reader, _ = fed([start(), text(DONE), tool("read", filePath="a"), finish("tool-calls"), start(), finish("stop")])
    ended = reader.end(GONE, "")
    assert (ended.outcome, ended.reply) == (Outcome.OK, "")


def test_a_turn_that_we_stopped_is_judged_by_why_even_after_a_last_step() -> None:
    assert fed(a_step(DONE))[0].end(STOPPED_BY_US, "").outcome is Outcome.INTERRUPTED
    assert fed(a_step(DONE))[0].end(STOPPED_BY_US, "").reply == ""


def test_a_refused_tool_is_shown_and_makes_the_turn_a_denied_one() -> None:
    refused = tool("read", error="The user rejected permission to use this specific tool call.", filePath="/etc/x")
    reader, events = fed([start(), refused, finish("tool-calls")])
    assert Denied("read /etc/x") in events
    assert reader.end(GONE, "").outcome is Outcome.DENIED
    went_on, _ = fed([start(), refused, finish("tool-calls"), *a_step("could not")])
    assert (went_on.end(GONE, "").outcome, went_on.end(GONE, "").reply) == (Outcome.DENIED, "could not")


def test_a_tool_that_failed_is_no_denial() -> None:
    _, events = fed([start(), tool("edit", error="oldString not found", filePath="a.py")])
    assert events == [Activity("edited a.py")]


def test_a_command_that_ended_is_told_with_its_exit_code() -> None:
    state = {"status": "completed", "input": {"command": "make"}, "output": "no rule\n", "metadata": {"exit": 2}}
    lines = [event("tool_use", part={"tool": "bash", "state": state}), tool("bash", command="ls")]
    _, events = fed([*lines, tool("bash", error="it broke", command="x")])
    assert events == [
        CommandEnded(command="make", failed=True, exit_code=2, output="no rule\n"),
        CommandEnded(command="ls", failed=False),
        CommandEnded(command="x", failed=True, output="it broke"),
    ]


def test_strange_tools_are_told_in_one_short_line() -> None:
    _, events = fed([tool("bash", command="echo a\n" * 100), tool("mcp_x"), tool("webfetch", url="u")])
    told = [event.text for event in events if isinstance(event, Activity | CommandEnded)]
    assert told[1:] == ["mcp_x", "webfetch"]
    assert len(told[0]) < 140
    assert "\n" not in told[0]


# Sessions


def test_the_session_is_known_from_the_first_line() -> None:
    assert fed([start(session="ses_7")])[0].end(Exit(signal=9), "").session == "ses_7"


def test_another_session_than_the_one_asked_for_is_a_lost_one() -> None:
    reader, _ = fed(a_step(DONE, session="ses_2"), a_turn(session="ses_1"))
    ended = reader.end(GONE, "")
    assert (ended.outcome, ended.reply, ended.session) == (Outcome.SESSION_LOST, "", "ses_2")
    same, _ = fed(a_step(DONE, session="ses_1"), a_turn(session="ses_1"))
    assert same.end(GONE, "").outcome is Outcome.OK


def test_only_a_turn_that_never_began_can_say_that_its_session_is_unknown() -> None:
    complaint = "\x1b[91mError: \x1b[0mSession not found"
    assert fed([])[0].end(Exit(code=1), complaint).outcome is Outcome.SESSION_LOST
    assert fed([start()])[0].end(Exit(code=1), complaint).outcome is Outcome.FAILED


# What it cost


def test_the_steps_are_added_up() -> None:
    first, second = finish("tool-calls", cost=0.5), finish("stop", cost=0.25)
    reader, events = fed([start(), tool("bash"), first, start(), second])
    total = Usage(tokens_in=2000, tokens_cached=400, tokens_out=120, cost_usd=0.75)
    assert reader.end(GONE, "").usage == total
    assert [event.usage.cost_usd for event in events if isinstance(event, Spent)] == [0.5, 0.75]


def test_what_is_not_said_stays_unknown() -> None:
    assert fed([start(), event("step_finish", part={"reason": "stop"})])[0].end(GONE, "").usage is None
    nothing = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    broken_off = event("step_finish", part={"reason": "unknown", "tokens": nothing, "cost": 0})
    assert fed([start(), broken_off])[0].end(GONE, "").usage is None
    odd = event("step_finish", part={"reason": "stop", "tokens": {"output": 5, "cache": "none"}})
    assert fed([start(), odd])[0].end(GONE, "").usage == Usage(tokens_out=5)


# What goes wrong


@pytest.mark.parametrize(
    ("name", "data", "outcome"),
    [
        ("APIError", {"statusCode": 401, "isRetryable": False}, Outcome.AUTH),
        ("APIError", {"statusCode": 403}, Outcome.AUTH),
        ("ProviderAuthError", {}, Outcome.AUTH),
        ("APIError", {"statusCode": 404}, Outcome.CONFIG),
        ("APIError", {"statusCode": 429, "isRetryable": True}, Outcome.TRANSIENT),
        # Not worth another try: a quota, not a rate.
        ("APIError", {"statusCode": 429, "isRetryable": False}, Outcome.LIMITED),
        ("APIError", {"statusCode": 503, "isRetryable": True}, Outcome.TRANSIENT),
        ("APIError", {"statusCode": 529}, Outcome.TRANSIENT),
        ("APIError", {"isRetryable": True}, Outcome.TRANSIENT),
        ("ContextOverflowError", {}, Outcome.CONTEXT_FULL),
        ("APIError", {"statusCode": 400, "responseBody": '{"code": "context_length_exceeded"}'}, Outcome.CONTEXT_FULL),
        ("APIError", {"statusCode": 400}, Outcome.FAILED),
        ("UnknownError", {}, Outcome.FAILED),
        ("", {}, Outcome.FAILED),
    ],
)
def test_an_error_event_decides(name: str, data: dict[str, Any], outcome: Outcome) -> None:
    assert fed([an_error(name, **data)])[0].end(Exit(code=1), "noise").outcome is outcome


def test_an_error_that_was_overcome_is_forgotten() -> None:
    lines = [an_error("ContextOverflowError"), start(), tool("bash"), finish("tool-calls")]
    assert fed([*lines, *a_step(DONE)])[0].end(GONE, "").reply == DONE
    assert fed(lines)[0].end(Exit(signal=11), "").outcome is Outcome.CRASHED


@pytest.mark.parametrize(
    ("exit_", "stderr", "outcome", "detail"),
    [
        (Exit(signal=9), "", Outcome.CRASHED, "killed by signal 9 (Killed)"),
        (Exit(code=1), "a\nError: odd", Outcome.FAILED, "Error: odd"),
        (Exit(code=3), "", Outcome.FAILED, "exited with 3"),
        (Exit(code=0), "", Outcome.LOST_OUTPUT, "exited with 0 but without a last step"),
        (Exit(ending=Ending.TOTAL, signal=9), "", Outcome.HUNG, "reached the round's time limit"),
        (Exit(ending=Ending.NOT_STARTED, detail="gone"), "", Outcome.CONFIG, "gone"),
    ],
)
def test_a_turn_without_a_last_step_is_judged_by_its_exit(
    exit_: Exit, stderr: str, outcome: Outcome, detail: str
) -> None:
    ended = fed([start(), text("half")])[0].end(exit_, stderr)
    assert (ended.outcome, ended.detail, ended.reply) == (outcome, detail, "")


# Runaways


def test_answers_that_break_off_again_and_again_are_hopeless_and_that_is_said_once() -> None:
    lines = [line for _ in range(60) for line in (start(), text("half an answer that "), finish("unknown"))]
    reader, events = fed(lines)
    assert [type(event) for event in events].count(Hopeless) == 1
    assert 20 <= [type(event) for event in events if isinstance(event, Retry | Hopeless)].index(Hopeless) <= 21
    # Our own stopping is the consequence, not the cause.
    assert reader.end(STOPPED_BY_US, "").outcome is Outcome.TRANSIENT


def test_a_context_that_stays_full_after_compacting_is_hopeless() -> None:
    again = [an_error("ContextOverflowError"), *a_step("a summary"), text("Continue", synthetic=True)]
    assert not [event for event in fed([*again, *again])[1] if isinstance(event, Hopeless)]
    reader, events = fed(again * 5)
    assert [type(event) for event in events].count(Hopeless) == 1
    assert reader.end(STOPPED_BY_US, "").outcome is Outcome.CONTEXT_FULL
    assert reader.end(STOPPED_BY_US, "").reply == ""


def test_one_error_over_and_over_is_hopeless_and_is_the_reason() -> None:
    reader, events = fed([an_error("APIError", statusCode=401)] * 30)
    assert [type(event) for event in events].count(Hopeless) == 1
    assert reader.end(STOPPED_BY_US, "").outcome is Outcome.AUTH


def test_a_long_turn_that_uses_its_tools_is_no_runaway() -> None:
    work = [start(), tool("bash", command="make"), finish("tool-calls")]
    reader, events = fed([*work * 200, *a_step(DONE)])
    assert not [event for event in events if isinstance(event, Hopeless | Retry)]
    assert reader.end(GONE, "").reply == DONE


# Garbage


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["text", "state", "input", "tokens", "cache", "reason", "data"]), inner)
    ),
    max_leaves=6,
)


@given(st.sampled_from(["step_start", "text", "tool_use", "step_finish", "error"]), ANYTHING, ANYTHING)
def test_no_event_can_upset_the_reader(kind: str, part: Any, error: Any) -> None:
    reader, _ = fed([json.dumps({"type": kind, "sessionID": "s", "part": part, "error": error})])
    reader.end(Exit(code=1), "")


@pytest.mark.parametrize("garbage", [b"", b"{", b"[" * 100_000, b'{"type":7}', b'{"type":"new"}', b"null", b"\xff\xfe"])
def test_garbage_between_the_lines_changes_nothing(garbage: bytes) -> None:
    reader = OpencodeReader()
    for line in [*a_step(DONE)]:
        reader.read(garbage)
        reader.read(line.encode())
    reader.read(garbage)
    assert reader.end(GONE, "").reply == DONE


# Helpers


def a_turn(**asked: Any) -> Turn:
    return Turn(round=1, workspace="/ws", **asked)


def fed(lines: list[str], turn: Turn | None = None) -> tuple[OpencodeReader, list[Event]]:
    reader = OpencodeAgent().reader(turn)
    return reader, [event for line in lines for event in reader.read(line.encode())]


def shown(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Spent)]


def event(kind: str, session: str = "ses_1", **more: Any) -> str:
    return json.dumps({"type": kind, "timestamp": 1, "sessionID": session, **more})


def start(session: str = "ses_1") -> str:
    return event("step_start", session, part={"type": "step-start"})


def text(words: str, session: str = "ses_1", **more: Any) -> str:
    return event("text", session, part={"type": "text", "text": words, **more})


def tool(name: str, error: str | None = None, **given_: Any) -> str:
    how = {"status": "error", "error": error} if error else {"status": "completed", "output": DONE}
    return event("tool_use", part={"type": "tool", "tool": name, "state": {**how, "input": given_}})


def finish(reason: str, session: str = "ses_1", cost: float = 0.0009) -> str:
    tokens = {"total": 1060, "input": 800, "output": 50, "reasoning": 10, "cache": {"write": 0, "read": 200}}
    return event("step_finish", session, part={"reason": reason, "tokens": tokens, "cost": cost})


def a_step(words: str, session: str = "ses_1") -> list[str]:
    return [start(session), text(words, session), finish("stop", session)]


def an_error(name: str, **data: Any) -> str:
    return event("error", error={"name": name, "data": {"message": "something happened", **data}})
