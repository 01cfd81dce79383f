"""Where a project of codex-loop is, and what `init` and `doctor` make of git's ignore files (C-069)."""

import subprocess
from pathlib import Path

import pytest

from bydawn.core.errors import UserError
from bydawn.operations.dialects.codex_loop import project

LEAST = "goal: {summary: Greet, done_when: [It greets]}\nverification: {commands: [make test]}\n"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "src" / "deep").mkdir(parents=True)
    git(root, "init", "-q")
    return root


def test_the_current_folder_is_the_project_or_is_in_it(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo / "src" / "deep")
    assert project.root_of(Path()) == repo / "src" / "deep"
    (repo / "codex-loop.yaml").write_text(LEAST)
    assert project.root_of(Path()) == repo
    assert project.root_of(repo / "src") == repo / "src"  # a person has named it
    (repo.parent / "codex-loop.yaml").write_text(LEAST)
    (repo / "codex-loop.yaml").unlink()
    assert project.root_of(Path()) == repo / "src" / "deep"  # what is outside the repository is not its project


def test_a_folder_that_is_not_there_and_a_missing_file_are_refused_with_what_to_do(repo: Path) -> None:
    with pytest.raises(UserError) as caught:
        project.root_of(repo / "nowhere")
    assert caught.value.hint == "give an existing folder: --project-dir PATH"
    with pytest.raises(UserError) as caught:
        project.config_of(repo)
    assert (caught.value.what, caught.value.hint) == (
        "codex-loop.yaml is missing",
        '`codex-loop init --prompt "…"` sets it up',
    )


def test_unknown_keys_are_remarks_of_the_configuration(repo: Path) -> None:
    (repo / "codex-loop.yaml").write_text(f"{LEAST}execution: {{approval: untrusted}}\nodd: 1\n")
    assert project.config_of(repo).remarks == (
        "codex-loop.yaml:4: unknown key 'odd' has no effect",
        "codex-loop.yaml:3: execution.approval untrusted has no effect: a loop asks no one",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ".codex-loop/\n"),
        ("", ".codex-loop/\n"),
        ("*.pyc", "*.pyc\n.codex-loop/\n"),
        ("*.pyc\r\n", "*.pyc\r\n.codex-loop/\r\n"),
        ("a\n/.codex-loop/\n", None),
        (".codex-loop", None),
        ("#.codex-loop/\n!.codex-loop/\n", "#.codex-loop/\n!.codex-loop/\n.codex-loop/\n"),
    ],
)
def test_our_folder_is_named_once_in_a_file_of_git(repo: Path, before: str | None, after: str | None) -> None:
    if before is not None:
        (repo / ".gitignore").write_bytes(before.encode())
    assert project.unignored(repo).get(".gitignore") == after


def test_without_a_repository_nothing_is_ignored(tmp_path: Path) -> None:
    assert project.unignored(tmp_path) == {}


def test_the_exclude_file_of_a_worktree_is_the_one_of_its_repository(repo: Path) -> None:
    git(repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    git(repo, "worktree", "add", "-q", str(repo.parent / "other"))
    exclude = str(repo / ".git" / "info" / "exclude")
    assert [*project.unignored(repo.parent / "other")] == [".gitignore", exclude]
    with (repo / ".git" / "info" / "exclude").open("a") as file:
        file.write(".codex-loop/\n")
    assert [*project.unignored(repo.parent / "other")] == [".gitignore"]
