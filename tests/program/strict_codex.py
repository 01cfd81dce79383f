"""A `codex` that plays a script and refuses every command line that the real one (codex-cli 0.166.0) refuses.

`install(folder, turns)` puts it there; the folder goes to the front of PATH, `calls(folder)` says how it was called.
What it does is measured, and `tests/real/test_strict_codex.py` holds it against the real one. A turn is an object
whose keys are played in the order in which they stand:

    reply     what the agent says, an object as JSON; without one it says nothing
    write     {path: text}, and `append`: the same at the end of a file
    tick      the file whose first open box is ticked
    sh        a command for the shell
    sleep     seconds
    wait_for  a file to wait for
    say       lines for the stream: objects as JSON, text as it is (a lone surrogate is no UTF-8)
    complain  lines for stderr
    alone     a file that it holds a lock on until it ends; if another one holds it, a file `….two` tells of it

and three that tell how it ends, wherever they stand: `usage` ({name: tokens}), `error` (the turn fails with this
message), `exit` (it ends with this code and without a last event, as in a crash; -9 is by that signal).
After the last turn the last one is played again. A turn counts from its start, so a killed one is not played twice.
"""

import errno
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO

Json = dict[str, Any]

VERSION = "0.166.0"
ENDINGS = {"usage", "error", "exit"}
USAGE = {
    "input_tokens": 1000,
    "cached_input_tokens": 200,
    "cache_write_input_tokens": 0,
    "output_tokens": 50,
    "reasoning_output_tokens": 0,
}
PROMPT_LENGTH = 1 << 20  # characters
USAGE_ERROR, NOT_PLAYED = 2, 70
OPEN_BOX = re.compile(r"^(\s*(?:[-*+]|\d+[.)])\s+)\[ \]", re.MULTILINE)


# -- for tests ---------------------------------------------------------------------------------------------------------


def install(folder: Path, turns: Sequence[Mapping[str, Any]], *, logged_in: bool = True) -> Path:
    """Put it into a folder with the turns it plays; sessions and calls of an earlier one there are kept."""
    for turn in turns:
        if unknown := turn.keys() - ACTIONS.keys() - ENDINGS:
            raise ValueError(f"a turn knows no {sorted(unknown)}; it knows {sorted([*ACTIONS, *ENDINGS])}")
        if unknown := turn.get("usage", {}).keys() - USAGE.keys():
            raise ValueError(f"usage knows no {sorted(unknown)}; it knows {sorted(USAGE)}")
    if not turns:
        raise ValueError("there is no turn to play")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "turns.json").write_text(json.dumps(turns))
    (folder / "logged-out").unlink(missing_ok=True) if logged_in else (folder / "logged-out").touch()
    (folder / "played").unlink(missing_ok=True)
    program = f"import sys; sys.path[:0] = {[str(Path(__file__).parent)]}; import strict_codex; strict_codex.main()"
    command = shlex.join([sys.executable, "-ISc", program, str(folder.resolve())])  # imported: compiled only once
    shim = folder / "codex"
    shim.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    shim.chmod(0o755)
    return shim


def calls(folder: Path) -> list[Json]:
    """Every call: argv, pid, cwd and, unless it was refused, prompt, session, sandbox, schema, number of the turn."""
    return lines_of(folder / "calls.jsonl")


def lines_of(path: Path) -> list[Json]:
    """What its kept file says so far; half a last line is being written."""
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


# -- the command line --------------------------------------------------------------------------------------------------


class Option(NamedTuple):
    """A flag; one whose value has no name takes none."""

    flag: str
    short: str = ""
    value: str = ""
    choices: tuple[str, ...] = ()
    repeats: bool = False
    filled: bool = False  # may not be empty
    greedy: bool = False  # takes every word up to the next flag
    alias: str = ""

    @property
    def shown(self) -> str:
        return f"{self.flag} <{self.value}>{'...' if self.greedy else ''}" if self.value else self.flag


class Command(NamedTuple):
    """A command, the flags it knows, and how many words it takes besides."""

    name: str
    options: tuple[Option, ...]
    words: int = 0
    commands: tuple["Command", ...] = ()
    version: str = ""

    def option(self, name: str) -> Option | None:
        return next((option for option in self.options if name in (option.flag, option.short, option.alias)), None)

    def command(self, name: str) -> "Command | None":
        return next((command for command in self.commands if name in command.name.split("|")), None)


SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
BYPASS, APPROVE, ASK, SANDBOX = (
    "--dangerously-bypass-approvals-and-sandbox",
    "--approve-for-me",
    "--ask-for-approval",
    "--sandbox",
)
CONFLICTS = {APPROVE: (BYPASS, ASK, SANDBOX), BYPASS: (APPROVE, ASK), ASK: (APPROVE, BYPASS), SANDBOX: (APPROVE,)}

HELP, VERSION_FLAG = Option("--help", "-h"), Option("--version", "-V")
CONFIG = (
    Option("--config", "-c", "key=value", repeats=True),
    Option("--enable", value="FEATURE", repeats=True),
    Option("--disable", value="FEATURE", repeats=True),
)
EVERYWHERE = (
    *CONFIG,
    Option("--strict-config"),
    Option("--model", "-m", "MODEL"),
    Option(BYPASS, alias="--yolo"),
    Option("--dangerously-bypass-hook-trust"),
    Option("--worktree"),
    HELP,
)
BEFORE_RESUME = (
    *EVERYWHERE,
    Option("--image", "-i", "FILE", repeats=True, filled=True, greedy=True),
    Option("--oss"),
    Option("--local-provider", value="OSS_PROVIDER"),
    Option("--profile", "-p", "CONFIG_PROFILE_V2"),
    Option(SANDBOX, "-s", "SANDBOX_MODE", SANDBOXES),
    Option(APPROVE),
    Option("--cd", "-C", "DIR", filled=True),
    Option("--add-dir", value="DIR", repeats=True, filled=True),
    VERSION_FLAG,
)
OF_EXEC = (
    Option("--thread-source", value="SOURCE"),
    Option("--cyber-access-program", value="PROGRAM", choices=("standard", "daybreak_blue", "daybreak_red")),
    Option("--skip-git-repo-check"),
    Option("--ephemeral"),
    Option("--ignore-user-config"),
    Option("--ignore-rules"),
    Option("--output-schema", value="FILE", filled=True),
    Option("--json", alias="--experimental-json"),
    Option("--output-last-message", "-o", "FILE", filled=True),
)
OF_CODEX = (
    Option("--remote", value="ADDR"),
    Option("--remote-auth-token-env", value="ENV_VAR"),
    Option(ASK, "-a", "APPROVAL_POLICY", ("on-request", "never")),
    Option("--search"),
    Option("--no-alt-screen"),
    Option("--no-daemon"),
)
OF_LOGIN = (Option("--with-api-key"), Option("--with-access-token"), Option("--device-auth"))
OF_RESUME = (Option("--last"), Option("--all"), Option("--image", "-i", "FILE", repeats=True, filled=True))

RESUME = Command("resume", (*EVERYWHERE, *OF_EXEC, *OF_RESUME), words=2)
EXEC = Command(
    "exec|e",
    (*BEFORE_RESUME, *OF_EXEC, Option("--color", value="COLOR", choices=("always", "never", "auto"))),
    words=1,
    commands=(RESUME, Command("fork", ()), Command("review", ())),
    version="codex-cli-exec",
)
STATUS = Command("status", (*CONFIG, HELP))
LOGIN = Command("login", (*CONFIG, *OF_LOGIN, HELP), commands=(STATUS,))
ELSE = (
    "agents review logout mcp plugin app-server remote-control completion update doctor sandbox debug apply|a resume"
    " queue archive delete migrate-rollouts migrate-nfs-db unarchive fork cloud exec-server features"
)
CODEX = Command(
    "codex",
    (*BEFORE_RESUME, *OF_CODEX),
    words=1,
    commands=(EXEC, LOGIN, *(Command(name, ()) for name in ELSE.split())),
    version="codex-cli",
)


class Ended(Exception):
    """It is over before any turn: what is said, where, and the exit code."""

    def __init__(self, code: int, err: str = "", out: str = "") -> None:
        self.code, self.err, self.out = code, err, out


def refusal(text: str, option: Option | None = None) -> Ended:
    """What a command line that is not understood is answered with."""
    choices = f"\n  [possible values: {', '.join(option.choices)}]" if option and option.choices else ""
    return Ended(USAGE_ERROR, f"error: {text}{choices}\n\nFor more information, try '--help'.")


