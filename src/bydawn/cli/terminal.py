"""What a running loop prints: a row per round, a live block below, a summary at the end."""

import time
from datetime import UTC, datetime

from bydawn.cli import render
from bydawn.cli.rows import Layout, RoundRows
from bydawn.cli.screen import Screen
from bydawn.cli.voice import Voice
from bydawn.core.agent import Activity, CommandEnded, Denied, Event, LimitNotice, Message, Retry
from bydawn.core.breakers import limits_of
from bydawn.core.decide import Pause, Stop, next_action
from bydawn.core.facts import AnyFact, LoopStopped, Obstructed, RoundStarted, RunStarted, WaitStarted
from bydawn.core.loop import Loop
from bydawn.core.redact import rewritten
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import End, Next, Now, Status, TaskReading
from bydawn.operations import outputs, reasons
from bydawn.operations.pending import asked, asked_words, waiting_words
from bydawn.operations.plan import Plan
from bydawn.operations.sentences import WARNING, Sentence, amount_done, opening, sentences, time_left_words
from bydawn.operations.views import NEEDS_YOU
from bydawn.store.registry import Standing


class Terminal:
    """A follower that writes for people; it can neither slow the loop down nor stop it."""

    def __init__(self, planned: Plan, *, plain: bool, voice: Voice) -> None:
        self._plan = planned
        self._voice = voice
        self._layout = Layout(render.width())
        self._rows = RoundRows(self._layout, voice.counting)
        self._state: LoopState | None = None
        self._before = planned.standing.state if planned.standing else LoopState()
        self._doing = ""
        self._shown: set[str] = set()  # messages that are shown only once
        self._round_began = 0.0
        self._screen = Screen(self._block, plain=plain)

    def warn(self, text: str) -> None:
        """Show a warning."""
        self._screen.line(f"  ! {text}")

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        self._state = state
        for line in self._rows.saw(fact, loop, state):
            self._screen.line(line)
        match fact:
            case RunStarted() if not self._plan.goes_on or _will_work(loop, state):
                self._open(loop, state, fact.tasks)
            case RoundStarted():
                self._round_began = time.monotonic()
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
        elif isinstance(event, LimitNotice | Denied) and self._is_new(event.text):
            sign = WARNING if isinstance(event, Denied) else "◷"
            text = shorten(self._plan.secrets.hide(plain(event.text)), self._layout.width)
            self._screen.line(f"         {sign} {text}")

    def close(self) -> None:
        self._screen.close()

    def _say(self, sentence: Sentence) -> None:
        indent = 2 if sentence.sign in ("", WARNING) else 9  # between rounds, aligned with the task column
        self._screen.line(f"{' ' * indent}{f'{sentence.sign} {sentence.text}'.lstrip()}")

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
            self._screen.line(line)
        if self._plan.goes_on:
            self._screen.line(f"  Continuing {loop.id} after {counting.last}.")
        for field in opening(loop, state, tasks, counting.unit):
            self._screen.line(f"  {field.label:<6} {shorten(field.text, self._layout.width - 9)}")
        self._screen.line("")
        self._screen.line(self._layout.header(counting.unit))

    # -- the live block --------------------------------------------------------------------------------------------

    def _block(self, width: int) -> list[str]:
        """At most three lines: how far, what now, last output."""
        state = self._state
        if state is None:
            return ["  starting"]
        lines = [self._how_far(state, width)]
        if state.open_round:
            spent = duration(time.monotonic() - self._round_began)
            doing = shorten(self._plan.secrets.hide(plain(self._doing)), 80)
            silence = duration(outputs.seconds_of_silence(self._plan.folder, state.open_round))
            lines.append(f"  now    {self._voice.counting(state).last}, {spent} · {doing}")
            lines.append(f"  alive  last output {silence} ago")
        elif state.waiting:
            lines.append(f"  now    {waiting_words(state.waiting)}: {plain(state.waiting.reason)}")
        else:
            lines.append("  now    checks")
        if pending := asked(state):
            lines[-1] += f" · {asked_words(pending, self._voice.counting(state).last)}"
        return [line[: width - 1] for line in lines]

    def _how_far(self, state: LoopState, width: int) -> str:
        if not state.tasks:
            limit = limits_of(self._plan.loop, state).rounds
            return f"  {state.rounds}{f' of at most {limit}' if limit else ''} {self._voice.counting(state).unit}s done"
        done, total = state.tasks.done, state.tasks.total
        room = max(8, min(24, width - 50))
        full = room * done // max(total, 1)
        return f"  {'█' * full}{'░' * (room - full)}  {done} of {total} tasks   {time_left_words(state)}"

    # -- the end ---------------------------------------------------------------------------------------------------

    def _summary(self, fact: LoopStopped, loop: Loop, state: LoopState) -> None:
        say, status = self._screen.line, Status(fact.end)
        standing = Standing(folder=self._plan.folder, loop=loop, state=state, alive=False)
        amount = amount_done(loop, state, self._voice.counting(state))
        say(f"\n  {render.SIGNS[status]} {self._voice.word(fact)}: {amount}.")
        if not standing.finished:
            say(f"    {plain(self._voice.reason(standing))}")
        for row in reasons.evidence(standing) if fact.end not in (End.PAUSED, End.STOPPED) else ():
            # A command and a path are useful only in full.
            room = 2000 if fact.decided.rule == Rule.OBSTRUCTED else self._layout.width - 8
            say(f"    · {reasons.fit_line(standing, row, room)}")
        if state.last and state.last.said and status in NEEDS_YOU:
            say(f"    The agent said: “{shorten(state.last.said, 2 * self._layout.width)}”")
        say("")
        for step in self._voice.next_steps(standing):
            say(self._step(step))

    def _step(self, step: Next) -> str:
        if not step.command:
            return f"    {step.why}"
        wide = self._layout.width >= 80
        return f"    {step.command:<40}  {step.why}" if wide else f"    {step.command}\n      {step.why}"


def _will_work(loop: Loop, state: LoopState) -> bool:
    """Is there work left? Otherwise the loop ends at once, and the summary says it all."""
    return not isinstance(next_action(loop, state, Now(datetime.now(UTC), state.elapsed)), Stop | Pause)
