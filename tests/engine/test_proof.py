"""Agents that lie, agents that forget, and checks that cannot make up their mind: each ends right."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.facts import BOXED, ChecksEnded, RoundEnded, RoundsBefore, RoundStarted, TamperingAccepted, TaskSettled
from bydawn.core.loop import BoxMode, Checkpoint, CheckWhere, OnTamper, Promise, Sessions, Ticks, WitnessMode
from bydawn.core.requests import AskStop
from bydawn.core.values import End, TaskStatus
from engine.fakes import Files
from engine.night import DONE, TODO, Night, Play, busy, todo

BOTH = todo("x one", "x two")


def is_right(files: Files) -> bool:
    return files.get("app.py") == "right"


# -- the baseline --------------------------------------------------------------------------------------------------


def test_what_was_red_before_is_known_and_said() -> None:
    night = Night([Play(writes={"app.py": "right"})], check=is_right)
    assert night.run().end is End.COMPLETE
    [before, after] = night.facts(ChecksEnded)
    assert (before.round, before.passed, after.passed) == (0, False, True)
    assert "FAIL number 0" in night.prompt(1)


def test_red_before_and_red_after_is_nobodys_fault_and_not_complete_either() -> None:
    night = Night(busy("done " + DONE), check=is_right, limits=Limits(rounds=8, check_failures=3), promise=Promise())
    stopped = night.run()
    assert stopped.decided.rule == "rounds", "the breaker of red rounds did not blame them"


def test_what_a_round_broke_is_blamed_on_the_rounds() -> None:
    plays = [Play(writes={"app.py": f"wrong {turn}"}) for turn in range(9)]
    night = Night(plays, files={"app.py": "right"}, check=is_right, limits=Limits(check_failures=3))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.BLOCKED, "check-failures", 3)


def test_a_check_that_was_green_once_is_excused_no_more() -> None:
    plays = [Play(writes={"app.py": text}) for text in ("right", "worse", "bad", "awful", "x")]
    night = Night(plays, check=is_right, promise=Promise(), limits=Limits(check_failures=3))
    assert night.run().decided.rule == "check-failures"
    assert night.agent.turns == 4


def test_the_baseline_is_taken_once() -> None:
    night = Night(busy(), check=is_right)
    for _ in range(3):
        night.run(once=True)
    assert [fact.round for fact in night.facts(ChecksEnded)] == [0, 1, 2, 3]


# -- a box ---------------------------------------------------------------------------------------------------------


def boxed(night: Night) -> Night:
    night.box = BOXED
    return night


def test_a_check_that_only_fails_in_the_box_runs_outside_from_then_on() -> None:
    night = boxed(Night([Play(writes={"app.py": "x"}), Play(writes={"app.py": "y"})], check=lambda _: True))
    night.checks.in_box = lambda _: False
    night.loop = replace(night.loop, promise=Promise(), promise_required=True)
    night.run(once=True)
    night.box = ""  # whatever the next run finds
    night.run(once=True)
    assert [[(each.passed, each.outside) for each in fact.verdicts] for fact in night.facts(ChecksEnded)] == [
        *([(True, True)],) * 3
    ]
    assert night.checks.places == ["", "outside", "", "outside", "outside"]


def test_a_check_that_fails_everywhere_stays_in_the_box_and_runs_no_more_often_than_without_one() -> None:
    night = boxed(Night([Play(writes={"app.py": "right"})], check=is_right))
    assert night.run().end is End.COMPLETE
    assert night.checks.places == ["", "outside", ""]
    assert not any(verdict.outside for fact in night.facts(ChecksEnded) for verdict in fact.verdicts)


def test_what_an_agent_has_written_never_runs_outside_the_box() -> None:
    """The baseline is the only time at which nothing of the agent's exists."""
    night = boxed(Night(busy(), check=lambda _: True, limits=Limits(rounds=3)))
    night.checks.in_box = lambda files: "log" not in str(files)
    night.ledger.append(RoundsBefore(rounds=2))
    night.run()
    assert {*night.checks.places} == {""}


def test_with_box_on_a_loop_does_not_start_if_the_box_is_in_the_way() -> None:
    night = boxed(Night(busy(), check=lambda _: True, box=BoxMode.ON))
    night.checks.in_box = lambda _: False
    stopped = night.run()
    assert (stopped.end, stopped.is_refusal, night.agent.turns) == (End.STOPPED, True, 0)
    assert stopped.reason == "`make test` does not work in the box (--box on); use --box auto"