class Given:
    """What was given to a command, and to the one within it."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.values: dict[str, list[str]] = {}
        self.words: list[str] = []
        self.inner: Given | None = None

    @property
    def chain(self) -> "list[Given]":
        return [self, *(self.inner.chain if self.inner else [])]

    def take(self, option: Option, values: list[str]) -> None:
        if option.value and not values:
            raise refusal(f"a value is required for '{option.shown}' but none was supplied", option)
        if option.flag in self.values and not option.repeats:
            raise refusal(f"the argument '{option.shown}' cannot be used multiple times")
        for value in values:
            judge(option, value)
        if option == HELP:
            raise Ended(0, out=help_text(self.command))
        if option == VERSION_FLAG:
            raise Ended(0, out=f"{self.command.version} {VERSION}")
        self.values.setdefault(option.flag, []).extend(values)

    def check_conflicts(self) -> None:
        for flag in self.values:
            others = [other for other in self.values if other in CONFLICTS.get(flag, ())]
            shown = [option.shown for name in (flag, *others) if (option := self.command.option(name))]
            if len(others) == 1:
                raise refusal(f"the argument '{shown[0]}' cannot be used with '{shown[1]}'")
            if others:
                raise refusal("\n  ".join([f"the argument '{shown[0]}' cannot be used with:", *shown[1:]]))


def judge(option: Option, value: str) -> None:
    """Refuse a value that its flag does not take."""
    if not value and (option.choices or option.filled):
        raise refusal(f"a value is required for '{option.shown}' but none was supplied", option)
    if option.choices and value not in option.choices:
        raise refusal(f"invalid value '{value}' for '{option.shown}'", option)
    if option.flag == "--profile" and not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        why = f"invalid --profile value `{value}`; pass a plain name such as `work`"
        raise refusal(f"invalid value '{value}' for '{option.shown}': {why}")


def help_text(command: Command) -> str:
    """Enough for whoever looks up whether a flag is there."""
    lines = [f"  {option.short or '  '}{',' if option.short else ' '} {option.shown}" for option in command.options]
    return "\n".join([f"Usage: {command.name.partition('|')[0]} [OPTIONS]", "", "Options:", *lines])


def parse(command: Command, words: Iterator[str]) -> Given:
    """Read the words as clap does.

    It judges a value when the next flag is known or all is read, the inner command's before, conflicts last.
    """
    given = Given(command)
    waiting: tuple[Option, list[str]] | None = None
    only_words = False

    def settle() -> None:
        nonlocal waiting
        settled, waiting = waiting, None
        if settled:
            given.take(*settled)

    for word in words:
        wants = bool(waiting and (waiting[0].greedy or not waiting[1]))
        if not only_words:
            if not wants and (inner := inner_command(command, word)):
                given.inner = parse(inner, words)
                break
            if word == "--":
                only_words = True
                continue
            if word.startswith("-") and word != "-":
                option, value = flag_of(command, word)
                settle()
                if option.value and value is None:
                    waiting = (option, [])
                else:
                    given.take(option, [] if value is None else [value])
                continue
            if waiting and wants:
                waiting[1].append(word)
                continue
        if len(given.words) == command.words:
            raise one_too_many(command, word)
        settle()
        given.words.append(word)
    settle()
    given.check_conflicts()
    return given


def one_too_many(command: Command, word: str) -> Ended:
    if command in (EXEC, RESUME, STATUS):
        return refusal(f"unexpected argument '{word}' found")
    return refusal(f"unrecognized subcommand '{word}'")


def inner_command(command: Command, word: str) -> Command | None:
    if word == "help" and command.commands:
        raise Ended(0, out=help_text(command))
    inner = command.command(word)
    if inner and not inner.options:
        raise Ended(NOT_PLAYED, f"strict codex: {word} is not played")
    return inner


def flag_of(command: Command, word: str) -> tuple[Option, str | None]:
    """The flag a word is, and the value it has with it."""
    long = word.startswith("--")
    name, equals, rest = word.partition("=") if long else (word[:2], word[2:], word[2:].removeprefix("="))
    option = command.option(name)
    if option is None:
        raise refusal(f"unexpected argument '{name}' found")
    if equals and not option.value and long:
        raise refusal(f"unexpected value '{rest}' for '{option.flag}' found; no more were expected")
    return option, rest if equals and option.value else None


# -- what a turn may do ------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What `exec` is asked to do, whichever of the three places each flag stood in; the innermost one counts."""

    given: list[Given]

    def all(self, flag: str) -> list[str]:
        return [value for given in self.given for value in given.values.get(flag, [])]

    def last(self, flag: str) -> str | None:
        return next(reversed(self.all(flag)), None)

    def has(self, flag: str) -> bool:
        return any(flag in given.values for given in self.given)

    @property
    def resumes(self) -> Given | None:
        return self.given[-1] if self.given[-1].command is RESUME else None

    @property
    def config(self) -> dict[str, str]:
        """Its overrides; a value is TOML, or else plain text."""
        return {key: value.strip("\"' ") for key, _, value in (pair.partition("=") for pair in self.all("--config"))}

    @property
    def sandbox(self) -> str | None:
        if self.has(BYPASS):
            return "danger-full-access"
        if self.has(APPROVE):
            return "workspace-write"
        return self.last(SANDBOX) or self.config.get("sandbox_mode")


