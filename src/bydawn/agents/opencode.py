"""opencode: `opencode run --format json`, the prompt on stdin, one JSON event per line and none that says "done"."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bydawn.agents import program
from bydawn.core.agent import (
    Abilities,
    Activity,
    AgentCommand,
    Denied,
    Ended,
    Event,
    Hopeless,
    Ladder,
    Message,
    Retry,
    Spent,
    Turn,
)
from bydawn.core.errors import UserError
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Ending, Exit, Outcome, imposed
from bydawn.core.text import headline, plain, shorten
from bydawn.core.values import Usage, total

# The levels it supports. `workspace` restricts its file tools but not its shell commands: it has no OS sandbox.
# So nothing can keep it from writing either, and read-only is missing.
SANDBOXES: Mapping[Sandbox, tuple[str, ...]] = {Sandbox.WORKSPACE: (), Sandbox.FULL: ("--auto",)}

_ASKS = 20  # answers and errors in a row without a tool call; seen: 370 in a minute, and 1.7 GB of memory
_OVERFLOWS = 3  # … of which this many say the context is full: compacting does not help
_OVERFLOW = "ContextOverflowError"

_BY_NAME = {
    _OVERFLOW: Outcome.CONTEXT_FULL,
    "ProviderAuthError": Outcome.AUTH,
    "ProviderModelNotFoundError": Outcome.CONFIG,
}
_BY_STATUS = {
    401: Outcome.AUTH,
    402: Outcome.AUTH,  # an account without credit
    403: Outcome.AUTH,
    404: Outcome.CONFIG,
    408: Outcome.TRANSIENT,
}
# Parts of an error's text, the last resort, for providers whose overflow it has no name for.
_BY_TEXT = {
    "context_length_exceeded": Outcome.CONTEXT_FULL,
    "maximum context length": Outcome.CONTEXT_FULL,
    "prompt is too long": Outcome.CONTEXT_FULL,
}
_REFUSALS = ("rejected permission", "a rule which prevents")
_LOGIN = "run `opencode auth login`, or set the provider's key"
_TOLD = {"bash": "ran", "write": "wrote", "edit": "edited", "read": "read"}


CLI = program.Cli(
    name="opencode",
    package="opencode-ai",
    tested="1.18.",
    login="opencode auth login",
    logged_in=lambda *_: None,
)


class OpencodeAgent(program.CliAgent, frozen=True, kw_only=True):
    """The `opencode` on the PATH."""

    cli = CLI
    ladder: Ladder = Ladder(interrupt=0.0)  # it ignores SIGINT while a command runs, and exits at once on SIGTERM
    abilities: Abilities = Abilities(
        sandboxes=frozenset(SANDBOXES), options=frozenset({"model", "agent_args"}), resumes=True, tells_cost=True
    )

    def command(self, turn: Turn) -> AgentCommand:
        """Permissions on every call: sessions do not remember them."""
        if turn.sandbox not in SANDBOXES:  # refused long before this, or it would get more access than it was given
            raise UserError(f"opencode has no --sandbox {turn.sandbox}", hint="use `workspace`, or another agent")
        model = ("-m", turn.model) if turn.model else ()
        resume = ("-s", turn.session) if turn.session else ()
        flags = (*SANDBOXES[turn.sandbox], *model, *resume, *turn.arguments)
        return AgentCommand(argv=(self.start, "run", "--format", "json", *flags))

    def reader(self, turn: Turn | None = None) -> "OpencodeReader":
        return OpencodeReader(turn.session if turn else None)


class _State(msgspec.Struct, frozen=True):
    """How a tool call ended."""

    input: Any = None
    title: str | None = None
    error: str | None = None
    output: str | None = None
    metadata: Any = None


class _Part(msgspec.Struct, frozen=True):
    """What an event is about; which fields it has depends on the event's type."""

    text: str | None = None
    synthetic: bool | None = None
    tool: str | None = None
    state: _State = _State()
    reason: str | None = None
    tokens: Any = None
    cost: float | None = None


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    message: str | None = None
    status_code: int | None = None
    is_retryable: bool | None = None
    response_body: str | None = None


class _Error(msgspec.Struct, frozen=True):
    name: str = ""
    data: _Data = _Data()


class _Line(msgspec.Struct, frozen=True):
    """One event, of whatever type."""

    type: str
    session: str | None = msgspec.field(name="sessionID", default=None)
    part: _Part = _Part()
    error: _Error = _Error()


_LINES: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line, strict=False)


