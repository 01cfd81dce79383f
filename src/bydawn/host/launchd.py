"""launchd's agents, on macOS: how one is written, and what `launchctl` says about it."""

import os
import plistlib
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.text import shorten
from bydawn.host.units import Manager, Unit, UnitState, Words, ask, home, no_manager

_PATIENCE = 40.0  # seconds until an agent that was ended is gone; it has 30 to end


def launchd_text(unit: Unit) -> str:
    """The file of an agent. It always has a log: launchd has no journal."""
    return plistlib.dumps(
        {
            "Label": unit.name,
            "ProgramArguments": [*unit.words],
            "WorkingDirectory": unit.folder,
            "EnvironmentVariables": unit.env,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": 30,
            "StandardOutPath": unit.log,
            "StandardErrorPath": unit.log,
            **({"AbandonProcessGroup": True} if unit.ends_alone else {}),
        },
        sort_keys=False,
    ).decode()


class Launchd(Manager):
    """The part of launchd that runs for a user who is logged in at the screen."""

    kind = "launchd"

    def place(self, name: str) -> Path:
        return home() / f"Library/LaunchAgents/{name}.plist"

    def text(self, unit: Unit) -> str:
        return launchd_text(unit)

    def starting(self, name: str, state: UnitState) -> Iterator[Words]:
        yield from self.stopping(name, state)
        yield ("launchctl", "enable", _target(name))
        yield ("launchctl", "bootstrap", _domain(), str(self.place(name)))

    def stopping(self, name: str, state: UnitState) -> Iterator[Words]:
        if state.enabled:
            yield ("launchctl", "bootout", _target(name))

    def status(self, name: str) -> UnitState:
        path = self.place(name)
        code, said = ask(("launchctl", "print", _target(name)))
        shown = dict(re.findall(r"(?m)^\s*(state|pid|last exit code) = (.+)$", "" if code else said))
        pid, ended = shown.get("pid", ""), shown.get("last exit code", "")
        return UnitState(
            installed=path.exists(),
            enabled=not code,  # it is loaded now, as it will be at the next login
            running=pid.isdigit(),
            failed=not pid and ended.isdigit() and ended != "0",
            pid=int(pid) if pid.isdigit() else None,
            path=str(path),
            detail=shorten(said, 200) if code else f"{shown.get('state')}, last exit code: {ended or 'none'}",
        )

    def logs(self, name: str) -> str:
        try:
            return f"tail -n 50 {shlex.quote(plistlib.loads(self.place(name).read_bytes())['StandardOutPath'])}"
        except (OSError, ValueError, KeyError, plistlib.InvalidFileException):
            return ""

    def check(self) -> None:
        code, said = ask(("launchctl", "print", _domain()))
        if code == 127:
            raise no_manager(self.instead)
        if code:
            hint = f"log in at its screen once; or start `{self.instead}` some other way"
            raise UserError("you are not logged in at the screen of this Mac", cause=shorten(said, 200), hint=hint)

    def _run(self, name: str, commands: Iterable[Words]) -> None:
        for words in commands:
            super()._run(name, [words])
            end = time.monotonic() + _PATIENCE
            # It answers before the agent is gone, and until then none can take its place.
            while (
                words[1] == "bootout" and not ask(("launchctl", "print", _target(name)))[0] and time.monotonic() < end
            ):
                time.sleep(0.1)


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _target(name: str) -> str:
    return f"{_domain()}/{name}"
