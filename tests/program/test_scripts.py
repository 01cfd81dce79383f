"""`scripts/test` installs only what the chosen tests need, says so first, and asks where somebody can answer."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from driving import Said

SCRIPT = Path(__file__).parents[2] / "scripts/test"
USES = ("bash", "cat", "dirname", "sed", "tr", "env")
PYTHON = 'case "$*" in *--needs*) echo "needs: $NEEDS" ;; *) echo "pytest: $*" ;; esac'
AGENTS = 'if [ "${1:-}" = --missing ]; then echo "$LACKS"; else echo agents >>"$LOG"; fi'
ORIGINAL = 'if [ "${1:-}" = --missing ]; then echo "$LACKS_ORIGINAL"; else echo original >>"$LOG"; fi'
SETUP = 'if [ "$1" = --ready ]; then exit ${UNREADY:-0}; else echo "setup $1" >>"$LOG"; fi'
APT = 'echo "apt $*" >>"$LOG"'


class Machine:
    """A machine on which hardly anything is installed, and a copy of the script."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.log.touch()
        path = root / "bin"
        self.env = {"PATH": str(path), "LOG": str(self.log), "NEEDS": "", "LACKS": "", "TERM": "dumb"}
        self.env["LACKS_ORIGINAL"] = ""
        for folder in ("bin", "scripts", ".venv/bin"):
            (root / folder).mkdir(parents=True)
        for name in USES:
            (path / name).symlink_to(shutil.which(name) or name)
        shutil.copy(SCRIPT, root / "scripts/test")
        scripts = {"agents": AGENTS, "original": ORIGINAL, "setup": SETUP}
        for name, body in scripts.items():
            self.has(f"scripts/{name}", body)
        self.has(".venv/bin/python", PYTHON)
        for name in ("ruff", "mypy", "lint-imports", "tail"):
            self.has(f".venv/bin/{name}", "")
        self.has("bin/id", "echo 0")
        self.has("bin/apt-get", APT)

    def has(self, name: str, body: str = "") -> None:
        (self.root / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
        (self.root / name).chmod(0o755)

    @property
    def done(self) -> list[str]:
        return self.log.read_text().splitlines()

    def test(self, *words: str, **env: str) -> Said:
        ran = self._run(words, env, subprocess.DEVNULL, subprocess.PIPE)
        return Said(ran.returncode, ran.stdout, ran.stderr)

    def answer(self, answer: str, *words: str, **env: str) -> Said:
        """With a person at a terminal, who types before there is a question."""
        keyboard, screen = os.openpty()
        os.write(keyboard, f"{answer}\n".encode())
        ran = self._run(words, env, screen, screen)
        os.close(screen)
        shown = b""
        with suppress(OSError):  # that is how a terminal without a program ends
            while data := os.read(keyboard, 1 << 16):
                shown += data
        os.close(keyboard)
        return Said(ran.returncode, ran.stdout, shown.decode())

    def _run(self, words: tuple[str, ...], env: dict[str, str], stdin: int, stderr: int) -> CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "scripts/test"), *words],
            env=self.env | env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=60,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_installs_nothing(machine: Machine, word: str) -> None:
    helped = machine.test(word, UNREADY="1")
    assert (helped.code, machine.done) == (0, [])
    assert helped.out.startswith("Usage: scripts/test ")


def test_chosen_tests_that_need_no_more_than_python_install_nothing_more(machine: Machine) -> None:
    ended = machine.test("tests/core", LACKS="Codex and Claude Code: about 700 MB by npm")
    assert (ended.code, ended.err, machine.done) == (0, "", ["setup run", "setup dev"])
    assert ended.out.endswith("--hypothesis-profile gate tests/core\n")


def test_what_chosen_tests_need_is_announced_and_installed(machine: Machine) -> None:
    ended = machine.test("-k", "syscall", NEEDS="strace")
    assert "To be installed first:\n  Debian package: strace\n" in ended.err
    assert machine.done[2:] == ["apt update -qq", "apt install -y -qq strace"]
    assert ended.code == 0


def test_the_real_agents_are_installed_for_the_tests_that_drive_them(machine: Machine) -> None:
    lacks = "Debian package: socat\nCodex and Claude Code: about 700 MB by npm"
    ended = machine.test("tests/real", NEEDS="agents_bin", LACKS=lacks)
    assert "about 700 MB" in ended.err
    assert machine.done[2:] == ["apt update -qq", "apt install -y -qq socat", "agents"]


def test_the_original_is_installed_for_the_test_that_sets_it_beside_ours(machine: Machine) -> None:
    ended = machine.test("tests/real", NEEDS="original", LACKS_ORIGINAL="codex-autorunner 0.1.0: about 13 MB by pip")
    assert "about 13 MB" in ended.err
    assert machine.done[2:] == ["original"]


def test_a_whole_run_needs_everything_and_shows_the_slowest(machine: Machine) -> None:
    machine.has("bin/tmux")
    machine.has("bin/bwrap")
    machine.has("bin/chromium")
    machine.has("bin/jq")
    machine.has("bin/systemd-analyze")
    ended = machine.test(UNREADY="1", LACKS="Codex and Claude Code: about 700 MB by npm")
    rows = [
        "Python packages: about 150 MB in .venv",
        "Codex and Claude Code: about 700 MB by npm",
        "Debian package: strace",
    ]
    assert ended.err.splitlines() == ["To be installed first:", *(f"  {row}" for row in rows)]
    assert "--durations=10" in ended.out
    assert machine.done == ["setup run", "setup dev", "apt update -qq", "apt install -y -qq strace", "agents"]


def test_deep_tries_more_examples(machine: Machine) -> None:
    assert "--hypothesis-profile deep tests/core" in machine.test("--deep", "tests/core").out


def test_who_may_not_install_is_told_what_to_type(machine: Machine) -> None:
    machine.has("bin/id", "echo 1000")
    ended = machine.test("tests/faults", NEEDS="strace tmux")
    assert (ended.code, "pytest" in ended.out) == (1, False)
    assert ended.err.endswith(" hint: sudo apt-get install strace tmux\n")


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("", 1), ("y", 0)])
def test_on_a_terminal_it_asks_first(machine: Machine, answer: str, code: int) -> None:
    asked = machine.answer(answer, "tests/faults", NEEDS="strace")
    assert asked.code == code
    assert "Install? [y/N]" in asked.err
    assert ("apt install -y -qq strace" in machine.done) == (code == 0) == ("pytest" in asked.out)


def test_yes_is_an_answer_in_advance(machine: Machine) -> None:
    asked = machine.answer("n", "--yes", "tests/faults", NEEDS="strace")
    assert (asked.code, "[y/N]" in asked.err) == (0, False)
    assert "apt install -y -qq strace" in machine.done
