"""A model that says what its script says: on loopback, in the words of OpenAI and of Anthropic, with every fault.

A script is a list of answers; each model request takes the first one that is left and fits it. As a program,
`python model_server.py SCRIPT.json` prints its port and serves until it is told to stop (INT or TERM).
"""

import json
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

Json = dict[str, Any]

LONGEST_STALL = 300.0  # seconds; nothing here waits for ever, whatever a test forgets
LONGEST_LIFE = 3600.0
WINDOWS = {"five_hour": "5h", "seven_day": "7d"}  # how Anthropic's headers abbreviate its limits


class Usage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens that an answer claims to have cost; `input` includes the cached ones, as OpenAI counts."""

    input: int = 1000
    cached: int = 200
    output: int = 50


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool the model wants used. Text instead of an object is the input of one of Codex's free-form tools."""

    name: str
    arguments: Json | str


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model does when it is asked once: words and tool calls, or a fault."""

    text: str = ""
    sh: str = ""  # a shell command, by whichever shell tool the agent offers
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    stop: str = ""  # why it ended, if not as usual: `max_output_tokens`, `content_filter`, `max_tokens`, `refusal`
    fault: str = ""  # a name in OPENAI or ANTHROPIC, one of BREAKS, or `stream:CODE` for an error after half a stream
    message: str = ""  # the fault's text, if not the usual one
    seconds: int = 7200  # until a limit resets, and what `retry-after` says
    until: int = 0  # the moment a limit resets, in seconds since 1970; 0 is that many seconds from now
    window: str = "five_hour"  # the subscription limit that is meant, a name in WINDOWS
    warning: float = 0.0  # how much of that limit is used up, told with a good answer
    delay: float = 0.0  # seconds of silence first
    when: str = ""  # only for a request whose body holds this text
    times: int = 1  # how many requests it serves; 0 is as many as come

    def __post_init__(self) -> None:
        known = {"", OVER, *BREAKS, *OPENAI, *ANTHROPIC}
        if self.fault not in known and not self.fault.startswith("stream:"):
            raise ValueError(f"there is no fault {self.fault!r}; choose from {sorted(known)}")

    @property
    def resets_at(self) -> int:
        return self.until or int(time.time()) + self.seconds


class Request(NamedTuple):
    """A request as it came; header names are in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json
    at: float

    @property
    def dialect(self) -> str:
        """Whose words it is in; empty if it asks for no answer of the model."""
        return next((name for end, name in DIALECTS.items() if self.path.endswith(end)), "")

    @property
    def tools(self) -> list[str]:
        """The names of the tools on offer."""
        tools = [tool.get("function", tool) for tool in self.body.get("tools", [])]
        return [str(tool.get("name", tool.get("type"))) for tool in tools]

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


class Reply(msgspec.Struct, frozen=True):
    """An HTTP answer that is no stream."""

    status: int
    body: Json | str
    headers: dict[str, str] = {}


Script = Sequence[Answer] | Callable[[Request], Answer]


# -- what the model says ------------------------------------------------------------------------------------------


def tool_calls(answer: Answer, request: Request) -> list[Call]:
    return [*([shell_call(answer.sh, request.tools)] if answer.sh else []), *answer.calls]


def shell_call(command: str, tools: list[str]) -> Call:
    """The same command in the form of the shell tool on offer."""
    forms: dict[str, Json] = {
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-lc", command]},
        "Bash": {"command": command, "description": "as the script says"},
    }
    name = next((name for name in forms if name in tools), "exec_command")
    return Call(name, forms[name])


def responses_events(answer: Answer, request: Request) -> Iterator[Json]:
    """OpenAI Responses, as a stream."""
    identity = f"resp_{time.monotonic_ns()}"
    yield {"type": "response.created", "response": {"id": identity}}
    if answer.text:
        yield {"type": "response.output_item.added", "item": responses_text("")}
        yield {"type": "response.output_text.delta", "delta": answer.text}
        yield {"type": "response.output_item.done", "item": responses_text(answer.text)}
    for number, call in enumerate(tool_calls(answer, request)):
        yield {"type": "response.output_item.done", "item": responses_call(call, f"call_{identity}_{number}")}
    yield responses_end(answer, {"id": identity, "usage": responses_usage(answer.usage)})


