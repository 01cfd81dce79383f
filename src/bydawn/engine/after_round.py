"""What a round has left behind: files, tasks, progress; also one that nobody saw the end of."""

from collections.abc import Mapping
from typing import Any

from bydawn.core import progress
from bydawn.core.ports import Snapshot
from bydawn.core.replay import forgiven
from bydawn.core.values import TaskReading
from bydawn.core.worklist import rewritten
from bydawn.engine.effects import Effects
from bydawn.engine.protection import Protection


class AfterRound:
    """Looks at the work tree and the work list, and compares them with what the ledger knows."""

    def __init__(self, effects: Effects, protection: Protection) -> None:
        self._effects = effects
        self._protection = protection

    def of_round(self, round_: int, snapshot: Snapshot) -> tuple[Snapshot, dict[str, Any]]:
        """The tree as it is then, and what the end of the round says of it."""
        after, tampered, restored = self._protection.after_round(round_, snapshot)
        told = {"work": after.work, "changes": after.changes, "tampered": tampered, "restored": restored}
        told |= self._tasks(after)
        return after, {**told, "progress": self._progress(after, told)}

    def at_start(self, snapshot: Snapshot, *, unseen: bool) -> tuple[Snapshot, dict[str, Any]]:
        """The same for a run that begins; `unseen`: something of the agent's has run since anybody looked."""
        now, tampered, put_back = self._protection.at_start(snapshot, unseen=unseen)
        told = {"tree": now.tree, "work": now.work, "tampered": tampered, "put_back": put_back}
        return now, told | (self._tasks(now) if unseen else {"tasks": self._tasks_at_start()})

    def _tasks_at_start(self) -> TaskReading | None:
        """After a recorded stop what a person has made of the list holds; not after a crash, nor where the list was not
        believed before: what is missing there is missing until it is back, or accepted."""
        state = self._effects.state
        believed = state.stopped and not (state.tasks and state.tasks.problem)
        return self._effects.list.read(forgiven(state), None if believed else state.tasks)

    def _tasks(self, after: Snapshot) -> dict[str, Any]:
        """What the list says after a round, what that closed, what of it without any work, and what it rewrote."""
        state = self._effects.state
        known, opened, last = state.tasks, state.open_round, state.last
        reading = self._effects.list.read(state, known)
        closed = self._effects.list.closed_since(known) if reading and not reading.problem else ()
        idle = (after.work or after.tree) == (opened.work if opened else state.work)
        own = opened.task_id if opened else last.task_id if last else None
        return {
            "tasks": reading,
            "closed": closed,
            "doubted": closed if idle else (),
            "rewritten": rewritten(known, reading, own),
        }

    def _progress(self, after: Snapshot, told: Mapping[str, Any]) -> bool:
        """Neither a box that was ticked without any other change counts, nor one that was added to be ticked."""
        counts = not told["doubted"] and progress.fewer(self._effects.state, told["tasks"])
        return progress.made(self._effects.state, after.work or after.tree, told["closed"] if counts else ())
