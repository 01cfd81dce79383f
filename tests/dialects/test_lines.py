"""Files of JSON lines made from facts: ids without gaps, no line twice or lost, whatever is killed or forged."""

import fcntl
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from bydawn.core.facts import EventRecorded
from bydawn.core.loop import Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.core.records import Recording
from bydawn.core.state import LoopState
from bydawn.dialects import written
from bydawn.dialects.follower import DialectFollower
from bydawn.dialects.seam import Start
from bydawn.operations.dialects import begin
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, records
from bydawn.system import json_lines, paths, writing
from bydawn.system.json_lines import JsonLines, Mark
from core.facts_made import a_loop
from dialects.made_up import DAY_BOOK
from dialects.stage import LOOPS, Stage
from effort import effort
from engine.fakes import MemoryLedger, PowerCut

EVENTS = ".book/night/events.jsonl"


def an_event(record: str) -> EventRecorded:
    return EventRecorded(record=record, kind="said", message="something", by="ada", at=MemoryLedger().records[0].at)


class Book:
    """A ledger in memory, and the follower that writes its lines; another one after each crash."""

    def __init__(self, place: Path) -> None:
        self.workspace, self.folder = place / "work", place / "state"
        self.workspace.mkdir()
        self.folder.mkdir()
        self.loop: Loop = a_loop(dialect=Spoken(name="day-book"), workspace=str(self.workspace))
        self.ledger, self.said = MemoryLedger(), list[str]()
        self.reads = 0
        self.start()

    def start(self) -> None:
        self.follower = DialectFollower(DAY_BOOK, self.folder, self.workspace, self._past, self.said.append)

    def _past(self) -> Iterator[Any]:
        self.reads += 1
        return iter([*self.ledger.records])

    def add(self, *names: str) -> None:
        for name in names:
            self.ledger.append(an_event(name))
            self.see()

    def see(self) -> None:
        self.follower.saw(self.ledger.records[-1].fact, self.loop, self.ledger.state)

    @property
    def path(self) -> Path:
        return self.workspace / EVENTS

    @property
    def lines(self) -> list[dict[str, Any]]:
        return ours(self.path)

    def is_whole(self) -> bool:
        return [(each["id"], each["seq"]) for each in self.lines] == [
            (number, number) for number in range(1, len(self.ledger.records) + 1)
        ]


def ours(path: Path) -> list[dict[str, Any]]:
    """The lines that we can have written."""
    text = path.read_bytes()
    assert text.endswith(b"\n")
    found = []
    for line in text.splitlines():
        try:
            each = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(each, dict) and "kind" in each:
            found.append(each)
    return found


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_a_line_has_its_id_first_and_its_fact_and_record_last(book: Book) -> None:
    book.add("r-1")
    assert book.path.read_text().splitlines()[1] == '{"id":2,"kind":"event.recorded","seq":2,"record":"r-1"}'


# -- what is killed ----------------------------------------------------------------------------------------------------


