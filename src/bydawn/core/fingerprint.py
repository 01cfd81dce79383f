"""Is this the same failure as last time? A digest that ignores times, addresses and temporary names."""

import hashlib
import re

from bydawn.core.text import last_part, plain

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
    (r"[ \t]+", " "),
    (r"(?m) $", ""),
]


def of_failure(detail: str, output: str = "") -> str:
    """A short digest of a failure: how the check ended, and the end of its output.

    >>> of("exit 1", "3 failed in 0.12s") == of("exit 1", "3 failed in 11.7s")
    True
    >>> of("exit 1", "3 failed in 0.12s") == of("exit 1", "2 failed in 0.12s")
    False
    """
    essence = f"{lasting(detail)}\n{last_part(lasting(output), _COMPARED)}"
    return hashlib.sha256(essence.encode(errors="replace")).hexdigest()[:12]


def lasting(text: str) -> str:
    """A text with a placeholder for everything that changes from run to run."""
    text = plain(text)
    for pattern, instead in _ACCIDENTS:  # compiled when a check first fails, so start-up does not pay for it
        text = re.sub(pattern, instead, text)
    return text.strip()
