"""A person's regular expression, tried in a child with a time limit."""

import signal
import sys

from bydawn.core.promise import TooSlow
from bydawn.core.text import shorten

# The limit is one of computing, or a pattern would be slow wherever the machine is busy.
_MATCHER = (
    "import re, signal, sys; signal.setitimer(signal.ITIMER_PROF, {seconds}); "
    "sys.exit(not re.fullmatch(sys.argv[1], sys.argv[2]))"
)


def full_match(pattern: str, text: str, seconds: float = 2) -> bool:
    """A person's pattern may need for ever (29 characters took 28 s), so it runs in a child with a limit.

    Raises `TooSlow`: to say no would leave the loop waiting for a promise that may have been given.
    """
    import subprocess

    child = [sys.executable, "-I", "-S", "-c", _MATCHER.format(seconds=seconds), pattern, text]
    try:
        code = subprocess.run(child, timeout=30 * seconds, stdin=subprocess.DEVNULL, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        code = -signal.SIGPROF
    if code == -signal.SIGPROF:
        raise TooSlow(
            f"the pattern {shorten(pattern, 100)} took more than {seconds:g} seconds on a line of the reply, so nobody "
            "can say whether that was the promise; begin a new loop with a simpler one"
        )
    return code == 0
