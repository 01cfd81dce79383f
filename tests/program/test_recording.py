"""Records of others reach the ledger of a loop that runs, and of one that does not; prepared loops wait."""

import json
import os
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.facts import IterationRecorded
from bydawn.core.loop import Loop
from bydawn.core.records import Iteration, Recording
from bydawn.core.redact import Secrets
from bydawn.operations import changing, recording
from bydawn.operations.plan import Plan
from bydawn.operations.prepare import prepare
from bydawn.store import drop
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Lock
from bydawn.store.registry import Registry, Standing, standing_of
from driving import OK, Home, said, wait_for

DROP = "drop"
POST = (
    "import sys; from pathlib import Path; from datetime import UTC, datetime;"
    "from bydawn.core.facts import IterationRecorded; from bydawn.core.records import Iteration;"
    "from bydawn.store.drop import post;"
    "claim = Iteration(task=sys.argv[2], local_done_condition='', result_summary=sys.argv[3], verification_summary='v',"
    " status=sys.argv[4]);"
    "post(Path(sys.argv[1]), IterationRecorded(record=sys.argv[2], at=datetime.now(UTC), claim=claim))"
)


def claim(record: str, **more: Any) -> IterationRecorded:
    said = {"task": record, "local_done_condition": "", "result_summary": "7", "verification_summary": "2*7"}
    return IterationRecorded(record=record, at=datetime.now(UTC), by="codex", claim=Iteration(**said | more))


def prepared(home: Home, agent: str = "", **settings: Any) -> Standing:
    """A loop of the repository that was born and does not run."""
    (home.repo / ".gitignore").write_text(f"{DROP}\n")
    given: dict[str, Any] = {
        "id": "repo",
        "uid": "u" * 16,
        "workspace": str(home.repo),
        "created_at": datetime.now(UTC),
    }
    given |= {"prompt": "halve 14", "agent": agent or home.rounds([OK]), "recording": Recording(drop=DROP)}
    loop = Loop(**given | settings)
    folder = LoopFolder(Registry(home.states).home(home.repo) / "repo")
    prepare(Plan(loop=loop, folder=folder, secrets=Secrets({})))
    return now(folder)


def now(folder: LoopFolder) -> Standing:
    standing = standing_of(folder)
    assert standing
    return standing


def recorded(home: Home) -> list[str]:
    return [fact["data"]["record"] for fact in home.facts("iteration.recorded")]


def post(home: Home, record: str, status: str = "running") -> dict[str, Any]:
    """A step of the agent that leaves a record."""
    return {"run": [sys.executable, "-c", POST, str(home.repo / DROP), record, "did it", status]}


def test_a_prepared_loop_is_paused_until_a_person_begins_it(home: Home) -> None:
    standing = prepared(home, home.rounds([{"write": {"path": "a", "text": "1"}}, post(home, "one", "completed"), OK]))
    assert standing.state.runs == 0
    status = home.status()
    assert (status["state"], status["reason"]) == ("paused", "prepared: it has not begun")
    assert status["offers"][0] == {"command": "bydawn resume repo", "why": "begin"}
    row = home.bydawn("status").out
    assert "paused" in row
    assert "0 rounds · 0.0 s · prepared " in row
    assert ", it has not begun" in row
    taken = home.bydawn("resume", "--all", "--stopped")
    assert "prepared: it has not begun" in taken.out + taken.err
    assert home.status()["state"] == "paused"
    done = home.bydawn("resume", "repo", "--plain")
    assert done.code == 0
    assert "30 rounds, 200 iterations that it records" in done.out
    assert "the agent recorded iteration 1 (a claim): one: did it" in done.out
    assert "it says that the work is completed: did it" in done.out
    assert home.status()["state"] == "unverified"
    shown = home.show()["recorded"]
    assert (shown["iterations"], shown["claimed"], shown["last"][0]["progress"]) == (1, "completed", True)
    assert "1. one: did it, files changed" in home.bydawn("show", "repo").out
    assert "it was recorded as done" in home.bydawn("status").out + home.bydawn("show", "repo").out
    logged = json.loads(home.bydawn("events", "repo", "--json").out.splitlines()[-1])
    assert logged


def test_a_loop_that_a_session_works_on_is_run_by_no_one_else(home: Home) -> None:
    standing = prepared(home, recording=Recording(drop=DROP, by_hand=True))
    assert standing.state.stopped
    assert standing.state.stopped.reason == "prepared: its own session works on it"
    for words in (["resume", "repo"], ["run", "halve 14", "--name", "repo", "-a", standing.loop.agent]):
        refused = home.bydawn(*words)
        assert refused.code == 2
        assert "bydawn does not run repo: a person's own session works on it" in refused.err
    assert [offer["command"] for offer in home.status()["offers"]] == ["bydawn show repo"]
    assert home.run(home.rounds([OK]), "--once").code == 4, "a loop of another name may run beside it"
    assert home.status("repo-2")["state"] == "limit"


