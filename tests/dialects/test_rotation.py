"""Live files that are moved away when they are full: no line is lost, and nothing but such files is touched."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.history import History
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.dialects.follower import DialectFollower
from bydawn.operations import places
from bydawn.system.git import Git
from bydawn.system.live_file import LiveFile, follow
from core.facts_made import a_note
from dialects import made_up
from dialects.stage import LOOPS, Stage
from dialects.test_growth import LIVE, Killer, Live, a_folder, a_link, a_pipe

NIGHT_SHIFT, LOOP = LOOPS["night-shift"]
DAY = 86_400


def moved(log: Path) -> list[Path]:
    """The file and those that were moved away, oldest first."""
    paths = [log.with_name(f"{log.name}.{number}") for number in range(99, 0, -1)]
    return [path for path in (*paths, log) if path.is_file() and not path.is_symlink()]


def text_of(log: Path) -> str:
    """As one file; where a writer was killed the line ends with its file."""
    return "".join(path.read_text().removesuffix("\n") + "\n" for path in moved(log))


def aged(path: Path, days: float, text: str = "old\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def rotating(place: Path, *says: str, **words: str) -> Stage:
    live = LIVE["night-shift"]
    loop = replace(live.loop, dialect=Spoken(name="night-shift", words=words))
    return Live(live.dialect, loop, live.path, live.parsed).stage(place, *says)


# -- when it is full ---------------------------------------------------------------------------------------------------


def test_it_is_moved_away_before_it_passes_its_size(tmp_path: Path) -> None:
    file, log = LiveFile(str(tmp_path), "deep/log", 100, 7, 10), tmp_path / "deep/log"
    lines = [f"line {number}" for number in range(100)]
    for line in lines:
        file.add([line])
    assert text_of(log).splitlines() == lines
    assert {90 < path.stat().st_size <= 100 for path in moved(log)[:-1]} == {True}
    assert [path.name for path in moved(log)] == [
        *(f"log.{number}" for number in range(len(moved(log)) - 1, 0, -1)),
        "log",
    ]
    assert len(moved(log)) > 8


def test_lines_that_are_longer_than_a_whole_file_get_one_of_their_own(tmp_path: Path) -> None:
    file = LiveFile(str(tmp_path), "log", 100, 7, 10)
    for text in ("one", "x" * 500, "two", "y" * 500):
        file.add([text])
    assert [len(path.read_text()) for path in moved(tmp_path / "log")] == [4, 501, 4, 501]


def test_so_many_are_kept_and_no_more(tmp_path: Path) -> None:
    file, log = LiveFile(str(tmp_path), "log", 10, 7, 3), tmp_path / "log"
    for number in range(20):
        file.add([f"line {number:03}"])
    assert text_of(log).splitlines() == [f"line {number:03}" for number in range(16, 20)]
    fewer = LiveFile(str(tmp_path), "log", 10, 7, 1)
    fewer.remove_old()
    assert text_of(log).splitlines() == ["line 018", "line 019"]


def test_after_a_restart_one_that_is_too_large_makes_room_for_the_next_line(tmp_path: Path) -> None:
    """And what other programs added counts."""
    file, log = LiveFile(str(tmp_path), "log", 100, 7, 10), tmp_path / "log"
    log.write_text("x" * 200)
    LiveFile(str(tmp_path), "log", 100, 7, 10).add(["mine"])
    assert [path.read_text() for path in moved(log)] == ["x" * 200, "mine\n"]
    file.add(["other"])
    with log.open("a") as other:
        other.write("y" * 200)
    file.add(["again"])
    assert [path.read_text() for path in moved(log)][1:] == [f"mine\nother\n{'y' * 200}", "again\n"]


def test_a_gap_is_filled_before_anything_moves_on(tmp_path: Path) -> None:
    for name in ("log", "log.1", "log.3"):
        (tmp_path / name).write_text(f"{name}\n")
    LiveFile(str(tmp_path), "log", 100, 7, 10).rotate()
    assert {path.name: path.read_text() for path in moved(tmp_path / "log")} == {
        "log.1": "log\n",
        "log.2": "log.1\n",
        "log.3": "log.3\n",
    }


def test_an_empty_or_missing_file_is_not_moved(tmp_path: Path) -> None:
    file = LiveFile(str(tmp_path), "deep/log", 100, 7, 10)
    file.rotate()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/log").touch()
    file.rotate()
    assert moved(tmp_path / "deep/log") == [tmp_path / "deep/log"]


def test_where_it_cannot_be_moved_it_grows_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "rename", refuse)
    file = LiveFile(str(tmp_path), "log", 10, 7, 10)
    for number in range(5):
        file.add([f"line {number}"])
    assert len((tmp_path / "log").read_text().splitlines()) == 5


# -- what is too old ---------------------------------------------------------------------------------------------------


def test_what_is_too_old_goes_with_the_next_one_that_is_moved_away(tmp_path: Path) -> None:
    file, log = LiveFile(str(tmp_path), "log", 100, 7, 10), aged(tmp_path / "log", 1, "new\n")
    for number, days in ((1, 6.9), (2, 7.1), (3, 6), (4, 400)):
        aged(log.with_name(f"log.{number}"), days, f"{days}\n")
    file.rotate()
    assert {path.name: path.read_text() for path in moved(log)} == {
        "log.1": "new\n",
        "log.2": "6.9\n",
        "log.4": "6\n",
    }


def test_it_goes_at_the_start_of_a_run_but_a_note_removes_nothing(tmp_path: Path) -> None:
    stage = rotating(tmp_path)
    old = aged(stage.workspace / f"{made_up.LOG}.1", 3.5)
    young = aged(stage.workspace / f"{made_up.LOG}.2", 2.5)
    past = stage.night.ledger
    last = past.append(a_note("look"))
    arguments = (NIGHT_SHIFT, stage.folder, stage.workspace, lambda: past.records, stage.said.append)
    DialectFollower(*arguments, at_work=False).saw(last.fact, stage.loop, past.state)
    assert old.exists()
    stage.run()
    assert (old.exists(), young.exists(), stage.said) == (False, True, [])


def test_files_with_other_names_are_not_ours(tmp_path: Path) -> None:
    names = ["log.0", "log.01", "log.100", "log.20240101", "log.old", "log.1.gz", "log.-1", "log.1 ", "logs.1", "log."]
    for name in names:
        aged(tmp_path / name, 400)
    file = LiveFile(str(tmp_path), "log", 10, 7, 2)
    for number in range(9):
        file.add([f"line {number:03}"])
    assert {path.name for path in tmp_path.iterdir()} == {*names, "log", "log.1", "log.2"}


# -- what is in the way ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("put", [a_folder, a_link, a_pipe])
@pytest.mark.parametrize("number", [1, 2])
def test_what_has_the_name_of_one_keeps_its_place(
    put: Callable[[Path, Path], None], number: int, tmp_path: Path
) -> None:
    precious, log = aged(tmp_path / "precious", 400), tmp_path / "log"
    place = tmp_path / f"log.{number}"
    put(place, precious)
    before = os.lstat(place)
    file = LiveFile(str(tmp_path), "log", 10, 7, 2)
    for each in range(9):
        file.add([f"line {each:03}"])
    assert os.path.samestat(os.lstat(place), before)
    assert precious.read_text() == "old\n"
    assert text_of(log).splitlines() == ["line 006", "line 007", "line 008"]


def test_no_link_is_moved_or_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    precious = aged(elsewhere / "log", 400, "x" * 200)
    older = aged(elsewhere / "log.1", 400)
    (tmp_path / "linked").symlink_to(elsewhere)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/log").symlink_to(precious)
    for path in ("linked/log", "own/log"):
        file = LiveFile(str(tmp_path), path, 100, 7, 10)
        for act in (file.rotate, file.remove_old, lambda file=file: file.add(["line"])):
            try:
                act()
            except OSError:
                continue
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["log"]
    assert (precious.read_text(), older.read_text()) == ("x" * 200, "old\n")
    assert len([*elsewhere.iterdir()]) == 2


def test_one_that_git_keeps_is_refused_at_the_start(tmp_path: Path) -> None:
    git = Git(folder=tmp_path, seconds=20)
    git.answer("init", "-q")
    aged(tmp_path / f"{made_up.LOG}.1", 1)
    git.answer("add", "-f", ".")
    with pytest.raises(UserError) as refused:
        places.refuse_tracked(NIGHT_SHIFT, replace(LOOP, workspace=str(tmp_path)))
    assert refused.value.what == f"{made_up.LOG}.1 is not ours to write"


# -- while a loop runs -------------------------------------------------------------------------------------------------


def test_a_loop_goes_on_in_the_next_file(tmp_path: Path) -> None:
    stage = rotating(tmp_path, *(f"word {number}" for number in range(20)), bytes="200", files="20")
    stage.run()
    log = stage.workspace / made_up.LOG
    assert len(moved(log)) > 3
    assert text_of(log).splitlines() == stage.grown
    assert max(path.stat().st_size for path in moved(log)) <= 200
    assert stage.said == []


@pytest.mark.parametrize("half", [False, True])
def test_wherever_a_worker_is_killed_while_it_moves_files_no_line_is_lost_and_the_round_is_closed(
    half: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just before each file is moved, and at the two calls that come after it."""
    killer = Killer(monkeypatch)
    whole = rotating(tmp_path / "whole", "a word", bytes="30")
    killer.arm(0, half=False)
    whole.run()
    moves = [number for number, name in enumerate(killer.seen, 1) if name == "rename"]
    assert len(moves) > 8
    for moment in sorted({number + after for number in moves[:9] for after in range(3)}):
        stage = rotating(tmp_path / str(moment), "a word", bytes="30", files="99")
        killer.arm(moment, half=half)
        stage.run(crash=True)
        killer.arm(0, half=False)
        stage.run()
        log = stage.workspace / made_up.LOG
        log.write_text(text_of(log))  # as one
        rounds, lines = LIVE["night-shift"].rounds(stage, torn=int(half)), log.read_text().splitlines()
        assert len(History(stage.night.ledger.records).attempts) == len(rounds), (moment, lines)
        assert [line for line in lines if line in stage.told_in(made_up.LOG)] == stage.told_in(made_up.LOG), moment
        assert len(lines) == len({*lines}), (moment, lines)
        assert len({*stage.grown} - {*lines}) <= 2, (moment, lines)  # what was being written
        assert stage.said == []


