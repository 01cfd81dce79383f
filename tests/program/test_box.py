"""Checks in a box: what the agent wrote can write to the workspace and to little else, and none of it survives."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bydawn.core.agent import Ladder
from bydawn.core.loop import CheckWhere, CommandCheck
from bydawn.core.redact import Secrets
from bydawn.core.values import Verdict
from bydawn.process import box, shell
from bydawn.process.box import Box, Within, refused_folder
from bydawn.process.checks import ShellChecks
from bydawn.process.child import ChildProcesses
from bydawn.process.shell import Shell
from bydawn.store.folder import LoopFolder
from bydawn.store.rounds import Rounds
from bydawn.system import kernel
from bydawn.worktree.workspace import GitWorkspace
from driving import DONE, HANG, OK, Home, Said, kill_both, name_of, said, wait_for

NAP = str(10**7 + os.getpid())  # seconds that nobody else on this machine sleeps
pytestmark = pytest.mark.usefixtures("bwrap")


class Place:
    """A workspace, the state folder with a loop in it, and somebody's home."""

    def __init__(self, root: Path) -> None:
        self.work, self.state, self.home = (root / name for name in ("work", "state", "home"))
        self.loop = LoopFolder(self.state / "loops/work-1/night")
        for folder in (self.work, self.loop.path, self.home / ".cargo"):
            folder.mkdir(parents=True)

    def checks(self, timeout: float = 30.0, *, clean: bool = False, writable: tuple[str, ...] = ()) -> ShellChecks:
        kept = GitWorkspace(self.work, self.loop.git)
        found = box.find(self.work, [self.state], writable)
        assert isinstance(found, Box), found
        files = Rounds(self.loop, Secrets({}))
        processes = ChildProcesses((), os.environ)
        return ShellChecks(
            Shell(processes=processes, files=files, env={}, timeout=timeout, reveal=str),
            self.work,
            where=CheckWhere.CLEAN if clean else CheckWhere.WORKSPACE,
            checkout=kept.checkout,
            within=lambda: Within.of(kept.ignored_folders(), self.loop.builds),
            box=found,
            temporary=self.loop.temporary,
        )

    def run(self, checks: ShellChecks, *commands: str, tree: str = "") -> tuple[Verdict, ...]:
        return checks.run([CommandCheck(command=each) for each in commands], 1, tree, lambda: False)

    def said(self, number: int = 1) -> str:
        return self.loop.round_file(1, f"check-{number}.txt").read_text()


