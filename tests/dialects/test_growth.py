"""Files that grow while a round runs: every line whole, none twice, and none lost by a crash."""

import errno
import os
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from bydawn import dialects
from bydawn.core.agent import Complaint, Message
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, RoundsBefore
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.redact import HIDDEN, Secrets
from bydawn.core.state import LoopState
from bydawn.dialects.codex_autorunner import config, log
from bydawn.dialects.follower import DialectFollower
from bydawn.dialects.seam import Dialect, Log, View
from bydawn.operations import places
from bydawn.store.folder import StateFolder
from bydawn.system.git import Git
from bydawn.system.live_file import LiveFile
from core.facts_made import a_note
from dialects import made_up
from dialects.stage import LOOPS, Stage, at_work, every_dialect, live
from effort import effort
from engine.fakes import PowerCut
from engine.night import DONE, Play, ScriptedAgent


class Live(NamedTuple):
    """A loop of a dialect, its live file, and how to read a line: its kind, and the loop and number it is of."""

    dialect: Dialect
    loop: Loop
    path: str
    parsed: Callable[[str], tuple[str, str, str] | None]

    def stage(self, place: Path, *says: str) -> Stage:
        stage = Stage(place, self.dialect, self.loop)
        if says:
            plays = [Play(says=text, writes={"work.txt": text}) for text in says]
            stage.night.agent = ScriptedAgent([*plays, *[Play(says=DONE, writes={"work.txt": "all"})] * 9])
        return stage

    def lines(self, stage: Stage) -> list[str]:
        text = (stage.workspace / self.path).read_text()
        assert text.endswith("\n")
        return text.removesuffix("\n").split("\n")

    def rounds(self, stage: Stage, torn: int = 0) -> list[tuple[str, str]]:
        """Which rounds the file has; each begins once and ends once, and what it said is in between."""
        rounds: list[tuple[str, str]] = []
        is_open = False
        for line in self.lines(stage):
            kind, *of = self.parsed(line) or ("torn", "", "")
            torn -= kind == "torn"
            if kind == "begins":
                assert not is_open, line
                rounds.append((of[0], of[1]))
            elif kind != "torn":
                assert (is_open, rounds[-1]) == (True, tuple(of)), line
            is_open = (is_open and kind != "ends") or kind == "begins"
        assert torn >= 0
        assert not is_open
        assert len(rounds) == len({*rounds})
        return rounds


def autorun(line: str) -> tuple[str, str, str] | None:
    """A line of codex-autorunner's log, which does not say whose run it is."""
    found = log.seen(line)
    return ({"start": "begins", "end": "ends"}.get(found.marker, "says"), "", str(found.run)) if found else None


LIVE = {
    "codex-autorunner": Live(*LOOPS["codex-autorunner"], config.LOG, autorun),
    "night-shift": Live(*LOOPS["night-shift"], made_up.LOG, made_up.parsed),
}
every_live = pytest.mark.parametrize("live", LIVE.values(), ids=LIVE)


def test_every_dialect_with_live_files_is_tested_here() -> None:
    """But for rloop, whose lines do not say which round they are of: test_rloop_files.py."""
    assert {name for name, (dialect, loop) in LOOPS.items() if live(dialect, loop)} == {*LIVE, "rloop"}


# -- what is said ------------------------------------------------------------------------------------------------------


@every_live
def test_what_an_agent_says_is_in_the_file_between_two_lines_of_its_round(live: Live, tmp_path: Path) -> None:
    stage = live.stage(tmp_path, "one\ntwo", "three")
    stage.run()
    assert len(live.rounds(stage)) == 3
    lines = live.lines(stage)
    for text in ("one", "two", "three"):
        assert len([line for line in lines if line.endswith(text)]) == 1
    assert stage.grown == lines
    assert stage.said == []


