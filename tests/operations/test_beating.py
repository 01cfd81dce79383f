"""Signs of life of a run: always recent, whatever it waits for, and never in the way."""

import json
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import LoopStopped, RunStarted
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import Decided, End
from bydawn.operations.beating import Heartbeat
from bydawn.process.pulse import Pulse
from bydawn.store.folder import LoopFolder
from bydawn.store.heartbeat import touch

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOOP = Loop(id="x", uid="u", workspace="/w", created_at=NOON, prompt="p", agent="demo")


class Minutes:
    """A clock that stands still until the test lets a minute pass, and has seen what follows from it."""

    def __init__(self, path: Path) -> None:
        self.path, self.touched = path, path.with_name("heartbeat")
        self.at, self.turns, self.asked = NOON, Queue[bool](), Queue[float]()
        self.beat = Heartbeat(path, now=lambda: self.at)
        touches = partial(touch, LoopFolder(path.parent))
        self.pulse = Pulse([touches, self.beat.beat], clock=lambda: self.at.timestamp(), wait=self._wait)

    def _wait(self, seconds: float) -> bool:
        self.asked.put(seconds)
        return self.turns.get(timeout=20)

    def passes(self) -> None:
        self.at += timedelta(seconds=self.asked.get(timeout=20))
        self.turns.put(False)
        self.asked.put(self.asked.get(timeout=20))  # it waits again, so it has written

    def is_touched(self) -> bool:
        """Since the last time that anyone asked."""
        touched = self.touched.stat().st_mtime > 1
        os.utime(self.touched, (1, 1))
        return touched

    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_bytes())
        return found

    def saw(self, fact: RunStarted | LoopStopped) -> dict[str, Any]:
        self.beat.saw(fact, LOOP, LoopState())
        return self.said()


@pytest.fixture
def minutes(tmp_path: Path) -> Minutes:
    return Minutes(tmp_path / "heartbeat.json")


def started(cycle: int) -> RunStarted:
    return RunStarted(run="r", pid=1, boot="b", version="0", cycle=cycle)


def stopped(end: End, reason: str) -> LoopStopped:
    return LoopStopped(end=end, reason=reason, decided=Decided(rule=Rule.COMPLETE, at=NOON, elapsed=0.0))


def test_it_beats_every_minute_whatever_the_run_waits_for(minutes: Minutes) -> None:
    """C-044: an agent works for 20 minutes and says nothing."""
    with minutes.beat, minutes.pulse:
        assert minutes.said() == {
            "pid": os.getpid(),
            "phase": "running",
            "updated_at": "2026-01-01T12:00:00Z",
            "cycle": 0,
            "error_count": 0,
            "outcome": None,
            "last_error": None,
        }
        for _ in range(20):
            minutes.passes()
            minutes.pulse.moved()  # the main thread looks for requests while it waits
            assert minutes.is_touched()
        assert minutes.said()["updated_at"] == "2026-01-01T12:20:00Z"
        minutes.turns.put(True)


def test_a_worker_whose_main_thread_is_stuck_falls_silent(minutes: Minutes) -> None:
    """X-30: a thread that beats whatever happens would hide that nothing gets on."""
    with minutes.beat, minutes.pulse:
        for _ in range(29):
            minutes.passes()
        assert minutes.is_touched()
        for _ in range(5):
            minutes.passes()
        assert not minutes.is_touched()
        assert minutes.said()["updated_at"] == "2026-01-01T12:29:00Z"
        minutes.pulse.moved()
        minutes.passes()
        assert minutes.is_touched()
        minutes.turns.put(True)


def test_it_says_how_each_cycle_began_and_ended(minutes: Minutes) -> None:
    with minutes.beat, minutes.pulse:
        assert minutes.saw(started(1))["cycle"] == 1
        ended = minutes.saw(stopped(End.BLOCKED, "no \x1b[31mdatabase"))
        assert (ended["phase"], ended["outcome"], ended["last_error"]) == ("blocked", "blocked", "no database")
        again = minutes.saw(started(2))
        assert (again["phase"], again["cycle"], again["outcome"]) == ("running", 2, "blocked")
        minutes.passes()
        assert minutes.said() == again | {"updated_at": "2026-01-01T12:01:00Z"}
        minutes.saw(stopped(End.UNVERIFIED, "tasks"))
        minutes.turns.put(True)
    last = minutes.said()
    assert (last["phase"], last["outcome"], last["last_error"], last["error_count"]) == (
        "completed",
        "completed",
        None,
        0,
    )


def test_an_error_is_told_and_goes_on(minutes: Minutes) -> None:
    with pytest.raises(UserError, match="no disk"), minutes.beat:
        raise UserError("no disk", hint="buy one")
    last = minutes.said()
    assert (last["phase"], last["error_count"], "no disk" in last["last_error"]) == ("error", 1, True)


@pytest.mark.parametrize("name", ["missing/beat.json", "folder", "pipe", "file/beat.json"])
def test_a_path_that_cannot_be_written_is_refused_before_anything_is_spent(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="cannot be written"), Heartbeat(tmp_path / name):
        pytest.fail("it has begun")
    assert not (tmp_path / "pipe").is_file()


def test_a_path_that_can_no_longer_be_written_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with Heartbeat(tmp_path / "folder/beat.json") as beat:
        (tmp_path / "folder/beat.json").unlink()
        (tmp_path / "folder").rmdir()
        beat.saw(started(1), LOOP, LoopState())


def test_a_relative_path_means_the_folder_where_it_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    beat = Heartbeat(Path("beat.json"))
    monkeypatch.chdir("/")
    with beat:
        assert (tmp_path / "beat.json").is_file()


def test_no_reader_sees_a_part_of_it(tmp_path: Path) -> None:
    """With two writers: the thread of the worker, and the facts of the loop."""
    path = tmp_path / "beat.json"

    def many() -> None:
        for number in range(200):
            beat.saw(stopped(End.LIMIT, "x" * number), LOOP, LoopState())

    facts = Thread(target=many)
    with Heartbeat(path) as beat:
        facts.start()
        with Pulse([beat.beat], wait=lambda _: not facts.is_alive()):
            while facts.is_alive():
                assert json.loads(path.read_bytes())["pid"] == os.getpid()
        facts.join()


def test_a_file_that_cannot_be_touched_ends_nothing(tmp_path: Path) -> None:
    with Pulse([partial(touch, LoopFolder(tmp_path / "missing"))]):
        pass
    assert not (tmp_path / "missing").exists()
