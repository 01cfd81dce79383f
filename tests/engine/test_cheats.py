"""Ways round the proof that were tried, and what became of each."""

from itertools import count

import pytest

from bydawn.core.breakers import Limits
from bydawn.core.facts import (
    ChecksEnded,
    LoopStopped,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TamperingAccepted,
    TaskSettled,
)
from bydawn.core.loop import Checkpoint, Hooks, OnHookFailure, OnTamper, Promise
from bydawn.core.outcome import Exit
from bydawn.core.requests import AskPause, AskStop
from bydawn.core.rules import Rule
from bydawn.core.values import Decided, End, Usage
from engine.fakes import NOON, Files
from engine.night import DONE, TODO, Night, Play, busy, todo

TWO_FILES: Files = {"tasks/1-one.md": "# one", "tasks/2-two.md": "# two"}
CLAIM = "STATUS: done"
HARD_STOP = Checkpoint(token="HARD STOP")  # noqa: S106 - no password


def folder_night(*plays: Play | str, **settings: object) -> Night:
    return Night(plays, files=dict(TWO_FILES), tasks="tasks", task_folder=True, **settings)  # type: ignore[arg-type]


def busy_for(turns: int) -> list[Play]:
    return [Play(writes={"work": f"turn {turn}"}) for turn in range(turns)]


def claims(turn: int) -> Play:
    return Play(says=CLAIM, writes={"work": f"turn {turn}"})


# -- a folder that loses tasks -------------------------------------------------------------------------------------

THIEF = Play(says=CLAIM, writes={"work": "1", "tasks/2-two.md": None})


def test_a_lost_task_file_stays_lost_however_often_somebody_resumes() -> None:
    night = folder_night(THIEF, check=lambda _: True)
    for _ in range(3):
        stopped = night.run()
        assert (stopped.end, stopped.reason) == (End.BLOCKED, "tasks lost 1 open task: 2-two")
    assert stopped.can_be_accepted
    night.workspace.edit(TWO_FILES)
    night.agent = Night([claims(2)]).agent
    assert night.run().end is End.COMPLETE


@pytest.mark.parametrize("asked", [AskPause(id="p", run="run-1", by="ada"), AskStop(id="s", run="run-1", by="ada")])
def test_whoever_pauses_it_in_that_round_is_told_and_it_is_not_forgotten(asked: AskPause | AskStop) -> None:
    night = folder_night(
        Play(says=CLAIM, writes=THIEF.writes, meanwhile=lambda: night.ask(asked)), check=lambda _: True
    )
    assert night.run().evidence == ("tasks lost 1 open task: 2-two",)
    assert night.run().decided.rule == "task-file"


def test_a_person_can_accept_that_it_is_gone() -> None:
    night = folder_night(THIEF, check=lambda _: True)
    night.run()
    night.ledger.append(TamperingAccepted(paths=("tasks",), by="ada"))
    stopped = night.run()
    assert (stopped.end, stopped.evidence[1:]) == (
        End.COMPLETE,
        (
            "make test: passed",
            "changed, and accepted by a person: tasks",
            "the checks pass without it: one",
        ),
    )


def test_a_folder_that_nobody_can_work_by_is_not_offered_for_acceptance() -> None:
    circle: Files = {
        "tasks/1-one.md": "# one\n<!-- depends_on: 2-two -->",
        "tasks/2-two.md": "# two\ndepends_on: 1-one",
    }
    night = folder_night(Play(says=CLAIM, writes={**circle, "tasks/2-two.md": "# two\n<!-- depends_on: 1-one -->"}))
    stopped = night.run()
    assert (stopped.decided.rule, stopped.can_be_accepted) == ("task-file", False)


# -- protected files -----------------------------------------------------------------------------------------------

TESTS: Files = {"tests/a": "honest", "app": "wrong"}


def honest(files: Files) -> bool:
    return files.get("tests/a") != "honest" or files.get("app") == "right"


