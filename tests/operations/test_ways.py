"""What a page offers about a loop is what the terminal advises: every step becomes a form, a link or a command."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.values import Act, End, Next
from bydawn.operations import ways as module
from bydawn.operations.next_steps import next_steps
from bydawn.operations.tasks import of_loop
from bydawn.operations.ways import Way, ways
from bydawn.store.folder import LoopFolder
from bydawn.store.registry import Left, Standing, standing_of
from core.facts_made import NOON, a_loop, after_all, run_started, stopped
from operations.stories import STORIES, held, home_of, write_loop

ACTS = {"tell", "resume", "approve", "accept", "raise", "skip", "reopen", "pause", "stop"}
LOOKS = {"round", "log", "why", "copy"}


def standing(root: Path, name: str) -> Standing:
    write_loop(root, name)
    with held(root, name):
        found = standing_of(LoopFolder(home_of(root, name) / name))
    assert found
    return found


def offered(standing: Standing, *commands: str) -> list[Way]:
    """What a page makes of these commands."""
    steps = [Next(command=command, why="or so") for command in commands]
    patched = pytest.MonkeyPatch()
    patched.setattr(module, "next_steps", lambda _: steps)
    try:
        return [*ways(standing)]
    finally:
        patched.undo()


def resting(**settings: Any) -> Standing:
    state = after_all(run_started(), stopped(End.BLOCKED))
    return Standing(folder=LoopFolder(Path("/nowhere")), loop=a_loop(**settings), state=state, alive=False, unique=True)


@pytest.mark.parametrize("name", STORIES)
def test_every_step_of_every_state_has_its_place_on_a_page(name: str, tmp_path: Path) -> None:
    found = standing(tmp_path, name)
    offers = ways(found)
    assert {way.verb for way in offers} <= ACTS | LOOKS
    assert sum(way.main for way in offers) <= 1
    assert all(way.text and way.why and way.command for way in offers)
    # The page itself is what `show` prints; only who is to approve something is led to the last round.
    itself = f"bydawn show {name}" if name != "checkpoint" else ""
    shown = [step.command for step in next_steps(found) if step.command != itself]
    assert [*dict.fromkeys(way.command for way in offers)] == shown


@pytest.mark.parametrize(
    ("name", "main"),
    [
        ("blocked", ("tell", "Send and resume")),
        ("question", ("tell", "Send and resume")),
        ("limit", ("raise", "Raise to 21 rounds and go on")),
        ("folder", ("reopen", "Reopen task 1")),
        ("checkpoint", ("approve", "Approve and go on")),
        ("auth", ("resume", "Resume")),
        ("crashed", ("resume", "Resume")),
        ("stopped", ("resume", "Resume")),
    ],
)
def test_what_helps_most_is_the_filled_button(name: str, main: tuple[str, str], tmp_path: Path) -> None:
    [way] = [way for way in ways(standing(tmp_path, name)) if way.main]
    assert (way.verb, way.text) == main


@pytest.mark.parametrize("name", ["running", "pausing", "waiting", "complete", "unverified"])
def test_a_loop_that_needs_nothing_has_no_filled_button(name: str, tmp_path: Path) -> None:
    assert not any(way.main for way in ways(standing(tmp_path, name)))


def test_a_loop_that_runs_can_be_paused_and_watched(tmp_path: Path) -> None:
    assert [(way.verb, way.text) for way in ways(standing(tmp_path, "running"))] == [
        ("log", "Watch the log"),
        ("pause", "Pause after this round"),
    ]


def test_what_a_crash_left_running_is_ended_first(tmp_path: Path) -> None:
    crashed = replace(standing(tmp_path, "crashed"), left=(Left(pid=7, command="sleep 600"),))
    assert [(way.verb, way.main) for way in ways(crashed)] == [("stop", True), ("resume", False)]


def test_a_log_in_is_a_command_to_copy(tmp_path: Path) -> None:
    first = ways(standing(tmp_path, "auth"))[0]
    assert (first.verb, first.command, first.why) == ("copy", "codex login", "log in")


def test_a_note_goes_with_a_resume_only_if_that_needs_no_other_limit() -> None:
    alone = offered(resting(), Act("tell", "night", "…"), Act("resume", "night", rounds="+20"))
    assert [(way.text, way.args) for way in alone] == [
        ("Send", {}),
        ("Raise to 50 rounds and go on", {"rounds": "+20"}),
    ]
    together = offered(resting(), Act("tell", "night", "…"), Act("resume", "night"))
    assert together[0].args == {"resume": "1"}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"rounds": "+20"}, "Raise to 50 rounds and go on"),
        ({"rounds": "40"}, "Raise to 40 rounds and go on"),
        ({"for": "+2h"}, "Raise to 3 h 00 and go on"),
        ({"budget": "+3usd"}, "Raise to $8.00 and go on"),
        ({"budget": "2Mtok"}, "Raise to 2.00 M tokens and go on"),
        ({"rounds": "+20", "budget": "+3usd"}, "Raise to 50 rounds and $8.00 and go on"),
        ({"until": "09:00"}, "Go on until 09:00"),
        ({"rounds": "+20", "until": "09:00"}, "Raise to 50 rounds and go on until 09:00"),
    ],
)
def test_a_button_says_what_a_limit_will_be(flags: dict[str, str], text: str) -> None:
    limits = Limits(rounds=30, seconds=3600.0, usd=5.0, until=NOON + timedelta(hours=1))
    [way] = offered(resting(limits=limits), Act("resume", "night", flags=flags))
    assert (way.verb, way.text) == ("raise", text)


@pytest.mark.parametrize(
    "command",
    [
        Act("resume", "night", latest_wake="09:00"),
        Act("resume", "night", iterations="+50"),
        Act("resume", "night", budget=["+3usd", "+1Mtok"]),
        Act("doctor --repair", "night"),
        Act("tasks edit", "night"),
        Act("events", "night"),
        Act("run", "fix it", k="make test"),
        Act("resume", program="waylon-smithers"),
        "git merge bydawn/night",
    ],
)
def test_what_no_form_can_do_is_copied(command: str) -> None:
    [way] = offered(resting(), command)
    assert (way.verb, way.command) == ("copy", command)


@pytest.mark.parametrize(
    ("command", "verb", "args"),
    [
        (Act("show", "night", round=11), "round", {"round": 11}),
        (Act("logs", "night", C="/w x", round=3), "log", {"round": 3}),
        (Act("resume", "night", C="/w", accept=True, d=True), "accept", {}),
        (Act("resume", "night@shop", d=True), "resume", {}),
        (Act("tasks skip", "night", "4"), "skip", {"task": "4"}),
        (Act("tasks skip", "night", "4", "5"), "skip", {"task": ["4", "5"]}),
        (Act("why", "night"), "why", {}),
    ],
)
def test_an_act_is_a_button_or_a_link(command: str, verb: str, args: dict[str, object]) -> None:
    [way] = offered(resting(), command)
    assert (way.verb, way.args) == (verb, args)


def test_the_page_itself_is_no_step() -> None:
    assert offered(resting(), Act("show", "night")) == []


def test_several_tasks_are_reopened_one_by_one() -> None:
    found = offered(resting(), Act("tasks reopen", "night", "1", "3"))
    assert [(way.text, way.args) for way in found] == [
        ("Reopen task 1", {"task": "1"}),
        ("Reopen task 3", {"task": "3"}),
    ]


def test_reasons_begin_without_the_words_that_join_lines_in_a_terminal() -> None:
    assert offered(resting(), Act("resume", "night"))[0].why == "so"


def test_a_form_means_the_same_task_after_the_list_has_changed(tmp_path: Path) -> None:
    found = standing(tmp_path, "checkpoint")  # in its list one and two are ticked, three is open
    [(_, _, sent)] = module._from(Next(Act("tasks skip", "checkpoint", "3"), "leave it"), found, goes_on=False)
    todo = tmp_path / "work/checkpoint/TODO.md"
    todo.write_text("- [ ] first of all\n" + todo.read_text())
    [meant] = [task for task in of_loop(found).standings.tasks if task.id == sent["task"]]
    assert (meant.number, meant.text) == (4, "three")