def responses_end(answer: Answer, response: Json) -> Json:
    if answer.stop:
        return {"type": "response.incomplete", "response": response | {"incomplete_details": {"reason": answer.stop}}}
    return {"type": "response.completed", "response": response}


def responses_text(text: str) -> Json:
    return {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": text}] if text else [],
    }


def responses_call(call: Call, identity: str) -> Json:
    if isinstance(call.arguments, str):
        return {"type": "custom_tool_call", "call_id": identity, "name": call.name, "input": call.arguments}
    arguments = json.dumps(call.arguments)
    return {"type": "function_call", "call_id": identity, "name": call.name, "arguments": arguments}


def responses_usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def chat_events(answer: Answer, request: Request) -> Iterator[Json]:
    """OpenAI chat completions, as a stream."""
    head = {"id": f"chatcmpl-{time.monotonic_ns()}", "object": "chat.completion.chunk", "model": "scripted"}
    message = chat_message(answer, request)
    calls = [{"index": number, **call} for number, call in enumerate(message.pop("tool_calls", []))]
    delta = message | ({"tool_calls": calls} if calls else {})
    yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = answer.stop or ("tool_calls" if calls else "stop")
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": chat_usage(answer.usage)}


def chat_whole(answer: Answer, request: Request) -> Json:
    message = chat_message(answer, request)
    end = answer.stop or ("tool_calls" if "tool_calls" in message else "stop")
    choice = {"index": 0, "message": message, "finish_reason": end}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": chat_usage(answer.usage)}


def chat_message(answer: Answer, request: Request) -> Json:
    calls = [
        {"id": f"call_{time.monotonic_ns()}_{number}", "type": "function", "function": chat_function(call)}
        for number, call in enumerate(tool_calls(answer, request))
    ]
    return {"role": "assistant", "content": answer.text or None} | ({"tool_calls": calls} if calls else {})


def chat_function(call: Call) -> Json:
    return {"name": call.name, "arguments": json.dumps(call.arguments)}


def chat_usage(usage: Usage) -> Json:
    cached = {"cached_tokens": usage.cached}
    tokens = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
    return tokens | {"total_tokens": usage.input + usage.output, "prompt_tokens_details": cached}


def messages_events(answer: Answer, request: Request) -> Iterator[Json]:
    """Anthropic Messages, as a stream."""
    whole = messages_whole(answer, request)
    usage = whole["usage"]
    start = whole | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        yield from messages_block(index, block)
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def messages_block(index: int, block: Json) -> Iterator[Json]:
    empty: Json = {"text": ""} if block["type"] == "text" else {"input": {}}
    if block["type"] == "text":
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": index, "content_block": block | empty}
    yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def messages_whole(answer: Answer, request: Request) -> Json:
    calls = tool_calls(answer, request)
    identity = time.monotonic_ns()
    tools = [
        {"type": "tool_use", "id": f"toolu_{identity}_{number}", "name": call.name, "input": call.arguments}
        for number, call in enumerate(calls)
    ]
    return {
        "id": f"msg_{identity}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "scripted"),
        "content": [*([{"type": "text", "text": answer.text}] if answer.text else []), *tools],
        "stop_reason": answer.stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": messages_usage(answer.usage),
    }


def messages_usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input - usage.cached,  # Anthropic counts the cached ones apart
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.output,
    }


def unified(status: str, answer: Answer) -> dict[str, str]:
    """The headers with which a Claude subscription speaks of its limits."""
    reset, short = str(answer.resets_at), WINDOWS[answer.window]
    headers = {"status": status, "reset": reset, "representative-claim": answer.window, f"{short}-reset": reset}
    if status == "rejected":
        headers |= {"overage-status": "rejected", "overage-disabled-reason": "org_level_disabled"}
    else:
        headers |= {f"{short}-utilization": str(answer.warning), f"{short}-surpassed-threshold": "0.9"}
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in headers.items()}


# -- what goes wrong ----------------------------------------------------------------------------------------------


