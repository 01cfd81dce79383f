"""Given what the ledger says, what do we do next? Order is meaning."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bydawn.core.breakers import Limits
from bydawn.core.decide import Action, Pause, RunChecks, Settle, StartRound, Stop, Wait, next_action
from bydawn.core.facts import Fact, Obstructed, RestartsUsedUp, TasksRead
from bydawn.core.loop import Checkpoint, CommitMode, Loop, OnLimit, TaskByTask
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import Death, End, Now, ReachedMark, Restart, Usage
from core.facts_made import (
    BROKEN,
    CHECKED,
    CRASH_AND_RESTART,
    DONE,
    FOLDER,
    LISTED,
    NOON,
    PROMISE,
    PROMISED,
    PROVABLE,
    RECORDED,
    STRICT,
    a_loop,
    a_round,
    after_all,
    at,
    checked,
    held,
    idle_round,
    in_vain,
    iteration,
    limited,
    pause,
    raised,
    run_started,
    started,
    stop,
    stopped,
    todo,
)

FULL_DISK = Obstructed(kind="disk", detail="the disk is full")
RESET = NOON + timedelta(hours=5)


def decide(loop: Loop, *facts: Fact | Sequence[Fact], now: Now | None = None) -> Action:
    """After this history; a minute after noon per round, unless `now` says otherwise."""
    state = after_all(*facts)
    return next_action(loop, state, now or at(state.elapsed))


# For each rule the shortest story that leads to it: the loop, what happened, what the clocks say.
STORIES: dict[str, tuple[Loop, list[Fact], Now]] = {
    "interrupted-round": (PROMISED, [run_started(), started(1)], at()),
    "asked-to-stop": (PROMISED, [run_started(), stop()], at()),
    "asked-to-pause": (PROMISED, [run_started(), pause()], at()),
    "restarts": (PROMISED, [run_started(), RestartsUsedUp(restart=Restart(number=11, why=Death.EXITED))], at()),
    "obstructed": (PROMISED, [run_started(), FULL_DISK], at()),
    "baseline": (CHECKED, [run_started()], at()),
    "checks-due": (CHECKED, [run_started(), *a_round(1)], at(60)),
    "tampered": (PROMISED, [run_started(), *a_round(1, tampered=("tests/a.py",), **PROMISE)], at(60)),
    "task-done": (
        FOLDER,
        [run_started(tasks=todo(2)), *a_round(1, task="one", task_id="task-1", claim=DONE), checked(1)],
        at(60),
    ),
    "final-checks": (
        replace(FOLDER, by_task=TaskByTask()),
        [run_started(tasks=todo(0, 2)), *a_round(1), checked(1)],
        at(60),
    ),
    "changed-tests": (CHECKED, [run_started(), checked(0, passed=False), *a_round(1), held(1)], at(60)),
    "complete": (CHECKED, [run_started(), *a_round(1), checked(1)], at(60)),
    "task-file": (LISTED, [run_started(tasks=todo(0, problem="is gone"))], at()),
    "checkpoint": (
        a_loop(tasks="TODO.md", checkpoint=Checkpoint()),
        [run_started(tasks=todo(1, 1, reached=(ReachedMark(id="m-1", text="HARD STOP"),)))],
        at(),
    ),
    "agent-blocked": (PROMISED, [run_started(), *idle_round(1, blocked="I need a key")], at(60)),
    "task-failures": (
        limited(LISTED, task_failures=1),
        [run_started(tasks=todo(2)), *idle_round(1, task="one", task_id="task-1")],
        at(60),
    ),
    "no-task-done": (limited(LISTED, no_task_done=1), [run_started(tasks=todo(2)), *a_round(1)], at(60)),
    "still-red": (
        limited(CHECKED, no_task_done=1),
        [run_started(), checked(0), *a_round(1), checked(1, passed=False)],
        at(60),
    ),
    "same-failure": (
        limited(CHECKED, same_failure=1),
        [run_started(), checked(0), *a_round(1), checked(1, passed=False)],
        at(60),
    ),
    "check-failures": (
        limited(CHECKED, check_failures=1, same_failure=0),
        [run_started(), checked(0), *a_round(1), checked(1, passed=False)],
        at(60),
    ),
    "tasks-aside": (LISTED, [run_started(tasks=todo(2, next_=False))], at()),
    "agent-stop": (PROMISED, [run_started(), *a_round(1, Outcome.AUTH)], at(60)),
    "agent-denied": (PROMISED, [run_started(), *idle_round(1, outcome=Outcome.DENIED)], at(60)),
    "agent-failures": (limited(agent_failures=1), [run_started(), *a_round(1, Outcome.CRASHED)], at(60)),
    "cut-short": (
        PROMISED,
        [run_started(), *(fact for number in range(1, 12) for fact in a_round(number, Outcome.INTERRUPTED))],
        at(600),
    ),
    "paid-trouble": (
        PROMISED,
        [
            run_started(),
            *(fact for n in range(1, 6) for fact in a_round(n, Outcome.TRANSIENT, usage=Usage(tokens_in=1))),
        ],
        at(9_000),
    ),
    "outage": (
        PROMISED,
        [run_started(), *a_round(1, Outcome.TRANSIENT), *a_round(2, Outcome.TRANSIENT, elapsed=22_000.0)],
        at(22_000),
    ),
    "commands-failed": (
        PROMISED,
        [run_started(), *(fact for number in (1, 2, 3) for fact in idle_round(number, commands=in_vain()))],
        at(180),
    ),
    "commit-due": (a_loop(commit=CommitMode.ON), [run_started(commits=True), *a_round(1)], at(60)),
    "recorded-end": (RECORDED, [run_started(recording=True), iteration(status="blocked")], at()),
    "only-checks": (RECORDED, [stopped(End.BLOCKED), run_started(rounds_allowed=0)], at()),
    "iterations": (limited(RECORDED, iterations=1), [run_started(recording=True), iteration()], at()),
    "no-progress": (limited(no_progress=1), [run_started(), *idle_round(1)], at(60)),
    "rounds": (limited(rounds=1), [run_started(), *a_round(1)], at(60)),
    "rounds-this-run": (PROMISED, [run_started(rounds_allowed=1), *a_round(1)], at(60)),
    "time": (limited(seconds=60), [run_started(), *a_round(1)], at(60)),
    "time-this-run": (PROMISED, [run_started(seconds_allowed=60), *a_round(1)], at(60)),
    "until": (limited(until=NOON), [run_started()], at()),
    "tokens": (limited(tokens=100), [run_started(), *a_round(1, usage=Usage(tokens_in=80, tokens_out=20))], at(60)),
    "cost": (limited(usd=0.5), [run_started(), *a_round(1, usage=Usage(cost_usd=0.5))], at(60)),
    "agent-limit": (PROMISED, [run_started(), *a_round(1, Outcome.LIMITED, wait_until=RESET)], at(60)),
    "limit-stops": (
        a_loop(on_limit=OnLimit.STOP),
        [run_started(), *a_round(1, Outcome.LIMITED, wait_until=RESET)],
        at(60),
    ),
    "latest-wake": (
        limited(latest_wake=RESET - timedelta(minutes=1)),
        [run_started(), *a_round(1, Outcome.LIMITED, wait_until=RESET)],
        at(60),
    ),
    "back-off": (PROMISED, [run_started(), *a_round(1, Outcome.TRANSIENT)], at(60)),
    "pause": (a_loop(pause=5.0), [run_started(), *a_round(1)], at(60)),
    "cycle": (CHECKED, [run_started(cycle=2, rest=60.0), FULL_DISK], at(59)),  # before anything else
    "next-round": (PROMISED, [run_started()], at()),
}


def test_every_rule_has_a_story_and_every_story_a_rule() -> None:
    assert set(STORIES) == set(Rule)


@pytest.mark.parametrize("rule", STORIES)
def test_a_story_leads_to_its_rule(rule: str) -> None:
    loop, facts, now = STORIES[rule]
    assert next_action(loop, after_all(*facts), now).rule == rule


def test_what_an_agent_said_of_its_login_is_evidence_beside_our_reason() -> None:
    stop = decide(PROMISED, run_started(), a_round(1, Outcome.AUTH, detail="codex is not logged in", words="401 nope"))
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.evidence) == ("codex is not logged in", ("auth", "401 nope"))


# -- commands that fail ------------------------------------------------------------------------------------------------


def vain(*errors: str, **more: Any) -> list[Fact]:
    """Rounds that changed nothing and in which every command failed with this error."""
    rows = [idle_round(number, commands=in_vain(error), **more) for number, error in enumerate(errors, 1)]
    return [run_started(), *(fact for row in rows for fact in row)]


def test_three_rounds_in_which_every_command_failed_the_same_way_are_enough_and_the_error_is_the_reason() -> None:
    stop = decide(PROMISED, vain(BROKEN, BROKEN, BROKEN))
    assert isinstance(stop, Stop)
    assert (stop.end, stop.rule) == (End.FAILED, Rule.COMMANDS_FAILED)
    assert stop.reason == f"3 rounds in a row, every command failed: {BROKEN}"
    assert isinstance(decide(PROMISED, vain(BROKEN, BROKEN)), StartRound)


def test_another_error_a_change_a_command_that_works_and_a_round_without_commands_begin_anew() -> None:
    for between in (
        idle_round(3, commands=in_vain("make: no such target")),
        a_round(3, commands=in_vain()),
        idle_round(3, commands=in_vain(failed=1)),
        idle_round(3),
    ):
        facts = [*vain(BROKEN, BROKEN), *between, *idle_round(4, commands=in_vain())]
        assert isinstance(decide(limited(no_progress=0), facts), StartRound | Wait), between


def test_a_round_that_costs_nothing_neither_counts_nor_begins_anew() -> None:
    blip = idle_round(3, outcome=Outcome.TRANSIENT)
    assert decide(PROMISED, vain(BROKEN, BROKEN), blip, idle_round(4, commands=in_vain())).rule == Rule.COMMANDS_FAILED


def test_a_person_who_resumes_gets_three_rounds_again_and_a_crash_gives_none() -> None:
    again = [stopped(End.FAILED), run_started(), *idle_round(4, commands=in_vain())]
    assert decide(PROMISED, vain(BROKEN, BROKEN, BROKEN), again).rule == Rule.NEXT_ROUND
    restarted = [run_started(), *idle_round(3, commands=in_vain())]
    assert decide(PROMISED, vain(BROKEN, BROKEN), restarted).rule == Rule.COMMANDS_FAILED


def test_whatever_else_ends_the_loop_the_reason_names_the_error_of_its_last_round() -> None:
    told = f"every command failed: {BROKEN}"
    assert _reason(limited(no_progress=1)) == f"1 rounds in a row made no new change; most recently, {told}"
    assert _reason(limited(rounds=1)) == f"the only round is used up; most recently, {told}"
    blocked = decide(PROMISED, vain(BROKEN, blocked="I cannot run anything"))
    assert isinstance(blocked, Stop)
    assert (blocked.reason, blocked.evidence) == ("I cannot run anything", (told,))


def _reason(loop: Loop) -> str:
    stop = decide(loop, vain(BROKEN))
    assert isinstance(stop, Stop)
    return stop.reason


# -- the order of the rules ----------------------------------------------------------------------------------------


def test_a_round_that_was_left_open_is_settled_before_anything_else() -> None:
    assert decide(PROMISED, run_started(), started(3), stop(), FULL_DISK) == Settle(
        rule=Rule.INTERRUPTED_ROUND, round=3
    )


def test_stop_now_is_stronger_than_everything_that_could_still_be_done() -> None:
    finished = [run_started(), *a_round(1), checked(1)]
    assert decide(CHECKED, *finished, stop()).rule == "asked-to-stop"
    assert decide(CHECKED, run_started(), a_round(1), pause(now=True)).rule == "asked-to-pause"  # checks are due
    assert decide(PROMISED, run_started(), FULL_DISK, stop()).rule == "asked-to-stop"


def test_a_wish_that_can_wait_lets_the_checks_run_and_the_loop_finish() -> None:
    for wanted in (pause(), stop(now=False)):
        assert decide(CHECKED, run_started(), a_round(1), wanted).rule == "checks-due"
        assert decide(CHECKED, run_started(), a_round(1), wanted, checked(1)).rule == "complete"
        assert isinstance(decide(CHECKED, run_started(), a_round(1), wanted, checked(1, passed=False)), Stop | Pause)


def test_a_wish_is_stronger_than_a_breaker_a_wait_and_the_next_round() -> None:
    broke = [run_started(), *idle_round(1)]
    waits = [run_started(), *a_round(1, Outcome.TRANSIENT)]
    for wanted, rule in ((pause(), "asked-to-pause"), (stop(now=False), "asked-to-stop")):
        assert decide(limited(no_progress=1), *broke, wanted).rule == rule
        assert decide(PROMISED, *waits, wanted).rule == rule
        assert decide(PROMISED, run_started(), wanted).rule == rule


def test_who_asks_for_both_gets_the_stop() -> None:
    for wishes in ([pause(), stop(now=False)], [stop(now=False), pause(now=True)], [pause(now=True), stop()]):
        assert decide(PROMISED, run_started(), *wishes).rule == "asked-to-stop"


def test_the_answer_names_who_asked() -> None:
    assert decide(PROMISED, run_started(), stop()) == Stop(
        rule=Rule.ASKED_TO_STOP, end=End.STOPPED, reason="stopped by ada", by="ada"
    )
    assert decide(PROMISED, run_started(), pause(signal="SIGINT")) == Pause(
        rule=Rule.ASKED_TO_PAUSE, reason="paused: you pressed Ctrl-C", by="SIGINT"
    )


def test_an_obstacle_is_a_reason_not_to_run_checks_either() -> None:
    action = decide(CHECKED, run_started(), a_round(1), FULL_DISK)
    assert action == Stop(rule=Rule.OBSTRUCTED, end=End.BLOCKED, reason="the disk is full", evidence=("disk",))


LAST_ROUND = {
    "rounds": limited(CHECKED, rounds=1),
    "no-progress": limited(CHECKED, no_progress=1),
    "agent-failures": limited(CHECKED, agent_failures=1),
    "time": limited(CHECKED, seconds=1.0),
    "until": limited(CHECKED, until=NOON),
    "tokens": limited(CHECKED, tokens=1),
    "cost": limited(CHECKED, usd=0.01),
}


@pytest.mark.parametrize("breaker", LAST_ROUND)
def test_a_loop_that_finishes_on_its_last_breath_is_complete(breaker: str) -> None:
    # One round went well long ago; the last one crashes, changes nothing, and all the same the checks are green now.
    history = [run_started(), *a_round(1), checked(1, passed=False)]
    history += [*idle_round(2, tree="tree-1", outcome=Outcome.CRASHED)]
    loop = LAST_ROUND[breaker]
    assert decide(loop, *history).rule == "checks-due"
    assert decide(loop, *history, checked(2, tree="tree-1")).rule == "complete"
    assert decide(loop, *history, checked(2, tree="tree-1", passed=False)).rule != "complete"


# -- completion ----------------------------------------------------------------------------------------------------


def test_a_promise_without_passing_checks_is_not_believed() -> None:
    action = decide(STRICT, run_started(), a_round(1, tasks=todo(0, 1), **PROMISE), checked(1, passed=False))
    assert action == StartRound(rule=Rule.NEXT_ROUND, round=2, agent="demo")


def test_a_finished_loop_says_what_proves_it() -> None:
    action = decide(STRICT, run_started(), a_round(1, tasks=todo(0, 3), **PROMISE), checked(1))
    assert action == Stop(
        rule=Rule.COMPLETE,
        end=End.COMPLETE,
        reason="tasks and checks and promise",
        evidence=("TODO.md: 3 of 3 tasks done", "make test: passed", "the promise was given in round 1"),
    )


def test_without_checks_the_good_end_is_called_unverified() -> None:
    action = decide(PROMISED, run_started(), a_round(1, **PROMISE))
    assert isinstance(action, Stop)
    assert action.end is End.UNVERIFIED


def test_a_proven_tree_is_not_proven_again() -> None:
    history = [run_started(tasks=todo(1)), *a_round(1), checked(1), *idle_round(2, tree="tree-1")]
    assert decide(STRICT, *history).rule == "next-round"
    assert decide(STRICT, *history, a_round(3)).rule == "checks-due"


def test_a_check_that_failed_is_asked_again_after_each_round_even_on_the_same_tree() -> None:
    history = [run_started(), *a_round(1), checked(1, passed=False)]
    assert decide(CHECKED, *history).rule == "next-round"  # but not twice after one round
    assert decide(CHECKED, *history, idle_round(2, tree="tree-1")).rule == "checks-due"
    assert decide(CHECKED, *history, idle_round(2, tree="tree-1"), checked(2, tree="tree-1")).rule == "complete"


def test_a_tree_that_a_person_repaired_is_checked_before_the_agent_is_asked_again() -> None:
    red = [run_started(), *a_round(1, **PROMISE), checked(1, passed=False), stopped(End.LIMIT)]
    assert decide(CHECKED, *red, run_started("repaired")) == RunChecks(rule=Rule.CHECKS_DUE, round=1)
    assert decide(CHECKED, *red, run_started("repaired"), checked(1, tree="repaired")).rule == "complete"


def test_a_loop_whose_list_is_done_at_the_start_runs_its_checks_and_no_round() -> None:
    all_done = run_started(tasks=todo(0, done=3))
    assert decide(PROVABLE, all_done) == RunChecks(rule=Rule.BASELINE, round=0)
    assert decide(PROVABLE, all_done, checked(0)).rule == "complete"
    assert decide(PROVABLE, all_done, checked(0, passed=False)) == StartRound(
        rule=Rule.NEXT_ROUND, round=1, agent="demo"
    )
    assert decide(LISTED, all_done).rule == "complete"
    assert decide(STRICT, all_done, checked(0)).rule == "next-round"  # nobody has given the promise yet


def test_checks_that_are_green_before_anybody_worked_prove_nothing() -> None:
    assert decide(CHECKED, run_started(), checked(0)) == StartRound(rule=Rule.NEXT_ROUND, round=1, agent="demo")
    crashed = [run_started(), *a_round(1, Outcome.CRASHED), checked(1)]
    assert decide(CHECKED, *crashed, now=at(999)).rule == "next-round"


def test_a_box_that_a_person_ticks_between_two_rounds_can_end_the_loop() -> None:
    history = [run_started(tasks=todo(2)), *a_round(1, tasks=todo(1, 1)), TasksRead(tasks=todo(0, 2), tree="edited")]
    assert decide(LISTED, *history).rule == "complete"
    assert decide(PROVABLE, *history).rule == "checks-due"


@pytest.mark.parametrize("problem", ["is gone", "lost 1 open task: vanished without being ticked"])
def test_a_list_with_a_problem_is_never_an_empty_list(problem: str) -> None:
    action = decide(LISTED, run_started(tasks=todo(1)), a_round(1, tasks=todo(0, 1, problem)))
    assert action == Stop(rule=Rule.TASK_FILE, end=End.BLOCKED, reason=f"TODO.md {problem}")


def test_the_next_round_takes_the_next_number_and_the_next_task() -> None:
    history = [run_started(tasks=todo(2)), *a_round(1, Outcome.INTERRUPTED), CRASH_AND_RESTART(tasks=todo(2))]
    assert decide(LISTED, *history) == StartRound(
        rule=Rule.NEXT_ROUND, round=2, agent="demo", task="task-1", task_id="task-1"
    )


# -- a run after each end ------------------------------------------------------------------------------------------

GOES_ON = [End.BLOCKED, End.CHECKPOINT, End.FAILED, End.PAUSED, End.STOPPED, End.LIMIT]


@pytest.mark.parametrize("end", GOES_ON)
def test_a_loop_that_stood_still_goes_on_with_the_next_round(end: End) -> None:
    troubled = [run_started(), *idle_round(1, outcome=Outcome.CRASHED), stop(), stopped(end, elapsed=99.0)]
    assert decide(limited(agent_failures=1, no_progress=1), *troubled, run_started()) == StartRound(
        rule=Rule.NEXT_ROUND, round=2, agent="demo"
    )


@pytest.mark.parametrize("outcome", [*Outcome])
def test_whatever_an_outcome_ended_a_person_can_resume(outcome: Outcome) -> None:
    strictest = limited(agent_failures=1, no_progress=1)
    resumed = [run_started(), *idle_round(1, outcome=outcome), stopped(End.FAILED, elapsed=9999.0), run_started()]
    assert decide(strictest, *resumed).rule == "next-round"


def test_a_complete_loop_that_is_run_again_is_complete_again_for_nothing() -> None:
    complete = [run_started(), *a_round(1), checked(1), stopped(End.COMPLETE)]
    assert decide(CHECKED, *complete, run_started("tree-1")).rule == "complete"
    assert decide(CHECKED, *complete, run_started("edited")).rule == "checks-due"


def test_a_used_up_budget_stays_used_up_until_it_is_raised() -> None:
    used_up = [run_started(), *a_round(1), stopped(End.LIMIT)]
    assert decide(limited(rounds=1), *used_up, run_started()).rule == "rounds"
    assert decide(limited(rounds=1), *used_up, raised(rounds=2), run_started()).rule == "next-round"


def test_a_crash_is_no_way_around_a_breaker() -> None:
    tripped = [run_started(), *idle_round(1), CRASH_AND_RESTART()]
    assert decide(limited(no_progress=1), *tripped).rule == "no-progress"
    assert decide(PROMISED, run_started(), a_round(1, Outcome.AUTH), CRASH_AND_RESTART()).rule == "agent-stop"


def test_auth_and_config_stop_at_once_and_say_why() -> None:
    for outcome in (Outcome.AUTH, Outcome.CONFIG):
        action = decide(PROMISED, run_started(), a_round(1, outcome, detail="run `codex login`"))
        assert action == Stop(
            rule=Rule.AGENT_STOP, end=End.FAILED, reason="run `codex login`", evidence=(outcome.value,)
        )


def test_a_refusal_stops_the_loop_only_where_it_kept_the_round_from_getting_anywhere() -> None:
    assert decide(PROMISED, run_started(), a_round(1, Outcome.DENIED)).rule == "next-round"
    action = decide(PROMISED, run_started(), idle_round(1, outcome=Outcome.DENIED, detail="may not write"))
    assert action == Stop(rule=Rule.AGENT_DENIED, end=End.BLOCKED, reason="may not write")


@pytest.mark.parametrize(("rounds", "words"), [(1, "the only round is used up"), (2, "all 2 rounds are used up")])
def test_a_limit_of_rounds_is_told_in_words_that_fit(rounds: int, words: str) -> None:
    action = decide(a_loop(limits=Limits(rounds=rounds)), run_started(), *(a_round(n) for n in range(1, rounds + 1)))
    assert isinstance(action, Stop)
    assert (action.rule, action.reason) == ("rounds", words)


def test_one_more_run_of_one_round_ends_after_one_that_counts() -> None:
    once = [run_started(rounds_allowed=1), *a_round(1, Outcome.TRANSIENT)]
    assert isinstance(decide(PROMISED, *once), Wait)
    action = decide(PROMISED, *once, a_round(2))
    assert isinstance(action, Stop)
    assert (action.rule, action.end, action.reason) == ("rounds-this-run", End.LIMIT, "this run was allowed 1 round")
