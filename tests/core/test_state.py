"""What a history amounts to: what counts, what is remembered, what is forgiven, and by whom."""

from types import GenericAlias

import msgspec
import pytest

from bydawn.core import progress
from bydawn.core.breakers import Limits
from bydawn.core.facts import ChecksEnded, Fact, LedgerRepaired, MachineSlept, Obstructed, TasksRead, WaitStarted
from bydawn.core.outcome import Outcome
from bydawn.core.replay import RECENT, replay
from bydawn.core.state import KNOWN_TREES, known_as, shape_of
from bydawn.core.values import End, Promised
from core.facts_made import (
    CRASH_AND_RESTART,
    NOON,
    PROMISE,
    a_note,
    a_round,
    after_all,
    checked,
    decided,
    ended,
    idle_round,
    numbered,
    pause,
    raised,
    run_started,
    started,
    stop,
    stopped,
    todo,
)

# outcome, and what a round without progress adds to: rounds, failures in a row, rounds without progress
WHAT_COUNTS = [
    (Outcome.OK, 1, 0, 1),
    (Outcome.CONTEXT_FULL, 1, 0, 1),
    (Outcome.DENIED, 1, 0, 1),
    (Outcome.TURN_LIMIT, 1, 0, 1),
    (Outcome.HUNG, 1, 1, 1),
    (Outcome.CRASHED, 1, 1, 1),
    (Outcome.LOST_OUTPUT, 1, 1, 1),
    (Outcome.FAILED, 1, 1, 1),
    # The network, the provider and the power cut say nothing about the goal.
    (Outcome.TRANSIENT, 0, 0, 0),
    (Outcome.LIMITED, 0, 0, 0),
    (Outcome.INTERRUPTED, 0, 0, 0),
    (Outcome.SESSION_LOST, 0, 0, 0),
    # These stop the loop at once, so there is nothing to count.
    (Outcome.AUTH, 0, 0, 0),
    (Outcome.CONFIG, 0, 0, 0),
]


def test_the_table_of_what_counts_has_a_row_for_every_outcome() -> None:
    assert {row[0] for row in WHAT_COUNTS} == set(Outcome)


@pytest.mark.parametrize(("outcome", "rounds", "failures", "stalls"), WHAT_COUNTS)
def test_an_outcome_counts_against_what_it_says_something_about(
    outcome: Outcome, rounds: int, failures: int, stalls: int
) -> None:
    state = after_all(run_started(), idle_round(1, outcome=outcome))
    assert (state.rounds, state.failures_in_a_row, state.rounds_without_progress) == (rounds, failures, stalls)
    assert state.rounds_this_run == rounds
    assert state.round == 1  # its number is used up all the same


FREE = [row[0] for row in WHAT_COUNTS if row[1] == 0]


@pytest.mark.parametrize("outcome", FREE)
def test_what_counts_for_nothing_breaks_no_row_of_failures_either(outcome: Outcome) -> None:
    failing = [*idle_round(1, outcome=Outcome.CRASHED), *idle_round(2, outcome=Outcome.HUNG)]
    state = after_all(run_started(), failing, a_round(3, outcome))
    assert (state.failures_in_a_row, state.rounds_without_progress) == (2, 2)


def test_a_round_that_went_well_breaks_a_row_of_failures_and_progress_one_of_stalls() -> None:
    state = after_all(run_started(), idle_round(1, outcome=Outcome.CRASHED), idle_round(2))
    assert (state.failures_in_a_row, state.rounds_without_progress) == (0, 2)
    state = after_all(run_started(), idle_round(1, outcome=Outcome.CRASHED), a_round(2, Outcome.CRASHED))
    assert (state.failures_in_a_row, state.rounds_without_progress) == (2, 0)


def test_blips_in_a_row_outlast_an_interruption_and_end_with_anything_else() -> None:
    blips = [*a_round(1, Outcome.TRANSIENT), *a_round(2, Outcome.LIMITED), *a_round(3, Outcome.INTERRUPTED)]
    assert after_all(run_started(), blips).blips_in_a_row == 2
    assert after_all(run_started(), blips, a_round(4)).blips_in_a_row == 0


@pytest.mark.parametrize("end", [*End])
def test_a_start_after_a_recorded_stop_is_a_fresh_chance(end: End) -> None:
    troubled = [run_started(), *idle_round(1, outcome=Outcome.CRASHED), stopped(end)]
    state = after_all(*troubled, run_started())
    assert (state.failures_in_a_row, state.rounds_without_progress) == (0, 0)
    assert state.rounds == 1  # the budget is not given back


def test_a_start_after_a_crash_forgives_nothing() -> None:
    state = after_all(run_started(), idle_round(1, outcome=Outcome.CRASHED), CRASH_AND_RESTART())
    assert (state.failures_in_a_row, state.rounds_without_progress, state.rounds) == (1, 1, 1)


def test_a_login_that_had_expired_is_forgiven_when_a_person_resumes_and_not_after_a_crash() -> None:
    locked_out = [run_started(), *a_round(1, Outcome.AUTH)]
    resumed, crashed = after_all(*locked_out, stopped(End.FAILED), run_started()), after_all(*locked_out, run_started())
    assert resumed.last is not None
    assert crashed.last is not None
    assert (resumed.last.ended.outcome, crashed.last.ended.outcome) == (Outcome.INTERRUPTED, Outcome.AUTH)


