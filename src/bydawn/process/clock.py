"""Wall time for people, monotonic time for durations."""

import time
from datetime import UTC, datetime

from bydawn.core.values import Now


class SystemClock:
    """Wall time for people, monotonic time for durations: a clock that jumps changes no limit."""

    def __init__(self, elapsed: float) -> None:
        self._base = elapsed - time.monotonic()
        self._gap = _suspended()

    def now(self) -> Now:
        return Now(datetime.now(UTC), round(self._base + time.monotonic(), 3))

    def slept(self) -> float:
        """Seconds of suspension since the last call: the boot clock went on, the monotonic one did not."""
        before, self._gap = self._gap, _suspended()
        return self._gap - before


def _suspended() -> float:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
