"""Is all well? Each kind of loop, and the folder that holds them."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from bydawn.core.values import Next
from bydawn.operations.health import Finding, Health, Level, health
from bydawn.operations.views import liveness
from bydawn.store.registry import Registry
from operations.stories import STORIES, held, home_of, write_loop

WELL = {"complete", "unverified", "running", "waiting", "pausing", "tampered", "stopped", "dismissed"}


def looked(root: Path, *names: str) -> Health:
    """At these loops, while those that run do."""
    with ExitStack() as alive:
        for name in names:
            alive.enter_context(held(root, name))
        registry = Registry(root / "state")
        return health(registry.root, registry.everywhere())


def silent(root: Path, name: str, seconds: float) -> None:
    """Its process showed so long ago that it is alive."""
    path = home_of(root, name) / name / "heartbeat"
    path.touch()
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.parametrize("name", STORIES)
def test_only_what_needs_a_person_is_not_well(tmp_path: Path, name: str) -> None:
    write_loop(tmp_path, name)
    found = looked(tmp_path, name)
    assert found.verdict is (Level.OK if name in WELL else Level.DEGRADED)
    assert [each.loop for each in found.findings] == ([] if name in WELL else [name])
    assert all(each.hint for each in found.findings)


@pytest.mark.parametrize(
    ("name", "what", "command"),
    [
        ("crashed", "crashed has crashed: its process died around 2026-01-06", "bydawn resume crashed"),
        ("limit", "limit has reached a limit: 1 round", "bydawn resume limit --rounds +20"),
        ("checkpoint", "checkpoint is at a checkpoint: HARD STOP", "bydawn show checkpoint"),
        ("blocked", "blocked is blocked: the agent says: “which rate is meant?”", 'bydawn tell blocked "…"'),
        ("auth", "auth has failed: codex is not logged in", "codex login"),
    ],
)
def test_a_finding_says_what_happened_and_what_helps_first(tmp_path: Path, name: str, what: str, command: str) -> None:
    write_loop(tmp_path, name)
    [found] = looked(tmp_path, name).findings
    assert found.what.startswith(what)
    assert found.hint and found.hint.command == command


def test_a_damaged_loop_is_an_error(tmp_path: Path) -> None:
    """W-101: damage is said, and how it is repaired."""
    write_loop(tmp_path, "complete")
    (home_of(tmp_path, "complete") / "complete/ledger.jsonl").write_bytes(b"nonsense\n")
    found = looked(tmp_path)
    assert found.verdict is Level.ERROR
    assert found.findings[0].hint == Next("bydawn doctor --repair complete", "move the damaged part away")


@pytest.mark.parametrize(("seconds", "verdict"), [(290.0, Level.OK), (400.0, Level.ERROR)])
@pytest.mark.parametrize("name", ["running", "waiting"])
def test_a_process_that_gives_no_sign_of_life_is_an_error(
    tmp_path: Path, name: str, seconds: float, verdict: Level
) -> None:
    write_loop(tmp_path, name)
    silent(tmp_path, name, seconds)
    found = looked(tmp_path, name)
    assert found.verdict is verdict
    if verdict is Level.ERROR:
        [finding] = found.findings
        assert finding.what == f"{name} gives no sign of life for 6 m 40; it may hang"
        assert finding.hint and finding.hint.command == f"bydawn stop {name}"


def test_the_list_of_loops_says_that_one_may_hang(tmp_path: Path) -> None:
    write_loop(tmp_path, "running")
    silent(tmp_path, "running", 400.0)
    with held(tmp_path, "running"):
        [running] = Registry(tmp_path / "state").everywhere()
        assert liveness(running) == "no sign of life for 6 m 40; it may hang"
        silent(tmp_path, "running", 10.0)
        assert liveness(running).startswith("alive, last output ")


@pytest.mark.parametrize("name", ["complete", "crashed", "stopped"])
def test_a_loop_that_does_not_run_need_not_give_any(tmp_path: Path, name: str) -> None:
    write_loop(tmp_path, name)
    silent(tmp_path, name, 4000.0)
    assert Level.ERROR not in {each.verdict for each in looked(tmp_path, name).findings}


def test_the_worst_comes_first_and_what_was_found_elsewhere_counts(tmp_path: Path) -> None:
    for name in ("limit", "crashed", "running"):
        write_loop(tmp_path, name)
    silent(tmp_path, "running", 400.0)
    found = looked(tmp_path, "running")
    assert [each.loop for each in found.findings] == ["running", "crashed", "limit"]
    registry = Registry(tmp_path / "state")
    more = [Finding(verdict=Level.DEGRADED, what="the service is not running")]
    quiet = health(registry.root, [], more)
    assert (quiet.verdict, quiet.loops, quiet.findings) == (Level.DEGRADED, 0, tuple(more))


def test_without_loops_all_is_well_and_nothing_is_made(tmp_path: Path) -> None:
    assert looked(tmp_path) == Health(verdict=Level.OK, loops=0, findings=())
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = looked(tmp_path)
    assert (found.verdict, found.findings[0].what) == (Level.ERROR, f"{tmp_path} is not writable")


def test_a_disk_that_is_nearly_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=10, f_frsize=4096))
    found = looked(tmp_path)
    assert (found.verdict, found.findings[0].what) == (Level.ERROR, f"the disk of {tmp_path} is nearly full")
    assert found.findings[0].hint == Next("bydawn clean", "see what old loops could free")
