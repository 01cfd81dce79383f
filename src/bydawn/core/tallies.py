"""How the tasks of a loop stand beyond what their file says."""

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import RoundEnded
from bydawn.core.outcome import POLICY
from bydawn.core.values import TaskStatus


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What the rounds of one task amount to."""

    task: str
    text: str = ""
    failures: int = 0  # in a row
    before: int = 0  # the same without the last round: whether that failed is known when its checks have run
    progress: bool = False  # did any of them get anywhere?
    claims: int = 0  # how often in a row the agent said that it is done


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks by id whose standing is in the ledger, not in their file."""

    done: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # of those that are done: nothing was ever changed for them

    def having(self, task: str, status: TaskStatus, *, doubted: bool = False) -> "Settled":
        """The same with one task moved to where it stands now."""

        def moved(known: tuple[str, ...], *, here: bool) -> tuple[str, ...]:
            others = tuple(each for each in known if each != task)
            return (*others, task) if here else others

        return Settled(
            done=moved(self.done, here=status is TaskStatus.DONE),
            aside=moved(self.aside, here=status is TaskStatus.ASIDE),
            skipped=moved(self.skipped, here=status is TaskStatus.SKIPPED),
            doubted=moved(self.doubted, here=doubted),
        )


def tally_of(tallies: tuple[Tally, ...], task: str | None) -> Tally:
    return next((tally for tally in tallies if tally.task == task), Tally(task=task or ""))


def after_round(tallies: tuple[Tally, ...], task: str | None, text: str, fact: RoundEnded) -> tuple[Tally, ...]:
    """With this round in them; one that got nowhere has failed its task."""
    if task is None:
        return tallies
    mine = tally_of(tallies, task)
    if not POLICY[fact.outcome].counts:  # it has neither failed nor said anything, but what it changed is there
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
    """A round that got somewhere has failed its task all the same if its checks are red."""
    mine = tally_of(tallies, task)
    return _with(tallies, replace(mine, failures=mine.before + 1)) if progress else tallies


def _with(tallies: tuple[Tally, ...], mine: Tally) -> tuple[Tally, ...]:
    return (*(tally for tally in tallies if tally.task != mine.task), mine)
