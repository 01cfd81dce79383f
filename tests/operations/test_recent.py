"""The last rounds of a loop, read from the end of its ledger: the same words as a whole replay finds."""

from pathlib import Path

import msgspec
import pytest

from bydawn.core.facts import AnyFact, MachineSlept, WaitStarted
from bydawn.core.outcome import Outcome
from bydawn.core.values import Decided, End
from bydawn.operations import outputs
from bydawn.operations.amounts import moment
from bydawn.operations.recent import Between, Recent, recent, rounds
from bydawn.operations.rounds import RoundRow, Tick
from bydawn.store import ledger
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import LoopLedger, encode
from bydawn.store.lock import Lock
from bydawn.store.registry import Standing, standing_of
from core.facts_made import (
    BORN,
    NOON,
    PROVABLE,
    a_note,
    a_round,
    checked,
    idle_round,
    numbered,
    raised,
    run_started,
    started,
    stopped,
    todo,
)
from operations.stories import STORIES, held, home_of, write_loop


def a_loop_with(root: Path, *facts: AnyFact) -> Standing:
    """On disk, with the snapshot that its worker leaves after each round."""
    folder = LoopFolder(root / "loops" / "home" / "night")
    folder.path.mkdir(parents=True)
    folder.settings.write_bytes(msgspec.json.encode(msgspec.structs.replace(PROVABLE, workspace=str(root))))
    known: list[AnyFact] = [BORN, run_started(tasks=todo(3)), *facts]
    folder.ledger.write_bytes(b"".join(map(encode, numbered(known[:-1]))))
    kept = LoopLedger(folder, lambda _: None, str)
    kept.append(known[-1])
    kept.snapshot()
    kept.close()
    standing = standing_of(folder)
    assert standing
    return standing


def words(found: Recent) -> list[str]:
    return [row.text if isinstance(row, Between) else f"{row.number} {row.result}" for row in found.rows]


def test_rounds_and_what_came_between_them_are_in_order(tmp_path: Path) -> None:
    wait = WaitStarted(seconds=30.0, reason="a blip", decided=Decided(rule="back-off", at=NOON, elapsed=1.0))
    standing = a_loop_with(
        tmp_path,
        *a_round(1, task="one", tasks=todo(2, 1), closed=("one",)),
        checked(1),
        started(2, task="two"),
        MachineSlept(seconds=60.0),
        a_round(2, task="two", tasks=todo(2, 1))[1],
        checked(2, passed=False),
        wait,
        *idle_round(3, tasks=todo(2, 1)),
        stopped(End.BLOCKED),
    )
    found = recent(standing, 30)
    assert words(found) == [
        "1 task done",
        "the machine slept for 1 m 00; all timers were paused",
        "2 not yet",
        f"waiting until {moment(NOON)} (30 s): a blip",
        "3 no change 1/5",
    ]
    assert [tick for tick, _ in found.ticks] == [Tick.CLOSED, Tick.SLEPT, Tick.RED, Tick.WAITED, Tick.IDLE]
    assert [number for _, number in found.ticks] == [1, 0, 2, 0, 3]
    assert [row.open_tasks for row in found.rounds] == [2, 2, 2]


def test_a_remark_says_in_which_round_the_agent_was_told(tmp_path: Path) -> None:
    standing = a_loop_with(tmp_path, *a_round(1), checked(1, passed=False), *a_round(2), checked(2))
    first = recent(standing, 30).rounds[0]
    assert [first.told(remark) for remark in first.remarks] == [
        "exit 2: FAIL: test_rounding → sent to the agent in round 2"
    ]


def test_a_round_that_has_not_ended_runs_or_was_interrupted(tmp_path: Path) -> None:
    standing = a_loop_with(tmp_path, *a_round(1), checked(1), started(2))
    assert recent(standing, 30).rounds[-1].tick is Tick.CUT
    alive = msgspec.structs.replace(standing, alive=True)
    assert recent(alive, 30).rounds[-1].tick is Tick.RUNNING


