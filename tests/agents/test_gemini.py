"""Gemini CLI: its command line, the prompt that it echoes, and failures behind an exit code of 8 bits."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.agents import find
from bydawn.agents.command import REPLY_LENGTH
from bydawn.agents.gemini import SANDBOXES, GeminiAgent, GeminiReader
from bydawn.core.agent import Activity, Denied, Event, Finished, Message, Spent, Turn
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.values import Usage

RUN = ("gemini", "-o", "stream-json", "--skip-trust", "--approval-mode")
GONE = Exit(code=0)
DONE = "<promise>DONE</promise>"
STATS = {"total_tokens": 1050, "input_tokens": 1000, "output_tokens": 50, "cached": 200, "input": 800}

# The command


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        ({"sandbox": Sandbox.READ_ONLY}, ("default",)),
        ({"sandbox": Sandbox.WORKSPACE}, ("yolo",)),
        ({"sandbox": Sandbox.FULL}, ("yolo",)),
        ({"session": "5f0c"}, ("yolo", "-r", "5f0c")),
        ({"new_session": "77aa"}, ("yolo", "--session-id", "77aa")),
        # A resumed session keeps its own id.
        ({"session": "5f0c", "new_session": "77aa"}, ("yolo", "-r", "5f0c")),
        ({"model": "gemini-2.5-pro"}, ("yolo", "-m", "gemini-2.5-pro")),
        ({"model": "m", "session": "s", "arguments": ("--debug",)}, ("yolo", "-r", "s", "-m", "m", "--debug")),
    ],
)
def test_a_turn_becomes_a_command_line(asked: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert GeminiAgent().command(a_turn(**asked)).argv == (*RUN, *flags)


def test_nobody_is_told_that_it_stays_in_the_workspace() -> None:
    assert GeminiAgent().abilities.sandboxes == SANDBOXES == {Sandbox.READ_ONLY, Sandbox.FULL}


def test_it_is_found_by_name_and_missed_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find("gemini") == GeminiAgent()
    _, hint = find("gemini").missing("/ws") or ("", "")
    assert hint == "install it: npm install -g @google/gemini-cli"
    (tmp_path / "gemini").touch(mode=0o755)
    assert find("gemini").missing("/ws") is None


# What it says and does


def test_the_reply_is_put_together_from_what_it_said_after_the_last_tool() -> None:
    lines = [
        init(),
        says("I "),
        says("will"),
        uses("run_shell_command", command="ls"),
        used(),
        says("All "),
        says(DONE),
    ]
    reader, events = fed([*lines, result()])
    assert reader.end(GONE, "").reply == f"All {DONE}"
    usage = Usage(tokens_in=1000, tokens_cached=200, tokens_out=50)
    assert events == [Message("I will"), Activity("runs ls"), Message(f"All {DONE}"), Spent(usage), Finished()]


@pytest.mark.parametrize(
    "lines",
    [
        lambda: [echo(DONE)],
        lambda: [echo(DONE), says(DONE), uses("read_file", file_path="a"), used(output=DONE)],
        lambda: [echo(DONE), says(DONE), uses("read_file", file_path="a")],
    ],
)
def test_a_promise_in_the_prompt_or_before_a_tool_is_never_the_reply(lines: Any) -> None:
    ended = fed([init(), *lines(), result()])[0].end(GONE, "")
    assert (ended.outcome, ended.reply) == (Outcome.OK, "")


def test_only_the_end_of_a_very_long_reply_is_kept() -> None:
    reader, _ = fed([init(), *[says("x" * 100_000)] * 50, says("the end"), result()])
    reply = reader.end(GONE, "").reply
    assert reply.endswith("xthe end")
    assert REPLY_LENGTH <= len(reply) <= 2 * REPLY_LENGTH


def test_a_tool_that_is_not_on_offer_is_a_denial_unless_every_tool_was() -> None:
    refused = used(error={"type": "tool_not_registered", "message": "not found"})
    lines = [init(), uses("run_shell_command", command="ls"), refused, says("end"), result()]
    reader, events = fed(lines, a_turn(sandbox=Sandbox.READ_ONLY))
    assert Denied("runs ls") in events
    assert (reader.end(GONE, "").outcome, reader.end(GONE, "").reply) == (Outcome.DENIED, "end")
    assert fed(lines, a_turn())[0].end(GONE, "").outcome is Outcome.OK


def test_a_tool_that_failed_is_no_denial() -> None:
    failed = used(error={"type": "shell_execute_error", "message": "exit 1"})
    assert fed([init(), uses("run_shell_command"), failed, result()])[0].end(GONE, "").outcome is Outcome.OK


def test_a_warning_is_shown_and_decides_nothing() -> None:
    reader, events = fed([init(), line("error", severity="warning", message="Loop detected"), says("ok"), result()])
    assert Activity("warns: Loop detected") in events
    assert reader.end(GONE, "").reply == "ok"


# Sessions


def test_another_session_than_the_one_asked_for_is_a_lost_one() -> None:
    stream = [init("bbbb"), says(DONE), result()]
    ended = fed(stream, a_turn(session="aaaa"))[0].end(GONE, "")
    assert (ended.outcome, ended.reply, ended.session) == (Outcome.SESSION_LOST, "", "bbbb")
    assert fed(stream, a_turn(session="bbbb"))[0].end(GONE, "").outcome is Outcome.OK


@pytest.mark.parametrize(
    ("session", "stderr", "outcome"),
    [
        ("aaaa", "", Outcome.SESSION_LOST),
        (None, 'Error resuming session: Invalid session identifier "x".\n  Use --list', Outcome.SESSION_LOST),
        # The same code stands for any input that it dislikes; without a session there is none to lose.
        (None, "No input provided via stdin.", Outcome.FAILED),
    ],
)
def test_bad_input_is_a_lost_session_if_there_was_one(session: str | None, stderr: str, outcome: Outcome) -> None:
    assert fed([], a_turn(session=session))[0].end(Exit(code=42), stderr).outcome is outcome


# What it cost


@pytest.mark.parametrize(
    ("stats", "usage"),
    [
        (STATS, Usage(tokens_in=1000, tokens_cached=200, tokens_out=50)),
        ({"input_tokens": 7, "cached": None}, Usage(tokens_in=7)),
        ({"input_tokens": "many"}, Usage()),
        ("none", None),
        (None, None),
    ],
)
def test_what_is_not_said_stays_unknown(stats: Any, usage: Usage | None) -> None:
    reader, _ = fed([init(), says("x"), line("result", status="success", stats=stats)])
    assert (reader.end(GONE, "").usage, reader.end(GONE, "").outcome) == (usage, Outcome.OK)


# What goes wrong


def api(code: int, message: str) -> str:
    return f"[API Error: {json.dumps({'error': {'code': code, 'message': message}})}]"


@pytest.mark.parametrize(
    ("message", "code", "outcome"),
    [
        (api(400, "API key not valid. Please pass a valid API key."), 144, Outcome.AUTH),
        (api(403, "PERMISSION_DENIED"), 147, Outcome.AUTH),
        (api(404, "models/x is not found"), 148, Outcome.CONFIG),
        (api(429, "Resource has been exhausted (e.g. check quota)."), 173, Outcome.TRANSIENT),
        (api(503, "The model is overloaded."), 247, Outcome.TRANSIENT),
        ("[API Error: You have exhausted your daily quota on this model.]\nPlease wait", 173, Outcome.LIMITED),
        (api(400, "The input token count (9) exceeds the maximum number of tokens allowed"), 144, Outcome.CONTEXT_FULL),
        (api(400, "something else"), 144, Outcome.FAILED),
        # Without a body the exit code still knows the status, modulo 256.
        ("[API Error: odd]", 401 % 256, Outcome.AUTH),
        ("[API Error: odd]", 500 % 256, Outcome.TRANSIENT),
        ("Reached max session turns", 53, Outcome.TURN_LIMIT),
        ("[API Error: odd {{{]", 1, Outcome.FAILED),
        ("", 1, Outcome.FAILED),
    ],
)
def test_a_failed_result_is_judged_by_what_it_says(message: str, code: int, outcome: Outcome) -> None:
    ended = fed([init(), says(DONE), failure(message)])[0].end(Exit(code=code), "")
    assert (ended.outcome, ended.reply, bool(ended.detail)) == (outcome, "", True)


def test_the_provider_s_own_words_are_the_detail() -> None:
    assert fed([init(), failure(api(503, "Overloaded."))])[0].end(Exit(code=247), "").detail == "Overloaded."


def test_a_result_counts_even_if_we_had_to_stop_the_process_afterwards() -> None:
    killed = Exit(ending=Ending.LINGER, signal=9)
    assert fed([init(), says(DONE), result()])[0].end(killed, "").reply == DONE
    assert fed([init(), failure(api(503, "Overloaded."))])[0].end(killed, "").outcome is Outcome.TRANSIENT


def test_a_failure_without_a_reason_is_our_doing_if_we_stopped_it() -> None:
    cancelled = [init(), failure("Operation cancelled.")]
    assert fed(cancelled)[0].end(Exit(ending=Ending.ASKED, code=130), "").outcome is Outcome.INTERRUPTED
    assert fed(cancelled)[0].end(Exit(code=130), "").outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("exit_", "stderr", "outcome", "detail"),
    [
        (
            Exit(code=41),
            "Warning: 256 colors\nYou must specify the key\nUpdate",
            Outcome.AUTH,
            "gemini is not logged in; set GEMINI_API_KEY",
        ),
        (Exit(code=55), "This folder is not trusted.", Outcome.CONFIG, "This folder is not trusted."),
        (Exit(code=52), "bad settings.json", Outcome.CONFIG, "bad settings.json"),
        (Exit(code=1), "ment: nope\nUsage: gemini [options]", Outcome.CONFIG, "does not understand its command line"),
        (Exit(code=1), "", Outcome.FAILED, "exited with 1"),
        (Exit(signal=9), "", Outcome.CRASHED, "killed by signal 9 (Killed)"),
        (Exit(code=0), "", Outcome.LOST_OUTPUT, "without a result"),
        (Exit(ending=Ending.NOT_STARTED, detail="gone"), "", Outcome.CONFIG, "gone"),
        (Exit(ending=Ending.FIRST_BYTE, signal=9), "", Outcome.HUNG, "printed nothing at all"),
    ],
)
def test_a_turn_that_never_began_is_judged_by_its_exit(exit_: Exit, stderr: str, outcome: Outcome, detail: str) -> None:
    ended = fed([])[0].end(exit_, stderr)
    assert ended.outcome is outcome
    assert detail in ended.detail


def test_what_a_tool_wrote_to_stderr_is_not_taken_for_a_complaint_about_the_command_line() -> None:
    ended = fed([init(), says("half")])[0].end(Exit(code=1), "Usage: gemini [options]\nError: odd")
    assert (ended.outcome, ended.detail) == (Outcome.FAILED, "Error: odd")


def test_a_result_cut_in_half_is_lost_output() -> None:
    ended = fed([init(), says(DONE), result()[:40]])[0].end(GONE, "")
    assert (ended.outcome, ended.reply) == (Outcome.LOST_OUTPUT, "")


# Garbage


KINDS = st.sampled_from(["init", "message", "tool_use", "tool_result", "error", "result"])
FIELDS = st.sampled_from(["role", "content", "tool_name", "parameters", "status", "message", "error", "stats"])
VALUES = st.none() | st.integers() | st.text(max_size=5) | st.dictionaries(st.text(max_size=5), st.text(max_size=5))


@given(KINDS, st.dictionaries(FIELDS, VALUES), st.integers(0, 255))
def test_no_event_can_upset_the_reader(kind: str, fields: dict[str, Any], code: int) -> None:
    reader, _ = fed([line(kind, **fields)])
    reader.end(Exit(code=code), "")


@pytest.mark.parametrize("garbage", [b"", b"{", b"[" * 100_000, b'{"type":7}', b'{"type":"new"}', b"null", b"\xff\xfe"])
def test_garbage_between_the_lines_changes_nothing(garbage: bytes) -> None:
    reader = GeminiReader()
    for each in [init(), says("a"), says("b"), result()]:
        reader.read(garbage)
        reader.read(each.encode())
    reader.read(garbage)
    assert reader.end(GONE, "").reply == "ab"


# Helpers


def a_turn(**asked: Any) -> Turn:
    return Turn(round=1, workspace="/ws", **asked)


def fed(lines: list[str], turn: Turn | None = None) -> tuple[GeminiReader, list[Event]]:
    reader = GeminiAgent().reader(turn)
    return reader, [event for each in lines for event in reader.read(each.encode())]


def line(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "timestamp": "2026-11-15T21:31:29.197Z", **fields})


def init(session: str = "aaaa") -> str:
    return line("init", session_id=session, model="m")


def echo(words: str) -> str:
    return line("message", role="user", content=words)


def says(words: str) -> str:
    return line("message", role="assistant", content=words, delta=True)


def uses(tool: str, **parameters: Any) -> str:
    return line("tool_use", tool_name=tool, tool_id="1", parameters=parameters)


def used(error: dict[str, str] | None = None, output: str = "") -> str:
    how = {"status": "error", "error": error} if error else {"status": "success"}
    return line("tool_result", tool_id="1", output=output, **how)


def result() -> str:
    return line("result", status="success", stats=STATS)


def failure(message: str) -> str:
    return line("result", status="error", error={"type": "unknown", "message": message}, stats=STATS)