def test_a_new_run_starts_without_the_wishes_and_the_hindrances_of_the_one_before() -> None:
    wait = WaitStarted(seconds=60, reason="502", decided=decided("back-off"))
    hindered = [run_started(), pause(), stop(), Obstructed(kind="disk", detail="full"), wait]
    state = after_all(*hindered, stopped(End.BLOCKED), run_started(rounds_allowed=1))
    assert (state.pause, state.stop, state.obstructed, state.waiting, state.stopped) == (None,) * 5
    assert (state.runs, state.rounds_allowed, state.rounds_this_run) == (2, 1, 0)


def test_a_run_that_died_while_it_waited_leaves_no_wait_behind() -> None:
    wait = WaitStarted(seconds=60, reason="502", decided=decided("back-off"))
    assert after_all(run_started(), a_round(1, Outcome.TRANSIENT), wait, CRASH_AND_RESTART()).waiting is None
    assert after_all(run_started(), a_round(1, Outcome.TRANSIENT), wait, started(2)).waiting is None


def test_what_a_run_was_allowed_ends_with_it() -> None:
    assert after_all(run_started(rounds_allowed=1), a_round(1), run_started()).rounds_allowed is None


def test_a_stop_without_now_lets_the_round_finish() -> None:
    assert not after_all(run_started(), pause(), stop(now=False)).stop_now
    assert after_all(run_started(), pause(now=True)).stop_now
    assert after_all(run_started(), stop()).stop_now
    assert after_all(run_started(), pause(now=True), stop(now=False)).stop_now  # the firmer of two wishes


def test_a_round_takes_along_the_notes_it_names_and_leaves_those_that_came_later() -> None:
    told = [run_started(), a_note("n-1"), a_note("n-2"), started(1, notes=("n-1",)), a_note("n-3")]
    assert [note.note for note in after_all(*told).notes] == ["n-2", "n-3"]


@pytest.mark.parametrize("outcome", [Outcome.TRANSIENT, Outcome.LIMITED, Outcome.INTERRUPTED, Outcome.AUTH])
def test_a_note_in_a_round_that_never_really_was_waits_for_the_next_prompt(outcome: Outcome) -> None:
    told = [run_started(), a_note("n-1"), started(1, notes=("n-1",)), a_note("n-2"), ended(1, outcome)]
    assert [note.note for note in after_all(*told).notes] == ["n-1", "n-2"]


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.CRASHED, Outcome.TURN_LIMIT])
def test_a_note_in_a_round_that_counts_has_been_heard(outcome: Outcome) -> None:
    assert after_all(run_started(), a_note("n-1"), started(1, notes=("n-1",)), ended(1, outcome)).notes == ()


def test_notes_told_while_the_loop_stands_still_are_there_when_it_goes_on() -> None:
    assert len(after_all(run_started(), stopped(End.PAUSED), a_note("n-1"), run_started()).notes) == 1


def test_a_proof_holds_for_the_tree_it_ran_on_and_for_no_other() -> None:
    proven = [run_started(), *a_round(1), checked(1)]
    assert after_all(*proven).checks_passed
    assert after_all(*proven, idle_round(2, tree="tree-1")).checks_passed
    assert not after_all(*proven, a_round(2)).checks_passed
    assert not after_all(*proven, stopped(End.PAUSED), run_started("edited-by-hand")).checks_passed
    assert not after_all(run_started(), a_round(1), checked(1, passed=False)).checks_passed


def test_no_verdict_at_all_proves_nothing() -> None:
    silent = ChecksEnded(round=1, tree="tree-1", verdicts=(), elapsed=60.0)
    assert not after_all(run_started(), a_round(1), silent).checks_passed


@pytest.mark.parametrize("interruption", [[], [stop(), stopped(End.STOPPED)]], ids=["crash", "stop"])
def test_checks_that_were_due_are_still_due_in_the_next_run(interruption: list[Fact]) -> None:
    state = after_all(run_started(), a_round(1), *interruption, run_started("tree-1"))
    assert state.awaiting_checks


def test_a_round_that_a_blip_ended_makes_no_checks_due() -> None:
    assert not after_all(run_started(), a_round(1, Outcome.TRANSIENT)).awaiting_checks
    assert after_all(run_started(), a_round(1, Outcome.CRASHED)).awaiting_checks


def test_a_promise_is_that_of_the_last_round_only() -> None:
    assert after_all(run_started(), a_round(1, **PROMISE)).promise_given
    assert not after_all(run_started(), a_round(1, promise=Promised.MENTIONED)).promise_given
    assert not after_all(run_started(), a_round(1, **PROMISE), a_round(2)).promise_given


def test_a_list_that_was_not_read_is_still_the_list_that_was_read_last() -> None:
    known = [run_started(tasks=todo(2)), *a_round(1, tasks=todo(1, done=1), closed=("task-1",))]
    assert after_all(*known, a_round(2)).tasks == todo(1, done=1)
    assert after_all(*known, TasksRead(tasks=todo(0, done=2), tree="t")).tasks == todo(0, done=2)