def test_a_new_loop_can_begin_a_new_file(tmp_path: Path) -> None:
    stage = rotating(tmp_path, fresh="yes")
    log = aged(stage.workspace / made_up.LOG, 1, "-- earlier 1 begins --\n")
    stage.run(crash_after=3)
    stage.run()
    assert [path.name for path in moved(log)] == ["live.log.1", "live.log"]
    assert log.with_name("live.log.1").read_text() == "-- earlier 1 begins --\n"
    assert log.read_text().startswith("a new log\n")
    assert stage.said == []


@pytest.mark.parametrize("half", [False, True])
def test_wherever_a_worker_is_killed_while_it_begins_a_new_file_there_is_one(
    half: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)
    for moment in range(1, 60):
        stage = rotating(tmp_path / str(moment), fresh="yes")
        log = aged(stage.workspace / made_up.LOG, 1, "-- earlier 1 begins --\n")
        killer.arm(moment, half=half)
        stage.run(crash=True)
        killer.arm(0, half=False)
        stage.run()
        assert [path.name for path in moved(log)] == ["live.log.1", "live.log"], moment
        assert [line for line in log.read_text().splitlines() if line[0] != "["] == stage.told_in(made_up.LOG), moment


# -- for readers -------------------------------------------------------------------------------------------------------


