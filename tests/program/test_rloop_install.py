"""`install.sh` and `uninstall.sh` on a machine of small fakes, and what comes with them."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bydawn import __version__
from bydawn.core import tasks
from driving import Said

ROOT = Path(__file__).parents[2]
INSTALL, UNINSTALL = ROOT / "install.sh", ROOT / "uninstall.sh"
USES = ("sh", "cat", "chmod", "cp", "dirname", "env", "grep", "ln", "mkdir", "mktemp", "readlink", "rm", "rmdir", "tr")
MORE = ("bash", "sleep", "touch")  # what the fakes and the tests need
EXAMPLES = """\
  rloop start .
  rloop start ~/project --name myapp --max-iterations 50
  rloop status
  rloop logs myapp --follow
  rloop stop myapp
"""
PYTHON = f"""
case "$*" in
    *'sys.exit(sys.version_info'*) exit ${{TOO_OLD:-0}} ;;
    *ensurepip*) [ -z "${{BARE:-}}" ] || [ -e "$LOG.venv" ] ;;
    *python%d*) echo python3.12-venv ;;
    --version) echo Python 3.12.3 ;;
    '-m venv '*) mkdir "$3/bin" && cp "$FAKES/python" "$3/bin/python" ;;
    *) exec {sys.executable} -S "$@" ;;
esac"""
IN_ENVIRONMENT = """
case "$*" in
    *' pip '*) echo "pip $*" >>"$LOG"; [ -z "${PIP:-}" ] || eval "$PIP"; cp "$FAKES/rloop" "$FAKES/bydawn" "${0%/*}" ;;
    *state_folder*) echo "$HOME/.local/state/bydawn" ;;
    *) cat ;;
esac"""
RLOOP = """
case "$*" in
    --version) echo rloop 1.2.3 ;;
    completion*) echo "# $2 _RLOOP_COMPLETE" ;;
    'config init') mkdir -p "$HOME/.config/rloop" && touch "$HOME/.config/rloop/config.yaml" ;;
esac"""
APT = """
echo "apt $*" >>"$LOG"
case "$*" in *install*) cp "$FAKES/git" "${0%/*}"; touch "$LOG.venv" ;; esac"""


class Machine:
    """A machine with an empty home and few programs, most of them fakes that write down how they were called."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.path, self.log = root, root / "home", root / "path", root / "log"
        self.bin, self.venv = self.home / ".local/bin", self.home / ".local/share/rloop/venv"
        self.fakes = root / "fakes"
        for folder in (self.home, self.path, self.fakes):
            folder.mkdir(parents=True)
        self.log.touch()
        for name in (*USES, *MORE):
            (self.path / name).symlink_to(shutil.which(name) or name)
        fakes = {"python": IN_ENVIRONMENT, "rloop": RLOOP, "bydawn": 'echo "${LOOPS:-}"', "git": ""}
        for name, body in fakes.items():
            self.has(self.fakes / name, body)
        for name, body in {"python3": PYTHON, "git": "", "id": "echo ${ID:-1000}", "claude": ""}.items():
            self.has(self.path / name, body)
        self.env = {
            "PATH": f"{self.path}:{self.bin}",
            "HOME": str(self.home),
            "LOG": str(self.log),
            "FAKES": str(self.fakes),
            "TERM": "dumb",
        }

    def has(self, file: Path, body: str = "") -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!{shutil.which('sh')}\n{body}\n")
        file.chmod(0o755)

    def lacks(self, name: str) -> None:
        (self.path / name).unlink()

    def install(self, *before: str, **env: str) -> Said:
        return self.run(*before, str(INSTALL), **env)

    def uninstall(self, *words: str, **env: str) -> Said:
        return self.run(str(UNINSTALL), *words, **env)

    def run(self, *words: str, stdin: str = "", **env: str) -> Said:
        """Without a terminal."""
        ran = subprocess.run(
            words,
            env=self.env | env,
            input=stdin,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
            start_new_session=True,
        )
        return Said(ran.returncode, ran.stdout, ran.stderr)

    def answer(self, answer: str, script: Path, *words: str, **env: str) -> Said:
        """Through a pipe, with a person at the terminal who types before there is a question."""
        keyboard, screen = os.openpty()
        os.write(keyboard, f"{answer}\n".encode())
        ran = subprocess.run(
            [shutil.which("setsid") or "setsid", "--ctty", "sh", "-c", f'cat {script} | sh -s -- "$@"', "sh", *words],
            env=self.env | env,
            cwd=self.home,
            stdin=screen,
            stdout=screen,
            stderr=screen,
            timeout=60,
        )
        os.close(screen)
        shown = b""
        with suppress(OSError):  # that is how a terminal without a program ends
            while data := os.read(keyboard, 1 << 16):
                shown += data
        os.close(keyboard)
        return Said(ran.returncode, shown.decode().replace("\r\n", "\n"), "")

    @property
    def done(self) -> list[str]:
        return self.log.read_text().splitlines()

    @property
    def files(self) -> list[str]:
        """All that is in the home: folders end with a slash, links with where they lead."""
        return sorted(_called(path, self.home) for path in self.home.rglob("*"))

    @property
    def environments(self) -> list[Path]:
        return sorted(self.venv.parent.glob("venv-*"))


