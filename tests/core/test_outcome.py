"""How did the turn end? What we did to the child says more than what it said."""

import pytest

from bydawn.core.outcome import POLICY, Ending, Exit, Outcome, believed, imposed

# An ending that dictates the outcome, and whether we, or the one who stopped it, give the reason.
IMPOSED = [
    (Ending.TOTAL, Outcome.HUNG, "time limit"),
    (Ending.SILENCE, Outcome.HUNG, "printed nothing for too long"),
    (Ending.FIRST_BYTE, Outcome.HUNG, "printed nothing at all"),
    (Ending.VOLUME, Outcome.FAILED, "output limit"),
    (Ending.DISK, Outcome.INTERRUPTED, "disk"),  # not the agent's fault, so it counts against nothing
    (Ending.ASKED, Outcome.INTERRUPTED, "on request"),
    (Ending.NOT_STARTED, Outcome.CONFIG, "codex: no such file"),
    (Ending.NO_RESOURCES, Outcome.TRANSIENT, "codex: no such file"),  # too many processes: may pass by itself
]
# It has said its last word, or left by itself: the agent's own reader knows.
JUDGED_BY_THE_READER = {Ending.EXIT, Ending.LINGER}


@pytest.mark.parametrize(("ending", "outcome", "says"), IMPOSED)
def test_an_end_that_we_made_dictates_the_outcome(ending: Ending, outcome: Outcome, says: str) -> None:
    verdict = imposed(Exit(ending=ending, detail="codex: no such file"))
    assert verdict is not None
    assert verdict[0] is outcome
    assert says in verdict[1]


@pytest.mark.parametrize("ending", sorted(JUDGED_BY_THE_READER))
def test_every_other_end_is_for_the_reader_to_judge(ending: Ending) -> None:
    assert imposed(Exit(ending=ending, code=0)) is None


def test_no_ending_is_forgotten() -> None:
    assert {row[0] for row in IMPOSED} | JUDGED_BY_THE_READER == set(Ending)


def test_every_outcome_has_a_policy() -> None:
    assert set(POLICY) == set(Outcome)


def test_what_stops_at_once_costs_nothing_and_what_fails_is_not_tried_again_at_once() -> None:
    for outcome, policy in POLICY.items():
        if policy.stops:
            assert not (policy.counts or policy.checks or policy.failure or policy.backs_off), outcome
        if policy.failure:
            assert policy.counts, outcome
            assert policy.backs_off, outcome


def test_exactly_a_login_and_a_configuration_stop_at_once() -> None:
    assert {outcome for outcome in Outcome if POLICY[outcome].stops} == {Outcome.AUTH, Outcome.CONFIG}


def test_exactly_hung_crashed_mute_and_failed_agents_count_as_failures() -> None:
    failures = {Outcome.HUNG, Outcome.CRASHED, Outcome.LOST_OUTPUT, Outcome.FAILED}
    assert {outcome for outcome in Outcome if POLICY[outcome].failure} == failures


def test_checks_are_run_after_every_round_that_counts_and_after_no_other() -> None:
    assert all(policy.checks == policy.counts for policy in POLICY.values())


@pytest.mark.parametrize("ending", [*Ending])
def test_an_interruption_is_believed_only_when_it_came_from_us(ending: Ending) -> None:
    """It costs nothing, so an agent that merely says so would ride for free."""
    ours = ending in {Ending.ASKED, Ending.DISK}
    assert believed(Outcome.INTERRUPTED, Exit(ending=ending)) is (Outcome.INTERRUPTED if ours else Outcome.FAILED)
    assert believed(Outcome.OK, Exit(ending=ending)) is Outcome.OK
