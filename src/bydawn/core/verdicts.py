"""Does a check's verdict count, and is this the same failure as last time?

A check that both fails and passes on the same work tree proves nothing, whichever came last.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from bydawn.core.digests import sha256
from bydawn.core.loop import Check, CommandCheck
from bydawn.core.proof import Proofs, fewer_tests, many_tests
from bydawn.core.state import LoopState
from bydawn.core.text import last_part, plain, shorten
from bydawn.core.values import Counts, Verdict

SOME_FOLDER = "DIR"  # one whose name is not known
_NAMED = 60  # characters of a command in a sentence
_COMPARED = 8000  # characters of the rest, from the end

_SECONDS = r"(?:ns|[uµμ]s|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?Z\b| ?UTC\b| ?GMT\b| ?[+-]\d\d:?\d\d\b)?"
_HERE = r"(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|0\.0\.0\.0|\[::1?\])"

# What differs between runs for no reason, and its replacement. Numbers that describe the failure are kept:
# counts, line numbers, sizes and whatever an assertion compares.
_ACCIDENTS = [
    (r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?" + _ZONE + ")?", "DATE"),
    (
        rf"\b(?:[A-Z][a-z]{{2}},? )?(?:{_MONTH} {{1,2}}\d{{1,2}}|\d{{1,2}} {_MONTH})(?:,? \d{{4}})? {_CLOCK}{_ZONE}"
        r"(?: \d{4})?",
        "DATE",
    ),
    (rf"\b(?:{_MONTH} {{1,2}}\d{{1,2}},?|\d{{1,2}} {_MONTH}) \d{{4}}\b", "DATE"),
    (rf"(?<![\w:.]){_CLOCK}(?![\w:])", "TIME"),
    (rf"(?<![\w.])(?:\d{{1,6}}h ?)?(?:\d{{1,6}}m ?)?\d{{1,12}}(?:\.\d{{1,12}})? ?{_SECONDS}\b", "DURATION"),
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"(?i)\b0x[0-9a-f]{8,16}\b", "ADDRESS"),  # a shorter one is a value, not an address
    (r"(?i)\b(pid|process id)(\W{1,3})\d+", r"\1\2PID"),
    (r"(?m)(?<=\w)\[\d+\](?=:)|^\[\d{3,7}\](?=\s)|^==\d+==", "PID"),  # syslog, logs, the sanitizers
    (r"(thread '[^'\n]{0,200}' )\(\d+\)|\b(goroutine )\d+", r"\1\2ID"),
    (r"(?i)(/var/folders/[\w+]{1,40}/[\w+]{1,80}/T|/tmp|/dev/shm)/[^\s/:'\"()]+", r"\1/TMP"),
    (r"/pytest-\d+/|/pytest-current/", "/PYTEST/"),
    (r"\btmp[a-z0-9_]{8}\b|\btmp\.[A-Za-z0-9]{6,10}\b", "TMP"),  # names from Python's tempfile and from mktemp
    (rf"({_HERE}):\d{{1,5}}\b", r"\1:PORT"),
    (r"('(?:localhost|127\.0\.0\.1|::1|0\.0\.0\.0)', )\d{1,5}\b", r"\1PORT"),
    (r"(?i)(seed(?:ed)?(?: with| is| of)?[\s:='\"(]{1,3})(?:0x)?[0-9a-f]*\d[0-9a-f]*\b", r"\1SEED"),
    (r"(@reproduce_failure\()[^\n]*", r"\1BLOB"),
    (r"([=_*#~\u2500\u2501-])\1{2,}", r"\1\1\1"),  # rules are as long as the terminal is wide
    (r"(?m)^npm (?:error|ERR!) (?:A complete log|Log files were)[^\n]*(?:\nnpm (?:error|ERR!) +[/\\.~][^\n]*)?", "LOG"),
    (r"[ \t]+", " "),
    (r"(?m) $", ""),
]


def of_failure(detail: str, output: str = "") -> str:
    """A short digest of a failure: how the check ended, and the end of its output.

    >>> of_failure("exit 1", "3 failed in 0.12s") == of_failure("exit 1", "3 failed in 11.7s")
    True
    >>> of_failure("exit 1", "3 failed in 0.12s") == of_failure("exit 1", "2 failed in 0.12s")
    False
    """
    essence = f"{lasting(detail)}\n{last_part(lasting(output), _COMPARED)}"
    return sha256(essence.encode(errors="replace")).hexdigest()[:12]


def lasting(text: str) -> str:
    """A text with a placeholder for everything that changes from run to run."""
    text = plain(text)
    for pattern, instead in _ACCIDENTS:  # compiled when a check first fails, so start-up does not pay for it
        text = re.sub(pattern, instead, text)
    return text.strip()


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
    nothing_done = same_tree or not (state.last and state.last.ended.found.progress)
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


def counted(verdict: Verdict, known: Proofs, *, holds: bool, compares: bool = True) -> Verdict:
    """The verdict, with what the number of tests says about it: none ran, or fewer than before."""
    if not verdict.passed:
        return verdict
    ran = verdict.counts
    # One that passed without a word before the first round may be told to be silent.
    silent = ran is None and not verdict.uncounted and (verdict.check in known.counting or verdict.check in known.red)
    if silent and (verdict.check in known.counting or _always_counts(verdict.check)):
        ran = Counts()
    verdict = replace(verdict, counts=ran)
    if verdict.tests_nothing and verdict.check in known.tested and holds:
        return replace(verdict, passed=False, detail="no test ran", fingerprint=of_failure("no test ran"))
    first = known.first.get(verdict.check)
    if holds and ran and ran.failed and first and first.failed and verdict.check in known.red:  # which it did not hide
        detail = f"{many_tests(ran.failed)} failed, although it ends with {verdict.detail}"
        return replace(verdict, passed=False, detail=detail, fingerprint=of_failure(detail))
    fewer = fewer_tests(ran, known.counts.get(verdict.check)) if compares else ""
    return replace(verdict, fewer=fewer)


def _always_counts(command: str) -> bool:
    from bydawn.core.counts import always_counts  # its patterns take a while to compile

    return always_counts(command)


def with_all_tests(verdict: Verdict, known: Proofs) -> Verdict:
    """The verdict of a run with the tests as they were: as many have to run as before the first round."""
    before, ran = known.first.get(verdict.check), verdict.counts
    if not (verdict.passed and before and ran and ran.ran < before.ran):
        return verdict
    detail = f"{many_tests(ran.ran)} ran, {before.ran:,} before"
    return replace(verdict, passed=False, detail=detail, fingerprint=of_failure(detail))


def outside(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The checks that run outside the box, each with the folder that it needs."""
    return {verdict.check: verdict.needs for verdict in verdicts if verdict.outside}


