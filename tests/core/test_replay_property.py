"""For any list of facts, in any order and however odd: there is one next action, and it is always the same."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from bydawn.core import completion
from bydawn.core.decide import Action, Commit, Pause, RunChecks, Settle, SettleTask, StartRound, Stop, Wait, next_action
from bydawn.core.facts import (
    ITSELF,
    AnyFact,
    CommitEnded,
    EventRecorded,
    IterationRecorded,
    LoopStopped,
    PauseRequested,
    RunStarted,
    StopRequested,
    TaskSettled,
)
from bydawn.core.loop import Loop
from bydawn.core.prompt import compose
from bydawn.core.replay import after, replay
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.values import FINISHED, End, Now
from core.facts_any import CLOCKS, FACTS, HISTORIES, LOOPS, values_of
from core.facts_made import numbered


@given(LOOPS, HISTORIES, CLOCKS)
def test_there_is_always_a_next_action_the_same_one_and_it_names_a_rule_that_exists(
    loop: Loop, facts: list[AnyFact], now: Now
) -> None:
    action = next_action(loop, replay(numbered(facts)), now)
    assert next_action(loop, replay(numbered(facts)), now) == action
    assert isinstance(action, get_args(Action))
    assert action.rule in Rule


@given(HISTORIES, st.integers(0, 12))
def test_a_beginning_and_then_the_rest_is_the_same_as_all_of_it(facts: list[AnyFact], cut: int) -> None:
    records = numbered(facts)
    assert replay(records[cut:], replay(records[:cut])) == replay(records)


@given(LOOPS, HISTORIES, CLOCKS)
def test_no_action_contradicts_what_it_was_decided_from(loop: Loop, facts: list[AnyFact], now: Now) -> None:
    state = replay(numbered(facts))
    missing = completion.missing(loop, state)
    # A person's note gets a round of its own, even if nothing else is left to do.
    work_left = missing or any(note.by != ITSELF for note in state.notes)
    match next_action(loop, state, now):
        case Settle(round=number):
            assert state.open_round is not None
            assert number == state.open_round.round
        case Stop(end=end):
            assert end not in FINISHED or not missing or state.before
        case Pause():
            assert state.pause or state.only_checks
        case Commit():
            assert state.uncommitted
            done = CommitEnded(round=state.round, elapsed=0.0)
            again = next_action(loop, replay(numbered([*facts, done])), now)
            assert not isinstance(again, Commit), "or the loop would turn on the spot"
        case RunChecks():
            assert loop.checks
            # Or once more at the end: a later round may have touched what git ignores.
            assert not state.checks_passed or (not missing and state.verdict_round < state.round)
        case SettleTask() as settled:
            assert state.tasks
            assert settled.task in state.tasks.open_ids
            fact = TaskSettled(task=settled.task, text=settled.text, status=settled.status, by=settled.rule)
            again = next_action(loop, replay(numbered([*facts, fact])), now)
            assert not isinstance(again, SettleTask), "or the loop would turn on the spot"
        case Wait(seconds=seconds):
            assert seconds > 0  # or the loop would turn on the spot
            assert work_left
        case StartRound(round=number):
            assert number == state.round + 1
            assert work_left
            assert not (state.stop or state.pause or state.obstructed or state.open_round)


@given(LOOPS, HISTORIES, FACTS, CLOCKS)
def test_once_somebody_has_asked_no_round_starts_and_nothing_waits_before_the_next_run(
    loop: Loop, facts: list[AnyFact], wanted: AnyFact, now: Now
) -> None:
    if not isinstance(wanted, StopRequested | PauseRequested):
        wanted = StopRequested(by="ada", now=False)
    later = [fact for fact in facts if not isinstance(fact, RunStarted)]
    action = next_action(loop, replay(numbered([*facts, wanted, *later])), now)
    assert not isinstance(action, StartRound | Wait)


CLAIMS = st.lists(st.one_of(values_of(EventRecorded, few=True), values_of(IterationRecorded, few=True)), max_size=4)
OF_CLAIMS = {"records", "seq", "updated_at"}


@given(LOOPS, HISTORIES, CLAIMS, CLOCKS)
def test_what_others_record_changes_no_verdict_no_checkpoint_and_no_budget(
    loop: Loop, facts: list[AnyFact], claims: list[AnyFact], now: Now
) -> None:
    """S-046: it is shown, and it can end a loop only as blocked, or as unverified where nothing could prove it."""
    before, then = replay(numbered(facts)), replay(numbered([*facts, *claims]))
    for name in {*LoopState.__struct_fields__} - OF_CLAIMS:
        assert getattr(before, name) == getattr(then, name), name
    action, was = next_action(loop, then, now), next_action(loop, before, now)
    if isinstance(action, Stop) and action != was:
        ends = {End.BLOCKED, End.LIMIT} | ({End.UNVERIFIED} if loop.recording and not loop.checks else set())
        assert action.end in ends


@given(HISTORIES)
def test_what_only_grows_never_shrinks(facts: list[AnyFact]) -> None:
    state = LoopState()
    for record in numbered(facts):
        later = after(state, record)
        for name in ("seq", "runs", "rounds", "ok_rounds"):
            assert getattr(later, name) >= getattr(state, name), name
        assert {*state.trees} <= {*later.trees}  # no history here has more than are remembered
        assert min(later.failures_in_a_row, later.blips_in_a_row, later.rounds_without_progress) >= 0
        state = later


@given(LOOPS, HISTORIES)
def test_every_history_has_a_prompt_that_can_be_written_down(loop: Loop, facts: list[AnyFact]) -> None:
    state = replay(numbered(facts))
    assert compose(loop, state, state.round + 1, "f3nc3").encode()


@given(HISTORIES)
def test_a_loop_stands_still_exactly_until_its_next_run(facts: list[AnyFact]) -> None:
    standing = False
    for fact in facts:
        standing = isinstance(fact, LoopStopped) or (standing and not isinstance(fact, RunStarted))
    assert (replay(numbered(facts)).stopped is not None) == standing
