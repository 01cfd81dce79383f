"""What every dialect has to keep: words for every end, files that follow from facts, and nothing of a person's lost."""

import itertools
import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bydawn.core.facts import AnyFact, LoopStopped, RoundEnded
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import End
from bydawn.dialects.seam import Dialect, Entry, Log, Whole, draft
from bydawn.operations.dialects.end import clean_up
from core.facts_any import HISTORIES
from core.facts_made import decided, numbered
from dialects.stage import LOOPS, Stage, every_dialect, told

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


@settings(max_examples=50)
@given(st.sampled_from([*LOOPS.values()]), HISTORIES)
def test_whatever_happens_is_written_and_only_where_the_dialect_says(
    spoken: tuple[Dialect, Loop], facts: list[AnyFact]
) -> None:
    dialect, loop = spoken
    files = dialect.files(loop)
    whole = {re.sub("-?[0-9]+", "*", path) for path in (*files.whole, *files.shared, *files.common)}
    for view in told(dialect, loop, numbered(facts)):
        match view:
            case Log():
                [log] = [log for log in files.logs if log.path == view.path]
                assert log.is_json == isinstance(view.more, dict)
                assert log.rotation.files or not view.fresh
            case Whole(path, None):
                assert path in files.common
            case Entry():
                assert view.path in files.together
            case _:
                assert view.path.startswith(files.owned) or re.sub("-?[0-9]+", "*", view.path) in whole


@every_dialect
def test_no_file_is_of_two_kinds_and_exclusive_ones_are_among_the_whole(dialect: Dialect, loop: Loop) -> None:
    files = dialect.files(loop)
    lines = tuple(log.path for log in files.logs if log.is_json)
    known_by_history = (*files.whole, *files.common, *({*files.grown} - {*lines}))
    kinds = (*known_by_history, *files.shared, *files.together, *lines, *files.owned)
    assert len(kinds) == len({*kinds})
    assert {*files.exclusive} <= {*files.whole}
    assert all(path.endswith("/") for path in files.owned)
    assert dialect.needs_history or (lines and not known_by_history)


@every_dialect
def test_all_that_is_written_is_known_not_to_be_the_agents_work(dialect: Dialect, loop: Loop) -> None:
    """Drafts included, which a killed worker leaves."""
    files = dialect.files(loop)
    replaced = (*files.whole, *files.common)
    drafts = {"".join(path.rpartition("/")[:2]) + draft(loop, "*") for path in (*replaced, *files.shared)}
    moved = {f"{log.path}.*" for log in files.logs if log.rotation.files}
    assert {*replaced, *files.grown, *moved, *drafts, *files.owned} == {*files.names(loop)}


# -- what it writes, on a disk -----------------------------------------------------------------------------------------


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
        assert {path, *stage.heard} <= {*cleaned.left}
        assert (stage.workspace / path).read_text() == "mine now"
        files = dialect.files(loop)
        assert {*stage.on_disk()} == {*(path, *cleaned.left, *files.shared, *files.together, *stage.common)} - {
            *stage.heard
        }


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
    assert {shown[path] for path in paths if path in shown} == ({"mine now"} if paths else set())
    assert {line.partition(" cannot be ")[0] for line in stage.said} <= {*paths} & {*shown}
    assert bool(stage.said) == bool(paths)


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
    ours = {path for path in stage.on_disk() if path.startswith(files.owned)}
    assert {*stage.on_disk()} == {"mine", *files.chosen, *files.shared, *files.together, *stage.common, *ours}
    assert all((stage.workspace / path).exists() for path in stage.heard)
    assert clean_up(dialect, stage.standing()).removed == []