def check_settings(asked: Asked) -> Path:
    """What it looks at before it wants a prompt; the folder it works in."""
    for flag in ("--remote", "--remote-auth-token-env"):
        if asked.has(flag):
            shown = " ".join([flag, *asked.all("--remote")]) if flag == "--remote" else flag
            raise Ended(1, f"Error: `{shown}` is only supported for interactive TUI commands, not `codex exec`")
    check_overrides(asked)
    if asked.has("--worktree"):
        raise Ended(NOT_PLAYED, "strict codex: --worktree is not played")
    folder = Path(asked.last("--cd") or ".")
    if not folder.exists():
        raise Ended(1, "Error: No such file or directory (os error 2)")
    mode = asked.config.get("sandbox_mode", SANDBOXES[0])
    if mode not in SANDBOXES:
        names = ", ".join(f"`{name}`" for name in SANDBOXES)
        what = f"unknown variant `{mode}`, expected one of {names}\nin `sandbox_mode`\n"
        raise Ended(1, f"Error loading config.toml: {what}")
    return folder.resolve()


def check_overrides(asked: Asked) -> None:
    for pair in asked.all("--config"):
        key, equals, _ = pair.partition("=")
        if not equals:
            raise Ended(1, f"Error parsing -c overrides: Invalid override (missing '='): {pair}")
        if not key:
            raise Ended(1, f"Error parsing -c overrides: Empty key in override: {pair}")


def the_prompt(asked: Asked) -> str:
    """What the turn is about: an argument, or what is on stdin, or for a new thread both."""
    outer = next(iter(asked.given[1].words), None)
    if resume := asked.resumes:
        place = 0 if asked.has("--last") and len(resume.words) == 1 else 1
        argument = next(iter(resume.words[place:]), outer)
    else:
        argument = outer
    if argument is None or argument == "-":
        return prompt_from_stdin(forced=argument == "-")
    if asked.resumes or sys.stdin.isatty():
        return argument
    complain("Reading additional input from stdin...")
    more = stdin_text()
    end = "" if more.endswith("\n") else "\n"
    return f"{argument}\n\n<stdin>\n{more}{end}</stdin>" if more.strip() else argument


def prompt_from_stdin(*, forced: bool) -> str:
    if not forced:
        if sys.stdin.isatty():
            raise Ended(1, "No prompt provided. Either specify one as an argument or pipe the prompt into stdin.")
        complain("Reading prompt from stdin...")
    text = stdin_text()
    if not text.strip():
        raise Ended(1, "No prompt provided via stdin.")
    return text


def stdin_text() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        place = f"invalid byte at offset {error.start}"
        advice = "Convert it to UTF-8 and retry (e.g., `iconv -f <ENC> -t UTF-8 prompt.txt`)."
        raise Ended(1, f"Failed to read prompt from stdin: input is not valid UTF-8 ({place}). {advice}") from None


def the_schema(asked: Asked) -> Any:
    """What an answer has to look like; None if nobody says so."""
    if not (path := asked.last("--output-schema")):
        return None
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        why = f"{os.strerror(error.errno or 0)} (os error {error.errno})"
        raise Ended(1, f"Failed to read output schema file {path}: {why}") from None
    except ValueError as error:
        raise Ended(1, f"Output schema file {path} is not valid JSON: {error}") from None