@pytest.mark.parametrize("policy", [OnTamper.BLOCK, OnTamper.RESTORE])
@pytest.mark.parametrize("how", ["crash", "stop"])
def test_a_check_that_is_cut_short_is_no_way_to_change_them_unseen(how: str, policy: OnTamper) -> None:
    night = Night(busy(), files=dict(TESTS), check=honest, protect=("tests/*",), on_tamper=policy)

    def cheat() -> None:
        if night.checks.runs == 1:
            night.workspace.edit({"tests/a": "exit 0"})
            night.crash() if how == "crash" else night.ask(AskStop(id="s", run="run-1", by="ada", now=True))

    night.checks.meanwhile = cheat
    night.run_until_crash() if how == "crash" else night.run()
    stopped = night.run(once=True)
    assert stopped.end is not End.COMPLETE
    assert (stopped.decided.rule == "tampered") is (policy is OnTamper.BLOCK)
    assert (night.workspace.files["tests/a"] == "honest") is (policy is OnTamper.RESTORE)


@pytest.mark.parametrize("policy", [OnTamper.BLOCK, OnTamper.RESTORE])
def test_a_stop_after_a_crash_does_not_hide_a_changed_protected_file(policy: OnTamper) -> None:
    night = Night(busy(), files=dict(TESTS), check=honest, protect=("tests/*",), on_tamper=policy)

    def cheat() -> None:
        if night.checks.runs == 1:
            night.workspace.edit({"tests/a": "exit 0"})
            night.crash()

    night.checks.meanwhile = cheat
    night.run_until_crash()
    stop = LoopStopped(
        end=End.STOPPED, reason="", decided=Decided(rule=Rule.ASKED_TO_STOP, at=NOON, elapsed=0), unseen=True
    )
    night.ledger.append(stop)
    assert night.run(once=True).end is not End.COMPLETE
    assert (night.workspace.files["tests/a"] == "honest") is (policy is OnTamper.RESTORE)
    put_back = [fact.found.put_back for fact in night.facts(RunStarted)][-1]
    assert put_back == (("tests/a",) if policy is OnTamper.RESTORE else ())


@pytest.mark.parametrize("policy", [OnTamper.BLOCK, OnTamper.RESTORE])
def test_what_a_person_changes_after_they_stopped_a_round_is_their_business(policy: OnTamper) -> None:
    """The round had changed something, so that the checks are due; but none was running."""
    stop = AskStop(id="s", run="run-1", by="ada", now=True)
    plays = [Play(writes={"a": "1"}), Play(writes={"a": "2"}, meanwhile=lambda: night.ask(stop)), *busy_for(3)]
    night = Night(plays, files=dict(TESTS), check=honest, protect=("tests/*",), on_tamper=policy)
    assert night.run().end is End.STOPPED
    night.workspace.edit({"tests/a": "better"})
    assert night.run().end is End.COMPLETE
    assert night.workspace.files["tests/a"] == "better"


def test_a_hook_that_is_protected_can_be_mended() -> None:
    hooks = Hooks(post_round="ci/hook.sh", on_failure=OnHookFailure.BLOCK)
    night = Night(busy(), files={"ci/hook.sh": "wrong"}, check=lambda _: True, hooks=hooks, protect=("ci/*",))
    night.hooks.meanwhile = lambda _: night.workspace.edit({"log": str(len(night.hooks.runs))})
    night.hooks.exits["post_round"] = Exit(code=1)
    assert night.run().decided.rule == "obstructed"
    night.workspace.edit({"ci/hook.sh": "right"})
    night.hooks.exits.clear()
    assert night.run().end is End.COMPLETE


def test_what_a_person_changes_after_the_checks_have_run_is_their_business() -> None:
    night = Night(busy(), files=dict(TESTS), check=honest, protect=("tests/*",))
    night.run(once=True)
    night.workspace.edit({"tests/a": "better"})
    assert night.run().end is End.COMPLETE