def test_an_agent_that_failed_has_its_own_sign(tmp_path: Path) -> None:
    standing = a_loop_with(tmp_path, *a_round(1, Outcome.FAILED, progress=False), *a_round(2, Outcome.LIMITED))
    assert [row.tick for row in recent(standing, 30).rounds] == [Tick.FAILED, Tick.CUT]


def many(count: int) -> list[AnyFact]:
    return [fact for number in range(1, count + 1) for fact in (*a_round(number, task=f"t{number}"), checked(number))]


def test_of_a_long_history_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standing = a_loop_with(tmp_path, *many(1000), stopped(End.BLOCKED))
    decoded = 0
    real = ledger.decode

    def counting(line: bytes, seq: int) -> object:
        nonlocal decoded
        decoded += 1
        return real(line, seq)

    monkeypatch.setattr(ledger, "decode", counting)
    found = recent(standing, 30)
    assert [row.number for row in found.rounds] == [*range(971, 1001)]
    assert found.earlier == 970
    assert decoded < 200


def test_a_page_of_earlier_rounds_ends_before_the_one_that_is_named(tmp_path: Path) -> None:
    standing = a_loop_with(tmp_path, *many(50), a_note("n-1"), *a_round(51), raised(rounds=9))
    found = recent(standing, 10, before=51)
    assert [row.number for row in found.rounds] == [*range(41, 51)]
    assert words(found)[-1] == "note from ada for the next prompt"
    assert recent(standing, 10, before=1).rounds == []
    assert [row.number for row in recent(standing, 10, before=4).rounds] == [1, 2, 3]


def test_the_last_of_them_keep_what_came_between(tmp_path: Path) -> None:
    standing = a_loop_with(tmp_path, *many(3), a_note("n-1"), *a_round(4))
    found = recent(standing, 30).last(2)
    assert words(found) == ["3 progress", "note from ada for the next prompt", "4 progress"]
    assert found.earlier == 2


@pytest.mark.parametrize("name", STORIES)
def test_every_story_has_the_rounds_that_a_whole_replay_finds(name: str, tmp_path: Path) -> None:
    write_loop(tmp_path, name)
    with held(tmp_path, name):
        standing = standing_of(LoopFolder(home_of(tmp_path, name) / name))
        assert standing
        found = recent(standing, 30)
    whole = rounds(standing)
    assert [row.attempt.started for row in found.rounds] == [row.attempt.started for row in whole]
    assert [row.attempt.ended for row in found.rounds] == [row.attempt.ended for row in whole]
    assert [row.attempt.checks for row in found.rounds] == [row.attempt.checks for row in whole]
    assert [row.result for row in found.rounds] == [row.result for row in whole]
    assert all(isinstance(row, RoundRow | Between) for row in found.rows)


# -- what an agent does now --------------------------------------------------------------------------------------------


def running(root: Path, printed: str) -> str:
    write_loop(root, "running")
    folder = LoopFolder(home_of(root, "running") / "running")
    stdout = folder.round_file(2, "stdout")
    stdout.parent.mkdir(parents=True)
    stdout.write_text(printed)
    lock = Lock.take(folder.lock)
    try:
        standing = standing_of(folder)
        assert standing
        return outputs.activity(standing)
    finally:
        lock.release()


def test_the_last_thing_an_agent_did_or_said_is_one_line(tmp_path: Path) -> None:
    lines = '{"type":"message","text":"I read\\nthe docs"}\n{"type":"activity","text":"editing a.md"}\nnot json\n'
    assert running(tmp_path, lines) == "editing a.md"


def test_a_secret_in_it_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "hunter2-hunter2-hunter2")
    said = running(tmp_path, '{"type":"message","text":"the key is hunter2-hunter2-hunter2"}\n')
    assert "hunter2" not in said
    assert said.startswith("the key is")


def test_an_agent_that_has_printed_nothing_does_nothing_yet(tmp_path: Path) -> None:
    assert running(tmp_path, "") == ""
