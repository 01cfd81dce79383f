"""A `claude` that plays a script and refuses every command line that the real one (Claude Code 2.1.197) refuses.

`install(folder, turns)` puts it there; the folder goes to the front of PATH, `calls(folder)` says how it was called.
What it refuses is measured: `tests/real/test_strict_claude.py` holds it against the real one. A turn is an object whose
keys are played in the order in which they stand, as those of `strict_codex.py` are:

    reply     what the agent says, or a list of what it says one after the other; the last one is its final message
    write, append, tick, sh, sleep, wait_for, say, complain, alone

and four that tell how it ends, wherever they stand: `fail` (a name in FAILURES), `until` (the moment at which a limit
resets, in seconds since 1970), `usage` ({name: tokens}), `exit` (it ends with this code and without a last event).

Several projects share one fake: each folder that it works in has its own count of turns and, if `turns` is a mapping
of folder names, its own script. After the last turn the last one is played again.
"""

import json
import os
import re
import shlex
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from program.strict_codex import ACTIONS, Ended, Json, Kept, Player, Sandbox, complain, end_by, lines_of, say

VERSION = "2.1.197"
ENDINGS = {"fail", "until", "usage", "exit"}
USAGE = {
    "input_tokens": 1000,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 200,
    "output_tokens": 50,
}
COST = 0.00635
PROMPT_BYTES = 10 << 20
MODEL = "claude-opus-4-8"
KEPT_ENV = ("IS_SANDBOX", "RLOOP_", "BYDAWN_")  # what a call tells of its environment


class Failure(NamedTuple):
    """How an answer of the provider that is none looks: the code of the last message, the status, the words."""

    error: str
    status: int | None
    text: str
    reason: str = "completed"


FAILURES = {
    "overloaded": Failure("server_error", 529, "API Error: 529 Overloaded. This is usually temporary"),
    "no-answer": Failure("server_error", None, "API Error: Unable to connect to API (ECONNRESET)"),
    "limit": Failure("rate_limit", 429, "You've hit your session limit · resets {until}"),
    "login": Failure("authentication_failed", None, "Not logged in · Please run /login"),
    "credit": Failure("billing_error", 400, "Credit balance is too low"),
    "model": Failure("model_not_found", 404, "There's an issue with the selected model ({model}). It may not exist."),
    "too-long": Failure("invalid_request", 400, "Prompt is too long · 1200000 tokens", "prompt_too_long"),
}  # fmt: skip


# -- for tests ---------------------------------------------------------------------------------------------------------

Turns = Sequence[Mapping[str, Any]]


def install(folder: Path, turns: Turns | Mapping[str, Turns], name: str = "claude") -> Path:
    """Put it into a folder with the turns it plays; sessions and calls of an earlier one there are kept."""
    scripts = turns if isinstance(turns, Mapping) else {"": turns}
    for script in scripts.values():
        if not script:
            raise ValueError("there is no turn to play")
        for turn in script:
            if unknown := turn.keys() - ACTIONS.keys() - ENDINGS:
                raise ValueError(f"a turn knows no {sorted(unknown)}; it knows {sorted({*ACTIONS, *ENDINGS})}")
            if turn.get("fail", "limit") not in FAILURES:
                raise ValueError(f"a turn fails by one of {sorted(FAILURES)}")
    (folder / "kept").mkdir(parents=True, exist_ok=True)
    (folder / "kept/turns.json").write_text(json.dumps(scripts))
    for played in (folder / "kept").glob("played-*"):
        played.unlink()
    program = (
        f"import sys; sys.path[:0] = {[str(Path(__file__).parents[1])]}; import program.strict_claude as it; it.main()"
    )
    command = shlex.join([sys.executable, "-ISc", program, str((folder / "kept").resolve())])
    shim = folder / name
    shim.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    shim.chmod(0o755)
    return shim


def log_in(home: Path) -> Path:
    """What makes Claude's log-in look as if it were there, in a home."""
    path = home / ".claude/.credentials.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def calls(folder: Path) -> list[Json]:
    """Every call: argv, pid, cwd and, unless it was refused, prompt, session, mode, model, turn and environment."""
    return lines_of(folder / "kept/calls.jsonl")


# -- the command line --------------------------------------------------------------------------------------------------


class Option(NamedTuple):
    """A flag; `value` is as its help shows it: `<must>`, `[may]`, `<several...>`, or nothing."""

    flag: str
    short: str = ""
    value: str = ""
    choices: tuple[str, ...] = ()
    alias: str = ""

    @property
    def shown(self) -> str:
        names = ", ".join(name for name in (self.short, self.flag, self.alias) if name)
        return f"{names} {self.value}".strip()


MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")
SWITCHES = (
    "--allow-dangerously-skip-permissions --ax-screen-reader --bare --brief --chrome --dangerously-skip-permissions"
    " --disable-slash-commands --exclude-dynamic-system-prompt-sections --fork-session --ide --include-hook-events"
    " --include-partial-messages --no-chrome --no-session-persistence --replay-user-messages --safe-mode"
    " --strict-mcp-config --verbose"
)
VALUES = (
    "--agent --agents --append-system-prompt --debug-file --effort --fallback-model --json-schema --max-budget-usd"
    " --max-turns --model --plugin-dir --plugin-url --session-id --setting-sources --settings --system-prompt"
)
LISTS = "--add-dir --betas --file --mcp-config --tools"
OPTIONS = (
    *(Option(flag) for flag in SWITCHES.split()),
    *(Option(flag, value=f"<{flag[2:]}>") for flag in VALUES.split()),
    *(Option(flag, value=f"<{flag[2:]}...>") for flag in LISTS.split()),
    Option("--allowedTools", value="<tools...>", alias="--allowed-tools"),
    Option("--disallowedTools", value="<tools...>", alias="--disallowed-tools"),
    Option("--print", "-p"),
    Option("--continue", "-c"),
    Option("--debug", "-d", "[filter]"),
    Option("--name", "-n", "<name>"),
    Option("--resume", "-r", "[value]"),
    Option("--help", "-h"),
    Option("--version", "-v"),
    Option("--output-format", value="<format>", choices=("text", "json", "stream-json")),
    Option("--input-format", value="<format>", choices=("text", "stream-json")),
    Option("--permission-mode", value="<mode>", choices=MODES),
)
BY_NAME = {name: option for option in OPTIONS for name in (option.flag, option.short, option.alias) if name}


def refused(text: str) -> Ended:
    return Ended(1, text)


class Given:
    """What a command line says, read as commander does."""

    def __init__(self, argv: list[str]) -> None:
        self.values: dict[str, list[str]] = {}
        self.words: list[str] = []
        words = iter(self._split(argv))
        following: str | None = next(words, None)
        while following is not None:
            word, following = following, next(words, None)
            if word == "--":
                self.words += [*([following] if following is not None else []), *words]
                return
            if not word.startswith("-") or word == "-":
                self.words.append(word)
                continue
            flag, equals, value = word.partition("=")
            option = BY_NAME.get(flag)
            if option is None or (equals and not option.value):
                raise refused(f"error: unknown option '{word}'")
            taken = self.values.setdefault(option.flag, [])
            if equals:
                taken.append(value)
            elif option.value.startswith("<"):
                if following is None:
                    raise refused(f"error: option '{option.shown}' argument missing")
                taken.append(following)
                following = next(words, None)
            elif option.value and following is not None and not following.startswith("-"):
                taken.append(following)
                following = next(words, None)
            while option.value.endswith("...>") and following is not None and not following.startswith("-"):
                taken.append(following)
                following = next(words, None)
            for value in taken if option.choices else ():
                if value not in option.choices:
                    allowed = ", ".join(option.choices)
                    why = f"argument '{value}' is invalid. Allowed choices are {allowed}."
                    raise refused(f"error: option '{option.shown}' {why}")

    @staticmethod
    def _split(argv: list[str]) -> Iterator[str]:
        """Short flags that stand together are taken apart."""
        for word in argv:
            if re.fullmatch("-[a-z]{2,}", word) and BY_NAME.get(word[:2]) and not BY_NAME[word[:2]].value:
                yield from (f"-{letter}" for letter in word[1:])
            else:
                yield word

    def has(self, flag: str) -> bool:
        return flag in self.values

    def last(self, flag: str) -> str | None:
        return next(reversed(self.values.get(flag, [])), None)


# -- before a turn -----------------------------------------------------------------------------------------------------


def the_prompt(given: Given) -> str:
    """An argument and what is on stdin, joined."""
    data = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    if len(data) > PROMPT_BYTES:
        raise refused("Error: piped stdin input exceeds 10MB")
    parts = [*given.words[:1], data.decode(errors="replace")]
    prompt = "\n".join(part for part in parts if part.strip())
    if not prompt:
        raise refused("Error: Input must be provided either through stdin or as a prompt argument when using --print")
    return prompt


