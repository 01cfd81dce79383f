"""`bydawn service`: what the operating system is asked to start, and what is left if it refuses."""

import json
import os
import plistlib
import re
from pathlib import Path
from typing import Any

import pytest

from driving import COMMAND, Home, Said, is_error, tree_of
from host.fake_managers import Fakes

SECRET = "sk-proj-1234567890abcdefghijKLMN"  # noqa: S105 - a made-up one


class Machine:
    """A home on a machine with systemd, or launchd, or neither."""

    def __init__(self, home: Home, *programs: str) -> None:
        self.home = home
        self.fakes = Fakes(home.root / "fakes", *programs)
        self.path = f"{self.fakes.folder}:/usr/bin:/bin" if programs else str(self.fakes.folder)
        self.unit = Path(home.env["XDG_CONFIG_HOME"]) / "systemd/user/bydawn.service"
        self.agent = Path(home.env["HOME"]) / "Library/LaunchAgents/bydawn.plist"

    def service(self, *words: str, **env: Any) -> Said:
        return self.home.bydawn("service", *words, PATH=self.path, **env)


@pytest.fixture
def linux(home: Home) -> Machine:
    return Machine(home, "systemctl", "loginctl")


@pytest.fixture
def mac(home: Home) -> Machine:
    return Machine(home, "launchctl")


ENABLE = "systemctl --user enable --now {}"
RELOAD = "systemctl --user daemon-reload"


def test_it_is_installed_looked_at_and_removed(linux: Machine) -> None:
    installed = linux.service("install")
    assert (installed.code, installed.err) == (0, "")
    assert installed.out.startswith("  Installed and started.  ~/.config/systemd/user/bydawn.service\n")
    assert "It ends when you log out and starts when you log in." in installed.out
    assert "loginctl enable-linger" in installed.out
    assert linux.fakes.asked() == [RELOAD, ENABLE.format(linux.unit)]
    assert linux.fakes.unit("bydawn")["text"] == linux.unit.read_text()
    assert f"ExecStart={COMMAND} resume --all --foreground\n" in linux.unit.read_text()

    shown = linux.service("status").out
    assert "✓ running (pid 4711)" in shown
    assert "active (running) since Tue 2026-11-17 21:04:24 UTC" in shown
    assert "journalctl --user -u bydawn -n 50" in shown
    told = json.loads(linux.service("status", "--json").out)
    assert (told["schema"], told["manager"], told["lingering"]) == (1, "systemd", False)
    assert told["unit"]["path"] == str(linux.unit)

    removed = linux.service("remove")
    assert (removed.code, removed.out.startswith("  Stopped and removed.")) == (0, True)
    assert linux.fakes.asked() == ["systemctl --user disable --now bydawn.service", RELOAD]
    assert (linux.unit.exists(), linux.fakes.unit("bydawn")) == (False, {})
    assert "not installed" in linux.service("status").out
    assert "Not installed; nothing was changed." in linux.service("remove").out


def test_the_same_service_is_installed_once_and_another_one_takes_its_place(linux: Machine) -> None:
    linux.service("install")
    linux.fakes.asked()
    again = linux.service("install")
    assert (again.code, linux.fakes.asked()) == (0, [])
    assert "Already installed and running; nothing was changed." in again.out
    other = linux.service("install", "--state-dir", "other place")
    assert "Replaced and started again." in other.out
    calls = linux.fakes.asked()
    assert calls == [RELOAD, ENABLE.format(linux.unit), "systemctl --user restart bydawn.service"]
    assert f'--foreground --state-dir "{linux.home.repo}/other place"\n' in linux.unit.read_text()
    assert linux.fakes.unit("bydawn")["text"] == linux.unit.read_text()


