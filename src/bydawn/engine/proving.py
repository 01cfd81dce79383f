"""Runs the checks on a tree, runs doubtful ones again, and records the verdicts."""

from collections.abc import Mapping
from functools import partial

import msgspec

from bydawn.core.decide import would_finish
from bydawn.core.facts import BOX, BOXED, ChecksCut, ChecksEnded, Obstructed
from bydawn.core.layout import tree_before
from bydawn.core.loop import BoxMode, ChangedTests, Check, CheckWhere, CommandCheck, OnTamper
from bydawn.core.ports import NONE
from bydawn.core.values import Verdict
from bydawn.core.verdicts import counted, in_the_way, is_same, outside, suspects, unboxed, weighed
from bydawn.engine.effects import Effects
from bydawn.engine.proof import Proof
from bydawn.engine.protection import Protection


class _Look(msgspec.Struct, frozen=True):
    """What the checks say about one tree, and what they did to protected files."""

    verdicts: tuple[Verdict, ...]
    tampered: tuple[str, ...] = ()
    restored: bool = False


class Proving:
    """One loop's checks; they run the agent's work, which may do anything."""

    def __init__(self, effects: Effects, protection: Protection) -> None:
        self._effects = effects
        self._protection = protection
        self.proof = Proof(effects)
        self._loop = effects.loop

    def take(self, round_: int, *, final: bool = False) -> None:
        """Run them and record the verdicts; cut short, they have none."""
        effects, started = self._effects, self._effects.clock.now().elapsed
        left, looked = None, self._look(round_, effects.state.tree)
        if looked and would_finish(self._loop, effects.state, looked.verdicts):
            # Done means proven on the current tree, and these may have changed it. Once is enough: many write a log.
            now_there = effects.snapshot(keep_as=tree_before(round_ + 1))
            if now_there.tree != effects.state.tree:
                left, looked = now_there, self._look(round_, now_there.tree)
        if looked is None:
            return
        freed = [verdict for verdict in looked.verdicts if verdict.outside]
        if freed and (self._loop.box is BoxMode.ON or self._is_clean):  # outside, it would find the workspace
            how = f"add --box-write {freed[0].needs}, or use" if freed[0].needs else "use"
            why, instead = ("--check-where clean", "off") if self._is_clean else ("--box on", "auto")
            effects.record(Obstructed(kind=BOX, detail=f"{in_the_way(freed[0])} ({why}); {how} --box {instead}"))
            return
        tree = left.tree if left else effects.state.tree
        ends = would_finish(self._loop, effects.state, looked.verdicts)
        behind = self.proof.look(round_, tree, looked.verdicts, final=ends)
        if behind is None:
            return
        verdicts, proved = behind
        now = effects.clock.now().elapsed
        effects.record(
            ChecksEnded(
                round=round_,
                tree=tree,
                work=(left.work or left.tree) if left else "",
                verdicts=verdicts,
                proved=proved,
                elapsed=now,
                seconds=round(now - started, 3),
                tampered=looked.tampered,
                restored=looked.restored,
                final=final,
                excuses=self._loop.by_task is None,
                tools={} if round_ else self.proof.tools(),
            )
        )
        if proved:
            effects.ledger.sync()  # before any task is called done because of it

    @property
    def _is_clean(self) -> bool:
        return self._loop.check_where is CheckWhere.CLEAN

    def _look(self, round_: int, tree: str) -> _Look | None:
        self._protection.watch()
        verdicts = self._verdicts(round_, tree)
        found = self._protection.after_checks(round_)
        if verdicts is None:
            if found and found.tampered:
                self._effects.record(ChecksCut(round=round_, tampered=found.tampered, restored=found.restored))
            return None
        if found is None or not found.tampered:
            return _Look(verdicts)
        if self._loop.on_tamper is not OnTamper.REPORT:
            detail = f"protected files were changed while it ran: {', '.join(found.tampered[:3])}"
            verdicts = tuple(msgspec.structs.replace(each, passed=False, detail=detail) for each in verdicts)
        return _Look(verdicts, found.tampered, found.restored)

    def _verdicts(self, round_: int, tree: str) -> tuple[Verdict, ...] | None:
        """What they say about a tree, running the doubtful ones twice."""
        run, urgent, state = self._effects.checks.run, self._effects.urgent, self._effects.state
        freed = outside(state.verdicts)
        count = partial(counted, known=state.proofs, holds=self._loop.changed_tests is ChangedTests.HOLD)
        verdicts = tuple(map(count, run(self._loop.checks, round_, tree, urgent, outside=freed)))
        if state.box == BOXED and not state.round and not state.only_checks:  # nothing of the agent's exists yet
            return self._without_box(verdicts, tree)
        doubtful = () if self._effects.state.stop_now else suspects(self._loop.checks, verdicts, state)
        again = map(count, run(doubtful, round_, tree, urgent, again=True, outside=freed) if doubtful else ())
        return None if self._effects.state.stop_now else weighed(verdicts, (*again,), state)

    def _without_box(self, verdicts: tuple[Verdict, ...], tree: str) -> tuple[Verdict, ...] | None:
        """The same for the baseline: a failing check runs outside the box, too, to see whether that is in its way."""
        checks, again = {check.name: check for check in self._loop.checks}, partial(self._again, tree)
        commands = {name for name, check in checks.items() if isinstance(check, CommandCheck)}
        red = {verdict.check: verdict for verdict in verdicts if not verdict.passed and verdict.check in commands}
        if self._is_clean:  # what only passes outside has found the workspace, unless it named a folder that it needs
            red = {name: verdict for name, verdict in red.items() if verdict.needs}
        free = again([checks[name] for name in red], outside=dict.fromkeys(red, ""))
        odd = {verdict.check: verdict for verdict in free if not is_same(red[verdict.check], verdict)}
        boxed = {verdict.check: verdict for verdict in again([checks[name] for name in odd if not red[name].needs])}
        if self._effects.state.stop_now:
            return None
        judged = {name: unboxed(red[name], verdict, boxed.get(name)) for name, verdict in odd.items()}
        return tuple(judged.get(verdict.check, verdict) for verdict in verdicts)

    def _again(self, tree: str, checks: list[Check], outside: Mapping[str, str] = NONE) -> tuple[Verdict, ...]:
        effects = self._effects
        if not checks or effects.state.stop_now:
            return ()
        return effects.checks.run(checks, 0, tree, effects.urgent, again=True, outside=outside)