def check_session(given: Given, kept: Path) -> str:
    """The conversation of this turn; one that was there is only gone on with by `--resume`."""
    chosen, resumed = given.last("--session-id"), given.last("--resume")
    if chosen is not None and (given.has("--resume") or given.has("--continue")) and not given.has("--fork-session"):
        ways = "--continue or --resume if --fork-session is also specified"
        raise refused(f"Error: --session-id can only be used with {ways}.")
    if chosen is not None and not is_uuid(chosen):
        raise refused("Error: Invalid session ID. Must be a valid UUID.")
    if given.has("--resume") and not is_uuid(resumed or ""):
        usage = "Usage: claude -p --resume <session-id|title>."
        told = f'Provided value "{resumed}" is not a UUID and does not match any session title.' if resumed else ""
        what = "--resume requires a valid session ID or session title when used with --print."
        raise refused(f"Error: {what} {usage} {told}".rstrip())
    if chosen and (kept / f"sessions/{chosen}").exists():
        raise refused(f"Error: Session ID {chosen} is already in use.")
    return resumed or chosen or str(uuid.uuid4())


def is_uuid(text: str) -> bool:
    try:
        return bool(uuid.UUID(text))
    except ValueError:
        return False


def check_settings(given: Given) -> Json:
    """What `--settings` says: JSON, or the name of a file of it."""
    text = given.last("--settings")
    if text is None:
        return {}
    try:
        return dict(json.loads(text if text.startswith("{") else Path(text).read_text()))
    except (ValueError, OSError):
        raise refused(f"Error: Settings file not found: {text}") from None


def check_permissions(given: Given) -> str:
    mode = given.last("--permission-mode") or "default"
    if given.has("--dangerously-skip-permissions"):
        mode = "bypassPermissions"
    if mode == "bypassPermissions" and os.geteuid() == 0 and os.environ.get("IS_SANDBOX") != "1":
        what = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
        raise refused(what)
    return mode


def sandbox_of(mode: str, settings: Json) -> Sandbox:
    """Without full access it writes only where its own sandbox is switched on, and there not in `.git`."""
    inside = bool(settings.get("sandbox", {}).get("enabled"))
    may = {"bypassPermissions": "danger-full-access", "acceptEdits": "workspace-write" if inside else "read-only"}
    return Sandbox(may.get(mode, "read-only"), Path.cwd(), (), ())


# -- the turn ----------------------------------------------------------------------------------------------------------


class ClaudeStream:
    """What is printed: events for `stream-json`, or else the last message alone."""

    def __init__(self, session: str, model: str, *, events: bool) -> None:
        self.session, self.model, self.events = session, model, events
        self.reply = ""
        self.denied: list[Json] = []

    def event(self, kind: str, **content: Any) -> None:
        self.line({"type": kind, **content, "session_id": self.session, "uuid": str(uuid.uuid4())})

    def line(self, line: Json | str) -> None:
        if self.events:
            say(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=(",", ":")))

    def answer(self, block: Json, *, model: str = "", **more: Any) -> None:
        usage = {**USAGE, "output_tokens": 1}
        message = {"id": f"msg_{uuid.uuid4().hex[:12]}", "type": "message", "role": "assistant"}
        content = {"model": model or self.model, "content": [block], "stop_reason": None, "usage": usage}
        self.event("assistant", message=message | content, parent_tool_use_id=None, **more)

    def says(self, texts: str | list[str]) -> None:
        for text in [texts] if isinstance(texts, str) else texts:
            self.reply = text
            self.answer({"type": "text", "text": text})

    def tool(self, name: str, **values: Any) -> Callable[[str, bool], None]:
        """Tell of a tool that is used; what is returned tells what it answered."""
        call = f"toolu_{uuid.uuid4().hex[:12]}"
        self.answer({"type": "tool_use", "id": call, "name": name, "input": values})

        def answered(text: str, failed: bool) -> None:
            result = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}
            self.event("user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)

        return answered

    def command(self, command: str) -> Callable[[str, int], None]:
        end = self.tool("Bash", command=command)
        return lambda output, code: end(f"Exit code {code}\n{output}" if code else output, bool(code))

    def item(self, kind: str, *, changes: list[Json], **_: Any) -> Callable[..., None]:
        """A file that was changed."""
        assert kind == "file_change"
        path = changes[0]["path"]
        end = self.tool("Edit", file_path=path)
        return lambda **_: end(f"The file {path} has been updated.", False)

    def begins(self, mode: str) -> None:
        facts = {"cwd": os.getcwd(), "model": self.model, "permissionMode": mode, "tools": ["Bash", "Edit", "Read"]}
        self.event("system", subtype="init", **facts, apiKeySource="none", claude_code_version=VERSION)

    def ends(self, usage: Json, failure: Failure | None = None) -> None:
        told = self.reply if failure is None else failure.text
        tokens = dict.fromkeys(USAGE, 0) if failure else {**USAGE, **usage}
        camel = {re.sub("_(.)", lambda found: found[1].upper(), name): count for name, count in tokens.items()}
        self.event(
            "result",
            subtype="success",
            is_error=failure is not None,
            api_error_status=failure.status if failure else None,
            duration_ms=213,
            num_turns=1,
            result=told,
            total_cost_usd=0 if failure else COST,
            usage=tokens,
            modelUsage={} if failure else {self.model: {**camel, "costUSD": COST}},
            permission_denials=self.denied,
            terminal_reason=failure.reason if failure else "completed",
        )
        if not self.events:
            say(told)


def fail(stream: ClaudeStream, turn: Json) -> int:
    """The provider gives no answer, as the last message and the result tell."""
    failure, until = FAILURES[turn["fail"]], int(turn.get("until", time.time() + 7200))
    clock = time.strftime("%-I:%M%p (UTC)", time.gmtime(until)).replace("AM", "am").replace("PM", "pm")
    failure = failure._replace(text=failure.text.format(until=clock, model=stream.model))
    if turn["fail"] == "limit":
        info = {"status": "rejected", "resetsAt": until, "rateLimitType": "five_hour"}
        stream.event("rate_limit_event", rate_limit_info=info)
    stream.answer({"type": "text", "text": failure.text}, model="<synthetic>", error=failure.error)
    stream.ends({}, failure)
    return 1


def heed_signals(player: Player) -> None:
    """INT ends the command that runs, too; TERM leaves it."""

    def interrupted(*_: object) -> NoReturn:
        player.end_command()
        os._exit(1)

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))


