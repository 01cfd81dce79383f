"""Loops of every dialect, and a stage for one: the engine in memory, and files that are real."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, Record
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.dialects.codex_autorunner import DIALECT as AUTORUNNER
from bydawn.dialects.follower import DialectFollower
from bydawn.dialects.rloop import DIALECT as RLOOP
from bydawn.dialects.seam import Dialect, Entry, Log, Source, View, Whole
from bydawn.dialects.waylon_smithers import DIALECT as WAYLON
from bydawn.store.folder import LoopFolder, StateFolder
from bydawn.store.lock import Lock
from bydawn.store.registry import Standing
from bydawn.system.shared_file import beside
from bydawn.system.writing import make_private
from core.facts_made import NOON, PROMISED, a_loop, run_started
from dialects.made_up import DAY_BOOK
from dialects.made_up import DIALECT as NIGHT_SHIFT
from dialects.rloop_made import LOOP as SESSION
from dialects.rloop_made import spoken
from dialects.waylon_made import smithers
from engine.fakes import MemoryFiles, Witness
from engine.night import DONE, Night, Play

LOOPS: dict[str, tuple[Dialect, Loop]] = {
    "waylon-smithers": (WAYLON, smithers()),
    "waylon-smithers, with events": (WAYLON, smithers(jsonl_events="all.jsonl", summary_json="sum.json")),
    "codex-autorunner": (AUTORUNNER, a_loop(dialect=Spoken(name="codex-autorunner", numbers_cut=True))),
    "rloop": (RLOOP, replace(SESSION, tasks=None, promise_required=True, dialect=spoken(state=".table/state.json"))),
    "night-shift": (NIGHT_SHIFT, a_loop(dialect=Spoken(name="night-shift"))),
    "day-book": (DAY_BOOK, a_loop(dialect=Spoken(name="day-book"))),
}
every_dialect = pytest.mark.parametrize(("dialect", "loop"), LOOPS.values(), ids=LOOPS)


def live(dialect: Dialect, loop: Loop) -> tuple[str, ...]:
    """The logs of lines that are not JSON, in a place that no person chose."""
    files = dialect.files(loop)
    return tuple(log.path for log in files.logs if not log.is_json and log.path not in files.chosen)


def told(dialect: Dialect, loop: Loop, records: list[Record]) -> Iterator[View]:
    return (view for _, view in told_of(dialect, loop, records))


def told_of(dialect: Dialect, loop: Loop, records: list[Record]) -> Iterator[tuple[int, View]]:
    """Each view, and the number of its fact."""
    state, history = LoopState(created_at=NOON), History()
    for record in records:
        state = after(state, record)
        if dialect.needs_history:
            history.saw(record.fact, state)
        yield from ((record.seq, view) for view in dialect.views(record.fact, loop, state, history))


def at_work(root: StateFolder, loop: Loop) -> Lock:
    """A loop of another process that runs."""
    folder = LoopFolder(root.loops / f"home-{loop.uid}" / loop.id)
    make_private(folder.path)
    folder.settings.write_bytes(msgspec.json.encode(loop))
    held = Lock.take(folder.lock)
    held.sign("run")
    return held


class DiskFiles(MemoryFiles):
    """The files of the rounds in a folder, where the follower looks for them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def write(self, round_: int, name: str, text: str | bytes) -> str:
        assert isinstance(text, str)
        folder = self._folder / "rounds" / f"{round_:04}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / "stdout").write_text(f'{{"type":"turn.started","round":{round_}}}\n')
        return super().write(round_, name, text)


