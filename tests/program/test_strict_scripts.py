"""The scripts of strict-agent-loop's skill: any Python since 3.8 runs them, and they become the installed command."""

import os
import shutil
import signal
import subprocess
import sys
from glob import glob
from pathlib import Path
from zipfile import ZipFile

import pytest

from bydawn.operations.dialects.skills import source_of
from bydawn.operations.installed_folder import files_of
from driving import Said, wait_for

ROOT = Path(__file__).parents[2]
SCRIPTS = (
    *("append_event", "check_stop", "compact_state", "init_state", "list_tasks"),
    *("report_status", "show_task", "supervise", "update_state"),
)
FAKE = '#!/bin/sh\nprintf "%s|" "{}" "$@"\ncat\nexit 42\n'


def pythons() -> list[str]:
    """One of each version since 3.8 that this machine has."""
    found = {f"3.{sys.version_info.minor}": sys.executable}
    for minor in range(8, 40):
        here = shutil.which(f"python3.{minor}", path="/usr/local/bin:/usr/bin:/opt/homebrew/bin")
        others = glob(f"{os.environ.get('PYENV_ROOT') or Path.home() / '.pyenv'}/versions/3.{minor}.*/bin/python3")
        for python in filter(None, (here, *others)):
            found.setdefault(f"3.{minor}", python)
    return [*found.values()]


class Installed:
    """A copy of the scripts, Pythons without the command beside them, and up to three places that have it."""

    def __init__(self, root: Path) -> None:
        self.root, self.scripts = root, root / "skill/scripts"
        shutil.copytree(
            source_of("strict-agent-loop") / "scripts", self.scripts, ignore=shutil.ignore_patterns("__pycache__")
        )
        for name in ("venv", "written", "path"):
            (root / name).mkdir()
        os.symlink(sys.executable, root / "venv/python")
        (self.scripts / "command.path").write_text(f"{root}/written/strict-agent-loop\n")

    def has(self, *places: str) -> None:
        for place in places:
            fake = self.root / place / "strict-agent-loop"
            fake.write_text(FAKE.format(place))
            fake.chmod(0o755)

    def run(self, script: str, *words: str, python: str = "venv/python", stdin: str = "", **env: str) -> Said:
        env = {"PATH": f"{self.root}/path:/usr/bin:/bin", **env}
        argv = [str(self.root / python), str(self.scripts / f"{script}.py"), *words]
        ran = subprocess.run(argv, env=env, cwd=self.root, input=stdin, capture_output=True, text=True, timeout=60)
        return Said(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.mark.parametrize("python", pythons(), ids=lambda path: path.strip("/").replace("/", "-"))
def test_each_script_becomes_its_command_under_every_python(installed: Installed, python: str) -> None:
    """S-017: arguments, input, output and exit code are the command's, and no bytecode is left in the repository."""
    installed.has("written")
    os.symlink(python, installed.root / "venv/tested")  # our own interpreter has the real command beside it
    before = sorted(installed.root.rglob("*"))
    for script in SCRIPTS:
        ended = installed.run(script, "--state", "a b", "--x=", python="venv/tested", stdin="in")
        name = script.replace("_", "-")
        assert ended == Said(42, f"written|{name}|--state|a b|--x=|in", ""), python
    assert sorted(installed.root.rglob("*")) == before


def test_there_is_a_script_for_each_of_the_nine_operations() -> None:
    """S-017."""
    found = files_of(source_of("strict-agent-loop") / "scripts")
    assert sorted(found) == [".gitignore", "_command.py", *(f"{name}.py" for name in SCRIPTS)]
    for name in SCRIPTS:
        assert os.access(source_of("strict-agent-loop") / f"scripts/{name}.py", os.X_OK)


@pytest.mark.parametrize(
    ("places", "taken"),
    [(("venv", "written", "path"), "venv"), (("written", "path"), "written"), (("path",), "path")],
)
def test_the_nearest_command_is_taken(installed: Installed, places: tuple[str, ...], taken: str) -> None:
    installed.has(*places)
    assert installed.run("list_tasks").out == f"{taken}|list-tasks|"


def test_a_command_whose_interpreter_is_gone_is_passed_over(installed: Installed) -> None:
    installed.has("venv", "path")
    (installed.root / "venv/strict-agent-loop").write_text("#!/nonexistent/python\n")
    assert installed.run("list_tasks").out == "path|list-tasks|"


@pytest.mark.parametrize("written", ["", "strict-agent-loop\n", "\xff\0\n", None])
def test_without_the_command_one_sentence_says_how_to_install_it(installed: Installed, written: str | None) -> None:
    """Never 1 or 2, which are answers of check_stop; and nothing of the current folder is run."""
    place = installed.scripts / "command.path"
    place.unlink() if written is None else place.write_text(written, encoding="latin-1")
    installed.has(".")
    ended = installed.run("check_stop", PATH=f":.:{installed.root}/path")
    assert ended == Said(
        127,
        "",
        "error: the command strict-agent-loop was not found; it is part of bydawn\n"
        " hint: `pip install bydawn`, or put the folder with that command on the PATH\n",
    )


@pytest.mark.parametrize("env", [{"PYTHONSAFEPATH": "1"}, {"PYTHONDONTWRITEBYTECODE": ""}])
def test_settings_of_the_interpreter_make_no_difference(installed: Installed, env: dict[str, str]) -> None:
    installed.has("path")
    assert installed.run("show_task", **env).out == "path|show-task|"
    assert not [*installed.root.rglob("__pycache__")]


def test_a_signal_reaches_the_command_itself(installed: Installed) -> None:
    """S-044: the script is replaced, so its process id is the supervisor's."""
    fake = installed.root / "venv/strict-agent-loop"
    fake.write_text("#!/bin/sh\ntrap 'exit 130' TERM\ntouch began\nwhile :; do sleep 0.01; done\n")
    fake.chmod(0o755)
    argv = [installed.root / "venv/python", installed.scripts / "supervise.py"]
    with subprocess.Popen(argv, cwd=installed.root) as process:
        wait_for((installed.root / "began").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 130


# -- the lint target ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "complains"), [("skill/scripts/x.py", True), ("x.py", False)])
def test_newer_syntax_does_not_pass_the_linter(name: str, complains: bool) -> None:
    text = "def first(each: object) -> None:\n    match each:\n        case 1:\n            pass\n"
    path = f"src/bydawn/dialects/strict_agent_loop/{name}"
    ruff = [str(Path(sys.executable).with_name("ruff")), "check", "--no-cache", "--stdin-filename", path, "-"]
    ended = subprocess.run(ruff, cwd=ROOT, input=text, capture_output=True, text=True, timeout=60)
    assert ("on Python 3.8" in ended.stdout) is complains


# -- what is installed -------------------------------------------------------------------------------------------------


def test_the_package_has_every_skill(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as package:
        packaged = package.namelist()
    for dialect in ("codex-loop", "strict-agent-loop"):
        prefix = f"bydawn/dialects/{dialect.replace('-', '_')}/skill/"
        names = [name.removeprefix(prefix) for name in packaged if name.startswith(prefix)]
        assert sorted(names) == sorted(files_of(source_of(dialect)))
