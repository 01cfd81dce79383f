"""A folder of tasks whose agent answers by a schema: its words are claims, and the rest is measured."""

import json
from itertools import count
from typing import Any

import msgspec
import pytest

from bydawn.core.breakers import Limits
from bydawn.core.completion import IDLE
from bydawn.core.facts import ChecksEnded, LoopStopped, RoundEnded, RoundStarted, TaskSettled
from bydawn.core.loop import Sessions, TaskByTask
from bydawn.core.outcome import Outcome
from bydawn.core.values import End, TaskStatus
from engine.fakes import Files
from engine.night import DONE, Night, Play

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


def test_what_is_odd_about_an_answer_is_said_back_even_if_its_task_is_done() -> None:
    night = folder(work("01-round", files_changed="a.py"), work("02-tax"))
    assert night.run().end is End.COMPLETE
    assert "- 'files_changed' is not a list of texts" in night.prompt(2)


def test_an_agent_that_was_not_allowed_something_and_found_another_way_can_still_be_done() -> None:
    denied = msgspec.structs.replace(work("01-round"), outcome=Outcome.DENIED, detail="not allowed: pip: read-only")
    night = folder(denied, work("02-tax"))
    assert night.run().end is End.COMPLETE
    assert [fact.task for fact in night.facts(TaskSettled)] == ["01-round", "02-tax"]
    promised = Night([Play(says=DONE, outcome=Outcome.DENIED)])
    assert promised.run().decided.rule == "agent-denied", "a promise needs more"


# -- done means proven -------------------------------------------------------------------------------------------------


def test_when_all_tasks_are_done_the_checks_run_once_more_on_the_whole() -> None:
    """C-041."""
    night = folder(work("01-round"), work("02-tax"), by_task=TaskByTask())
    assert night.run().end is End.COMPLETE
    assert [(fact.round, fact.final) for fact in night.facts(ChecksEnded)] == [
        (0, False),
        (1, False),
        (2, False),
        (2, True),
    ]


def test_a_whole_that_fails_opens_the_last_task_again_and_the_next_prompt_has_the_failure() -> None:
    """C-041: and the loop goes on with that task."""
    night = folder(work("01-round"), work("02-tax"), work("02-tax", number=2), by_task=TaskByTask())
    seen = count()
    night.checks.rule = lambda files: files.get("02-tax.txt") != "1" or next(seen) < 1  # once green, then red
    assert night.run().end is End.COMPLETE
    settled = [(fact.task, fact.status, fact.by) for fact in night.facts(TaskSettled)]
    assert settled[2:] == [("02-tax", "open", "final-checks"), ("02-tax", "done", "task-done")]
    assert "every task is done, but a check fails: make test" in night.facts(TaskSettled)[2].reason
    assert "FAIL number 2" in night.prompt(3)
    assert "It was done, until the checks failed on the whole." in night.prompt(3)


@pytest.mark.parametrize("changes", [True, False])
def test_a_check_that_is_red_on_the_whole_again_and_again_ends_the_loop(changes: bool) -> None:
    """C-047: neither rounds that change something for nothing nor idle ones go on for ever."""
    plays = (work("02-tax", number=number if changes else 1) for number in count(1))
    night = Night(
        plays,
        files={"tasks/02-tax.md": "# Tax"},
        check=lambda _: True,
        tasks="tasks",
        task_folder=True,
        by_task=TaskByTask(),
        limits=Limits(rounds=0, check_failures=0, same_failure=0, no_task_done=0),
    )
    night.checks.rule = lambda _: not (night.state.tasks and not night.state.tasks.open)
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.BLOCKED, "tasks-aside", 5)


def test_what_the_round_of_another_task_has_done_takes_one_claim_and_no_change_of_its_own() -> None:
    """C-007, C-041: the checks run after it all the same."""
    night = folder(work("01-round"), answer("02-tax"), by_task=TaskByTask())
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 2)
    assert [(fact.task, fact.doubted) for fact in night.facts(TaskSettled)] == [("01-round", False), ("02-tax", True)]
    assert "done without a change of its own: 02-tax" in stopped.evidence
    assert [fact.round for fact in night.facts(ChecksEnded)] == [0, 1, 2, 2]