def test_however_many_are_changed_each_has_to_be_put_back() -> None:
    files: Files = {f"tests/{number:04}": "ok" for number in range(1_100)}
    night = Night([Play(writes=dict.fromkeys(files, "hacked")), *["hm"] * 9], files=files, protect=("tests/*",))
    stopped = night.run()
    assert stopped.reason.startswith("1,000 protected files were changed: tests/0000, ")
    assert stopped.evidence[-1] == "… and 980 more"
    night.workspace.edit(dict.fromkeys([*files][:1_099], "ok"))
    stopped = night.run()
    assert (stopped.decided.rule, stopped.evidence) == ("tampered", ("tests/1099",))


def test_a_file_whose_name_looks_like_a_pattern_is_known_again() -> None:
    night = Night([Play(writes={"tests/[a]": "hacked"}), DONE], files={"tests/[a]": "ok"}, protect=("tests/*",))
    night.run()
    assert night.run().decided.rule == "tampered"


@pytest.mark.parametrize("policy", OnTamper)
def test_a_test_that_is_swapped_while_a_check_runs_and_put_back_proves_nothing(policy: OnTamper) -> None:
    night = Night(busy(), files=dict(TESTS), check=lambda _: True, protect=("tests/*",), on_tamper=policy)

    def swap() -> None:
        if night.checks.runs == 1:
            night.workspace.edit({"tests/a": "exit 0"})
            night.workspace.edit({"tests/a": "honest"})

    night.checks.meanwhile = swap
    stopped = night.run()
    looked = night.facts(ChecksEnded)[1]
    assert (looked.tampered, looked.restored) == (("tests/a",), policy is OnTamper.RESTORE)
    assert [verdict.passed for verdict in looked.verdicts] == [policy is OnTamper.REPORT]
    assert (stopped.decided.rule == "tampered") is (policy is OnTamper.BLOCK)
    if policy is OnTamper.BLOCK:  # a person looks, and it goes on: nothing is different
        assert night.run().end is End.COMPLETE


def test_checks_that_rewrite_protected_files_by_themselves_are_found_out_before_anything_is_spent() -> None:
    night = Night([DONE], files=dict(TESTS), check=honest, protect=("tests/*",))
    night.checks.meanwhile = lambda: night.workspace.edit({"tests/a": "honest"})
    stopped = night.run()
    assert (stopped.end, night.agent.turns) == (End.BLOCKED, 0)
    assert "the checks themselves change protected files: tests/a (and put them back)" in stopped.reason


def test_our_own_settings_are_protected_while_checks_run_too() -> None:
    night = Night(busy(), files={"bydawn.toml": "rounds = 30"}, check=lambda _: True)
    night.checks.meanwhile = lambda: night.workspace.edit({"bydawn.toml": "evil"}) if night.checks.runs else None
    assert night.run().evidence == ("bydawn.toml",)


def test_a_second_look_at_what_the_checks_left_is_watched_as_the_first() -> None:
    night = Night(busy(), files=dict(TESTS), check=lambda _: True, protect=("tests/*",))
    deeds: dict[int, Files] = {1: {"test.log": "1"}, 2: {"tests/a": "exit 0"}}
    night.checks.meanwhile = lambda: night.workspace.edit(deeds.get(night.checks.runs, {}))
    assert night.run().decided.rule == "tampered"


def test_whoever_accepts_a_file_is_told_what_else_they_accept() -> None:
    lost = Play(writes={"tests/a": "x", TODO: todo("x one")})
    night = Night([lost], files={TODO: todo("one", "two"), **TESTS}, tasks=TODO, protect=("tests/*",))
    stopped = night.run()
    told = 'TODO.md lost 1 open task: vanished without being ticked ("two")'
    assert (stopped.reason, stopped.evidence) == (
        f"a protected file was changed: tests/a; and {told}",
        ("tests/a", told),
    )