def in_the_way(verdict: Verdict) -> str:
    """What the box does to a check that therefore runs outside."""
    check = shorten(plain(verdict.check), _NAMED)
    if not verdict.needs:
        return f"`{check}` does not work in the box"
    return f"the box does not let `{check}` write to {_a_folder(verdict.needs)}"


def _a_folder(needs: str) -> str:
    return "a folder that it needs" if needs == SOME_FOLDER else needs


def is_same(one: Verdict, other: Verdict) -> bool:
    return (one.passed, one.fingerprint) == (other.passed, other.fingerprint)


def unboxed(boxed: Verdict, free: Verdict, again: Verdict | None) -> Verdict:
    """The verdict on a check that fails in the box, does something else outside, and then was run in the box again.

    Not again if it could not write to a folder: outside it may have filled that, and the box would seem harmless.
    """
    if again is not None and again.passed:
        return _flaky(boxed)
    # A failure that is different each time says nothing about the box.
    if again is None or free.passed or is_same(boxed, again):
        return replace(free, outside=True, needs=boxed.needs)
    return boxed


def _flaky(red: Verdict) -> Verdict:
    return replace(red, passed=False, flaky=True, detail="flaky: failed and passed on the same work tree")


def _before(verdict: Verdict, state: LoopState) -> Verdict | None:
    return next((each for each in state.verdicts if each.check == verdict.check), None)
