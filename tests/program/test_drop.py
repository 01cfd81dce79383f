"""The drop folder is the agent's to write: nothing in it may be followed, wait, grow, or do more than record."""

import json
import os
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from bydawn.core.errors import UserError
from bydawn.core.facts import EventRecorded, IterationRecorded
from bydawn.core.records import Iteration
from bydawn.store import drop
from bydawn.store.drop import Drop, post

PATH = ".codex-loop/tasks/t/drop"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def event(record: str, message: str = "hello") -> EventRecorded:
    return EventRecorded(record=record, at=NOON, by="executor", kind="note", message=message)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / PATH
    folder.mkdir(parents=True)
    return folder


def taker(folder: Path, said: list[str]) -> Drop:
    workspace = Path(str(folder).removesuffix(f"/{PATH}"))
    return Drop(workspace, PATH, said.append)


def test_records_are_taken_in_order_sixteen_at_a_time_and_stay_until_they_are_in_the_ledger(folder: Path) -> None:
    iteration = Iteration(task="a", local_done_condition="b", result_summary="c", verification_summary="d")
    posted: list[drop.Claim] = [
        *(event(f"e{number}") for number in range(20)),
        IterationRecorded(record="i1", at=NOON, claim=iteration),
    ]
    files = [post(folder, fact) for fact in posted]
    drops = taker(folder, [])
    first = drops.take()
    assert first == posted[:16]
    assert drops.take() == first, "not recorded yet"
    for fact in first:
        drops.done(fact)
    assert [file.exists() for file in files] == [False] * 16 + [True] * 5
    assert drops.take() == posted[16:]


def test_a_record_whose_file_outlived_a_crash_is_taken_once(folder: Path) -> None:
    post(folder, event("one"))
    post(folder, event("two"))
    post(folder, event("two"))
    said: list[str] = []
    assert taker(folder, said).take(known=["one"]) == [event("two")]
    assert len(os.listdir(folder)) == 1
    assert not said


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 << 30)


def a_link(path: Path) -> None:
    secret = path.parents[4] / "secret.json"
    secret.write_bytes(msgspec.json.encode(event("x")))
    path.symlink_to(secret)


BAD: dict[str, Callable[[Path], object]] = {
    "huge": huge,
    "too long": lambda path: path.write_text(json.dumps({"type": "event.recorded", "x": "y" * drop.AT_MOST})),
    "nested": lambda path: path.write_text("[" * 60_000),
    "nested in a field": lambda path: path.write_text('{"type":"event.recorded","x":' + "[" * 60_000),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "not UTF-8": lambda path: path.write_bytes(
        b'{"type":"event.recorded","record":"x","at":"2026-05-01T12:00:00Z","kind":"\xff","message":""}'
    ),
    "empty": lambda path: path.touch(),
    "another fact": lambda path: path.write_text('{"type":"checkpoint.approved","mark":"m","text":"t","by":"me"}'),
    "another id": lambda path: path.write_bytes(msgspec.json.encode(event("y"))),
    "a link": a_link,
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "a full folder": lambda path: (path / "more").mkdir(parents=True),
    "unreadable": lambda path: path.symlink_to("/proc/1/mem"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_not_a_record_is_set_aside_and_said_once(folder: Path, kind: str) -> None:
    names = ["1-x.json", "2-x.json"]
    for name in names:
        BAD[kind](folder / name)
    good = post(folder, event("good"))
    said: list[str] = []
    drops = taker(folder, said)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert drops.take() == [event("good")]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "kilobytes"
    assert sorted(os.listdir(folder)) == [good.name, "bad"]
    assert sorted(os.listdir(folder / "bad")) == names
    assert len(said) == 1
    assert "1-x.json is not a record" in said[0]
    assert [fact.record for fact in drops.take()] == ["good"]


@pytest.mark.parametrize("there", ["file", "link"])
def test_bad_files_go_nowhere_else_when_their_folder_was_replaced(folder: Path, there: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "bad").symlink_to(elsewhere) if there == "link" else (folder / "bad").touch()
    (folder / "1-x.json").write_text("{")
    (folder / "2-x.json").mkdir()  # which cannot be removed like a file
    post(folder, event("good"))
    drops = taker(folder, [])
    assert drops.take() == drops.take() == [event("good")]
    assert not any(elsewhere.iterdir())
    assert not (folder / "1-x.json").exists()


@pytest.mark.parametrize("replaced", ["drop", ".codex-loop"])
def test_a_folder_that_became_a_link_is_not_followed(folder: Path, replaced: str, tmp_path: Path) -> None:
    link = folder if replaced == "drop" else folder.parents[2]
    real = link.rename(tmp_path / "real")
    link.symlink_to(real)
    inside = real if replaced == "drop" else real / "tasks/t/drop"
    (inside / "1-x.json").write_bytes(msgspec.json.encode(event("x")))
    drops = taker(folder, [])
    drops.prepare()
    assert drops.take() == []
    with pytest.raises(UserError, match="nothing can be recorded"):
        post(folder, event("y"))
    assert os.listdir(inside) == ["1-x.json"]


def test_no_more_than_a_thousand_records_wait_and_none_is_longer_than_64_kib(folder: Path) -> None:
    with pytest.raises(UserError, match="too long"):
        post(folder, event("long", "x" * drop.AT_MOST))
    for number in range(drop.WAITING):
        (folder / f"{number}-x.json").touch()
    with pytest.raises(UserError, match="1,000 records are waiting"):
        post(folder, event("more"))
    assert len(os.listdir(folder)) == drop.WAITING


def test_a_folder_with_more_names_than_anyone_leaves_is_taken_in_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop, "_LOOKED_AT", 50)
    for number in range(200):
        (folder / f"{number}-x.json").touch()
    post(folder, event("good"))
    drops = taker(folder, [])
    assert any(drops.take() == [event("good")] for _ in range(20))


def test_a_record_behind_many_files_that_are_none_is_taken_at_once(folder: Path) -> None:
    for number in range(40):
        (folder / f"{number}-x.json").touch()
    post(folder, event("good"))
    assert taker(folder, []).take() == [event("good")]


def test_other_files_are_left_alone(folder: Path) -> None:
    names = ["init.json", ".9-x.json.tmp", "README", "x.json"]
    for name in names:
        (folder / name).touch()
    assert taker(folder, []).take() == []
    assert sorted(os.listdir(folder)) == sorted(names)
