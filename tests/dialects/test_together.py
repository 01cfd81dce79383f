"""One JSON file of many loops: nothing of another's is lost, no reader sees a part of it, and no loop waits for it."""

import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from bydawn import dialects
from bydawn.core.errors import UserError
from bydawn.core.loop import Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.dialects.follower import DialectFollower
from bydawn.operations import places
from bydawn.store.folder import StateFolder
from bydawn.system import shared_file
from core.facts_made import a_note
from dialects.stage import LOOPS, Stage, at_work
from dialects.test_growth import Killer

NIGHT_SHIFT, LOOP = LOOPS["night-shift"]


@pytest.fixture
def roster(tmp_path: Path) -> Path:
    return tmp_path / "config/deep/roster.json"


def stage_at(place: Path, roster: Path) -> Stage:
    """A loop that shares a file outside its workspace."""
    spoken = Spoken(name="night-shift", words={"roster": str(roster)})
    return Stage(place, NIGHT_SHIFT, replace(LOOP, dialect=spoken))


PATIENT = 60.0  # seconds: on a busy machine five writers may keep a sixth from it for a while


def put(path: Path, keys: tuple[str, ...], **value: object) -> list[str]:
    said: list[str] = []
    shared_file.update(path, {keys: value}, said.append, patience=PATIENT)
    return said


def shifts(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())["shifts"])


def forked(work: Callable[[], object]) -> int:
    """Another process that does this; it ends as if it were killed, unless all went well."""
    if pid := os.fork():
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        os._exit(1)


def killed(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def obstruct(place: Path, kind: str, target: Path) -> None:
    match kind:
        case "link":
            place.symlink_to(target)
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)
        case _:
            pass


# -- many writers ------------------------------------------------------------------------------------------------------


def test_a_file_may_have_fields_of_its_own_beside_the_entries_of_loops(roster: Path) -> None:
    put(roster, ("shifts", "late"), state="at work")
    put(roster, (), version=1, updated="now")
    put(roster, (), updated="later")
    assert json.loads(roster.read_text()) == {
        "shifts": {"late": {"state": "at work"}},
        "version": 1,
        "updated": "later",
    }


def test_writers_at_once_lose_nothing_and_no_reader_sees_a_part(roster: Path) -> None:
    """R-048: a reader in a tight loop, while one writer of six is killed again and again."""
    enough = roster.parents[2] / "enough"

    def write(name: str) -> None:
        for number in range(40):
            put(roster, ("shifts", name), **{f"field {number}": "x" * 500})

    def keep_writing(name: str) -> None:
        """The writers may be much faster than the reader: they go on until it has seen enough."""
        write(name)
        for number in range(10_000):
            if enough.exists():
                break
            put(roster, ("shifts", name), **{"field 0": f"{number}".rjust(500, "x")})

    put(roster, ("shifts", "theirs"), kept=True)
    pids, seen = [forked(lambda name=name: keep_writing(name)) for name in "abcde"], 0  # type: ignore[misc]
    victims = 0
    while pids:
        assert shifts(roster)["theirs"] == {"kept": True}
        seen += 1
        pids = [pid for pid in pids if os.waitpid(pid, os.WNOHANG) == (0, 0)]
        if seen % 20 == 0:
            victim = forked(lambda: write("victim"))
            time.sleep(0.003)
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            victims += 1
            if victims == 2:
                enough.touch()
    found = shifts(roster)
    assert [len(found[name]) for name in "abcde"] == [40] * 5
    assert seen > 20
    assert victims
    put(roster, ("shifts", "after"), all="well")
    assert {path.name for path in roster.parent.iterdir()} == {"roster.json", "roster.lock"}, "no draft is left"


