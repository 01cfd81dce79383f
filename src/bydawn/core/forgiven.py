"""What a loop is forgiven when it goes on after a stop."""

from msgspec.structs import replace

from bydawn.core.outcome import POLICY, Outcome
from bydawn.core.rules import Rule
from bydawn.core.state import FreeTurns, LastRound, LoopState


def forgiven(state: LoopState, *, keeps_aside: bool = False) -> LoopState:
    """The state a run begins with. Only a start after a recorded stop is a fresh chance (by a person or the host).

    `keeps_aside`: not for tasks that were set aside.
    """
    if state.stopped is None:
        return state  # a crash resets nothing
    # Recorded iterations are counted over all runs; only for who goes on although nothing new came, it begins again.
    keeps = state.recording and state.stopped.decided.rule != Rule.NO_PROGRESS
    return replace(
        state,
        failures_in_a_row=0,
        free=FreeTurns(),
        check_failures_in_a_row=0,
        same_failure=0,
        vain_rounds=0,
        rounds_without_progress=state.rounds_without_progress if keeps else 0,
        rounds_without_result=0,
        gave_up=False,
        tallies=tuple(replace(tally, failures=0, before=0, reopened=0) for tally in state.tallies),
        settled=state.settled if keeps_aside else replace(state.settled, aside=()),
        last=_forgiven(state.last),
        limited=(),  # a person who resumes may know better; if not, the cool-downs that all loops share will say so
    )


def _forgiven(last: LastRound | None) -> LastRound | None:
    """What stopped the loop at once (not logged in, BLOCKED) must not stop it again after a person resumed it."""
    if last is None:
        return None
    last = replace(last, blocked="", tampered=())
    if not (POLICY[last.outcome].stops or POLICY[last.outcome].stops_idle):
        return last
    return replace(last, outcome=Outcome.INTERRUPTED)
