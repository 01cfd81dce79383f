"""What does a loop cost while its agent thinks and says nothing?"""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.rows import Bench, Budget
from benchmarks.running import Running, several
from benchmarks.stage import Stage, until

_SECONDS, _TIMES = 15, 3  # each with one look for signs of life


def silence(stage: Stage) -> Iterator[float]:
    """Guardian and worker together, as the kernel counts them."""
    with several(stage, 1) as [loop]:
        until(lambda: loop.agent_output.stat().st_size > 0, "the agent's first word")
        time.sleep(1)  # what follows the first word is over
        counts = [_counted(loop)]
        for _ in range(_TIMES):
            time.sleep(_SECONDS)
            counts.append(_counted(loop))
    wakes, nanoseconds = zip(*((b[0] - a[0], b[1] - a[1]) for a, b in pairwise(counts)), strict=True)
    yield max(wakes) / _SECONDS
    yield min(nanoseconds) / 1e6 * 60 / _SECONDS


def _counted(loop: Running) -> tuple[int, int]:
    """How often their threads went to sleep, and their time on a CPU."""
    threads = [thread for pid in (loop.guardian, loop.worker) for thread in Path(f"/proc/{pid}/task").iterdir()]
    rows = [row.split() for thread in threads for row in (thread / "status").read_text().splitlines()]
    wakes = sum(int(row[1]) for row in rows if row[0] == "voluntary_ctxt_switches:")
    return wakes, sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)


BENCHES = (
    Bench((Budget("silence: wake-ups a second", 1.05, ""), Budget("silence: CPU in a minute", 12, "ms")), silence),
)