def test_in_a_clean_checkout_a_check_that_only_passes_outside_the_box_has_found_the_workspace() -> None:
    night = boxed(Night(busy(), check=lambda _: True, check_where=CheckWhere.CLEAN, limits=Limits(rounds=2)))
    night.checks.in_box = lambda _: False
    assert night.run().end is End.LIMIT
    assert {*night.checks.places} == {""}
    assert not any(fact.passed for fact in night.facts(ChecksEnded))


def test_one_that_needs_a_folder_for_a_clean_checkout_is_refused_before_anything_is_paid_for() -> None:
    night = boxed(Night(busy(), check=lambda _: True, check_where=CheckWhere.CLEAN))
    night.checks.in_box, night.checks.needs = (lambda _: False), "~/.cache/go-build"
    stopped = night.run()
    assert (stopped.end, stopped.is_refusal, night.agent.turns) == (End.STOPPED, True, 0)
    told = "the box does not let `make test` write to ~/.cache/go-build (--check-where clean)"
    assert stopped.reason == f"{told}; add --box-write ~/.cache/go-build, or use --box off"


def test_a_stop_while_the_box_is_examined_leaves_no_verdict() -> None:
    night = boxed(Night(busy(), check=lambda _: True))
    night.checks.in_box = lambda _: False
    night.checks.meanwhile = lambda: night.ask(AskStop(id="s", run="run-1", by="ada"))
    assert night.run().end is End.STOPPED
    assert night.facts(ChecksEnded) == []


# -- the same failure again ----------------------------------------------------------------------------------------


def test_the_very_same_failure_again_and_again_blocks_although_files_change() -> None:
    night = Night(busy(), check=lambda files: "work.txt" not in files)
    night.checks.fingerprint = lambda _: "f-1"
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.BLOCKED, "same-failure", 5)
    assert night.run().decided.rule == "same-failure"
    assert night.agent.turns == 10, "who resumes gives it another five"


def test_a_failure_from_before_the_first_round_may_take_longer() -> None:
    night = Night(busy(), check=is_right)
    night.checks.fingerprint = lambda _: "f-1"
    assert (night.run().decided.rule, night.agent.turns) == ("same-failure", 15)


def test_a_different_failure_each_round_does_not_block() -> None:
    night = Night(busy(), check=is_right, limits=Limits(rounds=9))
    assert night.run().decided.rule == "rounds"


def test_a_task_that_was_closed_meanwhile_is_getting_on() -> None:
    plays = [Play(writes={TODO: todo(*["x a"] * turn, *["a"] * (9 - turn)), "w": str(turn)}) for turn in range(1, 9)]
    night = Night(plays, files={TODO: todo(*["a"] * 9)}, tasks=TODO, check=is_right, limits=Limits(rounds=8))
    night.checks.fingerprint = lambda _: "f-1"
    assert night.run().decided.rule in ("rounds", "same-failure")


# -- flaky ---------------------------------------------------------------------------------------------------------


def test_a_check_that_fails_and_passes_on_the_same_tree_completes_nothing() -> None:
    colours = iter([True, *[False, True] * 40])  # green before, then red and green in turn
    night = Night([Play(writes={"a": "1"}), *["looked"] * 9], check=lambda _: next(colours))
    stopped = night.run()
    assert stopped.end is End.BLOCKED
    verdicts = [fact.verdicts[0] for fact in night.facts(ChecksEnded)][1:]
    assert all(verdict.flaky and not verdict.passed for verdict in verdicts[:1])
    assert not any(verdict.passed for verdict in verdicts)
    assert "flaky" in " ".join(stopped.evidence)


def test_a_tree_that_was_seen_in_both_colours_is_not_believed_when_it_is_green_twice() -> None:
    colours = iter([True, False, True, True, True, True])
    night = Night([Play(writes={"a": "1"}), "looked"], check=lambda _: next(colours), limits=Limits(rounds=2))
    assert night.run().end is End.LIMIT


def test_a_changed_tree_gets_a_new_chance() -> None:
    colours = iter([True, False, True, True, True, True])
    plays = [Play(writes={"a": "1"}), Play(writes={"a": "2"})]
    night = Night(plays, check=lambda _: next(colours), witness=WitnessMode.OFF)
    assert night.run().end is End.COMPLETE


