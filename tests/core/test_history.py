"""What has happened, round by round."""

import pytest
from hypothesis import given

from bydawn.core.facts import AnyFact, RoundsBefore, TaskSettled
from bydawn.core.history import History, Totals, counted, number
from bydawn.core.loop import SpokenDialect
from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.replay import after
from bydawn.core.state import LoopState, Printed
from bydawn.core.values import End, TaskStatus
from core.facts_any import HISTORIES
from core.facts_made import BORN, a_loop, a_round, after_all, checked, ended, numbered, run_started, started, stopped


def past(*facts: AnyFact) -> History:
    return History(numbered([BORN, run_started(), *facts]))


def test_a_round_is_one_attempt_with_what_became_of_it() -> None:
    [first, second] = past(*a_round(1), checked(1), started(2)).attempts
    assert (first.round, first.counted) == (1, 1)
    assert (first.started, first.ended, first.checks) == (started(1), ended(1), checked(1))
    assert first.ended_at
    assert (first.ended_at - first.started_at).total_seconds() == 1
    assert (second.round, second.ended, second.ended_at, second.checks) == (2, None, None, None)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_round_that_does_not_count_is_tried_again_under_its_number(outcome: Outcome) -> None:
    attempts = past(*a_round(1), *a_round(2, outcome), *a_round(3)).attempts
    assert [each.round for each in attempts] == [1, 2, 3]
    assert [each.counted for each in attempts] == [1, 2, 3 if POLICY[outcome].counts else 2]


def test_checks_of_another_round_are_not_those_of_the_last() -> None:
    [only] = past(checked(0), *a_round(1), checked(0)).attempts
    assert only.checks is None
    assert past(checked(0)).attempts == []


def test_a_loop_counts_on_from_the_rounds_before_it() -> None:
    before = RoundsBefore(rounds=7)
    [only] = past(before, *a_round(8)).attempts
    assert (only.round, only.counted) == (8, 8)
    assert counted(after_all(before)) == 7
    assert counted(after_all(before, started(8))) == 8


PLAIN = a_loop()
NUMBERS_CUT = a_loop(dialect=SpokenDialect(name="other", numbers_cut=True))


def test_an_interrupted_round_uses_up_a_number_only_if_its_dialect_says_so() -> None:
    facts = [run_started(), *a_round(1), started(2), ended(2, Outcome.INTERRUPTED), run_started(), started(3), ended(3)]
    states = [after_all(*facts[:count]) for count in range(1, len(facts) + 1)]
    assert [number(PLAIN, state) for state in states] == [1, 1, 2, 2, 2, 2, 2, 3]
    assert [number(NUMBERS_CUT, state) for state in states] == [1, 1, 2, 2, 3, 3, 3, 4]
    assert [counted(state, numbers_cut=True) for state in states] == [0, 1, 1, 2, 2, 2, 3, 3]
    assert [each.counted + each.cut for each in past(*facts).attempts] == [1, 2, 3]


@pytest.mark.parametrize("outcome", [Outcome.TRANSIENT, Outcome.LIMITED, Outcome.AUTH])
def test_a_round_to_be_tried_again_keeps_its_number_until_its_run_ends(outcome: Outcome) -> None:
    """X-06: a hiccup is no round."""
    facts = [run_started(), *a_round(1), *a_round(2, outcome)]
    assert number(NUMBERS_CUT, after_all(*facts)) == 2
    assert counted(after_all(*facts, *a_round(3)), numbers_cut=True) == 2
    for end in ([], [stopped(End.FAILED)]):
        later = [*facts, *end, run_started()]
        assert number(NUMBERS_CUT, after_all(*later)) == 3
        assert number(PLAIN, after_all(*later)) == 2
        assert number(NUMBERS_CUT, after_all(*later, *end, run_started())) == 3, "a run without a round uses up none"


def test_the_previous_output_is_that_of_the_last_round_that_is_over() -> None:
    before = RoundsBefore(rounds=7, output="left by another")
    begun = after_all(before, run_started(), started(8))
    assert (begun.printed, begun.output) == (None, "left by another")
    blip = [before, run_started(), *a_round(8, Outcome.TRANSIENT, agent="claude")]
    assert (after_all(*blip).printed, after_all(*blip).output) == (None, "left by another")
    for outcome in (Outcome.OK, Outcome.INTERRUPTED, Outcome.FAILED):
        then = after_all(*blip, *a_round(9, outcome))
        assert (then.printed, then.output) == (Printed(round=9, agent="demo"), "")
        assert after_all(*blip, *a_round(9, outcome), *a_round(10, Outcome.LIMITED)).printed == then.printed
    assert after_all(*blip, run_started()).printed == Printed(round=8, agent="claude"), "nothing will try it again"


