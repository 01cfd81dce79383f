"""Codex CLI: `codex exec --json`, a prompt on stdin, one JSON event per line."""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from bydawn.agents import program
from bydawn.core import answers
from bydawn.core.agent import (
    Abilities,
    Activity,
    AgentCommand,
    Begun,
    Denied,
    Ended,
    Event,
    Finished,
    Hopeless,
    Ladder,
    Message,
    Retry,
    Spent,
    Turn,
)
from bydawn.core.loop import Sandbox
from bydawn.core.outcome import Exit, Outcome, imposed
from bydawn.core.text import headline, plain, shorten
from bydawn.core.values import Usage

PROMPT_LENGTH = 1 << 20  # characters; one more and it refuses the turn
_SANDBOX = {
    Sandbox.READ_ONLY: ("-s", "read-only"),
    Sandbox.WORKSPACE: ("-s", "workspace-write"),
    Sandbox.FULL: ("--dangerously-bypass-approvals-and-sandbox",),
}
_LOGIN = "run `codex login`, or set the key that its configuration names"

# What a failed turn says, in search order, and what it means. Nothing else tells Codex failures apart:
# its exit code is always 1. Typographic apostrophes are made plain first.
_SAYINGS: tuple[tuple[str, Outcome], ...] = (
    ("hit your usage limit", Outcome.LIMITED),
    ("context_length_exceeded", Outcome.CONTEXT_FULL),
    ("ran out of room in the model's context window", Outcome.CONTEXT_FULL),
    ("unexpected status 401", Outcome.AUTH),
    ("unexpected status 403", Outcome.AUTH),
    ("Missing environment variable", Outcome.CONFIG),
    ("To use Codex with your ChatGPT plan", Outcome.CONFIG),
    ("Quota exceeded", Outcome.CONFIG),
    ("does not exist or you do not have access", Outcome.CONFIG),
    ("unexpected status 413", Outcome.CONFIG),
    ("invalid_json_schema", Outcome.CONFIG),
    ("Invalid schema for", Outcome.CONFIG),
    ("content_filter", Outcome.FAILED),  # retried like a lost connection, endlessly
    ("exceeded retry limit", Outcome.TRANSIENT),
    ("rate limit exceeded", Outcome.TRANSIENT),
    ("experiencing high demand", Outcome.TRANSIENT),
    ("unexpected status 5", Outcome.TRANSIENT),
    ("model is at capacity", Outcome.TRANSIENT),
    ("stream disconnected", Outcome.TRANSIENT),
)
# The same for stderr of a run that never started a turn.
_COMPLAINTS: tuple[tuple[str, Outcome], ...] = (
    ("no rollout found", Outcome.SESSION_LOST),
    ("already has an active writer", Outcome.TRANSIENT),
    ("Not inside a trusted directory", Outcome.CONFIG),
    ("Input exceeds the maximum length", Outcome.CONFIG),
    ("not valid UTF-8", Outcome.CONFIG),
    ("No prompt provided", Outcome.CONFIG),
    ("not logged in", Outcome.AUTH),
)
_USAGE_ERROR = 2  # its exit code for bad flags
_RESET = "try again at "
_REFUSED_PATCH = "blocked by read-only sandbox"
_HOPELESS_AFTER = 2  # refused log-ins in a row; one may be a hiccup of its own refresh


def _logged_in(env: Mapping[str, str], workspace: Path, start: str) -> bool | None:
    if any(env.get(name) for name in ("CODEX_API_KEY", "OPENAI_API_KEY")):
        return True
    if _names_a_provider(_home(env) / "config.toml"):
        return None  # with a key of its own
    return program.ask(workspace, start, "login", "status")[0] == 0


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or f"{env.get('HOME', '')}/.codex")


def _names_a_provider(path: Path) -> bool:
    try:
        return "model_provider" in path.read_text(errors="replace")
    except OSError:
        return False


def _trouble(env: Mapping[str, str]) -> program.Trouble | None:
    """Below the temporary folder every sandboxed command of Codex fails, while its turns succeed.

    Only with the bubblewrap on the PATH; the one that Codex brings does not mind.
    """
    home, temporary = _home(env), Path(os.path.realpath(env.get("TMPDIR") or "/tmp"))  # noqa: S108 - its own
    if not Path(os.path.realpath(home)).is_relative_to(temporary):
        return None
    if shutil.which(program.BUBBLEWRAP.program, path=env.get("PATH", os.defpath)) is None:
        return None
    detail = f"Codex cannot run commands while CODEX_HOME ({home}) is below {temporary}"
    return program.Trouble(name="CODEX_HOME", detail=detail, hint="set CODEX_HOME elsewhere")


