"""Run a loop with a clock that skips whatever is waited for: `clocked.py WORKSPACE STATE_FOLDER AGENT`."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bydawn.assemble import Worker
from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, WaitStarted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.values import EXIT_CODES, Now
from bydawn.operations.loop_request import LoopRequest
from bydawn.operations.run_loop import run
from bydawn.operations.settings import secrets
from bydawn.operations.start import plan
from bydawn.process.clock import SystemClock
from bydawn.process.guardian import Tether, run_guarded


class SkippingClock(SystemClock):
    """The system's own, but that every wait is over as soon as it is written down."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self._skipped = 0.0

    def now(self) -> Now:
        now = super().now()
        return Now(now.at + timedelta(seconds=self._skipped), now.elapsed + self._skipped)

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        if isinstance(fact, WaitStarted):
            self._skipped += fact.seconds

    def heard(self, event: Event) -> None:
        """Nothing that is said moves a clock."""


def work(tether: Tether) -> int:
    workspace, states, agent = sys.argv[1:]
    clock = SkippingClock()
    planned = plan(
        LoopRequest(
            loop=Loop(
                id="", uid="c" * 16, workspace=workspace, created_at=datetime.now(UTC), prompt="do it", agent=agent
            ),
            secrets=secrets(),
            state_dir=Path(states),
        )
    )
    return EXIT_CODES[run(planned, Worker(tether=tether, followers=(clock,), clock=clock)).end]


sys.exit(run_guarded(work)[0])