def test_where_no_round_of_a_run_has_changed_anything_a_task_takes_two_claims_in_a_row() -> None:
    """C-041: what was there before is only as good as the checks that passed on it then."""
    night = folder(*[answer("01-round")] * 2, files={"tasks/01-round.md": "# One"}, by_task=TaskByTask())
    stopped = night.run()
    assert (stopped.end, stopped.reason, night.agent.turns) == (End.UNVERIFIED, IDLE, 2)
    assert "but nothing was changed for it. Look again" in night.prompt(2)
    later = folder(work("01-round"), *[answer("02-tax")] * 2, by_task=TaskByTask())
    later.run(rounds=1)
    assert later.run(rounds=1).end is End.LIMIT, "in this run, no round has"
    assert later.run().end is End.COMPLETE


@pytest.mark.parametrize("done", [[], ["01-round"]])
def test_an_agent_that_only_says_that_a_task_is_done_gets_nowhere_while_a_check_is_red(done: list[str]) -> None:
    """C-040, C-041: nor by the work that it did for another task."""
    claims = [answer("02-tax" if done else "01-round")] * 20
    night = folder(*map(work, done), *claims, by_task=TaskByTask())
    night.checks.rule = lambda _: night.agent.turns <= len(done)
    assert night.run().end is End.BLOCKED
    assert [fact.task for fact in night.facts(TaskSettled) if fact.status == "done"] == done


@pytest.mark.parametrize(
    ("proven", "red", "aside"), [(True, False, []), (True, True, ["01-round"]), (False, False, ["01-round"])]
)
def test_where_each_task_is_proven_an_idle_round_fails_its_task_only_if_a_check_does(
    proven: bool, red: bool, aside: list[str]
) -> None:
    """C-047, C-030: it counts for the breaker of that name alone."""
    limits = Limits(task_failures=2, no_progress=3, same_failure=0, check_failures=0)
    night = folder(*[answer("01-round", "continue")] * 9, by_task=TaskByTask() if proven else None, limits=limits)
    night.checks.rule = lambda _: not red
    stopped = night.run(rounds=3)
    assert [fact.task for fact in night.facts(TaskSettled)] == aside
    assert (stopped.decided.rule == "no-progress") is not bool(aside)


def test_a_task_that_always_fails_is_set_aside_even_if_it_is_the_only_one_where_each_is_proven() -> None:
    """C-047, X-32."""
    limits = Limits(task_failures=3, check_failures=0, same_failure=0)
    settings: Any = {"files": {"tasks/01-round.md": "# One"}, "by_task": TaskByTask(), "limits": limits}
    night = folder(*(work("01-round", number=number) for number in range(9)), **settings)
    night.checks.rule = lambda files: "01-round.txt" not in files
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.BLOCKED, 3)
    assert [(fact.status, fact.by) for fact in night.facts(TaskSettled)] == [("aside", "task-failures")]


def test_checks_that_failed_before_any_work_are_no_excuse_where_each_task_is_proven() -> None:
    """C-030, C-043, C-047."""
    works: Any = [work("01-round", "continue", number) for number in range(9)]
    for limits in (Limits(check_failures=2), Limits(task_failures=2, check_failures=0, same_failure=0)):
        night = folder(*works, by_task=TaskByTask(), limits=limits)
        night.checks.rule = lambda _: False
        night.run(rounds=3)
        rules = {fact.by for fact in night.facts(TaskSettled)} | {
            fact.decided.rule for fact in night.facts(LoopStopped)
        }
        assert (night.state.baseline, {"check-failures", "task-failures"} & rules != set()) == ((), True), rules
        natively = folder(*works, limits=limits)
        natively.checks.rule = lambda _: False
        assert natively.run(rounds=3).decided.rule == "rounds-this-run"


