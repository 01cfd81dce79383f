"""Protected files are found on disk, whoever hides them."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core.errors import UserError
from bydawn.worktree import changes
from bydawn.worktree.workspace import GitWorkspace

GLOBS = ("tests/**", "bydawn.toml")


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def a_project(root: Path) -> GitWorkspace:
    """A repository with a test, and a folder of tests that it ignores."""
    (root / "tests/data").mkdir(parents=True)
    git(root, "init", "-q")
    for path in ("tests/test_a.py", "tests/data/big.bin", "app.py"):
        (root / path).write_text("right")
    (root / "tests/link").symlink_to("test_a.py")
    (root / ".gitignore").write_text("*.bin\n__pycache__/\n.pytest_cache/\n")
    return GitWorkspace(root, root.with_name("private"), protect=GLOBS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def conftest(root: Path) -> Path:
    (root / "tests/conftest.py").write_text("import pytest")
    return root / "tests/conftest.py"


def excluded(root: Path) -> None:
    with (root / ".git/info/exclude").open("a") as file:
        file.write("conftest.py\n")
    conftest(root)


def ignored(root: Path) -> None:
    with (root / ".gitignore").open("a") as file:
        file.write("conftest.py\n")
    conftest(root)


def ignored_inside(root: Path) -> None:
    (root / "tests/.gitignore").write_text("*\n")
    conftest(root)


def large(root: Path) -> None:
    os.truncate(conftest(root), changes.KEPT_AT_MOST + 1)


def nested(root: Path) -> None:
    git(root, "init", "-q", "tests/nested")
    (root / "tests/nested/conftest.py").write_text("import pytest")


def nested_everywhere(root: Path) -> None:
    git(root, "init", "-q", "tests")
    conftest(root)


def sourceless(root: Path) -> None:
    conftest(root).rename(root / "tests/conftest.pyc")
    (root / ".git/info/exclude").write_text("*.pyc\n")


def hidden_in_a_cache(root: Path) -> None:
    (root / "tests/__pycache__").mkdir()
    conftest(root).rename(root / "tests/__pycache__/conftest.py")


def linked_cache(root: Path) -> None:
    (root / "tests/__pycache__").symlink_to(root.parent)


def pipe(root: Path) -> None:
    os.mkfifo(root / "tests/pipe")


HIDDEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "excluded": (excluded, "tests/conftest.py"),
    "ignored": (ignored, "tests/conftest.py"),
    "ignored inside": (ignored_inside, "tests/conftest.py"),
    "large": (large, "tests/conftest.py"),
    "nested": (nested, "tests/nested/conftest.py"),
    "nested everywhere": (nested_everywhere, "tests/conftest.py"),
    "sourceless": (sourceless, "tests/conftest.pyc"),
    "hidden in a cache": (hidden_in_a_cache, "tests/__pycache__/conftest.py"),
    "a link in place of a cache": (linked_cache, "tests/__pycache__"),
    "a pipe": (pipe, "tests/pipe"),
}


@pytest.mark.parametrize("hide", HIDDEN)
def test_a_new_file_below_a_protected_folder_is_seen_whoever_hides_it(hide: str, root: Path) -> None:
    workspace = a_project(root)
    before = workspace.snapshot()
    do, path = HIDDEN[hide]
    do(root)
    after = workspace.snapshot()
    assert path in workspace.touched(before.tree, after.tree, GLOBS)
    # Another process sees the same, and so does one that finds the tree of a round that was killed.
    again = GitWorkspace(root, root.with_name("private"), protect=GLOBS)
    assert again.snapshot().tree == after.tree
    assert path in again.touched(before.tree, after.tree, GLOBS)
    try:
        again.restore(before.tree, again.touched(before.tree, after.tree, GLOBS))
    except UserError as error:
        assert hide.startswith("nested"), error
        assert ".git cannot be restored" in error.what
    assert not os.path.lexists(root / path)


def test_caches_that_no_check_reads_are_left_alone(root: Path) -> None:
    workspace = a_project(root)
    before = workspace.snapshot()
    workspace.watch()
    for cache in ("tests/__pycache__/test_a.cpython-311.pyc", "tests/.pytest_cache/v/cache/lastfailed"):
        (root / cache).parent.mkdir(parents=True)
        (root / cache).write_text("cached")
    assert workspace.snapshot().tree == before.tree
    assert workspace.rewritten() == ()


def test_what_no_snapshot_has_cannot_be_restored_and_that_is_said(root: Path) -> None:
    workspace = a_project(root)
    before = workspace.snapshot().tree
    (root / "tests/data/big.bin").write_text("wrong")
    (root / "tests/test_a.py").write_text("wrong")
    touched = workspace.touched(before, workspace.snapshot().tree, GLOBS)
    assert touched == ("tests/data/big.bin", "tests/test_a.py")
    with pytest.raises(UserError) as failure:
        workspace.restore(before, touched)
    assert failure.value.what == "tests/data/big.bin cannot be restored"
    assert failure.value.cause == "git ignores it or it is too big, so no snapshot has it"
    assert (root / "tests/data/big.bin").read_text() == "wrong"
    assert (root / "tests/test_a.py").read_text() == "right"


def test_an_ignored_file_is_the_same_file_when_it_is_no_longer_ignored(root: Path) -> None:
    workspace = a_project(root)
    ignored_before = workspace.snapshot().tree
    (root / ".gitignore").write_text("")
    kept = workspace.snapshot().tree
    assert workspace.touched(ignored_before, kept, GLOBS) == ()
    (root / "tests/test_b.py").write_text("new")
    assert workspace.touched(kept, workspace.snapshot().tree, GLOBS) == ("tests/test_b.py",)
    workspace.restore(kept, ["tests/test_b.py"])
    assert workspace.snapshot().tree.partition("+")[0] == kept.partition("+")[0]


def test_what_git_ignores_is_no_work(root: Path) -> None:
    workspace = a_project(root)
    before = workspace.snapshot()
    (root / "tests/data/big.bin").write_text("wrong")
    after = workspace.snapshot()
    assert (before.tree != after.tree, before.work) == (True, after.work)


def test_a_lost_note_is_said_and_never_taken_for_no_files(root: Path) -> None:
    workspace = a_project(root)
    tree = workspace.snapshot().tree
    shutil.rmtree(root.with_name("private") / "bydawn-protected")
    with pytest.raises(UserError, match="cannot be read"):
        workspace.touched(tree, tree.partition("+")[0], GLOBS)


# -- whatever happens there --------------------------------------------------------------------------------------------


def change(path: Path, kind: str) -> None:
    """Change what is at a path to something else."""
    was = path.read_bytes() if path.is_file() and not path.is_symlink() else b"none"
    if os.path.lexists(path):
        path.unlink()
    match kind:
        case "same size":
            path.write_bytes(was[::-1] + b"x" if was == was[::-1] else was[::-1])
        case "large":
            path.write_bytes(b"n" * (changes.KEPT_AT_MOST + 1))
        case "linked":
            path.symlink_to("nowhere")
        case "pipe":
            os.mkfifo(path)
        case "program":
            path.write_bytes(was)
            path.chmod(0o755)
        case "nested":
            git(path.parent, "init", "-q", str(path))
        case _:  # gone
            pass


KINDS = ["same size", "large", "linked", "pipe", "program", "nested", "gone", "put back"]
PLACES = [
    "tests/test_a.py", "tests/data/big.bin", "tests/link", "tests/new.py", "tests/new.bin", "tests/data/new",
    "tests/new.pyc", "tests/__pycache__/new.py",
]  # fmt: skip


@given(kind=st.sampled_from(KINDS), place=st.sampled_from(PLACES), hidden=st.sampled_from(["", "*\n", "tests/\n"]))
def test_any_change_below_a_protected_glob_is_reported(kind: str, place: str, hidden: str) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "KEPT_AT_MOST", 100)
        root = Path(folder, "work")
        workspace = a_project(root)
        before = workspace.snapshot()
        workspace.watch()
        with (root / ".git/info/exclude").open("a") as file:
            file.write(hidden)
        path, there = root / place, os.path.lexists(root / place)
        path.parent.mkdir(exist_ok=True)
        if kind == "put back":
            saved = path.lstat() if there else None
            text = path.read_bytes() if there else b"new"
            target = path.readlink() if path.is_symlink() else None
            change(path, "same size")
            path.unlink()
            path.symlink_to(target) if target else path.write_bytes(text)
            if saved:
                os.utime(path, ns=(saved.st_atime_ns, saved.st_mtime_ns), follow_symlinks=False)
            else:
                path.unlink()
            assert workspace.rewritten() == ((place,) if there else ())
            assert workspace.touched(before.tree, workspace.snapshot().tree, GLOBS) == ()
            return
        change(path, kind)
        touched = workspace.touched(before.tree, workspace.snapshot().tree, GLOBS)
        changed = there or kind != "gone"
        assert any(each.startswith(place) for each in touched) is changed
        assert bool(workspace.rewritten()) is changed