def _brings_bubblewrap(path: Path) -> bool:
    """The packages of Codex contain one, beside the program or in the npm package for this platform."""
    package = Path(os.path.realpath(path)).parents[1]
    roots = (package, *package.glob("vendor/*"))
    platform = [*package.parent.glob("codex-*/vendor/*"), *package.glob("node_modules/@openai/codex-*/vendor/*")]
    return any((root / "codex-resources/bwrap").exists() for root in (*roots, *platform))


CLI = program.Cli(
    name="codex",
    package="@openai/codex",
    tested="0.166.",
    login="codex login",
    logged_in=_logged_in,
    sandbox_needs=lambda path: () if _brings_bubblewrap(Path(path)) else (program.BUBBLEWRAP,),
    trouble=_trouble,
)


class CodexAgent(program.CliAgent, frozen=True, kw_only=True):
    """The `codex` on the PATH, or the one a person named."""

    cli = CLI
    # SIGINT makes it end its running command; the session can be continued afterwards.
    ladder: Ladder = Ladder(interrupt=8.0, terminate=5.0)
    abilities: Abilities = Abilities(
        sandboxes=frozenset(Sandbox),
        options=frozenset({"model", "profile", "effort", "agent_args", "agent_commits"}),
        permissions=(
            "-s",
            "--sandbox",
            "--approve-for-me",
            "--dangerously-bypass-approvals-and-sandbox",
            "--yolo",
            *(f"{flag}{key}" for flag in ("", "-c", "--config=") for key in ("sandbox_mode", "approval_policy")),
        ),
        resumes=True,
        answers=True,
        prompt_length=PROMPT_LENGTH,
        account=("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    )

    def command(self, turn: Turn) -> AgentCommand:
        """Every flag comes before `resume`, where both forms accept it; sessions do not remember permissions."""
        model = ("-m", turn.model) if turn.model else ()
        profile = ("-p", turn.profile) if turn.profile else ()
        effort = ("-c", f'model_reasoning_effort="{turn.effort}"') if turn.effort else ()
        commits = ("--add-dir", f"{turn.workspace}/.git") if turn.commits and turn.sandbox is Sandbox.WORKSPACE else ()
        schema = ("--output-schema", turn.schema_file) if turn.schema_file else ()
        last = ("--output-last-message", turn.last_message) if turn.last_message else ()
        resume = ("resume", turn.session) if turn.session else ()
        flags = (*_SANDBOX[turn.sandbox], "--skip-git-repo-check", "-C", turn.workspace)
        flags = (*flags, *commits, *model, *profile, *effort, *schema, *last, *turn.arguments)
        return AgentCommand(argv=(self.start, "exec", "--json", *flags, *resume, "-"))

    def reader(self, turn: Turn | None = None) -> "CodexReader":
        return CodexReader(turn.session if turn else None)


class _Change(msgspec.Struct, frozen=True):
    path: str = ""


class _Item(msgspec.Struct, frozen=True):
    """Something that happened within a turn; which fields it has depends on its type."""

    type: str = ""
    text: str = ""
    message: str = ""
    command: str = ""
    aggregated_output: str = ""
    exit_code: int | None = None
    changes: tuple[_Change, ...] = ()


class _Tokens(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None


class _Trouble(msgspec.Struct, frozen=True):
    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    """One event, of whatever type."""

    type: str
    thread_id: str | None = None
    item: _Item = _Item()
    usage: _Tokens | None = None
    error: _Trouble = _Trouble()
    message: str = ""


_LINES: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line, strict=False)


class CodexReader(program.LineReader[_Line]):
    """Reads the events and skips everything else in the stream."""

    def __init__(self, asked_for: str | None) -> None:
        super().__init__(_LINES, asked_for)
        self._reply = ""
        self._failure: str | None = None
        self._completed: _Tokens | None = None
        self._done = False
        self._refused = 0
        self._denied = ""

    def events(self, line: _Line) -> Iterable[Event]:
        match line.type:
            case "thread.started":
                self._session = line.thread_id
                return (Begun(self._session),) if self._session else ()
            case "item.started" | "item.completed":
                return self._item(line.item, ended=line.type == "item.completed")
            case "error":
                return self._trouble(line.message)
            case "turn.completed":
                self._completed, self._done = line.usage or _Tokens(), True
                return (Spent(_usage(self._completed)), Finished())
            case "turn.failed":
                self._failure = program.normal(line.error.message)
                return (Finished(),)
            case _:
                pass
        return ()

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        """Decided in this order: terminal event, what we did, its last words, exit code, signal."""
        outcome, detail = self._verdict(exit_, plain(stderr_tail))
        refused = outcome is Outcome.AUTH
        ok = outcome in (Outcome.OK, Outcome.DENIED)
        reset = detail.partition(_RESET)[2].rstrip(". ") if outcome is Outcome.LIMITED else ""
        return Ended(
            outcome=outcome,
            detail=program.not_logged_in(CLI.name, detail, _LOGIN) if refused else detail,
            words=detail if refused else "",
            reply=self._reply if ok else "",
            session=self._session,
            usage=_usage(self._completed) if self._completed else None,
            usage_is_total=True,
            reset=reset,
        )

    def _item(self, item: _Item, *, ended: bool) -> Iterable[Event]:
        match item.type:
            case "agent_message" if ended:
                self._reply = item.text
                return (Message(answers.shown(item.text)),)
            case "command_execution" if not ended:
                return (program.command_started(_typed(item.command)),)
            case "command_execution":
                return self._command(item)
            case "file_change" if ended:
                return (Activity(f"edited {', '.join(change.path for change in item.changes)}"),)
            case "error" if ended:
                return (Activity(f"warns: {item.message}"),)
            case _:
                return ()

    def _command(self, item: _Item) -> Iterable[Event]:
        command, output = _typed(item.command), item.aggregated_output
        ended = program.command_ended(command, output, item.exit_code, failed=item.exit_code != 0)
        if "Read-only file system" not in output:
            return (ended,)
        self._denied = f"{shorten(command, 80)}: read-only file system"
        return (ended, Denied(self._denied))

    def _trouble(self, message: str) -> Iterable[Event]:
        """A retry notice, or the failure that is repeated at the end. It keeps asking after a refused log-in."""
        text = program.normal(message)
        refused = program.status_in(text) in (401, 403)
        self._refused = self._refused + 1 if refused else 0
        if self._refused == _HOPELESS_AFTER:
            self._failure = text
            return (Retry(text), Hopeless(text))
        return (Retry(text),)

    def _verdict(self, exit_: Exit, stderr: str) -> tuple[Outcome, str]:
        if lost := program.session_lost(self._asked_for, self._session):
            return lost
        if self._done:
            # A patch that the sandbox refuses leaves no event; only stderr mentions it.
            refused = next((line for line in stderr.splitlines() if _REFUSED_PATCH in line), "")
            denied = self._denied or shorten(refused[refused.find("patch rejected") :], 120)
            return (Outcome.DENIED, f"not allowed: {denied}") if denied else (Outcome.OK, "")
        if self._failure is not None:
            return _judged(self._failure, _SAYINGS)
        return imposed(exit_) or _ended_early(exit_, stderr)


def _typed(command: str) -> str:
    """The command without the shell that Codex runs it in.

    >>> _typed("/bin/bash -lc 'pytest -q'")
    'pytest -q'
    """
    if " -lc " not in command:
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] == "-lc" else command


def _ended_early(exit_: Exit, stderr: str) -> tuple[Outcome, str]:
    """The verdict on a run that ended on its own without a last event."""
    if verdict := program.without_result(exit_):  # a line too long to read is a command's output; what matters is short
        return verdict
    if exit_.code == _USAGE_ERROR:
        complaint = next((line for line in stderr.splitlines() if line.startswith("error:")), headline(stderr))
        return Outcome.CONFIG, f"codex does not understand its command line: {complaint.removeprefix('error: ')}"
    return _judged(program.normal(stderr), _COMPLAINTS, headline(stderr) or f"exited with {exit_.code}")


def _judged(text: str, table: Iterable[tuple[str, Outcome]], shown: str = "") -> tuple[Outcome, str]:
    outcome = next((outcome for part, outcome in table if part.lower() in text.lower()), Outcome.FAILED)
    return outcome, shown or text


def _usage(tokens: _Tokens) -> Usage:
    """For the whole thread so far: it adds up over turns."""
    return Usage(
        tokens_in=tokens.input_tokens, tokens_cached=tokens.cached_input_tokens, tokens_out=tokens.output_tokens
    )