def test_killed_between_lock_and_rename_the_old_file_stays_and_the_next_writer_goes_on(
    roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(roster, ("shifts", "one"), state="at work")
    before = roster.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        pid = forked(lambda: put(roster, ("shifts", "two"), state="at work"))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert roster.read_bytes() == before
    assert (roster.parent / ".roster.json.tmp").exists()
    assert put(roster, ("shifts", "three"), state="home") == []
    assert [*shifts(roster)] == ["one", "three"]
    assert {path.name for path in roster.parent.iterdir()} == {"roster.json", "roster.lock"}


def test_it_is_for_its_owner_only_and_so_are_folders_that_had_to_be_made(roster: Path) -> None:
    before = os.umask(0)
    try:
        put(roster, ("shifts", "one"), state="at work")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (roster, roster.with_name("roster.lock"), roster.parent)]
    assert [oct(mode) for mode in modes] == ["0o600", "0o600", "0o700"]
    assert stat.S_IMODE(roster.parents[1].stat().st_mode) == 0o700


def test_a_lock_that_was_deleted_while_we_waited_is_worth_nothing(
    roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(roster, ("shifts", "one"), state="at work")
    lock, real, opened = roster.with_name("roster.lock"), fcntl.flock, list[int]()

    def flock(fd: int, how: int) -> None:
        real(fd, how)
        opened.append(os.fstat(fd).st_ino)
        if len(opened) == 1:
            lock.rename(roster.with_name("deleted"))

    monkeypatch.setattr(fcntl, "flock", flock)
    put(roster, ("shifts", "two"), state="at work")
    assert opened[-1] == lock.stat().st_ino != opened[0]


# -- what is in it -----------------------------------------------------------------------------------------------------


def test_entries_and_fields_that_nobody_knows_stay_as_they_are(roster: Path) -> None:
    roster.parent.mkdir(parents=True)
    theirs = {"version": 3, "shifts": {"old": {"pid": 10**30, "x": [1.5, None]}, "mine": {"color": "é", "pass": 1}}}
    roster.write_text(json.dumps(theirs))
    assert put(roster, ("shifts", "mine"), **{"pass": 2}) == []
    theirs["shifts"]["mine"]["pass"] = 2  # type: ignore[index]
    assert shared_file.read(roster) == json.loads(roster.read_text()) == theirs
    assert roster.read_text() == json.dumps(theirs, indent=2, ensure_ascii=False) + "\n"


def test_an_entry_can_be_removed_and_what_does_not_change_is_not_written(roster: Path) -> None:
    assert shared_file.read(roster) is None
    put(roster, ("shifts", "one"), state="home")
    put(roster, ("shifts", "two"), state="home")
    inode = roster.stat().st_ino
    put(roster, ("shifts", "two"), state="home")
    assert roster.stat().st_ino == inode
    shared_file.update(roster, {("shifts", "one"): None, ("shifts", "none"): None}, pytest.fail)
    assert shifts(roster) == {"two": {"state": "home"}}


DAMAGED = {
    "a part": b'{"shifts": {"one": {"pa',
    "no object": b"[1, 2]",
    "an entry in the way": b'{"shifts": []}',
    "deep": b'{"a":' * 100_000,
    "not a text": b"\xff\xfe\x00",
    "a number that is none": b'{"shifts": NaN}',
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_kept_aside_said_and_started_from_scratch(roster: Path, data: bytes) -> None:
    roster.parent.mkdir(parents=True)
    for _ in range(2):
        roster.write_bytes(data)
        [said] = put(roster, ("shifts", "one"), state="at work")
        assert said.startswith(f"{roster} was damaged (")
        assert said.endswith("), so it starts from scratch; the old one is kept as roster.json.bad")
        assert roster.with_name("roster.json.bad").read_bytes() == data
        assert shifts(roster) == {"one": {"state": "at work"}}
    assert put(roster, ("shifts", "two"), state="at work") == []


def test_one_that_is_far_too_large_counts_as_damaged(roster: Path) -> None:
    roster.parent.mkdir(parents=True)
    with roster.open("wb") as file:
        file.write(b'{"shifts": {"')
        file.seek(10 << 30)  # a hole
        file.write(b'": {}}}')
    assert shared_file.read(roster) is None
    assert len(put(roster, ("shifts", "one"), state="at work")) == 1


def test_an_empty_file_is_as_good_as_none(roster: Path) -> None:
    roster.parent.mkdir(parents=True)
    roster.write_text("\n")
    assert put(roster, ("shifts", "one"), state="at work") == []
    assert shifts(roster) == {"one": {"state": "at work"}}


@pytest.mark.parametrize("name", ["roster.json", "roster.lock", ".roster.json.tmp", "roster.json.bad"])
@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_not_a_regular_file_is_neither_followed_nor_replaced(roster: Path, name: str, kind: str) -> None:
    roster.parent.mkdir(parents=True)
    precious, place = roster.parents[2] / "precious", roster.with_name(name)
    precious.write_text("{}")
    roster.write_text("damaged")
    place.unlink(missing_ok=True)
    obstruct(place, kind, precious)
    before = place.lstat()
    with pytest.raises(OSError):
        put(roster, ("shifts", "one"), state="at work")
    assert place.lstat().st_ino == before.st_ino
    assert precious.read_text() == "{}"


def test_it_is_reached_through_no_link(roster: Path) -> None:
    elsewhere = roster.parents[2] / "elsewhere"
    elsewhere.mkdir()
    roster.parents[1].mkdir()
    roster.parent.symlink_to(elsewhere)
    with pytest.raises(OSError):
        put(roster, ("shifts", "one"), state="at work")
    assert [*elsewhere.iterdir()] == []


# -- a loop that says something there ----------------------------------------------------------------------------------


def test_two_loops_share_a_file_wherever_it_is(roster: Path, tmp_path: Path) -> None:
    one, two = stage_at(tmp_path / "one", roster), stage_at(tmp_path / "two", roster)
    two.night.loop = replace(two.loop, id="two")
    one.run(crash_after=3)
    two.run()
    assert {name: entry["state"] for name, entry in shifts(roster).items()} == {
        one.loop.id: "at work",
        "two": "home (unverified)",
    }
    one.run()
    assert shifts(roster)[one.loop.id]["state"] == "home (unverified)"
    assert one.said == two.said == []


def test_only_news_are_written_and_a_file_that_vanished_is_written_again(roster: Path, tmp_path: Path) -> None:
    stage = stage_at(tmp_path, roster)
    stage.run(crash_after=3)
    follower, night = stage.follower(), stage.night
    follower.saw(night.ledger.append(a_note("look")).fact, stage.loop, night.state)
    entry, inode = shifts(roster), roster.stat().st_ino
    follower.saw(night.ledger.append(a_note("again")).fact, stage.loop, night.state)
    assert roster.stat().st_ino == inode
    roster.rename(roster.with_name("gone"))
    follower.saw(night.ledger.append(a_note("once more")).fact, stage.loop, night.state)
    assert shifts(roster) == entry
    assert stage.said == []


def test_a_lock_that_another_holds_for_long_is_said_once_and_the_loop_goes_on(
    roster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(roster, ("shifts", "other"), state="at work")
    monkeypatch.setattr(shared_file, "PATIENCE", 0.05)
    stage = stage_at(tmp_path, roster)
    with roster.with_name("roster.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        stage.run(once=True)
        assert stage.said == [
            f"{roster} cannot be written: another process holds roster.lock; the loop goes on without it"
        ]
        assert [*shifts(roster)] == ["other"]
    stage.run()
    assert shifts(roster)[stage.loop.id]["state"] == "home (unverified)"


def test_a_lock_that_was_held_is_taken_as_soon_as_it_is_free(roster: Path, tmp_path: Path) -> None:
    """By the same worker."""
    put(roster, ("shifts", "other"), state="at work")
    stage, held = stage_at(tmp_path, roster), os.open(roster.with_name("roster.lock"), os.O_RDWR)
    stage.run(crash_after=3)
    follower, night = stage.follower(), stage.night
    before = shifts(roster)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_file, "PATIENCE", 0.05)
        roster.unlink()
        fcntl.flock(held, fcntl.LOCK_EX)
        follower.saw(night.ledger.append(a_note("look")).fact, stage.loop, night.state)
        os.close(held)
        follower.saw(night.ledger.append(a_note("again")).fact, stage.loop, night.state)
    assert shifts(roster) == {stage.loop.id: before[stage.loop.id]}
    assert len(stage.said) == 1


def test_where_it_cannot_be_written_the_loop_goes_on(tmp_path: Path) -> None:
    stage = stage_at(tmp_path, Path("/sys/roster.json"))  # not even root may
    stage.run()
    assert [line.partition(":")[0] for line in stage.said] == ["/sys/roster.json cannot be written"]
    assert stage.night.state.stopped


def test_an_earlier_loop_of_the_same_name_leaves_the_entry_of_the_later_one(roster: Path, tmp_path: Path) -> None:
    """A note to a loop that no process runs."""
    one, two = stage_at(tmp_path / "one", roster), stage_at(tmp_path / "two", roster)
    two.night.loop = replace(two.loop, created_at=two.loop.created_at.replace(year=2031))

    def noted(stage: Stage) -> None:
        past = stage.night.ledger
        last = past.append(a_note("look"))
        arguments = (NIGHT_SHIFT, stage.folder, stage.workspace, lambda: past.records, stage.said.append)
        DialectFollower(*arguments, at_work=False).saw(last.fact, stage.loop, past.state)

    one.run(once=True)
    roster.unlink()
    noted(one)
    assert shifts(roster)[one.loop.id]["born"] == f"{one.loop.created_at:%FT%T}"
    two.run(crash_after=3)
    busy = roster.read_bytes()
    noted(one)
    assert roster.read_bytes() == busy
    assert one.said == []


@pytest.mark.parametrize("half", [False, True])
def test_wherever_a_writer_is_killed_the_file_is_whole_and_the_next_one_goes_on(
    half: bool, roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)
    put(roster, ("shifts", "other"), state="at work")
    killer.arm(0, half=False)
    put(roster, ("shifts", "one"), number=0)
    moments = killer.moments(half=half)
    assert moments
    for moment in moments:
        killer.arm(moment, half=half)
        with pytest.raises(BaseException):  # noqa: B017
            put(roster, ("shifts", "one"), number=moment)
        killer.arm(0, half=False)
        assert {"other", "one"} == {*shifts(roster)}
        assert put(roster, ("shifts", "one"), number=-moment) == []
        assert shifts(roster)["one"] == {"number": -moment}


# -- before anything is spent ------------------------------------------------------------------------------------------


def placed(workspace: Path, roster: Path | str, **fields: Any) -> Loop:
    spoken = Spoken(name="night-shift", words={"roster": str(roster)})
    return replace(LOOP, workspace=str(workspace), dialect=spoken, **fields)


def test_it_is_no_reason_to_refuse_a_second_loop(roster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "of_loop", lambda _: NIGHT_SHIFT)
    root = StateFolder(tmp_path / "state")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        loop = placed(tmp_path / name, roster, id=name, uid=f"u-{name}")
        places.refuse_at_start(NIGHT_SHIFT, loop, [])
        places.refuse_occupied(root, NIGHT_SHIFT, loop)
        at_work(root, loop)
        put(roster, ("shifts", name), state="at work")
    roster.write_text("damaged")
    places.refuse_at_start(NIGHT_SHIFT, loop, [])


@pytest.mark.parametrize("name", ["roster.json", "roster.lock"])
@pytest.mark.parametrize("kind", ["folder", "link", "its folder is a file", "its folder is a link", "read-only"])
def test_but_one_that_cannot_be_written_is(
    name: str, kind: str, roster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, elsewhere = roster.with_name(name), tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "its folder is a file":
        roster.parents[1].write_text("mine")
    elif kind == "its folder is a link":
        roster.parents[1].symlink_to(elsewhere)
    else:
        roster.parent.mkdir(parents=True)
        obstruct(place, kind, elsewhere)
    if kind == "read-only":
        monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith(str(roster.parent)))
    (tmp_path / "work").mkdir()
    with pytest.raises(UserError) as refused:
        places.refuse_at_start(NIGHT_SHIFT, placed(tmp_path / "work", roster), [])
    assert str(roster.parent) in refused.value.what
    assert [*elsewhere.iterdir()] == []
