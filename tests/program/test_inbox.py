"""How other processes ask something of a running loop."""

import os
import stat
from pathlib import Path

import pytest

from bydawn.core.facts import NoteAdded, PauseRequested, StopRequested
from bydawn.core.requests import AskNote, AskPause, AskStop, Request, as_fact
from bydawn.store.inbox import Inbox, post


def tell(number: int, run: str = "run-1") -> AskNote:
    return AskNote(id=f"t-{number}", run=run, by="ada", text="use tabs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "inbox"


ALL: list[Request] = [
    AskPause(id="p", run="run-1", by="ada", now=True, signal="SIGTERM"),
    AskStop(id="s", run="run-1", by="ada", now=False),
    tell(1),
]


def test_requests_arrive_whole_and_in_the_order_they_were_made(folder: Path) -> None:
    inbox = Inbox(folder, "run-1")
    for request in ALL:
        post(folder, request)
    assert inbox.take() == ALL


def test_a_request_is_handed_out_once_and_its_file_stays_until_it_is_done(folder: Path) -> None:
    inbox = Inbox(folder, "run-1")
    path = post(folder, tell(1))
    assert inbox.take() == [tell(1)]
    assert inbox.take() == []
    assert path.exists()
    inbox.done(tell(1))
    assert not path.exists()


def test_a_request_for_an_earlier_run_is_void(folder: Path) -> None:
    path = post(folder, tell(1, run="run-0"))
    assert Inbox(folder, "run-1").take() == []
    assert not path.exists()


def test_a_request_that_was_taken_by_a_worker_that_died_is_void_in_the_next_run(folder: Path) -> None:
    """It stands in the ledger, or else nobody was told that it does."""
    post(folder, tell(1))
    assert Inbox(folder, "run-1").take() == [tell(1)]
    assert Inbox(folder, "run-2").take() == []


def test_half_a_request_is_not_seen(folder: Path) -> None:
    inbox = Inbox(folder, "run-1")
    (folder / ".1-t-1.json").write_text('{"type":"tell","id"')
    (folder / "notes.txt").write_text("hello")
    assert inbox.take() == []
    assert (folder / ".1-t-1.json").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"type":"dance"}', '{"type":"tell","id":1}', "\xff"])
def test_what_is_no_request_is_set_aside_and_disturbs_nobody(folder: Path, text: str) -> None:
    inbox = Inbox(folder, "run-1")
    (folder / "1-bad.json").write_text(text, encoding="latin-1")
    post(folder, tell(1))
    assert inbox.take() == [tell(1)]
    assert (folder / "1-bad.bad").exists()


def test_a_folder_in_the_place_of_a_request_disturbs_nobody(folder: Path) -> None:
    inbox = Inbox(folder, "run-1")
    (folder / "1-odd.json").mkdir()
    post(folder, tell(1))
    assert inbox.take() == [tell(1)]


def test_a_request_that_is_taken_back_at_the_last_moment_disturbs_nobody(folder: Path) -> None:
    inbox = Inbox(folder, "run-1")
    assert inbox._open(folder / "1-gone.json") is None  # listed a moment ago, and no longer there


def test_whatever_is_done_with_and_was_never_taken_is_no_trouble(folder: Path) -> None:
    inbox = Inbox(folder, "run-1")
    inbox.done(AskPause(id="", run="run-1", by="a signal"))  # signals have no file
    path = post(folder, tell(1))
    inbox.take()
    path.unlink()
    inbox.done(tell(1))


def test_nobody_else_can_read_or_add_requests(folder: Path) -> None:
    old = os.umask(0)
    try:
        path = post(folder, tell(1))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


FACTS = [
    (ALL[0], PauseRequested(by="ada", now=True, signal="SIGTERM", request="p")),
    (ALL[1], StopRequested(by="ada", now=False, request="s")),
    (ALL[2], NoteAdded(note="t-1", text="use tabs", by="ada", request="t-1")),
]


@pytest.mark.parametrize(("request_", "fact"), FACTS)
def test_each_request_is_acknowledged_by_a_fact_that_carries_its_name(request_: Request, fact: object) -> None:
    assert as_fact(request_) == fact
