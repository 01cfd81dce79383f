"""Which loops `clean` may touch, and what it removes of them."""

from datetime import timedelta
from pathlib import Path

import pytest

from bydawn.core.facts import LoopStopped
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Decided, End
from bydawn.operations.clean import clean, why_not
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Lock
from bydawn.store.registry import Standing
from bydawn.store.rounds import Bulk, bulk
from core.facts_made import NOON, a_loop

WEEK = 7 * 86400.0


def standing(
    end: End | None, *, alive: bool = False, dismissed: bool = False, folder: Path = Path("x"), seq: int = 0
) -> Standing:
    decided = Decided(rule=Rule.COMPLETE, at=NOON, elapsed=0.0)
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