def test_a_task_that_is_closed_twice_was_closed_once() -> None:
    rounds = [fact for number in (1, 2, 3) for fact in a_round(number, closed=("write the tests",))]
    assert len(after_all(run_started(), rounds, a_round(4, closed=("and the docs",))).closed) == 2


def test_a_list_that_a_person_edited_comes_with_the_tree_it_stands_in() -> None:
    proven = [run_started(tasks=todo(1)), *a_round(1), checked(1)]
    edited = after_all(*proven, TasksRead(tasks=todo(0, done=1), tree="edited"))
    assert not edited.checks_passed  # whatever else was edited, no check has seen it
    assert "edited" in edited.trees  # and it is not the agent's progress


def test_a_tree_is_remembered_once_under_its_short_name() -> None:
    long = "0123456789abcdef" + "f" * 24
    state = after_all(run_started(long), idle_round(1, tree=long), a_round(2, tree="other"))
    assert state.trees == (known_as(long), "tree-0", "other")  # in the order in which they were last seen
    assert known_as(long + "+nested") == "0123456789abcdef+nested"  # a nested repository is part of the fingerprint


def test_a_night_of_new_trees_does_not_make_every_fact_dearer() -> None:
    """Replay is linear: nothing that each fact copies grows with the number of rounds."""
    rounds = [a_round(number, tree=f"new-{number}", closed=("one task",)) for number in range(1, 3 * KNOWN_TREES)]
    state = after_all(run_started(), *rounds)
    assert len(state.trees) == KNOWN_TREES
    later = replay(numbered(a_round(1000)), state)
    assert later.closed is state.closed  # nothing to add, nothing copied
    assert later.flaky is state.flaky


def test_a_tree_that_is_seen_again_and_again_is_not_forgotten() -> None:
    turns = [("home" if number % 2 else f"new-{number}") for number in range(1, 4 * KNOWN_TREES)]
    state = after_all(run_started(), *(a_round(number, tree=tree) for number, tree in enumerate(turns, 1)))
    assert not progress.made(state, "home", ())


def test_a_tree_nobody_looked_at_is_no_tree() -> None:
    assert after_all(run_started("")).trees == ()


def test_working_time_only_grows_with_a_new_run() -> None:
    assert after_all(run_started(), a_round(1, elapsed=500.0), run_started(elapsed=3.0)).elapsed == 500.0
    assert after_all(run_started(), a_round(1, elapsed=500.0), run_started(elapsed=501.0)).elapsed == 501.0


def test_the_checks_belong_to_the_length_of_their_round() -> None:
    state = after_all(run_started(), a_round(1, seconds=60.0), checked(1, seconds=9.0), a_round(2, seconds=30.0))
    assert state.recent_seconds == (69.0, 30.0)
    assert after_all(run_started(), checked(0, seconds=9.0)).recent_seconds == ()  # there is no round they belong to


def test_an_estimate_looks_back_on_the_last_rounds_and_on_no_blips() -> None:
    many = [fact for number in range(1, 15) for fact in a_round(number, seconds=float(number))]
    state = after_all(run_started(), many, a_round(15, Outcome.TRANSIENT, seconds=0.1))
    assert state.recent_seconds == tuple(float(number) for number in range(5, 15))
    assert len(state.recent_seconds) == RECENT


def test_raised_limits_outlive_every_restart() -> None:
    state = after_all(run_started(), stopped(End.LIMIT), raised(rounds=50), run_started(), CRASH_AND_RESTART())
    assert state.raised == Limits(rounds=50)


def test_repairs_and_sleep_change_nothing_but_the_place_in_the_ledger() -> None:
    before = after_all(run_started(), a_round(1))
    later = after_all(run_started(), a_round(1), LedgerRepaired(cut_bytes=9, kept_in="x"), MachineSlept(seconds=9.0))
    assert (later.seq, later.updated_at) == (before.seq + 2, later.updated_at)
    assert {name for name in before.__struct_fields__ if getattr(before, name) != getattr(later, name)} == {
        "seq",
        "updated_at",
    }


def test_the_state_says_when_it_was_born_and_when_it_changed() -> None:
    state = after_all(run_started())
    assert state.created_at is not None
    assert state.updated_at is not None
    assert ((state.created_at - NOON).seconds, (state.updated_at - NOON).seconds, state.seq) == (1, 2, 2)


def test_the_shape_of_a_struct_is_another_when_a_part_of_it_has_another_field() -> None:
    def outer(*fields: tuple[str, type]) -> type[msgspec.Struct]:
        inner = msgspec.defstruct("Inner", fields)
        return msgspec.defstruct("Outer", [("parts", GenericAlias(tuple, (inner, ...)))])

    assert shape_of(outer(("count", int))) == shape_of(outer(("count", int)))
    assert shape_of(outer(("count", int))) != shape_of(outer(("count", float)))
    assert shape_of(outer(("count", int))) != shape_of(outer(("count", int), ("name", str)))
