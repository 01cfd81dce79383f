"""Gemini CLI: `gemini -o stream-json`, the prompt on stdin (and echoed), one JSON event per line up to `result`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bydawn.agents import program
from bydawn.agents.command import REPLY_LENGTH
from bydawn.core.agent import (
    Abilities,
    Activity,
    AgentCommand,
    Denied,
    Ended,
    Event,
    Finished,
    Ladder,
    Message,
    Spent,
    Turn,
)
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Exit, Outcome, imposed
from bydawn.core.text import headline, plain, shorten
from bydawn.core.values import Usage

# Without `yolo` it gets neither a shell nor tools that write. With it every tool is approved, and no OS sandbox
# keeps it in the workspace, so `workspace` would be `full` by another name: it is not offered.
_APPROVAL = {Sandbox.READ_ONLY: "default", Sandbox.WORKSPACE: "yolo", Sandbox.FULL: "yolo"}
SANDBOXES = frozenset({Sandbox.READ_ONLY, Sandbox.FULL})

# Parts of a failed result's text, which are more precise than its status.
_BY_TEXT = {
    "api key not valid": Outcome.AUTH,
    "exhausted your daily quota": Outcome.LIMITED,
    "exhausted your capacity": Outcome.LIMITED,
    "exceeds the maximum number of tokens": Outcome.CONTEXT_FULL,
    "fetch failed": Outcome.TRANSIENT,
}
_BY_STATUS = {
    401: Outcome.AUTH,
    403: Outcome.AUTH,
    404: Outcome.CONFIG,
    **dict.fromkeys((408, 429, 500, 502, 503, 504, 529), Outcome.TRANSIENT),
}
_BY_CODE = {
    **{status % 256: outcome for status, outcome in _BY_STATUS.items()},  # as much of it as fits into an exit code
    41: Outcome.AUTH,
    44: Outcome.CONFIG,  # its sandbox
    52: Outcome.CONFIG,
    53: Outcome.TURN_LIMIT,
    55: Outcome.CONFIG,  # a folder it does not trust
}
_BAD_INPUT = 42
_LOGIN = "set GEMINI_API_KEY, or run `gemini` once and log in"
_TELLING = {"run_shell_command": "runs", "write_file": "writes", "replace": "edits", "read_file": "reads"}


def _logged_in(env: Mapping[str, str], *_: object) -> bool | None:
    if any(env.get(name) for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY")):
        return True
    return Path(env.get("HOME", ""), ".gemini", "oauth_creds.json").exists()


CLI = program.Cli(name="gemini", package="@google/gemini-cli", tested="0.61.", login="gemini", logged_in=_logged_in)


class GeminiAgent(program.CliAgent, frozen=True, kw_only=True):
    """The `gemini` on the PATH."""

    cli = CLI
    # Its launcher ignores SIGINT and SIGTERM, so waiting for them is pointless.
    ladder: Ladder = Ladder(interrupt=0.0, terminate=1.0)
    abilities: Abilities = Abilities(
        sandboxes=SANDBOXES,
        options=frozenset({"model", "agent_args"}),
        permissions=("-y", "--yolo", "--approval-mode", "-s", "--sandbox"),
        resumes=True,
        chooses_session=True,
    )

    def command(self, turn: Turn) -> AgentCommand:
        """Permissions on every call: sessions do not remember them."""
        flags = ("-o", "stream-json", "--skip-trust", "--approval-mode", _APPROVAL[turn.sandbox])
        fresh = ("--session-id", turn.new_session) if turn.new_session else ()
        session = ("-r", turn.session) if turn.session else fresh
        model = ("-m", turn.model) if turn.model else ()
        return AgentCommand(argv=(self.start, *flags, *session, *model, *turn.arguments))

    def reader(self, turn: Turn | None = None) -> "GeminiReader":
        return GeminiReader(turn)


class _Error(msgspec.Struct, frozen=True):
    type: str | None = None
    message: str | None = None


class _Line(msgspec.Struct, frozen=True):
    """One event; which fields it has depends on its type."""

    type: str
    session_id: str | None = None
    role: str | None = None
    content: str | None = None
    tool_name: str | None = None
    parameters: Any = None
    status: str | None = None
    message: str | None = None
    error: _Error | None = None
    stats: Any = None


class _Refusal(msgspec.Struct, frozen=True):
    """The body of the provider's answer, which may be part of an error's text."""

    code: int | None = None
    message: str | None = None


class _Body(msgspec.Struct, frozen=True):
    error: _Refusal = _Refusal()


_LINES: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line, strict=False)
_BODY: msgspec.json.Decoder[_Body] = msgspec.json.Decoder(_Body, strict=False)


class GeminiReader(program.LineReader[_Line]):
    """Reads the events and skips everything else in the stream."""

    def __init__(self, turn: Turn | None = None) -> None:
        super().__init__(_LINES, turn.session if turn else None)
        # When every tool is allowed, a missing one does not exist: that is not a denial.
        self._all_tools = turn is not None and _APPROVAL[turn.sandbox] == "yolo"
        self._words: list[str] = []  # since the last tool
        self._length = 0
        self._last_tool = ""
        self._denied = ""
        self._result: _Line | None = None

    def events(self, line: _Line) -> Iterable[Event]:
        match line.type:
            case "init":
                self._session = self._session or line.session_id
            case "message" if line.role == "assistant":  # the others are the prompt, echoed
                self._hear(line.content or "")
            case "tool_use":
                self._last_tool = _telling(line)
                return (*self._said(), Activity(self._last_tool))
            case "tool_result":
                return (*self._said(), *self._tool_ended(line.error))
            case "error":  # a warning: the turn continues
                return (Activity(shorten(f"warns: {plain(line.message or '')}", 120)),)
            case "result":
                self._result = line
                usage = _usage(line.stats)
                return (*self._message(), *((Spent(usage),) if usage else ()), Finished())
            case _:
                pass
        return ()

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        outcome, detail = self._verdict(exit_, plain(stderr_tail))
        refused = outcome is Outcome.AUTH
        return Ended(
            outcome=outcome,
            detail=program.not_logged_in(CLI.name, detail, _LOGIN) if refused else detail,
            words=detail if refused else "",
            reply=self._reply() if outcome in (Outcome.OK, Outcome.DENIED) else "",
            session=self._session,
            usage=_usage(self._result.stats) if self._result else None,
        )

    def _hear(self, text: str) -> None:
        """A message arrives in pieces; only the end of a very long one is kept."""
        self._words.append(text)
        self._length += len(text)
        if self._length > 2 * REPLY_LENGTH:
            self._words = ["".join(self._words)[-REPLY_LENGTH:]]
            self._length = REPLY_LENGTH

    def _reply(self) -> str:
        return plain("".join(self._words))

    def _message(self) -> Iterable[Event]:
        return (Message(self._reply()),) if self._words else ()

    def _said(self) -> Iterable[Event]:
        """What it said before a tool; not its reply, because it continues."""
        message = self._message()
        self._words, self._length = [], 0
        return message

    def _tool_ended(self, error: _Error | None) -> Iterable[Event]:
        if error is None or error.type != "tool_not_registered" or self._all_tools:
            return ()
        self._denied = self._last_tool
        return (Denied(self._denied),)

    def _verdict(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        if lost := program.session_lost(self._asked_for, self._session):
            return lost
        if self._result and self._result.status == "success":
            return (Outcome.DENIED, f"not allowed: {self._denied}") if self._denied else (Outcome.OK, "")
        if self._result:
            return _failed(self._result.error or _Error(), exit_)
        return imposed(exit_) or self._without_result(exit_, stderr)

    def _without_result(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        """The verdict on a run that ended on its own without a last event."""
        if verdict := program.without_result(exit_, self._skipped):
            return verdict
        known = _BY_CODE.get(exit_.code or 0, Outcome.FAILED)
        if self._session:
            return known, headline(stderr) or f"exited with {exit_.code}"
        return self._not_begun(exit_, stderr) or (known, _complaint(stderr) or f"exited with {exit_.code}")

    def _not_begun(self, exit_: Exit, stderr: str) -> tuple[Outcome, str] | None:
        """What only stderr shows when a run never started a turn. Before that, no tool can have written to it."""
        if exit_.code == _BAD_INPUT and (self._asked_for or "resuming session" in stderr):
            return Outcome.SESSION_LOST, _complaint(stderr)
        if "Usage: gemini" in stderr:  # the complaint comes before a page of help, often beyond what we see
            return Outcome.CONFIG, "gemini does not understand its command line; try `gemini --help`"
        return None


def _failed(error: _Error, exit_: Exit) -> tuple[Outcome, str]:
    """A result that only says "error" may be our own doing."""
    text = plain(error.message or "")
    refusal = _refusal(text)
    by_text = next((outcome for part, outcome in _BY_TEXT.items() if part in text.lower()), None)
    known = by_text or _BY_STATUS.get(refusal.code or 0) or _BY_CODE.get(exit_.code or 0)
    shown = shorten(refusal.message or text or error.type or "a failure without a message", 200)
    return (known, shown) if known else imposed(exit_) or (Outcome.FAILED, shown)


def _refusal(text: str) -> _Refusal:
    try:
        return _BODY.decode(text[text.find("{") : text.rfind("}") + 1]).error
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _Refusal()


def _complaint(stderr: str) -> str:
    """The first line that is more than a warning; advice follows it."""
    lines = (line.strip() for line in stderr.splitlines())
    return shorten(next((line for line in lines if line and not line.startswith("Warning:")), ""), 200)


def _telling(event: _Line) -> str:
    """`runs ls`, `edits src/settings.py`, or just the name of the tool."""
    given = event.parameters if isinstance(event.parameters, dict) else {}
    subject = given.get("command") or given.get("file_path") or ""
    tool = event.tool_name or "a tool"
    return shorten(plain(f"{_TELLING.get(tool, tool)} {subject}"), 120)


def _usage(stats: Any) -> Usage | None:
    """For this call only; its `input_tokens` include the cached ones. It does not report prices."""
    if not isinstance(stats, dict):
        return None
    given = [stats.get(key) for key in ("input_tokens", "cached", "output_tokens")]
    tokens_in, cached, out = (value if isinstance(value, int) else None for value in given)
    return Usage(tokens_in=tokens_in, tokens_cached=cached, tokens_out=out)
