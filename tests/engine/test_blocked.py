"""What only a person can mend: a list that vanished, a folder that is gone, a disk that is full."""

from itertools import repeat

import pytest

from bydawn.core.breakers import Limits
from bydawn.core.facts import (
    ChecksEnded,
    Fact,
    LoopStopped,
    NoteAdded,
    Obstructed,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TamperingAccepted,
)
from bydawn.core.loop import Mode, OnBlockedTask, Promise
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.promise import TooSlow
from bydawn.core.requests import AskNote
from bydawn.core.values import End, Promised
from engine.fakes import Files
from engine.night import DONE, TODO, Night, Play, blip, busy, todo

# What an agent, or anybody, can do to a task list that must not look like "all done".
DAMAGE: dict[str, Files] = {
    "is gone": {TODO: None},
    "no longer has any tasks": {TODO: ""},
    "lost 1 open task": {TODO: todo("x one", "three")},
    "lost 2 open tasks": {TODO: todo("x one")},
}


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_list_that_an_agent_damaged_blocks(problem: str) -> None:
    night = Night([Play(says=DONE, writes=DAMAGE[problem])], files={TODO: todo("one", "two", "three")}, tasks=TODO)
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "task-file")
    assert stopped.reason.startswith(f"TODO.md {problem}")


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_list_that_anybody_damaged_between_two_rounds_blocks(problem: str) -> None:
    night = Night([blip(), DONE], files={TODO: todo("one", "two", "three")}, tasks=TODO)
    night.clock.at(1.5, lambda: night.workspace.edit(DAMAGE[problem]))
    assert night.run().decided.rule == "task-file"
    assert night.agent.turns == 1


@pytest.mark.parametrize("problem", ["lost 1 open task", "lost 2 open tasks"])
@pytest.mark.parametrize("seconds", [30.0, 60.0], ids=["in the round", "right after it"])
def test_a_crash_is_no_way_to_lose_tasks_unseen(problem: str, seconds: float) -> None:
    night = Night([Play(writes=DAMAGE[problem]), DONE], files={TODO: todo("one", "two", "three")}, tasks=TODO)
    night.clock.at(seconds, night.crash)
    night.run_until_crash()
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "task-file")


@pytest.mark.parametrize("facts", range(1, 4))
@pytest.mark.parametrize("problem", DAMAGE)
def test_a_crash_after_any_fact_of_a_round_does_not_hide_lost_tasks(problem: str, facts: int) -> None:
    night = Night([Play(writes=DAMAGE[problem]), DONE], files={TODO: todo("one", "two", "three")}, tasks=TODO)
    night.ledger.cut_after = facts
    night.run_until_crash()
    assert night.run().decided.rule == "task-file"


def test_who_resumes_has_looked_at_the_list_as_it_is() -> None:
    plays = [Play(writes={TODO: todo("x one", "three")}), Play(writes={TODO: todo("x one", "x three"), "3.py": ""})]
    night = Night(plays, files={TODO: todo("one", "two", "three")}, tasks=TODO)
    assert night.run().end is End.BLOCKED
    assert night.run().end is End.BLOCKED, "it is the very list that was not believed"
    night.ledger.append(TamperingAccepted(paths=(TODO,), by="ada"))
    assert night.run().end is End.UNVERIFIED


def test_a_list_that_comes_back_is_believed_again() -> None:
    night = Night(
        [Play(writes={TODO: None}), Play(writes={TODO: todo("x one"), "1.py": ""})],
        files={TODO: todo("one")},
        tasks=TODO,
    )
    assert night.run().reason == "TODO.md is gone"
    night.workspace.edit({TODO: todo("one")})
    assert night.run().end is End.UNVERIFIED


def test_a_list_that_was_put_back_while_nobody_ran_the_loop_is_believed_again() -> None:
    plays = [Play(writes={TODO: None}), Play(writes={TODO: todo("x one"), "1.py": ""})]
    night = Night(plays, files={TODO: todo("one")}, tasks=TODO)
    night.ledger.cut_after = 3  # its end is on record, with the problem, but not the stop that follows from it
    night.run_until_crash()
    assert night.state.tasks is not None
    assert (night.state.tasks.problem, night.state.stopped) == ("is gone", None)
    night.workspace.edit({TODO: todo("one")})
    assert night.run().end is End.UNVERIFIED


def test_a_list_that_is_ticked_and_unticked_for_ever_is_no_progress() -> None:
    night = Night(
        [Play(writes={TODO: todo("one", two)}) for two in ["x two", "two"] * 20],
        files={TODO: todo("one", "two")},
        tasks=TODO,
    )
    assert night.run().decided.rule == "no-progress"
    assert night.agent.turns == 5  # nothing but the list was ever changed


# -- around the agent ----------------------------------------------------------------------------------------------