def test_what_is_recorded_outside_decides_what_a_resting_loop_is(home: Home) -> None:
    standing = prepared(home, recording=Recording(drop=DROP, by_hand=True))
    drop.post(home.repo / DROP, claim("first"))
    assert recording.record(standing, claim("second"))
    assert recorded(home) == ["first", "second"]
    assert [fact["data"]["inside"] for fact in home.facts("iteration.recorded")] == [True, False]
    assert not any((home.repo / DROP).glob("*.json"))
    recording.record(standing, claim("third", status="blocked", stop_reason="no key"))
    status = home.status()
    assert (status["state"], status["reason"]) == ("blocked", "recorded as blocked: no key")
    recording.record(now(standing.folder), claim("fourth"))
    assert home.status()["reason"] == "prepared: its own session works on it"
    drop.post(home.repo / DROP, claim("last", stop_met=True))
    assert recording.take_in(now(standing.folder)) == 1
    assert recording.take_in(now(standing.folder)) == 0
    assert home.status()["state"] == "unverified"
    assert recording.record(now(standing.folder), claim("more")), "after the end, too"
    assert recorded(home)[-1] == "more"
    assert home.status()["state"] == "unverified", "and nothing that was decided changes"


def test_a_running_loop_takes_records_at_once_and_no_other_process_writes_its_ledger(home: Home) -> None:
    gate, opened = home.gate()
    standing = prepared(home, home.rounds([gate, OK]))
    process = home.start("resume", "repo", "--once", "--plain")
    home.await_round(1)
    alive = now(standing.folder)
    assert alive.alive
    assert recording.take_in(alive) == 0
    assert recording.record(alive, claim("w1"))
    assert recorded(home) == ["w1"]
    assert home.facts("iteration.recorded")[0]["data"]["round"] == 1
    opened.touch()
    ended = said(process)
    assert ended.code == 4
    assert "codex recorded iteration 1 (a claim): w1: 7" in ended.out


def test_two_commands_at_once_record_both(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each syncs what it writes, so on a busy disk the last of four may wait longer than a command usually does.
    monkeypatch.setattr(Lock, "take", partial(Lock.take, patience=60.0))
    standing = prepared(home)
    threads = [threading.Thread(target=recording.record, args=(standing, claim(f"r{number}"))) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(lambda: recording.take_in(now(standing.folder)) or len(recorded(home)) == 4)
    assert sorted(recorded(home)) == ["r0", "r1", "r2", "r3"]


def test_a_command_outside_sets_aside_what_is_no_record_and_says_so_once(home: Home) -> None:
    standing, said = prepared(home), list[str]()
    (home.repo / DROP).mkdir()
    for number in range(40):
        (home.repo / DROP / f"{number}-x.json").write_text("{")
    assert recording.take_in(standing, said.append) == 0
    assert os.listdir(home.repo / DROP) == ["bad"]
    assert len(said) == 1
    assert len(home.facts()) == 2


def test_a_record_from_inside_another_loops_round_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAULTS 66"""
    standing = prepared(home)
    monkeypatch.setenv("BYDAWN_COOKIE", "other.1.c0")
    with pytest.raises(UserError, match="agents may not do this"):
        recording.record(standing, claim("x"))
    drop.post(home.repo / DROP, claim("y"))
    assert recording.take_in(standing) == 0
    assert recorded(home) == []


def test_settings_change_only_through_the_ledger_even_if_the_power_fails_in_between(home: Home) -> None:
    standing = prepared(home)
    changing.change(standing, replace(standing.loop, model="small"))
    assert now(standing.folder).loop.model == "small"
    old, new = standing.folder.settings.read_bytes(), standing.folder.next_settings
    changing.change(now(standing.folder), replace(standing.loop, model="large"))
    os.rename(standing.folder.settings, new)  # as if the last step was missing
    standing.folder.settings.write_bytes(old)
    assert home.bydawn("resume", "repo", "--once", "--plain").code == 4
    assert now(standing.folder).loop.model == "large"
    standing.folder.settings.write_bytes(old)
    refused = home.bydawn("resume", "repo", "--once", "--plain")
    assert (refused.code, "has changed since the loop was started" in refused.err) == (1, True)


def test_nothing_of_a_start_is_left_when_two_prepare_the_same_loop(home: Home) -> None:
    standing = prepared(home)
    with pytest.raises(UserError, match="another process was faster"):
        prepare(Plan(loop=standing.loop, folder=standing.folder, secrets=Secrets({})))
    assert len(home.facts()) == 2