def _called(path: Path, home: Path) -> str:
    end = f" -> {path.readlink()}" if path.is_symlink() else "/" if path.is_dir() else ""
    return f"{path.relative_to(home)}{end}"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path.resolve())


# -- install -----------------------------------------------------------------------------------------------------------


def test_a_checkout_installs_itself_in_an_environment_of_its_own(machine: Machine) -> None:
    """R-002, R-030, R-031: bin folder, completions, default configuration, a message with the document's examples."""
    ended = machine.install()
    assert (ended.code, ended.err) == (0, "")
    [environment] = machine.environments
    assert machine.venv.readlink() == Path(environment.name)
    assert machine.done == [f"pip -m pip --quiet --disable-pip-version-check install --no-user -- {ROOT}"]
    for name in ("rloop", "bydawn"):
        assert (machine.bin / name).readlink() == machine.venv / "bin" / name
    share = machine.home / ".local/share"
    assert (share / "bash-completion/completions/rloop").read_text() == "# bash _RLOOP_COMPLETE\n"
    assert (share / "zsh/site-functions/_rloop").read_text() == "# zsh _RLOOP_COMPLETE\n"
    assert (machine.home / ".config/rloop/config.yaml").exists()
    assert f"Installed {machine.bin}/rloop (rloop 1.2.3).\n\n{EXAMPLES}" in ended.out
    assert "jq, tmux and curl are not needed." in ended.out
    assert "PATH" not in ended.out
    assert "npm" not in ended.out


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_through_a_pipe_the_wheel_of_its_release_is_installed_and_not_the_folder_one_is_in(
    machine: Machine, shell: str
) -> None:
    """R-030: one line with curl. The release workflow notes in the script which wheel is beside it."""
    wheel = f"file://{machine.root}/bydawn-1.2.3-py3-none-any.whl"
    flow = (ROOT / ".github/workflows/release.yml").read_text()
    [stamp] = re.findall(r"stamp\(\) \{ (sed .*); \}", flow)
    stamped = subprocess.run(
        ["sh", "-c", stamp, "sh", wheel], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    shutil.copy(ROOT / "pyproject.toml", machine.home)
    shutil.copy(INSTALL, machine.home)
    ended = machine.run(shell, "-s", stdin=stamped)
    assert (ended.code, ended.err) == (0, "")
    assert machine.done[0].endswith(f" -- {wheel}")
    assert (machine.bin / "rloop").exists()
    assert machine.run(shell, "-s", stdin=stamped, RLOOP_SOURCE="/x").code == 0
    assert machine.done[-1].endswith(" -- /x")


def test_a_script_of_no_release_says_so_through_a_pipe(machine: Machine) -> None:
    """It guesses no name in a registry: anybody could own that."""
    ended = machine.run("sh", "-s", stdin=INSTALL.read_text())
    assert (ended.code, machine.files) == (1, [])
    assert "is of no release" in ended.err and "RLOOP_SOURCE" in ended.err


def test_install_has_no_options(machine: Machine) -> None:
    refused = machine.run(str(INSTALL), "--help")
    assert (refused.code, machine.files) == (1, [])
    assert "unknown option: --help" in refused.err


def test_a_source_can_be_named(machine: Machine) -> None:
    assert machine.install(RLOOP_SOURCE="/x y/bydawn.whl").code == 0
    assert machine.done[0].endswith(" -- /x y/bydawn.whl")


def test_other_folders_can_be_named_but_not_by_halves(machine: Machine) -> None:
    refused = machine.install(RLOOP_HOME="here")
    assert (refused.code, machine.files) == (1, [])
    there = machine.root / "a place"
    ended = machine.install(RLOOP_HOME=str(there / "lib"), RLOOP_BIN=str(there / "bin"), ID="0")
    assert ended.code == 0
    assert (there / "bin/rloop").readlink() == there / "lib/venv/bin/rloop"
    assert (there / "share/bash-completion/completions/rloop").exists()
    assert not machine.venv.parent.exists()
    assert machine.uninstall(RLOOP_HOME=str(there / "lib"), RLOOP_BIN=str(there / "bin"), ID="0").code == 0
    assert [path.name for path in there.rglob("*") if not path.is_dir()] == []


def test_root_with_sudo_writes_no_settings_into_a_home(machine: Machine) -> None:
    there = {"RLOOP_HOME": str(machine.root / "opt"), "RLOOP_BIN": str(machine.root / "usr/bin")}
    assert machine.install(ID="0", SUDO_USER="ada", **there).code == 0
    assert machine.files == []


def test_running_it_again_upgrades_and_leaves_one_environment(machine: Machine) -> None:
    machine.install()
    [old] = machine.environments
    before = [name for name in machine.files if old.name not in name]
    assert machine.install().code == 0
    [new] = machine.environments
    assert new != old
    assert [name for name in machine.files if new.name not in name] == before
    assert machine.run("rloop", "--version").out == "rloop 1.2.3\n"


@pytest.mark.parametrize("pip", ["exit 1", "kill -TERM $PPID; exit 1", "cp $FAKES/git ${0%/*}/rloop; exit 1"])
def test_an_upgrade_that_fails_leaves_the_old_one_at_work(machine: Machine, pip: str) -> None:
    machine.install()
    before = machine.files
    ended = machine.install(PIP=pip)
    assert ended.code in (1, 130)
    assert machine.files == before
    assert machine.run("rloop", "--version").out == "rloop 1.2.3\n"


def test_a_first_installation_that_fails_leaves_nothing_but_empty_folders(machine: Machine) -> None:
    ended = machine.install(PIP="exit 1")
    assert ended.code == 1
    assert ended.err == f"error: cannot install {ROOT}\n hint: see above; nothing was changed\n"
    assert all(name.endswith("/") for name in machine.files)
    assert "rloop" not in str(machine.files)


@pytest.mark.parametrize("fails", ["--version", "--help"])
def test_a_package_without_a_working_rloop_is_not_installed(machine: Machine, fails: str) -> None:
    machine.has(machine.fakes / "rloop", f"test $1 != {fails}")
    ended = machine.install()
    assert (ended.code, machine.venv.exists(), machine.environments) == (1, False, [])
    assert "does not work" in ended.err


def test_loops_that_run_keep_the_version_that_they_were_started_with(machine: Machine) -> None:
    machine.install()
    kept = machine.environments
    ended = machine.install(LOOPS='  "alive": true')
    assert "Loops that are running stay with the old version." in ended.out
    assert len(machine.environments) == 2
    assert set(kept) < set(machine.environments)
    machine.install()
    assert len(machine.environments) == 1


def test_processes_of_others_keep_it_too_and_uninstall_names_them(machine: Machine) -> None:
    machine.install()
    [old] = machine.environments
    shutil.copy(shutil.which("sleep") or "", old / "bin/worker")
    worker = subprocess.Popen([old / "bin/worker", "60"])
    try:
        while b"worker" not in Path(f"/proc/{worker.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        machine.install()
        assert old in machine.environments
        refused = machine.uninstall()
        assert refused.code == 1
        assert str(worker.pid) in refused.err.split()
        assert old in machine.environments
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "folder"])
@pytest.mark.parametrize("name", ["rloop", "bydawn", "venv"])
def test_a_file_of_somebody_else_is_not_replaced(machine: Machine, name: str, kind: str) -> None:
    file = machine.venv if name == "venv" else machine.bin / name
    file.parent.mkdir(parents=True)
    match kind:
        case "file":
            file.write_text("mine")
        case "folder":
            file.mkdir()
        case "link":
            file.symlink_to(machine.path / "git")
        case _:
            file.symlink_to("/nonexistent/rloop")
    before = machine.files
    ended = machine.install()
    assert ended.code == 1
    assert ended.err.startswith(
        f"error: {file} is there already, and install.sh did not make it; nothing was changed\n"
    )
    assert (machine.files, machine.done) == (before, [])