def test_a_service_that_failed_is_started_again(linux: Machine) -> None:
    linux.service("install")
    linux.fakes.set(units={"bydawn": {"enabled": True, "pid": 0, "result": "start-limit-hit"}}, calls=[])
    shown = linux.service("status")
    assert shown.code == 0
    assert "✗ failed" in shown.out
    assert "failed (failed): start-limit-hit, 10 restarts" in shown.out
    assert "Already installed; it is started now." in linux.service("install").out
    assert "systemctl --user reset-failed bydawn.service" in linux.fakes.asked()
    assert linux.fakes.unit("bydawn")["pid"] == 4711


@pytest.mark.parametrize("before", [False, True])
def test_what_was_there_before_is_back_if_systemd_refuses(linux: Machine, before: bool) -> None:
    if before:
        linux.service("install")
    text = linux.unit.read_text() if before else None
    linux.fakes.set(refuses="\x1b[31mJob for bydawn.service failed.\x1b[0m", calls=[])
    ended = linux.service("install", "--state-dir", "elsewhere")
    assert (ended.code, is_error(ended.err)) == (1, True)
    assert re.search(r"cause: (.* )?Job for bydawn.service failed\.\n", ended.err)
    assert "journalctl --user -u bydawn -n 50" in ended.err
    assert (linux.unit.read_text() if linux.unit.exists() else None) == text
    assert bool(linux.fakes.unit("bydawn").get("enabled")) is before
    assert linux.fakes.asked()[-1] in (RELOAD, ENABLE.format(linux.unit))
    linux.fakes.set(refuses="")
    assert linux.service("install").code == 0


def test_a_dry_run_shows_everything_and_changes_nothing(linux: Machine) -> None:
    before = tree_of(Path(linux.home.env["HOME"]))
    for manager in ("running", "offline"):
        linux.fakes.set(manager=manager)
        shown = linux.service("install", "--dry-run")
        assert (shown.code, linux.fakes.asked()) == (0, [])
        assert f"ExecStart={COMMAND} resume --all --foreground\n" in shown.out
        assert f"    {RELOAD}\n    {ENABLE.format(linux.unit)}\n" in shown.out
        assert "File  ~/.config/systemd/user/bydawn.service" in shown.out
    assert tree_of(Path(linux.home.env["HOME"])) == before
    linux.fakes.set(manager="running")
    linux.service("install")
    linux.fakes.asked()
    shown = linux.service("remove", "--dry-run")
    assert f"disable --now bydawn.service\n    rm {linux.unit}\n    {RELOAD}\n" in shown.out
    assert (linux.fakes.asked(), linux.unit.exists()) == ([], True)


@pytest.mark.parametrize("words", [("install",), ("remove",)])
def test_without_a_running_systemd_it_says_what_to_do(linux: Machine, words: tuple[str, ...]) -> None:
    if words == ("remove",):
        linux.service("install")
    linux.fakes.set(manager="offline", calls=[])
    ended = linux.service(*words)
    assert (ended.code, is_error(ended.err), linux.fakes.asked()) == (2, True, [])
    assert re.search(r"error: systemd is not running (here|for this user)\n", ended.err)
    assert linux.unit.exists() is (words == ("remove",))
    status = linux.service("status")
    assert (status.code, "systemd is not running here" in status.out) == (0, True)
    assert "bydawn service install" not in status.out


def test_without_systemd_and_launchd_it_says_what_to_do(home: Home) -> None:
    machine = Machine(home)
    ended = machine.service("install")
    assert ended.code == 2
    assert "this machine has neither systemd nor launchd" in ended.err
    assert "`bydawn resume --all --foreground`" in ended.err
    assert (machine.service("status").code, machine.unit.exists()) == (0, False)
    assert "[Service]" in machine.service("install", "--dry-run").out


@pytest.mark.parametrize("words", [("install",), ("install", "--dry-run"), ("remove",), ("status",)])
def test_without_a_home_there_is_no_place_for_it(linux: Machine, words: tuple[str, ...]) -> None:
    ended = linux.service(*words, HOME="")
    assert (ended.code, "error: HOME is not set" in ended.err, linux.fakes.asked()) == (2, True, [])