# -- checkpoints ---------------------------------------------------------------------------------------------------


def test_an_approval_does_not_slide_to_another_checkpoint_while_the_list_was_away() -> None:
    plays = [
        Play(writes={TODO: "- [x] a\n\nHARD STOP\n\n- [ ] b\n"}),
        Play(writes={TODO: "- [x] a\n- [ ] b\n", "a": "1"}),
        Play(writes={TODO: None, "a": "2"}),
        Play(writes={"a": "3"}),
    ]
    files: Files = {TODO: "- [ ] a\n\nHARD STOP\n\n- [ ] b\n"}
    night = Night(plays, files=files, tasks=TODO, checkpoint=HARD_STOP)
    assert night.run().end is End.CHECKPOINT
    night.approve()
    assert night.run().decided.rule == "task-file"
    night.workspace.edit({TODO: "- [x] a\n- [x] b\n\nHARD STOP\n\n- [ ] c\n"})
    assert night.run().end is End.CHECKPOINT


def test_an_approved_checkpoint_is_not_asked_for_again_when_something_else_is_accepted() -> None:
    plays = [
        Play(writes={TODO: "- [x] a\n\nHARD STOP\n\n- [ ] b\n", "a": "0"}),
        Play(writes={"tests/a": "x"}),
        Play(writes={TODO: "- [x] a\n\nHARD STOP\n\n- [x] b\n", "a": "1"}),
    ]
    files: Files = {TODO: "- [ ] a\n\nHARD STOP\n\n- [ ] b\n", **TESTS}
    night = Night(plays, files=files, tasks=TODO, checkpoint=HARD_STOP, protect=("tests/*",))
    night.run()
    night.approve()
    assert night.run().decided.rule == "tampered"
    night.ledger.append(TamperingAccepted(paths=night.state.tampered, by="ada"))
    assert night.run().end is End.UNVERIFIED


# -- checks that cannot be relied on -------------------------------------------------------------------------------


def test_a_check_that_was_ever_flaky_has_to_be_green_twice() -> None:
    turns = count(1)
    night = Night(busy(), check=lambda _: next(turns) % 2 == 0, limits=Limits(rounds=12, same_failure=0))
    assert night.run().end is not End.COMPLETE
    assert not any(verdict.passed for fact in night.facts(ChecksEnded) for verdict in fact.verdicts)


def test_a_flaky_check_that_has_been_fixed_completes() -> None:
    turns = count(1)
    night = Night(busy(), check=lambda files: next(turns) % 2 == 0 or files.get("work.txt") == "turn 3")
    assert (night.run().end, night.agent.turns) == (End.COMPLETE, 3)


def test_a_red_check_that_turns_green_although_nothing_was_done_is_run_again() -> None:
    """It writes a log, so that the tree is never the same."""
    colours, lines = iter([False, False, False, True, False, *[False] * 20]), count()
    night = Night(["looked"] * 9, check=lambda _: next(colours))
    night.checks.meanwhile = lambda: night.workspace.edit({"test.log": str(next(lines))})
    assert night.run().end is End.BLOCKED


def test_a_tree_that_the_checks_have_changed_is_proven_again() -> None:
    night = Night([Play(writes={"feature": "there"}), *["hm"] * 9], check=lambda files: "feature" in files)
    night.checks.meanwhile = lambda: night.workspace.edit({"feature": None}) if night.checks.runs else None
    stopped = night.run()
    assert (stopped.end, night.verdicts[0]) == (End.BLOCKED, False)


def test_a_tree_that_checks_changed_after_the_last_task_of_a_folder_is_proven_again() -> None:
    night = folder_night(*(Play(says=CLAIM, writes={"ok": f"turn {n}"}) for n in range(9)), check=lambda f: "ok" in f)
    night.checks.meanwhile = lambda: night.workspace.edit({"ok": None}) if night.checks.runs else None
    assert night.run().end is not End.COMPLETE


