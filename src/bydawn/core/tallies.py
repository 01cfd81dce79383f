"""What is known about the tasks of a loop beyond their file."""

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import RoundEnded, TaskStatus
from bydawn.core.outcome import POLICY


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of one task, added up."""

    task: str
    text: str = ""
    failures: int = 0  # in a row
    before: int = 0  # the same without the last round, whose checks may still turn it into a failure
    progress: bool = False  # did any of them make progress?
    claims: int = 0  # how often in a row the agent said it is done


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks, by id, whose state is in the ledger and not in their file."""

    done: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # done ones for which nothing was ever changed

    def having(self, task: str, status: TaskStatus, *, doubted: bool = False) -> "Settled":
        """Move one task to its new state."""
        places = {
            TaskStatus.DONE: "done",
            TaskStatus.ASIDE: "aside",
            TaskStatus.SKIPPED: "skipped",
        }
        rest = {name: tuple(each for each in getattr(self, name) if each != task) for name in places.values()}
        if place := places.get(status):
            rest[place] = (*rest[place], task)
        others = tuple(each for each in self.doubted if each != task)
        return Settled(**rest, doubted=(*others, task) if doubted else others)


def tally_of(tallies: tuple[Tally, ...], task: str | None) -> Tally:
    return next((tally for tally in tallies if tally.task == task), Tally(task=task or ""))


def after_round(tallies: tuple[Tally, ...], task: str | None, text: str, fact: RoundEnded) -> tuple[Tally, ...]:
    """Add this round; one without progress has failed its task."""
    if task is None:
        return tallies
    mine = tally_of(tallies, task)
    if not POLICY[fact.outcome].counts:  # it neither failed nor claimed anything, but its changes are there
        return _with(tallies, replace(mine, text=text, progress=True)) if fact.progress else tallies
    failed = POLICY[fact.outcome].failure or not fact.progress
    said_done = fact.claim is not None and fact.claim.status == TaskStatus.DONE
    return _with(
        tallies,
        replace(
            mine,
            text=text,
            failures=mine.failures + 1 if failed else 0,
            before=mine.failures,
            progress=mine.progress or fact.progress,
            claims=mine.claims + 1 if said_done else 0,
        ),
    )


def after_red_checks(tallies: tuple[Tally, ...], task: str, *, progress: bool) -> tuple[Tally, ...]:
    """A round with progress still failed its task if its checks failed."""
    mine = tally_of(tallies, task)
    return _with(tallies, replace(mine, failures=mine.before + 1)) if progress else tallies


def _with(tallies: tuple[Tally, ...], mine: Tally) -> tuple[Tally, ...]:
    return (*(tally for tally in tallies if tally.task != mine.task), mine)
