"""`state.json` saves reading all of the ledger, and is never a second truth (FAULTS 2, 3, 18, 31, 32, 35)."""

import json
import os
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn import __version__
from bydawn.core.facts import AnyFact
from bydawn.core.replay import replay
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import load, records, writer
from core.facts_any import HISTORIES
from core.facts_made import BORN, a_note, numbered
from program.ledgers import SHORT, STORY, opened, silent, written


@given(HISTORIES, st.integers(1, 10))
def test_a_snapshot_at_any_place_changes_nothing(facts: list[AnyFact], place: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = written(folder, [BORN, *facts], snapshot_after=place)
        state, end = load(LoopFolder(folder), silent)
        assert state == replay(records(LoopFolder(folder)))
        assert end == path.stat().st_size
        assert replay(numbered([BORN, *facts])).rounds == state.rounds


def test_what_a_snapshot_covers_is_not_read_again(tmp_path: Path) -> None:
    """Or a ledger of 1 GB would take minutes to open."""
    path = written(tmp_path, STORY, snapshot_after=len(STORY))
    state, _ = load(LoopFolder(tmp_path), silent)
    data = bytearray(path.read_bytes())
    data[40] ^= 1  # in the first line, which only `doctor` looks at
    path.write_bytes(data)
    assert load(LoopFolder(tmp_path), silent)[0] == state


def test_a_snapshot_with_any_byte_changed_or_cut_off_is_never_a_second_truth(tmp_path: Path) -> None:
    written(tmp_path, SHORT, snapshot_after=3)
    path, truth = tmp_path / "state.json", replay(records(LoopFolder(tmp_path)))
    good = path.read_bytes()
    for place in range(len(good)):
        for bad in (good[:place], good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]):
            path.write_bytes(bad)
            assert load(LoopFolder(tmp_path))[0] == truth, bad


@pytest.mark.parametrize("lines", range(1, 5))
def test_a_snapshot_that_is_ahead_of_its_ledger_is_rebuilt_loudly(tmp_path: Path, lines: int) -> None:
    path = written(tmp_path, STORY, snapshot_after=5)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))
    state, said = opened(tmp_path)
    assert (state.seq, state) == (lines, replay(records(LoopFolder(tmp_path))))
    assert any("state.json" in line for line in said)


def test_a_snapshot_of_another_ledger_is_not_believed(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    written(tmp_path / "one", STORY, snapshot_after=5)
    written(tmp_path / "other", [BORN, *[a_note(f"n-{number}") for number in range(9)]])
    os.replace(tmp_path / "one/state.json", tmp_path / "other/state.json")
    assert load(LoopFolder(tmp_path / "other"))[0] == replay(records(LoopFolder(tmp_path / "other")))


@pytest.mark.parametrize("by", [writer(), __version__, f"{__version__} 00000000", "0.0.0-other"])
def test_a_snapshot_by_another_version_or_of_another_shape_is_made_anew(tmp_path: Path, by: str) -> None:
    """It may have folded the same facts into another state."""
    written(tmp_path, STORY, snapshot_after=5)
    path = tmp_path / "state.json"
    snapshot = json.loads(path.read_bytes())
    state = json.dumps({**snapshot["state"], "rounds": 99}, separators=(",", ":"))
    forged = {**snapshot, "writer": by, "sum": zlib.crc32(state.encode()), "state": json.loads(state)}
    path.write_text(json.dumps(forged, separators=(",", ":")))
    assert load(LoopFolder(tmp_path), silent)[0].rounds == (100 if by == writer() else 2)  # one more is in the tail


def test_a_draft_that_a_dying_worker_left_is_removed(tmp_path: Path) -> None:
    written(tmp_path, STORY)
    (tmp_path / "state.json.tmp").write_text("half")
    opened(tmp_path)
    assert not (tmp_path / "state.json.tmp").exists()
