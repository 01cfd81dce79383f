"""A dialect that nobody speaks, typed for real: plugged in by one row, killed, and resumed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bydawn import __version__
from bydawn.store.lock import is_held
from dialects import made_up
from driving import Home, Said, kill_both, said, wait_for, worker_of

# What an installed dialect has: a row of the table and two modules of that name.
RUN = """
import sys
from bydawn import dialects
from bydawn.cli.main import main
from dialects import made_up
dialects.TABLE[made_up.NAME] = made_up.ROW
sys.modules["bydawn.dialects.night_shift"] = sys.modules["bydawn.cli.dialects.night_shift"] = made_up
sys.exit(main(sys.argv[2:], sys.argv[1]))
"""
TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.installed  # it starts an interpreter of its own


class Shift:
    """The command, as if it were installed."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.state_file = home.repo / ".shift/state.json"

    def start(self, *words: str) -> subprocess.Popen[str]:
        return self.home.start("-c", RUN, made_up.NAME, *words, command="python", PYTHONPATH=str(TESTS))

    def __call__(self, *words: str) -> Said:
        return said(self.start(*words))

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.state_file.read_text()))


@pytest.fixture
def shift(home: Home) -> Shift:
    return Shift(home)


def says(text: str) -> dict[str, Any]:
    return {"result": {"text": text}}


def test_its_words_are_its_own(shift: Shift) -> None:
    agent = shift.home.rounds([says("Going on.")])
    ended = shift("start", ".", "-n", "late", "-p", "2", "-k", "true", "-k", "test -f nowhere", "-a", agent)
    assert (ended.code, "home (limit): 2 tours" in ended.out) == (45, True), ended
    assert "night-shift go on late" in ended.out
    assert shift("status").out == "late: home (limit), pass 2\n"
    assert shift.state == {"pass": 2, "state": "home (limit)"}
    loop = json.loads((shift.home.folder("late") / "loop.json").read_text())
    assert len(loop["checks"]) == 2
    not_the_agents = {made_up.ROSTER, ".shift/roster.lock", ".shift/.roster.json.tmp", ".shift/roster.json.bad"}
    assert not_the_agents <= {*loop["dialect"]["files"]}
    assert json.loads((shift.home.repo / made_up.ROSTER).read_text())["shifts"]["late"]["state"] == "home (limit)"


def test_without_a_nameless_command_nothing_is_taken_for_a_prompt(shift: Shift) -> None:
    shown = shift()
    assert (shown.code, "Work while others sleep." in shown.out) == (0, True), shown
    for words in (("fix it",), ("go",), ("start",), ("start", ".", "-x")):
        refused = shift(*words)
        assert (refused.code, "Traceback" in refused.err) in ((2, False), (0, False)), refused
    assert not shift.state_file.exists()
    assert shift("--version").out == f"night-shift {__version__}\n"


def test_what_is_secret_in_it_is_neither_in_the_list_of_processes_nor_in_the_environment_of_a_child(
    shift: Shift,
) -> None:
    """R-052: the address of a webhook. Hooks of the user's own get other secrets, but never this one."""
    gate, key = shift.home.gate()
    token = "canary9f8e7d6c5b4a3928"  # noqa: S105 - planted
    agent = shift.home.rounds([{"run": ["sh", "-c", "env > agent.txt"]}, gate, says("One.")])
    shift.home.env |= {"BYDAWN_POST_ROUND": "env > hook.txt", "NIGHT_PAGER": token}
    running = shift.start("start", ".", "-a", agent, "-p", "1", "-k", "env > check.txt", "--pager", token)
    shift.home.await_round(1, "shift")
    lines = shift.home.command_lines()
    assert len([line for line in lines if b"*" * len(token) in line]) >= 2, lines
    assert not any(token.encode() in word for line in lines for word in line)
    key.touch()
    assert said(running).code == 48
    for name in ("agent", "hook", "check"):
        seen = (shift.home.repo / f"{name}.txt").read_text()
        assert ("BYDAWN_COOKIE" in seen, "NIGHT_PAGER" in seen or token in seen) == (True, False), name
        assert ("NIGHT_CREW=late\n" in seen) == (name == "check"), "a dialect may tell its checks more"
        assert ("SHIFT_EVENT=post_round\n" in seen) == (name == "hook"), "and its hooks, by names of its own"


def test_killed_at_work_it_goes_on_although_its_state_file_has_no_id(shift: Shift) -> None:
    gate, key = shift.home.gate()
    done = says("All of it is there.\n<promise>TASK_COMPLETE</promise>")
    agent = shift.home.rounds(
        [says("One.")], [{"say": "Looking."}, {"stderr": "a warning"}, gate, says("Two.")], [done]
    )
    running = shift.start("start", ".", "-a", agent)
    wait_for(lambda: shift.home.has_loop("shift") and len(shift.home.facts("round.started", "shift")) == 2)
    log, on_duty = shift.home.repo / made_up.LOG, shift.home.repo / made_up.ON_DUTY
    wait_for(lambda: {"Looking.", "a warning"} <= {line.partition("] ")[2] for line in log.read_text().splitlines()})
    assert on_duty.read_text() == f"{worker_of(running)}\n"
    reserved = shift.home.folder("shift").parents[2] / "places"
    assert not any(is_held(path) for path in reserved.iterdir()), "its own lock has told it since the run began"
    kill_both(running.pid)
    running.wait(10)
    assert shift.state["state"] == "at work", "which is not asked when it goes on"
    key.touch()
    gone_on = shift("go", "on", "shift")
    assert (gone_on.code, "cannot be written" in gone_on.err) == (50, False), gone_on
    assert shift.state["state"] == "home (unverified)"
    parts = [path.read_text() for path in sorted((shift.home.repo / ".shift").glob("pass_*.log"))]
    assert (shift.home.repo / ".shift/all.log").read_text() == "".join(parts)
    assert [line for line in log.read_text().splitlines() if line.startswith("--")] == [
        "-- shift 1 begins --",
        "-- shift 1 ends (ok) --",
        "-- shift 2 begins --",
        "-- shift 2 ends (interrupted) --",
        "-- shift 3 begins --",
        "-- shift 3 ends (ok) --",
    ]
    assert not on_duty.exists()
    prompts = [(shift.home.folder("shift") / f"rounds/000{number}/prompt.md").read_text() for number in (1, 2, 3)]
    goal = "\n\n## Goal\n\nDo what is left.\n"
    assert prompts[:2] == [f"Tour 1.{goal}", f"Tour 2.{goal}"]
    assert prompts[2].startswith("Tour 3.\nBefore:\nLooking.\n"), "the one that was cut short has used up its number"
    assert prompts[2].endswith(f"\na warning{goal}")  # before it, perhaps, what its child did once it was alone


def test_a_persons_file_in_its_place_is_not_overwritten(shift: Shift) -> None:
    agent = shift.home.rounds([says("Going on.")])
    shift("start", ".", "-a", agent, "-p", "1")
    shift.state_file.write_text("mine")
    refused = shift("go", "on", "shift")
    assert (refused.code, ".shift/state.json is a file of yours" in refused.err) == (2, True), refused
    assert shift.state_file.read_text() == "mine"
