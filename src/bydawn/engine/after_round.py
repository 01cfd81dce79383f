"""What a round left behind: files, tasks, progress; also for a round whose end was not seen."""

from msgspec.structs import replace

from bydawn.core import progress
from bydawn.core.loop import Ticks
from bydawn.core.progress import forgiven
from bydawn.core.values import Findings, Snapshot, TaskReading
from bydawn.core.worklist import rewritten
from bydawn.engine.effects import Effects
from bydawn.engine.protection import Protection


class AfterRound:
    """Looks at the work tree and the work list, and compares them with the ledger."""

    def __init__(self, effects: Effects, protection: Protection) -> None:
        self._effects = effects
        self._protection = protection

    def of_round(self, round_: int, snapshot: Snapshot) -> Findings:
        """The work tree after a round, and what the round did to it."""
        found = self._with_tasks(self._protection.after_round(round_, snapshot))
        return replace(found, progress=self._progress(found))

    def at_start(self, snapshot: Snapshot, *, unseen: bool, keeps_aside: bool) -> Findings:
        """The same at the start of a run; `unseen`: the agent's code has run since the tree was last looked at."""
        found = self._protection.at_start(snapshot, unseen=unseen)
        return (
            self._with_tasks(found) if unseen else replace(found, tasks=self._tasks_at_start(keeps_aside=keeps_aside))
        )

    def _tasks_at_start(self, *, keeps_aside: bool) -> TaskReading | None:
        """After a recorded stop, a person's edits to the list count. Not after a crash, nor if the list was not
        trusted before: what is missing stays missing until it is back, or accepted."""
        state = self._effects.state
        believed = state.stopped and not (state.tasks and state.tasks.problem)
        return self._effects.list.read(forgiven(state, keeps_aside=keeps_aside), None if believed else state.tasks)

    def _with_tasks(self, found: Findings) -> Findings:
        """What the list says now, what that closed, what of it without any work, and what was rewritten."""
        state = self._effects.state
        known, opened, last = state.tasks, state.open_round, state.last
        reading = self._effects.list.read(state, known)
        closed = self._effects.list.closed_since(known) if reading and not reading.problem else ()
        idle = (found.work or found.tree) == (opened.work if opened else state.work)
        own = opened.started.task_id if opened else last.task_id if last else None
        # A task on which earlier rounds have worked may be ticked in one that only looks.
        worked_on = self._effects.list.name_of(own) if progress.tally_of(state.tallies, own).progress else None
        doubted = tuple(task for task in closed if task != worked_on) if idle else ()
        changed = rewritten(known, reading, own)
        return replace(found, tasks=reading, closed=closed, doubted=doubted, rewritten=changed)

    def _progress(self, found: Findings) -> bool:
        """Neither a box ticked without any other change counts, if the loop doubts it, nor one added to be ticked."""
        doubts = found.doubted and self._effects.loop.ticks is Ticks.DOUBT
        counts = not doubts and progress.fewer(self._effects.state, found.tasks)
        return progress.made(self._effects.state, found.work or found.tree, found.closed if counts else ())
