"""One line per round of a running loop, printed when its result is known."""

from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import AnyFact, ChecksEnded, HookEnded, RoundEnded, RoundStarted, TaskSettled, TasksRead
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import TaskStatus
from bydawn.operations.rounds import (
    Remark,
    RoundRow,
    check_words,
    occasion,
    red_checks,
    remarks,
    row_at_end,
    tasks_done,
)
from bydawn.operations.sentences import Counting

_NARROW = 72


class Layout(msgspec.Struct, frozen=True):
    """The columns that fit the width."""

    width: int

    @property
    def task_width(self) -> int:
        return max(16, min(40, self.width - 58)) if self.width >= _NARROW else max(10, self.width - 30)

    def header(self, unit: str) -> str:
        number = unit if len(unit) < 6 else f"{unit[:4]}."
        return self._line(number, "task", "time", "files", "check", "result", "")

    def row(self, row: RoundRow) -> str:
        task, seconds = shorten(row.task, self.task_width), duration(row.seconds or 0)
        last = f"{row.tasks_done} {shorten(row.agent, 12)}".strip()
        return self._line(str(row.number), task, seconds, row.files, row.check, row.result, last)

    def checks(self, checks: ChecksEnded, state: LoopState) -> str:
        """The row of checks that ran without a round."""
        task = shorten(occasion(checks, state), self.task_width)
        return self._line("check", task, duration(checks.seconds), "", check_words(checks), "", "")

    def _line(self, number: str, task: str, time: str, files: str, check: str, result: str, last: str) -> str:
        wide = self.task_width
        if self.width < _NARROW:
            return f"  {number:<5} {task:<{wide}} {time:>7} {check:<5} {last}".rstrip()
        return f"  {number:<6} {task:<{wide}} {time:>8}  {files:<8} {check:<6} {result:<18} {last}".rstrip()


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A round that has ended; the next fact tells what follows from it."""

    row: RoundRow | None  # None once shown
    remarks: list[Remark]
    task: str | None = None  # the task of a folder that it calls done


class RoundRows:
    """Collects the facts of a round; its row is complete when the next thing happens."""

    def __init__(self, layout: Layout, counting: Callable[[LoopState], Counting]) -> None:
        self._layout, self._counting = layout, counting
        self._number = 0
        self._task = self._agent = ""
        self._ended: RoundEnded | None = None
        self._checks: ChecksEnded | None = None
        self._over: _Ended | None = None

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> Iterator[str]:
        """Lines that are complete once this fact is known."""
        if not _is_quiet(fact):
            yield from self._release(state, self._counting(state).last if isinstance(fact, RoundStarted) else "")
        match fact:
            case RoundStarted():
                yield from self.flush(loop, state)
                self._task = plain(fact.task or "")
                self._agent = plain(fact.agent) if loop.others else ""
            case RoundEnded():
                self._ended, self._number = fact, self._counting(state).number
                if not state.awaiting_checks or not loop.checks or state.checks_passed:
                    yield from self._close(loop, state)
            case ChecksEnded() if self._ended is None:
                yield self._layout.checks(fact, state)
                yield from self._lines([*red_checks(fact)])
            case ChecksEnded():
                self._checks = fact
                yield from self._close(loop, state)
            case _:
                pass

    def flush(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """Everything about the round that has ended: nothing more will follow."""
        yield from self._close(loop, state)
        yield from self._release(state)

    def _close(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """The row of the round that has ended; one that calls its task done is held back until that is decided."""
        ended, checks = self._ended, self._checks
        self._ended = self._checks = None
        if ended is None:
            return
        row = row_at_end(ended, checks, loop, state)
        row = replace(row, number=self._number, task=self._task or row.task, agent=self._agent)
        claimed = state.last.task_id if loop.task_folder and state.last and ended.claim else None
        if claimed is None:
            yield self._layout.row(row)
        self._over = _Ended(row=row if claimed else None, remarks=[*remarks(ended, checks, loop, state)], task=claimed)

    def _release(self, state: LoopState, sent_in: str = "") -> Iterator[str]:
        """What was held back; `sent_in` is the round whose prompt contains it."""
        over, self._over = self._over, None
        if over is None:
            return
        if over.row and over.task in state.settled.done:
            yield self._layout.row(replace(over.row, result="task done", tasks_done=tasks_done(state)))
        elif over.row:
            yield self._layout.row(over.row)
        yield from self._lines(over.remarks, sent_in)

    def _lines(self, shown: list[Remark], sent_in: str = "") -> Iterator[str]:
        for remark in shown:
            sent = f" → sent to the agent in {sent_in}" if sent_in and remark.for_agent else ""
            yield f"         └ {shorten(remark.text, self._layout.width - 12 - len(sent))}{sent}"


def _is_quiet(fact: AnyFact) -> bool:
    """Is it not shown, and may it come between a round and what follows from it?"""
    settled = isinstance(fact, TaskSettled) and fact.status is TaskStatus.DONE
    return settled or isinstance(fact, TasksRead) or (isinstance(fact, HookEnded) and fact.passed)
