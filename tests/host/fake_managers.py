"""systemctl, loginctl and launchctl with the words that units need: each refuses what the real one refuses.

What they were asked and what runs is in a file beside them.
"""

import json
import os
import plistlib
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("systemctl", "loginctl", "launchctl")
FIRST: dict[str, Any] = {
    "calls": [],
    "manager": "running",  # what `is-system-running` says
    "refuses": "",  # what is said when a unit is started
    "linger": "Linger=no",
    "units": {},  # name: is it enabled, its process, how it ended, the text it was started with
    "going": 0,  # how many more times launchd shows an agent that was ended
}


class Fakes:
    """A folder for the PATH with some of them."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self._world = folder / "world.json"
        folder.mkdir()
        self.set()
        for name in names:
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S {__file__} {name} "$@"\n')
            script.chmod(0o755)

    def set(self, **changes: Any) -> None:
        self._world.write_text(json.dumps({**(self.world() if self._world.exists() else FIRST), **changes}))

    def world(self) -> dict[str, Any]:
        return dict(json.loads(self._world.read_text()))

    def unit(self, name: str) -> dict[str, Any]:
        return dict(self.world()["units"].get(name, {}))

    def asked(self) -> list[str]:
        """What would change something, and forget it."""
        calls = [call for call in self.world()["calls"] if not set(call.split()) & {"show", "show-user", "print"}]
        self.set(calls=[])
        return [call for call in calls if "is-system-running" not in call]


class Refused(Exception):
    def __init__(self, said: str, code: int = 1) -> None:
        super().__init__(said)
        self.code = code


@contextmanager
def the_world() -> Iterator[dict[str, Any]]:
    file = Path(os.environ["PATH"].split(":")[0]) / "world.json"
    world = json.loads(file.read_text())
    try:
        yield world
    finally:
        file.write_text(json.dumps(world))


def systemctl(world: dict[str, Any], *words: str) -> str:
    if words[0] != "--user":
        raise Refused("Interactive authentication required.")
    if words[1] == "is-system-running":
        code = 0 if world["manager"] == "running" else 1
        raise Refused(world["manager"], code)
    if world["manager"] == "offline":
        raise Refused("Failed to connect to bus: No such file or directory")
    units = world["units"]
    match words[1:]:
        case ("daemon-reload",):
            return ""
        case ("enable", "--now", path):
            if not Path(path).is_file():
                raise Refused(f"Failed to enable unit: Unit file {path} does not exist.")
            name = Path(path).stem
            units.setdefault(name, {"pid": 0, "result": "success"})["enabled"] = True
            print(f"Created symlink {path}.", file=sys.stderr)  # and then it is started
            if not units[name]["pid"]:
                start(world, name, path)
            return ""
        case ("restart", service):
            name = service.removesuffix(".service")
            start(world, name, f"{os.environ['XDG_CONFIG_HOME']}/systemd/user/{service}")
            return ""
        case ("disable", "--now", service):
            name = service.removesuffix(".service")
            if not Path(f"{os.environ['XDG_CONFIG_HOME']}/systemd/user/{service}").is_file():
                raise Refused(f"Failed to disable unit: Unit file {service} does not exist.")
            units.pop(name, None)
            return f"Removed {service}."
        case ("reset-failed", service):
            name = service.removesuffix(".service")
            if name not in units:
                raise Refused(f"Failed to reset failed state of unit {service}: Unit {service} not loaded.")
            units[name]["result"] = "success"
            return ""
        case ("show", service, properties):
            unit = units.get(service.removesuffix(".service"), {})
            pid, result = unit.get("pid", 0), unit.get("result", "success")
            shown = {
                "MainPID": pid,
                "Result": result,
                "NRestarts": 10 if result != "success" else 0,
                "ActiveState": "active" if pid else "failed" if result != "success" else "inactive",
                "SubState": "running" if pid else "failed" if result != "success" else "dead",
                "UnitFileState": "enabled" if unit.get("enabled") else "",
                "ActiveEnterTimestamp": "Tue 2026-11-17 21:04:24 UTC" if pid else "",
            }
            wanted = properties.removeprefix("--property=").split(",")
            return "\n".join(f"{name}={value}" for name, value in shown.items() if name in wanted)
        case _:
            raise Refused(f"Unknown command verb {words[1]}.")


def start(world: dict[str, Any], name: str, path: str) -> None:
    world["units"][name]["pid"] = 0
    if world["refuses"]:
        world["units"][name]["result"] = "exit-code"
        raise Refused(world["refuses"])
    world["units"][name] |= {"pid": 4711, "result": "success", "text": Path(path).read_text()}


def loginctl(world: dict[str, Any], *words: str) -> str:
    if words != ("show-user", str(os.getuid()), "--property=Linger"):
        raise Refused(f"Unknown command verb {words[0]}.")
    return str(world["linger"])


def launchctl(world: dict[str, Any], *words: str) -> str:
    domain, units = f"gui/{os.getuid()}", world["units"]
    if len(words) < 2 or words[1].partition("/")[0] != "gui" or not words[1].startswith(domain):
        raise Refused("Usage: launchctl <subcommand> ...", 64)
    if world["manager"] == "offline":
        raise Refused(f'Bad request.\nCould not find domain for user gui: "{domain}"', 112)
    name = words[1].removeprefix(domain).removeprefix("/")
    match words:
        case ("print", where) if where == domain:
            return f"{domain} = {{\n\ttype = login\n}}"
        case ("print", _):
            if world["going"]:
                world["going"] -= 1
            elif name not in units:
                raise Refused(f'Bad request.\nCould not find service "{name}" in domain for user gui', 113)
            return f"{domain}/{name} = {{\n\tstate = running\n\tpid = 4711\n\tlast exit code = (never exited)\n}}"
        case ("enable", _) if name:
            return ""
        case ("bootout", _) if name:
            if not units.pop(name, None):
                raise Refused("Boot-out failed: 3: No such process", 3)
            world["going"] = 2
            return ""
        case ("bootstrap", where, path) if where == domain:
            known = plistlib.loads(Path(path).read_bytes())
            if world["refuses"]:
                raise Refused(world["refuses"], 5)
            if world["going"] or known["Label"] in units or not Path(known["StandardOutPath"]).parent.is_dir():
                raise Refused("Bootstrap failed: 5: Input/output error", 5)
            units[known["Label"]] = {"text": Path(path).read_text()}
            return ""
        case _:
            raise Refused(f"Unrecognized subcommand: {words[0]}", 64)


def main(name: str, *words: str) -> int:
    with the_world() as world:
        world["calls"].append(shlex.join((name, *words)))
        try:
            print(globals()[name](world, *words))
        except Refused as refused:
            print(refused, file=sys.stdout if words[-1] == "is-system-running" else sys.stderr)
            return refused.code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
