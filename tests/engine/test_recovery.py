"""Power cuts: at any fact, with or without what was not synced yet, the next run ends as an undisturbed one would."""

from collections.abc import Iterator

import pytest

from bydawn.core.breakers import Limits
from bydawn.core.facts import RoundEnded, RoundStarted
from bydawn.core.loop import Promise
from bydawn.core.outcome import Outcome
from bydawn.core.requests import AskNote
from bydawn.core.rules import Rule
from bydawn.core.values import End, Usage
from engine.fakes import Files, PowerCut
from engine.night import DONE, TODO, Night, Play, ScriptedAgent, blip, todo

TASKS = ("one", "two", "three")


def task_after_task(night: Night) -> Iterator[Play]:
    """Does the first open task, wrongly the first time; says "done" too early; has a blip now and then."""
    while True:
        listed, files = str(night.workspace.files[TODO]), night.workspace.files
        task = next((task for task in TASKS if f"- [ ] {task}" in listed), None)
        if night.agent.turns == 2:
            yield blip()
        elif task is None:
            yield Play(says=DONE, writes={} if files["two.py"] == "right" else {"two.py": "right"})
        else:
            ticked = listed.replace(f"- [ ] {task}", f"- [x] {task}")
            yield Play(says=DONE, writes={TODO: ticked, f"{task}.py": "wrong" if task == "two" else "right"})


def green(files: Files) -> bool:
    return "wrong" not in files.values()


def a_night() -> Night:
    night = Night(files={TODO: todo(*TASKS)}, check=green, tasks=TODO, promise=Promise())
    night.agent = ScriptedAgent(task_after_task(night))
    return night


def undisturbed() -> Night:
    night = a_night()
    assert night.run().end is End.COMPLETE
    return night


FACTS = len(undisturbed().ledger.records)


@pytest.mark.parametrize("forgets", [False, True], ids=["kept", "unsynced lost"])
@pytest.mark.parametrize("place", range(1, FACTS))
def test_a_power_cut_after_any_fact_changes_nothing_about_the_end(place: int, forgets: bool) -> None:
    night, other = a_night(), undisturbed()
    night.ledger.cut_after, night.ledger.forgets = place, forgets
    night.run_until_crash()
    assert night.run().end is End.COMPLETE
    assert night.workspace.files == other.workspace.files
    assert night.state.tasks == other.state.tasks
    assert [verdict.passed for verdict in night.state.verdicts] == [True]
    no_number_is_used_twice(night)


def no_number_is_used_twice(night: Night) -> None:
    """Not in the ledger, and not for a process that the ledger might have forgotten."""
    numbers = [fact.round for fact in night.facts(RoundStarted)]
    assert numbers == sorted(set(numbers))
    cookies = [job.env["BYDAWN_COOKIE"] for job in night.processes.jobs]
    assert len(set(cookies)) == len(cookies)
    ran = [int(job.env["BYDAWN_ROUND"]) for job in night.processes.jobs]
    assert ran == sorted(set(ran) & set(numbers))  # an agent whose start is not on record must never have existed


@pytest.mark.parametrize("every", range(2, 8))
def test_many_power_cuts_in_a_row_change_nothing_about_the_end(every: int) -> None:
    night, other = a_night(), undisturbed()
    night.ledger.forgets = True
    for _ in range(200):
        night.ledger.cut_after = every
        try:
            if night.run().end is not End.FAILED:
                break  # the other ones are ten deaths in a row, after which a person has to look
        except PowerCut:
            continue
    else:
        night.ledger.cut_after = None  # cut at every second fact nothing can ever be finished
        night.run()
    assert night.workspace.files == other.workspace.files
    assert night.state.stopped is not None
    assert night.state.stopped.end is End.COMPLETE
    no_number_is_used_twice(night)


def test_a_process_that_keeps_dying_takes_eleven_turns_and_no_more() -> None:
    """Whatever its agent changes in them: nothing of it is ever counted or checked."""
    dying = [Play(writes={"a": str(turn)}, meanwhile=lambda: night.crash()) for turn in range(12)]
    night = Night([*dying, Play(says=DONE)], limits=Limits(rounds=3))
    for _ in range(11):
        night.run_until_crash()
    ended = night.run()
    assert (ended.end, ended.decided.rule, night.agent.turns) == (End.FAILED, Rule.CUT_SHORT, 11)
    assert ended.evidence[-1] == "round 11: its process was killed"
    night.run_until_crash()  # a person has looked, and begins anew
    assert night.run().end is End.UNVERIFIED