def test_a_check_that_fails_twice_is_not_run_a_third_time() -> None:
    night = Night(
        busy(), files={"app.py": "right"}, check=lambda files: "work.txt" not in files, limits=Limits(rounds=3)
    )
    night.run()
    assert night.checks.log == [(0, False), (1, False), (1, True), (2, False), (3, False)]


# -- boxes ---------------------------------------------------------------------------------------------------------


ALREADY = "I have looked.\n\n## Already done\n- one\n- two: see lib.py"


@pytest.mark.parametrize("check", [None, lambda _: True])
def test_boxes_that_are_ticked_without_work_need_a_second_word(check: Callable[[Files], bool] | None) -> None:
    night = Night(
        [Play(writes={TODO: BOTH}), "yes, both are there", ALREADY],
        files={TODO: todo("one", "two")},
        tasks=TODO,
        check=check,
    )
    stopped = night.run()
    first, *others = night.facts(RoundEnded)
    assert (first.found.doubted, first.found.progress) == (("one", "two"), False)
    assert (len(others), stopped.end) == (2, End.UNVERIFIED), (
        "an idle round confirms nothing, nor do checks that knew it"
    )
    assert all("ticked without any other change" in night.prompt(number) for number in (2, 3))
    assert "ticked without any other change: one, two" in stopped.evidence


def test_a_round_with_nothing_else_to_do_confirms_boxes_by_working() -> None:
    plays = [Play(writes={TODO: BOTH}), Play(writes={"a": "1"})]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO)
    assert (night.run().end, night.agent.turns) == (End.UNVERIFIED, 2)


def test_boxes_that_are_ticked_without_work_count_at_once_if_a_person_wants_that() -> None:
    plays = [Play(writes={TODO: todo("x one", "two", "three")}), Play(writes={TODO: todo("x one", "x two", "three")})]
    last = Play(writes={TODO: todo("x one", "x two", "x three"), "a": "1"})
    settings: Any = {"files": {TODO: todo("one", "two", "three")}, "tasks": TODO, "limits": Limits(no_progress=2)}
    night = Night([*plays, last], ticks=Ticks.COUNT, **settings)
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.UNVERIFIED, 3), "fewer open boxes is progress"
    assert "ticked without any other change: one, two" in stopped.evidence
    assert not [number for number in (1, 2, 3) if "ticked without any other change" in night.prompt(number)]
    assert Night([*plays, last], **settings).run().decided.rule == "no-progress"


def test_a_box_that_was_added_to_be_ticked_is_no_progress_even_where_ticks_count() -> None:
    plays = (Play(writes={TODO: todo("one", *(f"x new {number}" for number in range(turn)))}) for turn in count(1))
    night = Night(plays, files={TODO: todo("one")}, tasks=TODO, ticks=Ticks.COUNT)
    assert night.run().decided.rule == "no-progress"


def test_a_box_that_is_ticked_again_with_work_is_no_longer_listed_where_ticks_count() -> None:
    plays = [
        Play(writes={TODO: todo("x one", "two")}),
        Play(writes={TODO: todo("one", "two")}),
        Play(writes={TODO: BOTH, "a": "1"}),
    ]
    stopped = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO, ticks=Ticks.COUNT).run()
    assert stopped.end is End.UNVERIFIED
    assert not [row for row in stopped.evidence if "ticked without" in row]


def test_checks_that_could_know_are_believed() -> None:
    """They turned green in the very round that ticked: it changed something that git ignores."""
    installed = [False]
    tick = Play(writes={TODO: BOTH}, meanwhile=lambda: installed.append(True))
    night = Night([tick], files={TODO: todo("one", "two")}, tasks=TODO, check=lambda _: installed[-1])
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.COMPLETE, 1)
    assert "ticked without any other change: one, two" in stopped.evidence


def test_boxes_that_are_unticked_again_are_open_again() -> None:
    again = Play(writes={TODO: BOTH, "b": "1"}, says="## Already done\n- one")
    plays = [Play(writes={TODO: BOTH}), Play(writes={TODO: todo("x one", "two")}), again]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO)
    assert night.run().end is End.UNVERIFIED
    assert [fact.found.tasks.open for fact in night.facts(RoundEnded)] == [0, 1, 0]


