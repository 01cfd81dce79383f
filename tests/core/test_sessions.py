"""Which conversation does the next round go on with?"""

from typing import Any

import pytest

from bydawn.core.decide import StartRound, next_action
from bydawn.core.loop import Loop, Sessions
from bydawn.core.outcome import Outcome
from bydawn.core.prompt import compose
from bydawn.core.values import Usage
from core.facts_made import BORN, a_loop, after_all, at, ended, run_started, started, todo

RESUMING = a_loop(sessions=Sessions.RESUME)


def after_round(
    loop: Loop, *, outcome: Outcome = Outcome.OK, seen: str | None = "s-1", rounds: int = 1, **more: Any
) -> str | None:
    """The session of the round that comes after so many rounds of one conversation."""
    facts = [BORN, run_started(tasks=todo(3)) if loop.tasks else run_started()]
    for number in range(1, rounds + 1):
        facts.append(started(number, **more))
        facts.append(ended(number, outcome, session=seen))
    action = next_action(loop, after_all(facts), at(1000.0))
    assert isinstance(action, StartRound), action
    return action.session


def test_a_round_begins_afresh_unless_the_loop_says_otherwise() -> None:
    assert after_round(a_loop()) is None
    assert after_round(RESUMING) == "s-1"


def test_the_first_round_has_nothing_to_go_on_with() -> None:
    action = next_action(RESUMING, after_all(BORN, run_started()), at())
    assert isinstance(action, StartRound)
    assert action.session is None


@pytest.mark.parametrize(
    ("outcome", "session"),
    [
        (Outcome.OK, "s-1"),
        (Outcome.TRANSIENT, "s-1"),
        (Outcome.INTERRUPTED, "s-1"),
        (Outcome.FAILED, "s-1"),
        (Outcome.CONTEXT_FULL, None),  # it would be as full as before
        (Outcome.SESSION_LOST, None),
    ],
)
def test_a_conversation_that_is_full_or_lost_is_left(outcome: Outcome, session: str | None) -> None:
    assert after_round(RESUMING, outcome=outcome) == session


def test_after_a_crash_the_id_that_was_chosen_beforehand_still_names_it() -> None:
    assert after_round(RESUMING, outcome=Outcome.INTERRUPTED, seen=None, session="chosen") == "chosen"


def test_a_long_conversation_is_left_for_a_fresh_one() -> None:
    """W-130."""
    loop = a_loop(sessions=Sessions.RESUME, session_rounds=3)
    assert [after_round(loop, rounds=count) for count in (2, 3)] == ["s-1", None]
    assert after_round(a_loop(sessions=Sessions.RESUME, session_rounds=0), rounds=25) == "s-1"


def test_another_agent_does_not_get_the_conversation_of_the_first() -> None:
    state = after_all(BORN, run_started(), started(1), ended(1, session="s-1"))
    action = next_action(a_loop(agent="claude", sessions=Sessions.RESUME), state, at())
    assert isinstance(action, StartRound)
    assert action.session is None


def test_a_conversation_can_last_as_long_as_its_task() -> None:
    loop = a_loop(tasks="TODO.md", sessions=Sessions.PER_TASK)
    same = todo(3).next
    assert after_round(loop, task=same) == "s-1"
    assert after_round(loop, task="another task") is None


def test_the_prompt_says_whether_the_conversation_goes_on() -> None:
    state = after_all(BORN, run_started())
    assert "fresh conversation" in compose(RESUMING, state, 1, "f")
    assert "This conversation continues" in compose(RESUMING, state, 1, "f", resumed=True)


def test_the_last_words_of_a_conversation_are_handed_to_the_one_that_takes_over() -> None:
    """W-130."""
    lost = after_all(BORN, run_started(), started(1), ended(1, Outcome.CONTEXT_FULL, session="s-1", said="half way"))
    assert "half way" in compose(RESUMING, lost, 2, "f")
    assert "half way" not in compose(a_loop(), lost, 2, "f"), "who always begins afresh needs none"


def test_the_loop_adds_up_what_its_rounds_used() -> None:
    state = after_all(
        BORN,
        run_started(),
        *(fact for n in (1, 2) for fact in (started(n), ended(n, usage=Usage(tokens_in=100, cost_usd=0.5)))),
        started(3),
        ended(3),  # this one does not say
    )
    assert state.usage == Usage(tokens_in=200, cost_usd=1.0)
