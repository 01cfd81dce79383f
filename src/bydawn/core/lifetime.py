"""Figures over all runs of a loop, folded as it goes: a long history need not be read for them."""

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import LoopStopped, RoundEnded, RunStarted
from bydawn.core.outcome import Outcome
from bydawn.core.rules import Rule
from bydawn.core.values import FINISHED


class Lifetime(msgspec.Struct, frozen=True, kw_only=True):
    """How often something has happened."""

    ends: dict[str, int] = {}  # by the state that a run ended in
    rules: dict[str, int] = {}  # by the rule, of the ends with work left
    unattended: int = 0  # of those: no person was needed to go on
    restarts: int = 0  # after its process had died
    resumes: int = 0  # runs that went on from an earlier one, …
    resumed: int = 0  # … in which a round came to its end, or the loop finished
    waits: bool = False  # for that, since the last resume

    def began(self, fact: RunStarted, *, is_first: bool) -> "Lifetime":
        if fact.cycle > 1:
            return replace(self, unattended=self.unattended + 1)
        if is_first or fact.only_checks:
            return self
        return replace(self, resumes=self.resumes + 1, waits=True, restarts=self.restarts + (fact.restart is not None))

    def worked(self, fact: RoundEnded) -> "Lifetime":
        return self._went_on() if fact.outcome is not Outcome.INTERRUPTED else self

    def ended(self, fact: LoopStopped) -> "Lifetime":
        if fact.is_preparation or fact.decided.rule == Rule.ONLY_CHECKS:
            return self
        then = replace(self, ends=_more(self.ends, fact.end.value), waits=False)
        if fact.end in FINISHED:
            return replace(then, resumed=self._went_on().resumed)
        rules = _more(self.rules, fact.decided.rule)
        return replace(then, rules=rules, unattended=self.unattended + fact.by_machine)

    def _went_on(self) -> "Lifetime":
        return replace(self, resumed=self.resumed + 1, waits=False) if self.waits else self

    @property
    def interruptions(self) -> int:
        """How often a run ended with work left, and a person had to do something."""
        return sum(self.rules.values()) - self.unattended


def _more(counts: dict[str, int], name: str) -> dict[str, int]:
    return counts | {name: counts.get(name, 0) + 1}
