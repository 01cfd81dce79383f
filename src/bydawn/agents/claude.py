"""Claude Code: `claude -p --output-format stream-json`, a prompt on stdin, one JSON event per line."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bydawn.agents import program
from bydawn.agents.claude_lines import (
    LINES,
    AnyLine,
    Assistant,
    Block,
    Denial,
    Limit,
    LimitLine,
    ModelTokens,
    Result,
    System,
    Tokens,
    ToolResult,
    User,
)
from bydawn.core.agent import (
    Abilities,
    Activity,
    AgentCommand,
    Denied,
    Ended,
    Event,
    Finished,
    Hopeless,
    Ladder,
    LimitNotice,
    Message,
    Retry,
    Spent,
    Turn,
)
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Exit, Outcome, imposed
from bydawn.core.text import headline, plain, shorten
from bydawn.core.values import Usage

_QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
_LOGIN = "run `claude /login`, or set ANTHROPIC_API_KEY to a valid key"
_CREDIT = "add credit in the Anthropic console (Billing), or use a subscription: `claude /login`"

# How a failed turn is recognized, most specific first: why it ended, the code or the HTTP status of the
# failed answer, and the words. Not in the tables: `rate_limit`, which has two meanings.
_BY_REASON = {
    "error_max_turns": Outcome.TURN_LIMIT,
    "error_max_budget_usd": Outcome.TURN_LIMIT,
    "error_max_structured_output_retries": Outcome.TURN_LIMIT,  # what it did may be fine; only its answer is not
    "prompt_too_long": Outcome.CONTEXT_FULL,
    "blocking_limit": Outcome.CONTEXT_FULL,
    "rapid_refill_breaker": Outcome.CONTEXT_FULL,  # full again right after compacting
}
_BY_CAUSE: dict[str | int | None, tuple[Outcome, str]] = {
    "authentication_failed": (Outcome.AUTH, ""),
    "billing_error": (Outcome.CONFIG, _CREDIT),
    "model_not_found": (Outcome.CONFIG, ""),
    "server_error": (Outcome.TRANSIENT, ""),
    401: (Outcome.AUTH, ""),
    403: (Outcome.AUTH, ""),
    # Our prompt cannot be that large (`prompt_length`): it is the session's history, and a new session is empty.
    413: (Outcome.CONTEXT_FULL, ""),
}
_SAYINGS: tuple[tuple[str, Outcome, str], ...] = (
    ("Not logged in", Outcome.AUTH, ""),
    ("You've hit your", Outcome.LIMITED, ""),
    ("No conversation found", Outcome.SESSION_LOST, ""),
    ("--resume requires a valid session", Outcome.SESSION_LOST, ""),
    ("andbox required but unavailable", Outcome.CONFIG, "install bubblewrap and socat, or choose another --sandbox"),
    ("cannot be used with root", Outcome.CONFIG, "do not run it as root"),
    ("Invalid session ID", Outcome.CONFIG, ""),
    ("is already in use", Outcome.CONFIG, ""),
    ("Settings file not found", Outcome.CONFIG, ""),
    ("requires --verbose", Outcome.CONFIG, ""),
    ("Input must be provided", Outcome.CONFIG, "the prompt is empty"),
    ("input exceeds 10MB", Outcome.CONFIG, "the prompt is too long"),
    ("error: unknown option", Outcome.CONFIG, ""),
    ("error: option '", Outcome.CONFIG, ""),
)
_EXIT_CODE = re.compile(r"Exit code (\d{1,5})(?:\n|$)")  # how the result of a command that failed begins
_TOOLS = {
    "Bash": ("runs", "command"),  # it has only begun
    "Edit": ("editing", "file_path"),
    "Write": ("editing", "file_path"),
    "Read": ("reading", "file_path"),
    "Grep": ("searching for", "pattern"),
}


def _logged_in(env: Mapping[str, str], *_: object) -> bool | None:
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    if any(env.get(name) for name in (*keys, "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")):
        return True
    home = Path(env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude")
    if (home / ".credentials.json").exists():
        return True
    with suppress(OSError):  # they can name a program that has the key, or the key
        if any(word in (home / "settings.json").read_text(errors="replace") for word in ("apiKeyHelper", *keys)):
            return None
    return None if sys.platform == "darwin" else False  # there, a log-in is in the keychain


CLI = program.Cli(
    name="claude",
    package="@anthropic-ai/claude-code",
    tested="2.1.",
    login="claude /login",
    logged_in=_logged_in,
    sandbox_needs=lambda _: (program.BUBBLEWRAP, program.SOCAT),
)


class ClaudeAgent(program.CliAgent, frozen=True, kw_only=True):
    """The `claude` on the PATH."""

    cli = CLI
    # Avoid INT: it makes the session tell the model that the user rejected the work and that it must
    # STOP, even if TERM follows a millisecond later (tried). After TERM alone a resumed session just continues.
    ladder: Ladder = Ladder(interrupt=0.0, terminate=5.0)
    abilities: Abilities = Abilities(
        sandboxes=frozenset(Sandbox),
        options=frozenset({"model", "effort", "agent_args", "agent_commits"}),
        permissions=(
            "--permission-mode",
            "--settings",
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
        ),
        efforts=("low", "medium", "high", "xhigh", "max"),
        resumes=True,
        answers=True,
        chooses_session=True,
        prompt_length=2_500_000,  # it accepts 10 MB, and a character may have four bytes
        tells_cost=True,
        account=(
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
        ),
        litters=True,  # each sandboxed run leaves a dozen empty folders and a socket behind
    )

    def command(self, turn: Turn) -> AgentCommand:
        """Permissions on every call: sessions do not remember them."""
        session = ("--session-id", turn.new_session) if turn.new_session else ()
        session = ("--resume", turn.session) if turn.session else session
        model = ("--model", turn.model) if turn.model else ()
        effort = ("--effort", turn.effort) if turn.effort else ()
        schema = ("--json-schema", turn.schema) if turn.schema else ()
        flags = ("-p", "--output-format", "stream-json", "--verbose", *_permissions(turn))
        as_root = {"IS_SANDBOX": "1"} if turn.sandbox is Sandbox.FULL and turn.is_root else {}
        return AgentCommand(
            argv=(self.start, *flags, *session, *model, *effort, *schema, *turn.arguments), env={**_QUIET, **as_root}
        )

    def reader(self, turn: Turn | None = None) -> "ClaudeReader":
        return ClaudeReader(turn)


def _permissions(turn: Turn) -> tuple[str, ...]:
    if turn.sandbox is Sandbox.FULL:
        return ("--permission-mode", "bypassPermissions")
    if turn.sandbox is Sandbox.WORKSPACE:
        return ("--permission-mode", "acceptEdits", "--settings", _sandbox(turn))
    # The list of tools takes every word up to the next flag, so it must not come last.
    return ("--disallowedTools", "Edit,Write,NotebookEdit", "--permission-mode", "default")


def _sandbox(turn: Turn) -> str:
    """Its sandbox settings; without the last two switches it would fail open."""
    switches = ("enabled", "autoAllowBashIfSandboxed", "failIfUnavailable")
    sandbox: dict[str, object] = {**dict.fromkeys(switches, True), "allowUnsandboxedCommands": False}
    if not turn.commits:  # by itself it only protects config and hooks; a relative path would have no effect
        sandbox["filesystem"] = {"denyWrite": [f"{turn.workspace}/.git"]}
    # Without this permission it refuses commands that look like tricks (`env A=1 …`), sandbox or not; with it, still
    # nothing gets out of the sandbox (tried).
    return msgspec.json.encode({"sandbox": sandbox, "permissions": {"allow": ["Bash"]}}).decode()


class ClaudeReader(program.LineReader[AnyLine]):
    """Reads the events and skips everything else in the stream."""

    def __init__(self, turn: Turn | None) -> None:
        super().__init__(LINES, (turn.session or turn.new_session) if turn else None)
        self._folder = f"{turn.workspace}/" if turn else ""
        self._result: Result | None = None
        self._error: str | None = None  # the error code, if the last answer was one
        self._limit = Limit()
        self._patience = 1  # refused log-ins in a row before it is hopeless
        self._hopeless = ""
        self._tried_in_vain = False  # all the retries it allows itself
        self._commands: dict[str, str] = {}  # that are running, by the id of their call
        self._tokens: dict[str, Tokens] = {}  # by answer: each of its parts comes on its own line

    def events(self, line: AnyLine) -> Iterable[Event]:
        self._session = line.session_id or self._session
        match line:
            case System(subtype="init"):
                # A key cannot recover. A log-in can: it is refreshed after the first refusal.
                self._patience = 1 if line.key_source == "ANTHROPIC_API_KEY" else 2
                return ()
            case System():
                return [*self._retried(line)] if line.subtype == "api_retry" else ()
            case Assistant():
                return [*self._answered(line)]
            case User():
                return [*self._commands_ended(line.message.content)]
            case LimitLine():
                return [*self._limited_by(line.rate_limit_info)]
            case Result():
                # More lines may follow, even another result when background work is done: the last one counts.
                self._result = line
                denied = [Denied(_denial(each)) for each in line.permission_denials]
                return [*denied, Spent(_usage(line)), Finished()]

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        outcome, detail = self._verdict(exit_, program.normal(stderr_tail))
        elsewhere = bool(self._asked_for and self._session and self._session != self._asked_for)
        # Any other outcome is more useful for what to do next.
        if elsewhere and outcome in (Outcome.OK, Outcome.DENIED, Outcome.TURN_LIMIT, Outcome.FAILED):
            outcome, detail = Outcome.SESSION_LOST, f"worked in session {self._session} instead of {self._asked_for}"
        believed = outcome in (Outcome.OK, Outcome.DENIED)
        limited, refused = outcome is Outcome.LIMITED, outcome is Outcome.AUTH
        return Ended(
            outcome=outcome,
            detail=program.not_logged_in(CLI.name, detail, _LOGIN) if refused else detail,
            words=detail if refused else "",
            reply=_reply(self._result) if self._result and believed else "",
            session=None if elsewhere else self._session,
            usage=_usage(self._result) if self._result else _sum(self._tokens.values()) if self._tokens else None,
            wait_until=_moment(self._limit.resets_at) if limited else None,
            reset=detail.partition("resets ")[2] if limited else "",
        )

    def _retried(self, retry: System) -> Iterator[Event]:
        self._tried_in_vain = retry.attempt >= retry.max_retries
        status = f" ({retry.error_status})" if retry.error_status else ""
        trouble = f"{(retry.error or '').replace('_', ' ')}{status}" if status else "no answer"
        yield Retry(f"{trouble}, retry {retry.attempt} of {retry.max_retries} in {retry.retry_delay_ms / 1000:.1f} s")
        if retry.error_status in (401, 403) and retry.attempt >= self._patience and not self._hopeless:
            self._hopeless = trouble
            yield Hopeless(self._hopeless)

    def _answered(self, line: Assistant) -> Iterator[Event]:
        answer, is_helper = line.message, line.parent_tool_use_id is not None
        if not is_helper:
            self._error = line.error
        for block in answer.content:
            if block.type == "tool_use":
                if block.name == "Bash":
                    self._commands[block.id] = str(block.input.get("command", ""))
                yield Activity(self._doing(block))
            elif block.type == "text" and block.text and not is_helper:
                yield Message(plain(block.text))
        if answer.model != "<synthetic>":  # its own words, not an answer of the model
            self._tried_in_vain = False
            if self._tokens.get(answer.id) != answer.usage:
                self._tokens[answer.id] = answer.usage
                yield Spent(_sum(self._tokens.values()))

    def _commands_ended(self, results: str | tuple[ToolResult, ...]) -> Iterator[Event]:
        for result in results if isinstance(results, tuple) else ():
            if (command := self._commands.pop(result.tool_use_id, None)) is not None:
                text, failed = result.text, bool(result.is_error)
                found = _EXIT_CODE.match(text) if failed else None
                code, output = (int(found[1]), text[found.end() :]) if found else (None, text)
                yield program.command_ended(command, output, code, failed=failed)

    def _limited_by(self, limit: Limit) -> Iterator[Event]:
        self._limit = limit
        name, until = f"{(limit.kind or 'usage').replace('_', '-')} limit", _moment(limit.resets_at)
        if limit.status == "rejected":
            yield LimitNotice(text=f"the {name} is used up", until=until)
        elif limit.status == "allowed_warning":
            used = f"{limit.utilization:.0%}" if limit.utilization is not None else "most"
            yield LimitNotice(text=f"{used} of the {name} is used", until=until)

    def _doing(self, tool: Block) -> str:
        verb, key = _TOOLS.get(tool.name, ("using", ""))
        what = str(tool.input.get(key, tool.name)).removeprefix(self._folder)
        return shorten(plain(f"{verb} {what}"), 120)

    def _verdict(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        """Decided in this order: terminal event, its fields, its words, what we did, exit code, signal."""
        result = self._result
        if result and result.subtype == "success" and not result.is_error:
            return _success(result)
        if self._hopeless:
            return Outcome.AUTH, self._hopeless
        if result and result.terminal_reason in ("aborted_streaming", "aborted_tools"):
            return imposed(exit_) or (Outcome.INTERRUPTED, "interrupted in the middle of its work")
        return self._failure(result) if result else imposed(exit_) or self._ended_early(exit_, stderr)

    def _failure(self, result: Result) -> tuple[Outcome, str]:
        """The verdict on a result that is an error; `subtype` alone would call most of them a success."""
        text, status = program.normal(result.result or "; ".join(result.errors)), result.api_error_status
        if why := _BY_REASON.get(result.subtype) or _BY_REASON.get(result.terminal_reason or ""):
            return why, shorten(text, 200)
        if self._error == "rate_limit" or status == 429:
            # It retries temporary trouble for minutes, and gives up at once if the wait would be long.
            passes = self._tried_in_vain and self._limit.status != "rejected"
            return Outcome.TRANSIENT if passes else Outcome.LIMITED, shorten(text, 200)
        outcome, advice = _BY_CAUSE.get(self._error) or _BY_CAUSE.get(status) or _said(text)
        return outcome, _advised(text, advice)

    def _ended_early(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        """The verdict on a run that ended on its own without a result. It turns a signal into an exit code."""
        number = exit_.signal or (exit_.code - 128 if exit_.code and 128 < exit_.code < 160 else None)
        if verdict := program.killed(number) or program.without_result(exit_, self._skipped):
            return verdict
        outcome, advice = _said(stderr)
        return outcome, _advised(headline(stderr) or f"exited with {exit_.code}", advice)


def _reply(result: Result) -> str:
    given = bytes(result.structured_output).decode()
    return given if given not in ("", "null") else result.result or ""


def _success(result: Result) -> tuple[Outcome, str]:
    if result.num_turns == 0 and (result.result or "").startswith("Unknown command: "):
        # The model was never asked: it took the prompt for one of its own commands, as it would every time.
        return Outcome.CONFIG, "it took the prompt for an unknown command; do not begin it with `/`"
    if not result.permission_denials:
        return Outcome.OK, ""
    first, *others = result.permission_denials
    more = f" (and {len(others)} more)" if others else ""
    return Outcome.DENIED, f"not allowed: {_denial(first)}{more}; a wider --sandbox would allow it"


def _said(text: str) -> tuple[Outcome, str]:
    return next(((outcome, advice) for part, outcome, advice in _SAYINGS if part in text), (Outcome.FAILED, ""))


def _advised(text: str, advice: str) -> str:
    """What it said; its own advice is for a person at its prompt, so ours replaces it."""
    said = shorten(text.partition(" · ")[0] if advice else text, 200) or "failed without a message"
    return f"{said}; {advice}" if advice else said


def _denial(denial: Denial) -> str:
    _, key = _TOOLS.get(denial.tool_name, ("", ""))
    what = f": {denial.tool_input[key]}" if key in denial.tool_input else ""
    return shorten(plain(f"{denial.tool_name}{what}"), 120)


def _usage(result: Result) -> Usage:
    """For this turn only, even in a resumed session. Its total leaves out failed attempts; that by model does not."""
    used: list[Tokens | ModelTokens] = [*result.by_model.values()] or [result.usage]
    written = [each.output_tokens for each in used if each.output_tokens is not None]
    out = sum(written) if written else None
    return msgspec.structs.replace(_sum(used), tokens_out=out, cost_usd=result.total_cost_usd)


def _sum(used: Iterable[Tokens | ModelTokens]) -> Usage:
    """What was read. How much an answer wrote is only known from the result: its lines come too early."""
    known = [each for each in used if each.input_tokens is not None]
    if not known:
        return Usage()
    cached = sum(each.cache_read_input_tokens or 0 for each in known)
    new = sum((each.input_tokens or 0) + (each.cache_creation_input_tokens or 0) for each in known)
    return Usage(tokens_in=new + cached, tokens_cached=cached)


def _moment(epoch: float | None) -> datetime | None:
    return datetime.fromtimestamp(epoch, UTC) if epoch and 0 < epoch < 1e11 else None  # a year that calendars can hold
