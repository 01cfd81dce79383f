"""What `strict-agent-loop supervise` prints: plain lines, each with the time and its kind, made to be piped."""

import sys
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bydawn.cli import render
from bydawn.cli.dialects.log_screen import LogScreen, line
from bydawn.core import agent, facts
from bydawn.core.loop import Loop
from bydawn.core.quote import Keep, cut
from bydawn.core.records import COMPLETED, RUNNING, Entry
from bydawn.core.redact import rewritten
from bydawn.core.state import LoopState
from bydawn.core.text import duration, last_part, plain, shorten
from bydawn.dialects.seam import Dialect
from bydawn.dialects.strict_agent_loop import document, paths, texts
from bydawn.operations.amounts import plural
from bydawn.operations.rounds import outcome_words
from bydawn.process.guardian import Tether
from bydawn.store.registry import Standing
from bydawn.system.user_folders import tilde

if TYPE_CHECKING:
    from bydawn.operations.plan import Plan

_ANNOUNCED = "round.started"  # the kind of the event with which an agent announces an iteration
_TAIL = 600  # characters of the output of a command that failed
_MESSAGE, _TEXT, _COMMAND = 4000, 300, 120  # characters; invocation-0001.jsonl has all of it
_KINDS = {agent.Retry: "retry", agent.Denied: "denied", agent.LimitNotice: "limit", agent.Notice: "note"}


