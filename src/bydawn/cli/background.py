"""A loop without a terminal: what the command that started it says, and where all else goes."""

from bydawn.cli.voice import Voice
from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, RunStarted
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.operations.plan import Plan
from bydawn.process.guardian import Tether
from bydawn.store.worker_log import WorkerLog


class Background:
    """A follower that lets the command return once the loop has begun."""

    def __init__(self, tether: Tether, planned: Plan, voice: Voice) -> None:
        self.log = WorkerLog(planned.folder.log, planned.secrets.hide)
        tether.detach(lambda: self.log.fd)
        self._tether = tether
        self._plan = planned
        self._voice = voice

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        if isinstance(fact, RunStarted) and fact.cycle < 2:  # later ones only go on
            words = "\n".join([*self._voice.begun(self._plan, fact, state), ""])
            self._tether.release(self.log.fd, words, self._voice.viewer(self._plan))

    def heard(self, event: Event) -> None:
        """What the agent does is for those who watch it."""
