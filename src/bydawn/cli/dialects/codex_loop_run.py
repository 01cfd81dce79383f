"""A run of codex-loop, typed by a person or kept running by its watchdog, and what it prints."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bydawn.cli.dialects.log_screen import LogScreen, line
from bydawn.cli.screen import Screen
from bydawn.core.agent import Activity, CommandStarted, Event, Message, Retry
from bydawn.core.errors import UserError
from bydawn.core.facts import (
    AnyFact,
    ChecksEnded,
    CommitEnded,
    LoopStopped,
    RoundEnded,
    RoundStarted,
    RunStarted,
    TaskSettled,
)
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import End, Restart, TaskStatus
from bydawn.dialects.codex_loop import DIALECT, codes
from bydawn.dialects.codex_loop.arguments import RunOptions
from bydawn.dialects.codex_loop.config import NAME
from bydawn.dialects.codex_loop.texts import begin_line, iteration_line, minute_line, spoken
from bydawn.operations.dialects import begin
from bydawn.operations.dialects.codex_loop import project, running
from bydawn.operations.plan import Plan
from bydawn.operations.sentences import Counting
from bydawn.operations.worktrees import in_the_way, merge_command
from bydawn.process.guardian import Tether
from bydawn.settings.layers import Settings
from bydawn.store.registry import Standing

_OCCUPIED = 8
_MINUTE = 60.0  # seconds


def ready(root: Path) -> Settings:
    """Refuse what cannot run, and ask for trust; nothing has been started or written."""
    from bydawn.cli.foreground import be_trusted
    from bydawn.operations.dialects.codex_loop import doctor

    if errors := doctor.errors(root):
        for error in errors[1:]:
            line(f"  ✗ {plain(error)}", err=True)
        raise UserError("this project cannot run", cause=errors[0], hint=f"`{NAME} doctor` shows all that is wrong")
    asked = running.wanted(root, project.config_of(root))
    return begin.agreed(DIALECT, asked.start, root, be_trusted)


def run(
    tether: Tether,
    root: Path,
    options: RunOptions,
    heartbeat: Path | None = None,
    restart: Restart | None = None,
    begun: Callable[[], None] | None = None,
    *,
    kept: bool = False,
) -> int:
    """Let Codex do one task after the other; the exit code.

    `restart`: its process had died before. `begun` is called when the run is on record. `kept`: a watchdog keeps it
    running, so that what is refused is told in the heartbeat, if that can be written.
    """
    from bydawn.cli.dialects import running as front
    from bydawn.operations.beating import Heartbeat

    gathered = None if kept else ready(root)
    beat = Heartbeat(heartbeat, DIALECT.reason, needed=not kept) if heartbeat else None
    with beat or nullcontext():
        beats, cycles = (beat.beat,) if beat else (), running.cycles_of(options)
        screen = _Screen(beat, begun, keeps_aside=not options.retry_blocked, cycles=cycles, beats=beats)
        gathered = gathered or ready(root)
        config = project.config_of(root)
        settles, asked = running.done_by_hand(root, config, options.done), running.wanted(root, config)
        try:
            with running.secured(root, asked, gathered) as planned:
                planned = replace(planned, restart=restart, settles=settles)
                return front.resume(DIALECT, planned, tether, screen.run)
        except UserError as error:
            if error.exit_code == _OCCUPIED:
                raise running.occupied("another one was faster") from None
            raise


class _Screen(LogScreen):
    """What each iteration is about and what became of it, what Codex does meanwhile, and what a person should know.

    On a terminal, a block below the lines is redrawn; elsewhere there is a line a minute.
    """

    def __init__(self, beat: Any, begun: Callable[[], None] | None, **more: Any) -> None:
        super().__init__(DIALECT, **more)
        self._others = (beat,) if beat else ()
        self._begun = begun
        self._ended: RoundEnded | None = None
        self._below: Screen | None = None  # while a cycle runs
        self._doing, self._commands = "", [""]

    def run(self, tether: Tether, planned: Plan) -> int:
        self._plan = planned
        try:
            return super().run(tether, planned)
        finally:
            self._close()

    def _close(self) -> None:
        if self._below:
            self._below.close()
        self._below = None

    def heard(self, event: Event) -> None:
        if isinstance(event, CommandStarted):
            self._commands.append(event.command)
        if isinstance(event, Activity | Message | Retry) and not event.text.startswith("{"):  # its answer
            self._doing = event.text

    def _block(self, width: int) -> list[str]:
        from bydawn.cli.live_block import live_block, running

        state, is_live = self._before, self._below is not None and self._below.is_live
        now = running(self._plan, state, self._doing if is_live else self._commands[-1])
        if is_live:
            counting = Counting(unit=self._dialect.unit, number=state.round, checks="verification")
            return live_block(self._plan.loop, state, width, counting, now)
        return [minute_line(now.seconds, len(self._commands) - 1, now.doing)] if now else []

    def _own(self, text: str) -> None:
        if self._below and self._below.is_live:
            self._below.line(text)
        else:
            line(text, err=True)

    def _line(self, text: str) -> None:
        if self._below:
            self._below.line(text)
        else:
            line(plain(text))

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        self._told(fact, loop, state)
        if isinstance(fact, LoopStopped):
            self._close()

    def _told(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        for other in self._others:
            other.saw(fact, loop, state)
        if isinstance(fact, RunStarted) and not self._below:
            self._below = Screen(self._block, plain=False, heartbeat=_MINUTE)
        if isinstance(fact, RunStarted) and self._begun:
            self._begun()
            self._begun = None
        checks = fact if isinstance(fact, ChecksEnded) else None
        if self._ended and not isinstance(fact, CommitEnded):
            self._line(iteration_line(self._ended, checks, state if checks else self._before))
            self._ended = None
        if isinstance(fact, RoundStarted):
            self._doing, self._commands = "starting", [""]
            self._line(begin_line(state))
        if isinstance(fact, RoundEnded):
            self._ended = fact
        if isinstance(fact, TaskSettled) and fact.status is TaskStatus.ASIDE:
            self._remark(f"▷ {plain(fact.task)} is blocked: {shorten(plain(fact.reason), 300)}")
        if checks:
            self._say_what_runs_outside(checks, loop, state)
        if isinstance(fact, RoundStarted | RoundEnded | ChecksEnded | TaskSettled):
            self._before = state
        else:
            super().saw(fact, loop, state)

    def _remark(self, text: str) -> None:
        super()._remark(spoken(text))

    def evidence(self, standing: Standing) -> list[str]:
        others = [spoken(row) for row in super().evidence(standing) if not row.startswith("set aside: ")]
        return [*others, *(f"blocked: {id_}" for id_ in standing.state.settled.aside)]

    def summary(self, standing: Standing, stopped: LoopStopped) -> str:
        word, tree = codes.word(stopped), standing.loop.worktree
        code = stopped.end if stopped.end is End.UNVERIFIED else codes.code_of(stopped)
        line(f"Outcome: {word}{f' ({code})' if code not in ('', word) else ''}")
        if tree:
            line(f"Branch: {tree.branch}")
            if standing.state.commit:
                if trouble := in_the_way(standing.loop):
                    self._say(plain(trouble))
                line(f"Merge: {merge_command(standing.loop)}")
        return super().summary(standing, stopped)