OPENAI = {  # name: status, kind, text
    "usage-limit": (429, "usage_limit_reached", "The usage limit has been reached"),
    "not-included": (429, "usage_not_included", "Usage is not included in this plan"),
    "quota": (429, "insufficient_quota", "You exceeded your current quota"),
    "rate-limit": (429, "rate_limit_exceeded", "Rate limit reached for requests"),
    "unauthorized": (401, "invalid_api_key", "Incorrect API key provided: dummy."),
    "forbidden": (403, "forbidden", "You are not allowed to use this."),
    "bad-request": (400, "invalid_request_error", "That is no request."),
    "schema": (400, "invalid_json_schema", "Invalid schema for response_format 'codex_output_schema'."),
    "context": (400, "context_length_exceeded", "Your input exceeds the context window of this model."),
    "model": (404, "model_not_found", "The model does not exist or you do not have access to it."),
    "too-large": (413, "request_too_large", "The request is too large."),
    "server-error": (500, "server_error", "The server had an error."),
    "bad-gateway": (502, "", "<html><h1>502 Bad Gateway</h1></html>"),
    "unavailable": (503, "server_is_overloaded", "The server is overloaded."),
    "overloaded": (529, "overloaded", "overloaded"),
}
ANTHROPIC = {
    "usage-limit": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    "quota": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "rate-limit": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "unauthorized": (401, "authentication_error", "invalid x-api-key"),
    "forbidden": (403, "permission_error", "You are not allowed to use this."),
    "bad-request": (400, "invalid_request_error", "That is no request."),
    "context": (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    "model": (404, "not_found_error", "model: no-such-model"),
    "too-large": (413, "request_too_large", "Request exceeds the maximum size"),
    "server-error": (500, "api_error", "Internal server error"),
    "bad-gateway": (502, "", "<html><h1>502 Bad Gateway</h1></html>"),
    "unavailable": (503, "api_error", "Service unavailable"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}
BREAKS = ("stall", "stall-midway", "drop", "drop-midway")  # nothing is said, or the first half of an answer
OVER = "the script is over"
NONE = (400, "invalid_request_error", "")


def openai_refusal(answer: Answer) -> Reply:
    status, kind, text = OPENAI.get(answer.fault, NONE)
    if not kind:
        return Reply(status, text)
    error: Json = {"type": kind, "code": kind, "message": answer.message or text or answer.fault}
    if answer.fault == "usage-limit":
        # Codex 0.166 reads the moment only; the older field goes along as a real server sends it.
        error |= {"plan_type": "plus", "resets_at": answer.resets_at, "resets_in_seconds": answer.seconds}
    return Reply(status, {"error": error}, retry_after(answer))


def anthropic_refusal(answer: Answer) -> Reply:
    status, kind, text = ANTHROPIC.get(answer.fault, NONE)
    if not kind:
        return Reply(status, text)
    limit = unified("rejected", answer) if answer.fault == "usage-limit" else {}
    return Reply(status, anthropic_error(kind, answer.message or text or answer.fault), limit | retry_after(answer))


def retry_after(answer: Answer) -> dict[str, str]:
    return {"retry-after": str(answer.seconds)} if answer.fault in ("rate-limit", "usage-limit") else {}


def anthropic_error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


def stream_error(answer: Answer, dialect: str) -> Json:
    """An error told in the middle of a stream that began well."""
    code = answer.fault.partition(":")[2]
    error = {"code": code, "type": code, "message": answer.message or code}
    if dialect == "messages":
        return anthropic_error(code, error["message"])
    if dialect == "chat":
        return {"error": error}
    return {"type": "response.failed", "response": {"id": "resp_failed", "status": "failed", "error": error}}


def beside(request: Request) -> Reply:
    """What agents ask for beside answers."""
    if request.path.endswith("/count_tokens"):
        return Reply(200, {"input_tokens": len(request.text) // 4})
    if request.path.endswith("/models"):
        return Reply(200, {"object": "list", "data": []})
    return Reply(404, anthropic_error("not_found_error", f"nothing is served at {request.path}"))


DIALECTS = {"/responses": "responses", "/chat/completions": "chat", "/messages": "messages"}
EVENTS = {"responses": responses_events, "chat": chat_events, "messages": messages_events}
WHOLE = {"chat": chat_whole, "messages": messages_whole}
REFUSALS = {"responses": openai_refusal, "chat": openai_refusal, "messages": anthropic_refusal}


# -- the server ---------------------------------------------------------------------------------------------------


class ModelServer:
    """The model for one test; a context that leaves no thread and no connection behind."""

    def __init__(self, script: Script = ()) -> None:
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._left: list[Answer] = []
        self._function: Callable[[Request], Answer] | None = None
        self._lock = threading.Lock()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="model server")
        self.play(script)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()  # whoever stalls wakes up
        self._http.shutdown()
        self._thread.join(5)
        self._http.server_close()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[Request]:
        """The requests that wanted an answer of the model."""
        return [request for request in self.requests if request.dialect]

    @property
    def left(self) -> list[Answer]:
        """The answers nobody has asked for yet."""
        return [answer for answer in self._left if answer.times != 0]

    def play(self, script: Script) -> None:
        """Forget the rest of the script and go on with this one."""
        with self._lock:
            self._function = script if callable(script) else None
            self._left = [] if callable(script) else list(script)

    def take(self, request: Request) -> Answer:
        """The answer for this request; after the end of the script, one that cannot be overlooked."""
        with self._lock:
            self.requests.append(request)
            if not request.dialect:
                return Answer()
            if self._function is None:
                return self._next(request)
        return self._function(request)

    def _next(self, request: Request) -> Answer:
        text = request.text
        for index, answer in enumerate(self._left):
            if answer.when in text:
                if answer.times == 1:
                    del self._left[index]
                elif answer.times > 1:
                    self._left[index] = msgspec.structs.replace(answer, times=answer.times - 1)
                return answer
        return Answer(fault=OVER)


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for the last handler
    allow_reuse_address = False

    def __init__(self, model: ModelServer) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """One request per connection: a connection kept open would outlive the test."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    server: _Http

    def do_POST(self) -> None:
        # An agent that was stopped hangs up in the middle; that is its right.
        with suppress(ConnectionError, TimeoutError):
            self._answer()

    do_GET = do_HEAD = do_POST  # noqa: N815 -- the names are the base class's

    def _answer(self) -> None:
        self.close_connection = True
        request = self._request()
        answer = self.server.model.take(request)
        self._silence(answer.delay)
        if not request.dialect:
            self._whole(beside(request))
        elif answer.fault in ("stall", "drop"):
            self._break(answer.fault)
        elif answer.fault in BREAKS or answer.fault.startswith("stream:"):
            self._half(answer, request)
        elif answer.fault:
            self._whole(REFUSALS[request.dialect](answer))
        elif not request.body.get("stream") and request.dialect in WHOLE:
            self._whole(Reply(200, WHOLE[request.dialect](answer, request), _warning(answer)))
        else:
            self._stream([*EVENTS[request.dialect](answer, request)], answer)
            if request.dialect == "chat":
                self._chunk("data: [DONE]\n\n")
            self._chunk("")

    def _half(self, answer: Answer, request: Request) -> None:
        events = [*EVENTS[request.dialect](answer, request)]
        half = events[: (len(events) + 1) // 2]
        if answer.fault in BREAKS:
            self._stream(half, answer)
            self._break(answer.fault)
        else:
            self._stream([*half, stream_error(answer, request.dialect)], answer)
            self._chunk("")

    def _break(self, fault: str) -> None:
        """Say nothing more; a stall lasts until the other side has hung up, or the test ends."""
        if fault.startswith("stall"):
            self._silence(LONGEST_STALL)

    def _silence(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.server.model.closing.wait(0.05):
            if self._hung_up():
                raise ConnectionResetError

    def _hung_up(self) -> bool:
        """Has the other side closed? There is nothing to read from it otherwise."""
        return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1, socket.MSG_PEEK)

    def _stream(self, events: list[Json], answer: Answer) -> None:
        kind = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._head(200, _warning(answer) | kind)
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")

    def _request(self) -> Request:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw) if raw else {}
        return Request(self.command, self.path.partition("?")[0], _small(self.headers), body, time.monotonic())

    def _whole(self, reply: Reply) -> None:
        kind = "text/html" if isinstance(reply.body, str) else "application/json"
        data = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
        self._head(reply.status, reply.headers | {"content-type": kind, "content-length": str(len(data))})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "request-id": "req_scripted", "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name is the base class's
        """Nothing: what was asked is kept in `requests`."""


def _small(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _warning(answer: Answer) -> dict[str, str]:
    return unified("allowed_warning", answer) if answer.warning else {}


def main(path: str) -> None:
    """Print the port, then serve until somebody asks for the end."""
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before there are threads, which inherit it
    with ModelServer(msgspec.json.decode(Path(path).read_bytes(), type=list[Answer])) as server:
        print(server.port, flush=True)
        signal.sigtimedwait(ends, LONGEST_LIFE)


if __name__ == "__main__":
    main(sys.argv[1])
