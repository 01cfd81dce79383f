"""Looks behind passing checks: would they also pass with the tests as they were, and without the work?"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bydawn.core import witness
from bydawn.core.errors import UserError
from bydawn.core.globs import is_protected
from bydawn.core.loop import ChangedTests, OnTamper, WitnessMode
from bydawn.core.ports import Difference
from bydawn.core.proof import GREEN, UNTRIED, Answer, ChangedTest, Group, Held, Noticed, Proofs, Proved, with_reason
from bydawn.core.test_files import KEYED, Side, Sides
from bydawn.core.text import duration, shorten
from bydawn.core.values import Counts, Verdict
from bydawn.core.verdicts import counted, of_failure, outside, with_all_tests
from bydawn.engine.effects import Effects

_TEST_SIDE = (Side.TEST, Side.DATA, Side.STEERING)
_TOLD = 20
_PART = 0.1  # of the loop's time that these runs may take


class _Cut(Exception):
    """Someone wants the loop to end now, so there is no answer."""


class _Trees(msgspec.Struct, frozen=True, kw_only=True):
    """What differs on the side of the tests since the beginning: what was changed, and the forms to hold instead."""

    changed: tuple[ChangedTest, ...] = ()
    forms: dict[str, str] = {}
    begin: frozenset[str] = frozenset()  # what steers the tests and takes nothing away


class Proof:
    """The runs of one loop that try another tree than that of the workspace."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._loop = effects.loop
        self._workspace = effects.workspace
        self._sides = Sides(self._loop)
        self._reset()

    def look(
        self, round_: int, tree: str, verdicts: tuple[Verdict, ...], *, final: bool
    ) -> tuple[tuple[Verdict, ...], Proved | None] | None:
        """The verdicts of passing checks, some of which may fail after all, and what was found out; None: cut short."""
        known = self._effects.state.proofs
        groups = list(known.waiting)
        if final and not (self._loop.tasks and self._loop.tasks_required):
            groups = [Group(before=known.tree, after=tree, red=known.red, green=True)]
        # Then nothing counts anyway.
        tampered = self._effects.state.tampered and self._loop.on_tamper is not OnTamper.REPORT
        if tampered or not (groups or final) or not all(verdict.passed for verdict in verdicts):
            return verdicts, None
        if not known.tree or not round_:
            return verdicts, Proved()
        self._reset(round_, verdicts, final=final)
        try:
            held = self._held(tree, groups)
            noticed, later = self._noticed(tree, groups) if not held or not held.refused else ((), groups)
        except _Cut:
            return None
        except UserError as error:  # a tree that was cleaned away, a full disk
            why = f"{error.what}: {error.cause}"
            unknown = tuple(Noticed(tasks=group.tasks, answer=Answer.UNKNOWN, detail=why) for group in groups)
            held = Held(changed=known.changed, detail=why)  # what a person has to decide is still to be decided
            return verdicts, Proved(held=held, noticed=unknown, control=self._control, seconds=self._seconds)
        asked = [each for each in noticed if each.asked]
        failed = self._refused(verdicts, held, asked)
        kept = tuple(group.ids for group in later if group.ids)
        return failed, Proved(
            held=held,
            noticed=noticed,
            tools=self._tools_changed() if final else known.tools_changed,
            later=kept,
            control=self._control,
            seconds=round(self._seconds, 3),
        )

    def tools(self) -> dict[str, str]:
        return self._workspace.tools(self._sides.named)

    def _tools_changed(self) -> tuple[str, ...]:
        """Installing packages does it honestly, so it is only told."""
        then, now = self._effects.state.proofs.tools, self.tools()
        return tuple(sorted(path for path in {**then, **now} if then.get(path) != now.get(path)))[:_TOLD]

    def _reset(self, round_: int = 0, verdicts: tuple[Verdict, ...] = (), *, final: bool = False) -> None:
        self._round, self._verdicts, self._final = round_, verdicts, final
        self._seconds, self._said = 0.0, ""
        self._control = self._effects.state.proofs.control if round_ else ""

    def by_person(self, tree: str) -> dict[str, str]:
        """The tests that changed while the loop rested, or that a person has accepted: so they begin now."""
        state = self._effects.state
        if state.stopped is None or not self._loop.checks or not state.proofs.tree:
            return {}
        try:
            taken = self._workspace.between(state.proofs.tree, tree) if state.proofs.taken else []
            rested = self._workspace.between(state.tree, tree) if tree != state.tree else []
        except UserError:  # a tree that was cleaned away: the next look says so
            return {}
        rested = [each for each in rested if self._sides.of(each.path) in _TEST_SIDE]
        taken = [each for each in taken if _shown(each.path) in state.proofs.taken]
        return {_shown(each.path): each.new for each in (*rested, *taken)}

    # -- the tests as they were --------------------------------------------------------------------------------------

    def _held(self, tree: str, groups: Sequence[Group]) -> Held | None:
        known = self._effects.state.proofs
        red = {check for group in groups for check in group.red} or ({*known.red} if not known.looked else set())
        found = self._test_side(tree, red=bool(red))
        begins = all(each.path in found.begin for each in found.changed)
        if begins:
            red -= self._could_not_run()  # so this is what makes them run
        # A check has no file that a reason could name, so any reason is one for its tests.
        names, last = {verdict.check for verdict in self._verdicts}, known.reasons[-1].why if known.reasons else ""
        given = {
            each.path: with_reason(each, known.reasons).why or (last if each.path in names else "")
            for each in found.changed
        }
        told = {(each.path, each.form): each.why for each in known.changed}  # another change needs a reason of its own
        changed = tuple(
            replace(each, why=given[each.path] or told.get((each.path, each.form), "")) for each in found.changed
        )
        if not changed:
            return Held()
        if begins and not (red or self._had_tests):
            return Held(
                changed=changed, detail="were not tried: there was no test before", known=changed == known.changed
            )
        open_ = tuple(each for each in changed if known.newer.get(each.path) != each.form)
        if not open_:
            return Held(changed=changed, passed=known.held, detail=known.detail, known=True)
        if not any(
            self._sides.of(path) is Side.WORK for each in (known.tree, tree) for path in self._workspace.forms(each)
        ):
            return Held(changed=changed, detail=f"{UNTRIED}: every file here is a test")
        failed = self._failed_with(tree, found.forms)
        if failed is None:
            return Held(changed=changed, detail=self._said)
        if not failed and found.forms:  # the right work with the old tests, even if fewer of them are left now
            return Held(changed=tuple(each for each in changed if not each.beside), passed=True)
        fewer = [verdict for verdict in self._verdicts if verdict.fewer]
        failed = failed or tuple(replace(each, detail=each.fewer) for each in fewer)
        detail = "; ".join(f"{each.check} fails: {each.told}" for each in failed)
        held = Held(changed=changed, passed=False, detail=detail)
        if self._loop.changed_tests is ChangedTests.REPORT:
            return held
        self._said = failed[0].excerpt
        needed = self._suspects(open_, found)
        guilty = [each for each in needed if red & self._red_of(each, groups, red) & {one.check for one in failed}]
        if not guilty:
            return replace(held, unexplained=tuple(each for each in needed if not each.why))
        if all(each.path in known.refused and given[each.path] for each in guilty):  # a reason since then
            return replace(held, insisted=open_)
        return replace(held, refused=tuple(each.path for each in guilty))

    def _red_of(self, changed: ChangedTest, groups: Sequence[Group], red: set[str]) -> set[str]:
        """The checks that failed when the tasks began that changed it."""
        mine = [
            {*group.red}
            for group in groups
            if any(_shown(each.path) == changed.path for each in self._workspace.between(group.before, group.after))
        ]
        return set[str]().union(*mine) if mine else red

    def _could_not_run(self) -> set[str]:
        """The checks that said nothing of any test before the first round, and run tests now."""
        known = {name for name, first in self._effects.state.proofs.first.items() if first != Counts()}
        return {each.check for each in self._verdicts if each.counts and each.counts.ran} - known

    def _suspects(self, changed: tuple[ChangedTest, ...], found: _Trees) -> tuple[ChangedTest, ...]:
        """The files that need a reason: rather not one to which lines were only added, nor one that was so already when
        the old tests still passed."""
        known = self._effects.state.proofs
        for is_harmless in (
            lambda each: each.beside,
            lambda each: known.agreed.get(each.path) == each.form,
            lambda each: bool(each.form) and self._only_adds(found.forms.get(each.path, ""), each.form),
        ):
            changed = tuple(each for each in changed if not is_harmless(each)) or changed
        return changed

    def _only_adds(self, then: str, now: str) -> bool:
        """Are all lines of a file still there, in their order?"""
        if not then.startswith("100") or not now.startswith("100"):
            return False
        lines = iter(self._workspace.read(now).splitlines())
        return all(line in lines for line in self._workspace.read(then).splitlines())

    def _test_side(self, tree: str, *, red: bool) -> _Trees:
        """What differs from the beginning, and how to weave a tree in which it does not.

        `red`: checks failed then, so a new file beside the tests may be what makes them pass.
        """
        known, read = self._effects.state.proofs, self._workspace.read
        self._sides.follow(self._workspace.forms(known.tree), read)
        differences = self._workspace.between(known.tree, tree)
        sides = {each.path: self._sides.of_change(each, read) for each in differences}
        tests = [each for each in differences if sides[each.path] in _TEST_SIDE]
        tests += [each for each in differences if not each.old and self._sides.takes_a_place(each.path)]
        # What is protected has a rule of its own.
        tests = [each for each in tests if not (self._loop.protect and is_protected(each.path, self._loop.protect))]
        appeared = {(_id(each.new), self._sides.is_module(each.path)) for each in differences if not each.old}
        vanished = {(_id(each.old), self._sides.is_module(each.path)) for each in tests if not each.new}
        changed, forms, begin = list[ChangedTest](), dict[str, str](), set[str]()
        more = [each for each in tests if not each.old and self._sides.is_module(each.path)]
        padded = any((_id(each.new), True) not in vanished for each in more)
        all_run = not padded and all(_runs_as_many(verdict, known) for verdict in self._verdicts)
        for each in dict.fromkeys(tests):
            name = _shown(each.path)
            then = known.yours.get(name, each.old)
            side, is_module = sides[each.path], self._sides.is_module(each.path)
            if each.new == then or (not then and each.path in self._sides.named):
                continue  # as it was, or the check itself, which is new
            moved = (_id(then or each.new), is_module) in (vanished if not then else appeared if not each.new else ())
            helps = (side is Side.TEST and not is_module and not then) or (moved and bool(then) and not all_run)
            beside = red and helps  # where checks failed before, that may be what makes them pass
            if (then and not moved) or ((beside or side not in (Side.TEST, Side.DATA)) and self._had_tests):
                how = "changed" if then and each.new else "moved" if moved else "deleted" if then else "new"
                found = ChangedTest(path=name, form=each.new, how=how, beside=beside)
                changed.append(replace(found, data=side is Side.DATA, steers=side is Side.STEERING))
                if side is Side.STEERING and each.new and not (then and self._takes_away(each, then)):
                    begin.add(name)
            forms[each.path] = known.newer.get(name, self._as_then(each, then))
        named = [each for each in changed if not each.beside]  # then these say it
        changed = named or changed
        fewer = [v for v in self._verdicts if v.fewer and v.check in known.red and not changed]
        changed += [ChangedTest(path=v.check, how=v.fewer, form=str(v.counts and v.counts.ran)) for v in fewer]
        return _Trees(changed=tuple(changed), forms=forms, begin=frozenset(begin))

    def _takes_away(self, change: Difference, then: str) -> bool:
        """Is anything gone, or another, that steered tests? npm's own placeholder for a script steers none."""
        if change.path.rpartition("/")[2] not in KEYED:
            return not self._only_adds(then, change.new)
        from bydawn.core.steering import keys  # as below

        old, new = (keys(change.path, self._workspace.read(form), self._sides.commands) for form in (then, change.new))
        return any(new.get(key) != old[key] and "no test specified" not in str(old[key]) for key in old)

    def _as_then(self, change: Difference, then: str) -> str:
        """The form to hold. Of a file that says other things too, only what steers tests."""
        if not then or not change.new or change.path.rpartition("/")[2] not in KEYED:
            return then
        from bydawn.core.steering import woven  # its parsers take a while to load, and few loops need them

        old, new = self._workspace.read(then), self._workspace.read(change.new)
        return self._workspace.form(woven(change.path, new, old, self._sides.commands))

    @property
    def _had_tests(self) -> bool:
        """Were there tests at the beginning? Then a new file may keep them from running."""
        return any(self._sides.of(path) is Side.TEST for path in self._workspace.forms(self._effects.state.proofs.tree))

    def _failed_with(self, tree: str, forms: dict[str, str]) -> tuple[Verdict, ...] | None:
        """The checks that fail with the tests as they were; None, with a reason, if that is unknown."""
        if not forms:
            return ()
        if not self._fits() and not self._final:
            self._said = "were not tried: there was no time yet"
            return None
        if not self._is_sound(tree):
            self._said = f"{UNTRIED}: in a checkout of the work as it is, {self._control}"
            return None
        failed = self._failing(self._workspace.woven(tree, forms), "held")
        if failed is None:
            self._said = f"{UNTRIED}: {self._said}"
        return failed

    def _refused(
        self, verdicts: tuple[Verdict, ...], held: Held | None, asked: Sequence[Noticed]
    ) -> tuple[Verdict, ...]:
        """Passing verdicts, of which the first counts as failed if tests are held against it, or asked for."""
        paths = ", ".join(held.refused[:3]) if held else ""
        detail = (
            f"passes only because tests were changed: {paths}" if paths else "passes without this work" if asked else ""
        )
        if not detail:
            return verdicts
        failed = replace(verdicts[0], passed=False, detail=detail, excerpt=self._said, fingerprint=of_failure(detail))
        return (failed, *verdicts[1:])

    # -- without the work --------------------------------------------------------------------------------------------

    def _noticed(self, tree: str, groups: Sequence[Group]) -> tuple[tuple[Noticed, ...], list[Group]]:
        """The answer for each group, and the groups that have to wait."""
        found, later = list[Noticed](), list[Group]()
        known = self._effects.state.proofs
        asked, silent = {each.tasks for each in known.noticed if each.asked}, known.silent(self._verdicts)
        for each in groups if self._loop.witness is not WitnessMode.OFF else ():
            # Better tests came in a later round than the one that closed the task.
            group = replace(each, after=tree) if each.tasks in asked else each
            differences = self._workspace.between(group.before, group.after)
            green = group.green or group.after in (tree, self._effects.state.tree)  # checks may have changed it
            judged = witness.judged(group, differences, self._sides, self._workspace.read, green=green)
            if isinstance(judged, witness.Trial):
                if not self._fits() and not self._final:
                    later.append(group)
                    continue
                judged = self._tried(tree, replace(group, green=green), judged, asks=group.tasks not in asked)
                later += [group] if judged.asked else []
            if silent and judged and judged.answer is Answer.NOTICED:
                judged = replace(judged, answer=Answer.UNKNOWN, detail=f"{silent[0]} does not say that it ran a test")
            found += [judged] if judged else []
        return tuple(found), later

    def _tried(self, tree: str, group: Group, trial: witness.Trial, *, asks: bool) -> Noticed:
        def answer(what: Answer, detail: str = "", *, asked: bool = False) -> Noticed:
            return Noticed(tasks=group.tasks, answer=what, detail=shorten(detail, 200), asked=asked)

        if not group.green:
            return answer(Answer.UNKNOWN, "the checks failed when it was closed")
        if not self._fits():
            return answer(Answer.UNKNOWN, f"the checks take {duration(self._expected)}")
        if not self._is_sound(tree):
            return answer(Answer.UNKNOWN, f"the checks do not pass in a checkout: {self._control}")
        failed = self._failing(self._workspace.woven(group.after, trial.forms), "without")
        if failed is None:
            return answer(Answer.UNKNOWN, self._said)
        if failed:
            return answer(Answer.NOTICED, f"{failed[0].check}: {failed[0].told}")
        asks = asks and trial.asks and self._loop.witness is WitnessMode.ASK
        return answer(Answer.OWN if trial.with_tests else Answer.UNNOTICED, asked=asks)

    # -- running checks on another tree ------------------------------------------------------------------------------

    def _is_sound(self, tree: str) -> bool:
        """Do they pass in a checkout of the work as it is? Asked once in a loop: otherwise nothing that fails in one
        means anything."""
        if not self._control:
            failed = self._failing(tree, "control")
            self._control = (
                f"{failed[0].check} fails: {failed[0].told}" if failed else self._said if failed is None else GREEN
            )
        return self._control == GREEN

    def _failing(self, tree: str, aside: str) -> tuple[Verdict, ...] | None:
        """The checks that fail twice on a tree; None, with a reason, if they cannot make up their minds."""
        verdicts = self._run(self._verdicts, tree, aside)
        red = tuple(verdict for verdict in verdicts if not verdict.passed)
        again = self._run(red, tree, aside, again=True) if red else ()
        odd = [verdict for verdict in again if verdict.passed or verdict.timed_out]
        if odd:
            what = "did not end" if odd[0].timed_out else "is flaky: it failed and passed"
            self._said = f"{odd[0].check} {what}"
            return None
        return red

    def _run(self, which: Sequence[Verdict], tree: str, aside: str, *, again: bool = False) -> tuple[Verdict, ...]:
        effects, names = self._effects, {verdict.check for verdict in which}
        checks = [check for check in self._loop.checks if check.name in names]
        freed = outside(effects.state.verdicts)
        started = effects.clock.now().elapsed
        verdicts = effects.checks.run(
            checks, self._round, tree, effects.urgent, again=again, outside=freed, aside=aside
        )
        self._seconds += effects.clock.now().elapsed - started
        if effects.state.stop_now:
            raise _Cut
        known = effects.state.proofs
        verdicts = tuple(counted(verdict, known, holds=True, compares=False) for verdict in verdicts)
        return tuple(with_all_tests(verdict, known) for verdict in verdicts) if aside == "held" else verdicts

    @property
    def _expected(self) -> float:
        return sum(verdict.seconds for verdict in self._verdicts)

    def _fits(self) -> bool:
        """Is there time left for one more run?"""
        state = self._effects.state
        most = max(self._loop.timeouts.proof, _PART * state.elapsed)
        return state.proofs.seconds + self._seconds + self._expected <= most


def _runs_as_many(verdict: Verdict, known: Proofs) -> bool:
    """As many tests as before the first round."""
    first = known.first.get(verdict.check)
    return bool(first and verdict.counts and verdict.counts.ran >= first.ran)


def _shown(path: str) -> str:
    """A name fit for the ledger, which only takes text."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _id(form: str) -> str:
    return form.partition(" ")[2]
