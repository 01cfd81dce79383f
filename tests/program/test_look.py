"""Looking at loops: the same words for people and for programs, computed from the ledger at the moment of asking."""

import json
import re
import shlex
from typing import Any

import click
import pytest

from bydawn.cli.program import bydawn
from bydawn.cli.render import OF_LOOPS
from driving import DONE, HANG, OK, Home, said


def data(home: Home, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(home.bydawn(*arguments, "--json").out))


def test_bydawn_alone_shows_the_loops_and_starts_nothing(home: Home) -> None:
    assert "No loops yet" in home.bydawn().out
    assert not home.states.exists()
    home.run(home.rounds([DONE]))
    assert "unverified" in home.bydawn().out
    assert len(home.facts("run.started")) == 1


def test_the_state_folder_is_the_one_a_person_set_wherever_they_set_it(home: Home) -> None:
    home.run(home.rounds([DONE]), "--state-dir", str(home.root / "elsewhere"))
    assert "No loops yet" in home.bydawn().out
    assert "unverified" in home.bydawn("status", "--state-dir", str(home.root / "elsewhere")).out
    assert "unverified" in home.bydawn(BYDAWN_STATE_DIR=str(home.root / "elsewhere")).out
    home.bydawn("config", "set", "--user", "state_dir", str(home.root / "elsewhere"))
    assert "unverified" in home.bydawn().out


def test_what_is_printed_where_a_state_folder_was_typed_can_be_pasted(home: Home) -> None:
    there = ["--state-dir", str(home.root / "else where")]
    ended = home.run(home.rounds([OK], [DONE]), "--once", *there)
    shown = [home.bydawn(*words, f"--state-dir={there[1]}") for words in (["status"], ["show"], ["pause", "repo"])]
    refused = home.bydawn("resume", "--approve", *there)
    assert refused.code == 2
    pasted = re.findall(r"bydawn (?:resume|show|logs) .*? --state-dir '[^']+'", refused.err)
    pasted += [line for said in (ended, *shown) for line in re.findall(r"bydawn .*?(?=  |$)", said.out, re.MULTILINE)]
    assert len(pasted) >= 6
    for line in sorted({*pasted}, key=lambda line: "resume" in line):
        assert home.bydawn(*shlex.split(line)[1:]).code == 0, line
    assert home.bydawn("show").code == 2  # and nothing was begun elsewhere


def test_a_state_folder_that_is_set_for_good_need_not_be_typed(home: Home) -> None:
    said = home.run(home.rounds([OK]), "--once", BYDAWN_STATE_DIR=str(home.root / "elsewhere"))
    assert "bydawn resume repo" in said.out
    assert "--state-dir" not in said.out


def test_every_command_that_is_given_the_state_folder_takes_it() -> None:
    with bydawn.make_context("bydawn", ["status"]) as context:
        found = [bydawn.get_command(context, name) for name in OF_LOOPS]
        groups = [each for each in found if isinstance(each, click.Group)]
        single = [each for each in found if each and each not in groups]
        single += [each for group in groups for each in group.commands.values()]
    assert all(any(param.name == "state_dir" for param in each.params) for each in single)


def test_every_read_command_has_json_with_a_schema_number(home: Home) -> None:
    home.run(home.rounds([DONE]))
    for command in (["status"], ["show"], ["why"], ["doctor"], ["version"]):
        assert data(home, *command)["schema"] == 1
    for command in (["events"], ["logs"]):
        rows = [json.loads(line) for line in home.bydawn(*command, "--json").out.splitlines()]
        assert rows == [] or {row["schema"] for row in rows} == {1}


def test_show_names_what_is_missing_and_every_round(home: Home) -> None:
    home.tasks(2)
    home.run(home.each_task({"write": {"path": "f{n}", "text": "x"}}), "-t", "TODO.md", "-k", "false", "--once")
    shown = home.show()
    assert shown["missing"] == ["tasks", "checks"]
    [row] = shown["rounds"]
    assert row["outcome"] == "ok"
    assert row["files_changed"] == {"added": 1, "modified": 1, "deleted": 0, "paths": ["TODO.md", "f1"]}
    assert row["closed"] == ["task 1"]
    assert row["verdicts"][0]["passed"] is False
    assert row["seconds"] > 0
    assert row["usage"] is None
    text = home.bydawn("show").out
    assert "1 task is open in TODO.md" in text
    assert "Next" in text
    of_round = home.bydawn("show", "--round", "1").out
    assert "task 1" in of_round
    assert "  Folder  /" in of_round
    assert "has no round 9" in home.bydawn("show", "--round", "9").err