def test_trouble_that_is_paid_for_ends_after_five_turns_and_an_outage_is_waited_out() -> None:
    paid = Night([Play(outcome=Outcome.TRANSIENT, detail="502", spends=Usage(tokens_in=160_000))] * 9)
    assert (paid.run().decided.rule, paid.agent.turns) == (Rule.PAID_TROUBLE, 5)
    outage = Night([Play(outcome=Outcome.TRANSIENT, detail="502", seconds=1.0)] * 200)
    began = outage.clock.now().elapsed
    assert outage.run().decided.rule == Rule.OUTAGE
    assert 6 * 3600 <= outage.clock.now().elapsed - began < 6.5 * 3600
    over = Night([*([Play(outcome=Outcome.TRANSIENT, detail="502", seconds=1.0)] * 60), DONE])
    assert over.run().end is End.UNVERIFIED


def test_a_round_that_was_cut_short_is_settled_and_told() -> None:
    night = Night([Play(writes={"a": "half"}, meanwhile=lambda: night.crash()), Play(says=DONE)])
    night.run_until_crash()
    assert night.run().end is End.UNVERIFIED
    cut_short = night.facts(RoundEnded)[0]
    assert (cut_short.outcome, cut_short.round, cut_short.found.progress) == (Outcome.INTERRUPTED, 1, True)
    assert cut_short.found.tree != night.facts(RoundStarted)[0].tree  # what it changed stays, and is on record
    assert cut_short.found.changes.paths == ("a",)
    assert "The last round was interrupted" in night.prompt(2)
    assert night.state.rounds == 1


def test_what_was_cut_short_is_no_progress_of_the_round_that_follows() -> None:
    night = Night([Play(writes={"a": "half"}, meanwhile=lambda: night.crash()), "looked at it", DONE])
    night.run_until_crash()
    night.run()
    assert [fact.found.progress for fact in night.facts(RoundEnded)][:2] == [True, False]


def test_checks_that_were_due_when_the_power_went_are_run_first() -> None:
    night = Night([Play(writes={"a": "1"})], check=lambda _: True)
    night.checks.meanwhile = lambda: night.crash() if night.checks.runs == 1 else None
    night.run_until_crash()
    assert night.run().end is End.COMPLETE
    assert (night.agent.turns, night.verdicts) == (1, [True])


def test_a_note_in_a_round_that_was_cut_short_is_told_again() -> None:
    night = Night([Play(meanwhile=lambda: night.crash()), "heard it", DONE])
    night.ask(AskNote(id="n-1", run="run-1", by="ada", text="use tabs"))
    night.run_until_crash()
    night.run()
    assert ["use tabs" in night.prompt(round_) for round_ in (1, 2, 3)] == [True, True, False]


def test_a_crash_after_the_last_check_costs_no_round_and_no_check() -> None:
    night = Night([Play(writes={"a": "1"})], check=lambda _: True)
    night.ledger.cut_after = 4  # run, round started and ended, checks ended
    night.run_until_crash()
    assert night.run().end is End.COMPLETE
    assert (night.agent.turns, night.checks.runs) == (1, 1)


def test_a_tree_that_was_edited_after_the_crash_is_proven_again() -> None:
    night = Night([Play(writes={"a": "1"}), Play(writes={"a": "right"})], check=green)
    night.ledger.cut_after = 4
    night.run_until_crash()
    night.workspace.edit({"a": "wrong"})
    assert night.run().end is End.COMPLETE
    assert night.workspace.files["a"] == "right"


def test_three_crashes_of_the_worker_are_no_failures_of_the_agent() -> None:
    night = Night([*[Play(meanwhile=lambda: night.crash()) for _ in range(5)], Play(says=DONE)])
    for _ in range(5):
        night.run_until_crash()
    assert night.run().end is End.UNVERIFIED
    assert (night.state.round, night.state.rounds, night.state.failures_in_a_row) == (6, 1, 0)