def test_a_box_that_got_a_note_before_it_was_ticked_is_the_same_box() -> None:
    plays = [
        Play(writes={TODO: todo("one (wip)", "two"), "a": "1"}),
        Play(writes={TODO: todo("x one (wip)", "two")}),
        Play(writes={TODO: todo("x one (wip)", "x two"), "b": "1"}),
    ]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO)
    assert night.run().end is End.UNVERIFIED
    assert [len(fact.found.closed) for fact in night.facts(RoundEnded)] == [0, 1, 1]
    assert not any(fact.found.doubted for fact in night.facts(RoundEnded)), "the first round has worked on it"


def test_a_crash_is_no_way_to_tick_them_unseen() -> None:
    plays: list[Play | str] = [Play(writes={TODO: BOTH}, meanwhile=lambda: night.crash()), ALREADY]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO)
    night.run_until_crash()
    assert night.run().end is End.UNVERIFIED
    assert [len(fact.found.doubted) for fact in night.facts(RoundEnded)] == [2, 0]


def test_the_list_itself_is_no_progress() -> None:
    plays = (Play(writes={TODO: f"{todo('one')}\nnote {turn}"}) for turn in count(1))
    night = Night(plays, files={TODO: todo("one")}, tasks=TODO)
    assert night.run().decided.rule == "no-progress"
    assert night.agent.turns == 5


def test_notes_of_the_agent_are_no_progress() -> None:
    plays = (Play(writes={"NOTES.md": f"note {turn}"}) for turn in count(1))
    night = Night(plays, progress="NOTES.md")
    assert night.run().decided.rule == "no-progress"
    assert night.agent.turns == 5


# -- one bad task --------------------------------------------------------------------------------------------------


def test_a_task_that_fails_again_and_again_is_set_aside_and_the_rest_goes_on() -> None:
    plays = [*[Play(says="hm")] * 5, Play(writes={TODO: todo("one", "x two"), "two.py": "2"})]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO, limits=Limits(no_progress=9))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "tasks-aside")
    assert "set aside: one" in stopped.evidence
    assert [fact.task for fact in night.facts(RoundStarted)] == [*["one"] * 5, "two"]
    [aside] = night.facts(TaskSettled)
    assert (aside.text, aside.status) == ("one", TaskStatus.ASIDE)


def test_red_checks_fail_a_task_although_files_change() -> None:
    plays = [
        *[Play(writes={"w": str(turn)}) for turn in range(5)],
        Play(writes={TODO: todo("one", "x two"), "two.py": "2"}),
    ]
    files: Files = {TODO: todo("one", "two"), "app.py": "right"}
    limits = Limits(rounds=6)
    night = Night(plays, files=files, tasks=TODO, check=lambda files: "w" not in files, limits=limits)
    night.run()
    assert [fact.text for fact in night.facts(TaskSettled)] == ["one"]


def test_checks_that_failed_before_do_not_fail_a_task() -> None:
    plays = [Play(writes={"w": str(turn)}) for turn in range(7)]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO, check=is_right, limits=Limits(rounds=7))
    assert night.run().decided.rule == "rounds"
    assert night.facts(TaskSettled) == []


def test_who_resumes_gives_a_task_that_was_set_aside_another_chance() -> None:
    plays = [
        *[Play(says="hm")] * 5,
        Play(writes={TODO: todo("one", "x two"), "2": ""}),
        Play(writes={TODO: BOTH, "1": ""}),
    ]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO, limits=Limits(no_progress=9))
    night.run()
    assert night.run().end is End.UNVERIFIED


def test_an_agent_that_does_nothing_is_not_given_one_task_after_the_other() -> None:
    """The night would be over before the list is."""
    night = Night(["hm"] * 30, files={TODO: todo(*"abcdefghij")}, tasks=TODO)
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule, night.agent.turns) == (End.BLOCKED, "no-progress", 10)
    assert {"set aside: a", "set aside: b"} <= {*stopped.evidence}


def test_an_agent_that_makes_progress_in_between_gets_the_next_task() -> None:
    done = Play(writes={TODO: todo("a", "x b", *"cdefgh"), "b.py": "b"})
    night = Night([*["hm"] * 5, done, *["hm"] * 20], files={TODO: todo(*"abcdefgh")}, tasks=TODO)
    assert (night.run().decided.rule, night.agent.turns) == ("no-progress", 5 + 1 + 5 + 5)
    assert [fact.text for fact in night.facts(TaskSettled)] == ["a", "c", "d"]


