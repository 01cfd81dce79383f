"""One line per round of a running loop, printed when its result is known."""

from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from bydawn.core.facts import (
    AnyFact,
    ChecksEnded,
    CommitEnded,
    HookEnded,
    RoundEnded,
    RoundStarted,
    TaskSettled,
    TasksRead,
)
from bydawn.core.history import begun, grown
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import duration, shorten
from bydawn.core.values import TaskStatus
from bydawn.operations.amounts import short_count
from bydawn.operations.rounds import (
    TASK_DONE,
    Remark,
    RoundRow,
    check_words,
    occasion,
    of_commit,
    proof_remarks,
    red_checks,
    row_of,
    tasks_done,
)
from bydawn.operations.sentences import Counting

_NARROW = 60  # below that a row takes two lines: the task, and the rest
_LEAST, _MOST = 20, 72  # columns for a task
_UNKNOWN = "—"  # never zero
_BESIDES = ("files", "$", "tok", "agent")  # these give way to the task, in this order


class Column(msgspec.Struct, frozen=True):
    """What follows the task in a row."""

    name: str
    width: int
    sign: str = "<"
    always: bool = False
    alone: str = "{}"  # where no header explains it

    def cell(self, text: str) -> str:
        return f"{text:{self.sign}{self.width}}"


_COLUMNS = (
    Column("time", 7, ">", always=True),
    Column("files", 8, always=True),
    Column("check", 6, always=True),
    Column("result", 13, always=True),
    Column("tok", 6, ">", alone="{} tok"),
    Column("$", 6, ">", alone="${}"),
    Column("done", 5),
    Column("agent", 12),
)


class Layout(msgspec.Struct, frozen=True):
    """The columns that fit the width; those that are not `used` have nothing to show."""

    width: int
    used: frozenset[str] = frozenset()

    @property
    def is_narrow(self) -> bool:
        return self.width < _NARROW

    @property
    def _used(self) -> list[Column]:
        return [column for column in _COLUMNS if column.always or column.name in self.used]

    @property
    def columns(self) -> list[Column]:
        kept = self._used
        for name in _BESIDES:
            if self._room(kept) < _LEAST:
                kept = [column for column in kept if column.name != name]
        return kept

    def _room(self, columns: list[Column]) -> int:
        return self.width - 9 - sum(column.width + 1 for column in columns)

    def header(self, unit: str) -> list[str]:
        if self.is_narrow:
            return []
        return self._lines(
            unit if len(unit) < 6 else f"{unit[:4]}.", "task", {each.name: each.name for each in _COLUMNS}
        )

    def row(self, row: RoundRow) -> list[str]:
        return self._lines(str(row.number), row.task, self.cells(row))

    @staticmethod
    def cells(row: RoundRow) -> dict[str, str]:
        usage = row.usage
        return {
            "time": duration(row.seconds) if row.seconds is not None else "",
            "files": row.files,
            "check": row.check,
            "result": row.result,
            "tok": short_count(usage.tokens) if usage and usage.tokens is not None else _UNKNOWN,
            "$": f"{usage.cost_usd:.2f}" if usage and usage.cost_usd is not None else _UNKNOWN,
            "done": row.tasks_done,
            "agent": shorten(row.agent, 12),
        }

    def checks(self, checks: ChecksEnded, state: LoopState) -> list[str]:
        """The row of checks that ran without a round."""
        cells = {"time": duration(checks.seconds), "check": check_words(checks)}
        return self._lines("check", occasion(checks, state), cells)

    def _below(self, cells: dict[str, str]) -> list[str]:
        """Everything but the task, for a narrow screen; a cell is never broken."""
        known = [each for each in self._used if cells.get(each.name, "") not in ("", "0", _UNKNOWN)]
        lines: list[str] = []
        for text in (each.alone.format(cells[each.name]) for each in known):
            if lines and len(lines[-1]) + len(text) + 10 <= self.width:
                lines[-1] += f" · {text}"
            else:
                lines.append(text)
        return lines

    def _lines(self, number: str, task: str, cells: dict[str, str]) -> list[str]:
        if self.is_narrow:
            return [f"  {number:<3} {shorten(task, self.width - 7)}", *(f"      {line}" for line in self._below(cells))]
        columns = self.columns
        texts = [cells.get(each.name, "") for each in columns]
        room = min(_MOST, self._room(columns))
        room -= sum(max(0, len(text) - each.width) for each, text in zip(columns, texts, strict=True))
        rest = " ".join(each.cell(text) for each, text in zip(columns, texts, strict=True))
        return [f"  {number:<5} {shorten(task, max(10, room)):<{max(10, room)}} {rest}".rstrip()]


