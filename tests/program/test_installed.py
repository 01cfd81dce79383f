"""Each command once as it is installed, from the start of the interpreter on: most other tests run a fork instead."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bydawn.cli.program import MODULES
from driving import DONE, OK, Home, said

ROOT = Path(__file__).parents[2]

WORDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "x", "-a", "AGENT", "--plain", "--new", "--name", "other"),
    "resume": ("resume", "repo", "--once", "--plain"),
    "demo": ("demo", "--plain"),
    "status": ("status",),
    "show": ("show", "repo"),
    "attach": ("attach", "repo"),
    "serve": ("serve", "--link"),
    "logs": ("logs", "repo"),
    "events": ("events", "repo"),
    "why": ("why", "repo"),
    "chat": ("chat", "repo", "what is left?"),
    "health": ("health",),
    "metrics": ("metrics",),
    "tell": ("tell", "repo", "a note"),
    "tasks": ("tasks", "list", "repo"),
    "pause": ("pause", "repo"),
    "stop": ("stop", "repo"),
    "dismiss": ("dismiss", "repo"),
    "clean": ("clean", "repo"),
    "agents": ("agents", "list"),
    "notify": ("notify", "test"),
    "service": ("service", "status"),
    "config": ("config", "show"),
    "trust": ("trust", "--list"),
    "edit": ("edit", "config"),
    "doctor": ("doctor",),
    "version": ("version",),
}


def story(root: Path, words: tuple[str, ...], *, real: bool) -> tuple[int, list[str], list[str]]:
    """A loop that has paused, then one command: how that ended, and what it said."""
    home = Home(root.resolve(), real=real)
    home.run(home.rounds([OK], [DONE]), "--once")
    agent = home.rounds([DONE])
    ended = home.bydawn(*(agent if word == "AGENT" else word for word in words), EDITOR="true")
    assert home.leave() == []
    return ended.code, words_of(ended.out, home), words_of(ended.err, home)


def words_of(text: str, home: Home) -> list[str]:
    """Without times and ids, which differ from run to run."""
    words = re.findall(r"\b[A-Za-z]{3,}\b", text.replace(str(home.root), ""))
    return [word for word in words if not set(word) <= set("abcdef")]


@pytest.mark.parametrize("command", MODULES)
def test_the_installed_command_says_what_a_fork_of_it_says(tmp_path: Path, command: str) -> None:
    # Names of one length: a long path is cut where the terminal ends.
    forked, installed = (story(tmp_path / name, WORDS[command], real=name == "real") for name in ("fork", "real"))
    assert installed == forked
    assert "Traceback" not in installed[2]


@pytest.mark.parametrize("words", [("list",), ("--help",), ("status", "--loop-id", "nobody")])
def test_the_installed_dialect_says_what_a_fork_of_it_says(home: Home, words: tuple[str, ...]) -> None:
    forked = said(home.start(*words, command="waylon-smithers"))
    home.real = True
    assert said(home.start(*words, command="waylon-smithers")) == forked


def test_a_link_with_another_name_is_told_the_names_of_the_tools(tmp_path: Path) -> None:
    (tmp_path / "butler").symlink_to(Path(sys.executable).with_name("waylon-smithers"))
    shown = subprocess.run([tmp_path / "butler", "list"], capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("error: 'butler' is none of the tools\n hint: call it codex-autorunner, ")


COMMANDS = ("bydawn", "codex-autorunner", "codex-loop", "rloop", "strict-agent-loop", "waylon-smithers")
EDITABLE = ("install", "--ignore-installed", "--no-deps", "--no-build-isolation", "--editable")


def test_an_editable_install_brings_every_command_and_the_source_compiles(tmp_path: Path) -> None:
    """C-019: without the dependencies, which pip would have to fetch."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *EDITABLE, ROOT, "--prefix", tmp_path)
    subprocess.run(pip, check=True, timeout=120)
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == list(COMMANDS)
    for command in COMMANDS:
        shown = subprocess.run([tmp_path / "bin" / command, "--version"], capture_output=True, text=True, timeout=60)
        assert (shown.returncode, shown.stderr) == (0, ""), command
        assert shown.stdout.startswith(command)
    subprocess.run([sys.executable, "-m", "compileall", "-q", ROOT / "src"], check=True, timeout=120)
