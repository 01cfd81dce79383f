"""Which loops `clean` may touch, and what it removes of them."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from bydawn.cli.program import bydawn
from bydawn.core.facts import LoopStopped
from bydawn.core.loop import COOKIE, Loop, Worktree
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Decided, End
from bydawn.operations.clean import clean, clean_questions, why_not
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.lock import Lock
from bydawn.store.registry import Standing
from bydawn.store.rounds import Bulk, bulk
from core.facts_made import NOON, a_loop
from driving import ME, a_repository
from operations.stories import held, home_of, write_loop

WEEK = 7 * 86400.0


def standing(
    end: End | None,
    *,
    alive: bool = False,
    dismissed: bool = False,
    folder: Path = Path("x"),
    seq: int = 0,
    hours: float = 0.0,
) -> Standing:
    decided = Decided(rule=Rule.COMPLETE, at=NOON + timedelta(hours=hours), elapsed=0.0)
    stopped = LoopStopped(end=end, reason="", decided=decided) if end else None
    state = LoopState(stopped=stopped, dismissed=dismissed, seq=seq)
    return Standing(folder=LoopFolder(folder), loop=a_loop(), state=state, alive=alive)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (standing(End.COMPLETE), ""),
        (standing(End.UNVERIFIED), ""),
        (standing(End.LIMIT, dismissed=True), ""),
        (standing(End.LIMIT), "it has reached a limit and can go on; dismiss it first"),
        (standing(End.BLOCKED), "it is blocked and can go on; dismiss it first"),
        (standing(End.STOPPED), "it is stopped and can go on; dismiss it first"),
        (standing(None), "it has crashed"),
        (standing(None, dismissed=True), "it has crashed"),
        (standing(None, alive=True), "it is running"),
        (standing(End.COMPLETE, alive=True), "it is complete"),  # its process has not ended yet
    ],
)
def test_only_what_is_finished_or_dismissed_is_cleaned(found: Standing, why: str) -> None:
    """X-27."""
    assert why_not(found, WEEK, NOON + timedelta(days=8)) == why


def test_and_only_after_a_while() -> None:
    """X-27."""
    found = standing(End.COMPLETE)
    assert why_not(found, WEEK, NOON + timedelta(days=6)) == "it has ended too recently; see --older-than"
    assert why_not(found, WEEK, NOON + timedelta(days=7)) == ""


def a_folder(path: Path) -> Path:
    for name in ("rounds/0000/check-1.txt", "rounds/0001/stdout", "rounds/0001/prompt.md", "worker.log"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("12345")
    for name in ("ledger.jsonl", "loop.json", "state.json", "git/HEAD", "rounds/0001/reply.md"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("kept")
    return path


def files(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*") if not each.is_dir()}


def test_what_was_printed_goes_and_the_rest_stays(tmp_path: Path) -> None:
    path = a_folder(tmp_path)
    everything = files(path)
    assert bulk(LoopFolder(path)) == Bulk(4, 20)
    assert files(path) == everything
    assert bulk(LoopFolder(path), remove=True) == Bulk(4, 20)
    assert files(path) == {"ledger.jsonl", "loop.json", "state.json", "git/HEAD", "rounds/0001/reply.md"}
    assert bulk(LoopFolder(path), remove=True) == Bulk(0, 0)


def test_a_reply_that_is_all_of_the_output_stays_and_frees_nothing(tmp_path: Path) -> None:
    path = a_folder(tmp_path)
    (path / "rounds/0001/reply.md").unlink()
    (path / "rounds/0001/reply.md").hardlink_to(path / "rounds/0001/stdout")
    assert bulk(LoopFolder(path), remove=True) == Bulk(4, 15)
    assert (path / "rounds/0001/reply.md").read_text() == "12345"


@pytest.mark.parametrize("link", ["rounds", "rounds/0001", "rounds/0001/stdout", "worker.log"])
def test_nothing_behind_a_link_is_removed(tmp_path: Path, link: str) -> None:
    """FAULTS 36: an agent with full access could have put it there."""
    path, outside = a_folder(tmp_path / "loop"), a_folder(tmp_path / "outside")
    (path / link).rename(tmp_path / "moved")
    (path / link).symlink_to(outside / link)
    everything = files(outside)
    bulk(LoopFolder(path), remove=True)
    assert (files(outside), (path / link).is_symlink()) == (everything, True)


def test_one_that_runs_by_now_keeps_everything(tmp_path: Path) -> None:
    path = a_folder(tmp_path)
    (path / "ledger.jsonl").unlink()
    (path / "state.json").unlink()
    held = Lock.take(path / "lock")
    [row] = clean([standing(End.COMPLETE, folder=path)], 0.0, named=True, apply=True)
    assert (row.files, row.skipped) == (0, "it was started again")
    held.release()
    [row] = clean([standing(End.COMPLETE, folder=path, seq=7)], 0.0, named=True, apply=True)
    assert (row.files, row.skipped) == (0, "it was started again")  # and has ended again
    assert bulk(LoopFolder(path)).files == 4
    [row] = clean([standing(End.COMPLETE, folder=path)], 0.0, named=True, apply=True)
    assert (row.files, row.skipped) == (4, "")
    assert list(clean([standing(End.COMPLETE, folder=path)], 0.0, named=False, apply=True)) == []


# -- the last ones -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "cleaned"),
    [(0, ["one", "two", "three"]), (1, ["one", "three"]), (2, ["one"]), (3, []), (9, [])],
)
def test_the_loops_that_ended_last_keep_everything(tmp_path: Path, keep: int, cleaned: list[str]) -> None:
    ends = {"one": 1.0, "two": 9.0, "three": 2.0}
    loops = [standing(End.COMPLETE, folder=a_folder(tmp_path / name), hours=hours) for name, hours in ends.items()]
    loops.append(standing(End.LIMIT, folder=a_folder(tmp_path / "going"), hours=99.0))  # it would not be cleaned
    loops = [replace(each, loop=a_loop(id=each.folder.name)) for each in loops]
    assert [row.loop for row in clean(loops, 0.0, named=False, apply=False, keep=keep)] == cleaned
    told = {row.loop: row.skipped for row in clean(loops, 0.0, named=True, apply=False, keep=keep)}
    kept = {name: f"--keep {keep} keeps it" for name in ends if name not in cleaned}
    assert told == dict.fromkeys(cleaned, "") | kept | {
        "going": "it has reached a limit and can go on; dismiss it first"
    }


# -- questions ---------------------------------------------------------------------------------------------------------


def a_question(root: Path, name: str, days: float = 30.0) -> Path:
    """What a question to an agent left, so many days ago."""
    for file in ("prompt.md", "stdout", "stderr"):
        path = root / "asked" / name / "rounds/0001" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345")
        os.utime(path, (time.time() - days * 86400,) * 2)
    return root / "asked" / name


def questions(root: Path, *, apply: bool, seconds: float = WEEK) -> list[str]:
    return [Path(row.folder).name for row in clean_questions(StateFolder(root), seconds, apply=apply)]


def test_what_old_questions_left_goes_and_the_young_stay(tmp_path: Path) -> None:
    assert questions(tmp_path, apply=True) == []  # none was ever asked
    a_question(tmp_path, "0ld")
    a_question(tmp_path, "y0ung", days=6.0)
    [row] = clean_questions(StateFolder(tmp_path), WEEK, apply=False)
    assert (row.files, row.bytes) == (3, 15)
    assert [*clean_questions(StateFolder(tmp_path), WEEK, apply=True)] == [row]
    assert os.listdir(tmp_path / "asked") == ["y0ung"]
    assert questions(tmp_path, apply=True) == []


def test_one_that_is_being_asked_stays_however_long_it_takes(tmp_path: Path) -> None:
    place = a_question(tmp_path, "l0ng")
    agent = subprocess.Popen(["sleep", "60"], env=os.environ | {COOKIE: f"{place.name}.asked"})
    try:
        assert questions(tmp_path, apply=True) == []
    finally:
        agent.kill()
        agent.wait()
    assert questions(tmp_path, apply=True) == ["l0ng"]


@pytest.mark.parametrize("link", ["asked", "asked/0ld", "asked/0ld/rounds", "asked/0ld/rounds/0001"])
def test_nothing_behind_a_link_is_taken_for_a_question(tmp_path: Path, link: str) -> None:
    """FAULTS 36."""
    a_question(tmp_path / "state", "0ld")
    (tmp_path / "state" / link).rename(tmp_path / "outside")
    (tmp_path / "state" / link).symlink_to(tmp_path / "outside")
    everything = files(tmp_path / "outside")
    assert questions(tmp_path / "state", apply=True) == []
    assert (files(tmp_path / "outside"), len(everything)) == (everything, 3)


def test_a_persons_file_beside_an_old_question_stays(tmp_path: Path) -> None:
    (a_question(tmp_path, "0ld") / "mine.txt").write_text("a person's")
    assert questions(tmp_path, apply=True) == ["0ld"]
    assert files(tmp_path) == {"asked/0ld/mine.txt"}


# -- a state folder with everything in it ------------------------------------------------------------------------------

# What becomes of the output of each kind of loop, and why it stays; the story of each is in stories.py.
FATES = {
    "complete": "",
    "unverified": "",  # its worktree is not merged
    "dismissed": "",
    "running": "it is running",
    "waiting": "it is waiting",
    "crashed": "it has crashed",
    "blocked": "it is blocked and can go on; dismiss it first",
    "limit": "it has reached a limit and can go on; dismiss it first",
    "checkpoint": "it is at a checkpoint and can go on; dismiss it first",
    "auth": "it has failed and can go on; dismiss it first",
    "tampered": "it is paused and can go on; dismiss it first",
    "stopped": "it is stopped and can go on; dismiss it first",
    "question": "it is damaged",
}
OURS = ("prompt.md", "stdout", "stderr", "check-1.txt", "hook-pre_round.txt")


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Path]:
    """Every kind of loop, each with what it printed, a reply, a person's file and a link; one has a worktree."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/stdout").write_text("a person's")
    for name in FATES:
        write_loop(tmp_path, name)
        folder = home_of(tmp_path, name) / name
        (folder / "rounds/0001").mkdir(parents=True)
        for file in (*OURS, "reply.md"):
            (folder / "rounds/0001" / file).write_text("12345")
        (folder / "worker.log").write_text("12345")
        (folder / "mine.txt").write_text("a person's")
        (folder / "rounds/0002").symlink_to(tmp_path / "mine")
        (folder / "rounds/0001/more").symlink_to(tmp_path / "mine/stdout")
        (folder / "lock").touch()
    (home_of(tmp_path, "question") / "question/ledger.jsonl").write_bytes(b"nonsense\n")
    give_worktree(tmp_path, "unverified")
    a_question(tmp_path / "state", "0ld")
    with ExitStack() as alive:
        for name in FATES:
            alive.enter_context(held(tmp_path, name))
        yield tmp_path


