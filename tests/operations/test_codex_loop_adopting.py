"""A project of the original codex-loop: what is taken over, and when not."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.loop import SpokenDialect, Worktree
from bydawn.dialects.codex_loop import config
from bydawn.dialects.codex_loop.config import Config, Execution
from bydawn.dialects.follower import digest_at
from bydawn.dialects.written import Written
from bydawn.operations import places
from bydawn.operations.dialects.codex_loop import adopting
from bydawn.store.ledger import encode
from bydawn.store.registry import Registry
from core.facts_made import BORN, NOON, a_loop, a_round, numbered, run_started
from driving import ME, a_repository

ORIGINAL = (Path(__file__).parents[1] / "dialects/codex_loop/original/state.json").read_text()
BRANCH = "codex-loop/shop-20260301"
IDS = ("001-lexer", "002-parser", "003-docs")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *ME, *words], cwd=folder, check=True, capture_output=True, timeout=60)


class Project:
    """A repository, a folder in it with a project, and the worktree that the original made."""

    def __init__(self, root: Path) -> None:
        self.top, self.tree = root / "shop", root / "worktrees/shop-20260301"
        a_repository(self.top, "x\n")
        self.root = self.top / "api"
        (self.root / ".codex-loop").mkdir(parents=True)
        (self.root / "main.py").write_text("1\n")
        (self.root / "tasks").mkdir()
        for name in IDS:
            (self.root / f"tasks/{name}.md").write_text(f"# {name}\n\nDo it.\n")
        git(self.top, "add", "api/main.py")
        git(self.top, "commit", "-qm", "api")
        git(self.top, "worktree", "add", "-q", "-b", BRANCH, str(self.tree))
        self.write(ORIGINAL.replace("PATH", str(self.tree)))

    def write(self, text: str) -> None:
        (self.root / ".codex-loop/state.json").write_text(text)

    def adopt(self, *, worktree: bool = True) -> adopting.Adoption | None:
        return adopting.adopt(self.root, Config(execution=Execution(worktree=config.Worktree(enabled=worktree))))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Project(tmp_path.resolve())


def test_its_branch_and_worktree_are_used(project: Project) -> None:
    """C-045: in the folder there that the project is in its repository."""
    found = project.adopt()
    assert found
    assert (found.branch, found.fact.rounds) == (BRANCH, 7)
    assert found.worktree == Worktree(branch=BRANCH, path=str(project.tree), folder=f"{project.tree}/api")
    assert (found.source_prompt, len(found.remarks)) == ("Let the parser accept nested lists", 3)


def test_a_branch_without_its_worktree_goes_on_elsewhere(project: Project) -> None:
    git(project.top, "worktree", "remove", str(project.tree))
    found = project.adopt()
    assert found
    assert (found.branch, found.worktree) == (BRANCH, None)
    assert found.remarks[-1] == f"its worktree is gone, or on another branch: {BRANCH} goes on in a new one"


def test_a_branch_that_is_gone_is_said_and_not_used(project: Project) -> None:
    git(project.top, "worktree", "remove", str(project.tree))
    git(project.top, "branch", "-qD", BRANCH)
    found = project.adopt()
    assert found
    assert (found.branch, found.worktree) == ("", None)
    assert f"its branch {BRANCH} is gone, or does not" in found.remarks[-1]


def test_no_folder_is_believed_to_be_a_worktree_that_git_does_not_know_as_one(project: Project) -> None:
    """The file may have come with a clone: neither a person's own work tree nor a folder elsewhere is taken."""
    (other := project.top.parent / "elsewhere").mkdir()
    git(project.top, "branch", "mine")
    for path, branch in ((project.top, "main"), (other, BRANCH), (project.tree, "main"), (other, "mine")):
        project.write(ORIGINAL.replace("PATH", str(path)).replace(BRANCH, branch))
        found = project.adopt()
        assert found
        assert (found.worktree, found.branch) == (None, BRANCH if branch == BRANCH else ""), path


