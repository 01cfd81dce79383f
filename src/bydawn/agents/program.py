"""What agent CLIs have in common: how each is installed and logged in to, and how one that failed is judged."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import msgspec

from bydawn.core.agent import CommandEnded, CommandStarted, Event
from bydawn.core.outcome import Exit, Outcome
from bydawn.core.text import last_part, plain, shorten
from bydawn.system import programs

_PATIENCE = 20.0  # seconds for a program to answer
_COMMAND, _OUTPUT = 2000, 4000  # characters of a command, and of the output of one that failed
_Line = TypeVar("_Line")
# `status 403`, `HTTP/1.1 403`, `"code": 403`, `API Error: 403`; and `403 Forbidden`, `… (402)` at the end of a line
_STATUS = re.compile(
    r"(?im)(?<!exit )(?<!exited with )"
    r"""\b(?:status|http(?:/[\d.]+)?|code|error)[ _-]?(?:code)?["']?[ :=(]{1,3}([45]\d\d)\b(?![.:]\d)"""
    r"""|\(([45]\d\d)\)$|(?:^|[\s(])([45]\d\d) (?:Unauthorized|Payment Required|Forbidden)\b"""
)


class Needed(msgspec.Struct, frozen=True):
    """A program that a sandbox needs on Linux, and the Debian package it is in."""

    program: str
    package: str


BUBBLEWRAP, SOCAT = Needed("bwrap", "bubblewrap"), Needed("socat", "socat")


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something on this machine that keeps an agent from working."""

    name: str
    detail: str
    hint: str


class Cli(msgspec.Struct, frozen=True, kw_only=True):
    """An agent CLI as a program on this machine."""

    name: str
    package: str  # on npm
    tested: str  # the versions our tests drive start with this
    login: str  # the command that logs in
    logged_in: Callable[[Mapping[str, str], Path, str], bool | None]  # in a workspace, by its `start`; None: unknown
    sandbox_needs: Callable[[str], tuple[Needed, ...]] = lambda _: ()  # by the path of the program
    trouble: Callable[[Mapping[str, str]], Trouble | None] = lambda _: None  # that its sandbox has here
    program: str = ""  # a path, or another name on the PATH, if a person chose one

    @property
    def start(self) -> str:
        """What to start: a name on the PATH, or a path."""
        return self.program or self.name

    def missing(self, workspace: str) -> tuple[str, str] | None:
        """Cause and hint if it is not installed."""
        name = self.start
        if programs.find(name, Path(workspace)):
            return None
        if self.program:
            hint = f"give a path: -a {self.name}:/path/to/{self.name}; its own flags go after `--`"
            return not_found(name, hint)
        cause = f"{name} is not on the PATH"
        if inside := shutil.which(name):
            cause = f"the only {name} on the PATH is inside the workspace, and that one is never run: {inside}"
        return cause, f"install it: npm install -g {self.package}"


class CliAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent CLI. All of them print while they work."""

    cli: ClassVar[Cli]
    program: str = ""  # as in `Cli`
    streams: bool = True

    @property
    def name(self) -> str:
        return f"{self.cli.name}:{self.program}" if self.program else self.cli.name

    @property
    def start(self) -> str:
        return self.program or self.cli.name

    def missing(self, workspace: str) -> tuple[str, str] | None:
        return msgspec.structs.replace(self.cli, program=self.program).missing(workspace)


class LineReader(ABC, Generic[_Line]):
    """Reads the lines that are events and skips everything else in the stream."""

    def __init__(self, lines: msgspec.json.Decoder[_Line], asked_for: str | None = None) -> None:
        self._lines = lines
        self._asked_for = asked_for  # the session it was to resume
        self._session: str | None = None
        self._skipped = 0  # bytes of lines too long to read

    def read(self, line: bytes) -> Iterable[Event]:
        try:
            event = self._lines.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return ()
        return self.events(event)

    @abstractmethod
    def events(self, line: _Line) -> Iterable[Event]:
        """What a line means."""

    def skipped(self, size: int) -> None:
        self._skipped += size


def not_found(program: str, hint: str) -> tuple[str, str]:
    """Cause and hint for a program that a person named and that cannot be started."""
    if "/" in program and Path(program).exists():
        return f"{program} cannot be executed", f"make it executable: chmod +x {shlex.quote(program)}"
    return f"no program {program!r} {'here' if '/' in program else 'on the PATH'}", hint


def ask(workspace: Path, name: str, *words: str) -> tuple[int, str]:
    """The exit code and output of a program that should answer at once; all it starts ends with it."""
    program = programs.find(name, workspace)
    try:
        process = subprocess.Popen(
            [program or "", *words],
            env={**os.environ, "PATH": programs.path_outside(workspace)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        return 127, ""
    with process:
        try:
            output, _ = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return 124, ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output.decode(errors="replace")


def command_started(command: str) -> CommandStarted:
    """A command that the agent is about to run."""
    return CommandStarted(f"runs {shorten(command, 120)}", plain(command[:_COMMAND]))


def command_ended(command: str, output: str, exit_code: int | None = None, *, failed: bool) -> CommandEnded:
    """A command that the agent ran, with the part of its output that matters."""
    said = last_part(output, _OUTPUT) if failed else ""
    return CommandEnded(command=plain(command[:_COMMAND]), exit_code=exit_code, failed=failed, output=plain(said))


def normal(text: str) -> str:
    """Plain text, with plain apostrophes."""
    return plain(text).replace("’", "'")


def not_logged_in(name: str, words: str, advice: str) -> str:
    """Our headline for a log-in that the provider refuses: the agent's own words are about HTTP."""
    known = status_in(words) in (402, 403)  # the person, but they may not
    return f"{f'the provider refuses the log-in of {name}' if known else f'{name} is not logged in'}; {advice}"


def status_in(words: str) -> int:
    """The HTTP status that an error names; 0 if none. A port, an exit code or a line number may have its digits.

    >>> [status_in(each) for each in ("unexpected status 403 Forbidden", "HTTP 402: pay", "port 4030, id req_402")]
    [403, 402, 0]
    >>> [status_in(each) for each in ("exited with exit code 403", "line 403)", "refused (403)", "error code: 401")]
    [0, 0, 403, 401]
    """
    found = _STATUS.search(words)
    return int(next(filter(None, found.groups()))) if found else 0


def killed(number: int | None) -> tuple[Outcome, str] | None:
    """The verdict on a program that was killed by a signal we did not send."""
    return (Outcome.CRASHED, f"killed by signal {number} ({signal.strsignal(number)})") if number else None


def without_result(exit_: Exit, skipped: int = 0, lacking: str = "a result") -> tuple[Outcome, str] | None:
    """The verdict on one that a signal killed, or that exited with 0 before its last event: not a success."""
    if exit_.signal or exit_.code != 0:
        return killed(exit_.signal)
    too_long = f"; a line of {skipped} bytes was too long to read" if skipped else ""
    return Outcome.LOST_OUTPUT, f"exited with 0 but without {lacking}{too_long}"


def session_lost(asked_for: str | None, session: str | None) -> tuple[Outcome, str] | None:
    """The verdict on a turn that was to resume a session and started another one."""
    if not asked_for or not session or session == asked_for:
        return None
    return Outcome.SESSION_LOST, f"session {asked_for} was not resumed; it began {session} instead"