@every_live
def test_a_line_is_there_before_the_round_goes_on(live: Live, tmp_path: Path) -> None:
    stage, seen = live.stage(tmp_path), list[str]()
    plays = [Play(says="now", meanwhile=lambda: seen.extend(live.lines(stage))), Play(says=DONE)]
    stage.night.agent = ScriptedAgent(plays)
    stage.run()
    assert seen[-1].endswith("now")


@every_live
def test_output_that_looks_like_the_end_of_a_round_is_a_line_like_any_other(live: Live, tmp_path: Path) -> None:
    model = live.stage(tmp_path / "model")
    model.run()
    marks = [line for line in live.lines(model) if (live.parsed(line) or ("",))[0] in ("begins", "ends")]
    stage = live.stage(tmp_path / "echo", "\n".join(marks), marks[0], marks[1])
    stage.run(crash_after=6)
    stage.run()
    assert live.rounds(stage)


@every_live
def test_a_fact_that_is_told_once_more_adds_nothing(live: Live, tmp_path: Path) -> None:
    """By a command that only writes the files again."""
    stage = live.stage(tmp_path, "a word")
    stage.run()
    lines = live.lines(stage)
    follower = stage.follower()
    for _ in range(2):
        follower.saw(stage.facts[-1], stage.loop, stage.night.state)
    assert live.lines(stage) == lines


SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 - a made-up one
KEY = ["-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEAn0t4KEY", "c2VjcmV0bGluZQ", "-----END RSA PRIVATE KEY-----"]


@every_live
def test_no_secret_and_no_escape_gets_into_the_file(live: Live, tmp_path: Path) -> None:
    """A key that is printed line by line on one stream stays hidden while the other stream goes on."""
    stage = live.stage(tmp_path, "working")
    stage.run(crash_after=4)
    secrets = Secrets({"API_TOKEN": SECRET})
    past = stage.night.ledger.records
    follower = DialectFollower(
        live.dialect, stage.folder, stage.workspace, lambda: past, stage.said.append, secrets=secrets
    )
    follower.saw(past[-1].fact, stage.loop, stage.night.state)
    for line in KEY:
        follower.heard(Message("the -----END is near"))
        follower.heard(Complaint(line))
    follower.heard(Message(f"it is \x1b[31m{SECRET[:5]}\x1b[0m{SECRET[5:]}\u202e"))
    follower.heard(Message("\n".join(KEY)))
    text = (stage.workspace / live.path).read_text()
    assert HIDDEN in text
    assert [word for word in (SECRET, "n0t4KEY", "c2VjcmV0", "\x1b", "\u202e") if word in text] == []


class Loud(made_up.NightShift):
    """A dialect that writes what a fact says as it is."""

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:  # noqa: ARG002
        yield Log(made_up.LOG, ("a \x1b[31mred\x1b[0m\nline",))


def test_what_a_dialect_makes_of_facts_has_no_escapes_either(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Loud(), LOOPS["night-shift"][1])
    stage.run(once=True)
    text = (stage.workspace / made_up.LOG).read_text()
    assert {line for line in text.splitlines() if not line.startswith("[")} == {"a red line"}


# -- after a crash -----------------------------------------------------------------------------------------------------


