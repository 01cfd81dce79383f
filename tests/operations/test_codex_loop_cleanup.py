"""codex-loop: what `cleanup` removes, and what it never does."""

import os
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact
from bydawn.core.loop import COOKIE, Worktree
from bydawn.core.rules import Rule
from bydawn.core.values import End
from bydawn.dialects.codex_loop.config import Cleanup, Pruned
from bydawn.operations.dialects.codex_loop.cleanup import Asked, clean, rules
from bydawn.store.lock import Lock
from core.facts_made import NOON, a_round, started
from dialects.codex_loop_made import COMPLETE, stop
from driving import ME, a_repository
from operations.codex_loop_project import LEXER, PARSER, Project

LOGS, PROMPTS, RUNS = (f".codex-loop/{name}" for name in ("logs", "prompts", "runs"))
FACTS: list[AnyFact] = [
    *a_round(1, task_id=LEXER),
    *a_round(2, task_id=PARSER),
    *a_round(3, task_id=LEXER),
    *a_round(4, task_id=PARSER),
    COMPLETE,
]
DAYS = {1: 40, 2: 30, 3: 20, 4: 0}  # how old the files of each iteration are


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Four iterations on two tasks, all of whose files are there; the newest were written just now."""
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "shop").mkdir()
    found = Project(tmp_path / "shop").configured()
    found.has(*FACTS)
    for number, days in DAYS.items():
        task = LEXER if number % 2 else PARSER
        for path in (
            f"{LOGS}/{number:04}-{task}.jsonl",
            f"{PROMPTS}/{number:04}-{task}.txt",
            f"{RUNS}/{task}-last.json",
        ):
            aged(found.write(path), days)
    return found


def aged(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * 86_400,) * 2)


def files(project: Project) -> set[str]:
    return {str(path.relative_to(project.root)) for path in (project.root / ".codex-loop").rglob("*") if path.is_file()}


def removed(project: Project, *, apply: bool = True, **asked: Any) -> list[str]:
    """What goes, by name; the dry run before it has named the same, and removed nothing."""
    before = files(project)
    dry = clean(project.root, Asked(**asked), with_worktree=False, apply=False)
    assert files(project) == before
    if apply:
        done = clean(project.root, Asked(**asked), with_worktree=False, apply=True)
        assert (done, files(project)) == (dry, before - {*dry.files})
    assert dry.bytes == len(dry.files)  # one each
    return [path.removeprefix(".codex-loop/") for path in dry.files]


EVERY_LOG = [
    f"logs/0001-{LEXER}.jsonl",
    f"logs/0002-{PARSER}.jsonl",
    f"logs/0003-{LEXER}.jsonl",
    f"logs/0004-{PARSER}.jsonl",
]
KEEP_REST = Pruned(runs=9, prompts=9)


@pytest.mark.parametrize(
    ("asked", "goes"),
    [
        ({}, []),  # ten of each stay
        ({"keep": 4}, []),
        ({"keep": 3}, [EVERY_LOG[0], f"prompts/0001-{LEXER}.txt"]),
        ({"keep": 0, "directory_keep": KEEP_REST}, EVERY_LOG),
        ({"keep": 1, "directory_keep": KEEP_REST}, EVERY_LOG[:3]),
        # The answers are one for each task; the newest is of the task that was worked on last.
        ({"keep": 9, "directory_keep": Pruned(runs=1)}, [f"runs/{LEXER}-last.json"]),
        # Beyond the number, and old enough: both must be true.
        ({"keep": 0, "older_than_days": 25, "directory_keep": KEEP_REST}, EVERY_LOG[:2]),
        ({"keep": 3, "older_than_days": 25, "directory_keep": KEEP_REST}, EVERY_LOG[:1]),
        ({"keep": 0, "older_than_days": 99, "directory_keep": KEEP_REST}, []),
        ({"keep": 0, "older_than_days": 0, "directory_keep": KEEP_REST}, EVERY_LOG),
        (
            {"keep": 0, "older_than_days": 99, "directory_older_than_days": Pruned(logs=35)},
            [EVERY_LOG[0]],
        ),
    ],
)
def test_what_goes_is_beyond_the_number_and_old_enough(
    project: Project, asked: dict[str, Any], goes: list[str]
) -> None:
    """C-015, C-069"""
    assert removed(project, **asked) == goes
    assert removed(project, **asked) == [], "the same again finds nothing"


@pytest.mark.parametrize(
    ("asked", "usual", "logs", "runs"),
    [
        (Asked(), Cleanup(), (10, None), (10, None)),
        (Asked(), Cleanup(keep=5, older_than_days=3), (5, 3), (5, 3)),
        (Asked(), Cleanup(keep=5, directory_keep=Pruned(logs=0)), (0, None), (5, None)),
        (Asked(keep=1), Cleanup(keep=5, directory_keep=Pruned(logs=9)), (1, None), (1, None)),
        (Asked(keep=1, directory_keep=Pruned(logs=2)), Cleanup(), (2, None), (1, None)),
        (
            Asked(directory_older_than_days=Pruned(logs=1)),
            Cleanup(older_than_days=7, directory_older_than_days=Pruned(logs=9, runs=8)),
            (10, 1),
            (10, 8),
        ),
    ],
)
def test_what_is_typed_comes_first_and_then_what_is_for_one_folder(
    asked: Asked, usual: Cleanup, logs: tuple[int, int | None], runs: tuple[int, int | None]
) -> None:
    """C-015"""
    found = rules(asked, usual)
    assert (found["logs"], found["runs"]) == (logs, runs)


def test_numbers_come_from_the_configuration(project: Project) -> None:
    """C-015"""
    project.configured(operator={"cleanup": {"keep": 9, "directory_keep": {"logs": 3}}})
    assert removed(project, apply=False) == [EVERY_LOG[0]]


def test_only_files_that_an_iteration_left_ever_go(project: Project, tmp_path: Path) -> None:
    """X-27, C-015: not a person's, not a link, and nothing behind one."""
    mine = (f"{LOGS}/notes.txt", f"{LOGS}/0009-{LEXER}.jsonl", f"{RUNS}/other-last.json", ".codex-loop/hooks/x.jsonl")
    for path in (*mine, ".codex-loop/state.json", ".codex-loop/artifacts/a"):
        aged(project.write(path), 99)
    precious = project.write("precious.txt", "x")
    first, second = (project.root / ".codex-loop" / path for path in EVERY_LOG[:2])
    first.unlink()
    first.symlink_to(precious)
    second.unlink()
    second.mkdir()
    (tmp_path / "elsewhere").mkdir()
    for prompt in sorted((project.root / PROMPTS).iterdir()):
        prompt.rename(tmp_path / "elsewhere" / prompt.name)
    (project.root / PROMPTS).rmdir()
    (project.root / PROMPTS).symlink_to(tmp_path / "elsewhere")
    goes = removed(project, keep=0)
    assert goes == [EVERY_LOG[2], EVERY_LOG[3], f"runs/{LEXER}-last.json", f"runs/{PARSER}-last.json"]
    assert len([*(tmp_path / "elsewhere").iterdir()]) == 4 and precious.exists()