def test_a_completion_of_somebody_else_is_left_alone(machine: Machine) -> None:
    mine = machine.home / ".local/share/bash-completion/completions/rloop"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    ended = machine.install()
    assert (ended.code, mine.read_text()) == (0, "mine")
    assert f"Left {mine} as it is" in ended.out
    machine.uninstall()
    assert mine.read_text() == "mine"


def test_a_completion_that_cannot_be_had_leaves_no_file(machine: Machine) -> None:
    machine.has(machine.fakes / "rloop", "test $1 != completion")
    ended = machine.install()
    assert ended.code == 0
    assert [name for name in machine.files if "completions/" in name] == []


def test_what_is_not_on_the_path_is_said(machine: Machine) -> None:
    assert f'  export PATH="{machine.bin}:$PATH"\n' in machine.install(PATH=str(machine.path)).out
    machine.has(machine.path / "rloop")
    assert f"Another rloop comes first on your PATH: {machine.path}/rloop\n" in machine.install().out


def test_without_an_agent_its_install_line_is_printed_and_it_goes_on(machine: Machine) -> None:
    """R-031: a missing claude."""
    machine.lacks("claude")
    ended = machine.install()
    assert ended.code == 0
    assert "  npm install -g @anthropic-ai/claude-code\n" in ended.out