class Killer:
    """Makes this process die at one of its writing system calls, before it or in the middle of its bytes.

    From then on no call has any effect, so that nothing is cleaned up, as after `kill -9`.
    """

    CALLS = ("open", "write", "replace", "rename", "unlink", "ftruncate", "mkdir", "rmdir")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arm(0, half=False)
        for name in self.CALLS:
            monkeypatch.setattr(os, name, self._deadly(name, getattr(os, name)))

    def arm(self, calls: int, *, half: bool) -> None:
        self.left, self.half, self.dead = calls, half, False
        self.seen: list[str] = []

    def moments(self, *, half: bool) -> list[int]:
        """The calls so far at which it may die; only a write can be half done."""
        return [number for number, name in enumerate(self.seen, 1) if name == "write" or not half]

    def _deadly(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & (os.O_CREAT | os.O_TRUNC):
                return real(*arguments, **options)
            self.seen.append(name)
            self.left -= 1
            if self.left == 0:
                self.dead = True
                if self.half and name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            if self.dead:
                raise PowerCut
            return real(*arguments, **options)

        return call


@every_live
@pytest.mark.parametrize("half", [False, True])
def test_wherever_a_worker_is_killed_every_fact_is_in_the_file_once_and_in_order(
    live: Live, half: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)
    whole = live.stage(tmp_path / "whole", "a word")
    killer.arm(0, half=False)
    whole.run()
    for moment in killer.moments(half=half):
        stage = live.stage(tmp_path / str(moment), "a word")
        killer.arm(moment, half=half)
        stage.run(crash=True)
        killer.arm(0, half=False)
        stage.run()
        lines, told = live.lines(stage), stage.told_in(live.path)
        assert len(live.rounds(stage, torn=int(half))) == len(History(stage.night.ledger.records).attempts), moment
        assert [line for line in lines if line in told] == told, (moment, lines)
        assert len(lines) == len({*lines}), (moment, lines)
        assert stage.on_disk() == stage.expected(), moment
        assert stage.said == []


@every_live
def test_a_last_line_without_its_end_stays_a_line_of_its_own(live: Live, tmp_path: Path) -> None:
    """Another program left it, and another loop."""
    one, other = live.stage(tmp_path / "one"), live.stage(tmp_path / "other")
    one.run()
    log = one.workspace / live.path
    with log.open("a") as file:
        file.write("half a line of somebod")
    before = log.read_text()
    other.night.loop = replace(other.loop, id="later", workspace=str(one.workspace))
    other.workspace = one.workspace
    other.night.ledger.append(RoundsBefore(rounds=3))
    other.run()
    assert log.read_text().startswith(f"{before}\n")
    assert len(live.rounds(other, torn=1)) == 3 + 3
    assert other.said == []


@every_dialect
def test_killed_again_and_again_it_writes_nothing_twice_and_loses_nothing(
    dialect: Dialect, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer, luck = Killer(monkeypatch), random.Random(7)  # noqa: S311 - no secret
    for number in range(40):
        stage = Stage(tmp_path / str(number), dialect, loop)
        for _ in range(luck.choice([2, 3, 5])):
            killer.arm(luck.randrange(1, 90), half=luck.random() < 0.5)
            with suppress(PowerCut):
                stage.run()
        killer.arm(0, half=False)
        stage.run()
        assert stage.on_disk() == stage.expected(), number
        for path in stage.heard:
            told = [line for line in stage.told_in(path) if line]
            lines = (stage.workspace / path).read_text().splitlines()
            assert [line for line in lines if line in told] == told, (number, lines)
        assert stage.said == []


@every_live
def test_a_file_of_a_gigabyte_costs_no_more_than_a_small_one(live: Live, tmp_path: Path) -> None:
    small, big = live.stage(tmp_path / "small"), live.stage(tmp_path / "big")
    for stage, size in ((small, 1 << 20), (big, 1 << 30)):
        log = stage.workspace / live.path
        log.parent.mkdir()
        with log.open("wb") as file:
            file.seek(size)  # a hole
            file.write(b"\n")
    units = [effort(stage.run) for stage in (small, big)]
    assert units[1] < 3 * units[0] + 1
    with (big.workspace / live.path).open("rb") as file:
        file.seek(1 << 30)
        assert len(file.read().splitlines()) > 6


# -- what is in its place ----------------------------------------------------------------------------------------------


def a_folder(path: Path, _: Path) -> None:
    path.mkdir()


def a_link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def a_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


every_obstacle = pytest.mark.parametrize("put", [a_folder, a_link, a_pipe])
Put = Callable[[Path, Path], None]


@every_live
@every_obstacle
def test_what_takes_the_place_of_the_file_is_left_alone_and_said_once(live: Live, put: Put, tmp_path: Path) -> None:
    stage, precious = live.stage(tmp_path), tmp_path / "precious"
    precious.write_text("mine")
    log, aside = stage.workspace / live.path, tmp_path / "aside"

    def exchange() -> None:
        log.rename(aside)
        put(log, precious)

    def clear() -> None:
        log.rename(tmp_path / "gone")

    plays = [Play(says="one", meanwhile=exchange), Play(says="two", meanwhile=clear), Play(says=DONE)]
    stage.night.agent = ScriptedAgent([replace(play, writes={"work.txt": play.says}) for play in plays])
    stage.run()
    assert precious.read_text() == "mine"
    assert aside.read_text().splitlines()[-1].endswith("one")
    assert [line.partition(":")[0] for line in stage.said] == [f"{live.path} cannot be written"]
    assert [line for line in stage.grown if line.endswith("two")], "people see it all the same"
    assert len(live.lines(stage)) >= 4, "when there is room again, it grows on"


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files may not get larger than this: the kernel takes what fits and no more, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_in_the_middle_of_a_line_leaves_no_part_of_it(tmp_path: Path) -> None:
    file = LiveFile(str(tmp_path), "log")
    file.add(["one"])
    for _ in range(2):
        with room_for(8), pytest.raises(OSError) as error:
            file.add(["two", "three"])
        assert error.value.errno in (errno.ENOSPC, errno.EFBIG)
        assert (tmp_path / "log").read_text() == "one\n"
    file.add(["four"])
    assert (tmp_path / "log").read_text() == "one\nfour\n"


@every_live
def test_a_full_disk_is_said_once_and_the_loop_goes_on(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = live.stage(tmp_path)
    real, calls = LiveFile.add, count()

    def add(file: LiveFile, lines: tuple[str, ...], **fresh: bool) -> bool:
        if 1 <= next(calls) < 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, lines, **fresh)

    monkeypatch.setattr(LiveFile, "add", add)
    stage.run()
    assert stage.said == [f"{live.path} cannot be written: No space left on device; the loop goes on without it"]
    assert len(stage.grown) > len(live.lines(stage))


def test_a_line_is_one_line_whatever_is_in_it(tmp_path: Path) -> None:
    LiveFile(str(tmp_path), "deep/log").add(["a\nb", "x" * 100_000, "\ud800"])
    first, second, third, end = (tmp_path / "deep/log").read_text().split("\n")
    assert (first, len(second), second[-1], third, end) == ("a b", 16_000, "…", "?", "")


@pytest.mark.parametrize("there", ["", "o", "one\n", "one\ntw", "one\ntwo\n"])
@pytest.mark.parametrize("before", ["", "mine\n", "torn"])
def test_what_a_killed_process_was_writing_is_not_written_twice(there: str, before: str, tmp_path: Path) -> None:
    log, start = tmp_path / "log", before + "\n" * (before == "torn")
    log.write_text(before)
    mark = LiveFile(str(tmp_path), "log").mark
    log.write_text(start + there if there else before)
    assert LiveFile(str(tmp_path), "log", mark=mark).add(["one", "two"]) == (there != "one\ntwo\n")
    assert log.read_text() == f"{start}one\ntwo\n"


@pytest.mark.parametrize("theirs", ["on\n", "one\nthree\n", "ones"])
def test_what_others_added_in_the_meantime_stays(theirs: str, tmp_path: Path) -> None:
    mark, log = LiveFile(str(tmp_path), "log").mark, tmp_path / "log"
    log.write_text(theirs)
    LiveFile(str(tmp_path), "log", mark=mark).add(["one", "two"])
    assert log.read_text().replace("ones\n", "ones") == f"{theirs}one\ntwo\n"


@pytest.mark.parametrize("cut", [True, False])
def test_in_a_file_that_somebody_cut_or_exchanged_nothing_is_cut(cut: bool, tmp_path: Path) -> None:
    file, log = LiveFile(str(tmp_path), "log"), tmp_path / "log"
    file.add(["one", "two"])
    if not cut:
        log.rename(tmp_path / "log.old")
    log.write_text("theirs\n")
    again = LiveFile(str(tmp_path), "log", mark=file.mark)
    again.add(["three"])
    file.add(["four"])
    assert log.read_text() == "theirs\nthree\nfour\n"


# -- without a worker --------------------------------------------------------------------------------------------------


@every_live
def test_a_note_for_an_older_loop_changes_nothing_that_a_later_one_wrote(live: Live, tmp_path: Path) -> None:
    """The later one may be at work."""
    one, other = live.stage(tmp_path / "one"), live.stage(tmp_path / "other")
    one.run(once=True)
    other.night.loop = replace(other.loop, id="later", workspace=str(one.workspace))
    other.workspace = one.workspace
    files = live.dialect.files(live.loop)

    def noted() -> dict[str, str]:
        past = one.night.ledger
        last = past.append(a_note("look"))
        DialectFollower(
            live.dialect, one.folder, one.workspace, lambda: past.records, one.said.append, at_work=False
        ).saw(last.fact, one.loop, past.state)
        there = (path for path in (*files.common, *files.grown) if (one.workspace / path).exists())
        return {path: (one.workspace / path).read_text() for path in there}

    shared = noted()
    other.run(crash_after=3)
    busy = {path: (one.workspace / path).read_text() for path in (*files.common, *files.grown)}
    assert busy != shared
    assert noted() == busy


# -- before anything is spent ------------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    Git(folder=tmp_path / "work", seconds=20).answer("init", "-q")
    return tmp_path / "work"


def shared_files(live: Live) -> list[str]:
    return [*live.dialect.files(live.loop).common, live.path]


@every_live
def test_whatever_is_in_files_that_all_loops_share_it_is_no_reason_to_refuse(live: Live, workspace: Path) -> None:
    """Not even if git keeps them."""
    loop = replace(live.loop, workspace=str(workspace))
    for path in shared_files(live):
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_text("what another program wrote")
    Git(folder=workspace, seconds=20).answer("add", "-f", ".")
    before = {path: (workspace / path).read_text() for path in shared_files(live)}
    places.refuse_at_start(live.dialect, loop, [])
    places.refuse_tracked(live.dialect, loop)
    places.refuse_overwriting(StateFolder(workspace.parent / "state"), live.dialect, loop)
    assert {path: (workspace / path).read_text() for path in shared_files(live)} == before


@every_live
@every_obstacle
def test_but_it_must_be_a_regular_file(live: Live, put: Put, workspace: Path) -> None:
    loop = replace(live.loop, workspace=str(workspace))
    for path in shared_files(live):
        (workspace / path).parent.mkdir(exist_ok=True)
        put(workspace / path, workspace.parent / "nowhere")
        with pytest.raises(UserError) as refused:
            places.refuse_at_start(live.dialect, loop, [])
        assert refused.value.what.startswith(f"{path} is ")
        assert refused.value.hint == "move it away, then try again"
        (workspace / path).rename(workspace.parent / "aside")
        (workspace.parent / "aside").unlink() if put is not a_folder else (workspace.parent / "aside").rmdir()
    places.refuse_at_start(live.dialect, loop, [])


@every_live
def test_two_loops_at_a_time_cannot_have_them(live: Live, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "of_loop", lambda _: live.dialect)
    root = StateFolder(workspace.parent / "state")
    one = replace(live.loop, workspace=str(workspace), id="one", uid="u-1")
    places.refuse_occupied(root, live.dialect, one)
    at_work(root, one)
    with pytest.raises(UserError) as refused:
        places.refuse_occupied(root, live.dialect, replace(one, id="two", uid="u-2"))
    assert (refused.value.exit_code, refused.value.cause) == (8, "one is at work, and writes there")