def test_a_folder_that_is_not_absolute_is_refused(linux: Machine) -> None:
    ended = linux.service("install", CODEX_HOME="near")
    assert (ended.code, linux.unit.exists(), linux.fakes.asked()) == (2, False, [])
    assert "CODEX_HOME is 'near', which is not absolute" in ended.err


def test_an_agent_cannot_install_it_from_inside_a_round(linux: Machine) -> None:
    ended = linux.service("install", BYDAWN_COOKIE="x")
    assert (ended.code, linux.unit.exists(), linux.fakes.asked()) == (2, False, [])
    linux.service("install")
    assert (linux.service("remove", BYDAWN_COOKIE="x").code, linux.unit.exists()) == (2, True)


def test_only_places_are_kept_from_the_environment_and_no_secret(linux: Machine) -> None:
    kept = {"SHELL": "/bin/zsh", "CODEX_HOME": "/srv/codex", "CLAUDE_CONFIG_DIR": "/srv/claude"}
    own = str(linux.home.repo / "bin")  # what came with a clone is not for a service
    linux.home.env |= {"OPENAI_API_KEY": SECRET, "BYDAWN_NOTIFY": f"https://example.org/{SECRET}", "LANG": "C.UTF-8"}
    linux.path = f"{linux.fakes.folder}:{own}:/usr/bin"
    linux.service("install", **kept)
    text = linux.unit.read_text()
    assert SECRET not in text
    named = dict(line.split("=", 2)[1:] for line in text.splitlines() if line.startswith("Environment="))
    places = {name: linux.home.env[name] for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    assert named == {**kept, **places, "PATH": f"{linux.fakes.folder}:/usr/bin"}


def test_lingering_is_explained_only_where_it_is_known(linux: Machine) -> None:
    linux.fakes.set(linger="Linger=yes")
    installed = linux.service("install").out
    assert "It keeps running when you log out, and starts at boot." in installed
    assert "enable-linger" not in installed
    linux.fakes.set(linger="")
    assert "log out" not in linux.service("status").out
    assert json.loads(linux.service("status", "--json").out)["lingering"] is None


def test_on_a_mac_it_is_an_agent_of_launchd(mac: Machine) -> None:
    domain = f"gui/{os.getuid()}"
    state = str(mac.home.root / "my state")
    installed = mac.service("install", "--state-dir", state)
    assert (installed.code, installed.err) == (0, "")
    assert mac.fakes.asked() == [f"launchctl enable {domain}/bydawn", f"launchctl bootstrap {domain} {mac.agent}"]
    known = plistlib.loads(mac.agent.read_bytes())
    assert known["ProgramArguments"][1:] == ["resume", "--all", "--foreground", "--state-dir", state]
    assert known["StandardOutPath"] == f"{state}/service.log"
    shown = mac.service("status").out
    assert "✓ running (pid 4711)" in shown
    assert f"tail -n 50 '{state}/service.log'" in shown
    assert "Already installed and running" in mac.service("install", "--state-dir", state).out
    assert mac.fakes.asked() == []

    other = mac.service("install")
    assert (other.code, "Replaced and started again." in other.out) == (0, True)
    assert mac.fakes.asked()[0] == f"launchctl bootout {domain}/bydawn"
    mac.fakes.set(refuses="Bootstrap failed: 5: Input/output error")
    before = mac.agent.read_text()
    failed = mac.service("install", "--state-dir", state)
    assert (failed.code, "cause: Bootstrap failed" in failed.err, mac.agent.read_text()) == (1, True, before)
    mac.fakes.set(refuses="")
    assert mac.service("install").code == 0
    assert (mac.service("remove").code, mac.agent.exists(), mac.fakes.unit("bydawn")) == (0, False, {})


def test_without_a_session_at_the_screen_of_a_mac_it_says_what_to_do(mac: Machine) -> None:
    mac.fakes.set(manager="offline")
    ended = mac.service("install")
    assert (ended.code, mac.agent.exists()) == (2, False)
    assert "you are not logged in at the screen of this Mac" in ended.err
    assert mac.service("status").code == 0