def test_the_folder_that_a_person_works_in_is_never_taken_for_the_loops_own(project: Project) -> None:
    """Neither the repository's own, nor the worktree that the project itself is in, on whatever branch they are."""
    git(project.tree, "switch", "-q", "-c", "mine")
    git(project.top, "switch", "-q", BRANCH)
    (state := project.tree / "api/.codex-loop").mkdir()
    for top, branch in ((project.top, BRANCH), (project.tree, "codex-loop/here")):
        if top == project.tree:
            git(project.tree, "switch", "-q", "-c", branch)
        (state / "state.json").write_text(ORIGINAL.replace("PATH", str(top)).replace(BRANCH, branch))
        found = adopting.adopt(project.tree / "api", Config())
        assert found
        assert (found.worktree, found.branch) == (None, branch), top


def test_a_project_without_a_worktree_takes_over_the_rest(project: Project) -> None:
    found = project.adopt(worktree=False)
    assert found
    assert (found.worktree, found.fact.done, len(found.remarks)) == (None, ("001-lexer",), 3)


def test_nothing_is_taken_over_where_the_original_never_ran(project: Project) -> None:
    (project.root / ".codex-loop/state.json").unlink()
    assert project.adopt() is None


def test_what_a_loop_of_ours_wrote_is_not_taken_over(project: Project) -> None:
    """Where that loop is gone with the state folder, its file is the best that is left."""
    project.write(ORIGINAL.replace('"meta"', '"bydawn": {"loop": "shop", "uid": "u-1", "seq": 9},\n"meta"', 1))
    (lock := project.root / ".codex-loop/run.lock").write_text(f'{{"pid": {os.getpid()}}}')
    assert project.adopt()
    folder = Registry().home(project.root) / "shop"
    folder.mkdir(parents=True)
    (folder / "loop.json").write_bytes(msgspec.json.encode(a_loop(id="shop", uid="u-1", workspace=str(project.root))))
    (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered([BORN]))))
    assert project.adopt() is None
    Written(folder).note({".codex-loop/run.lock": digest_at(project.root, ".codex-loop/run.lock") or ""})
    adopting.refuse_live_original(project.root)
    lock.write_text(f'{{"pid":{os.getpid()}}}')
    with pytest.raises(UserError):
        adopting.refuse_live_original(project.root)


@pytest.mark.parametrize("name", ["run.lock", "daemon.json"])
def test_a_live_process_of_the_original_is_left_alone(project: Project, name: str) -> None:
    path = project.root / ".codex-loop" / name
    path.write_text(f'{{"pid": {os.getpid()}}}')
    with pytest.raises(UserError, match="the original codex-loop may be running here") as refused:
        adopting.refuse_live_original(project.root)
    assert (refused.value.exit_code, f".codex-loop/{name} names process {os.getpid()}" in refused.value.cause) == (
        8,
        True,
    )


def test_a_lock_of_a_dead_process_or_without_one_is_in_no_ones_way(project: Project) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    lock = project.root / ".codex-loop/run.lock"
    for text in (str(gone.pid), "", "no json", "x" * 100_000):
        lock.write_text(text)
        adopting.refuse_live_original(project.root)
    lock.unlink()
    lock.mkdir()
    adopting.refuse_live_original(project.root)


def test_a_project_that_was_planned_anew_can_run_although_the_old_one_had_more_iterations(project: Project) -> None:
    spoken = SpokenDialect(name="codex-loop")
    for name, minutes, rounds in (("shop", 0, a_round(1)), ("shop-2", 1, [])):
        folder, at = Registry().home(project.root) / name, NOON + timedelta(minutes=minutes)
        folder.mkdir(parents=True)
        loop = a_loop(id=name, uid=name, workspace=str(project.root), created_at=at, dialect=spoken)
        (folder / "loop.json").write_bytes(msgspec.json.encode(loop))
        (folder / "ledger.jsonl").write_bytes(b"".join(map(encode, numbered([BORN, run_started(), *rounds]))))
    old, new = Registry().in_workspace(project.root)
    (project.root / ".codex-loop/state.json").unlink()
    places.take_up(new)
    places.release(new.loop)
    assert (old.state.round, new.state.round) == (1, 0)
