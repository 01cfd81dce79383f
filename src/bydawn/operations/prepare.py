"""Make a loop that waits to be begun, or that a person's own session works on."""

from datetime import UTC, datetime

from bydawn.core.facts import LoopStopped, TasksRead
from bydawn.core.records import BY_HAND, PREPARED
from bydawn.core.rules import Rule
from bydawn.core.values import Decided, End, TaskReading
from bydawn.operations.plan import Plan
from bydawn.operations.preconditions import user
from bydawn.operations.recording import Say, writing
from bydawn.operations.run_loop import create, refuse_if_overtaken
from bydawn.system.writing import make_private


def prepare(planned: Plan, say: Say = lambda _: None, tasks: TaskReading | None = None) -> None:
    """Write down that the loop exists, what its list says if that is known, and that nothing runs it yet."""
    loop, now = planned.loop, datetime.now(UTC)
    make_private(planned.folder.path)
    with writing(planned.folder, loop, planned.secrets.hide, say) as writer:
        refuse_if_overtaken(planned, writer.ledger.state)
        create(loop, writer.ledger)
        if tasks:
            writer.add(TasksRead(tasks=tasks, tree=""))
        by_hand = loop.recording is not None and loop.recording.by_hand
        writer.add(
            LoopStopped(
                end=End.PAUSED,
                reason=BY_HAND if by_hand else f"{PREPARED}: it has not begun",
                decided=Decided(rule=Rule.ASKED_TO_PAUSE, at=now, elapsed=0.0),
                by=user(),
            )
        )
