"""The end of a round that was not seen."""

from bydawn.core.decide import Settle
from bydawn.core.facts import RoundEnded
from bydawn.core.outcome import Outcome
from bydawn.core.progress import Findings, Used
from bydawn.core.values import Now


def settled(action: Settle, now: Now, found: Findings, used: Used, *, unseen: bool = False) -> RoundEnded:
    """The fact that ends a round whose end was not seen; its changes stay."""
    return RoundEnded(
        round=action.round,
        outcome=Outcome.INTERRUPTED,
        detail=action.reason,
        elapsed=now.elapsed,
        tree=found.tree,
        work=found.work,
        changes=found.changes,
        tampered=found.tampered,
        restored=found.restored,
        tasks=found.tasks,
        closed=found.closed,
        doubted=found.doubted,
        rewritten=found.rewritten,
        progress=found.progress,
        usage=used.turn,
        session_usage=used.session,
        unseen=unseen,
    )
