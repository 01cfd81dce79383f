"""How much work something is, whatever else the machine does: CPU time, in units of one plain pass over a megabyte."""

import time
from collections.abc import Callable
from functools import cache

MEGABYTE = "x" * 1_000_000
MANY_PASSES = 700  # ten times what the worst hostile megabyte takes; were anything quadratic, many thousands


def effort(work: Callable[[], object]) -> float:
    """So many passes over a megabyte, one character after the other, take as long as this work."""
    return _seconds(work) / _one_pass()


@cache
def _one_pass() -> float:
    return min(_seconds(lambda: [None for _ in MEGABYTE]) for _ in range(5))


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
