"""What only a person can mend: a list that vanished, a folder that is gone, a disk that is full."""

from itertools import repeat

import pytest

from bydawn.core.facts import (
    ChecksEnded,
    Fact,
    LoopStopped,
    Obstructed,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TamperingAccepted,
)
from bydawn.core.loop import Mode, Promise
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.promise import TooSlow
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


@pytest.mark.parametrize("problem", DAMAGE)
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

    def endless(_pattern: str, _text: str) -> bool:
        raise TooSlow("the pattern took too long")

    tries, night.full_match = night.full_match, endless
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (End.BLOCKED, "the pattern took too long")
    assert [ended.promise for ended in night.facts(RoundEnded)] == [Promised.ABSENT]
    night.full_match = tries
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