def test_a_reader_that_follows_gets_every_line_once_and_in_order(tmp_path: Path) -> None:
    """From another process, over some seventy files."""
    file, count = LiveFile(str(tmp_path), "log", 400, 7, 99), 3000
    file.add(["line 0"])
    stream = follow(tmp_path, "log", last=10)
    got = now(stream)
    if (writer := os.fork()) == 0:
        for number in range(1, count):
            file.add([f"line {number}"])
            if number % 25 == 0:
                time.sleep(0.001)
        os._exit(0)
    deadline = time.monotonic() + 30
    while len(got) < count and time.monotonic() < deadline:
        got += now(stream)
    assert os.waitpid(writer, 0)[1] == 0
    assert got == [f"line {number}" for number in range(count)]


def now(stream: Iterator[bytes | None]) -> list[str]:
    """What has come by now."""
    return [line.decode() for line in iter(stream.__next__, None)]


def test_a_slow_reader_misses_none_of_the_files_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bydawn.system.kernel.Watch.wait", lambda *_: None)
    file = LiveFile(str(tmp_path), "log", 20, 7, 10)
    file.add(["before"])
    stream = follow(tmp_path, "log")
    assert now(stream) == []
    lines = [f"line {number}" for number in range(12)]
    for line in lines:
        file.add([line])
    assert len(moved(tmp_path / "log")) > 4
    assert now(stream) == lines
    with (tmp_path / "log").open("a") as other:
        other.write("half")
    assert now(stream) == []
    file.rotate()
    assert now(stream) == []
    file.add(["whole"])
    assert now(stream) == ["half", "whole"]


def test_a_file_in_its_place_that_is_another_is_read_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bydawn.system.kernel.Watch.wait", lambda *_: None)
    file, log = LiveFile(str(tmp_path), "log", 1000, 7, 10), tmp_path / "log"
    aged(tmp_path / "log.1", 1)
    file.add(["one", "two", "three"])
    stream = follow(tmp_path, "log", last=2)
    assert now(stream) == ["two", "three"]
    log.unlink()
    assert now(stream) == []
    log.symlink_to(aged(tmp_path / "precious", 1))
    assert now(stream) == []
    log.unlink()
    file.add(["four"])
    assert now(stream) == ["four"]