def test_checks_that_stay_red_through_several_tasks_end_the_loop() -> None:
    plays = [Play(writes={"broken": str(turn)}) for turn in range(30)]
    files: Files = {TODO: todo(*"abcdefgh")}
    night = Night(plays, files=files, tasks=TODO, check=lambda files: "broken" not in files)
    stopped = night.run()
    assert (stopped.decided.rule, night.agent.turns) == ("check-failures", 15)
    assert [fact.text for fact in night.facts(TaskSettled)] == ["a", "b", "c"]


def test_the_last_task_is_not_set_aside_for_nothing() -> None:
    night = Night(["hm"] * 9, files={TODO: todo("one")}, tasks=TODO)
    assert night.run().decided.rule == "no-progress"


# -- a folder of tasks ---------------------------------------------------------------------------------------------

FOLDER: Files = {"tasks/1-model.md": "# The model", "tasks/2-page.md": "# The page\n<!-- depends_on: 1-model -->"}


def works(number: int, status: str = "done") -> Play:
    return Play(says=f"I did it.\n\nSTATUS: {status}", writes={f"{number}.py": status})


def folder_night(*plays: Play | str, **settings: object) -> Night:
    return Night(plays, files=dict(FOLDER), tasks="tasks", task_folder=True, **settings)  # type: ignore[arg-type]


def test_tasks_of_a_folder_are_done_when_they_are_claimed_worked_on_and_green() -> None:
    night = folder_night(works(1), works(2), check=lambda _: True)
    assert night.run().end is End.COMPLETE
    assert [fact.task_id for fact in night.facts(RoundStarted)] == ["1-model", "2-page"]
    assert [(fact.task, fact.status) for fact in night.facts(TaskSettled)] == [("1-model", "done"), ("2-page", "done")]


def test_a_status_in_other_words_is_understood_and_one_that_only_leads_in_to_it_is_said_back() -> None:
    later = Play(says="Sobald die Tests grün sind, schreibe ich:\n\nSTATUS: done", writes={"1.py": "half"})
    night = folder_night(later, works(1, "Completed"), works(2, "finished"), check=lambda _: True)
    assert night.run().end is End.COMPLETE
    assert [fact.task_id for fact in night.facts(RoundStarted)] == ["1-model", "1-model", "2-page"]
    assert "Your reply said “STATUS: done”. End it with the line" in night.prompt(2)
    assert "Your status was not understood" not in night.prompt(3)


def test_a_claim_without_work_needs_a_second_one() -> None:
    idle = Play(says="STATUS: done")
    night = folder_night(idle, idle, works(2), check=lambda _: True)
    assert night.run().end is End.COMPLETE
    assert [fact.task_id for fact in night.facts(RoundStarted)] == ["1-model", "1-model", "2-page"]


def test_a_claim_with_red_checks_is_none() -> None:
    wrong = Play(says="STATUS: done", writes={"app.py": "wrong"})
    right = Play(says="STATUS: done", writes={"app.py": "right"})
    night = folder_night(wrong, right, works(2), check=is_right)
    assert night.run().end is End.COMPLETE
    assert [fact.task_id for fact in night.facts(RoundStarted)] == ["1-model", "1-model", "2-page"]


def test_what_waits_for_a_task_that_was_set_aside_is_not_run() -> None:
    night = folder_night(*["hm"] * 9, limits=Limits(no_progress=9, task_failures=3))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "tasks-aside")
    assert stopped.evidence == ("set aside: The model", "waiting for another: The page")
    assert night.agent.turns == 3


def test_a_task_whose_file_vanishes_is_not_done() -> None:
    night = folder_night(Play(says="STATUS: done", writes={"tasks/2-page.md": None, "a": "1"}))
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "tasks lost 1 open task: 2-page")


def test_a_skipped_task_whose_file_vanishes_is_not_done() -> None:
    plays: list[Play | str] = ["hm", "hm", Play(says="STATUS: done", writes={"tasks/1-model.md": None, "a": "1"})]
    files: Files = {"tasks/1-model.md": "# The model", "tasks/2-page.md": "# The page"}
    night = Night(plays, files=files, tasks="tasks", task_folder=True, limits=Limits(no_progress=9, task_failures=2))
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "tasks lost 1 open task: 1-model")


