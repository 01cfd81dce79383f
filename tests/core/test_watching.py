"""A process of a loop died: is it started again, and when is that enough? And figures over all runs."""

import pytest
from msgspec.structs import replace

from bydawn.core.facts import RestartsUsedUp
from bydawn.core.outcome import Outcome
from bydawn.core.state import Lifetime
from bydawn.core.values import MOST_RESTARTS, Death, End, Restart
from bydawn.core.watching import is_too_many, next_restart
from core.facts_made import a_round, after_all, decided, run_started, stopped


def test_the_eleventh_death_in_a_row_is_the_last() -> None:
    """C-066: ten restarts, and no more."""
    last: Restart | None = None
    for number in range(1, MOST_RESTARTS + 1):
        last = next_restart(last, Death.EXITED, -9, lived=2.0)
        assert (last.number, is_too_many(last)) == (number, False)
    last = next_restart(last, Death.HUNG, None, lived=400.0)
    assert is_too_many(last)
    assert last.given_up == "its process died 11 times in a row; the last time it gave no sign of life for 5 minutes"


@pytest.mark.parametrize(("lived", "number"), [(3599.0, 8), (3600.0, 1)])
def test_a_process_that_ran_for_an_hour_starts_a_new_count(lived: float, number: int) -> None:
    """A machine that is switched off every evening is no reason to give up after ten days."""
    assert next_restart(Restart(number=7, why=Death.FOUND), Death.FOUND, None, lived).number == number


@pytest.mark.parametrize(
    ("restart", "words"),
    [
        (Restart(number=1, why=Death.EXITED, exit_code=-9), "it was killed (signal 9)"),
        (Restart(number=1, why=Death.EXITED, exit_code=1), "it exited with 1"),
        (Restart(number=1, why=Death.FOUND), "it was gone, and no one saw how it ended"),
    ],
)
def test_how_a_process_died_in_words(restart: Restart, words: str) -> None:
    assert restart.words == words


def test_a_person_who_resumes_a_loop_that_was_given_up_starts_a_new_count() -> None:
    restart = Restart(number=11, why=Death.EXITED, exit_code=-9)
    state = after_all(run_started(), RestartsUsedUp(restart=restart), stopped(End.BLOCKED), run_started())
    assert (state.given_up, state.restart) == (None, None)


def test_figures_over_all_runs() -> None:
    """W-100, W-101: ends, interruptions by a person, resumes and whether they worked, without reading it all."""
    died = run_started(restart=Restart(number=1, why=Death.FOUND))
    blocked = replace(stopped(End.BLOCKED), decided=decided("no-progress"))
    begun = [run_started(), *a_round(1), blocked]
    assert after_all(*begun).lifetime == Lifetime(ends={"blocked": 1}, rules={"no-progress": 1})
    in_vain = [*begun, died, *a_round(2, Outcome.INTERRUPTED)]
    assert after_all(*in_vain).lifetime == Lifetime(
        ends={"blocked": 1}, rules={"no-progress": 1}, restarts=1, resumes=1, waits=True
    )
    done = after_all(*in_vain, run_started(), *a_round(3), *a_round(4), stopped(End.COMPLETE)).lifetime
    assert (done.resumes, done.resumed, done.restarts, done.interruptions) == (2, 1, 1, 1)
    assert done.ends == {"blocked": 1, "complete": 1}


def test_a_cycle_that_begins_by_itself_interrupts_no_one() -> None:
    facts = [run_started(cycle=1), stopped(End.LIMIT), run_started(cycle=2), *a_round(1), stopped(End.COMPLETE)]
    found = after_all(*facts).lifetime
    assert (found.interruptions, found.resumes, found.ends) == (0, 0, {"limit": 1, "complete": 1})