def loose(schema: Any, place: tuple[str, ...] = ()) -> str:
    """Why the provider, to whom every schema goes as a strict one, refuses this one; empty if it takes it."""
    context = f"In context={place!r}, "
    if not isinstance(schema, dict) or not {"type", "enum", "anyOf"} & schema.keys():
        return f"{context}schema must have a 'type' key."
    if not place and schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    properties = schema.get("properties", {})
    if "object" in schema.get("type", "") and schema.get("additionalProperties") is not False:
        return f"{context}'additionalProperties' is required to be supplied and to be false."
    for name in properties:
        if name not in schema.get("required", []):
            every = "'required' is required to be supplied and to be an array including every key in properties."
            return f"{context}{every} Missing '{name}'."
    if "array" in schema.get("type", "") and "items" not in schema:
        return f"{context}array schema missing items."
    inner: dict[tuple[str, ...], Any] = {("properties", name): each for name, each in properties.items()}
    inner |= {("items",): schema["items"]} if "items" in schema else {}
    return next((why for step, each in inner.items() if (why := loose(each, (*place, *step)))), "")


def refused(schema: Any) -> str:
    """The provider's words for a schema that is not strict, as Codex hands them on; empty if it is one."""
    if schema is None or not (why := loose(schema)):
        return ""
    kind = {"type": "invalid_request_error", "code": "invalid_json_schema", "param": "text.format.schema"}
    return json.dumps(
        {"error": {"message": f"Invalid schema for response_format 'codex_output_schema': {why}", **kind}}
    )


def repository(folder: Path) -> Path | None:
    """The folder around this one that has a `.git`; an empty one is none."""
    marks = ((place, place / ".git") for place in (folder, *folder.parents))
    return next((place for place, mark in marks if mark.is_file() or (mark / "HEAD").exists()), None)


def check_place(asked: Asked, folder: Path) -> None:
    if not asked.has("--skip-git-repo-check") and not asked.has(BYPASS) and not repository(folder):
        raise Ended(1, "Not inside a trusted directory and --skip-git-repo-check was not specified.")


class Sandbox(NamedTuple):
    """Where a turn may write."""

    mode: str
    folder: Path
    more: tuple[Path, ...]
    temporary: tuple[Path, ...]

    def allows(self, path: Path) -> bool:
        """In the folder, but not in what keeps its history and its settings unless that is named."""
        if self.mode != "workspace-write":
            return self.mode == "danger-full-access"
        if any(path.is_relative_to(folder) for folder in self.more):
            return True
        kept = any(path.is_relative_to(self.folder / name) for name in (".git", ".codex", ".agents"))
        return not kept and any(path.is_relative_to(folder) for folder in (self.folder, *self.temporary))