def test_a_round_is_counted_from_its_start_to_the_start_of_the_next() -> None:
    facts = [run_started(), started(1), ended(1), checked(1), started(2), ended(2, Outcome.TRANSIENT), started(3)]
    assert [counted(after_all(*facts[:count])) for count in range(1, len(facts) + 1)] == [0, 1, 1, 1, 2, 2, 2]


@given(HISTORIES)
def test_over_any_history_the_count_never_goes_down(facts: list[AnyFact]) -> None:
    state, before = LoopState(), 0
    for record in numbered(facts):
        state = after(state, record)
        assert counted(state) >= before
        before = counted(state)


@given(HISTORIES)
def test_over_any_history_numbers_that_cut_rounds_use_up_never_go_down(facts: list[AnyFact]) -> None:
    state, before = LoopState(), 0
    for record in numbered(facts):
        state = after(state, record)
        now = counted(state, numbers_cut=True)
        assert now >= before
        assert now <= number(NUMBERS_CUT, state) <= now + 1
        before = now


@given(HISTORIES)
def test_over_any_history_to_follow_it_is_the_same_as_to_read_it_afterwards(facts: list[AnyFact]) -> None:
    state, followed = LoopState(), History()
    for record in numbered(facts):
        state = after(state, record)
        followed.saw(record.fact, state)
    read = History(numbered(facts))
    assert followed.attempts == read.attempts
    assert (followed.events, followed.tasks, followed.totals) == (read.events, read.tasks, read.totals)


def test_a_resumed_loop_has_not_begun_another_round_yet() -> None:
    facts = [run_started(), *a_round(1, Outcome.DENIED), stopped(End.BLOCKED)]
    assert counted(after_all(*facts)) == 1
    assert counted(after_all(*facts, run_started())) == 1


def test_a_task_has_its_rounds_its_last_checks_and_what_happened_since() -> None:
    lost = started(3, task_id="a", fallback="the session is unknown")
    facts = [*a_round(1, task_id="a"), checked(1), *a_round(2, task_id="b"), lost, ended(3, Outcome.CRASHED)]
    known = past(*facts)
    assert {task: each.rounds for task, each in known.tasks.items()} == {"a": 2, "b": 1}
    mine = known.tasks["a"]
    assert (mine.last, mine.checks, mine.fallback) == (known.attempts[-1], checked(1), "the session is unknown")
    assert known.totals == Totals(failures=1, fallbacks=1)
    assert mine.moved is None
    aside = TaskSettled(task="a", text="A", status=TaskStatus.ASIDE, by="task-failures", reason="failed 5 times")
    then = past(*facts, aside).tasks["a"].moved
    assert then
    assert (then.status, then.by, then.reason, then.round) == (TaskStatus.ASIDE, "task-failures", "failed 5 times", 3)
    assert past(*facts, aside, started(4, task_id="a")).tasks["a"].moved is None


def test_a_run_that_forgives_frees_the_tasks_that_were_set_aside() -> None:
    facts = [TaskSettled(task=task, text=task, status=TaskStatus.ASIDE, by="x") for task in "ab"]
    done = TaskSettled(task="c", text="c", status=TaskStatus.DONE, by="x")
    events = past(*facts, done, stopped(End.BLOCKED), run_started()).events
    moves = [(event.task, event.status) for event in events if event.status]
    assert moves[:3] == [("a", TaskStatus.ASIDE), ("b", TaskStatus.ASIDE), ("c", TaskStatus.DONE)]
    assert moves[3:] == [("a", TaskStatus.OPEN), ("b", TaskStatus.OPEN)]


def test_checks_that_fail_are_counted_each_time() -> None:
    known = past(*a_round(1), checked(1, passed=False), *a_round(2), checked(2), *a_round(3), checked(3, passed=False))
    assert known.totals.red == 2
    assert past(checked(0, passed=False)).totals.red == 0, "before any work there is no one to blame"
