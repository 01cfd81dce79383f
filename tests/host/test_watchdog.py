"""The parent that keeps loops running: what it starts again, when it gives up, and what it ends."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bydawn.core.values import STALE, Death, Restart
from bydawn.host.watchdog import Kept, Phase, Watchdog, spawn
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Lock
from driving import wait_for

QUICK: dict[str, Any] = {"back_off": 0.02, "look": 0.02, "terminate": 0.2}


class Stage:
    """A loop's folder, a process that plays its worker, and a watchdog in a child that tells what it did."""

    def __init__(self, folder: Path) -> None:
        self.folder = LoopFolder(folder)
        self.told = folder / "told"
        self.starts = folder / "starts"
        self.over = folder / "over"

    def is_lost(self, _: LoopFolder) -> bool:
        return not self.over.exists()

    def note(self, path: Path, text: str) -> None:
        with path.open("a") as file:
            file.write(f"{text}\n")

    def give_up(self, _: Kept, restart: Restart) -> int:
        self.note(self.starts, f"gave up: {restart.number}")
        return 0

    def lines(self, path: Path) -> list[str]:
        return path.read_text().splitlines() if path.exists() else []

    def kept(self, work: Callable[[], int], restart: Restart | None = None) -> Kept:
        def begin(restart: Restart | None) -> int:
            self.note(self.starts, f"{restart.number} {restart.why} {restart.exit_code}" if restart else "first")
            return work()

        return Kept(name="shop", folder=lambda: self.folder, begin=begin, restart=restart)

    def watchdog(self, **more: Any) -> Watchdog:
        return Watchdog(
            is_lost=self.is_lost,
            give_up=self.give_up,
            say=lambda text: self.note(self.told, text),
            told=lambda each: self.note(self.told, each.phase),
            **{**QUICK, **more},
        )

    def watch(self, work: Callable[[], int], restart: Restart | None = None, **more: Any) -> int:
        """In a child, as its signal handlers would be ours; its process id."""

        def watch() -> int:
            self.watchdog(**more).run([self.kept(work, restart)])
            return 0

        return spawn(watch)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def ended(pid: int) -> int:
    """Its exit code, once it has ended."""
    found = wait_for(lambda: [status for found, status in [os.waitpid(pid, os.WNOHANG)] if found])
    return os.waitstatus_to_exitcode(found[0])


def test_a_process_that_dies_is_started_ten_times_and_no_more(stage: Stage) -> None:
    """C-066"""
    assert ended(stage.watch(lambda: -9)) == 0
    deaths = [f"{number} exited -9" for number in range(1, 11)]
    assert stage.lines(stage.starts) == ["first", *deaths, "gave up: 11"]
    *_, last, phase = stage.lines(stage.told)
    assert phase == "exhausted"
    assert "shop: its process died 11 times in a row; the last time it was killed (signal 9)" in last


def test_a_loop_that_had_died_too_often_before_is_given_up_and_not_started(stage: Stage) -> None:
    """Another watchdog saw it die, or none did."""
    too_often = Restart(number=11, why=Death.FOUND)
    assert ended(stage.watch(lambda: 0, too_often)) == 0
    assert stage.lines(stage.starts) == ["gave up: 11"]
    assert stage.lines(stage.told)[-1] == "exhausted"


def test_a_loop_that_ends_in_good_order_is_left_alone_whatever_its_exit_code(stage: Stage) -> None:
    def work() -> int:
        stage.over.touch()
        return 3

    assert ended(stage.watch(work)) == 0
    assert stage.lines(stage.told) == ["running", "over"]


def test_a_loop_that_cannot_begin_is_tried_later_and_nothing_is_counted(stage: Stage) -> None:
    """Its disk may not be mounted yet."""
    pid = stage.watch(lambda: 2)
    wait_for(lambda: "restarting" in stage.lines(stage.told))
    assert stage.lines(stage.told) == ["running", "shop cannot go on now; the next try is in 1 m 00", "restarting"]
    os.kill(pid, signal.SIGTERM)
    assert (ended(pid), stage.lines(stage.starts)) == (0, ["first"])


def test_a_guardian_that_is_killed_itself_is_noticed(stage: Stage) -> None:
    def work() -> int:
        if len(stage.lines(stage.starts)) > 1:
            stage.over.touch()
            return 0
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert ended(stage.watch(work)) == 0
    assert stage.lines(stage.starts) == ["first", "1 exited -9"]


def test_nothing_is_started_while_someone_holds_the_loops_lock(stage: Stage) -> None:
    """The worker may outlive its guardian for a moment, or a person may have resumed it."""

    def hold() -> int:
        Lock.take(stage.folder.lock)
        stage.note(stage.told, "held")
        time.sleep(60)
        return 0

    holder = spawn(hold)
    wait_for(lambda: stage.lines(stage.told))

    def work() -> int:
        stage.over.touch()
        return 0

    pid = stage.watch(work)
    time.sleep(0.2)
    assert not stage.starts.exists()
    os.kill(holder, signal.SIGKILL)
    ended(holder)
    assert ended(pid) == 0
    assert stage.lines(stage.starts) == ["first"]


