"""Search for a person's regular expression in a child with a time limit."""

import signal
import sys

from bydawn.core.promise import TooSlow
from bydawn.core.text import shorten

# The limit is CPU time, or patterns would seem slow whenever the machine is busy. `^` and `$` are those of a line.
_SEARCHER = (
    "import re, signal, sys; signal.setitimer(signal.ITIMER_PROF, {seconds}); "
    "text = sys.stdin.buffer.read().decode('utf-8', 'surrogatepass'); "
    "print(*[each.end() for each in re.finditer(sys.argv[1], text, re.M) if each[0].strip()][-1:])"
)


def search(pattern: str, text: str, seconds: float = 2) -> int | None:
    """Where the last match ends, unless it is blank. A person's pattern may take forever (29 characters took 28 s).

    Raises `TooSlow`: answering no would leave the loop waiting for a promise that may have been given.
    """
    import subprocess

    child = [sys.executable, "-I", "-S", "-c", _SEARCHER.format(seconds=seconds), pattern]
    try:
        done = subprocess.run(
            child, timeout=30 * seconds, input=text.encode("utf-8", "surrogatepass"), capture_output=True
        )
        code, found = done.returncode, done.stdout.strip()
    except subprocess.TimeoutExpired:
        code, found = -signal.SIGPROF, b""
    if code == -signal.SIGPROF:
        raise TooSlow(
            f"the pattern {shorten(pattern, 100)} took more than {seconds:g} seconds on the reply, so bydawn cannot "
            "tell whether the promise is in it; start a new loop with a simpler pattern"
        )
    return int(found) if found else None
