"""What a person sees while a loop runs: rows that stay, a live block below, the summary last."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from bydawn.cli import render
from bydawn.cli.rows import Layout, RoundRows
from bydawn.cli.screen import Screen
from bydawn.cli.voice import Voice
from bydawn.core.agent import Activity, Denied, Event, LimitNotice, Message, Retry
from bydawn.core.breakers import limits_of
from bydawn.core.decide import Pause, Stop, next_action
from bydawn.core.facts import (
    AgentLimited,
    AnyFact,
    CheckpointApproved,
    HookEnded,
    LedgerRepaired,
    LimitsRaised,
    LoopStopped,
    MachineSlept,
    NoteAdded,
    Obstructed,
    PauseRequested,
    RoundStarted,
    RunStarted,
    StopRequested,
    TamperingAccepted,
    TaskSettled,
    WaitStarted,
)
from bydawn.core.hooks import complaint
from bydawn.core.loop import CommandCheck, Limits, Loop, OnInterrupt
from bydawn.core.progress import time_left
from bydawn.core.rules import Rule
from bydawn.core.state import LoopState
from bydawn.core.text import duration, plain, shorten
from bydawn.core.values import End, Now, Status, TaskReading, TaskStatus
from bydawn.operations import reasons
from bydawn.operations.plan import Plan
from bydawn.store.registry import Standing


class Terminal:
    """A follower that writes for people; it can neither slow the loop down nor stop it."""

    def __init__(self, planned: Plan, *, plain: bool, voice: Voice) -> None:
        self._plan = planned
        self._voice = voice
        self._layout = Layout(render.width())
        self._rows = RoundRows(self._layout, voice.unit, voice.so_far)
        self._state: LoopState | None = None
        self._doing = ""
        self._told: set[str] = set()  # notices, each of which is worth one line
        self._round_began = 0.0
        self._screen = Screen(self._block, plain=plain)

    def warn(self, text: str) -> None:
        """Something a person should know about the loop's own files."""
        self._screen.line(f"  ! {text}")

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        self._state = state
        for line in self._rows.saw(fact, loop, state):
            self._screen.line(line)
        match fact:
            case RunStarted():
                if not self._plan.goes_on or self._will_work(loop, state):
                    self._open(loop, fact.tasks)
                if fact.put_back:
                    names = ", ".join(map(plain, fact.put_back[:3]))
                    self._screen.line(f"  ! protected files were changed while nobody looked, and put back: {names}")
            case RoundStarted():
                self._round_began = time.monotonic()
                self._doing = "starting"
                if fact.notes:
                    many = f"{len(fact.notes)} notes" if len(fact.notes) > 1 else "your note"
                    self._screen.line(f"         ✎ {many} went into the prompt of {self._now(state)}")
            case WaitStarted():
                self._flush(loop, state)
                until = f" until {fact.until.astimezone():%H:%M}" if fact.until else f" {duration(fact.seconds)}"
                free = f" (costs no {self._voice.unit})" if _costs_nothing(fact, state) else ""
                self._screen.line(f"         … waiting{until}: {plain(fact.reason)}{free}")
            case TaskSettled() if fact.status is not TaskStatus.DONE:
                word = {TaskStatus.OPEN: "open again"}.get(fact.status, fact.status.value)
                why = f": {plain(fact.reason)}" if fact.reason else ""
                self._screen.line(f"         ▷ {word}: “{plain(fact.text)}”{why}")
            case CheckpointApproved():
                self._screen.line(f"         ✓ approved by {plain(fact.by)}: {plain(fact.text)}")
            case TamperingAccepted():
                self._screen.line(f"         ✓ accepted by {plain(fact.by)}: {', '.join(map(plain, fact.paths))}")
            case AgentLimited():
                until = f"{fact.until.astimezone():%H:%M}"
                self._screen.line(
                    f"         ◷ {plain(fact.agent)} is limited until {until}: the loop {plain(fact.by)} ran into it"
                )
            case MachineSlept():
                self._screen.line(f"         ☾ the machine slept {duration(fact.seconds)}; no timer ran meanwhile")
            case NoteAdded():
                self._screen.line(f"         ✎ note from {plain(fact.by)} for the next prompt")
            case PauseRequested() | StopRequested():
                for line in self._leaving(fact, state):
                    self._screen.line(line)
            case HookEnded() if not fact.passed:
                self._screen.line(f"  ! {plain(complaint(fact))}")
            case Obstructed(kind="hook"):
                pass  # that it failed has been said; the reason of the stop says more
            case Obstructed() if fact.detail not in self._told:  # what a start comes upon is written down twice
                self._told.add(fact.detail)
                self._screen.line(f"  ! {plain(fact.detail)}")
            case LedgerRepaired():
                self._screen.line(f"  ! {fact.cut_bytes} bytes of a torn record were cut off; kept in {fact.kept_in}")
            case LimitsRaised():
                self._screen.line(f"  Limits {self._how_set(fact.limits, loop)}.")
            case LoopStopped():
                self._flush(loop, state)
                self._summary(fact, loop, state)
            case _:
                pass

    def heard(self, event: Event) -> None:
        if isinstance(event, Activity | Message | Retry):
            self._doing = event.text  # made fit to be shown only when it is: floods come by here
        elif isinstance(event, LimitNotice | Denied) and event.text not in self._told:
            self._told.add(event.text)
            mark = "!" if isinstance(event, Denied) else "◷"
            self._screen.line(
                f"         {mark} {shorten(self._plan.secrets.hide(plain(event.text)), self._layout.width)}"
            )

    def close(self) -> None:
        self._screen.close()

    def _now(self, state: LoopState) -> str:
        """The round that is running, or the last one: `round 4`."""
        return f"{self._voice.unit} {self._voice.so_far(state)}"

    def _flush(self, loop: Loop, state: LoopState) -> None:
        for line in self._rows.flush(loop, state):
            self._screen.line(line)

    # -- the top ---------------------------------------------------------------------------------------------------

    def _will_work(self, loop: Loop, state: LoopState) -> bool:
        """Is there anything to go on with? Else the end comes at once, and says all there is to say."""
        return not isinstance(next_action(loop, state, Now(datetime.now(UTC), state.elapsed)), Stop | Pause)

    def _open(self, loop: Loop, tasks: TaskReading | None) -> None:
        say = self._screen.line
        for line in self._voice.opening(loop):
            say(line)
        if self._plan.goes_on:
            say(f"  Going on with {loop.id} after {self._now(self._state or LoopState())}.")
        todo = f"{loop.tasks}, {tasks.open} open" if tasks else "none; the prompt alone"
        checks = ", ".join(
            _shown(check.name) if isinstance(check, CommandCheck) else check.name for check in loop.checks
        )
        rows = [("Loop", loop.id), ("Agent", ", then ".join(loop.pool)), ("Tasks", todo), ("Check", checks or "none")]
        if loop.sandbox:
            rows.append(
                ("May", {"read-only": "only read", "full": "do EVERYTHING: no sandbox"}.get(loop.sandbox, "edit here"))
            )
        finishes = loop.on_interrupt is OnInterrupt.FINISH
        limits = limits_of(loop, self._state or LoopState())
        rows.append(("Limit", ", ".join(render.totals(limits, self._voice.unit))))
        rows.append(("Stop", "Ctrl-C after this round, twice: now" if finishes else "Ctrl-C, at once"))
        for label, text in rows:
            say(f"  {label:<6} {shorten(text, self._layout.width - 10)}")
        say("")
        say(self._layout.header(self._voice.unit))

    def _how_set(self, limits: Limits, loop: Loop) -> str:
        """Raised only if none of them is lower than before; no limit at all is the highest."""
        was = limits_of(loop, self._plan.standing.state) if self._plan.standing else loop.limits
        pairs = [(getattr(was, name), getattr(limits, name)) for name in limits.__struct_fields__]
        return "changed" if any(new and (not old or new < old) for old, new in pairs) else "raised"

    # -- the live block --------------------------------------------------------------------------------------------

    def _block(self, width: int) -> list[str]:
        """At most three lines: how far, what now, how alive."""
        state, loop = self._state, self._plan.loop
        if state is None:
            return ["  starting"]
        lines = [self._how_far(state, width)]
        if state.open_round:
            spent = duration(time.monotonic() - self._round_began)
            doing = shorten(self._plan.secrets.hide(plain(self._doing)), 80)
            lines.append(f"  now    {self._now(state)}, {spent} · {doing}")
            lines.append(f"  alive  last output {duration(self._output_age(loop, state))} ago")
        elif state.waiting:
            lines.append(f"  now    waiting: {plain(state.waiting.reason)}")
        else:
            lines.append("  now    checks")
        return [line[: width - 1] for line in lines]

    def _how_far(self, state: LoopState, width: int) -> str:
        if not state.tasks:
            limit = limits_of(self._plan.loop, state).rounds
            return f"  {state.rounds}{f' of at most {limit}' if limit else ''} {self._voice.unit}s done"
        done, total = state.tasks.done, state.tasks.done + state.tasks.open
        room = max(8, min(24, width - 50))
        full = room * done // max(total, 1)
        left = time_left(state)
        estimate = f"about {duration(left[0])} – {duration(left[1])} left" if left else "too early to tell how long"
        return f"  {'█' * full}{'░' * (room - full)}  {done} of {total} tasks   {estimate}"

    def _output_age(self, loop: Loop, state: LoopState) -> float:  # noqa: ARG002
        open_round = state.open_round
        if open_round is None:
            return 0.0
        folder = self._plan.folder / "rounds" / f"{open_round.round:04}"
        stamps = [os.stat(folder / name).st_mtime for name in ("stdout", "stderr") if (folder / name).exists()]
        return max(0.0, datetime.now(UTC).timestamp() - max([open_round.started_at.timestamp(), *stamps]))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _leaving(self, fact: PauseRequested | StopRequested, state: LoopState) -> list[str]:
        if fact.now or not state.open_round:
            return [f"  Stopping now; what this {self._voice.unit} changed stays in the work tree."]
        spent = duration(time.monotonic() - self._round_began)
        return [
            f"  Stopping after {self._now(state)} (the agent has {spent} behind it).",
            f"  Ctrl-C again to stop now; the {self._voice.unit}'s changes stay in the work tree.",
        ]

    def _summary(self, fact: LoopStopped, loop: Loop, state: LoopState) -> None:
        say = self._screen.line
        standing = Standing(folder=self._plan.folder, loop=loop, state=state, alive=False)
        parts = [f"{state.tasks.done} of {state.tasks.done + state.tasks.open} tasks"] if state.tasks else []
        count = self._voice.so_far(state)
        theirs = f"{count} {self._voice.unit}{'s' if count != 1 else ''}"  # a dialect counts in its own way
        parts += [theirs if loop.dialect else render.rounds(state), duration(state.elapsed)]
        sign = render.SIGNS[Status(fact.end)]
        say(f"\n  {sign} {self._voice.word(fact)}: {', '.join(parts)}.")
        if not standing.finished:
            say(f"    {plain(self._voice.reason(standing))}")
        for row in reasons.evidence(standing) if fact.end not in (End.PAUSED, End.STOPPED) else ():
            # A command and a path of the person's own are of use only as a whole.
            room = 2000 if fact.decided.rule == Rule.OBSTRUCTED else self._layout.width - 8
            say(f"    · {reasons.fit_line(standing, row, room)}")
        if state.last and state.last.said and Status(fact.end) in render.NEEDS_YOU:
            say(f"    The agent's last words: “{shorten(state.last.said, 2 * self._layout.width)}”")
        say("")
        for command, what in self._voice.next_steps(standing):
            if not command:
                say(f"    {what}")
            else:
                say(f"    {command:<40}  {what}" if self._layout.width >= 80 else f"    {command}\n      {what}")


def _costs_nothing(wait: WaitStarted, state: LoopState) -> bool:
    """Waiting itself never does; but the round that it follows may be one that counts."""
    return wait.decided.rule == Rule.AGENT_LIMIT or state.last is None or not state.last.counts


def _shown(command: str) -> str:
    """A check as people type it: the interpreter's long path is of no interest."""
    first, space, rest = command.partition(" ")
    return f"{Path(first.strip(chr(39))).name}{space}{rest}" if first.strip("'").startswith("/") else command
