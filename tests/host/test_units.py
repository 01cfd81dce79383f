"""Units as files: systemd and launchd read back exactly what was meant, and nothing else gets in."""

import os
import plistlib
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.host.launchd import Launchd, launchd_text
from bydawn.host.systemd import Systemd, not_running, systemd_text
from bydawn.host.units import Unit, environment, is_installed

FILES = Path(__file__).with_name("files")
PLAIN = Unit(
    name="bydawn",
    what="Continues loops",
    words=("/home/ada/.local/bin/bydawn", "resume", "--all", "--foreground"),
    folder="/home/ada",
    env={"PATH": "/usr/local/bin:/usr/bin", "HOME": "/home/ada"},
)
ODD = Unit(
    name="codex-loop-1a2b3c4d5e6f",
    what='50 % "of" it',
    words=("/home/ada/$mine/a b/codex-loop", "daemon", "--to", 'C:\\ "x" $HOME %h ; é', ";", "", "it's"),
    folder='/home/ada/50 % "of" it',
    env={"PATH": "/opt/a b:/usr/bin", "ODD": '\\ "x" $HOME %h'},
    log="/home/ada/50 % of it/service.log",
)
UNITS = {"plain": replace(PLAIN, log=""), "odd": ODD}


@pytest.mark.parametrize("name", UNITS)
def test_the_text_of_a_unit_is_the_one_on_file(name: str) -> None:
    assert systemd_text(UNITS[name]) == (FILES / f"{name}.service").read_text()
    logged = replace(UNITS[name], log=UNITS[name].log or "/home/ada/service.log")
    assert launchd_text(logged) == (FILES / f"{name}.plist").read_text()


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("--all", "--all"),
        ("a b", '"a b"'),
        ("", '""'),
        (";", '";"'),  # alone, it would begin another command
        ('"', '"\\""'),
        ("'", '"\'"'),
        ("\\", '"\\\\"'),
        ("50%", "50%%"),
        ("%h", "%%h"),
        ("$HOME", "$$HOME"),
        ("${HOME}", '"$${HOME}"'),
        ("#", '"#"'),
        ("é", "é"),
        ("-", "-"),
        ("@x", "@x"),
    ],
)
def test_a_word_is_written_so_that_systemd_takes_it_as_it_is(word: str, written: str) -> None:
    text = systemd_text(replace(PLAIN, words=("/bin/true", word)))
    assert f"\nExecStart=/bin/true {written}\n" in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("words", ("/bin/a\nExecStartPre=/bin/evil",)),
        ("words", ("/bin/true", "a\0b")),
        ("words", ("/bin/true", "\udcff")),  # a name that is not UTF-8
        ("folder", "/home/ada\n"),
        ("log", "/tmp/a\rb"),
        ("what", "two\nlines"),
        ("env", {"PATH": "/bin\n[Service]"}),
        ("env", {"PATH": "/bin\uffff"}),  # not in XML
    ],
)
def test_what_neither_format_can_hold_is_refused(field: str, value: object) -> None:
    with pytest.raises(UserError, match="a service cannot use this path"):
        Unit(**{**{name: getattr(PLAIN, name) for name in PLAIN.__struct_fields__}, field: value})


@pytest.mark.parametrize("folder", ["/home/ada ", "/home/ada\\"])
def test_a_path_that_systemd_would_read_differently_is_refused(folder: str) -> None:
    with pytest.raises(UserError, match="a service cannot use"):
        systemd_text(replace(PLAIN, folder=folder))


# -- what systemd and plistlib read ------------------------------------------------------------------------------------