def next_turn(kept: Kept) -> tuple[int, Json]:
    """The number of the turn that begins now in this folder, and what is played in it."""
    scripts: dict[str, list[Json]] = json.loads((kept.root / "turns.json").read_bytes())
    here = Path.cwd()
    turns = scripts.get(here.name) or scripts[""]
    with kept.locked(f"played-{here.name}") as played:
        number = len(played.readlines()) + 1
        played.write(f"{os.getpid()}\n")
    return number, turns[min(number, len(turns)) - 1]


def take_turn(kept: Kept, given: Given, argv: list[str]) -> int:
    session = check_session(given, kept.root)
    settings, prompt = check_settings(given), the_prompt(given)
    form = given.last("--output-format") or "text"
    if form == "stream-json" and not given.has("--verbose"):
        raise refused("Error: When using --print, --output-format=stream-json requires --verbose")
    mode, model = check_permissions(given), given.last("--model") or MODEL
    stream = ClaudeStream(session, model, events=form == "stream-json")
    if given.has("--resume") and not (kept.root / f"sessions/{session}").exists():
        told = [f"No conversation found with session ID: {session}"]
        stream.event("result", subtype="error_during_execution", is_error=True, num_turns=0, errors=told, usage=USAGE)
        raise refused(told[0])
    player = Player(stream, sandbox_of(mode, settings))  # type: ignore[arg-type]  # it has all that a player uses
    heed_signals(player)
    number, turn = next_turn(kept)
    env = {name: value for name, value in os.environ.items() if name.startswith(KEPT_ENV)}
    known = {"prompt": prompt, "session": session, "mode": mode, "model": given.last("--model"), "turn": number}
    kept.call(argv, **known, env=env, at=time.time())
    (kept.root / "sessions").mkdir(exist_ok=True)
    (kept.root / f"sessions/{session}").touch()
    stream.begins(mode)
    player.play(turn)
    if "exit" in turn:
        return int(turn["exit"])
    if "fail" in turn:
        return fail(stream, turn)
    stream.ends(turn.get("usage", {}))
    return 0


# -- the program -------------------------------------------------------------------------------------------------------


def run(kept: Kept, argv: list[str]) -> int:
    given = Given(argv)
    if given.has("--version"):
        raise Ended(0, out=f"{VERSION} (Claude Code)")
    if given.has("--help"):
        rows = [f"  {option.shown}" for option in OPTIONS if option.flag != "--max-turns"]  # that one is hidden
        raise Ended(0, out="\n".join(["Usage: claude [options] [command] [prompt]", "", "Options:", *rows]))
    if not given.has("--print"):
        raise refused("Error: Input must be provided either through stdin or as a prompt argument when using --print")
    return take_turn(kept, given, argv)


def main() -> NoReturn:
    kept, argv = Kept(Path(sys.argv[1])), sys.argv[2:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        code = run(kept, argv)
    except Ended as ended:
        kept.call(argv)
        say(ended.out)
        complain(ended.err)
        code = ended.code
    if code < 0:
        end_by(-code)
    sys.exit(code)
