"""A program that the operating system starts after a login or a boot, keeps running, and starts again if it fails."""

import os
import re
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.text import last_part, plain, shorten
from bydawn.system.programs import find, path_outside
from bydawn.system.writing import make_private, replace_text

Words = tuple[str, ...]

_PATIENCE = 60.0  # seconds for an answer; to end, a unit has 30
_NEVER = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # a line cannot hold it, or XML cannot
_FOLDERS = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What to keep running. Everyone on the machine may read it, so nothing secret can be in it."""

    name: str
    what: str  # a description for people
    words: Words  # the first is an absolute path
    folder: str  # to run in
    env: dict[str, str]
    log: str = ""  # a file for all that it prints; empty: the journal, which launchd does not have
    ends_alone: bool = False  # what it has started goes on when it ends

    def __post_init__(self) -> None:
        for text in (self.what, *self.words, self.folder, self.log, *self.env.values()):
            if _NEVER.search(text):
                cause = f"it has a control character, or is not UTF-8: {text!a}"
                raise UserError("a service cannot use this path", cause=cause, hint="rename it")


class UnitState(msgspec.Struct, frozen=True, kw_only=True):
    """What its manager says about a unit now."""

    installed: bool  # its file is there
    enabled: bool = False  # it starts by itself
    running: bool = False
    failed: bool = False  # it ended with an error, and is not running
    pid: int | None = None
    path: str
    detail: str = ""


class Change(StrEnum):
    """What an installation has changed."""

    NEW = "new"
    REPLACED = "replaced"
    STARTED = "started"  # its file was right, but it was not running
    NOTHING = "nothing"


class Manager(ABC):
    """systemd or launchd: where it reads units, how they are written, and which commands start and stop one."""

    kind: ClassVar[str]
    reload: ClassVar[tuple[Words, ...]] = ()  # the commands after which it reads its files again

    def __init__(self, instead: str) -> None:
        self.instead = instead  # the command for a person to start where there is no manager

    @abstractmethod
    def place(self, name: str) -> Path:
        """Where the file of a unit belongs."""

    @abstractmethod
    def text(self, unit: Unit) -> str: ...

    @abstractmethod
    def starting(self, name: str, state: UnitState) -> Iterable[Words]:
        """The commands that start a unit, now and from now on; again if it is running."""

    @abstractmethod
    def stopping(self, name: str, state: UnitState) -> Iterable[Words]:
        """The commands that end a unit, now and from now on."""

    @abstractmethod
    def status(self, name: str) -> UnitState:
        """Never fails: where the manager is not running, `detail` says so."""

    @abstractmethod
    def logs(self, name: str) -> str:
        """The command that shows what a unit has printed; empty if that is unknown."""

    @abstractmethod
    def check(self) -> None:
        """Refuse to go on where the manager is not running."""

    def lingers(self) -> bool | None:
        """Do units run while their user is logged out? None if that is unknown."""
        return None

    def install(self, unit: Unit) -> Change:
        """Write its file and start it. If that fails, everything is as it was before."""
        self.check()
        text, path, was = self.text(unit), self.place(unit.name), self.status(unit.name)
        before = path.read_text(errors="replace") if path.is_file() else None
        if before == text and was.running and was.enabled:
            return Change.NOTHING
        path.parent.mkdir(parents=True, exist_ok=True)
        if unit.log:
            make_private(Path(unit.log).parent)
        try:
            replace_text(path, text, 0o644)
            self._run(unit.name, self.starting(unit.name, was))
        except BaseException:
            self._put_back(unit.name, before, was)
            raise
        return Change.NEW if before is None else Change.STARTED if before == text else Change.REPLACED

    def remove(self, name: str) -> None:
        """End it and remove its file; it must be installed."""
        self.check()
        self._run(name, self.stopping(name, self.status(name)))
        self.place(name).unlink(missing_ok=True)
        self._run(name, self.reload)

    def _put_back(self, name: str, before: str | None, was: UnitState) -> None:
        if before is not None:
            replace_text(Path(was.path), before, 0o644)
        now = self.status(name)
        with suppress(UserError):  # the first error is the one to tell
            self._run(name, self.starting(name, now) if was.enabled else self.stopping(name, now))
        if before is None:
            Path(was.path).unlink(missing_ok=True)
            with suppress(UserError):
                self._run(name, self.reload)

    def _run(self, name: str, commands: Iterable[Words]) -> None:
        for words in commands:
            code, said = ask(words)
            if code:
                cause = shorten(last_part(said, 400), 400) or f"it ended with exit code {code}"
                hint = f"`{self.logs(name)}` may say more"
                raise OwnFailure(f"`{shlex.join(words)}` failed", cause=cause, hint=hint)


def manager(instead: str) -> Manager:
    """The manager of this machine; where there is none, the one that such a system usually has."""
    if sys.platform == "darwin" or find("launchctl", home()):
        from bydawn.host.launchd import Launchd

        return Launchd(instead)
    from bydawn.host.systemd import Systemd

    return Systemd(instead)


def is_installed(name: str) -> bool:
    """Is there a file for such a unit? Asks no program."""
    return bool(os.environ.get("HOME")) and manager("").place(name).exists()


def no_manager(instead: str) -> UserError:
    """The error where neither is installed."""
    return UserError(
        "this machine has neither systemd nor launchd",
        cause="systemctl and launchctl are not on the PATH",
        hint=f"let the init or the scheduler of this machine start `{instead}`",
    )


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """What a unit gets from the environment of the person who installs it: where things are, and nothing else."""
    for name in _FOLDERS:
        if (value := env.get(name)) and not value.startswith("/"):
            cause = "it would mean another folder for a service"
            raise UserError(f"{name} is {value!r}, which is not absolute", cause=cause, hint=f"export {name}=/…")
    return {"PATH": path_outside(home())} | {name: env[name] for name in (*_FOLDERS, "SHELL") if env.get(name)}


def home() -> Path:
    """The person's home folder, in which units are kept."""
    if found := os.environ.get("HOME"):
        return Path(found)
    raise UserError("HOME is not set", cause="services are kept in your home folder", hint="export HOME=/…")


def ask(words: Words) -> tuple[int, str]:
    """The exit code and output of a program: 127 if it is not installed, 124 if it does not answer."""
    import subprocess

    if not (program := find(words[0], home())):
        return 127, f"{words[0]} is not installed"
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    command = [program, *words[1:]]
    try:
        done = subprocess.run(command, stdin=nothing, stdout=pipe, stderr=subprocess.STDOUT, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return 124, f"it did not answer in {_PATIENCE:.0f} seconds"
    return done.returncode, plain(done.stdout).strip()