class Stage:
    """A loop of a dialect on the engine in memory; its files are real."""

    def __init__(self, place: Path, dialect: Dialect, loop: Loop, plays: int = 3) -> None:
        self.workspace, self.folder = place / "work", place / "state/loops/work/night"
        self.workspace.mkdir(parents=True)
        self.folder.mkdir(parents=True)
        self.dialect = dialect
        busy = [Play(writes={"work.txt": str(number)}) for number in range(plays - 1)]
        self.night = Night([*busy, *[Play(says=DONE, writes={"work.txt": "all"})] * 9])
        promised = {"promise": PROMISED.promise, "template": None, "session_rounds": 20}
        self.night.loop = replace(loop, agent="demo", workspace=str(self.workspace), **promised)
        self.night.files = DiskFiles(self.folder)
        self.said: list[str] = []
        self.grown: list[str] = []

    @property
    def loop(self) -> Loop:
        return self.night.loop

    @property
    def facts(self) -> list[AnyFact]:
        return [record.fact for record in self.night.ledger.records]

    def begins(self) -> None:
        """Another worker, which is killed before it does anything."""
        fact = self.night.ledger.append(run_started()).fact
        self.follower().saw(fact, self.loop, self.night.state)

    def follower(self) -> DialectFollower:
        past = self.night.ledger
        return DialectFollower(
            self.dialect, self.folder, self.workspace, lambda: past.records, self.said.append, grown=self.grown.append
        )

    def run(self, *, crash_after: int = 0, crash: bool = False, **options: Any) -> None:
        """One worker's run, with a follower of its own."""
        follower = self.follower()
        self.night.witness = Following(follower)
        try:
            if crash_after or crash:
                self.night.ledger.cut_after = crash_after or None
                self.night.run_until_crash()
            else:
                self.night.run(**options)
        finally:  # as the kernel does when a process has ended
            for file in follower._logs.live.values():
                file.close()

    def on_disk(self) -> dict[str, str]:
        """All but the logs of what is heard, of which facts say too little, and what lies beside shared files."""
        files = {str(path.relative_to(self.workspace)): path for path in self.workspace.rglob("*") if path.is_file()}
        ours = self.dialect.files(self.loop)
        left_out = (*self.heard, *(name for path in ours.together for name in beside(path)))
        return {name: path.read_text() for name, path in files.items() if name not in left_out}

    @property
    def heard(self) -> tuple[str, ...]:
        """The logs that grow while a round runs."""
        return live(self.dialect, self.loop)

    @property
    def common(self) -> set[str]:
        """Of the files that all loops of the dialect replace, those that are there."""
        return {path for path in self.dialect.files(self.loop).common if (self.workspace / path).exists()}

    def expected(self) -> dict[str, str]:
        """What all views of all facts amount to, each of them written once."""
        texts: dict[str, str] = {}
        for seq, view in told_of(self.dialect, self.loop, self.night.ledger.records):
            match view:
                case Whole(path, _, once=True) if path in texts:
                    pass
                case Whole(path, str() as text):
                    texts[path] = text
                case Whole(path, Source() as source):
                    texts[path] = self.left(source.round, source.name)
                case Whole(path, None):
                    texts.pop(path, None)
                case Log(path, Source() as source):
                    texts[path] = texts.get(path, "") + self.left(source.round, source.name)
                case Log(path, dict() as value):
                    before = texts.get(path, "")
                    line = {"id": before.count("\n") + 1, **value, "seq": seq}
                    texts[path] = f"{before}{json.dumps(line, separators=(',', ':'))}\n"
                case Entry(path, (outer, key), value):  # the only one there
                    texts[path] = json.dumps({outer: {key: value}}, indent=2) + "\n"
                case _:
                    pass
        return texts

    def told_in(self, path: str) -> list[str]:
        """The lines of a log that facts alone put there, each of them once."""
        views = told(self.dialect, self.loop, self.night.ledger.records)
        more = (view.more for view in views if isinstance(view, Log) and view.path == path)
        return [line for lines in more if isinstance(lines, tuple) for line in lines]

    def left(self, round_: int, name: str) -> str:
        path = self.folder / "rounds" / f"{round_:04}" / name
        return path.read_text() if path.exists() else ""

    def standing(self) -> Standing:
        return Standing(folder=LoopFolder(self.folder), loop=self.loop, state=self.night.state, alive=False)


class Following(Witness):
    """Hands everything on to a follower."""

    def __init__(self, follower: DialectFollower) -> None:
        super().__init__()
        self._follower = follower

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        self._follower.saw(fact, loop, state)

    def heard(self, event: Event) -> None:
        self._follower.heard(event)
