"""One line per round, made from facts: what was done, what git and the checks say of it, what is left."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from bydawn.cli.render import outcome
from bydawn.core import completion
from bydawn.core.breakers import limits_of
from bydawn.core.facts import AnyFact, ChecksEnded, HookEnded, RoundEnded, RoundStarted, TaskSettled, TasksRead
from bydawn.core.loop import Loop
from bydawn.core.outcome import Outcome
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import Given, TaskStatus
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


class _Note(NamedTuple):
    """A line below the row."""

    text: str
    is_told: bool = False  # to the agent, if there is another round


class _Ended(msgspec.Struct, kw_only=True):
    """A round that is over, as far as it can be told: what follows from it is known with the next fact."""

    cells: list[str]  # of its row; none once that is shown
    notes: list["_Note"]
    task: str | None  # the one of a folder that it calls done


class RoundRows:
    """Collects the facts of a round; its row is complete when the next thing happens."""

    def __init__(self, layout: Layout, unit: str, so_far: Callable[[LoopState], int]) -> None:
        self._layout = layout
        self._unit, self._so_far = unit, so_far  # what people call a round here, and how they count
        self._number = 0
        self._task = self._agent = ""
        self._ended: RoundEnded | None = None
        self._checks: ChecksEnded | None = None
        self._over: _Ended | None = None

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> Iterator[str]:
        """Lines that are ready once this fact is known."""
        if not _is_quiet(fact):
            told = f"{self._unit} {self._so_far(state)}" if isinstance(fact, RoundStarted) else ""
            yield from self._released(state, told)
        match fact:
            case RoundStarted():
                yield from self.flush(loop, state)
                self._task = plain(fact.task or "")
                self._agent = plain(fact.agent) if loop.others else ""
            case RoundEnded():
                self._ended, self._number = fact, self._so_far(state)
                if not state.awaiting_checks or not loop.checks or state.checks_passed:
                    yield from self._close(loop, state)
            case ChecksEnded():
                self._checks = fact
                if self._ended is None:
                    yield self._layout.row(
                        "check", _about(fact, state), duration(fact.seconds), "", check(fact), "", ""
                    )
                    self._checks = None
                    yield from self._lines([*_failures(fact)])
                yield from self._close(loop, state)
            case _:
                pass

    def flush(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """All that is known of the round that has ended: nothing more will come of it."""
        yield from self._close(loop, state)
        yield from self._released(state, "")

    def _close(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """The row of the round that has ended; one that calls its task done waits for what becomes of that."""
        ended, checks = self._ended, self._checks
        self._ended = self._checks = None
        if ended is None:
            return
        cells = [
            str(self._number),
            self._task or plain(ended.said) or "—",
            duration(ended.seconds + (checks.seconds if checks else 0)),
            _files(ended),
            check(checks),
            _verdict(ended, checks, loop, state),
            f"{_left(state)} {shorten(self._agent, 12)}".strip(),
        ]
        claimed = state.last.task_id if loop.task_folder and state.last and ended.claim else None
        notes = [*_notes(ended, checks, loop, state)]
        if claimed is None:
            yield self._layout.row(*cells)
            cells = []
        self._over = _Ended(cells=cells, notes=notes, task=claimed)

    def _released(self, state: LoopState, told: str) -> Iterator[str]:
        """What was held back; `told` is the round whose prompt has it."""
        over, self._over = self._over, None
        if over is None:
            return
        if over.cells:
            if over.task in state.settled.done:
                over.cells[-2:] = "task done", f"{_left(state)} {shorten(self._agent, 12)}".strip()
            yield self._layout.row(*over.cells)
        yield from self._lines(over.notes, told)

    def _lines(self, notes: list[_Note], told: str = "") -> Iterator[str]:
        for note in notes:
            sent = f" → sent to the agent in {told}" if told and note.is_told else ""
            yield f"         └ {shorten(note.text, self._layout.width - 12 - len(sent))}{sent}"


def _is_quiet(fact: AnyFact) -> bool:
    """Nothing is shown of it, and it may come between a round and what follows from that."""
    settled = isinstance(fact, TaskSettled) and fact.status is TaskStatus.DONE
    return settled or isinstance(fact, TasksRead) or (isinstance(fact, HookEnded) and fact.passed)


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


def check(checks: ChecksEnded | None) -> str:
    """What the checks of a round said, in a word."""
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


def _failures(checks: ChecksEnded) -> Iterator[_Note]:
    for verdict in checks.verdicts:
        if not verdict.passed:
            yield _Note(plain(verdict.told), is_told=True)
        if verdict.never_ran and not checks.round:
            yield _Note("if its name is wrong, stop now (Ctrl-C): no agent can mend that")


def _notes(ended: RoundEnded, checks: ChecksEnded | None, loop: Loop, state: LoopState) -> Iterator[_Note]:
    if cut_by_budget(ended, asked=state.stop_now):
        yield _Note(OVER_BUDGET)
    elif ended.outcome is not Outcome.OK and ended.detail:
        yield _Note(plain(ended.detail))
    yield from _failures(checks) if checks else ()
    missing = [completion.describe(name, loop, state) for name in completion.missing(loop, state)]
    if ended.promise is Given.GIVEN and missing:
        yield _Note(f"the agent's “done” was not accepted: {missing[0]}")
    if ended.promise is Given.MENTIONED:
        yield _Note("the agent mentioned the promise without giving it: not accepted")
    if ended.doubted:
        yield _Note(f"ticked without any other change, so doubted: {', '.join(ended.doubted)}")
    if ended.tampered:
        put_back = ", and put back" if ended.restored else ""
        yield _Note(f"changed protected files{put_back}: {', '.join(map(plain, ended.tampered))}")
    if ended.blocked:
        yield _Note(f"says that only a person can help: {plain(ended.blocked)}")
    for left in ended.leftovers:
        yield _Note(f"left behind and ended: {plain(left)}")
