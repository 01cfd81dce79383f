"""A loop without a terminal: what the command that started it says, and where all else goes."""

from bydawn.cli import render
from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, RunStarted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import shorten
from bydawn.core.values import Next
from bydawn.operations.plan import Plan
from bydawn.operations.sentences import opening
from bydawn.process.guardian import Tether
from bydawn.store.worker_log import WorkerLog


class Background:
    """A follower that lets the command return once the loop has begun."""

    def __init__(self, tether: Tether, planned: Plan) -> None:
        self.log = WorkerLog(planned.folder.log, planned.secrets.hide)
        tether.detach(lambda: self.log.fd)
        self._tether = tether
        self._plan = planned

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        if isinstance(fact, RunStarted):
            self._tether.release(self.log.fd, "\n".join([*self._words(fact, loop, state), ""]))

    def heard(self, event: Event) -> None:
        """What the agent does is for those who watch it."""

    def _words(self, fact: RunStarted, loop: Loop, state: LoopState) -> list[str]:
        name = self._plan.reference
        goes_on = f"continues after round {state.round}" if self._plan.goes_on and state.round else "runs"
        fields = [each for each in opening(loop, state, fact.tasks) if each.label not in ("Loop", "Ctrl-C")]
        steps = [
            Next(command=f"bydawn attach {name}", why="watch it; q leaves, and it goes on"),
            Next(command=f"bydawn show {name}", why="how far it is"),
            Next(command=f"bydawn stop {name}", why="end it"),
        ]
        return [
            f"  {loop.id} {goes_on} in the background; this terminal can be closed.",
            *(f"  {each.label:<6} {shorten(each.text, render.width() - 9)}" for each in fields),
            "",
            *render.step_lines(render.typed_steps(steps)),
        ]
