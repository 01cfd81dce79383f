"""One line per round, made from facts: what was done, what git and the checks say of it, what is left."""

from collections.abc import Callable, Iterator

import msgspec

from bydawn.cli.render import outcome
from bydawn.core import completion
from bydawn.core.breakers import limits_of
from bydawn.core.facts import AnyFact, ChecksEnded, Given, RoundEnded, RoundStarted
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.operations.look import cut_by_budget

_NARROW = 72
OVER_BUDGET = "the budget was used up, so the round was cut short"


class Layout(msgspec.Struct, frozen=True):
    """Which columns there is room for."""

    width: int

    @property
    def task_width(self) -> int:
        return max(16, min(40, self.width - 58)) if self.width >= _NARROW else max(10, self.width - 30)

    def header(self, unit: str) -> str:
        number = unit if len(unit) < 6 else f"{unit[:4]}."
        if self.width < _NARROW:
            return self._line(number, "task", "time", "", "check", "", "")
        return self._line(number, "task", "time", "files", "check", "verdict", "")

    def row(self, number: str, task: str, time: str, files: str, check: str, verdict: str, left: str) -> str:
        return self._line(number, shorten(task, self.task_width), time, files, check, verdict, left)

    def _line(self, number: str, task: str, time: str, files: str, check: str, verdict: str, left: str) -> str:
        wide = self.task_width
        if self.width < _NARROW:
            return f"  {number:<5} {task:<{wide}} {time:>7} {check:<5} {left}".rstrip()
        return f"  {number:<6} {task:<{wide}} {time:>8}  {files:<8} {check:<6} {verdict:<18} {left}".rstrip()


class RoundRows:
    """Collects the facts of a round; its row is complete when the next thing happens."""

    def __init__(self, layout: Layout, unit: str, so_far: Callable[[LoopState], int]) -> None:
        self._layout = layout
        self._unit, self._so_far = unit, so_far  # what people call a round here, and how they count
        self._number = 0
        self._task = self._agent = ""
        self._ended: RoundEnded | None = None
        self._checks: ChecksEnded | None = None

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> Iterator[str]:
        """Lines that are ready once this fact is known."""
        match fact:
            case RoundStarted():
                yield from self.flush(loop, state)
                self._task = plain(fact.task or "")
                self._agent = plain(fact.agent) if loop.others else ""
            case RoundEnded():
                self._ended, self._number = fact, self._so_far(state)
                if not state.awaiting_checks or not loop.checks or state.checks_passed:
                    yield from self.flush(loop, state)
            case ChecksEnded():
                self._checks = fact
                if self._ended is None:
                    yield self._layout.row(
                        "check", _about(fact, state), duration(fact.seconds), "", _check(fact), "", ""
                    )
                    self._checks = None
                yield from self.flush(loop, state)
            case _:
                pass

    def flush(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """The row of the round that has ended, and what it leads to."""
        ended, checks = self._ended, self._checks
        self._ended = self._checks = None
        if ended is None:
            return
        seconds = ended.seconds + (checks.seconds if checks else 0)
        yield self._layout.row(
            str(self._number),
            self._task or plain(ended.said) or "—",
            duration(seconds),
            _files(ended),
            _check(checks),
            _verdict(ended, checks, loop, state),
            f"{_left(state)} {shorten(self._agent, 12)}".strip(),
        )
        room = self._layout.width - 12
        following = f"{self._unit} {self._number + 1}"
        yield from (f"         └ {shorten(note, room)}" for note in _notes(ended, checks, loop, state, following))


def _about(checks: ChecksEnded, state: LoopState) -> str:
    """Why checks ran that no round led to."""
    if not checks.round:
        return "before anything is changed"
    all_done = state.tasks is not None and not state.tasks.open and not state.tasks.problem
    return "all tasks are done" if all_done else "the work tree as it is now"


def _files(ended: RoundEnded) -> str:
    changes = ended.changes
    parts = [("+", changes.added), ("~", changes.modified), ("-", changes.deleted)]
    return " ".join(f"{sign}{count}" for sign, count in parts if count) or "0"


def _check(checks: ChecksEnded | None) -> str:
    if checks is None:
        return "—"
    failed = sum(not verdict.passed for verdict in checks.verdicts)
    if failed and all(verdict.flaky for verdict in checks.verdicts if not verdict.passed):
        return "FLAKY"
    return "pass" if not failed else "FAIL" if len(checks.verdicts) == 1 else f"FAIL {failed}"


def _verdict(ended: RoundEnded, checks: ChecksEnded | None, loop: Loop, state: LoopState) -> str:
    if cut_by_budget(ended, asked=state.stop_now):
        return "over budget"
    if ended.outcome is not Outcome.OK:
        return outcome(ended.outcome)
    if not ended.progress and state.rounds_without_progress:
        limit = limits_of(loop, state).no_progress
        return f"no change {state.rounds_without_progress}/{limit}" if limit else "no change"
    if checks and not checks.passed:
        return "not yet"
    if ended.closed:
        return "task done" if len(ended.closed) == 1 else f"{len(ended.closed)} tasks done"
    return "progress"


def _left(state: LoopState) -> str:
    return f"{state.tasks.done}/{state.tasks.done + state.tasks.open}" if state.tasks else ""


def _notes(
    ended: RoundEnded, checks: ChecksEnded | None, loop: Loop, state: LoopState, following: str
) -> Iterator[str]:
    if cut_by_budget(ended, asked=state.stop_now):
        yield OVER_BUDGET
    elif ended.outcome is not Outcome.OK and ended.detail:
        yield plain(ended.detail)
    for verdict in checks.verdicts if checks else ():
        if not verdict.passed:
            yield f"{plain(verdict.told)} → sent to the agent in {following}"
    missing = [completion.describe(name, loop, state) for name in completion.missing(loop, state)]
    if ended.promise is Given.GIVEN and missing:
        yield f"the agent's “done” was not accepted: {missing[0]}"
    if ended.promise is Given.MENTIONED:
        yield "the agent mentioned the promise without giving it: not accepted"
    if ended.doubted:
        yield f"ticked without any other change, so doubted: {', '.join(ended.doubted)}"
    if ended.tampered:
        put_back = ", and put back" if ended.restored else ""
        yield f"changed protected files{put_back}: {', '.join(map(plain, ended.tampered))}"
    if ended.blocked:
        yield f"says that only a person can help: {plain(ended.blocked)}"
    for left in ended.leftovers:
        yield f"left behind and ended: {plain(left)}"