class Read:
    """What systemd's own parser makes of a unit: `systemd-analyze verify` prints it when it is asked for details."""

    def __init__(self, text: str) -> None:
        with TemporaryDirectory(prefix="by-unit-") as folder:
            path = Path(folder) / "it.service"
            path.write_text(text)
            env = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_RUNTIME_DIR": folder, "LC_ALL": "C.UTF-8"}
            verify = ("systemd-analyze", "--user", "verify", str(path))
            self.complaints = subprocess.run(verify, env=env, capture_output=True, text=True, timeout=60).stderr
            env["SYSTEMD_LOG_LEVEL"] = "debug"
            detailed = subprocess.run(verify, env=env, capture_output=True, text=True, timeout=60).stdout
        lines = [line.lstrip("\t").partition(": ") for line in detailed.splitlines()]
        self.values = [(name, value) for name, _, value in lines]

    def all(self, name: str) -> list[str]:
        return [value for each, value in self.values if each == name]

    def words(self) -> list[str]:
        """Of the one command: words that need it are in quotes. Variables are only replaced when it is started."""
        [line] = self.all("Command Line")
        found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
        return [bare or re.sub(r"\\(.)", r"\1", quoted).replace("$$", "$") for quoted, bare in found]


@pytest.mark.usefixtures("systemd_analyze")
@pytest.mark.parametrize("program", ["/bin/true", "a program"])
def test_systemd_has_nothing_to_say_against_a_unit(tmp_path: Path, program: str) -> None:
    path = Path(program) if program.startswith("/") else tmp_path / "50% $x" / program
    if not path.exists():
        path.parent.mkdir()
        path.symlink_to("/bin/true")
    read = Read(systemd_text(replace(ODD, words=(str(path), *ODD.words[1:]))))
    assert read.complaints == ""
    assert read.words()[1:] == [*ODD.words[1:]]
    assert (read.all("WorkingDirectory"), read.all("Description")) == ([ODD.folder], [ODD.what])
    assert read.all("Environment") == [f"{name}={value}" for name, value in ODD.env.items()]
    assert read.all("StandardOutputFileToAppend") == read.all("StandardErrorFileToAppend") == [ODD.log]
    kept = ("KillMode", "Restart", "RestartSec", "TimeoutStopSec", "Type", "OOMPolicy")
    assert [read.all(name) for name in kept] == [
        *(["control-group"], ["on-failure"], ["5s"], ["30s"], ["exec"], ["continue"])
    ]


TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


@pytest.mark.usefixtures("systemd_analyze")
@given(st.lists(TEXTS, min_size=1, max_size=6), TEXTS)
def test_systemd_reads_back_every_word(words: list[str], value: str) -> None:
    read = Read(systemd_text(replace(PLAIN, words=("/bin/true", *words), env={"X": value})))
    assert (read.complaints, read.words()) == ("", ["/bin/true", *words])
    assert read.all("Environment") == [f"X={value}"]


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6))
def test_launchd_reads_back_every_word(words: list[str]) -> None:
    try:
        unit = replace(PLAIN, words=("/bin/true", *words), log="/tmp/log")
    except UserError:
        return
    assert plistlib.loads(launchd_text(unit).encode())["ProgramArguments"] == ["/bin/true", *words]


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_a_unit_gets_places_from_the_environment_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    env = {"HOME": "/home/ada", "SHELL": "/bin/sh", "CODEX_HOME": "", "OPENAI_API_KEY": "x", "GITHUB_TOKEN": "y"}
    assert {**environment(env), "PATH": ""} == {"HOME": "/home/ada", "SHELL": "/bin/sh", "PATH": ""}
    with pytest.raises(UserError, match="XDG_STATE_HOME is 'state', which is not absolute"):
        environment({**env, "XDG_STATE_HOME": "state"})


@pytest.mark.parametrize(
    ("booted", "wsl", "hint"),
    [
        (True, False, "log in as this user"),
        (True, True, "log in as this user"),
        (False, True, "/etc/wsl.conf"),
        (False, False, "`it now` another way, such as from your container's own init"),
    ],
)
def test_where_systemd_is_not_running_the_hint_fits_the_machine(booted: bool, wsl: bool, hint: str) -> None:
    assert hint in not_running("it now", booted=booted, wsl=wsl).hint


def test_a_unit_is_installed_if_its_file_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert not is_installed("it")
    for manager in (Systemd(""), Launchd("")):
        path = manager.place("it")
        path.parent.mkdir(parents=True)
        path.touch()
    assert is_installed("it")
    monkeypatch.delenv("HOME")
    assert not is_installed("it")
