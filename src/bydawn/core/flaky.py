"""A check that is red and green on the same tree proves nothing, whichever of the two came last."""

from collections.abc import Sequence

from msgspec.structs import replace

from bydawn.core.loop import Check, CommandCheck
from bydawn.core.state import LoopState
from bydawn.core.values import Verdict


def suspects(checks: Sequence[Check], verdicts: Sequence[Verdict], state: LoopState) -> tuple[Check, ...]:
    """The checks to run once more: newly red ones, and those that are green where nothing explains it.

    One that was red before and is red again is just red; that would only cost time.
    """
    return tuple(
        check
        for check, verdict in zip(checks, verdicts, strict=True)
        if isinstance(check, CommandCheck) and not verdict.timed_out and _changed(verdict, state)
    )


def _changed(verdict: Verdict, state: LoopState) -> bool:
    before, same_tree = _before(verdict, state), state.verdict_tree == state.tree
    if not verdict.passed:
        return before is None or before.passed
    if verdict.check in state.flaky:
        return not (same_tree and before and before.flaky)  # that one stays doubtful in any case
    nothing_done = same_tree or not (state.last and state.last.progress)
    return before is not None and not before.passed and nothing_done


def weighed(verdicts: Sequence[Verdict], again: Sequence[Verdict], state: LoopState) -> tuple[Verdict, ...]:
    """The verdicts, with what running some of them again says about them."""
    second = {verdict.check: verdict for verdict in again}
    return tuple(_weighed(verdict, second.get(verdict.check), state) for verdict in verdicts)


def _weighed(verdict: Verdict, second: Verdict | None, state: LoopState) -> Verdict:
    before = _before(verdict, state)
    known = before is not None and before.flaky and state.verdict_tree == state.tree
    if second is not None and second.passed is not verdict.passed:
        return _flaky(verdict if not verdict.passed else second)
    # What was seen in both colours on this tree stays doubtful until the tree changes.
    return _flaky(replace(before, seconds=verdict.seconds)) if before and known else verdict


def _flaky(red: Verdict) -> Verdict:
    return replace(red, passed=False, flaky=True, detail="flaky: red and green on the same tree")


def _before(verdict: Verdict, state: LoopState) -> Verdict | None:
    return next((each for each in state.verdicts if each.check == verdict.check), None)