def test_a_running_loop_is_alive_and_its_last_output_has_an_age(home: Home) -> None:
    process = home.start_run(home.rounds([{"say": "hello"}, HANG]))
    home.await_round(1)
    loop = home.status()
    assert (loop["state"], loop["alive"]) == ("running", True)
    assert 0 <= loop["last_output_age_s"] < 30
    assert "alive, last output" in home.bydawn().out
    assert home.bydawn("stop").code == 0
    assert said(process).code == 130


def test_logs_are_readable_and_can_be_cut_to_their_end(home: Home) -> None:
    steps = [{"say": f"line {number}"} for number in range(1, 6)]
    home.run(home.rounds([{"activity": "editing a.py"}, *steps, DONE]))
    assert home.bydawn("logs").out.splitlines() == ["  · editing a.py", *(f"line {n}" for n in range(1, 6))]
    assert "line 5" in home.bydawn("logs", "--tail", "3").out
    assert "line 1" not in home.bydawn("logs", "--tail", "3").out


def test_events_are_the_ledger_in_order(home: Home) -> None:
    home.run(home.rounds([DONE]))
    rows = [json.loads(line) for line in home.bydawn("events", "--json").out.splitlines()]
    assert [row["type"] for row in rows] == [fact["type"] for fact in home.facts()]
    assert [row["seq"] for row in rows] == [*range(1, len(rows) + 1)]


@pytest.mark.parametrize(
    ("options", "rounds", "rule"),
    [
        (["--once"], [[OK]], "rounds-this-run"),
        (["--max-failures", "1"], [[{"exit": 3}]], "agent-failures"),
        (["--for", "0.01s"], [[OK]], "time"),
        ([], [[{"result": {"outcome": "auth", "text": "log in first"}}]], "agent-stop"),
    ],
)
def test_why_names_the_very_rule_that_the_engine_used(
    home: Home, options: list[str], rounds: list[list[dict[str, Any]]], rule: str
) -> None:
    home.tasks(2)
    home.run(home.rounds(*rounds), *options)
    [stopped] = home.facts("loop.stopped")
    reason = data(home, "why")
    assert reason["rule"] == stopped["data"]["decided"]["rule"] == rule
    assert reason["agrees"] is True
    assert reason["meaning"]
    assert rule in home.bydawn("why").out


def test_doctor_verifies_every_line_and_exits_with_what_it_found(home: Home) -> None:
    home.run(home.rounds([DONE]))
    assert home.bydawn("doctor").code == 0
    ledger = home.folder() / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"round":1', b'"round":7', 1))
    said = home.bydawn("doctor")
    assert said.code == 1
    assert "doctor --repair repo" in said.out
    (home.folder() / "state.json").unlink()  # a look goes by the snapshot and the tail; without it, by every line
    assert home.status()["state"] == "damaged"


def test_exit_code_of_status_is_the_states_only_when_asked(home: Home) -> None:
    home.run(home.rounds([OK]), "--max-no-change", "1")
    assert home.bydawn("status").code == 0
    assert home.bydawn("status", "--exit-code").code == 3


def test_a_loop_is_found_by_name_from_anywhere_and_by_folder_when_names_clash(home: Home) -> None:
    other = home.root / "other"
    other.mkdir()
    agent = home.rounds([DONE])
    home.run(agent, "--name", "night")
    assert home.bydawn("show", "night", "-C", str(other)).code == 0
    home.bydawn("run", "x", "-a", agent, "--name", "night", "-C", str(other), "--plain")
    third = home.root / "third"
    third.mkdir()
    said = home.bydawn("show", "night", "-C", str(third))
    assert said.code == 2
    assert "night@repo" in said.err
    assert home.bydawn("show", "night@other", "-C", str(third)).code == 0


def test_rows_fit_into_48_columns_and_carry_no_colour_when_asked(home: Home) -> None:
    home.tasks(3)
    agent = home.each_task({"write": {"path": "f{n}", "text": "x"}})
    run = home.bydawn("run", "do it", "-a", agent, "-t", "TODO.md", "-k", "true", COLUMNS="48", NO_COLOR="1")
    looks = [home.bydawn(*each, COLUMNS="48", NO_COLOR="1") for each in (["status"], ["show"], ["why"], ["--help"])]
    rows = [line for said in (run, *looks) for line in said.out.splitlines() if str(home.root) not in line]
    assert "\x1b" not in "".join(rows)
    assert [line for line in rows if len(line) > 48 and "└" not in line] == []