class Screen(LogScreen):
    """Which iteration it is, whether it lives, what it does, and how long it will take."""

    def __init__(self, dialect: Dialect, cycles: int | None = None, heartbeat: float = 30.0) -> None:
        super().__init__(dialect, cycles, heartbeat=heartbeat or None)
        self._hide: Callable[[str], str] = str
        self._loop: Loop | None = None
        self._running = ""  # the command that the agent started last
        self._heard_at = datetime.now(UTC)
        self._announced = 0  # the last iteration that was announced in full

    def run(self, tether: Tether, planned: "Plan") -> int:
        self._hide = planned.secrets.hide
        return super().run(tether, planned)

    def summary(self, standing: Standing, stopped: facts.LoopStopped) -> str:
        task, state = document.state_of(standing.loop, standing.state).task.id, standing.state
        done = f"{plural(state.records.iterations, 'iteration')}, {duration(state.elapsed)}"
        word = {RUNNING: "", COMPLETED: ""}.get(status := self._dialect.word(stopped), f"{status}: ")
        return f"{task} {word}{self._dialect.reason(stopped)}\n  {done}"

    # -- what happened -------------------------------------------------------------------------------------------------

    def saw(self, fact: facts.AnyFact, loop: Loop, state: LoopState) -> None:
        self._loop = loop
        match fact:
            case facts.RunStarted():
                made = document.state_of(loop, state)
                most, stuck = made.limits.max_iterations, made.limits.max_no_progress_rounds
                self._row("task", f"{made.task.id}: {shorten(made.goal, _TEXT)}")
                self._row("task", f"at most {most} iterations, {stuck} without progress; Ctrl-C stops it now")
                self._row("task", f"files: {tilde(loop.workspace)}/{paths.root(made.task.id)}/")
            case facts.RoundStarted():
                self._running, self._heard_at = "", datetime.now(UTC)
                self._announce(loop, state)
            case facts.EventRecorded(kind=kind) if kind == _ANNOUNCED:
                said = fact.data.get("task") or fact.message, fact.data.get("local_done_condition", "")
                self._announce(loop, state, *(shorten(text, _TEXT) for text in said))
            case facts.EventRecorded():
                self._row("event", shorten(f"{fact.kind}: {fact.message}", _TEXT))
            case facts.IterationRecorded():
                self._recorded(loop, state.records.entries[-1])
            case facts.RoundEnded():
                self._ended(fact, loop, state)
            case facts.ChecksEnded():
                red = [f"✗ {shorten(each.check, 80)}: {each.told}" for each in fact.verdicts if not each.passed]
                total = plural(len(fact.verdicts), "stop check")
                self._row("checks", "\n".join([f"{len(fact.verdicts) - len(red)} of {total} passed", *red]))
            case _:
                pass
        if isinstance(fact, facts.EventRecorded | facts.IterationRecorded | facts.ChecksEnded):
            self._before = state
        else:
            super().saw(fact, loop, state)

    def _announce(self, loop: Loop, state: LoopState, task: str = "", done: str = "") -> None:
        """All of it once per iteration; if the agent says more of the same one, only that."""
        made, number = document.state_of(loop, state), state.records.iterations + 1
        if number == self._announced and task:
            told = [f"This round: {task}", *([f"Local done condition: {done}"] if done else [])]
        else:
            stop = document.stop_report(made, state.verdicts, datetime.now(UTC))
            told = [f"Invocation: {made.supervisor.invocation_count}", *texts.announcement(made, task, done, stop)]
            line("")
        self._announced = number
        self._row("round", "\n".join(told))

    def _recorded(self, loop: Loop, entry: Entry) -> None:
        claim, took = entry.claim, f" ({duration(entry.seconds)})" if entry.seconds is not None else ""
        self._row("saved", shorten(f"iteration {entry.number}: {claim.task}: {claim.result_summary}", _TEXT) + took)
        self._row("saved", shorten(f"verified: {claim.verification_summary}", _TEXT))
        if entry.batched:
            self._row("WARNING", f"iteration {entry.number} cannot have been done alone: {entry.batched}")
        if claim.ends == COMPLETED and loop.checks:
            self._row("saved", "it says that the task is done; only the stop checks decide")

    def _ended(self, fact: facts.RoundEnded, loop: Loop, state: LoopState) -> None:
        records, number = state.records, document.state_of(loop, state).supervisor.invocation_count
        detail = f": {fact.detail}" if fact.detail else ""
        self._row("end", f"invocation {number} after {duration(fact.seconds)}: {outcome_words(fact.outcome)}{detail}")
        told = f"{plural(records.in_round, 'iteration')} recorded"
        if not records.in_round and records.entries and records.entries[-1].round == fact.round:
            told += f", so its reply counts as iteration {records.iterations}"
        self._row("end", told)

    # -- what the agent does -------------------------------------------------------------------------------------------

    def heard(self, event: agent.Event) -> None:
        if isinstance(event, agent.Beat):
            self._beat()
            return
        event = rewritten(event, lambda text: self._hide(plain(text)))
        self._heard_at = datetime.now(UTC)
        match event:
            case agent.Message():
                self._row("agent", cut(event.text.strip(), _MESSAGE, Keep.BOTH))
            case agent.CommandStarted():
                self._running = event.command
                self._row("start", self._typed(event.command))
                if event.beside:
                    self._row("WARNING", f"it started while another command was running: {self._typed(event.beside)}")
            case agent.CommandEnded():
                self._running = "" if event.command == self._running else self._running
                word = "failed" if event.failed else "done"
                tail = last_part(event.output.strip(), _TAIL) if event.failed else ""
                kind = word if event.exit_code is None else f"exit {event.exit_code}"
                self._row(kind, f"{self._typed(event.command)}\n{tail}")
            case agent.Activity() | agent.Retry() | agent.Denied() | agent.LimitNotice() | agent.Notice():
                self._row(_KINDS.get(type(event), "does"), shorten(event.text, _TEXT))
            case _:
                pass

    def _beat(self) -> None:
        """It lives: what it does, for how long, how far it is."""
        if self._loop is None:
            return
        state, now = self._before, datetime.now(UTC)
        made, opened = document.state_of(self._loop, state), state.open_round
        doing = "the stop checks are running"
        if opened:
            what = f"runs {self._typed(self._running)}" if self._running else "no command is running"
            age, silence = ((now - then).total_seconds() for then in (opened.started_at, self._heard_at))
            number = made.supervisor.invocation_count
            doing = f"invocation {number} for {duration(age)}, {what}, last output {duration(silence)} ago"
        self._row("alive", f"iteration {state.records.iterations + 1}: {doing}")
        self._row("alive", "\n".join(texts.heartbeat(made, document.stop_report(made, state.verdicts, now))))

    # -- lines ---------------------------------------------------------------------------------------------------------

    def _typed(self, command: str) -> str:
        """A command that fits: paths begin in the workspace."""
        return shorten(command.replace(f"{self._loop.workspace}/", "") if self._loop else command, _COMMAND)

    def _own(self, text: str) -> None:
        line(text)

    def _remark(self, text: str) -> None:
        self._row("loop", text)

    def _row(self, kind: str, text: str) -> None:
        """Lines of one kind; a terminal gets them wrapped, a pipe as they are."""
        rows = plain(text).splitlines()
        if sys.stdout.isatty():
            rows = [part for row in rows for part in textwrap.wrap(row, render.width() - 19, break_on_hyphens=False)]
        for number, row in enumerate(rows):
            stamp = "" if number else f"{datetime.now().astimezone():%H:%M:%S}"
            line(f"{stamp:8} {kind:<7} | {row}")
