"""What a running loop prints: a row per round, a live block below, a summary at the end."""

from datetime import UTC, datetime
from pathlib import Path

from bydawn.cli import render
from bydawn.cli.live_block import live_block, running
from bydawn.cli.rows import Layout, RoundRows
from bydawn.cli.screen import Screen
from bydawn.cli.voice import Voice
from bydawn.core.agent import Activity, CommandEnded, Denied, Event, LimitNotice, Message, Notice, Retry
from bydawn.core.decide import Pause, Stop, next_action
from bydawn.core.facts import AnyFact, LoopStopped, Obstructed, RoundStarted, RunStarted, WaitStarted
from bydawn.core.loop import Loop
from bydawn.core.redact import rewritten
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import End, Now, Status, TaskReading
from bydawn.operations import reasons
from bydawn.operations.changed import changed, look
from bydawn.operations.plan import Plan
from bydawn.operations.rounds import usage_columns
from bydawn.operations.sentences import WARNING, Sentence, amount_done, opening, sentences
from bydawn.operations.views import NEEDS_YOU, at_first_sight
from bydawn.store.registry import Standing
from bydawn.store.worker_log import WorkerLog


class Terminal:
    """A follower that writes for people; it can neither slow the loop down nor stop it."""

    def __init__(
        self, planned: Plan, *, plain: bool, voice: Voice, out: WorkerLog | None = None, on_ctrl_c: str | None = None
    ) -> None:
        self._plan = planned
        self._here = Path.cwd()  # where the command was typed: a running loop is in its workspace
        self._voice = voice
        self._on_ctrl_c = on_ctrl_c  # if it does not reach the loop
        self._before = planned.standing.state if planned.standing else LoopState()
        columns = {"done": planned.loop.tasks, "agent": planned.loop.others}
        used = usage_columns(planned.loop, self._before) | {name for name, given in columns.items() if given}
        self._layout = Layout(render.width(), used)
        self._rows = RoundRows(self._layout, voice.counting, self._before)
        self._state: LoopState | None = None
        self._doing = ""
        self._shown: set[str] = set()  # messages that are shown only once
        self._screen = Screen(self._block, plain=plain, out=out)

    def warn(self, text: str) -> None:
        """Show a warning."""
        self._wrap(f"! {text}", 2)

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        self._state = state
        for line in self._rows.saw(fact, loop, state):
            self._screen.line(line)
        match fact:
            case RunStarted() if fact.cycle < 2 and (not self._plan.goes_on or _will_work(loop, state)):
                self._open(loop, state, fact.found.tasks)
            case RoundStarted():
                self._doing = "starting"
            case WaitStarted():
                self._flush(loop, state)
            case LoopStopped():
                self._flush(loop, state)
                self._summary(fact, loop, state)
            case _:
                pass
        for sentence in sentences(fact, loop, self._before, state, self._voice.counting(state)):
            if not isinstance(fact, Obstructed) or self._is_new(sentence.text):  # a start may record it twice
                self._say(sentence)
        self._before = state

    def heard(self, event: Event) -> None:
        if isinstance(event, Activity | Message | Retry):
            self._doing = event.text  # cleaned only when shown: floods of these may come
        elif isinstance(event, CommandEnded):
            self._doing = rewritten(event, self._plan.secrets.hide).text
        elif isinstance(event, Notice):
            self.warn(event.text)
        elif isinstance(event, LimitNotice | Denied) and self._is_new(event.text):
            sign = WARNING if isinstance(event, Denied) else "◷"
            text = shorten(self._plan.secrets.hide(plain(event.text)), self._layout.width)
            self._screen.line(f"         {sign} {text}")

    def close(self) -> None:
        self._screen.close()

    def _say(self, sentence: Sentence) -> None:
        indent = 2 if sentence.sign in ("", WARNING) else 9  # between rounds, aligned with the task column
        self._wrap(f"{sentence.sign} {sentence.text}".lstrip(), indent)

    def _is_new(self, text: str) -> bool:
        known = text in self._shown
        self._shown.add(text)
        return not known

    def _flush(self, loop: Loop, state: LoopState) -> None:
        for line in self._rows.flush(loop, state):
            self._screen.line(line)

    # -- the top ---------------------------------------------------------------------------------------------------

    def _open(self, loop: Loop, state: LoopState, tasks: TaskReading | None) -> None:
        counting = self._voice.counting(state)
        for line in self._voice.opening(loop):
            self._wrap(line, 2 if line else 0)
        if self._plan.goes_on:
            self._screen.line(f"  Continuing {loop.id} after {counting.last}.")
        for field in opening(loop, state, tasks, counting.unit):
            text = self._on_ctrl_c if self._on_ctrl_c and field.label == "Ctrl-C" else field.text
            self._screen.line(f"  {field.label:<6} {shorten(text, self._layout.width - 9)}")
        self._screen.line("")
        for line in self._layout.header(counting.unit):
            self._screen.line(line)

    # -- the live block --------------------------------------------------------------------------------------------

    def _block(self, width: int) -> list[str]:
        state = self._state
        if state is None:
            return ["  starting"]
        if state.stopped and self._plan.loop.notify:
            return ["  sending notices"]
        now = running(self._plan, state, self._doing)
        return live_block(self._plan.loop, state, width, self._voice.counting(state), now)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _summary(self, fact: LoopStopped, loop: Loop, state: LoopState) -> None:
        status = Status(fact.end)
        standing = Standing(folder=self._plan.folder, loop=loop, state=state, alive=False)
        amount = amount_done(loop, state, self._voice.counting(state))
        if standing.finished and not loop.dialect and (more := at_first_sight(state)):
            amount += f"; {more}"
        self._screen.line("")
        self._wrap(f"{status.sign} {self._voice.word(fact)}: {amount}.", 2)
        if not standing.finished:
            self._wrap(plain(self._voice.reason(standing)))
        for row in reasons.evidence(standing) if fact.end not in (End.PAUSED, End.STOPPED) else ():
            # A command and a path are useful only in full.
            room = 2000 if fact.decided.rule == Rule.OBSTRUCTED else max(92, self._layout.width - 8)
            self._wrap(f"· {reasons.fit_line(standing, row, room)}")
        if state.last and state.last.ended.said and status in NEEDS_YOU:
            self._wrap(f"The agent said: “{shorten(state.last.ended.said, 2 * self._layout.width)}”")
        if not loop.dialect and (found := changed(standing)):
            self._wrap(f"Changed {found.words}:")
            self._screen.line(f"      {look(standing, found, self._here).command}")
            if loop.worktree:
                from bydawn.operations.worktrees import in_the_way  # few loops have one

                if why := in_the_way(loop):
                    self._wrap(f"{why[0].upper()}{why[1:]}.")
        self._screen.line("")
        for line in render.step_lines(self._voice.next_steps(standing)):
            self._screen.line(line)

    def _wrap(self, text: str, indent: int = 4) -> None:
        for line in render.wrapped(text, indent):
            self._screen.line(f"{' ' * indent}{line}")


def _will_work(loop: Loop, state: LoopState) -> bool:
    """Is there work left? Otherwise the loop ends at once, and the summary says it all."""
    return not isinstance(next_action(loop, state, Now(datetime.now(UTC), state.elapsed)), Stop | Pause)