def give_worktree(root: Path, name: str) -> None:
    """A worktree with one commit that the project does not have."""
    workspace, path = root / "work" / name, root / "worktree"
    workspace.rmdir()
    a_repository(workspace, "# a project\n")
    commit = (*ME, "-C", str(path), "commit", "--allow-empty", "-qm", "work")
    for words in ((*ME, "-C", str(workspace), "worktree", "add", "-q", "-b", "night", str(path)), commit):
        subprocess.run(["git", *words], check=True)
    settings = home_of(root, name) / name / "loop.json"
    loop = msgspec.json.decode(settings.read_bytes(), type=Loop)
    tree = Worktree(branch="night", path=str(path), folder=str(path))
    settings.write_bytes(msgspec.json.encode(replace(loop, worktree=tree)))


def told(root: Path, *words: str) -> dict[str, Any]:
    command = ["clean", *words, "--json", "--state-dir", str(root / "state")]
    return dict(json.loads(CliRunner().invoke(bydawn, command, catch_exceptions=False).output))


def test_of_every_kind_of_loop_only_the_output_of_what_is_over_goes(everything: Path) -> None:
    """X-27: never a record, never a person's file; and what is said before is what is done."""
    before = files(everything)
    dry = told(everything)
    assert files(everything) == before
    done = told(everything, "--apply")
    assert done | {"applied": False} == dry
    assert {row["loop"] for row in done["loops"]} == {name for name, why in FATES.items() if not why}
    gone = {
        f"{(home_of(everything, name) / name).relative_to(everything)}/{file}"
        for name, why in FATES.items()
        for file in ("worker.log", *(f"rounds/0001/{each}" for each in OURS))
        if not why
    }
    asked = {f"state/asked/0ld/rounds/0001/{file}" for file in ("prompt.md", "stdout", "stderr")}
    assert before - files(everything) == gone | asked
    assert (everything / "mine/stdout").read_text() == "a person's"
    assert [Path(row["folder"]).name for row in done["questions"]] == ["0ld"]


def test_each_loop_that_keeps_everything_says_why(everything: Path) -> None:
    said = told(everything, *FATES)
    assert {row["loop"]: row["skipped"] for row in said["loops"]} == FATES
    assert said["questions"] == []  # a person has named loops


def test_a_worktree_whose_work_is_not_merged_stays(everything: Path) -> None:
    """X-27."""
    dry, done = told(everything, "--worktrees"), told(everything, "--worktrees", "--apply")
    assert done | {"applied": False} == dry
    [row] = done["worktrees"]
    assert (row["loop"], row["kept"]) == ("unverified", "1 commit on night not merged yet: `git merge night`")
    assert (everything / "worktree/README.md").exists()
