"""A folder of tasks whose agent answers by a schema: its words are claims, and the rest is measured."""

import json
from typing import Any

from bydawn.core.facts import RoundEnded, TaskSettled
from bydawn.core.values import End
from engine.fakes import Files
from engine.night import Night, Play

TASKS: Files = {"tasks/01-round.md": "# Round half up\n", "tasks/02-tax.md": "# Add the tax\n"}


def answer(task: str, status: str = "complete", **more: Any) -> str:
    said = {
        "status": status,
        "summary": f"{task} it is",
        "task_id": task,
        "files_changed": ["x"],
        "needs_resume": False,
    }
    return json.dumps(said | {"verification_expected": [], "blockers": [], "next_action": ""} | more)


def work(task: str, status: str = "complete", number: int = 1, **more: Any) -> Play:
    """A round that changes something for its task."""
    return Play(says=answer(task, status, **more), writes={f"{task}.txt": f"{number}"})


def folder(*plays: Play | str, files: Files | None = None, **settings: Any) -> Night:
    night = Night(plays, files=files or {**TASKS}, check=lambda _: True, tasks="tasks", task_folder=True, **settings)
    night.agent.answers = True
    return night


def test_an_answer_is_the_claim_of_its_round_and_its_summary_what_people_read() -> None:
    """C-068."""
    night = folder(work("01-round"), work("02-tax", "continue"), work("02-tax", number=2))
    assert night.run().end is End.COMPLETE
    assert [fact.said for fact in night.facts(RoundEnded)] == ["01-round it is", "02-tax it is", "02-tax it is"]
    assert [fact.task for fact in night.facts(TaskSettled)] == ["01-round", "02-tax"]
    assert night.state.summaries == ("01-round it is", "02-tax it is", "02-tax it is")
    assert "the schema you were given" in night.prompt(1)


def test_an_answer_about_another_task_is_no_claim_and_is_said_back() -> None:
    night = folder(work("02-tax"), work("01-round"), work("02-tax", number=2))
    night.run()
    assert [fact.task for fact in night.facts(TaskSettled)] == ["01-round", "02-tax"]
    assert "'task_id' is 02-tax, but the task was 01-round" in night.prompt(2)


def test_an_answer_without_a_status_costs_nothing_and_claims_nothing() -> None:
    night = folder(Play(says='{"summary": "well", "task_id": "01-round"}', writes={"a": "1"}), work("01-round"))
    night.run(rounds=1)
    assert night.facts(TaskSettled) == []
    assert (night.state.failures_in_a_row, night.state.rounds_without_progress) == (0, 0)
    night.run(rounds=1)
    assert "- 'status' is missing" in night.prompt(2)
