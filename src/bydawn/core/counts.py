"""stub"""

from collections.abc import Iterable

from msgspec.structs import replace

from bydawn.core.proof import Proofs
from bydawn.core.values import Counts, Verdict
from bydawn.core.verdicts import of_failure


def of(pieces: Iterable[str]) -> Counts | None:
    return None


def always_counts(command: str) -> bool:
    return False


def weighed(verdict: Verdict, known: Proofs, *, holds: bool, compares: bool = True) -> Verdict:
    """The verdict, with what the number of tests says about it: none ran, or fewer than before."""
    before = known.most.get(verdict.check)
    ran = verdict.counts
    if verdict.passed and ran is None and (verdict.check in known.counting or always_counts(verdict.check)):
        ran = Counts()
    if ran is None or not verdict.passed:
        return replace(verdict, counts=ran)
    if not ran.ran and before and before.ran and holds:
        detail = "no test ran"
        return replace(verdict, counts=ran, passed=False, detail=detail, fingerprint=of_failure(detail))
    return replace(verdict, counts=ran, fewer=_fewer(ran, known.counts.get(verdict.check)) if compares else "")


def _fewer(now: Counts, before: Counts | None) -> str:
    """
    >>> _fewer(Counts(ran=14, skipped=2), Counts(ran=20))
    '14 tests ran, 20 before; 2 skipped, 0 before'
    """
    pairs = (("tests ran", now.ran, before.ran), ("skipped", now.skipped, before.skipped)) if before else ()
    worse = [(what, new, old) for what, new, old in pairs if (new > old if what == "skipped" else new < old)]
    return "; ".join(f"{new:,} {what}, {old:,} before" for what, new, old in worse)