@pytest.mark.parametrize("is_running", [True, False])
def test_the_files_of_an_iteration_that_has_not_ended_stay(project: Project, is_running: bool) -> None:
    """Also of one whose process died: the next run settles it."""
    project.has(*FACTS[:-1], started(5, task_id=PARSER))
    project.write(f"{PROMPTS}/0005-{PARSER}.txt")
    project.write(f"{LOGS}/0005-{PARSER}.jsonl")
    lock = Lock.take(project.folder / "lock") if is_running else None
    goes = removed(project, keep=0)
    if lock:
        lock.release()
    assert not {f"prompts/0005-{PARSER}.txt", f"logs/0005-{PARSER}.jsonl", f"runs/{PARSER}-last.json"} & {*goes}
    assert {*EVERY_LOG, f"runs/{LEXER}-last.json"} <= {*goes}


def test_files_of_an_earlier_loop_here_are_older_than_all_of_the_last(project: Project) -> None:
    """`init --force` begins again with number 1."""
    project.has(*a_round(1, task_id="001-new"), COMPLETE, name="shop-2", created_at=NOON + timedelta(days=1))
    project.write(f"{LOGS}/0001-001-new.jsonl")
    assert removed(project, keep=1, directory_keep=KEEP_REST) == EVERY_LOG


def test_a_file_that_cannot_be_removed_is_named_with_the_reason(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("bydawn.operations.dialects.codex_loop.cleanup.os.unlink", refuses)
    found = clean(project.root, Asked(keep=3), with_worktree=False, apply=True)
    assert found.stuck == dict.fromkeys(found.files, "Permission denied")


def test_an_agent_may_look_but_not_remove(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COOKIE, "u-1.1.c0")
    assert clean(project.root, Asked(keep=3), with_worktree=True, apply=False).files
    with pytest.raises(UserError, match="agents may not do this"):
        clean(project.root, Asked(keep=3), with_worktree=True, apply=True)


def test_where_nothing_has_run_there_is_nothing_to_remove(project: Project) -> None:
    for path in project.folder.iterdir():
        path.unlink()
    assert clean(project.root, Asked(keep=0), with_worktree=True, apply=True).files == ()


# -- the worktree ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "left", "kept"),
    [
        (COMPLETE, "", ""),
        (COMPLETE, "unmerged", "1 commit on night not merged yet"),
        (COMPLETE, "uncommitted", "it has changes that are not committed"),
        (stop(End.BLOCKED, Rule.NO_PROGRESS), "", "it is blocked and can go on"),
        (None, "", "it has crashed"),
    ],
)
def test_a_worktree_goes_only_if_the_project_is_finished_and_all_of_it_is_merged(
    project: Project, tmp_path: Path, end: AnyFact | None, left: str, kept: str
) -> None:
    """X-27, C-015: dry run and `--apply` say the same."""
    a_repository(tmp_path / "git", "x")
    (tmp_path / "git/.git").rename(project.root / ".git")
    tree = tmp_path / "trees/night"
    git(project.root, "worktree", "add", "-q", "-b", "night", str(tree))
    if left:
        (tree / "work").write_text("mine")
    if left == "unmerged":
        git(tree, "add", "work")
        git(tree, "commit", "-q", "-m", "work")
    place = Worktree(branch="night", path=str(tree), folder=str(tree))
    project.has(*a_round(1, task_id=LEXER), *([end] if end else ()), worktree=place)
    dry = clean(project.root, Asked(), with_worktree=True, apply=False)
    assert clean(project.root, Asked(), with_worktree=False, apply=True).worktree is None
    assert tree.is_dir()
    done = clean(project.root, Asked(), with_worktree=True, apply=True)
    assert dry == done and done.worktree
    assert done.worktree.kept.startswith(kept) and bool(done.worktree.kept) is bool(kept)
    assert tree.is_dir() is bool(kept)


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *ME, "-C", str(folder), *words], check=True, capture_output=True)
