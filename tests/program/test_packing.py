"""What snapshots leave behind is packed, and a kill at any moment loses none of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bydawn.worktree import packing
from bydawn.worktree.workspace import GitWorkspace


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setattr(packing, "WORTH_IT", 1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return tmp_path / "private"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def six_rounds(workspace: GitWorkspace, root: Path) -> str:
    """Six kept trees, three of them packed, and a last one that no ref names."""
    for number in range(6):
        for name in ("a", "b", "c"):
            (root / name).write_text("line\n" * 200 + f"{number} {name}")
        workspace.keep(f"after/{number}", workspace.snapshot().tree)
        if number == 2:
            workspace.tidy()
    (root / "new").write_text("in no ref yet")
    return workspace.snapshot().tree


def everything_kept(private: Path) -> dict[str, str]:
    """Every ref with all that is reachable from it; fails if anything is missing or damaged."""
    git(private, "fsck", "--full")
    refs = git(private, "for-each-ref", "--format=%(refname)").splitlines()
    return {ref: git(private, "ls-tree", "-r", ref) for ref in refs}


def packs(private: Path) -> list[Path]:
    return list((private / "objects" / "pack").glob("*.pack"))


def test_what_is_kept_is_packed_and_nothing_is_lost(root: Path, private: Path) -> None:
    workspace = GitWorkspace(root, private)
    tree = six_rounds(workspace, root)
    before = everything_kept(private)
    workspace.tidy()
    assert everything_kept(private) == before
    assert len(before) == 6
    assert git(private, "count-objects") == "0 objects, 0 kilobytes"
    assert len(packs(private)) <= 2
    assert not [path for path in (private / "refs").rglob("*") if path.is_file()]
    assert workspace.snapshot().tree == tree
    with workspace.checkout(tree) as folder:
        assert (folder / "new").read_text() == "in no ref yet"
    workspace.keep("after/5", tree)
    assert git(private, "rev-parse", "refs/bydawn/after/5") == tree


def test_what_no_ref_needs_is_removed_after_a_day(root: Path, private: Path) -> None:
    workspace = GitWorkspace(root, private)
    six_rounds(workspace, root)
    blobs = []
    for text, hours in (("old", 25), ("young", 1)):
        (root / text).write_text(text)
        blobs.append(git(private, "hash-object", "-w", str(root / text)))
        stored = private / "objects" / blobs[-1][:2] / blobs[-1][2:]
        then = stored.stat().st_mtime - hours * 3600
        os.utime(stored, (then, then))
        (root / text).unlink()
    workspace.tidy()
    left = git(private, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert [blob in left for blob in blobs] == [False, True]


def test_a_few_objects_are_not_worth_packing(root: Path, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = GitWorkspace(root, private)
    monkeypatch.setattr(packing, "WORTH_IT", 1000)
    six_rounds(workspace, root)
    workspace.tidy()
    assert packs(private) == []


def test_packing_that_takes_too_long_is_given_up(
    root: Path, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    six_rounds(GitWorkspace(root, private), root)
    before = everything_kept(private)
    slow, draft = tmp_path / "bin" / "git", private / "objects" / "pack" / ".tmp-1-pack-x.pack"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\ntest $1 != repack || {{ touch {draft}; sleep 60; }}\nexec {shutil.which("git")} "$@"\n'
    )
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(packing, "SECONDS", 0.3)
    workspace = GitWorkspace(root, private)
    workspace.tidy()
    assert not draft.exists()
    assert everything_kept(private) == before
    assert workspace.snapshot().changes.total == 0


TIDY = """
import sys
from pathlib import Path
from bydawn.worktree import packing
from bydawn.worktree.workspace import GitWorkspace
packing.WORTH_IT = 1
GitWorkspace(Path(sys.argv[1]), Path(sys.argv[2])).tidy()
"""
MOMENTS = {"rename": (1, 2), "unlink": (1, 4, 9), "fsync": (1,), "rmdir": (1,)}


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(
    ("call", "number"), [(call, number) for call, numbers in MOMENTS.items() for number in numbers]
)
def test_packing_survives_a_kill_at_any_moment(call: str, number: int, root: Path, private: Path) -> None:
    tree = six_rounds(GitWorkspace(root, private), root)
    before = everything_kept(private)
    log, shot = root.with_name("log"), f"inject={call}:signal=SIGKILL:when={number}"
    killer = ("strace", "-f", "-o", str(log), "-e", f"trace={call}", "-e", shot)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([*killer, sys.executable, "-c", TIDY, str(root), str(private)], env=environment, timeout=120)
    assert "killed by SIGKILL" in log.read_text()
    assert everything_kept(private) == before
    workspace = GitWorkspace(root, private)
    assert workspace.snapshot().tree == tree
    workspace.tidy()
    assert everything_kept(private) == before
    assert git(private, "count-objects") == "0 objects, 0 kilobytes"
    assert not list(private.rglob("*tmp*"))
