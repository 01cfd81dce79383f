"""Match a person's regular expression in a child with a time limit."""

import signal
import sys

from bydawn.core.promise import TooSlow
from bydawn.core.text import shorten

# The limit is CPU time, or patterns would seem slow whenever the machine is busy.
_MATCHER = (
    "import re, signal, sys; signal.setitimer(signal.ITIMER_PROF, {seconds}); "
    "sys.exit(not re.fullmatch(sys.argv[1], sys.argv[2]))"
)


def full_match(pattern: str, text: str, seconds: float = 2) -> bool:
    """A person's pattern may take forever (29 characters took 28 s), so it runs in a child with a limit.

    Raises `TooSlow`: answering no would leave the loop waiting for a promise that may have been given.
    """
    import subprocess

    child = [sys.executable, "-I", "-S", "-c", _MATCHER.format(seconds=seconds), pattern, text]
    try:
        code = subprocess.run(child, timeout=30 * seconds, stdin=subprocess.DEVNULL, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        code = -signal.SIGPROF
    if code == -signal.SIGPROF:
        raise TooSlow(
            f"the pattern {shorten(pattern, 100)} took more than {seconds:g} seconds on a line of the reply, so bydawn "
            "cannot tell whether that was the promise; start a new loop with a simpler pattern"
        )
    return code == 0