def test_a_blocked_task_is_set_aside_even_if_its_round_changed_something() -> None:
    night = folder(work("01-round", "blocked", blockers=["Which way?"]), work("02-tax"))
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "Which way?")
    assert [(fact.task, fact.status) for fact in night.facts(TaskSettled)] == [
        ("01-round", "aside"),
        ("02-tax", "done"),
    ]


def test_tasks_that_a_person_calls_done_are_proven_as_a_whole_too() -> None:
    """C-041: nothing was done here yet, and the checks fail."""
    night = folder(work("02-tax"), by_task=TaskByTask())
    night.checks.rule = lambda files: "02-tax.txt" in files
    for task in ("01-round", "02-tax"):
        night.ledger.append(TaskSettled(task=task, text=task, status=TaskStatus.DONE, by="ada"))
    assert night.run().end is End.COMPLETE
    later = [(fact.task, fact.status) for fact in night.facts(TaskSettled)[2:]]
    assert later == [("02-tax", "open"), ("02-tax", "done")]
    assert [fact.task_id for fact in night.facts(RoundStarted)] == ["02-tax"]


# -- conversations -----------------------------------------------------------------------------------------------------


def test_a_task_that_is_taken_up_again_goes_on_in_its_own_conversation() -> None:
    """X-02."""
    asks = Play(says=answer("01-round", "blocked", blockers=["Which way?"]), session="one")
    again = Play(says=answer("01-round"), writes={"a": "1"}, session="one")
    night = folder(
        asks, Play(says=answer("02-tax"), writes={"b": "1"}, session="two"), again, sessions=Sessions.PER_TASK
    )
    assert night.run().end is End.BLOCKED
    assert night.run().end is End.COMPLETE
    assert night.agent.sessions == [None, None, "one"]
    assert "Go on. The goal and the rules above still stand." in night.prompt(3), "it knows them"
    assert [each.id for each in night.state.sessions] == ["two", "one"]


def test_a_lost_conversation_is_tried_once_more_in_a_new_one_and_the_ledger_says_why() -> None:
    """X-02: `resume_fallback_used`."""
    lost = Play(outcome=Outcome.SESSION_LOST, detail="no rollout found")
    plays = (work("01-round", "continue"), lost, work("01-round", number=2), work("02-tax"))
    night = folder(*plays, sessions=Sessions.PER_TASK)
    assert night.run().end is End.COMPLETE
    assert night.agent.sessions == [None, "demo's", None, None]
    assert [fact.fallback for fact in night.facts(RoundStarted)] == ["", "", "no rollout found", ""]
    assert night.state.failures_in_a_row == 0


def test_a_lost_conversation_is_a_failure_where_no_other_may_begin() -> None:
    lost = Play(outcome=Outcome.SESSION_LOST, detail="no rollout found")
    limits = Limits(agent_failures=3)
    settings: Any = {"sessions": Sessions.PER_TASK, "by_task": TaskByTask(fresh_if_lost=False), "limits": limits}
    night = folder(work("01-round", "continue"), lost, lost, lost, **settings)
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.FAILED, "agent-failures")
    assert night.agent.sessions[1:] == ["demo's"] * 3
    assert night.facts(RoundEnded)[-1].detail == "no rollout found"


# -- a finished loop that goes on --------------------------------------------------------------------------------------


def test_a_finished_loop_that_is_run_again_proves_the_whole_and_does_what_is_new() -> None:
    night = folder(work("01-round"), work("02-tax"), work("03-new"), by_task=TaskByTask())
    assert night.run().end is End.COMPLETE
    assert night.run().end is End.COMPLETE
    assert (night.agent.turns, sum(fact.final for fact in night.facts(ChecksEnded))) == (2, 2), "nothing was new"
    night.workspace.edit({"tasks/03-new.md": "# Another"})
    assert night.run().end is End.COMPLETE
    assert night.agent.turns == 3