def test_a_folder_that_is_done_in_the_ledger_stays_done_after_a_crash() -> None:
    night = folder_night(works(1), works(2))
    night.ledger.cut_after = 6
    night.run_until_crash()
    assert night.run().end is End.UNVERIFIED


# -- checkpoints ---------------------------------------------------------------------------------------------------

HARD_STOP = "- [ ] one\n\nHARD STOP: look at it\n\n- [ ] two\n"


def ticked(*done: str) -> str:
    text = HARD_STOP
    for each in done:
        text = text.replace(f"- [ ] {each}", f"- [x] {each}")
    return text


def test_a_checkpoint_stops_the_loop_when_it_is_reached_and_not_before() -> None:
    night = Night(
        [Play(writes={TODO: ticked("one"), "1": ""}), Play(writes={TODO: ticked("one", "two"), "2": ""})],
        files={TODO: HARD_STOP}, tasks=TODO, checkpoint=Checkpoint(),
    )  # fmt: skip
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.CHECKPOINT, "TODO.md says: HARD STOP: look at it")
    assert night.agent.turns == 1
    assert night.run().end is End.CHECKPOINT, "nobody has approved it"
    night.approve()
    assert night.run().end is End.UNVERIFIED


def test_an_agent_that_removes_a_checkpoint_is_found_out() -> None:
    gone = ticked("one").replace("HARD STOP: look at it", "")
    night = Night([Play(writes={TODO: gone, "1": ""})], files={TODO: HARD_STOP}, tasks=TODO, checkpoint=Checkpoint())
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "TODO.md lost a checkpoint that was not approved")


def test_a_box_that_is_a_checkpoint_is_nobodys_task() -> None:
    text = "- [ ] one\n- [ ] HARD STOP\n- [ ] two\n"
    both = text.replace("[ ] one", "[x] one").replace("[ ] two", "[x] two")
    night = Night([Play(writes={TODO: both, "1": ""})], files={TODO: text}, tasks=TODO, checkpoint=Checkpoint())
    assert night.run().end is End.CHECKPOINT, "one that was passed by is a checkpoint all the same"
    night.approve()
    assert night.run().end is End.UNVERIFIED
    assert night.agent.turns == 1


# -- files that no round may change --------------------------------------------------------------------------------

TESTS: Files = {"tests/test_a.py": "assert works()", "app.py": "wrong"}


def cheat(text: str | None) -> Play:
    """Makes the check green by changing the test instead of the program."""
    return Play(says=DONE, writes={"tests/test_a.py": text})


def honest_check(files: Files) -> bool:
    return "tests/test_a.py" not in files or files["tests/test_a.py"] != "assert works()" or is_right(files)


@pytest.mark.parametrize("text", [None, "import pytest; pytest.skip()"], ids=["deleted", "skipped"])
def test_an_agent_that_changes_the_test_instead_of_the_program_completes_nothing(text: str | None) -> None:
    night = Night([cheat(text)], files=dict(TESTS), check=honest_check, protect=("tests/*",))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "tampered")
    assert stopped.evidence == ("tests/test_a.py",)


def test_what_it_changed_can_be_put_back_and_the_loop_goes_on() -> None:
    night = Night(
        [cheat(None), Play(writes={"app.py": "right"})],
        files=dict(TESTS), check=honest_check, protect=("tests/*",), on_tamper=OnTamper.RESTORE,
    )  # fmt: skip
    assert night.run().end is End.COMPLETE
    assert night.workspace.files["tests/test_a.py"] == "assert works()"
    first = night.facts(RoundEnded)[0]
    assert (first.found.tampered, first.found.restored, first.found.progress) == (("tests/test_a.py",), True, False)


def test_a_changed_protected_file_can_be_only_reported() -> None:
    night = Night([cheat(None)], files=dict(TESTS), check=honest_check, protect=("tests/*",), on_tamper=OnTamper.REPORT)
    assert night.run().end is End.COMPLETE
    assert night.facts(RoundEnded)[0].found.tampered == ("tests/test_a.py",)


def test_who_resumes_does_not_accept_it_by_that() -> None:
    night = Night([cheat(None), DONE], files=dict(TESTS), check=honest_check, protect=("tests/*",))
    night.run()
    assert night.run().decided.rule == "tampered"
    assert night.agent.turns == 1
    night.workspace.edit({"tests/test_a.py": "assert works()"})
    assert night.run(once=True).decided.rule == "rounds-this-run", "put back: the loop goes on, and the check is red"


