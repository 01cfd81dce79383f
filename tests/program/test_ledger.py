"""The append-only truth: whole or cut, never guessed, never silently emptied (FAULTS 1, 17-20, 28-30, 33)."""

import json
import os
import stat
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given

from bydawn.core.errors import OwnFailure
from bydawn.core.facts import NoteAdded, Record
from bydawn.core.replay import replay
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import Damaged, LoopLedger, OtherVersion, Unwritable, decode, encode, records
from core.facts_any import RECORDS
from core.facts_made import BORN, a_note, run_started
from program.ledgers import SHORT, STORY, facts_in, opened, silent, written

# -- lines ---------------------------------------------------------------------------------------------------------


@given(RECORDS)
def test_every_fact_there_can_be_survives_being_written_and_read(record: Record) -> None:
    line = encode(record)
    assert line.count(b"\n") == 1
    assert decode(line, record.seq) == record


def test_a_line_is_what_the_documents_say() -> None:
    at = datetime(2026, 1, 6, 12, 0, 0, 5, tzinfo=UTC)
    line = encode(Record(seq=17, at=at, fact=NoteAdded(note="n-1", text="use tabs", by="ada")))
    parsed = json.loads(line)
    assert list(parsed) == ["v", "seq", "at", "type", "data", "crc"]
    assert (parsed["v"], parsed["seq"], parsed["at"]) == (2, 17, "2026-01-06T12:00:00.000005Z")
    assert (parsed["type"], parsed["data"]["text"]) == ("note.added", "use tabs")
    assert parsed["crc"] == f"{zlib.crc32(line[: line.rindex(b',')]):08x}"


