"""A task list that a crash damaged comes back; one that a round emptied in good order does not."""

import pytest

from bydawn.core.facts import RoundEnded, RoundStarted, RunStarted
from bydawn.core.outcome import Outcome
from bydawn.core.values import End
from engine.fakes import Files
from engine.night import TODO, Night, Play, todo

DONE = Play(writes={TODO: todo("x one", "x two"), "a.py": "1"})
DAMAGE: dict[str, str | None] = {"gone": None, "empty": "", "full of zeros": "\0" * 40, "not text": "- [ ] one\udcff"}


def a_night(*plays: Play) -> Night:
    return Night(plays, files={TODO: todo("one", "two")}, tasks=TODO)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.HUNG, Outcome.LOST_OUTPUT, Outcome.TRANSIENT])
def test_a_list_that_a_failed_round_damaged_is_put_back_and_it_is_said(damage: str, outcome: Outcome) -> None:
    night = a_night(Play(outcome=outcome, writes={TODO: DAMAGE[damage]}), DONE)
    assert night.run().end is End.UNVERIFIED
    first = night.facts(RoundEnded)[0]
    assert first.detail.endswith(f"TODO.md was {'gone' if damage == 'gone' else 'damaged'} and was put back")
    assert night.files.texts[1, "damaged.md"] == (DAMAGE[damage] or "")
    assert not first.found.progress, "neither the damage nor its repair is work"


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("seconds", [29.0, 59.0])
def test_a_list_that_is_damaged_when_bydawn_is_killed_is_put_back_at_the_next_start(
    damage: str, seconds: float
) -> None:
    def power_cut() -> None:
        night.workspace.edit({TODO: DAMAGE[damage]})
        night.crash()

    night = a_night(Play(), DONE)
    night.clock.at(seconds, power_cut)
    night.run_until_crash()
    assert night.run().end is End.UNVERIFIED
    assert "was put back" in night.facts(RoundEnded)[0].detail


def test_what_a_power_cut_after_a_round_damaged_is_put_back_as_that_round_left_it() -> None:
    night = a_night(Play(writes={TODO: todo("x one", "two"), "b.py": "1"}), DONE)
    night.ledger.cut_after = 3  # the end of the round
    night.run_until_crash()
    night.workspace.edit({TODO: ""})
    assert night.run().end is End.UNVERIFIED
    assert night.facts(RunStarted)[-1].mended.startswith("TODO.md was damaged")
    assert [fact.task for fact in night.facts(RoundStarted)] == ["one", "two"], "what that round ticked stays ticked"


def test_what_was_ticked_or_added_in_the_round_itself_is_not_lost() -> None:
    seen = todo("x one", "two", "three")
    first = Play(writes={TODO: seen}, writes_last={TODO: ""}, outcome=Outcome.CRASHED)
    rest = Play(says="## Already done\n- one", writes={TODO: todo("x one", "x two", "x three"), "a.py": "1"})
    night = a_night(first, rest)
    assert night.run().end is End.UNVERIFIED
    tasks = night.facts(RoundEnded)[0].found.tasks
    assert tasks is not None
    assert (tasks.done, tasks.open) == (1, 2)


def test_a_version_of_the_round_that_lost_tasks_is_not_the_one_that_is_put_back() -> None:
    first = Play(writes={TODO: todo("x one")}, writes_last={TODO: ""}, outcome=Outcome.CRASHED)
    night = a_night(first, DONE)
    assert night.run().end is End.UNVERIFIED
    assert night.facts(RoundEnded)[0].found.tasks == night.facts(RunStarted)[0].found.tasks


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.TURN_LIMIT])
@pytest.mark.parametrize("damage", ["gone", "empty"])
def test_a_round_that_came_to_its_own_end_and_emptied_the_list_blocks(damage: str, outcome: Outcome) -> None:
    night = a_night(Play(outcome=outcome, writes={TODO: DAMAGE[damage]}), DONE)
    assert night.run().decided.rule == "task-file"


def test_a_list_that_is_only_shorter_after_a_crash_blocks() -> None:
    """Half of it may be what the agent wanted."""
    night = a_night(Play(outcome=Outcome.CRASHED, writes={TODO: todo("x one")}), DONE)
    assert night.run().decided.rule == "task-file"


def test_a_task_folder_that_a_crash_damaged_blocks() -> None:
    files: Files = {"t/1.md": "# One\n", "t/2.md": "# Two\n"}
    night = Night([Play(outcome=Outcome.CRASHED, writes={"t/2.md": None})], files=files, tasks="t", task_folder=True)
    assert night.run().decided.rule == "task-file"
