"""Single keys of a person who watches a terminal."""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def wants_to_leave(seconds: float) -> bool:
    """Wait this long for a `q`; other keys end the wait, too."""
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    return bool(select.select([0], [], [], seconds)[0]) and os.read(0, 1) in (b"q", b"Q", b"")


@contextmanager
def single_keys() -> Iterator[None]:
    """Without waiting for Enter, and without showing what is typed. A `kill` leaves as Ctrl-C does: in good order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    usual = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, usual)