def used_columns(rows: Iterable[RoundRow]) -> frozenset[str]:
    """The columns that not every loop has, if one of these rows fills them."""
    filled = {name for row in rows for name, cell in Layout.cells(row).items() if cell.strip(_UNKNOWN)}
    return frozenset(filled) & {column.name for column in _COLUMNS if not column.always}


class RoundRows:
    """Collects the facts of a round; its row is complete when the next thing happens."""

    def __init__(self, layout: Layout, counting: Callable[[LoopState], Counting], before: LoopState) -> None:
        self._layout, self._counting = layout, counting
        self._attempt = begun(before)
        self._row: RoundRow | None = None  # of a round that is over; the next fact tells what follows from it
        self._is_held = False  # it calls its task done, so its row is shown once that is decided

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> Iterator[str]:
        """Lines that are complete once this fact is known."""
        if not _is_quiet(fact):
            yield from self._release(state, self._counting(state).last if isinstance(fact, RoundStarted) else "")
        at = state.updated_at
        if at and self._attempt and not self._row:
            self._attempt = grown(self._attempt, fact, at)
        match fact:
            case RoundStarted():
                yield from self.flush(loop, state)
                self._attempt = begun(state)
            case RoundEnded() if not state.awaiting_checks or not loop.checks or state.checks_passed:
                yield from self._close(loop, state)
            case CommitEnded() if self._row:
                self._row = replace(self._row, remarks=(*self._row.remarks, *of_commit(fact)))
            case CommitEnded() if not self._attempt:
                yield from self._lines([*of_commit(fact)])
            case ChecksEnded() if self._attempt is None or self._row:
                yield from self._layout.checks(fact, state)
                yield from self._lines([*red_checks(fact), *proof_remarks(fact)])
            case ChecksEnded():
                yield from self._close(loop, state)
            case _:
                pass

    def flush(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """Everything about the round that has ended: nothing more will follow."""
        yield from self._close(loop, state)
        yield from self._release(state)

    def _close(self, loop: Loop, state: LoopState) -> Iterator[str]:
        """The row of the round that has ended."""
        attempt = self._attempt
        if attempt is None or attempt.ended is None or self._row:
            return
        self._row = replace(row_of(attempt, loop, state), number=self._counting(state).number)
        self._is_held = loop.task_folder and bool(attempt.started.task_id and attempt.ended.claim)
        if not self._is_held:
            yield from self._shown(self._row, state)

    def _release(self, state: LoopState, sent_in: str = "") -> Iterator[str]:
        """What was held back; `sent_in` is the round whose prompt contains it."""
        row = self._row
        if row is None:
            return
        self._row = self._attempt = None
        if self._is_held and row.attempt.started.task_id in state.settled.done:
            row = replace(row, result=TASK_DONE, tasks_done=tasks_done(state))
        if self._is_held:
            yield from self._shown(row, state)
        yield from self._lines(row.remarks, sent_in)

    def _shown(self, row: RoundRow, state: LoopState) -> Iterator[str]:
        """A row; below a new header if this is the first agent to say what it used."""
        new = used_columns([row]) - self._layout.used
        if new:
            self._layout = replace(self._layout, used=self._layout.used | new)
            yield from self._layout.header(self._counting(state).unit)
        yield from self._layout.row(row)

    def _lines(self, shown: Iterable[Remark], sent_in: str = "") -> Iterator[str]:
        layout = self._layout
        indent = " " * (4 if layout.is_narrow else 8)
        for remark in shown:
            sent = f"→ sent to the agent in {sent_in}" if sent_in and remark.for_agent else ""
            room = layout.width - len(indent) - 3
            if sent and not layout.is_narrow:
                yield f"{indent}└ {shorten(remark.text, room - len(sent) - 1)} {sent}"
                continue
            yield f"{indent}└ {shorten(remark.text, room)}"
            if sent:
                yield f"{indent}  {sent}"


def _is_quiet(fact: AnyFact) -> bool:
    """Is it not shown, and may it come between a round and what follows from it?"""
    settled = isinstance(fact, TaskSettled) and fact.status is TaskStatus.DONE
    return settled or isinstance(fact, TasksRead | CommitEnded) or (isinstance(fact, HookEnded) and fact.passed)