def test_a_check_that_writes_a_log_is_run_twice_and_completes() -> None:
    lines = count()
    night = Night(busy(), check=lambda _: True)
    night.checks.meanwhile = lambda: night.workspace.edit({"test.log": str(next(lines))})
    assert (night.run().end, night.agent.turns, night.checks.runs) == (End.COMPLETE, 1, 2)
    assert night.state.checks_passed
    [_, proof] = night.facts(ChecksEnded)
    assert proof.work, "the tree that they left is the one that was proven"


def test_who_still_has_to_promise_does_not_pay_for_it() -> None:
    night = Night(busy(), check=lambda _: True, promise=Promise(), limits=Limits(rounds=4))
    night.checks.meanwhile = lambda: night.workspace.edit({"test.log": str(night.checks.runs)})
    night.run()
    assert night.checks.runs == 4


# -- tasks ---------------------------------------------------------------------------------------------------------


def test_a_hook_that_changes_files_keeps_no_task_from_being_done() -> None:
    turns = count(1)
    night = folder_night(*(claims(turn) for turn in range(9)), check=lambda _: True, hooks=Hooks(post_round="log"))
    night.hooks.meanwhile = lambda _: night.workspace.edit({"worklog": str(next(turns))})
    assert (night.run().end, night.agent.turns) == (End.COMPLETE, 2)


def test_who_is_blocked_has_not_done_the_task() -> None:
    says = "## BLOCKED\n\nI need the key; the feature is not built.\n\nSTATUS: done\n"
    night = folder_night(Play(says=says, writes={"a": "1"}), "hm", check=lambda _: True)
    night.run(once=True)
    assert (night.facts(TaskSettled), night.facts(RoundEnded)[0].claim) == ([], None)


@pytest.mark.parametrize("toggles", [False, True])
def test_whoever_invents_boxes_and_ticks_them_gets_nowhere(toggles: bool) -> None:
    def plays() -> list[Play]:
        made = [todo("real work", *(f"x t{n}" for n in range(turn)), f"t{turn}") for turn in range(60)]
        return [Play(writes={TODO: text, "a": str(n % 2) if toggles else "1"}) for n, text in enumerate(made)]

    night = Night(plays(), files={TODO: todo("real work")}, tasks=TODO, check=lambda _: True, limits=Limits(rounds=0))
    stopped = night.run()
    assert (stopped.end, stopped.decided.rule) == (End.BLOCKED, "no-progress")
    assert night.agent.turns < 20


def test_whoever_splits_a_task_and_works_through_the_parts_gets_on() -> None:
    """The check stays red in the same way until the last of them."""
    parts = [todo("big", *(f"x {n}" for n in range(turn)), *map(str, range(turn, 9))) for turn in range(10)]
    plays = [Play(writes={TODO: text, "a": str(n)}) for n, text in enumerate(parts)]
    last = Play(writes={TODO: parts[-1].replace("[ ]", "[x]"), "a": "right"})
    night = Night([*plays, last], files={TODO: todo("big")}, tasks=TODO, check=lambda files: files.get("a") == "right")
    night.checks.fingerprint = lambda _: "f-1"
    assert (night.run().end, night.agent.turns) == (End.COMPLETE, 11)


def test_an_agent_that_invents_task_files_makes_no_progress() -> None:
    """Each claimed twice, and nothing else done."""
    later = [Play(says=CLAIM, writes={f"tasks/0-{turn}.md": f"# {turn}"}) for turn in range(90)]
    night = folder_night(*later, limits=Limits(rounds=0, task_failures=0))
    assert (night.run().decided.rule, night.agent.turns < 20) == ("no-progress", True)


def test_tasks_that_were_done_before_are_no_standstill() -> None:
    files: Files = {f"tasks/{number}.md": f"# {number}" for number in range(6)}
    night = Night(["STATUS: done"] * 12, files=files, tasks="tasks", task_folder=True, check=lambda _: True)
    assert (night.run().end, night.agent.turns) == (End.UNVERIFIED, 12)


