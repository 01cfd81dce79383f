"""What every dialect has to keep: words for every end, files that follow from facts, and nothing of a person's lost."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, LoopStopped, Record, RoundEnded
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.loop import SpokenDialect as Spoken
from bydawn.core.replay import after
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End
from bydawn.dialects.follower import DialectFollower
from bydawn.dialects.seam import Append, Copy, Create, Dialect, Replace, View
from bydawn.dialects.waylon_smithers import DIALECT as WAYLON
from bydawn.operations.dialects.end import clean_up
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Standing
from core.facts_any import HISTORIES
from core.facts_made import NOON, PROMISED, a_loop, decided, numbered, run_started
from dialects.made_up import DIALECT as NIGHT_SHIFT
from dialects.waylon_made import smithers
from engine.fakes import MemoryFiles, Witness
from engine.night import DONE, Night, Play

LOOPS: dict[str, tuple[Dialect, Loop]] = {
    "waylon-smithers": (WAYLON, smithers()),
    "waylon-smithers, with events": (WAYLON, smithers(jsonl_events="all.jsonl", summary_json="sum.json")),
    "night-shift": (NIGHT_SHIFT, a_loop(dialect=Spoken(name="night-shift"))),
}
every_dialect = pytest.mark.parametrize(("dialect", "loop"), LOOPS.values(), ids=LOOPS)

# -- how it speaks -----------------------------------------------------------------------------------------------------


@every_dialect
def test_every_end_has_a_word_a_reason_and_an_exit_code(dialect: Dialect, loop: Loop) -> None:
    for end, rule in itertools.product(End, Rule):
        stopped = LoopStopped(end=end, reason="so it is", decided=decided(rule))
        assert dialect.word(stopped)
        assert dialect.reason(stopped)
        assert 0 <= dialect.exit_code(stopped) < 256
        assert all(step.why for step in dialect.next_steps(loop, LoopState(), stopped))


# -- what it writes, in memory -----------------------------------------------------------------------------------------


def told(dialect: Dialect, loop: Loop, records: list[Record]) -> Iterator[View]:
    state, history = LoopState(created_at=NOON), History()
    for record in records:
        state = after(state, record)
        history.saw(record.fact, state)
        yield from dialect.views(record.fact, loop, state, history)


@settings(max_examples=50)
@given(st.sampled_from([*LOOPS.values()]), HISTORIES)
def test_whatever_happens_is_written_and_only_where_the_dialect_says(
    spoken: tuple[Dialect, Loop], facts: list[AnyFact]
) -> None:
    dialect, loop = spoken
    files = dialect.files(loop)
    whole = {re.sub("-?[0-9]+", "*", path) for path in (*files.whole, *files.shared)}
    for view in told(dialect, loop, numbered(facts)):
        assert view.path in files.growing or re.sub("-?[0-9]+", "*", view.path) in whole


@every_dialect
def test_no_file_is_of_two_kinds_and_exclusive_ones_are_among_the_whole(dialect: Dialect, loop: Loop) -> None:
    files = dialect.files(loop)
    kinds = (*files.whole, *files.growing, *files.shared)
    assert len(kinds) == len({*kinds})
    assert {*files.exclusive} <= {*files.whole}


# -- what it writes, on a disk -----------------------------------------------------------------------------------------


class DiskFiles(MemoryFiles):
    """The files of the rounds in a folder, where the follower looks for them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def write(self, round_: int, name: str, text: str) -> str:
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
        promised = {"promise": PROMISED.promise, "template": None, "follow_up": None, "session_rounds": 20}
        self.night.loop = replace(loop, agent="demo", workspace=str(self.workspace), **promised)
        self.night.files = DiskFiles(self.folder)
        self.said: list[str] = []

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
        return DialectFollower(self.dialect, self.folder, self.workspace, lambda: past.records, self.said.append)

    def run(self, *, crash_after: int = 0, **options: Any) -> None:
        """One worker's run, with a follower of its own."""
        self.night.witness = Following(self.follower())
        if crash_after:
            self.night.ledger.cut_after = crash_after
            self.night.run_until_crash()
        else:
            self.night.run(**options)

    def on_disk(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.workspace)): path.read_text()
            for path in self.workspace.rglob("*")
            if path.is_file()
        }

    def expected(self) -> dict[str, str]:
        """What all views of all facts amount to, each of them written once."""
        texts: dict[str, str] = {}
        for view in told(self.dialect, self.loop, self.night.ledger.records):
            match view:
                case Replace(path, text):
                    texts[path] = text
                case Create(path, text):
                    texts.setdefault(path, text)
                case Copy(path, source):
                    texts[path] = self.left(source.round, source.name)
                case Append(path, source):
                    texts[path] = texts.get(path, "") + self.left(source.round, source.name)
        return texts

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