class Cut:
    """The system calls of a module; at one of them the process ends, half-way if it is a write."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _step(self) -> bool:
        self.left -= 1
        return self.left == 0

    def write(self, fd: int, data: bytes) -> int:
        if self._step():
            os.write(fd, data[: len(data) // 2])
            raise PowerCut
        return os.write(fd, data)

    def ftruncate(self, fd: int, size: int) -> None:
        if self._step():
            raise PowerCut
        os.ftruncate(fd, size)

    def open(self, *arguments: Any, **options: Any) -> int:
        if self._step():
            raise PowerCut
        return os.open(*arguments, **options)

    def replace(self, *arguments: Any, **options: Any) -> None:
        if self._step():
            raise PowerCut
        os.replace(*arguments, **options)


def test_a_kill_between_any_two_steps_leaves_no_gap_and_no_line_twice_or_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 65: the agent may kill us at any time; killed twice, the second time while the first is made up for."""
    for at in range(1, 60):
        place = tmp_path / str(at)
        place.mkdir()
        book = Book(place)
        book.add("r-1")
        for again in (at, at // 2):
            cut = Cut(again)
            with monkeypatch.context() as patched:
                for module in (json_lines, paths, writing, written):
                    patched.setattr(module, "os", cut)
                try:
                    book.start()
                    book.add("r-2", "r-3")
                except PowerCut:
                    pass
        book.start()
        book.add("r-4")
        assert book.is_whole(), at
        assert book.said == []


def _night(place: str) -> None:
    """Adds events, round the clock, to a real ledger and its files, until it is killed."""
    folder, workspace = LoopFolder(Path(place, "state")), Path(place, "work")
    ledger = LoopLedger(folder, lambda _: None, lambda text: text)
    loop = a_loop(dialect=Spoken(name="day-book"), workspace=str(workspace))
    follower = DialectFollower(DAY_BOOK, folder.path, workspace, lambda: records(folder), lambda _: None)
    while True:
        fact = ledger.append(an_event(os.urandom(4).hex())).fact
        follower.saw(fact, loop, ledger.state)
        ledger.snapshot()


def test_after_many_kills_at_random_moments_every_fact_has_its_line_once(tmp_path: Path) -> None:
    for name in ("state", "work"):
        (tmp_path / name).mkdir()
    luck, path = random.Random(17), tmp_path / "state/ledger.jsonl"  # noqa: S311 - no secret
    processes = get_context("fork")
    for _ in range(25):
        worker = processes.Process(target=_night, args=(str(tmp_path),))
        worker.start()
        assert worker.pid
        size = path.stat().st_size if path.exists() else 0
        while not path.exists() or path.stat().st_size == size:
            assert worker.is_alive()
            time.sleep(0.001)
        time.sleep(luck.uniform(0, 0.01))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    folder = LoopFolder(tmp_path / "state")
    ledger = LoopLedger(folder, lambda _: None, lambda text: text)
    loop = a_loop(dialect=Spoken(name="day-book"), workspace=str(tmp_path / "work"))
    follower = DialectFollower(DAY_BOOK, folder.path, tmp_path / "work", lambda: records(folder), lambda _: None)
    follower.saw(ledger.append(an_event("last")).fact, loop, ledger.state)
    lines = ours(tmp_path / "work" / EVENTS)
    assert [each["id"] for each in lines] == [*range(1, ledger.state.seq + 1)]
    assert [each["seq"] for each in lines] == [*range(1, ledger.state.seq + 1)]
    assert ledger.state.seq > 25
    ledger.close()


def test_lines_of_facts_that_a_power_cut_lost_do_not_hide_those_that_come_in_their_place(book: Book) -> None:
    book.add("r-1", "r-2", "r-3")
    del book.ledger.records[-2:]
    book.ledger.state = LoopState(seq=2)
    book.start()
    book.add("r-9")
    assert book.lines[-1]["record"] == "r-9"


def test_a_mark_that_cannot_be_written_stops_nothing(book: Book) -> None:
    """As on a full disk; then the file itself says what it has."""
    (book.folder / "marks.json").mkdir()
    book.add("r-1", "r-2")
    book.start()
    book.add("r-3")
    assert book.is_whole()
    assert book.said == []


def test_a_reader_in_a_tight_loop_sees_only_whole_lines(tmp_path: Path) -> None:
    for name in ("state", "work"):
        (tmp_path / name).mkdir()
    worker = get_context("fork").Process(target=_night, args=(str(tmp_path),))
    worker.start()
    path, seen = tmp_path / "work" / EVENTS, 0
    try:
        deadline = time.monotonic() + 20
        while seen < 200 and time.monotonic() < deadline:
            text = path.read_bytes() if path.exists() else b""
            lines = [json.loads(line) for line in text.rpartition(b"\n")[0].splitlines()]
            assert [each["id"] for each in lines] == [*range(1, len(lines) + 1)]
            seen = len(lines)
    finally:
        worker.kill()
        worker.join()
    assert seen >= 200


# -- what is forged or taken away --------------------------------------------------------------------------------------


def a_sparse_mountain(path: Path) -> None:
    os.truncate(path, 50 << 20)


def appended(data: bytes) -> Callable[[Path], None]:
    def forge(path: Path) -> None:
        with path.open("ab") as file:
            file.write(data)

    return forge


FORGED = {
    "a huge id": appended(b'{"id": 1000000000000000000, "kind": "x"}\n'),
    "an id beyond all numbers": appended(b'{"id": ' + b"9" * 5000 + b"}\n"),
    "an id that went by": appended(b'{"id": 1}\n'),
    "no JSON": appended(b"hello\n"),
    "no object": appended(b"[1, 2]\n"),
    "no text": appended(b"\xff\xfe\x00\n"),
    "nothing but lines": appended(b"\n" * 1000),
    "a deep hole": appended(b'{"id": 4, "x": ' + b"[" * 200_000 + b"\n"),
    "50 MB without an end": a_sparse_mountain,
    "2 MB of lines": appended(b'{"id": 900000000, "record": "x"}\n' * 70_000),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("restarts", [False, True])
def test_whatever_an_agent_writes_there_our_lines_go_on_with_the_next_id(
    book: Book, forge: Callable[[Path], None], restarts: bool
) -> None:
    """FAULTS 64. It is said once."""
    book.add("r-1", "r-2")
    forge(book.path)
    if restarts:
        book.start()
    book.add("r-3", "r-4")
    mine = [(each["id"], each.get("record")) for each in book.lines if "seq" in each]
    assert mine == [(1, None), (2, "r-1"), (3, "r-2"), (4, "r-3"), (5, "r-4")]
    assert len(book.said) == 1
    assert EVENTS in book.said[0]
    assert "did not write" in book.said[0]


def test_a_line_that_foretells_a_fact_does_not_stand_for_it(book: Book) -> None:
    book.add("r-1")
    appended(b'{"id":3,"kind":"x","seq":3}\n{"id":4,"kind":"x","seq":4}\n')(book.path)
    book.start()
    book.add("r-2", "r-3")
    assert [each.get("record") for each in book.lines] == [None, "r-1", None, None, "r-2", "r-3"]
    assert [each["id"] for each in book.lines] == [1, 2, 3, 4, 5, 6]


def test_half_a_line_is_cut_off(book: Book) -> None:
    book.add("r-1")
    appended(b'{"id":3,"kin')(book.path)
    book.add("r-2")
    assert book.is_whole()
    assert book.said == []


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("take", [Path.unlink, lambda path: path.write_bytes(b""), lambda path: os.truncate(path, 150)])
def test_a_file_that_is_gone_or_cut_is_made_again_from_the_ledger(
    book: Book, take: Callable[[Path], None], restarts: bool
) -> None:
    book.add("r-1", "r-2", "r-3", "r-4")
    take(book.path)
    if restarts:
        book.start()
    book.add("r-5")
    assert book.is_whole()


def a_link(path: Path) -> Callable[[], None]:
    path.unlink()
    path.symlink_to(path.parent.parent / "index.json")
    return path.unlink


def a_pipe(path: Path) -> Callable[[], None]:
    path.unlink()
    os.mkfifo(path)
    return path.unlink


def a_folder(path: Path) -> Callable[[], None]:
    path.unlink()
    path.mkdir()
    return path.rmdir


def a_lock(path: Path) -> Callable[[], None]:
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return lambda: os.close(fd)


@pytest.mark.parametrize("put", [a_link, a_pipe, a_folder, a_lock])
def test_what_is_in_the_way_is_said_once_and_when_it_is_gone_all_lines_are_there(
    book: Book, put: Callable[[Path], Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 64. It is tried again after a minute: each try may read the whole ledger."""
    clock = [1000.0]
    monkeypatch.setattr(json_lines, "PATIENCE", 0.01)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0] + time.perf_counter())
    book.add("r-1")
    index = (book.workspace / ".book/index.json").read_text()
    take = put(book.path)
    reads = book.reads
    book.add("r-2", "r-3", "r-4")
    assert len(book.said) == 1
    assert "cannot be written" in book.said[0]
    assert book.reads <= reads + 1
    take()
    clock[0] += 61
    book.add("r-5")
    assert book.is_whole()
    assert (book.workspace / ".book/index.json").read_text() == index


# -- who else writes ---------------------------------------------------------------------------------------------------


def test_what_a_process_in_a_sandbox_wrote_is_not_written_again_when_the_ledger_has_it(book: Book) -> None:
    book.add("r-1")
    for record in ("r-2", "r-3", "r-4"):
        JsonLines(book.workspace, EVENTS).add({"kind": "said"}, record)
    book.start()
    book.add("r-2")
    book.start()
    book.add("other", "r-3", "r-4", "r-5")
    assert [each.get("record") for each in book.lines] == [None, "r-1", "r-2", "r-3", "r-4", "other", "r-5"]
    assert [each["id"] for each in book.lines] == [1, 2, 3, 4, 5, 6, 7]
    assert book.said == []


def test_a_record_may_have_two_lines(tmp_path: Path) -> None:
    for kind in ("recorded", "blocked"):
        JsonLines(tmp_path, "events.jsonl").add({"kind": kind}, "r-1")
    again = JsonLines(tmp_path, "events.jsonl", Mark())
    for kind in ("recorded", "blocked", "ended"):
        again.add({"kind": kind}, "r-1", seq=2)
    assert [each["kind"] for each in ours(tmp_path / "events.jsonl")] == ["recorded", "blocked", "ended"]


def test_a_fact_without_a_line_of_its_own_forgets_nothing_of_others(tmp_path: Path) -> None:
    path, mark = "events.jsonl", Mark()
    for record in ("r-1", "r-2"):
        JsonLines(tmp_path, path).add({"kind": "said"}, record)
    for seq, record in enumerate(("", "r-1", "", "r-2", "r-3"), 1):  # each by another process
        again = JsonLines(tmp_path, path, mark)
        again.fit(seq - 1)
        if record:
            again.add({"kind": "said"}, record, seq=seq)
        again.took(seq)
        mark = again.mark
    assert [each["record"] for each in ours(tmp_path / path)] == ["r-1", "r-2", "r-3"]


def test_files_in_its_own_folder_are_replaced_whatever_they_say(book: Book) -> None:
    """FAULTS 64: an agent edits them, puts a link there, or takes all of it away."""
    state = book.workspace / ".book/night/state.json"
    book.add("r-1")
    before = state.read_text()
    for change in ("edited", "gone", "a link"):
        state.unlink()
        if change == "edited":
            state.write_text("mine")
        elif change == "a link":
            state.symlink_to("x")
        book.see()
        assert (state.read_text(), state.is_symlink()) == (before, False)
    shutil.rmtree(state.parent)
    book.add("r-2")
    assert book.is_whole()
    assert (state.exists(), book.said, (book.folder / "written.json").exists()) == (True, [], True)
    assert ".book/night/" not in (book.folder / "written.json").read_text()


def test_a_sandbox_may_begin_a_file(book: Book) -> None:
    JsonLines(book.workspace, EVENTS).add({"kind": "said"}, "r-1")
    book.add("r-1", "r-2")
    assert [each.get("record") for each in book.lines] == ["r-1", None, "r-2"]
    appended(b"hello\n")(book.path)
    assert json_lines.find(book.workspace, EVENTS, "r-1") == {"id": 1, "kind": "said", "record": "r-1"}
    assert json_lines.find(book.workspace, EVENTS, "r-9") is None
    assert json_lines.last(book.workspace, EVENTS) == book.lines
    assert json_lines.last(book.workspace, "nowhere.jsonl") == []


@pytest.mark.parametrize(("every", "beats"), [(None, 0), (20.0, 3), (40.0, 0)])
def test_every_now_and_then_while_an_agent_works_a_line_says_so(
    tmp_path: Path, every: float | None, beats: int
) -> None:
    """Time counts from the start of a round, whose agent is asked once here, after 30 seconds."""
    stage = Stage(tmp_path, *LOOPS["day-book"])
    stage.night.heartbeat = every
    stage.run()
    lines = json_lines.last(stage.workspace, ".book/night/beats.jsonl")
    assert [(each["id"], each["pass"]) for each in lines] == [(number, number) for number in range(1, beats + 1)]


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_another_start_reads_no_ledger_and_another_line_costs_the_same_in_a_large_file(book: Book) -> None:
    book.add(*(f"r-{number}" for number in range(50)))
    reads = book.reads

    def more() -> None:
        for name in ("x", "y", "z"):
            book.start()
            book.add(name)

    small = effort(more)
    with book.path.open("ab") as file:
        for number in range(len(book.lines) + 1, 60_000):
            file.write(b'{"id":%d,"kind":"said","message":"%s","seq":1}\n' % (number, b"x" * 300))
    book.add("first")  # which looks at what is new
    large = effort(more)
    assert effort(lambda: JsonLines(book.workspace, EVENTS).add({"kind": "said"})) < small + 2
    assert book.reads == reads
    assert book.said == []
    assert large < 3 * small + 1


def test_the_same_fact_again_adds_nothing(book: Book) -> None:
    """A command that only refreshes the files tells the last fact once more."""
    book.add("r-1")
    book.start()
    book.see()
    book.see()
    assert book.is_whole()


# -- how it begins -----------------------------------------------------------------------------------------------------


def test_who_may_record_and_what_is_not_the_agents_work_is_part_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    workspace = tmp_path / "shop"
    workspace.mkdir()
    recording = Recording(drop=".book/late/drop/")
    start = Start(prompt="go", name="late", named=True, settings={"agent": ("demo",)}, recording=recording)
    loop = begin.plan(DAY_BOOK, start, begin.gather(DAY_BOOK, start, workspace), workspace).loop
    assert loop.dialect
    assert loop.recording == recording
    ours = {".book/late/", ".book/late/passes/", ".book/.gitignore", ".book/index.json", ".book/index.lock"}
    assert ours <= {*loop.dialect.files}
