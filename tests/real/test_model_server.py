"""The scripted model says what its script says, in everybody's words."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from driving import wait_for
from real import model_server
from real.model_server import Answer, Call, ModelServer, Request, Usage

Json = dict[str, Any]

RESPONSES, CHAT, MESSAGES = "/v1/responses", "/v1/chat/completions", "/v1/messages"
STREAM: Json = {"stream": True, "tools": [{"type": "function", "name": "exec_command"}]}
PATHS = [RESPONSES, CHAT, MESSAGES]


class Heard(NamedTuple):
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Json:
        return dict(json.loads(self.text))

    @property
    def events(self) -> list[Json]:
        data = [line.removeprefix("data: ") for line in self.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in data if line != "[DONE]"]


def ask(server: ModelServer, path: str, body: Json = STREAM, seconds: float = 20) -> Heard:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=seconds)
    try:
        connection.request("POST", path, json.dumps(body), {"Authorization": "Bearer dummy"})
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Heard(response.status, headers, response.read().decode())
    finally:
        connection.close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


# -- answers ------------------------------------------------------------------------------------------------------


def test_a_responses_stream_has_words_a_call_and_a_price(server: ModelServer) -> None:
    server.play([Answer(text="I will.", sh="ls", usage=Usage(input=7, cached=3, output=2))])
    heard = ask(server, RESPONSES)
    assert heard.headers["content-type"] == "text/event-stream"
    words, call = [event["item"] for event in heard.events if event["type"] == "response.output_item.done"]
    assert words["content"] == [{"type": "output_text", "text": "I will."}]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "exec_command", '{"cmd": "ls"}')
    usage = heard.events[-1]["response"]["usage"]
    assert (usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"], usage["total_tokens"]) == (7, 3, 9)


def test_a_call_with_text_for_arguments_is_one_of_a_free_form_tool(server: ModelServer) -> None:
    server.play([Answer(calls=(Call("apply_patch", "*** Begin Patch"),))])
    [item] = [event["item"] for event in ask(server, RESPONSES).events if "item" in event]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin Patch")


def test_a_chat_stream_has_words_a_call_and_a_price(server: ModelServer) -> None:
    server.play([Answer(text="I will.", calls=(Call("bash", {"command": "ls"}),))])
    heard = ask(server, CHAT)
    delta = heard.events[0]["choices"][0]["delta"]
    assert (delta["content"], delta["tool_calls"][0]["function"]["name"]) == ("I will.", "bash")
    assert heard.events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert heard.events[-1]["usage"]["prompt_tokens"] == 1000
    assert heard.text.endswith("data: [DONE]\n\n")


def test_a_messages_stream_has_words_a_call_and_a_price(server: ModelServer) -> None:
    server.play([Answer(text="I will.", sh="ls")])
    events = ask(server, MESSAGES, {"stream": True, "model": "m", "tools": [{"name": "Bash"}]}).events
    assert [event["type"] for event in events] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert events[4]["content_block"]["name"] == "Bash"
    assert json.loads(events[5]["delta"]["partial_json"])["command"] == "ls"
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-2]["usage"]["input_tokens"] == 800


@pytest.mark.parametrize(("path", "place"), [(MESSAGES, "content"), (CHAT, "choices")])
def test_whoever_wants_no_stream_gets_the_answer_whole(server: ModelServer, path: str, place: str) -> None:
    server.play([Answer(text="Done.")])
    heard = ask(server, path, {"model": "m"})
    assert heard.headers["content-type"] == "application/json"
    assert "Done." in json.dumps(heard.json[place])


def test_an_answer_can_stop_for_another_reason(server: ModelServer) -> None:
    server.play([Answer(text="half", stop="max_output_tokens"), Answer(text="half", stop="refusal")])
    end = ask(server, RESPONSES).events[-1]
    assert (end["type"], end["response"]["incomplete_details"]) == (
        "response.incomplete",
        {"reason": "max_output_tokens"},
    )
    assert ask(server, MESSAGES).events[-2]["delta"]["stop_reason"] == "refusal"


# -- scripts ------------------------------------------------------------------------------------------------------


def said(heard: Heard) -> str:
    return str(heard.json["content"][0]["text"]) if heard.status == 200 else str(heard.json["error"]["message"])


def test_answers_are_given_in_order_until_the_script_is_over(server: ModelServer) -> None:
    server.play([Answer(text="one"), Answer(text="two", times=2)])
    assert [said(ask(server, MESSAGES, {})) for _ in range(4)] == ["one", "two", "two", model_server.OVER]


def test_an_answer_may_wait_for_its_request(server: ModelServer) -> None:
    server.play([Answer(text="tea", when="thirsty"), Answer(text="bread", times=0)])
    assert [said(ask(server, MESSAGES, {"messages": [word]})) for word in ("hungry", "thirsty", "hungry")] == [
        "bread",
        "tea",
        "bread",
    ]
    assert server.left == []


def test_a_function_can_answer(server: ModelServer) -> None:
    server.play(lambda request: Answer(text=request.body["model"].upper()))
    assert said(ask(server, MESSAGES, {"model": "m"})) == "M"


def test_every_request_is_kept(server: ModelServer) -> None:
    server.play([Answer(text="one")])
    ask(server, "/v1/messages/count_tokens", {"messages": []})
    ask(server, MESSAGES + "?beta=true", {"tools": [{"name": "Bash"}]})
    assert [request.path for request in server.requests] == ["/v1/messages/count_tokens", "/v1/messages"]
    [asked] = server.asked
    assert (asked.method, asked.headers["authorization"], asked.tools) == ("POST", "Bearer dummy", ["Bash"])


def test_what_agents_ask_beside_takes_no_answer(server: ModelServer) -> None:
    server.play([Answer(text="one")])
    assert ask(server, "/v1/messages/count_tokens", {"messages": []}).json["input_tokens"] > 0
    assert ask(server, "/v1/models", {}).json["data"] == []
    assert ask(server, "/elsewhere", {}).status == 404
    assert len(server.left) == 1


def test_a_fault_nobody_knows_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="there is no fault 'flood'"):
        Answer(fault="flood")


# -- faults -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", model_server.OPENAI)
def test_every_fault_has_its_status_in_openais_words(server: ModelServer, name: str) -> None:
    server.play([Answer(fault=name)])
    status, kind, _ = model_server.OPENAI[name]
    heard = ask(server, RESPONSES)
    assert heard.status == status
    assert kind in heard.text


@pytest.mark.parametrize("name", model_server.ANTHROPIC)
def test_every_fault_has_its_status_in_anthropics_words(server: ModelServer, name: str) -> None:
    server.play([Answer(fault=name)])
    status, kind, _ = model_server.ANTHROPIC[name]
    heard = ask(server, MESSAGES)
    assert heard.status == status
    assert kind in heard.text


def test_a_usage_limit_says_when_it_ends(server: ModelServer) -> None:
    server.play([Answer(fault="usage-limit", seconds=60), Answer(fault="usage-limit", until=1794785091)])
    before = int(time.time())
    error = ask(server, RESPONSES).json["error"]
    assert error["resets_in_seconds"] == 60
    assert before <= error["resets_at"] - 60 <= time.time()
    headers = ask(server, MESSAGES).headers
    assert headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert headers["anthropic-ratelimit-unified-5h-reset"] == "1794785091"


def test_a_rate_limit_says_when_to_try_again(server: ModelServer) -> None:
    server.play([Answer(fault="rate-limit", seconds=2, times=0)])
    assert [ask(server, path).headers["retry-after"] for path in PATHS] == ["2", "2", "2"]


def test_a_good_answer_can_warn_of_a_limit(server: ModelServer) -> None:
    server.play([Answer(text="ok", warning=0.92, window="seven_day")])
    heard = ask(server, MESSAGES)
    assert heard.status == 200
    assert heard.headers["anthropic-ratelimit-unified-status"] == "allowed_warning"
    assert heard.headers["anthropic-ratelimit-unified-7d-utilization"] == "0.92"


def test_a_fault_can_have_its_own_words(server: ModelServer) -> None:
    server.play([Answer(fault="unauthorized", message="OAuth token has expired.")])
    assert ask(server, MESSAGES).json["error"]["message"] == "OAuth token has expired."


@pytest.mark.parametrize("path", PATHS)
def test_an_error_can_come_in_the_middle_of_a_stream(server: ModelServer, path: str) -> None:
    server.play([Answer(text="half", fault="stream:server_is_overloaded")])
    heard = ask(server, path)
    assert heard.status == 200
    assert "server_is_overloaded" in json.dumps(heard.events[-1])


@pytest.mark.parametrize("path", PATHS)
def test_a_connection_can_drop_before_the_answer_or_within(server: ModelServer, path: str) -> None:
    server.play([Answer(fault="drop"), Answer(text="half", fault="drop-midway")])
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, path)
    with pytest.raises(http.client.IncompleteRead):
        ask(server, path)


@pytest.mark.parametrize("fault", ["stall", "stall-midway"])
def test_a_stall_holds_the_line_and_ends_with_the_test(fault: str) -> None:
    before = threading.enumerate()
    with ModelServer([Answer(text="half", fault=fault)]) as server:
        with pytest.raises(TimeoutError):
            ask(server, MESSAGES, seconds=0.2)
        wait_for(lambda: server.asked)  # it may read the question only after we have given up
        assert len(server.asked) == 1
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_a_delay_only_delays(server: ModelServer) -> None:
    server.play([Answer(text="late", delay=0.2)])
    started = time.monotonic()
    assert said(ask(server, MESSAGES, {})) == "late"
    assert time.monotonic() - started >= 0.2


# -- the server ---------------------------------------------------------------------------------------------------


def test_many_may_ask_at_once(server: ModelServer) -> None:
    """Nobody waits for another's answer: each request only goes on when all of them are there."""
    together = threading.Barrier(4, timeout=20)

    def answer(request: Request) -> Answer:
        together.wait()
        return Answer(text=request.body["model"])

    server.play(answer)
    heard: list[str] = []
    asking = [
        threading.Thread(target=lambda name=name: heard.append(said(ask(server, MESSAGES, {"model": name}))))
        for name in "abcd"
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(30)
    assert sorted(heard) == ["a", "b", "c", "d"]


def test_the_model_server_runs_as_a_program(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"sh": "ls", "times": 2}, {"fault": "quota"}, {"calls": [{"name": "Write", "arguments": {}}]}]')
    program = subprocess.Popen([sys.executable, model_server.__file__, script], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout
        with program.stdout:
            port = int(program.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", RESPONSES, json.dumps(STREAM))
        assert b"exec_command" in connection.getresponse().read()
        connection.close()
        program.send_signal(signal.SIGTERM)
        assert wait_for(lambda: program.poll() is not None)
        assert program.returncode == 0
    finally:
        program.kill()
        program.wait(5)
