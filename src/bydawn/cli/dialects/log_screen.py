"""The screen of a dialect whose log is what people watch."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli import render
from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, ChecksEnded, CommitEnded, LoopStopped, WaitStarted
from bydawn.core.loop import Loop
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.core.values import Advice
from bydawn.dialects import own_words
from bydawn.dialects.seam import Dialect
from bydawn.process.guardian import Tether

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bydawn.operations.plan import Plan
    from bydawn.store.registry import Standing


class LogScreen:
    """The log on stdout as it grows, and our own words on stderr."""

    def __init__(
        self,
        dialect: Dialect,
        runs: int | None = None,
        seconds: float | None = None,
        heartbeat: float | None = None,
        **more: Any,
    ) -> None:
        """`more` goes to the worker."""
        self._dialect = dialect
        self._runs = runs
        self._seconds = seconds
        self._heartbeat = heartbeat
        self._more = more
        self._before = LoopState()

    def run(self, tether: Tether, planned: "Plan") -> int:
        from bydawn.assemble import Worker
        from bydawn.cli.foreground import warn_if_unbounded
        from bydawn.operations.run_loop import run
        from bydawn.store.registry import standing_of

        here, dialect = str(Path.cwd()), self._dialect
        self._before = planned.standing.state if planned.standing else self._before
        warn_if_unbounded(planned)
        for warning in planned.warnings:
            self._say(warning)
        worker = Worker(
            tether=tether,
            followers=(self,),
            say=self._say,
            grown=line,
            go_on=shlex.join([dialect.name, *dialect.go_on(planned.loop)]),
            rounds_allowed=self._runs,
            seconds_allowed=self._seconds,
            heartbeat=self._heartbeat,
            **self._more,
        )
        stopped = run(planned, worker)
        if standing := standing_of(planned.folder):
            self._own(f"\n  {plain(self.summary(standing, stopped))}")
            for row in self.evidence(standing):
                self._own(f"  · {plain(own_words.in_passing(row, dialect.unit))}")
            for step in render.step_lines(dialect.next_steps(standing.loop, standing.state, stopped, here)):
                self._own(step)
        return self.exit_code(stopped)

    def summary(self, standing: "Standing", stopped: LoopStopped) -> str:  # noqa: ARG002
        return self._dialect.reason(stopped)

    def evidence(self, standing: "Standing") -> "Sequence[str]":
        from bydawn.operations import reasons

        return reasons.evidence(standing)

    def exit_code(self, stopped: LoopStopped) -> int:
        return self._dialect.exit_code(stopped)

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        """What the log does not tell: answers to a person, commits, checks."""
        from bydawn.operations.rounds import of_commit, red_checks

        match fact:
            case CommitEnded():
                said = [remark.text for remark in of_commit(fact)]
            case ChecksEnded():
                said = [remark.text for remark in red_checks(fact)]
                self._say_what_runs_outside(fact, loop, state)
            case WaitStarted() if fact.decided.rule == Rule.PAUSE:
                said = []
            case _:
                said = self._sentences(fact, loop, state)
        for text in said:
            self._remark(text)
        self._before = state

    def _sentences(self, fact: AnyFact, loop: Loop, state: LoopState) -> list[str]:
        from bydawn.operations.sentences import Counting, sentences

        counting = Counting(unit=self._dialect.unit, number=self._dialect.counted(state))
        rows = sentences(fact, loop, self._before, state, counting)
        return [f"{row.sign} {row.text}".lstrip() for row in rows]

    def _say_what_runs_outside(self, fact: ChecksEnded, loop: Loop, state: LoopState) -> None:
        """Found out before the first iteration; a later start has it from the record."""
        for text in [] if fact.round else self._sentences(fact, loop, state):
            self._remark(text)

    def heard(self, event: Event) -> None:
        """The log has it."""

    def _say(self, text: str) -> None:
        self._remark(Advice("! ", text))

    def _remark(self, text: str) -> None:
        dialect = self._dialect
        self._own(f"  {render.as_typed(own_words.in_passing(text, dialect.unit, dialect.own))}")

    def _own(self, text: str) -> None:
        line(text, err=True)


def line(text: str, *, err: bool = False) -> None:
    """The reader of a pipe, or the terminal, may be gone; the loop goes on without it."""
    with suppress(OSError):
        click.echo(text, err=err)