@pytest.fixture
def root() -> Iterator[Path]:
    """Not in the temporary folder, of which a box has its own."""
    with tempfile.TemporaryDirectory(prefix="by-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


@pytest.fixture
def place(root: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    kernel.become_subreaper()
    place = Place(root)
    monkeypatch.chdir(place.work)  # as a worker does
    monkeypatch.setenv("HOME", str(place.home))
    return place


def test_a_check_in_the_box_can_write_to_the_workspace_and_its_own_temporary_folder_only(place: Place) -> None:
    (place.work / ".bydawn/loops").mkdir(parents=True)
    (place.work / ".bydawn/loops/night").symlink_to(place.loop.path)
    tries = {
        "workspace": f"touch {place.work}/made",
        "temporary": "touch /tmp/made && test $TMPDIR = /tmp && touch /dev/shm/made",
        "cache": f"touch {place.home}/.cargo/made",
        "home": f"touch {place.home}/made",
        "state": f"touch {place.state}/made",
        "ledger": f"test -e {place.loop.path}",
        "link": f"test -L {place.work}/.bydawn/loops/night",  # it would lead nowhere, and that makes some tools fail
        "system": "touch /usr/made",
        "mount": "mount -o remount,rw / || mount -o remount,rw /usr || umount /proc",
        "processes": f"test -e /proc/{os.getpid()} && kill -0 {os.getpid()}",
    }
    checks = place.checks(writable=(f"{place.home}/.cargo",))
    verdicts = place.run(checks, *tries.values())
    assert [name for name, verdict in zip(tries, verdicts, strict=True) if verdict.passed] == [
        *("workspace", "temporary", "cache")
    ]
    assert sorted(path.name for path in place.work.iterdir()) == [".bydawn", "made"]
    assert not any((folder / "made").exists() for folder in (place.home, place.state, Path("/usr"), Path("/tmp")))
    assert not place.loop.temporary.exists()


def test_caches_that_nobody_else_can_fill_are_in_the_temporary_folder_of_the_box(boxed: Home) -> None:
    check = 'case "$PYTHONPYCACHEPREFIX" in /tmp/pycache-*) ;; *) exit 1 ;; esac'
    assert boxed.run(boxed.rounds([DONE]), "-k", check, "--protect", "README.md", "-n", "1").code == 0
    assert boxed.run(boxed.rounds([OK]), "-k", check, "--new", "-n", "1").code == 4


def test_a_clean_checkout_can_be_used_in_the_box_and_nothing_around_it(place: Place) -> None:
    (place.work / "a").write_text("one")
    tree = GitWorkspace(place.work, place.loop.git).snapshot().tree
    seen = place.run(place.checks(clean=True), "cat a; echo; touch made; pwd; ls ..", "touch ../x", tree=tree)
    assert [verdict.passed for verdict in seen] == [True, False]
    one, where, beside = place.said().split("\n", 2)
    assert (one, where) == ("one", str(place.work)), "it is in the place of the workspace"
    assert [*(place.state / "loops").rglob("made")] == [], "and removed afterwards"
    assert not (place.work / "made").exists()
    assert {"work"} <= {*beside.split()}


def test_a_check_that_minds_no_signal_is_ended_with_the_box(place: Place) -> None:
    script = f"trap '' INT TERM; (trap '' INT TERM; setsid sleep {NAP}) & sleep {NAP}"
    [verdict] = place.run(place.checks(timeout=0.3), script)
    assert verdict.timed_out
    assert [pid for pid in kernel.processes() if NAP in name_of(pid)] == []


def test_another_tree_is_tried_in_the_place_of_the_workspace(place: Place) -> None:
    """What leads there finds the tree: absolute paths, links, an editable install. Packages are there to read, what is
    built stays for the next try, and nothing of it reaches the workspace."""
    (place.work / ".gitignore").write_text("node_modules\n.venv\ntarget\nsecret.txt\n")
    for name, text in {
        "app.py": "new",
        "secret.txt": "x",
        "a/node_modules/m/index.js": "deep",
        "node_modules/m/index.js": "top",
        ".venv/lib/__editable__.pth": str(place.work),
        "target/old": "x",
        "tests/link": "",
    }.items():
        (place.work / name).parent.mkdir(parents=True, exist_ok=True)
        (place.work / name).write_text(text)
    (place.work / "tests/link").unlink()
    (place.work / "tests/link").symlink_to(place.work / "app.py")
    kept = GitWorkspace(place.work, place.loop.git)
    tree = kept.woven(kept.snapshot().tree, {"app.py": kept.form(b"old"), ".gitignore": ""})
    (place.work / ".gitignore").write_text("node_modules\n.venv\ntarget\nsecret.txt\n")
    check = CommandCheck(
        command=f"cat {place.work}/app.py tests/link $(cat .venv/lib/__editable__.pth)/app.py "
        "*/node_modules/m/index.js node_modules/m/index.js; ls target secret.txt; touch target/built made; "
        "touch node_modules/made; pwd"
    )
    before = sorted(str(path) for path in place.work.rglob("*"))
    seen = [place.checks().run([check], 1, tree, lambda: False, aside="without")[0] for _ in range(2)]
    assert all(verdict.passed for verdict in seen)
    printed = place.loop.round_file(1, "without-1.txt").read_text()
    assert printed.startswith("oldoldolddeeptop")
    assert "target:\nbuilt\n" in printed, "what the first try built"
    assert "'secret.txt': No such file" in printed and "node_modules/made': Read-only" in printed
    assert printed.endswith(f"{place.work}\n")
    assert sorted(str(path) for path in place.work.rglob("*")) == before
    assert [*(place.loop.path / "checkouts").glob("*")] == []


def test_a_clean_checkout_hides_the_workspace(place: Place) -> None:
    (place.work / ".gitignore").write_text("forgotten.py\n")
    (place.work / "forgotten.py").write_text("x")
    tree = GitWorkspace(place.work, place.loop.git).snapshot().tree
    [verdict] = place.run(place.checks(clean=True), f"cat {place.work}/forgotten.py", tree=tree)
    assert not verdict.passed


def test_a_check_that_is_stopped_can_clean_up_although_it_is_in_a_box(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeout, until_term = 3.0, 20.0  # on a busy machine a box takes its time to begin, and to end
    monkeypatch.setattr(shell, "_LADDER", Ladder(interrupt=until_term, terminate=2.0))
    [verdict] = place.run(place.checks(timeout), "trap 'echo clean; exit 1' INT; sleep 60 & wait")
    assert verdict.timed_out
    assert place.said() == "clean\n"
    assert verdict.seconds < timeout + until_term  # nobody had to wait for TERM


def test_what_a_check_leaves_running_ends_with_the_box(place: Place) -> None:
    [verdict] = place.run(place.checks(), f"setsid sleep {NAP} >/dev/null 2>&1 & exit 0")
    assert verdict.passed
    assert [pid for pid in kernel.processes() if NAP in name_of(pid)] == []


def test_a_check_that_crashes_in_the_box_has_the_fingerprint_of_one_that_crashes_outside(place: Place) -> None:
    checks, crash = place.checks(), CommandCheck(command="kill -SEGV $$")
    [inside] = checks.run([crash], 1, "", lambda: False)
    [outside] = checks.run([crash], 1, "", lambda: False, again=True, outside={crash.name: ""})
    assert (inside.fingerprint, inside.outside) == (outside.fingerprint, False)
    assert outside.outside


@pytest.mark.parametrize(
    ("output", "folder"),
    [
        ("touch: cannot touch '/home/ada/out': Read-only file system", "~/out"),
        ("touch: cannot touch ‘/home/ada/.tool/x’: Read-only file system", "~/.tool"),
        ("mkdir /home/ada/.cache/go-build: read-only file system", "~/.cache/go-build"),
        ("failed to create directory `/home/ada/.cargo/git/db`\n\nCaused by:\n  Read-only (os error 30)", "~/.cargo"),
        ("npm error enoent ENOENT: no such file, mkdir '/home/ada/.npm/_cacache'", "~/.npm"),
        ("OSError: [Errno 30] Read-only file system: '/var/lib/tool/db'", "/var/lib/tool"),
        ("cannot write: Read-only file system", "DIR"),
        ("/home/ada/shop/a.py: Read-only file system", "DIR"),  # the workspace is not read-only
        ("/home/ada/.cargo: no such file", ""),
    ],
)
def test_the_folder_that_a_check_needs_is_found_in_what_it_printed(output: str, folder: str) -> None:
    assert refused_folder(output, "/home/ada/shop", "/home/ada") == folder


# -- the command -------------------------------------------------------------------------------------------------------

NEEDS_CACHE = 'mkdir -p "$HOME/.tool/cache" && touch "$HOME/.tool/cache/x"'


@pytest.fixture
def boxed(root: Path) -> Iterator[Home]:
    home = Home(root / "ada")
    home.env |= {"BYDAWN_BOX": "auto"}
    yield home
    assert home.leave() == []


def verdicts(home: Home, number: int = 0) -> list[dict[str, object]]:
    return list(home.facts("checks.ended")[number]["data"]["verdicts"])


def test_a_check_that_the_box_keeps_from_its_cache_runs_outside_and_that_is_said(boxed: Home) -> None:
    done = boxed.run(
        boxed.rounds([OK], [DONE]), "-k", NEEDS_CACHE, "-k", "touch here", "--done-when", "TASK_COMPLETE", "--once"
    )
    told = "write to ~/.tool, so it runs outside; to keep it inside: --box-write ~/.tool"
    assert told in done.out
    assert [(verdict["passed"], verdict["outside"], verdict["needs"]) for verdict in verdicts(boxed)] == [
        *((True, True, "~/.tool"), (True, False, ""))
    ]
    again = boxed.bydawn("resume", "--plain")
    assert (again.code, told in again.out) == (0, True)
    assert [verdict["outside"] for verdict in verdicts(boxed, -1)] == [True, False]
    assert "so it runs outside" in boxed.bydawn("show").out


def test_a_clean_checkout_never_finds_a_file_of_the_workspace_that_git_ignores(boxed: Home) -> None:
    (boxed.repo / ".gitignore").write_text("local.txt\n")
    (boxed.repo / "local.txt").write_text("here before the first round\n")
    check = f"cat {boxed.repo}/local.txt"
    done = boxed.run(boxed.rounds([OK, DONE]), "-k", check, "--check-where", "clean", "--rounds", "1")
    assert done.code != 0
    assert [(verdict["passed"], verdict["outside"]) for verdict in verdicts(boxed, -1)] == [(False, False)]


def test_a_check_in_the_box_that_needs_a_folder_later_says_so(boxed: Home) -> None:
    """Its baseline was green; outside it would run what the agent wrote."""
    (boxed.root / "home/.tool").mkdir()
    check = "test ! -e new || touch ~/.tool/x"
    boxed.run(boxed.rounds([{"write": {"path": "new", "text": "x"}}, OK]), "-k", check, "--once")
    assert [verdict["detail"] for verdict in verdicts(boxed, 1)] == [
        "exit 1, in the box, where it cannot write to ~/.tool (see --box-write)"
    ]
    assert not verdicts(boxed, 1)[0]["outside"]
    assert not (boxed.root / "home/.tool/x").exists()


def refused(home: Home, *words: str, **options: str) -> Said:
    return home.run(home.rounds([DONE]), "--box", "on", *words, **options)


def test_with_box_on_a_check_that_does_not_work_in_it_is_refused(boxed: Home) -> None:
    done = refused(boxed, "-k", NEEDS_CACHE)
    assert (done.code, boxed.rounds_ended()) == (2, [])
    assert "write to ~/.tool (--box on); add --box-write ~/.tool, or use --box auto" in done.out
    assert "bydawn resume" not in done.out, "it would be refused again"
    assert boxed.status()["state"] == "stopped"
    (boxed.root / "home/.tool").mkdir(exist_ok=True)
    assert refused(boxed, "-k", NEEDS_CACHE, "--new", "--box-write", "~/.tool").code == 0
    kept = json.loads((boxed.folder("repo-2") / "loop.json").read_text())
    assert kept["box_write"] == [str(boxed.root / "home/.tool")]


def path_without_bwrap(home: Home, tmp_path: Path, *, broken: bool = False) -> str:
    """A PATH with git and what a shell needs, and perhaps a bwrap that does not start."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "sh", "true", "env", "mkdir", "touch"):
        (folder / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    if broken:
        (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
        (folder / "bwrap").chmod(0o755)
    return f"{home.env['PATH'].split(':')[0]}:{folder}"


@pytest.mark.parametrize("broken", [False, True])
def test_where_there_is_no_box_checks_run_without_one_and_that_is_said(
    boxed: Home, tmp_path: Path, broken: bool
) -> None:
    path = path_without_bwrap(boxed, tmp_path, broken=broken)
    why = "bwrap: No permissions to create a new namespace" if broken else "bwrap is not installed"
    strict = refused(boxed, "-k", "true", PATH=path)
    assert (strict.code, f"cause: {why}" in strict.err, boxed.has_loop()) == (2, True, False)
    assert refused(boxed, "-k", "true", "-d", PATH=path) == strict  # in the background too, and nothing is left of it
    assert [*boxed.states.glob("loops/*/*")] == []
    done = boxed.run(boxed.rounds([OK]), "-k", NEEDS_CACHE, "--once", PATH=path)
    assert f"checks run without a box: {why}" in done.out
    assert f"checks run without one: {why}" in boxed.bydawn("doctor", PATH=path).out
    assert "checks run in one: bwrap starts" in boxed.bydawn("doctor").out
    # It is there now, but no baseline shows whether it would be in the way.
    later = boxed.bydawn("resume", "--once", "--plain")
    assert "checks run without a box: its first round ran without one" in later.out


def test_a_box_that_two_kills_left_behind_is_gone_at_once(boxed: Home) -> None:
    night = boxed.start_run(boxed.rounds([OK]), "-k", "touch started; sleep 1000")
    wait_for(lambda: (boxed.repo / "started").exists())
    kill_both(night.pid)
    said(night)
    wait_for(lambda: not boxed.alive(), seconds=10)


def test_stop_ends_a_check_in_the_box(boxed: Home) -> None:
    night = boxed.start_run(boxed.rounds([HANG]), "-k", "touch started; sleep 1000")
    wait_for(lambda: (boxed.repo / "started").exists())
    assert boxed.bydawn("stop", "repo").code == 0
    assert said(night).code == 130


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--box-write", "cache"], "--box-write 'cache' must start with / or ~"),
        (["--box-write", "~/nowhere"], "--box-write ~/nowhere: there is no such folder"),
    ],
)
def test_a_folder_to_write_to_that_makes_no_sense_is_refused(home: Home, words: list[str], told: str) -> None:
    done = home.run("demo", "-k", "true", *words)
    assert (done.code, told in done.err) == (2, True)


def test_a_repository_cannot_switch_the_box_off_and_needs_trust_to_write_elsewhere(home: Home) -> None:
    (home.repo / "bydawn.toml").write_text('box = "off"\n')
    assert "box" in home.run("demo").err
    (home.root / "home/.ssh").mkdir()
    (home.repo / "bydawn.toml").write_text('box_write = ["~/.ssh"]\n')
    asked = home.run("demo")
    assert (asked.code, "box_write" in asked.err) == (2, True)
