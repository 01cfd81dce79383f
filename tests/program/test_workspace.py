"""Snapshots of real folders with the real git: exact, harmless to the user's own repository, and hard to kill."""

import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bydawn.worktree.workspace
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.ports import Workspace
from bydawn.core.values import Changes, LineCounts, Snapshot
from bydawn.system.git import GitFailed, WorkspaceGone
from bydawn.system.reading import READ_AT_MOST, read_text
from bydawn.worktree.changes import KEPT_AT_MOST
from bydawn.worktree.nested import DEEPEST, MOST_BELOW
from bydawn.worktree.workspace import PACKED_FROM, GitWorkspace

ME = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
SUBMODULES = ("-c", "protocol.file.allow=always")
UNCHANGED = Changes(lines=LineCounts())


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the developer's git settings nor an outer GIT_DIR have a say here."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True, params=["few files", "many files"])
def look(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of git that say what changed: with many files there are two, and every test holds for both."""
    if request.param == "few files":
        return ["ls-files"]
    monkeypatch.setattr(bydawn.worktree.workspace, "MANY", 0)
    return ["diff", "ls-files"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "private"


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *ME, *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape").strip()


def a_repository(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    for name, text in (files or {"a": "one\n"}).items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def stored(private: Path, snapshot: Snapshot) -> dict[str, tuple[str, bytes]]:
    """Path to mode and bytes, as the snapshot has them."""
    tree = snapshot.tree.partition("+")[0]
    listing = git(private, "ls-tree", "-r", "-z", tree).split("\0")
    rows = [re.fullmatch(r"(\d+) blob (\w+)\t(.*)", row, re.S) for row in listing if row]
    return {row[3]: (row[1], content(private, row[2])) for row in rows if row}


def content(private: Path, blob: str) -> bytes:
    return subprocess.run(["git", "cat-file", "blob", blob], cwd=private, capture_output=True, check=True).stdout


def names(private: Path, snapshot: Snapshot) -> set[str]:
    listing = git(private, "ls-tree", "-r", "-z", "--name-only", snapshot.tree.partition("+")[0])
    return set(filter(None, listing.split("\0")))


def everything_in(folder: Path) -> dict[str, str]:
    """Every path below a folder with a digest of what it is; times and link counts are not part of it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {hashlib.sha256(data).hexdigest()}"
    return found


def a_canary(folder: Path, name: str = "canary") -> tuple[Path, Path]:
    """A program that somebody could make git run, and the file by which it would betray itself."""
    program, song = folder / f"{name}.sh", folder / f"{name}.song"
    program.write_text(f"#!/bin/sh\ntouch '{song}'\ncat\n")
    program.chmod(0o755)
    return program, song


def run_python(code: str, *arguments: str, wrapper: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    prelude = "import os, sys\nfrom pathlib import Path\nimport bydawn.worktree.workspace\n"
    prelude += "from bydawn.worktree.workspace import GitWorkspace\n"
    prelude += f"bydawn.worktree.workspace.MANY = {bydawn.worktree.workspace.MANY}\n"
    command = [*wrapper, sys.executable, "-c", prelude + code, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


# -- what a snapshot says ----------------------------------------------------------------------------------------------


def test_it_is_the_workspace_that_the_engine_asks_for(root: Path, private: Path) -> None:
    workspace: Workspace = GitWorkspace(root, private)
    assert workspace.snapshot().tree


def test_what_runs_the_checks_and_is_in_no_tree_is_known_by_what_it_is(root: Path, private: Path) -> None:
    files = {
        ".gitignore": "node_modules\nenv\n.venv\n/local\n",
        "node_modules/t/bin.js": "1",
        "node_modules/t/other.js": "1",
        "env/bin/t": "1",
        "env/bin/other": "1",
        ".venv/bin/pytest": "1",
        "local": "1",
        "src/run": "1",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "node_modules/.bin").mkdir()
    (root / "node_modules/.bin/t").symlink_to("../t/bin.js")
    workspace = GitWorkspace(root, private)

    def tools() -> dict[str, str]:
        return workspace.tools(["env/bin/t", "local", "src/run", "nowhere", "../env"])

    before = tools()
    assert [*before] == [".venv/bin/pytest", "env/bin/t", "local", "node_modules/.bin/t"]
    for path in ("node_modules/t/bin.js", "env/bin/t", "local"):
        (root / path).write_text("2")
    assert [path for path, now in tools().items() if now != before[path]] == [
        "env/bin/t",
        "local",
        "node_modules/.bin/t",
    ]


def test_a_new_worker_goes_on_from_the_snapshot_of_the_last_one(root: Path, private: Path) -> None:
    (root / "a").write_text("one\n")
    first = GitWorkspace(root, private).snapshot()
    (root / "b").write_text("two\n")
    later = GitWorkspace(root, private).snapshot()
    assert later.tree != first.tree
    assert later.changes.paths == ("b",)
    assert GitWorkspace(root, private).snapshot() == Snapshot(tree=later.tree, changes=UNCHANGED)


def test_added_modified_and_deleted_files_are_each_counted_once(root: Path, private: Path) -> None:
    for name in ("changed", "removed", "untouched"):
        (root / name).write_text(name)
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    (root / "changed").write_text("other")
    (root / "removed").unlink()
    (root / "new").mkdir()
    (root / "new" / "file").write_text("new")
    changes = workspace.snapshot().changes
    assert (changes.added, changes.modified, changes.deleted) == (1, 1, 1)
    assert changes.paths == ("changed", "new/file", "removed")


def test_lines_are_counted_in_new_changed_and_deleted_files_but_not_in_binary_ones(root: Path, private: Path) -> None:
    for name in ("changed", "removed"):
        (root / name).write_text("one\ntwo\nthree\n")
    (root / "picture").write_bytes(b"\0\n" * 5)
    workspace = GitWorkspace(root, private)
    assert workspace.snapshot().changes.lines is None, "nothing was there to compare it with"
    (root / "changed").write_text("one\n2\nthree\nfour")
    (root / "removed").unlink()
    (root / "picture").write_bytes(b"\0\n" * 50)
    (root / "a\tnew\nname").write_text("new\n")
    assert workspace.snapshot().changes.lines == LineCounts(added=3, removed=4)
    (root / "changed").chmod(0o755)
    assert workspace.snapshot().changes.lines == LineCounts()


def test_lines_are_counted_from_the_last_snapshot_of_an_earlier_run_on(root: Path, private: Path) -> None:
    (root / "a").write_text("one\n")
    GitWorkspace(root, private).snapshot()
    (root / "a").write_text("one\ntwo\n")
    assert GitWorkspace(root, private).snapshot().changes.lines == LineCounts(added=1)


def test_lines_are_unknown_if_a_file_has_grown_too_big_to_keep(root: Path, private: Path) -> None:
    (root / "data").write_text("one\n")
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    os.truncate(root / "data", KEPT_AT_MOST + 1)
    assert workspace.snapshot().changes.lines is None


def test_lines_that_take_too_long_to_count_are_unknown_and_the_tree_is_kept(
    root: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("one\n")
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    monkeypatch.setattr(bydawn.worktree.workspace, "COUNT_SECONDS", 0.0)
    (root / "a").write_text("two\n")
    after = workspace.snapshot()
    assert (after.changes.lines, after.changes.modified) == (None, 1)
    assert names(private, after) == {"a"}


def test_only_the_first_twenty_paths_are_named(root: Path, private: Path) -> None:
    for number in range(30):
        (root / f"{number:02}").write_text("")
    changes = GitWorkspace(root, private).snapshot().changes
    assert changes.added == 30
    assert changes.paths == tuple(f"{number:02}" for number in range(20))


def test_a_file_that_was_only_touched_is_no_change(root: Path, private: Path) -> None:
    (root / "a").write_text("one\n")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    os.utime(root / "a", (1, 1))
    (root / "a").chmod(0o600)
    assert workspace.snapshot() == Snapshot(tree=first.tree, changes=UNCHANGED)


def test_a_file_that_was_only_touched_is_not_read_again_and_again(root: Path, private: Path) -> None:
    for name in ("a", "b"):
        (root / name).write_text(name)
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    os.utime(root / "a", (1, 1))
    (root / "b").write_text("changed")
    workspace.snapshot()
    places = (f"--git-dir={private}", f"--work-tree={root}")
    assert git(root, *places, "diff-files", "--name-only") == ""  # it compares what it would have to read


def test_an_edit_of_the_same_length_within_the_same_moment_is_seen(root: Path, private: Path) -> None:
    (root / "a").write_text("one\n")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    times = (root / "a").stat()
    (root / "a").write_text("two\n")
    os.utime(root / "a", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert workspace.snapshot().tree != first.tree


def test_the_executable_bit_is_part_of_the_tree(root: Path, private: Path) -> None:
    (root / "run").write_text("#!/bin/sh\n")
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    (root / "run").chmod(0o755)
    after = workspace.snapshot()
    assert after.changes.modified == 1
    assert stored(private, after)["run"][0] == "100755"


def test_a_file_can_become_a_folder_and_a_folder_a_file(root: Path, private: Path) -> None:
    (root / "file").write_text("f")
    (root / "folder").mkdir()
    (root / "folder" / "inside").write_text("i")
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    (root / "file").unlink()
    (root / "file").mkdir()
    (root / "file" / "deep").write_text("d")
    shutil.rmtree(root / "folder")
    (root / "folder").write_text("now a file")
    after = workspace.snapshot()
    assert names(private, after) == {"file/deep", "folder"}
    assert (after.changes.added, after.changes.modified, after.changes.deleted) == (2, 0, 2)
    assert workspace.snapshot() == Snapshot(tree=after.tree, changes=UNCHANGED)


def test_a_file_can_become_a_nested_repository(root: Path, private: Path) -> None:
    (root / "a").write_text("one")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    (root / "a").unlink()
    a_repository(root / "a")
    assert names(private, workspace.snapshot()) == set()
    assert "+" in workspace.snapshot().tree
    shutil.rmtree(root / "a")
    (root / "a").write_text("one")
    assert workspace.snapshot().tree == first.tree


def test_a_file_can_become_an_empty_folder(root: Path, private: Path) -> None:
    (root / "a").write_text("one")
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    (root / "a").unlink()
    (root / "a").mkdir()
    after = workspace.snapshot()
    assert names(private, after) == set()
    assert after.changes.deleted == 1


def test_a_folder_that_becomes_a_link_is_not_looked_through(root: Path, private: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "same").write_text("same")
    (root / "d" / "edited").write_text("before")
    (root / "d" / "removed").write_text("removed")
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    (root / "d").rename(root / "e")
    (root / "d").symlink_to("e")
    (root / "e" / "edited").write_text("afterwards")
    (root / "e" / "removed").unlink()
    after = workspace.snapshot()
    assert names(private, after) == {"d", "e/same", "e/edited"}
    assert workspace.snapshot() == Snapshot(tree=after.tree, changes=UNCHANGED)


def test_links_are_kept_as_links_and_never_followed(root: Path, private: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("k")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "broken").symlink_to("nowhere")
    after = GitWorkspace(root, private).snapshot()
    assert stored(private, after) == {
        "out": ("120000", os.fsencode(tmp_path / "secret")),
        "broken": ("120000", b"nowhere"),
    }


def test_odd_file_names_are_kept_and_shown_as_valid_json(root: Path, private: Path) -> None:
    odd = [b"new\nline", b"-dash", b"--stdin", b"caf\xe9", b" space ", b'quo"te', b"st*r[1]", b"git~1", b"back\\slash"]
    odd += ["ümlaut".encode(), b":(top)x", b"#hash", b"!bang", b".gitmodules.d"]
    for name in odd:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(name)
    workspace = GitWorkspace(root, private)
    snapshot = workspace.snapshot()
    kept = {os.fsencode(path): data for path, (_, data) in stored(private, snapshot).items()}
    assert kept == {name: name for name in odd}
    assert "caf�" in msgspec.json.decode(msgspec.json.encode(snapshot.changes))["paths"]
    for name in odd:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).unlink()
    assert workspace.snapshot().changes.deleted == len(odd)


def test_names_that_git_refuses_are_left_out(root: Path, private: Path) -> None:
    (root / ".GIT").mkdir()
    (root / ".GIT" / "config").write_text("evil")
    (root / ".gitmodules").symlink_to("elsewhere")
    (root / "a").write_text("one")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    assert first.changes.paths == ("a",)
    assert names(private, first) == {"a"}
    assert workspace.snapshot().changes.total == 0


SMALL_NAMES = st.sampled_from(["a", "b", "a/x", "a/y", "b/x", "a/x/deep"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "run", "link", "pipe", "remove", "move", "look"]), SMALL_NAMES, SMALL_NAMES),
    max_size=14,
)


def take(step: str, path: Path, other: Path) -> None:
    """One thing an agent may do; what is in its way goes first."""
    if step in ("remove", "write", "run", "link", "pipe"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if step in ("write", "run"):
            path.write_text(str(other.name))
            path.chmod(0o755 if step == "run" else 0o644)
        elif step == "link":
            path.symlink_to(other.name)
        elif step == "pipe":
            os.mkfifo(path)
        elif step == "move" and os.path.lexists(path) and not os.path.lexists(other):
            path.rename(other)
    except OSError:
        pass  # a file stands where a folder would have to be, or a link leads round in circles


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happened_the_tree_is_that_of_a_first_look(tmp_path: Path, steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path.resolve()) as folder:
        root = Path(folder) / "work"
        root.mkdir()
        workspace = GitWorkspace(root, Path(folder) / "private")
        for step, path, other in steps:
            take(step, root / path, root / other)
            if step == "look":
                workspace.snapshot()
        assert workspace.snapshot().tree == GitWorkspace(root, Path(folder) / "fresh").snapshot().tree


# -- what is left out --------------------------------------------------------------------------------------------------


def test_a_file_above_the_limit_is_left_out_and_never_read(root: Path, private: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(60 * 1024 * 1024)
    (root / "small").write_text("s")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    assert first.changes.paths == ("small",)
    assert names(private, first) == {"small"}
    assert workspace.snapshot() == Snapshot(tree=first.tree, changes=UNCHANGED)


def test_a_file_that_grows_too_big_leaves_the_tree_and_comes_back(root: Path, private: Path) -> None:
    (root / "data").write_text("d")
    (root / "other").write_text("o")
    workspace = GitWorkspace(root, private)
    small = workspace.snapshot()
    os.truncate(root / "data", KEPT_AT_MOST + 1)
    grown = workspace.snapshot()
    assert names(private, grown) == {"other"}
    assert grown.changes.modified == 1
    (root / "data").write_text("d")
    assert workspace.snapshot().tree == small.tree


def test_our_own_folder_is_left_out_whatever_the_ignore_rules_say(root: Path, private: Path) -> None:
    (root / ".bydawn" / "loops").mkdir(parents=True)
    (root / ".bydawn" / "note").write_text("n")
    (root / "sub" / ".bydawn").mkdir(parents=True)
    (root / "sub" / ".bydawn" / "theirs").write_text("t")
    (root / ".gitignore").write_text("!.bydawn/**\n")
    assert names(private, GitWorkspace(root, private).snapshot()) == {".gitignore", "sub/.bydawn/theirs"}


def test_pipes_and_sockets_are_left_out_even_in_place_of_a_file(root: Path, private: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "was-a-file").write_text("w")
    workspace = GitWorkspace(root, private)
    assert names(private, workspace.snapshot()) == {"was-a-file"}
    (root / "was-a-file").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "was-a-file"))
        after = workspace.snapshot()
    assert names(private, after) == set()
    assert after.changes.deleted == 1


def test_what_cannot_be_read_is_left_out(root: Path, private: Path) -> None:
    (root / "folder").mkdir()
    for name in ("open", "was-open", "folder/inside"):
        (root / name).write_text(name)
    GitWorkspace(root, private).snapshot()
    (root / "was-open").write_text("now closed")
    (root / "closed").write_text("c")
    for name in ("was-open", "closed", "folder"):
        (root / name).chmod(0)
    # For root nothing is closed, so the two capabilities that make it so are dropped.
    dropped = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    code = "seen = GitWorkspace(Path(sys.argv[1]), Path(sys.argv[2])).snapshot(); print(seen.tree, seen.changes.paths)"
    done = run_python(code, str(root), str(private), wrapper=dropped)
    (root / "folder").chmod(0o700)
    tree, _, paths = done.stdout.partition(" ")
    assert paths == "('folder/inside', 'was-open')\n", done.stderr
    assert names(private, Snapshot(tree=tree)) == {"open"}


def test_ignored_files_are_left_out(root: Path, private: Path, tmp_path: Path) -> None:
    a_repository(root, **{".gitignore": "*.log\n/build/\n"})
    (root / ".git" / "info" / "exclude").write_text("by-exclude\n")
    (tmp_path / "home" / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my-ignores\n")
    (tmp_path / "home" / "my-ignores").write_text("by-user\n")
    (root / "build").mkdir()
    for name in ("x.log", "build/out", "by-exclude", "by-user", "kept"):
        (root / name).write_text(name)
    workspace = GitWorkspace(root, private)
    assert names(private, workspace.snapshot()) == {".gitignore", "kept"}
    (root / ".git" / "info" / "exclude").write_text("")
    assert names(private, workspace.snapshot()) == {".gitignore", "kept", "by-exclude"}


def test_what_the_user_tracks_in_spite_of_an_ignore_rule_is_kept(root: Path, private: Path) -> None:
    a_repository(root, **{".gitignore": "dist/\n"})
    (root / "dist").mkdir()
    (root / "dist" / "tracked").write_text("t")
    (root / "dist" / "ignored").write_text("i")
    git(root, "add", "-f", "dist/tracked")
    workspace = GitWorkspace(root, private)
    assert names(private, workspace.snapshot()) == {".gitignore", "dist/tracked"}
    (root / "dist" / "tracked").write_text("changed")
    assert workspace.snapshot().changes.paths == ("dist/tracked",)


# -- where a workspace can be ------------------------------------------------------------------------------------------


def no_git(root: Path) -> Path:
    return root


def no_commit_yet(root: Path) -> Path:
    git(root, "init", "-q")
    return root


def detached(root: Path) -> Path:
    a_repository(root)
    git(root, "checkout", "-q", "--detach")
    return root


def worktree(root: Path) -> Path:
    a_repository(root)
    git(root, "worktree", "add", "-q", "../beside")
    return root.parent / "beside"


def subfolder(root: Path) -> Path:
    a_repository(root)
    (root / "packages" / "it").mkdir(parents=True)
    return root / "packages" / "it"


def inside_a_git_directory(root: Path) -> Path:
    a_repository(root)
    (root / ".git" / "odd").mkdir()
    return root / ".git" / "odd"


def broken(root: Path) -> Path:
    (root / ".git").write_text("gitdir: /nowhere\n")
    return root


PLACES = [no_git, no_commit_yet, detached, worktree, subfolder, inside_a_git_directory, broken]


@pytest.mark.parametrize("place", PLACES)
def test_it_works_wherever_the_workspace_is(place: Callable[[Path], Path], root: Path, private: Path) -> None:
    folder = place(root)
    workspace = GitWorkspace(folder, private)
    first = workspace.snapshot()
    (folder / "new").write_text("n")
    after = workspace.snapshot()
    assert after.tree != first.tree
    assert after.changes.paths == ("new",)
    assert names(private, after) - names(private, first) == {"new"}
    (folder / "new").unlink()
    assert workspace.snapshot().tree == first.tree


def test_a_subfolder_honours_the_ignore_rules_above_it(root: Path, private: Path) -> None:
    a_repository(root, **{".gitignore": "/packages/it/build\n*.log\n!important.log\n"})
    (root / ".git" / "info" / "exclude").write_text("packages/it/private\n")
    folder = root / "packages" / "it"
    folder.mkdir(parents=True)
    for name in ("build", "x.log", "important.log", "private", "kept"):
        (folder / name).write_text(name)
    (root / "outside").write_text("not ours")
    after = GitWorkspace(folder, private).snapshot()
    assert names(private, after) == {"important.log", "kept"}


def test_a_worktree_honours_the_exclude_file_of_its_repository(root: Path, private: Path) -> None:
    folder = worktree(root)
    (root / ".git" / "info" / "exclude").write_text("private\n")
    (folder / "private").write_text("p")
    assert names(private, GitWorkspace(folder, private).snapshot()) == {"a"}


def test_a_folder_that_the_repository_around_it_ignores_stands_alone(root: Path, private: Path) -> None:
    git(root, "init", "-q")
    (root / ".gitignore").write_text("*\n")  # people keep their home folder like this
    (root / "project").mkdir()
    (root / "project" / "file").write_text("f")
    assert names(private, GitWorkspace(root / "project", private).snapshot()) == {"file"}


def test_a_subfolder_may_become_a_repository_of_its_own(root: Path, private: Path) -> None:
    folder = subfolder(root)
    workspace = GitWorkspace(folder, private)
    workspace.snapshot()
    git(folder, "init", "-q")
    (folder / "new").write_text("n")
    after = workspace.snapshot()
    assert names(private, after) == {"new"}
    assert GitWorkspace(folder, private).snapshot() == Snapshot(tree=after.tree, changes=UNCHANGED)


def test_the_private_directory_is_for_its_owner_only(root: Path, private: Path) -> None:
    GitWorkspace(root, private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_a_workspace_that_vanished_is_said_to_be_gone(root: Path, private: Path) -> None:
    workspace = GitWorkspace(root, private)
    workspace.snapshot()
    root.rename(root.parent / "moved")
    with pytest.raises(WorkspaceGone) as gone:
        workspace.snapshot()
    assert str(root) in gone.value.what
    assert gone.value.cause
    assert gone.value.hint
    assert gone.value.exit_code == 3
    with pytest.raises(WorkspaceGone):
        workspace.read_text("tasks.md")
    with pytest.raises(WorkspaceGone):
        GitWorkspace(root, private)


# -- bytes, filters and other people's configuration -------------------------------------------------------------------


def test_snapshots_are_exact_whatever_the_attributes_say(root: Path, private: Path) -> None:
    a_repository(root, **{".gitattributes": "* text=auto eol=crlf ident\n*.txt working-tree-encoding=UTF-16\n"})
    git(root, "config", "core.autocrlf", "true")
    files = {
        "crlf": b"one\r\ntwo\r\n",
        "mixed": b"a\r\nb\n",
        "ident": b"$Id: 123 $\n",
        "utf16.txt": "ä".encode("utf-16"),
    }
    for name, data in files.items():
        (root / name).write_bytes(data)
    kept = stored(private, GitWorkspace(root, private).snapshot())
    assert {name: kept[name][1] for name in files} == files


def test_no_filter_hook_or_monitor_of_the_user_runs(root: Path, private: Path, tmp_path: Path) -> None:
    program, song = a_canary(tmp_path)
    a_repository(root)
    settings = {"filter.evil.clean": program, "filter.evil.process": program, "core.fsmonitor": program}
    settings["core.hooksPath"] = tmp_path / "hooks"
    (tmp_path / "hooks").mkdir()
    for hook in ("post-index-change", "reference-transaction"):
        shutil.copy(program, tmp_path / "hooks" / hook)
    for key, value in settings.items():
        git(tmp_path, "config", "--file", str(tmp_path / "home" / ".gitconfig"), key, str(value))
        subprocess.run(["git", "config", key, str(value)], cwd=root, check=True)
    (root / ".gitattributes").write_text("[attr]sly filter=evil\n* filter=evil\nb sly\n")
    (root / "b").write_text("b")
    workspace = GitWorkspace(root, private)
    workspace.keep("round/1", workspace.snapshot().tree)
    assert not song.exists()
    assert stored(private, workspace.snapshot())["b"][1] == b"b"
    subprocess.run(["git", "add", "b"], cwd=root, capture_output=True, timeout=60)
    assert song.exists()  # so the canary could have sung


@pytest.mark.parametrize("entry", ["{root}/.venv/bin", ".venv/bin", "{root}-link/.venv/bin"])
def test_a_git_that_the_agent_put_into_the_workspace_is_not_run(
    entry: str, root: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".venv" / "bin").mkdir(parents=True)
    Path(f"{root}-link").symlink_to(root)
    program, song = a_canary(root.parent)
    shutil.copy(program, root / ".venv" / "bin" / "git")
    a_repository(root / "nested")
    monkeypatch.setenv("PATH", f"{entry.format(root=root)}::{os.environ['PATH']}")
    assert "+" in GitWorkspace(root, private).snapshot().tree
    assert not song.exists()


def test_nothing_of_the_users_repository_is_touched(
    root: Path, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_repository(root)
    (root / "a").write_text("stashed")
    git(root, "stash")
    git(root, "gc", "-q")
    (root / "a").write_text("staged")
    git(root, "add", "a")
    before = everything_in(root / ".git")
    monkeypatch.setenv("GIT_DIR", str(root / ".git"))  # as in a hook, or a careless shell
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / ".git" / "index"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    workspace = GitWorkspace(root, private)
    for number in range(3):
        (root / f"new{number}").write_text("n")
        workspace.keep(f"round/{number}", workspace.snapshot().tree)
    assert everything_in(root / ".git") == before
    assert not (tmp_path / "trace").exists()


def a_packed_repository(root: Path) -> list[Path]:
    """Fifty files in one commit, and the pack that has them."""
    a_repository(root, **{f"f{number}": f"{number}\n" for number in range(50)})
    git(root, "gc", "-q")
    return list((root / ".git" / "objects" / "pack").glob("*.pack"))


@pytest.mark.parametrize("harm", ["remove", "truncate", "overwrite"])
def test_a_snapshot_takes_over_the_users_objects_and_survives_what_happens_to_them(
    harm: str, root: Path, private: Path
) -> None:
    (pack,) = a_packed_repository(root)
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    workspace.keep("before/1", first.tree)
    assert git(private, "count-objects") == "0 objects, 0 kilobytes"  # blobs and tree, all were there
    pack.chmod(0o600)
    match harm:
        case "remove":
            shutil.rmtree(root / ".git")
        case "truncate":
            os.truncate(pack, 40)
        case _:
            with pack.open("r+b") as file:
                file.write(bytes(pack.stat().st_size))
    assert len(stored(private, first)) == 50
    git(private, "fsck", "--full")
    (root / "f7").unlink()
    workspace.restore(first.tree, ["f7"])
    assert (root / "f7").read_text() == "7\n"


def test_of_the_users_history_only_what_a_snapshot_needs_is_taken_over(root: Path, private: Path) -> None:
    a_packed_repository(root)
    git(root, "rm", "-q", "f1")
    git(root, "commit", "-qm", "second")
    git(root, "gc", "-q")
    GitWorkspace(root, private)
    assert len(git(private, "cat-file", "--batch-all-objects", "--batch-check").splitlines()) == 49 + 1


def test_packs_of_the_user_that_are_damaged_already_are_not_taken_over(root: Path, private: Path) -> None:
    (pack,) = a_packed_repository(root)
    pack.chmod(0o600)
    os.truncate(pack, pack.stat().st_size // 2)
    first = GitWorkspace(root, private).snapshot()
    assert len(stored(private, first)) == 50
    git(private, "fsck", "--full")


def test_a_worktree_takes_over_the_objects_of_its_repository(root: Path, private: Path) -> None:
    folder = worktree(root)
    git(root, "gc", "-q")
    GitWorkspace(folder, private)
    assert list((private / "objects" / "pack").glob("*.pack"))


def test_the_users_objects_are_taken_over_from_another_file_system(root: Path) -> None:
    a_repository(root)
    git(root, "gc", "-q")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        private = Path(elsewhere) / "private"
        assert os.stat(elsewhere).st_dev != root.stat().st_dev
        assert names(private, GitWorkspace(root, private).snapshot()) == {"a"}
        assert list((private / "objects" / "pack").iterdir())


def test_a_repository_with_other_object_ids_is_kept_too(root: Path, private: Path) -> None:
    git(root, "init", "-q", "--object-format=sha256")
    (root / "a").write_text("one")
    git(root, "add", "a")
    git(root, "commit", "-qm", "first")
    git(root, "gc", "-q")
    assert names(private, GitWorkspace(root, private).snapshot()) == {"a"}


def test_many_new_files_go_into_one_pack(root: Path, private: Path) -> None:
    for number in range(PACKED_FROM):
        (root / f"f{number}").write_text(f"{number}\n")
    snapshot = GitWorkspace(root, private).snapshot()
    assert len(list((private / "objects" / "pack").glob("*.pack"))) == 1
    assert len(names(private, snapshot)) == PACKED_FROM
    git(private, "fsck", "--full")


# -- nested repositories -----------------------------------------------------------------------------------------------


def test_a_nested_repository_counts_by_its_head_and_its_status(root: Path, private: Path) -> None:
    a_repository(root)
    nested = a_repository(root / "1 nested", inside="i\n")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    assert re.fullmatch(r"[0-9a-f]{40}\+[0-9a-f]{12}", first.tree)
    assert names(private, first) == {"a"}
    assert workspace.snapshot() == Snapshot(tree=first.tree, changes=UNCHANGED)
    seen = {first.tree}
    for text in ("edited", "edited again"):  # to `git status` the second edit looks like the first
        (nested / "inside").write_text(text)
        seen.add(workspace.snapshot().tree)
    git(nested, "commit", "-qam", "second")
    seen.add(workspace.snapshot().tree)
    (nested / "untracked").write_text("u")
    seen.add(workspace.snapshot().tree)
    assert len(seen) == 5
    assert len({tree.partition("+")[0] for tree in seen}) == 1


def test_a_nested_repository_without_a_commit_breaks_nothing(root: Path, private: Path) -> None:
    (root / "nested").mkdir()
    git(root / "nested", "init", "-q")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    (root / "nested" / "file").write_text("f")
    assert workspace.snapshot().tree != first.tree
    shutil.rmtree(root / "nested")
    assert workspace.snapshot().tree == first.tree.partition("+")[0]


def test_a_broken_nested_repository_breaks_nothing(root: Path, private: Path) -> None:
    nested = a_repository(root / "nested")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    (nested / ".git" / "index").write_bytes(b"rubbish")
    second = workspace.snapshot()
    assert second.tree != first.tree
    assert workspace.snapshot() == second


def test_a_submodule_is_a_nested_repository(root: Path, private: Path, tmp_path: Path) -> None:
    a_repository(root)
    other = a_repository(tmp_path / "other", inside="i\n")
    git(root, *SUBMODULES, "submodule", "add", "-q", str(other), "sub")
    before = everything_in(root / ".git")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    (root / "sub" / "inside").write_text("edited")
    after = workspace.snapshot()
    assert names(private, after) == {"a", ".gitmodules"}
    assert after.tree != first.tree
    assert everything_in(root / ".git") == before


def test_work_in_a_repository_below_a_nested_one_is_seen(root: Path, private: Path) -> None:
    a_repository(root)
    a_repository(root / "sub")
    deeper = a_repository(root / "sub" / "x" / "deeper", inside="i\n")
    workspace = GitWorkspace(root, private)
    assert len({workspace.snapshot().tree, *states_of(deeper, workspace)}) == 5


def test_work_in_a_submodule_of_a_submodule_is_seen(root: Path, private: Path, tmp_path: Path) -> None:
    a_repository(root)
    deep = a_repository(tmp_path / "deep", inside="i\n")
    mid = a_repository(tmp_path / "mid")
    git(mid, *SUBMODULES, "submodule", "add", "-q", str(deep), "x/deep")
    git(mid, "commit", "-qm", "a submodule")
    git(root, *SUBMODULES, "submodule", "add", "-q", str(mid), "mid")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()  # one that is not there yet is an empty folder
    git(root, *SUBMODULES, "submodule", "update", "-q", "--init", "--recursive")
    before = everything_in(root / ".git")
    assert workspace.snapshot() == workspace.snapshot()
    assert everything_in(root / ".git") == before
    assert len({first.tree, *states_of(root / "mid" / "x" / "deep", workspace)}) == 5


def test_a_repository_that_was_added_without_a_word_is_looked_into_too(root: Path, private: Path) -> None:
    nested = a_repository(root / "sub")
    deeper = a_repository(nested / "deeper", inside="i\n")
    git(nested, "add", "deeper")  # no `.gitmodules`
    git(nested, "commit", "-qm", "a submodule")
    git(nested, "update-index", "--split-index")
    workspace = GitWorkspace(root, private)
    assert len({workspace.snapshot().tree, *states_of(deeper, workspace)}) == 5


def states_of(folder: Path, workspace: GitWorkspace) -> Iterator[str]:
    """What the workspace is called while somebody works in a repository of it; four times."""
    for text in ("edited", "edited again"):
        (folder / "inside").write_text(text)
        yield workspace.snapshot().tree
    for text in ("second", "third"):
        git(folder, "commit", "-qam", text, "--allow-empty")
        yield workspace.snapshot().tree


def test_a_submodule_behind_a_link_is_not_looked_into(root: Path, private: Path) -> None:
    nested = a_repository(root / "sub")
    a_repository(nested / "x" / "sub", inside="i\n")
    git(nested, "add", "x/sub")
    git(nested, "commit", "-qm", "a submodule")
    outside = a_repository(root.parent / "outside" / "sub", inside="i\n")
    shutil.rmtree(nested / "x")
    (nested / "x").symlink_to(outside.parent)
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    (outside / "inside").write_text("edited")
    assert workspace.snapshot().tree == first.tree


def test_one_nested_repository_costs_two_git_calls_and_many_below_it_are_bounded(
    root: Path, private: Path, tmp_path: Path, bin_: Path, look: list[str]
) -> None:
    a_repository(root)
    flat = a_repository(root / "sub")
    program, log = shutil.which("git"), tmp_path / "calls"
    (bin_ / "git").write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {program} "$@"\n')
    (bin_ / "git").chmod(0o755)
    workspace = GitWorkspace(root, private)

    def calls() -> list[str]:
        log.write_text("")
        workspace.snapshot()
        made = log.read_text().split()
        return [*sorted(made[: len(look)]), *made[len(look) :]]  # two that run at once come in any order

    calls()
    assert calls() == [*look, "config", "status"]
    folder, open_before = flat, len(os.listdir("/dev/fd"))
    for _ in range(DEEPEST + 3):
        folder = a_repository(folder / "deeper")
    assert calls() == [*look, *["config", "status"] * DEEPEST]
    for number in range(MOST_BELOW + 5):
        shutil.copytree(folder, flat / f"copy {number}")
    assert calls() == [*look, *["config", "status"] * (MOST_BELOW + 1)]
    assert len(os.listdir("/dev/fd")) == open_before, "a night of rounds would run out of them"


def test_a_nested_repository_cannot_make_us_run_its_programs(root: Path, private: Path, tmp_path: Path) -> None:
    program, song = a_canary(tmp_path)
    nested = a_repository(root / "nested", inside="i\n")
    a_repository(root / "nested" / "deeper", inside="i\n")
    for folder in (nested, nested / "deeper"):
        with (folder / ".git" / "config").open("a") as config:
            config.write(f'[core]\n\tfsmonitor = {program}\n\thooksPath = {tmp_path}\n[filter "a=b.c"]\n')
            config.write(f"\tclean = {program}\n\tprocess = {program}\n\trequired = true\n")
        (folder / ".gitattributes").write_text("* filter=a=b.c\n")
        (folder / "inside").write_text("j\n")  # the same length: only its content can tell
    git_sees_it = subprocess.run(["git", "status"], cwd=nested, capture_output=True, timeout=60)
    assert song.exists(), git_sees_it  # so the canary can sing
    song.unlink()
    assert "+" in GitWorkspace(root, private).snapshot().tree
    assert not song.exists()


# -- kept for good -----------------------------------------------------------------------------------------------------


def test_a_kept_tree_is_found_under_its_name(root: Path, private: Path) -> None:
    (root / "a").write_text("one")
    a_repository(root / "nested")
    workspace = GitWorkspace(root, private)
    tree = workspace.snapshot().tree
    workspace.keep("round/7/after", tree)
    workspace.keep("round/7/after", tree)
    assert git(private, "rev-parse", "refs/bydawn/round/7/after") == tree.partition("+")[0]


ROUND = """
root, private, marks = map(Path, sys.argv[1:])
(root / "folder").mkdir()
for name in ("a", "b", "folder/c", "d"):
    (root / name).write_text(name)
workspace = GitWorkspace(root, private)
workspace.snapshot()
os.mkdir(marks / "before")
before = workspace.snapshot()
os.mkdir(marks / "agent")
(root / "a").write_text("changed")
(root / "folder/c").write_text("changed")
(root / "new").write_text("new")
(root / "d").unlink()
os.mkdir(marks / "after")
after = workspace.snapshot()
workspace.keep("round/1", after.tree)
os.mkdir(marks / "end")
assert after.changes.total == 4 and after.tree != before.tree
"""


@pytest.mark.usefixtures("strace")
def test_a_round_costs_few_git_calls_and_three_syncs(
    root: Path, private: Path, tmp_path: Path, look: list[str]
) -> None:
    log = tmp_path / "strace"
    calls = "trace=execve,mkdir,mkdirat,fsync,fdatasync,syncfs,sync"
    (tmp_path / "marks").mkdir()
    tracer = ("strace", "-f", "-s", "4096", "-e", calls, "-o", str(log))
    done = run_python(ROUND, str(root), str(private), str(tmp_path / "marks"), wrapper=tracer)
    assert done.returncode == 0, done.stderr
    trace = log.read_text()
    before = trace.partition("marks/before")[2].partition("marks/agent")[0]
    after = trace.partition("marks/after")[2].partition("marks/end")[0]
    started = re.compile(r'execve\("[^"]*", \["[^"]*/git", "([\w-]+)".*(?:= 0|<unfinished \.\.\.>)$', re.M)
    synced = re.compile(r"\b(?:fsync|fdatasync|syncfs|sync)\(")
    assert sorted(started.findall(before)) == look
    assert synced.findall(before) == []
    made = started.findall(after)
    assert sorted(made[: len(look)]) == look
    assert made[len(look) :] == ["update-index", "write-tree", "diff-tree"]
    assert len(synced.findall(after)) == 3


# -- faults ------------------------------------------------------------------------------------------------------------


def test_what_a_killed_git_left_behind_is_cleared(root: Path, private: Path) -> None:
    (root / "a").write_text("one")
    GitWorkspace(root, private).snapshot()
    half = private / "objects" / "tmp_objdir-bulk-fsync-abc"
    half.mkdir()
    (half / "rest").write_text("r")
    (private / "refs" / "bydawn").mkdir()
    for lock in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/bydawn/x.lock"):
        (private / lock).write_text("")
    (root / "b").write_text("two")
    workspace = GitWorkspace(root, private)
    snapshot = workspace.snapshot()
    workspace.keep("x", snapshot.tree)
    assert snapshot.changes.paths == ("b",)
    assert not half.exists()
    assert not list(private.rglob("*.lock"))


@pytest.mark.parametrize("damage", [b"", b"DIRC", None])
def test_a_damaged_index_is_made_again(damage: bytes | None, root: Path, private: Path) -> None:
    (root / "a").write_text("one")
    (root / "b").write_text("two")
    first = GitWorkspace(root, private).snapshot()
    index = private / "index"
    whole = index.read_bytes()
    index.write_bytes(whole[:40] + bytes(20) + whole[60:] if damage is None else damage)
    assert GitWorkspace(root, private).snapshot().tree == first.tree


SETTING_UP = "print(GitWorkspace(Path(sys.argv[1]), Path(sys.argv[2])).snapshot().tree)"
MOMENTS = {"mkdir": (1, 2, 4), "rename": (1, 2), "link": (1, 2), "fsync": (1, 2, 3, 4), "unlink": (1, 2)}


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(
    ("call", "number"), [(call, number) for call, numbers in MOMENTS.items() for number in numbers]
)
def test_setting_up_survives_a_kill_at_any_moment(call: str, number: int, root: Path, private: Path) -> None:
    a_repository(root, **{".gitignore": "forced\n", "a": "one\n"})
    (root / "forced").write_text("f")
    git(root, "add", "-f", "forced")
    git(root, "commit", "-qm", "second")
    git(root, "gc", "-q")
    (root / "new").write_text("n")
    shot = f"inject={call}:signal=SIGKILL:when={number}"
    killer = ("strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", shot)
    done = run_python(SETTING_UP, str(root), str(private), wrapper=killer)
    assert done.returncode == -signal.SIGKILL or "GitFailed" in done.stderr, "nothing was killed"
    workspace = GitWorkspace(root, private)
    assert names(private, workspace.snapshot()) == {".gitignore", "a", "forced", "new"}
    git(private, "fsck", "--full")


def a_git_that(bin_: Path, does: str) -> None:
    """A git on the PATH that does something of its own before it becomes the real one."""
    script = bin_ / "git"
    script.write_text(f'#!/bin/sh\n{does}\nexec {shutil.which("git", path=os.defpath)} "$@"\n')
    script.chmod(0o755)


def test_files_that_change_while_we_look_do_not_make_it_fail(root: Path, private: Path, bin_: Path) -> None:
    for name in ("stays", "vanishes", "becomes"):
        (root / name).write_text(name)
    workspace = GitWorkspace(root, private)
    meddle = f"rm -rf {root}/vanishes {root}/becomes && mkdir {root}/becomes && echo x > {root}/becomes/folder"
    a_git_that(bin_, f'case "$*" in *update-index*) test -f {root}/becomes && {meddle};; esac')
    assert names(private, workspace.snapshot()) == {"stays", "becomes/folder"}


def test_after_a_failure_the_next_snapshot_is_not_an_old_one(root: Path, private: Path, bin_: Path) -> None:
    a_git_that(bin_, f'test -e {bin_}/full -a "$1" = write-tree && echo "No space left on device" >&2 && exit 128')
    (root / "a").write_text("one")
    workspace = GitWorkspace(root, private)
    first = workspace.snapshot()
    (root / "a").write_text("two")
    (bin_ / "full").touch()
    with pytest.raises(OwnFailure) as failure:
        workspace.snapshot()
    assert failure.value.what == f"git write-tree failed in {root}"
    assert failure.value.cause == "No space left on device"
    assert failure.value.hint
    (bin_ / "full").unlink()
    assert workspace.snapshot().tree != first.tree


def test_a_private_directory_that_cannot_be_made_is_explained(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("f")
    with pytest.raises(OwnFailure) as failure:
        GitWorkspace(root, tmp_path / "file" / "private")
    assert "cannot be set up" in failure.value.what
    assert failure.value.cause
    assert failure.value.hint


def test_a_broken_index_of_the_user_breaks_nothing(root: Path, private: Path) -> None:
    a_repository(root)
    (root / ".git" / "index").write_bytes(b"rubbish")
    assert names(private, GitWorkspace(root, private).snapshot()) == {"a"}


def test_a_missing_git_is_explained(root: Path, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = GitWorkspace(root, private)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OwnFailure) as failure:
        workspace.snapshot()
    assert failure.value.what == "git cannot be started"
    assert "git" in failure.value.cause
    assert "install git" in failure.value.hint


@pytest.fixture
def hanging(root: Path) -> Iterator[Path]:
    """A pipe where git expects a file: reading it never ends."""
    pipe = root / ".gitignore"
    os.mkfifo(pipe)
    yield pipe
    pipe.unlink()


def test_a_git_that_hangs_is_ended_with_all_it_started(root: Path, private: Path, hanging: Path) -> None:
    with pytest.raises(OwnFailure) as failure:
        GitWorkspace(root, private, seconds=0.3).snapshot()
    assert "did not finish within 0.3 seconds" in failure.value.what
    assert failure.value.hint
    with pytest.raises(OSError, match="No such device"):  # nobody reads the pipe any more
        os.open(hanging, os.O_WRONLY | os.O_NONBLOCK)


def test_where_one_of_two_calls_fails_the_other_is_ended(
    root: Path, private: Path, bin_: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("a")
    GitWorkspace(root, private).snapshot()
    monkeypatch.setattr(bydawn.worktree.workspace, "MANY", 0)
    os.mkfifo(root / ".gitignore")
    program = shutil.which("git")
    (bin_ / "git").write_text(f'#!/bin/sh\n[ "$1" = diff ] && exit 1\nexec {program} "$@"\n')
    (bin_ / "git").chmod(0o755)
    with pytest.raises(GitFailed, match="git diff failed"):
        GitWorkspace(root, private).snapshot()
    with pytest.raises(OSError, match="No such device"):  # nobody reads the pipe any more
        os.open(root / ".gitignore", os.O_WRONLY | os.O_NONBLOCK)


# -- reading a text ----------------------------------------------------------------------------------------------------


def test_a_text_is_read_as_it_is_without_its_byte_order_mark(root: Path, private: Path) -> None:
    (root / "tasks.md").write_bytes(b"\xef\xbb\xbf- [ ] \xc3\xa4\r\n- [x] b\n")
    assert GitWorkspace(root, private).read_text("tasks.md") == "- [ ] ä\r\n- [x] b\n"


def test_a_text_that_is_not_there_is_none(root: Path) -> None:
    (root / "file").write_text("f")
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    for path in ("missing", "file/below", "broken", "pipe"):
        assert read_text(root, path) is None


def test_a_link_is_followed_inside_of_the_workspace_only(root: Path, tmp_path: Path) -> None:
    (root / "file").write_text("f")
    (root / "link").symlink_to("file")
    assert read_text(root, "link") == "f"
    (tmp_path / "secret").write_text("s")
    (root / "out").symlink_to(tmp_path / "secret")
    for path in ("out", "../secret", str(tmp_path / "secret")):
        with pytest.raises(UserError, match="not in the workspace"):
            read_text(root, path)


def test_a_folder_a_giant_and_bad_bytes_are_refused_with_a_reason(root: Path) -> None:
    (root / "folder").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        read_text(root, "folder")
    (root / "giant").touch()
    os.truncate(root / "giant", READ_AT_MOST + 1)
    with pytest.raises(UserError, match="too big"):
        read_text(root, "giant")
    (root / "latin").write_bytes(b"\xef\xbb\xbfcaf\xe9")
    with pytest.raises(UserError) as refusal:
        read_text(root, "latin")
    assert "offset 6" in refusal.value.cause
    assert "0xe9" in refusal.value.cause
    (root / "circle").symlink_to("circle")
    with pytest.raises(UserError, match="cannot be read"):
        read_text(root, "circle")