def test_an_obstacle_is_seen_before_a_round_is_spent() -> None:
    night = Night([DONE])
    night.obstacle = ("workspace", "the folder /w was removed or replaced")
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "the folder /w was removed or replaced")
    assert (night.agent.turns, stopped.evidence) == (0, ("workspace",))
    night.obstacle = None
    assert night.run().end is End.UNVERIFIED


def test_an_agent_that_deletes_the_workspace_ends_its_round_and_blocks_the_loop() -> None:
    night = Night([Play(meanwhile=lambda: setattr(night.workspace, "gone", True))], check=lambda _: True)
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "obstructed")
    assert "the folder /w is gone" in stopped.reason
    assert len(night.facts(RoundEnded)) == 1
    assert night.checks.runs == 0


def test_a_pattern_that_runs_out_of_time_blocks_and_is_tried_again_when_a_person_goes_on() -> None:
    night = Night(["half of it", "ALL DONE"], promise=Promise(text="ALL DONE", mode=Mode.REGEX))

    def endless(_pattern: str, _text: str) -> int | None:
        raise TooSlow("the pattern took too long")

    tries, night.search = night.search, endless
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "the pattern took too long")
    assert [ended.promise for ended in night.facts(RoundEnded)] == [Promised.ABSENT]
    night.search = tries
    assert night.run().end is End.UNVERIFIED


def test_a_workspace_that_is_gone_before_a_round_costs_no_round() -> None:
    night = Night([blip(), DONE])
    night.clock.at(1.5, lambda: setattr(night.workspace, "gone", True))
    assert night.run().end is End.BLOCKED
    assert night.agent.turns == 1


def test_a_full_disk_blocks_after_the_round_that_filled_it() -> None:
    night = Night([Play(meanwhile=lambda: setattr(night.ledger, "disk_full", True)), DONE])
    stopped = night.run()
    assert (stopped.end, stopped.evidence) == (End.BLOCKED, ("disk",))
    assert len(night.facts(Obstructed)) == 1
    assert night.witness.facts == night.facts()[1:]  # the followers know why


def test_no_agent_is_started_when_its_own_start_took_the_last_room() -> None:
    night = Night([DONE])
    night.ledger.fills_up_with = RoundStarted
    assert night.run().evidence == ("disk",)
    assert (night.agent.turns, night.state.rounds, night.state.open_round) == (0, 0, None)


@pytest.mark.parametrize("kind", [RunStarted, RoundEnded, ChecksEnded, LoopStopped])
def test_whatever_fact_takes_the_last_room_the_loop_stops_and_can_go_on_later(kind: type[Fact]) -> None:
    night = Night([Play(writes={"a": "1"})], check=lambda _: True)
    night.ledger.fills_up_with = kind
    stopped = night.run()
    assert stopped.end is (End.COMPLETE if kind is LoopStopped else End.BLOCKED)
    assert night.facts()[-1] == stopped  # the last word is the last
    night.ledger.fills_up_with, night.ledger.disk_full = None, False
    assert night.run().end is End.COMPLETE
    assert night.agent.turns == 1


def test_no_agent_is_started_on_a_disk_that_has_no_room_for_its_prompt() -> None:
    night = Night([DONE])
    night.files.full = "prompt.md"
    assert night.run().end is End.BLOCKED
    assert night.agent.turns == 0
    assert night.facts(RoundStarted) == []


def test_a_reply_that_finds_no_room_blocks_and_the_round_is_on_record() -> None:
    night = Night([Play(writes={"a": "1"}), DONE])
    night.files.full = "reply.md"
    assert night.run().end is End.BLOCKED
    assert [fact.outcome for fact in night.facts(RoundEnded)] == [Outcome.OK]


def test_a_round_that_was_stopped_for_the_disks_sake_counts_for_nothing() -> None:
    night = Night([Play(exit=Exit(ending=Ending.DISK)), DONE])
    assert night.run().evidence == ("disk",)
    assert night.state.rounds == 0


def test_every_stop_is_on_the_disk_before_it_is_told() -> None:
    for night in (Night([DONE]), Night(repeat("hm", 9)), Night(busy(), files={}), Night([Play(outcome=Outcome.AUTH)])):
        stopped = night.run()
        assert night.ledger.synced == len(night.ledger.records)
        assert night.facts(LoopStopped) == [stopped]


# -- a question about one task -------------------------------------------------------------------------------------

ASKS = Play(says="I looked at it.\n\n## BLOCKED\n\nWhich key?")
ASKS_TOO = Play(says="## BLOCKED\n\nWhich port?")


def ticked(*boxes: str) -> Play:
    """A round that does its task and leaves the list like this."""
    return Play(writes={TODO: todo(*boxes), "done.py": str(boxes)})


def tasks_of(night: Night) -> list[str | None]:
    return [fact.task for fact in night.facts(RoundStarted)]