# -- what it needs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lacks", "env", "missing", "packages"),
    [
        ("git", {}, "git", "git"),
        ("", {"BARE": "1"}, "the venv module of python3", "python3.12-venv"),
        ("", {"TOO_OLD": "1"}, "Python 3.11 or newer", "python3 python3-venv"),
        ("git", {"BARE": "1"}, "the venv module of python3 and git", "python3.12-venv git"),
    ],
)
def test_without_a_terminal_it_prints_the_line_and_asks_nothing(
    machine: Machine, lacks: str, env: dict[str, str], missing: str, packages: str
) -> None:
    """R-031: Python, its venv module and git."""
    machine.has(machine.path / "apt-get", APT)
    if lacks:
        machine.lacks(lacks)
    ended = machine.run("sh", "-s", stdin=INSTALL.read_text(), RLOOP_SOURCE="/x", **env)
    assert ended.code == 1
    assert ended.out == f"rloop needs {missing}:\n  sudo apt-get update; sudo apt-get install -y {packages}\n"
    assert ended.err == f"error: {missing} not found\n hint: run that line, then install.sh again\n"
    assert (machine.files, machine.done) == ([], [])


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("", 1), ("y", 0)])
def test_through_a_pipe_it_asks_on_the_terminal(machine: Machine, answer: str, code: int) -> None:
    machine.has(machine.path / "apt-get", APT)
    machine.has(machine.path / "sudo", 'exec "$@"')
    machine.lacks("git")
    asked = machine.answer(answer, INSTALL, RLOOP_SOURCE="/x")
    assert asked.code == code
    assert "  sudo apt-get update; sudo apt-get install -y git\nRun that now? [y/N]" in asked.out
    apt = [line for line in machine.done if line.startswith("apt")]
    assert apt == ([] if code else ["apt update -qq", "apt install -y -qq git"])
    assert (machine.bin / "rloop").exists() == (code == 0)