class OpencodeReader(program.LineReader[_Line]):
    """Reads the events and skips everything else in the stream."""

    def __init__(self, asked_for: str | None = None) -> None:
        super().__init__(_LINES, asked_for)
        self._words: list[str] = []  # of the current step
        self._stopped = False  # was the last thing a step that ended the turn?
        self._error: _Error | None = None
        self._denied = ""
        self._asks = 0
        self._overflows = 0
        self._hopeless: tuple[Outcome, str] | None = None
        self._usage: Usage | None = None

    def events(self, line: _Line) -> Iterable[Event]:
        self._session = self._session or line.session
        match line.type:
            case "step_start":
                self._words, self._stopped = [], False
                return self._asked()
            case "text":
                return self._text(line.part)
            case "tool_use":
                return self._tool(line.part)
            case "step_finish":
                return self._step(line.part)
            case "error":
                return self._trouble(line.error)
            case _:
                return ()

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        outcome, detail = self._verdict(exit_, plain(stderr_tail))
        ok = outcome in (Outcome.OK, Outcome.DENIED) and self._stopped
        refused = outcome is Outcome.AUTH
        return Ended(
            outcome=outcome,
            detail=program.not_logged_in(CLI.name, detail, _LOGIN) if refused else detail,
            words=detail if refused else "",
            reply="\n".join(self._words) if ok else "",
            session=self._session,
            usage=self._usage,
        )

    def _text(self, part: _Part) -> Iterable[Event]:
        """After compacting a session it talks to itself; that is neither text from the agent nor an end."""
        if part.synthetic:
            self._words, self._stopped = [], False
            return ()
        text = plain(part.text or "")
        self._words.append(text)
        return (Message(text),)

    def _tool(self, part: _Part) -> Iterable[Event]:
        """A tool call shows that the turn makes progress: all trouble before it is over."""
        self._asks = self._overflows = 0
        self._error = None
        what = _told(part)
        if any(words in (part.state.error or "") for words in _REFUSALS):
            self._denied = what
            return (Denied(what),)
        return (_command_ended(part.state),) if part.tool == "bash" else (Activity(what),)

    def _step(self, part: _Part) -> Iterable[Event]:
        self._stopped = part.reason == "stop"
        step = _usage(part)
        self._usage = step.plus(self._usage) if step else self._usage
        spent = (Spent(self._usage),) if self._usage else ()
        again = (Retry("the answer broke off; retrying"),) if part.reason == "unknown" else ()
        return (*spent, *again)

    def _trouble(self, error: _Error) -> Iterable[Event]:
        self._error, self._stopped = error, False
        if error.name != _OVERFLOW:
            return (Activity(f"warns: {_shown(error)}"), *self._asked())
        self._overflows += 1
        return (Retry(f"{_shown(error)} Compacting the session"), *self._asked())

    def _asked(self) -> Iterable[Event]:
        """It may ask its provider the same thing forever, many times a second."""
        self._asks += 1
        if self._hopeless or (self._asks <= _ASKS and self._overflows < _OVERFLOWS):
            return ()
        broke_off = Outcome.TRANSIENT, "it asked again and again and got no complete answer"
        self._hopeless = _judged(self._error) if self._error else broke_off
        return (Hopeless(self._hopeless[1]),)

    def _verdict(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        if lost := program.session_lost(self._asked_for, self._session):
            return lost
        if self._stopped and exit_.ending is Ending.EXIT and exit_.code == 0:
            return (Outcome.DENIED, f"not allowed: {self._denied}") if self._denied else (Outcome.OK, "")
        return self._hopeless or imposed(exit_) or self._unfinished(exit_, stderr)

    def _unfinished(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        """The verdict on a run that ended on its own, but not well."""
        if self._error:
            return _judged(self._error)
        if exit_.code == 0 and self._denied:
            return Outcome.DENIED, f"not allowed: {self._denied}"  # it gives up the turn when refused
        if verdict := program.without_result(exit_, self._skipped, "a last step"):
            return verdict
        # Once the stream has begun, a tool may have written these words.
        lost = not self._session and "Session not found" in stderr
        return (Outcome.SESSION_LOST if lost else Outcome.FAILED), headline(stderr) or f"exited with {exit_.code}"


def _judged(error: _Error) -> tuple[Outcome, str]:
    status, text = error.data.status_code, f"{error.data.message} {error.data.response_body}".lower()
    by_text = next((outcome for part, outcome in _BY_TEXT.items() if part in text), None)
    outcome = _BY_NAME.get(error.name) or _BY_STATUS.get(status or 0) or by_text or _retryable(error.data)
    return outcome, _shown(error)


def _retryable(data: _Data) -> Outcome:
    """A 429 that is not worth a retry is an exhausted quota."""
    if data.is_retryable or (data.status_code or 0) >= 500:
        return Outcome.TRANSIENT
    return Outcome.LIMITED if data.status_code == 429 else Outcome.FAILED


def _shown(error: _Error) -> str:
    status = f" ({error.data.status_code})" if error.data.status_code else ""
    return shorten(plain(error.data.message or error.name or "an error without a name"), 200) + status


def _command_ended(state: _State) -> Event:
    given = state.input if isinstance(state.input, dict) else {}
    code = _count(state.metadata if isinstance(state.metadata, dict) else {}, "exit")
    failed, output = bool(code or state.error), state.error or state.output or ""
    return program.command_ended(str(given.get("command", "")), output, code, failed=failed)


def _told(part: _Part) -> str:
    """`ran ls`, `edited src/settings.py`, or an unknown tool's name and the title it gave."""
    given = part.state.input if isinstance(part.state.input, dict) else {}
    subject = given.get("command") or given.get("filePath") or part.state.title or ""
    tool = part.tool or "a tool"
    return shorten(plain(f"{_TOLD.get(tool, tool)} {subject}"), 120)


def _usage(part: _Part) -> Usage | None:
    """For one step. An answer that broke off reports no usage at all, so it is unknown."""
    tokens = part.tokens if isinstance(part.tokens, dict) else {}
    cache = tokens.get("cache") if isinstance(tokens.get("cache"), dict) else {}
    cached, written = _count(cache, "read"), _count(cache, "write")
    usage = Usage(
        tokens_in=total(_count(tokens, "input"), total(cached, written)),  # its `input` leaves out the cached ones
        tokens_cached=cached,
        tokens_out=total(_count(tokens, "output"), _count(tokens, "reasoning")),
        cost_usd=part.cost,
    )
    return usage if usage.tokens_in or usage.tokens_out or usage.cost_usd else None


def _count(tokens: Any, key: str) -> int | None:
    value = tokens.get(key)
    return value if isinstance(value, int) else None