def test_a_question_about_one_task_does_not_keep_the_others_from_being_done() -> None:
    plays = [ASKS, ticked("one", "x two", "three"), ticked("one", "x two", "x three")]
    night = Night(plays, files={TODO: todo("one", "two", "three")}, tasks=TODO)
    stopped = night.run()
    assert tasks_of(night) == ["one", "two", "three"]
    assert (stopped.end, stopped.decided.rule, stopped.reason) == (End.BLOCKED, "agent-blocked", "Which key?")
    assert stopped.evidence == ("“one” needs you: Which key?",)
    assert "1 waiting for an answer from a person" in night.prompt(2)


def test_a_loop_is_blocked_with_every_question_when_nothing_else_is_left() -> None:
    night = Night([ASKS, ASKS_TOO], files={TODO: todo("one", "two")}, tasks=TODO)
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "2 tasks wait for an answer from you")
    assert stopped.evidence == ("“one” needs you: Which key?", "“two” needs you: Which port?")


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "before it is resumed"])
def test_an_answer_brings_the_task_back_with_its_question(running: bool) -> None:
    def answer() -> None:
        if running:
            night.ask(AskNote(id="n-1", run="", by="ada", text="the blue one"))

    second = Play(writes={TODO: todo("one", "x two"), "2.py": ""}, meanwhile=answer)
    night = Night([ASKS, second, ticked("x one", "x two")], files={TODO: todo("one", "two")}, tasks=TODO)
    if not running:
        assert night.run().end is End.BLOCKED
        night.ledger.append(NoteAdded(note="n-1", text="the blue one", by="ada"))
    assert night.run().end is End.UNVERIFIED
    assert tasks_of(night) == ["one", "two", "one"]
    assert "An earlier round asked a person about it: Which key?" in night.prompt(3)
    assert "the blue one" in night.prompt(3)


def test_boxes_below_a_task_with_a_question_belong_to_it() -> None:
    text = "- [ ] one\n  - [ ] part of one\n- plain\n  - [ ] part of plain\n"
    night = Night(
        [ASKS, Play(writes={TODO: text.replace("[ ] part of plain", "[x] part of plain"), "2": ""})],
        files={TODO: text},
        tasks=TODO,
    )
    stopped = night.run()
    assert tasks_of(night) == ["one", "part of plain"]
    assert stopped.evidence == ("“one” needs you: Which key?", "waiting for another: part of one")


def test_tasks_of_a_folder_that_depend_on_one_with_a_question_wait() -> None:
    files: Files = {"t/1.md": "# One", "t/2.md": "# Two\n<!-- depends_on: 1 -->", "t/3.md": "# Three"}
    plays = [
        Play(says="STATUS: blocked\nSUMMARY: Which key?"),
        Play(says="STATUS: done\nSUMMARY: ok", writes={"a": ""}),
    ]
    night = Night(plays, files=files, tasks="t", task_folder=True)
    stopped = night.run()
    assert tasks_of(night) == ["One", "Three"]
    assert stopped.reason == "Which key?"
    assert stopped.evidence == ("“One” needs you: Which key?", "waiting for another: Two")


def test_a_loop_can_stop_at_the_first_question_as_one_without_a_list_always_does() -> None:
    listed = Night([ASKS], files={TODO: todo("one", "two")}, tasks=TODO, on_blocked_task=OnBlockedTask.STOP)
    for night in (listed, Night([ASKS])):
        stopped = night.run()
        assert (stopped.end, stopped.reason, night.agent.turns) == (End.BLOCKED, "Which key?", 1)


# -- a ticked task whose check is red ------------------------------------------------------------------------------


def test_a_ticked_task_stays_the_current_one_while_its_check_is_red() -> None:
    plays = [ticked("x one", "two"), Play(writes={"fix": ""}), ticked("x one", "x two")]
    night = Night(
        plays,
        files={TODO: todo("one", "two")},
        tasks=TODO,
        check=lambda files: "done.py" not in files or "fix" in files,
    )
    assert night.run().end is End.COMPLETE
    assert tasks_of(night) == ["one", "one", "two"]
    assert "It is ticked, but checks have failed since" in night.prompt(2)


def test_a_ticked_task_whose_check_stays_red_is_set_aside() -> None:
    plays = [ticked("x one", "two"), *(Play(writes={"try": str(turn)}) for turn in range(3))]
    limits = Limits(rounds=4, task_failures=3)
    night = Night(
        plays, files={TODO: todo("one", "two")}, tasks=TODO, check=lambda files: "done.py" not in files, limits=limits
    )
    assert night.run().end is End.LIMIT
    assert tasks_of(night) == ["one", "one", "one", "two"]


def test_a_check_that_was_red_before_any_work_does_not_hold_up_the_list() -> None:
    plays = [ticked("x one", "two"), ticked("x one", "x two")]
    night = Night(plays, files={TODO: todo("one", "two")}, tasks=TODO, check=lambda files: "x] two" in str(files[TODO]))
    assert night.run().end is End.COMPLETE
    assert tasks_of(night) == ["one", "two"]