@every_dialect
def test_the_files_are_what_the_facts_say(dialect: Dialect, loop: Loop, tmp_path: Path) -> None:
    stage = Stage(tmp_path, dialect, loop)
    stage.run()
    assert stage.on_disk() == stage.expected()
    assert stage.said == []
    assert len([fact for fact in stage.facts if isinstance(fact, RoundEnded)]) == 3


@every_dialect
def test_after_a_crash_at_any_fact_another_start_writes_the_same_files(
    dialect: Dialect, loop: Loop, tmp_path: Path
) -> None:
    """No part twice, none missing, and none taken for a person's."""
    whole = Stage(tmp_path / "whole", dialect, loop)
    whole.run()
    for moment in range(1, len(whole.facts) - 1):
        stage = Stage(tmp_path / str(moment), dialect, loop)
        stage.run(crash_after=moment)
        stage.run()
        assert stage.on_disk() == stage.expected(), moment
        assert stage.said == []


@every_dialect
def test_a_file_that_a_person_changed_is_neither_overwritten_nor_removed(
    dialect: Dialect, loop: Loop, tmp_path: Path
) -> None:
    paths = dialect.files(loop).of([1])
    for number, path in enumerate(paths):
        stage = Stage(tmp_path / str(number), dialect, loop)
        stage.run(once=True)
        (stage.workspace / path).write_text("mine now")
        stage.run()
        assert (stage.workspace / path).read_text() == "mine now"
        cleaned = clean_up(dialect, stage.standing())
        assert path in cleaned.left
        assert (stage.workspace / path).read_text() == "mine now"
        assert {*stage.on_disk()} == {path, *cleaned.left, *(dialect.files(loop).shared)}


@every_dialect
def test_nor_after_a_crash_when_views_are_made_up_for(dialect: Dialect, loop: Loop, tmp_path: Path) -> None:
    """Two starts that come no further, and a person between them."""
    stage = Stage(tmp_path, dialect, loop)
    stage.run(crash_after=3)
    assert isinstance(stage.facts[-1], RoundEnded)
    stage.begins()
    paths = dialect.files(loop).of([1])
    for path in {*paths} & {*stage.on_disk()}:
        (stage.workspace / path).write_text("mine now")
    stage.begins()
    shown = stage.on_disk()
    assert {shown[path] for path in paths if path in shown} == {"mine now"}
    assert len(stage.said) == len({*paths} & {*shown})


@every_dialect
def test_nothing_of_a_loop_is_left_when_it_is_cleaned_up_but_what_others_share(
    dialect: Dialect, loop: Loop, tmp_path: Path
) -> None:
    stage = Stage(tmp_path, dialect, loop)
    stage.run(crash_after=7)
    stage.run()
    files = dialect.files(stage.loop)
    (stage.workspace / "mine").write_text("mine")
    clean_up(dialect, stage.standing())
    assert {*stage.on_disk()} == {"mine", *files.growing, *files.shared}
    assert clean_up(dialect, stage.standing()).removed == []