def test_a_process_that_hangs_is_ended_and_started_again(stage: Stage) -> None:
    """Also one that ignores SIGTERM: its worker is killed, then its guardian."""

    def work() -> int:
        if len(stage.lines(stage.starts)) > 1:
            stage.over.touch()
            return 0
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)

    assert ended(stage.watch(work, stale=3)) == 0  # both have time to begin
    assert stage.lines(stage.starts) == ["first", "1 hung -9"]
    assert "shop: no sign of life for 3 s; ending its process" in stage.lines(stage.told)


def test_only_a_heartbeat_that_stops_means_that_a_process_hangs(stage: Stage) -> None:
    """An agent that works for 20 minutes touches it every minute; a clock that stands still for hours is a suspend."""
    watchdog, each = stage.watchdog(stale=STALE), stage.kept(lambda: 0)
    each.pid, each.phase = os.getpid(), Phase.RUNNING
    for minute in range(20):
        stage.folder.heartbeat.touch()
        os.utime(stage.folder.heartbeat, (minute, minute))
        for second in range(0, 60, 5):
            watchdog._look_at(each, minute * 60.0 + second)
    assert not each.kills
    os.utime(stage.folder.heartbeat, (1e9, 1e9))  # the wall clock jumped, or the machine slept
    watchdog._look_at(each, 1200.0)
    watchdog._look_at(each, 1200.0 + STALE - 1)
    assert not each.kills
    watchdog._look_at(each, 1200.0 + STALE)
    assert [number for _, number in each.kills] == [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]
    assert each.death is Death.HUNG


def test_how_a_loop_is_is_told_again_and_again_while_nothing_changes(stage: Stage) -> None:
    noted: list[str] = []
    watchdog = stage.watchdog(still=lambda each: noted.append(each.name), stale=1e9)
    each = stage.kept(lambda: 0)
    each.pid, each.phase = os.getpid(), Phase.RUNNING
    watchdog._kept.append(each)
    for second in range(0, 300, 5):
        watchdog._turn(1000.0 + second)
    assert noted == ["shop"] * 5


def test_a_loop_that_someone_else_had_taken_is_not_started_when_they_have_ended_it(stage: Stage) -> None:
    """The person resumed it in this very moment, and stopped it later."""
    watchdog, each = stage.watchdog(), stage.kept(lambda: 0)
    watchdog._kept.append(each)
    held = Lock.take(stage.folder.lock)
    watchdog._turn(100.0)
    held.release()
    stage.over.touch()
    watchdog._turn(200.0)
    assert (each.phase, stage.starts.exists(), watchdog._kept) == (Phase.OVER, False, [])


def test_a_machine_that_cannot_fork_does_not_end_the_watchdog(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    watchdog, each = stage.watchdog(), stage.kept(lambda: 0)
    watchdog._kept.append(each)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    monkeypatch.setattr(os, "fork", no_memory)
    watchdog._turn(100.0)
    assert "shop: Resource temporarily unavailable; trying again in a moment" in stage.lines(stage.told)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert 100.0 < each.due <= 101.0


def test_a_loop_that_can_never_begin_is_tried_every_hour_for_years(stage: Stage) -> None:
    watchdog, each = stage.watchdog(), stage.kept(lambda: 0)
    for _ in range(3000):
        watchdog._try_later(each, 0.0)
    assert each.due == 3600.0


def test_sigterm_ends_every_loop_gently_and_then_the_watchdog(stage: Stage) -> None:
    def work() -> int:
        def end(*_: object) -> None:
            stage.note(stage.told, "asked to pause")
            os._exit(130)

        signal.signal(signal.SIGTERM, end)
        stage.note(stage.told, "ready")
        while True:
            time.sleep(60)

    pid = stage.watch(work, terminate=10)
    wait_for(lambda: "ready" in stage.lines(stage.told))
    os.kill(pid, signal.SIGTERM)
    assert ended(pid) == 0
    assert stage.lines(stage.told)[-3:] == ["asked to end; every loop pauses", "asked to pause", "stopped"]


def test_a_guardian_that_was_stopped_still_ends_what_its_worker_leaves(stage: Stage) -> None:
    """SIGTERM wakes it. Killed together with its worker, it could end nothing."""

    def work() -> int:
        def end(*_: object) -> None:
            stage.note(stage.starts, "swept")
            os._exit(130)

        signal.signal(signal.SIGTERM, end)
        stage.note(stage.told, str(os.getpid()))
        while True:
            time.sleep(60)

    pid = stage.watch(work, terminate=10)
    guardian = int(wait_for(lambda: [line for line in stage.lines(stage.told) if line.isdigit()])[0])
    os.kill(guardian, signal.SIGSTOP)
    os.kill(pid, signal.SIGTERM)
    assert (ended(pid), stage.lines(stage.starts)) == (0, ["first", "swept"])


def test_a_loop_that_a_person_took_over_between_two_starts_is_left_to_them(stage: Stage) -> None:
    def work() -> int:
        return 1

    pid = stage.watch(work, back_off=3)
    wait_for(lambda: "restarting" in stage.lines(stage.told))
    stage.over.touch()
    assert ended(pid) == 0
    assert (stage.lines(stage.starts), stage.lines(stage.told)[-1]) == (["first"], "over")