def test_root_needs_no_sudo_and_yes_can_be_said_before(machine: Machine) -> None:
    machine.has(machine.path / "apt-get", APT)
    machine.lacks("git")
    there = {"RLOOP_HOME": str(machine.root / "opt"), "RLOOP_BIN": str(machine.root / "usr/bin")}
    assert machine.install(BARE="1", ID="0", RLOOP_YES="1", **there).code == 0
    assert machine.done[:2] == ["apt update -qq", "apt install -y -qq python3.12-venv git"]


def test_what_the_package_manager_did_not_bring_is_still_missing(machine: Machine) -> None:
    machine.has(machine.path / "apt-get")
    machine.has(machine.path / "sudo")
    machine.lacks("git")
    ended = machine.install(RLOOP_YES="1")
    assert (ended.code, machine.files) == (1, [])
    assert "error: git not found, even now\n" in ended.err


def test_on_a_mac_brew_is_asked_for_it(machine: Machine) -> None:
    machine.has(machine.path / "brew")
    machine.lacks("git")
    ended = machine.install(TOO_OLD="1")
    assert (ended.code, ended.out) == (1, "rloop needs Python 3.11 or newer and git:\n  brew install python git\n")


def test_without_a_package_manager_that_it_knows_it_says_what_is_missing(machine: Machine) -> None:
    machine.lacks("git")
    ended = machine.install()
    assert (ended.code, ended.out, machine.files) == (1, "", [])
    assert ended.err.startswith("error: git not found\n hint: install it with ")


@pytest.mark.parametrize("script", [INSTALL, UNINSTALL])
def test_a_download_that_was_cut_off_runs_nothing(machine: Machine, script: Path) -> None:
    machine.install()
    machine.log.write_text("")
    before, text = machine.files, script.read_text()
    assert text.endswith('\nmain "$@" </dev/null\n')
    body = text.rindex("\nmain ")
    for cut in {*range(0, body, 397), *range(body - 3, body + 4)}:
        machine.run("sh", "-s", stdin=text[:cut], RLOOP_YES="1")
        assert (machine.files, machine.done) == (before, []), text[:cut][-80:]


# -- uninstall ---------------------------------------------------------------------------------------------------------


def used(machine: Machine) -> list[str]:
    """Installed, and with settings, a session and a log; those files."""
    for name in (".config/rloop/config.yaml", ".local/state/bydawn/loops/x/ledger.jsonl", "app1/.rloop/ralph.log"):
        (machine.home / name).parent.mkdir(parents=True)
        (machine.home / name).touch()
    before = [name for name in machine.files if not name.endswith("/")]
    assert machine.install().code == 0
    return before


def left(machine: Machine) -> list[str]:
    return [name for name in machine.files if not name.endswith("/")]


def test_uninstall_removes_what_install_made_and_keeps_what_is_the_users(machine: Machine) -> None:
    """R-032."""
    mine = used(machine)
    ended = machine.uninstall()
    assert (ended.code, left(machine)) == (0, mine)
    assert not machine.venv.parent.exists()
    assert f"stay: {machine.home}/.config/rloop, {machine.home}/.local/state/bydawn" in ended.out
    again = machine.uninstall()
    assert (again.code, left(machine)) == (1, mine)
    assert again.err.startswith(f"error: rloop is not in {machine.venv.parent}\n")


def test_uninstall_removes_only_links_and_folders_that_install_made(machine: Machine) -> None:
    machine.install()
    (machine.bin / "rloop").unlink()
    machine.has(machine.bin / "rloop")
    mine = machine.venv.with_name("venv-mine")
    mine.mkdir()
    assert machine.uninstall().code == 0
    assert (machine.bin / "rloop").exists()
    assert machine.environments == [mine]