# -- what it keeps -----------------------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """The folder of its program: turns, a line for each one played, trusted repositories, sessions, calls."""

    root: Path

    def call(self, argv: list[str], **known: Any) -> None:
        unknown = {"cwd": os.getcwd(), "prompt": None, "session": None, "sandbox": None, "turn": None, "schema": None}
        line = json.dumps({"argv": argv, **unknown, **known, "pid": os.getpid()}) + "\n"
        with self.locked("calls.jsonl") as file:
            file.write(line)

    def next_turn(self) -> tuple[int, Json]:
        """The number of the turn that begins now, and what is played in it."""
        turns: list[Json] = json.loads((self.root / "turns.json").read_bytes())
        with self.locked("played") as played:
            number = len(played.readlines()) + 1
            played.write(f"{os.getpid()}\n")
        return number, turns[min(number, len(turns)) - 1]

    def sandbox(self, asked: Asked, folder: Path) -> Sandbox:
        """No session remembers its sandbox: a turn that names none may write wherever one ever could.

        That is openai/codex#40149. Leave to write in a repository makes it a trusted one, and there it is given
        without asking, even to a session that began as read-only.
        """
        root = repository(folder)
        with self.locked("trusted") as file:
            trusted = file.read().splitlines()
            mode = asked.sandbox or ("workspace-write" if str(root) in trusted else "read-only")
            if root and mode != "read-only" and str(root) not in trusted:
                file.write(f"{root}\n")
        more = tuple((folder / name).resolve() for name in asked.all("--add-dir"))
        closed = asked.config.get("sandbox_workspace_write.exclude_slash_tmp") == "true"
        temporary = [os.environ.get("TMPDIR", ""), "" if closed else "/tmp"]
        return Sandbox(mode, folder, more, tuple(Path(name).resolve() for name in temporary if name))

    def session(self, asked: Asked, folder: Path) -> "Session":
        """The one to go on with, or a new one: also for `--last` if there is none, and for a name nobody has."""
        new = Session(self.root / "sessions", new_id())
        if not asked.resumes:
            return new
        if asked.has("--last"):
            return self.newest(None if asked.has("--all") else folder) or new
        try:
            session = Session(self.root / "sessions", str(uuid.UUID("".join(asked.resumes.words[:1]))))
        except ValueError:
            return new
        if not session.path.exists():
            raise failed_resume(f"no rollout found for thread id {session.identity}")
        return session

    def newest(self, folder: Path | None) -> "Session | None":
        paths = sorted((self.root / "sessions").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        sessions = [Session(path.parent, path.stem) for path in reversed(paths)]
        return next((one for one in sessions if folder is None or one.read().get("cwd") == str(folder)), None)

    @contextmanager
    def locked(self, name: str) -> Iterator[TextIO]:
        """A file to read and to add to, for one at a time."""
        with open(self.root / name, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield file


class Session(NamedTuple):
    """A thread: where it last worked, the sandbox it began in, the tokens it used so far."""

    folder: Path
    identity: str

    @property
    def path(self) -> Path:
        return self.folder / f"{self.identity}.json"

    def read(self) -> Json:
        return dict(json.loads(self.path.read_bytes())) if self.path.exists() else {}

    def keep(self, content: Json) -> None:
        self.folder.mkdir(exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(content))
        part.replace(self.path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Only one turn at a time goes on with it."""
        self.folder.mkdir(exist_ok=True)
        with open(self.path.with_suffix(".lock"), "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise failed_resume(f"thread {self.identity} already has an active writer") from None
            yield


def failed_resume(why: str) -> Ended:
    return Ended(1, f"Error: thread/resume: thread/resume failed: {why} (code -32600)")


def new_id() -> str:
    """A UUID of version 7, as its threads have: the time first."""
    number = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big")
    return str(uuid.UUID(int=number & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62))


# -- the turn ----------------------------------------------------------------------------------------------------------


class Stream:
    """What is printed: events for `--json`, or else the last message alone, with the story on stderr."""

    def __init__(self, *, events: bool) -> None:
        self.events = events
        self.reply: str | None = None
        self._items = 0

    def event(self, kind: str, **content: Any) -> None:
        self.line({"type": kind, **content})

    def line(self, line: Json | str) -> None:
        if self.events:
            say(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=(",", ":")))

    def item(self, kind: str, *, started: Json | None = None, **content: Any) -> Callable[..., None]:
        """Tell of an item that is over, or that has started; then what is returned tells how it ended."""
        head = {"id": f"item_{self._items}", "type": kind}
        self._items += 1
        if started is None:
            self.event("item.completed", item=head | content)
        else:
            self.event("item.started", item=head | content | started)
        return lambda **end: self.event("item.completed", item=head | content | end)

    def command(self, command: str) -> Callable[[str, int], None]:
        """Tell of a command that has started; what is returned tells how it ended."""
        shown = shlex.join(["/bin/bash", "-lc", command])
        begun = {"aggregated_output": "", "exit_code": None, "status": "in_progress"}
        end = self.item("command_execution", command=shown, started=begun)
        return lambda output, code: end(
            aggregated_output=output, exit_code=code, status="failed" if code else "completed"
        )

    def says(self, text: str) -> None:
        self.reply = text
        self.item("agent_message", text=text)


class Player:
    """Plays one turn in a folder, as far as the sandbox allows."""

    def __init__(self, stream: Stream, sandbox: Sandbox) -> None:
        self.stream, self.sandbox = stream, sandbox
        self.running: subprocess.Popen[bytes] | None = None
        self.held: TextIO | None = None

    def play(self, turn: Json) -> None:
        for key, value in turn.items():
            if key in ACTIONS:
                ACTIONS[key](self, value)

    def reply(self, said: Json | str) -> None:
        self.stream.says(said if isinstance(said, str) else json.dumps(said))

    def say(self, lines: Json | str | list[Json | str]) -> None:
        for line in lines if isinstance(lines, list) else [lines]:
            self.stream.line(line)

    def complain(self, lines: str | list[str]) -> None:
        for line in [lines] if isinstance(lines, str) else lines:
            complain(line)

    def alone(self, path: str) -> None:
        self.held = open(path, "w")  # noqa: SIM115 - until the process ends, however it does
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            Path(f"{path}.two").touch()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait_for(self, path: str) -> None:
        while not (self.sandbox.folder / path).exists():
            time.sleep(0.02)

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            self._change(path, lambda _: text)  # noqa: B023 - called at once

    def append(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            self._change(path, lambda before: before + text)  # noqa: B023 - called at once

    def tick(self, path: str) -> None:
        file = self.sandbox.folder / path
        if file.exists() and OPEN_BOX.search(file.read_text()):
            self._change(path, lambda text: OPEN_BOX.sub(r"\1[x]", text, count=1))

    def sh(self, command: str) -> None:
        """Run a command. Without a sandbox of our own, one that may write nothing is not run at all."""
        end = self.stream.command(command)
        if self.sandbox.mode == "read-only":
            end(f"/bin/bash: line 1: {os.strerror(errno.EROFS)}\n", 1)
            return
        import tempfile  # slow, and most turns run nothing

        with tempfile.TemporaryFile() as output:
            with_us = die_with_parent if self.sandbox.mode == "workspace-write" else None
            self.running = subprocess.Popen(
                ["/bin/sh", "-c", command],
                cwd=self.sandbox.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=with_us,
            )
            code = self.running.wait()
            self.end_command()  # what it left in its group goes with it
            output.seek(0)
            end(output.read().decode(errors="replace"), code if code >= 0 else 128 - code)

    def end_command(self) -> None:
        """Kill the command that runs, with its group."""
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)
        self.running = None

    def _change(self, path: str, edit: Callable[[str], str]) -> None:
        """Change a file as a patch does, or fail as a command does that tries."""
        target = (self.sandbox.folder / path).resolve()
        try:
            if not self.sandbox.allows(target):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            kind = "update" if target.exists() else "add"
            before = target.read_bytes().decode(errors="surrogateescape") if kind == "update" else ""
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("r+b" if kind == "update" else "wb") as file:  # never empty: it may be killed here
                file.write(edit(before).encode(errors="surrogateescape"))
                file.truncate()
        except OSError as error:
            self.stream.command(f"cat > {path}")(f"/bin/bash: line 1: {path}: {error.strerror}\n", 1)
            return
        changes = [{"path": str(target), "kind": kind}]
        self.stream.item("file_change", changes=changes, started={"status": "in_progress"})(status="completed")


ACTIONS: dict[str, Callable[[Player, Any], None]] = {
    "reply": Player.reply,
    "write": Player.write,
    "append": Player.append,
    "tick": Player.tick,
    "sh": Player.sh,
    "sleep": Player.sleep,
    "wait_for": Player.wait_for,
    "say": Player.say,
    "complain": Player.complain,
    "alone": Player.alone,
}


def die_with_parent() -> None:
    """A sandboxed command ends with its agent, even with one that was killed."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def heed_signals(player: Player) -> None:
    """INT ends the turn, its command with it; TERM ends the program, and the command only if it was sandboxed."""

    def interrupted(*_: object) -> NoReturn:
        player.end_command()
        if not player.stream.events:
            complain("turn interrupted")
        os._exit(1)

    def terminated(*_: object) -> None:
        if player.sandbox.mode != "danger-full-access":
            player.end_command()
        end_by(signal.SIGTERM)

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, terminated)


def end_by(number: int) -> None:
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def take_turn(kept: Kept, asked: Asked, argv: list[str]) -> int:
    """`codex exec`, from its settings to its exit code."""
    folder = check_settings(asked)
    prompt = the_prompt(asked)
    schema = the_schema(asked)
    check_place(asked, folder)
    session = kept.session(asked, folder)
    with session.held():
        player = Player(Stream(events=asked.has("--json")), kept.sandbox(asked, folder))
        if len(prompt) > PROMPT_LENGTH:
            player.stream.event("thread.started", thread_id=session.identity)
            raise too_long(prompt)
        heed_signals(player)
        number, turn = kept.next_turn()
        mode, place = player.sandbox.mode, str(folder)
        known = {"session": session.identity, "sandbox": mode, "turn": number, "schema": schema}
        kept.call(argv, cwd=place, prompt=prompt, **known)
        if not asked.has("--ephemeral"):  # before anybody hears of it, so that a killed one can go on
            session.keep({"sandbox": mode, "usage": dict.fromkeys(USAGE, 0)} | session.read() | {"cwd": place})
        if not player.stream.events:
            complain(banner(player.sandbox, session, prompt))
        player.stream.event("thread.started", thread_id=session.identity)
        player.stream.event("turn.started")
        if why := refused(schema):
            return finish({"error": why}, player.stream, session, asked)
        player.play(turn)
        return finish(turn, player.stream, session, asked)


def finish(turn: Json, stream: Stream, session: Session, asked: Asked) -> int:
    """The end of a turn: the last event, the last message, the tokens; the exit code."""
    if message := turn.get("error"):
        stream.event("error", message=message)
        stream.event("turn.failed", error={"message": message})
        if not stream.events:
            complain(f"ERROR: {message}\nERROR: {message}")
        return int(turn.get("exit", 1))
    if "exit" in turn:
        return int(turn["exit"])
    before = session.read().get("usage", {})
    usage = {name: before.get(name, 0) + count for name, count in (USAGE | turn.get("usage", {})).items()}
    if session.path.exists():
        session.keep(session.read() | {"usage": usage})
    write_last_message(asked.last("--output-last-message"), stream.reply)
    stream.event("turn.completed", usage=usage)
    if not stream.events:
        complain(f"codex\n{stream.reply}" if stream.reply else "")
        tokens = usage["input_tokens"] - usage["cached_input_tokens"] + usage["output_tokens"]
        complain(f"tokens used\n{tokens:,}")
        say(stream.reply or "")
    return 0


def write_last_message(path: str | None, reply: str | None) -> None:
    if path is None:
        return
    try:
        Path(path).write_text(reply or "")
    except OSError as error:
        complain(f'Failed to write last message file "{path}": {error.strerror} (os error {error.errno})')
        return
    if reply is None:
        complain(f"Warning: no last agent message; wrote empty content to {path}")


def too_long(prompt: str) -> Ended:
    what = f"Input exceeds the maximum length of {PROMPT_LENGTH} characters."
    data = {"input_error_code": "input_too_large", "max_chars": PROMPT_LENGTH, "actual_chars": len(prompt)}
    told = json.dumps(data, separators=(",", ":"))
    return Ended(1, f"Error: turn/start: turn/start failed: {what} (code -32602), data: {told}")


def banner(sandbox: Sandbox, session: Session, prompt: str) -> str:
    places = " [workdir, /tmp, $TMPDIR]" if sandbox.mode == "workspace-write" else ""
    rows = {
        "workdir": sandbox.folder,
        "model": "strict",
        "provider": "strict",
        "approval": "never",
        "sandbox": sandbox.mode + places,
        "session id": session.identity,
    }
    facts = [f"{name}: {value}" for name, value in rows.items()]
    return "\n".join([f"OpenAI Codex v{VERSION}", "--------", *facts, "--------", "user", prompt])


# -- the program -------------------------------------------------------------------------------------------------------


def say(text: str, to: int = 1) -> None:
    data = f"{text}\n".encode(errors="surrogatepass") if text else b""
    while data:
        data = data[os.write(to, data) :]


def complain(text: str) -> None:
    say(text, to=2)


def run(kept: Kept, argv: list[str]) -> int:
    given = parse(CODEX, iter(argv)).chain
    match [one.command for one in given]:
        case [_]:
            raise Ended(1, "Error: stdin is not a terminal")
        case [_, command, *_] if command is EXEC:
            return take_turn(kept, Asked(given), argv)
        case [_, _, command] if command is STATUS:
            check_overrides(Asked(given))
            if (kept.root / "logged-out").exists():
                raise Ended(1, "Not logged in")
            raise Ended(0, "Logged in using ChatGPT")
        case _:
            raise Ended(NOT_PLAYED, "strict codex: login is not played")


def main() -> NoReturn:
    kept, argv = Kept(Path(sys.argv[1])), sys.argv[2:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until a turn begins
    try:
        code = run(kept, argv)
    except Ended as ended:
        kept.call(argv)
        say(ended.out)
        say(ended.err, to=2)
        code = ended.code
    if code < 0:
        end_by(-code)
    sys.exit(code)