def test_a_person_can_accept_it() -> None:
    night = Night([cheat("better")], files=dict(TESTS), check=honest_check, protect=("tests/*",))
    night.run()
    night.ledger.append(TamperingAccepted(paths=night.state.tampered, by="ada"))
    assert night.run().end is End.COMPLETE


@pytest.mark.parametrize("policy", [OnTamper.BLOCK, OnTamper.RESTORE])
def test_a_crash_is_no_way_to_change_them_unseen(policy: OnTamper) -> None:
    plays: list[Play | str] = [Play(writes={"tests/test_a.py": None}, meanwhile=lambda: night.crash()), DONE]
    night = Night(plays, files=dict(TESTS), check=honest_check, protect=("tests/*",), on_tamper=policy)
    night.run_until_crash()
    stopped = night.run(once=True)
    assert stopped.end is not End.COMPLETE
    assert (stopped.decided.rule == "tampered") is (policy is OnTamper.BLOCK)
    assert ("tests/test_a.py" in night.workspace.files) is (policy is OnTamper.RESTORE)


def test_a_request_to_stop_does_not_hide_changed_protected_files() -> None:
    stop = AskStop(id="1", run="run-1", by="ada")
    plays: list[Play | str] = [Play(writes={"tests/test_a.py": None}, meanwhile=lambda: night.ask(stop)), DONE]
    night = Night(plays, files=dict(TESTS), check=honest_check, protect=("tests/*",))
    assert night.run().end is End.STOPPED
    assert night.run().decided.rule == "tampered"


def test_code_that_a_check_runs_cannot_change_protected_files_unseen() -> None:
    plays = [Play(says=DONE, writes={"lib.py": "evil"})] * 9
    night = Night(plays, files=dict(TESTS), check=honest_check, protect=("tests/*",))
    night.checks.meanwhile = lambda: night.workspace.edit({"tests/test_a.py": None}) if night.checks.runs else None
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "tampered")


def test_checks_that_change_them_by_themselves_are_found_out_before_anything_is_spent() -> None:
    night = Night([DONE], files=dict(TESTS), check=honest_check, protect=("tests/*",))
    night.checks.meanwhile = lambda: night.workspace.edit({"tests/report.xml": "new"})
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.BLOCKED, 0)
    assert "the checks themselves change protected files: tests/report.xml" in stopped.reason


def test_our_own_settings_are_always_protected() -> None:
    night = Night([Play(says=DONE, writes={"bydawn.toml": 'check = ["true"]'})])
    assert night.run().decided.rule == "tampered"


def test_what_a_person_changes_between_rounds_is_no_tampering() -> None:
    night = Night([Play(says="one", writes={"a": "1"}), DONE], files=dict(TESTS), protect=("tests/*",))
    night.run(once=True)
    night.workspace.edit({"tests/test_a.py": "better"})
    assert night.run().end is End.UNVERIFIED


# -- the agent's own word for it -----------------------------------------------------------------------------------

STUCK = "I could not go on.\n\n## BLOCKED\n\nI need the key for the payment API.\n"


def test_an_agent_that_is_stuck_is_heard_at_once() -> None:
    night = Night([Play(says=STUCK), DONE])
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "agent-blocked")
    assert stopped.reason == "I need the key for the payment API."
    assert night.run().end is End.UNVERIFIED, "and goes on when a person has helped"


def test_an_agent_that_says_it_is_stuck_but_made_progress_goes_on() -> None:
    night = Night([Play(says=STUCK, writes={"a": "1"}), DONE])
    assert night.run().end is End.UNVERIFIED


# -- the ladder ----------------------------------------------------------------------------------------------------


def test_a_stall_climbs_a_ladder() -> None:
    night = Night(["hm"] * 9, others={"codex": ["hm"] * 9}, sessions=Sessions.RESUME)
    assert night.run().decided.rule == "no-progress"
    assert [fact.agent for fact in night.facts(RoundStarted)] == ["demo", "demo", "demo", "codex", "demo"]
    assert night.agent.sessions[:3] == [None, "demo's", None], "a fresh conversation after two rounds"
    assert "No progress" in night.prompt(2)