def test_tasks_that_a_person_adds_count_when_they_are_closed() -> None:
    adds = Play(writes={"a": "1", TODO: todo("x one", "two")})
    more = [f"task {number}" for number in range(6)]

    def tick(count: int) -> Play:
        done = ("two", *more[:count])
        boxes = todo("x one", *(f"x {task}" for task in more[:count]), *more[count:], "x two")
        return Play(says="## Already done\n" + "".join(f"- {task}\n" for task in done), writes={TODO: boxes})

    ticks = map(tick, (1, 2, 3, 4, 5, 6, 6))
    night = Night([adds, *ticks], files={TODO: todo("one", "two")}, tasks=TODO, check=lambda _: True)
    night.run(once=True)
    night.workspace.edit({TODO: todo("x one", *more, "two")})
    assert (night.run().end, night.agent.turns) == (End.COMPLETE, 8)


# -- what a killed round leaves ------------------------------------------------------------------------------------


def test_the_work_of_a_killed_round_is_work() -> None:
    night = folder_night(
        Play(writes={"a": "1"}, meanwhile=lambda: night.crash()), CLAIM, claims(2), check=lambda _: True
    )
    night.run_until_crash()
    stopped = night.run()
    assert stopped.end is End.COMPLETE
    assert [fact.task_id for fact in night.facts(RoundStarted)] == ["1-one", "1-one", "2-two"]
    assert not [fact for fact in night.facts(TaskSettled) if fact.doubted]


def test_what_a_killed_round_used_is_counted() -> None:
    spent = Usage(tokens_in=900_000)

    def crash() -> None:
        night.files.texts[night.state.round, "stdout"] = "one\ntwo\n"
        night.crash()

    night = Night([Play(writes={"a": "1"}, meanwhile=crash), Play(spends=spent), DONE], limits=Limits(tokens=2_000_000))
    night.run_until_crash()
    night.run()
    assert [fact.usage for fact in night.facts(RoundEnded)] == [spent, None]


# -- hooks ---------------------------------------------------------------------------------------------------------


def test_a_hook_that_said_no_is_asked_again() -> None:
    hooks = Hooks(post_round="gate", on_failure=OnHookFailure.BLOCK)
    night = Night([Play(writes={"a": "1"})], check=lambda _: True, hooks=hooks)
    night.hooks.exits["post_round"] = Exit(code=1)
    assert night.run().decided.rule == "obstructed"
    assert night.run().decided.rule == "obstructed"
    night.hooks.exits.clear()
    assert night.run().end is End.COMPLETE
    assert night.hooks.order == [("post_round", 1)] * 3


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_a_hook_that_said_no_still_blocks_after_a_stop_while_it_is_asked_again(how: str) -> None:
    hooks = Hooks(post_round="gate", on_failure=OnHookFailure.BLOCK)
    night = Night([Play(writes={"a": "1"})], check=lambda _: True, hooks=hooks)
    night.hooks.exits["post_round"] = Exit(code=1)
    assert night.run().decided.rule == "obstructed"

    def end(_: str) -> None:
        night.crash() if how == "crash" else night.ask(AskStop(id="s", run="run-2", by="ada", now=True))

    night.hooks.meanwhile = end
    night.run_until_crash() if how == "crash" else night.run()
    night.hooks.meanwhile = lambda _: None
    assert night.run().decided.rule == "obstructed"


def test_a_list_that_is_another_one_at_every_look_completes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    night, looks = Night([Play(says="did it")] * 3, files={TODO: todo("one")}, tasks=TODO), count()
    monkeypatch.setattr(night.workspace, "read_text", lambda _: todo("x one", *["x more"] * next(looks)))
    stopped = night.run()
    assert (stopped.end, stopped.reason) == (
        End.BLOCKED,
        "TODO.md keeps changing: it is different each time it is read",
    )