@pytest.mark.parametrize("program", ["venv/bin/bydawn", "venv-1234/bin/codex-loop", "bin/bydawn"])
def test_uninstall_refuses_while_a_service_would_start_it(machine: Machine, program: str) -> None:
    used(machine)
    place = machine.bin.parent if program.startswith("bin") else machine.venv.parent
    unit = machine.home / ".config/systemd/user/bydawn.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(f"[Service]\nExecStart={place / program} resume --all --foreground\n")
    before = machine.files
    refused = machine.uninstall()
    assert (refused.code, machine.files) == (1, before)
    assert refused.err == (
        f"error: a service starts it, so nothing was removed: {unit}\n hint: {machine.bin}/bydawn service remove\n"
    )
    unit.write_text("[Service]\nExecStart=/usr/bin/other\n")
    assert machine.uninstall().code == 0


def test_uninstall_refuses_while_loops_run_and_names_them(machine: Machine) -> None:
    used(machine)
    before = machine.files
    refused = machine.uninstall("--purge", LOOPS="app1 in /projects/app1", RLOOP_YES="1")  # as its Python prints them
    assert (refused.code, machine.files) == (1, before)
    assert refused.err == (
        "error: still running, so nothing was removed: app1 in /projects/app1\n"
        f" hint: {machine.bin}/bydawn stop --all\n"
    )


def test_an_environment_that_is_damaged_can_be_removed(machine: Machine) -> None:
    mine = used(machine)
    for file in machine.venv.joinpath("bin").iterdir():
        file.unlink()
    assert (machine.uninstall().code, left(machine)) == (0, mine)


def test_purge_asks_and_without_a_terminal_removes_nothing(machine: Machine) -> None:
    used(machine)
    before = machine.files
    refused = machine.uninstall("--purge")
    assert (refused.code, machine.files) == (1, before)
    assert refused.err.startswith("error: nothing was removed: --purge was not confirmed\n hint: ")
    asked = machine.answer("n", UNINSTALL, "--purge")
    assert (asked.code, machine.files) == (1, before)
    assert f"Delete {machine.home}/.config/rloop and {machine.home}/.local/state/bydawn, with" in asked.out
    assert machine.answer("y", UNINSTALL, "--purge").code == 0
    assert left(machine) == ["app1/.rloop/ralph.log"]


@pytest.mark.parametrize("words", [("--purge", "x"), ("-y",), ("purge",)])
def test_uninstall_refuses_words_that_it_does_not_know(machine: Machine, words: tuple[str, ...]) -> None:
    machine.install()
    before = machine.files
    refused = machine.uninstall(*words)
    assert (refused.code, machine.files) == (1, before)
    assert " hint: uninstall.sh [--purge]\n" in refused.err


# -- what comes with it ------------------------------------------------------------------------------------------------


def test_every_box_of_the_example_is_an_open_task() -> None:
    text = (ROOT / "examples/PRD.md").read_text()
    found = tasks.read(text)
    assert (found.problem, found.warnings) == (None, ())
    assert len(found.items) == text.count("- [ ] ") > 10
    assert any(task.within for task in found.items)


def test_a_version_tag_makes_a_release_with_the_scripts_and_the_package() -> None:
    """R-032: no third-party action, and only the last step may write."""
    flow = YAML(typ="safe").load((ROOT / ".github/workflows/release.yml").read_text())
    build, release = flow["jobs"]["build"], flow["jobs"]["release"]
    assert flow["on"] == {"push": {"tags": ["v*"]}}
    assert (flow["permissions"], build["permissions"]) == ({}, {"contents": "read"})
    assert (release["needs"], release["permissions"]) == ("build", {"contents": "write"})
    steps = [*build["steps"], *release["steps"]]
    assert all(step["uses"].startswith("actions/") for step in steps if "uses" in step)
    assert not any("${{" in step.get("run", "") for step in steps)
    [check] = (step["run"] for step in steps if step.get("name") == "Check that the tag is the version")
    assert "cp install.sh uninstall.sh dist/" in [step.get("run") for step in build["steps"]]
    assert "dist/*" in release["steps"][-1]["run"]
    assert f"bydawn-{__version__}-py3-none-any.whl" in check.replace("${GITHUB_REF_NAME#v}", __version__)
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
