"""systemd's user units: how one is written, and what `systemctl --user` says about it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.host.units import Manager, Unit, UnitState, Words, ask, home, no_manager

_CTL = ("systemctl", "--user")
_SHOWN = ("ActiveState", "SubState", "ActiveEnterTimestamp", "UnitFileState", "MainPID", "Result", "NRestarts")
_BOOTED = Path("/run/systemd/system")  # is there if systemd has started this machine: sd_booted(3)
_TEXT = """\
# Replaced by each installation. For changes of your own: systemctl --user edit {name}
[Unit]
Description={what}
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=exec
ExecStart={words}
WorkingDirectory={folder}
{env}{log}Restart=on-failure
RestartSec=5
TimeoutStopSec=30
KillMode={kill}
# A child that used too much memory is the only one that ends.
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def systemd_text(unit: Unit) -> str:
    """The file of a user unit."""
    program, *words = unit.words
    log = f"append:{_value(unit.log)}"
    return _TEXT.format(
        name=unit.name,
        what=_value(unit.what),
        # systemd looks for variables in all words but the first.
        words=" ".join((_word(program), *(_word(word.replace("$", "$$")) for word in words))),
        folder=_value(unit.folder),
        env="".join(f"Environment={_word(f'{name}={value}')}\n" for name, value in unit.env.items()),
        kill="process" if unit.ends_alone else "control-group",
        log=f"StandardOutput={log}\nStandardError={log}\n" if unit.log else "",
    )


def _word(text: str) -> str:
    """One of several words on a line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped if re.fullmatch(r"[\w%$/.,:=@+-]+", escaped) else f'"{escaped}"'


def _value(text: str) -> str:
    """A text with a line for itself: quotes mean nothing there, outer spaces are lost, a backslash joins lines."""
    if text != text.strip(" ") or text.endswith("\\"):
        cause = "systemd cannot read a path that begins or ends with a space, or ends with a backslash"
        raise UserError(f"a service cannot use {text!r}", cause=cause, hint="rename it")
    return text.replace("%", "%%")


class Systemd(Manager):
    """The systemd of one user."""

    kind = "systemd"
    reload = ((*_CTL, "daemon-reload"),)

    def place(self, name: str) -> Path:
        return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / f"systemd/user/{name}.service"

    def text(self, unit: Unit) -> str:
        return systemd_text(unit)

    def starting(self, name: str, state: UnitState) -> Iterator[Words]:
        yield from self.reload
        yield from _forgetting(name, state)
        # By its path: systemd may have been started without XDG_CONFIG_HOME, and then looks elsewhere.
        yield (*_CTL, "enable", "--now", str(self.place(name)))
        if state.running:
            yield (*_CTL, "restart", f"{name}.service")

    def stopping(self, name: str, state: UnitState) -> Iterator[Words]:
        yield from _forgetting(name, state)
        yield (*_CTL, "disable", "--now", f"{name}.service")

    def status(self, name: str) -> UnitState:
        path = self.place(name)
        _, said = ask((*_CTL, "show", f"{name}.service", f"--property={','.join(_SHOWN)}"))
        shown = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        if not {*_SHOWN} <= {*shown}:
            return UnitState(installed=path.exists(), path=str(path), detail="systemd is not running here")
        active, sub, since, file_state, pid, result, restarts = (shown[each] for each in _SHOWN)
        failed = pid == "0" and result != "success"
        return UnitState(
            installed=path.exists(),
            enabled=file_state == "enabled",
            running=pid != "0",
            failed=failed,
            pid=int(pid) or None,
            path=str(path),
            detail=f"{active} ({sub})"
            + (f": {result}, {restarts} restarts" if failed else f" since {since}" if since else ""),
        )

    def logs(self, name: str) -> str:
        return f"journalctl --user -u {name} -n 50"

    def check(self) -> None:
        code, said = ask((*_CTL, "is-system-running"))
        if code == 127:
            raise no_manager(self.instead)
        if code and (not said or {"offline", "unknown"} & {*said.split()} or "Failed to connect" in said):
            raise not_running(self.instead, booted=_BOOTED.exists(), wsl="microsoft" in os.uname().release.lower())

    def lingers(self) -> bool | None:
        _, said = ask(("loginctl", "show-user", str(os.getuid()), "--property=Linger"))
        return {"Linger=yes": True, "Linger=no": False}.get(said)


def not_running(instead: str, *, booted: bool, wsl: bool) -> UserError:
    """The error where systemd is installed but cannot be asked."""
    what, own = "systemd is not running", f"start `{instead}` another way, such as from your container's own init"
    if booted:
        hint = "log in as this user, without sudo or su; or run `sudo loginctl enable-linger USER`, then log in again"
        return UserError(f"{what} for this user", cause="this shell is not part of a login session", hint=hint)
    if wsl:
        hint = f"add the lines `[boot]` and `systemd=true` to /etc/wsl.conf, then run `wsl --shutdown`; or {own}"
        return UserError(f"{what} here", cause="WSL only starts it on request", hint=hint)
    return UserError(f"{what} here", cause="this is a container, or another init has started it", hint=own)


def _forgetting(name: str, state: UnitState) -> Iterator[Words]:
    """After ten failures it can only be started again once ten minutes have passed, unless they are forgotten."""
    if state.failed:
        yield (*_CTL, "reset-failed", f"{name}.service")
