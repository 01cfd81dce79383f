"""A check that both fails and passes on the same work tree proves nothing, whichever came last."""

from collections.abc import Sequence

from msgspec.structs import replace

from bydawn.core.facts import Verdict
from bydawn.core.loop import Check, CommandCheck
from bydawn.core.state import LoopState


def suspects(checks: Sequence[Check], verdicts: Sequence[Verdict], state: LoopState) -> tuple[Check, ...]:
    """The checks to run once more: newly failing ones, and ones that pass although nothing changed.

    One that failed before and fails again has simply failed; running it again would waste time.
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
        return not (same_tree and before and before.flaky)  # that one stays flaky either way
    nothing_done = same_tree or not (state.last and state.last.progress)
    return before is not None and not before.passed and nothing_done


def weighed(verdicts: Sequence[Verdict], again: Sequence[Verdict], state: LoopState) -> tuple[Verdict, ...]:
    """The verdicts, corrected by what a second run of some checks showed."""
    second = {verdict.check: verdict for verdict in again}
    return tuple(_weighed(verdict, second.get(verdict.check), state) for verdict in verdicts)


def _weighed(verdict: Verdict, second: Verdict | None, state: LoopState) -> Verdict:
    before = _before(verdict, state)
    known = before is not None and before.flaky and state.verdict_tree == state.tree
    if second is not None and second.passed is not verdict.passed:
        return _flaky(verdict if not verdict.passed else second)
    # A check that both passed and failed on this work tree stays flaky until the tree changes.
    return _flaky(replace(before, seconds=verdict.seconds)) if before and known else verdict


def _flaky(red: Verdict) -> Verdict:
    return replace(red, passed=False, flaky=True, detail="flaky: failed and passed on the same work tree")


def _before(verdict: Verdict, state: LoopState) -> Verdict | None:
    return next((each for each in state.verdicts if each.check == verdict.check), None)
