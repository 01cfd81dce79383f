"""Keeps `state.json`, the snapshot of the ledger, up to date."""

from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.store.ledger import LoopLedger


class StateFile:
    """Keeps `state.json`, the snapshot, up to date."""

    def __init__(self, ledger: LoopLedger) -> None:
        self._ledger = ledger

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:  # noqa: ARG002
        self._ledger.snapshot()

    def heard(self, event: Event) -> None:
        """Nothing in the stream is part of the state."""