def test_what_is_appended_is_read_back_in_order_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = written(tmp_path, STORY)
    assert facts_in(tmp_path) == STORY
    assert [record.seq for record in records(LoopFolder(tmp_path))] == list(range(1, len(STORY) + 1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    state, said = opened(tmp_path)
    assert state == replay(records(LoopFolder(tmp_path)))
    assert said == []


def test_a_ledger_goes_on_where_it_was_left(tmp_path: Path) -> None:
    written(tmp_path, STORY[:4], snapshot_after=4)
    written(tmp_path, STORY[4:])
    assert facts_in(tmp_path) == STORY


# -- torn ----------------------------------------------------------------------------------------------------------


def test_a_ledger_cut_at_any_byte_opens_to_a_beginning_of_itself(tmp_path: Path) -> None:
    path = written(tmp_path, SHORT)
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        state, said = opened(tmp_path)
        kept = [end for end in ends if end <= size]
        assert facts_in(tmp_path) == SHORT[: len(kept)]
        assert state == replay(records(LoopFolder(tmp_path)))
        torn = size - (kept[-1] if kept else 0)
        assert bool(said) == bool(torn)
        assert [aside.stat().st_size for aside in tmp_path.glob("*.torn")] == ([torn] if torn else [])
        for aside in tmp_path.glob("*.torn"):
            aside.unlink()


def test_what_was_cut_off_is_kept_aside_and_the_next_fact_takes_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, STORY)
    with path.open("ab") as file:
        file.write(b'{"v":2,"seq":9,"at":"20')
    ledger = LoopLedger(LoopFolder(tmp_path), lambda _: None, str)
    assert ledger.torn is not None
    size, name = ledger.torn
    assert (size, (tmp_path / name).read_bytes()) == (23, b'{"v":2,"seq":9,"at":"20')
    ledger.append(a_note("n-2"))
    ledger.close()
    assert facts_in(tmp_path) == [*STORY, a_note("n-2")]


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff\xfe", b"{", b" "])
def test_whatever_stands_behind_the_last_newline_is_no_fact(tmp_path: Path, tail: bytes) -> None:
    path = written(tmp_path, STORY)
    with path.open("ab") as file:
        file.write(tail)
    assert facts_in(tmp_path) == STORY  # a reader does not touch it
    assert path.read_bytes().endswith(tail)
    opened(tmp_path)
    assert path.read_bytes().endswith(b"}\n")


def test_a_ledger_that_vanished_is_not_begun_anew(tmp_path: Path) -> None:
    written(tmp_path, STORY, snapshot_after=5).unlink()
    with pytest.raises(OwnFailure):
        LoopLedger(LoopFolder(tmp_path), lambda _: None, str)


# -- damaged -------------------------------------------------------------------------------------------------------


def test_a_changed_byte_anywhere_but_in_the_last_line_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, SHORT)
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    open_before = len(os.listdir("/dev/fd"))
    for place in range(last):
        bit = (0x01, 0x20, 0x80)[place % 3]
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        with pytest.raises((Damaged, OtherVersion)) as caught:
            LoopLedger(LoopFolder(tmp_path), lambda _: None, str)
        if isinstance(caught.value, Damaged):
            assert caught.value.line == whole.count(b"\n", 0, place) + 1
            assert "doctor --repair" in caught.value.hint
    assert len(os.listdir("/dev/fd")) == open_before, "a ledger that is refused is closed again"
    path.write_bytes(whole)
    assert opened(tmp_path)[1] == []


# What a person with an editor can do to a file; each is named by the line where it shows.
EDITS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "a line is missing": (lambda lines: [*lines[:2], *lines[3:]], 3),
    "a line is there twice": (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
    "two lines are swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
    "an empty line": (lambda lines: [*lines[:2], b"\n", *lines[2:]], 3),
    "a line of NULs": (lambda lines: [*lines[:2], b"\0" * 80 + b"\n", *lines[2:]], 3),
    "words": (lambda lines: [*lines[:2], b"hello\n", *lines[2:]], 3),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_refused_with_the_number_of_the_line(tmp_path: Path, edit: str) -> None:
    path = written(tmp_path, STORY)
    change, line = EDITS[edit]
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    before = path.read_bytes()
    with pytest.raises(Damaged) as caught:
        LoopLedger(LoopFolder(tmp_path), lambda _: None, str)
    assert caught.value.line == line
    assert path.read_bytes() == before  # refused, and nothing changed


def forged(seq: int, body: str) -> bytes:
    """A line with a checksum that is right and a content that is not."""
    text = f'{{"v":2,"seq":{seq},"at":"2026-01-06T12:00:00Z",{body}'.encode()
    return text + b',"crc":"%08x"}\n' % zlib.crc32(text)


@pytest.mark.parametrize(
    "body",
    [
        '"type":"moon.risen","data":{}',  # nobody knows such a fact
        '"type":"note.added","data":{"note":"n"}',  # half of one
        '"type":"note.added","data":{"note":1,"text":"","by":""}',
        '"type":"round.ended","data":[]',
    ],
)
def test_a_line_that_is_no_fact_is_refused_although_its_checksum_is_right(tmp_path: Path, body: str) -> None:
    path = written(tmp_path, STORY)
    with path.open("ab") as file:
        file.write(forged(len(STORY) + 1, body))
    with pytest.raises(Damaged):
        LoopLedger(LoopFolder(tmp_path), lambda _: None, str)


def test_a_ledger_of_a_newer_version_is_refused_and_not_called_damaged(tmp_path: Path) -> None:
    path = written(tmp_path, STORY)
    path.write_bytes(path.read_bytes().replace(b'{"v":2', b'{"v":3'))
    with pytest.raises(OtherVersion, match="newer bydawn"):
        LoopLedger(LoopFolder(tmp_path), lambda _: None, str)


def test_a_loop_of_an_older_version_is_refused_and_not_called_damaged(tmp_path: Path) -> None:
    path = written(tmp_path, STORY)
    older = []
    for line in path.read_bytes().splitlines():
        body = line.replace(b'{"v":2', b'{"v":1')[: -len(b',"crc":"00000000"}')]
        older.append(body + b',"crc":"%08x"}\n' % zlib.crc32(body))
    path.write_bytes(b"".join(older))
    with pytest.raises(OtherVersion, match="began with an older bydawn") as caught:
        LoopLedger(LoopFolder(tmp_path), lambda _: None, str)
    assert "finish it there" in caught.value.hint and "run --new" in caught.value.hint


# -- trouble with the disk -----------------------------------------------------------------------------------------


def test_after_an_error_nothing_more_is_believed_or_written(tmp_path: Path) -> None:
    ledger = LoopLedger(LoopFolder(tmp_path), silent, str)
    ledger.append(BORN)
    os.close(ledger._fd)  # as good an error as any: the descriptor has gone bad
    for act in (ledger.sync, ledger.sync, lambda: ledger.append(run_started())):
        with pytest.raises(Unwritable, match="can no longer be written"):
            act()
    assert facts_in(tmp_path) == [BORN]


def test_a_ledger_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "ledger.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        LoopLedger(LoopFolder(tmp_path), silent, str)


def test_there_is_a_reserve_for_the_last_words(tmp_path: Path) -> None:
    written(tmp_path, STORY)
    assert (tmp_path / "reserve").stat().st_blocks > 0  # real blocks, not a hole
