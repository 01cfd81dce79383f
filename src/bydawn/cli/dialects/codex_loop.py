"""The command line of codex-loop, and what it prints."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bydawn.cli import render
from bydawn.cli.command import Group, command, option
from bydawn.cli.dialects import WithNameless
from bydawn.cli.dialects.codex_loop_options import HELP, in_project
from bydawn.cli.dialects.log_screen import LogScreen, line
from bydawn.cli.dialects.skill_command import skill_command
from bydawn.core.agent import Event, readable
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, ChecksEnded, CommitEnded, LoopStopped, RoundEnded, RoundStarted, TaskSettled
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState
from bydawn.core.text import plain, shorten
from bydawn.core.values import EXIT_CODES, End, TaskStatus
from bydawn.dialects.codex_loop.config import NAME
from bydawn.process.guardian import Tether

if TYPE_CHECKING:
    from bydawn.dialects.codex_loop.proposal import Proposal
    from bydawn.store.registry import Standing

_WRONG, _OCCUPIED = 1, 8
_COLUMN = 16
_CYCLE_SLEEP = 60.0  # seconds


class _Commands(Group):
    """Here 2 means blocked, so what is wrong before anything has started is 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            if error.exit_code not in (_OCCUPIED, EXIT_CODES[End.PAUSED]):
                error.exit_code = _WRONG
            raise


# -- init --------------------------------------------------------------------------------------------------------------


@command()
@in_project
@option("--prompt", metavar="TEXT", required=True, help="What is to be built.")
@option("--model", metavar="NAME", help="Codex's model.  [default: its own]")
@option("--force", is_flag=True, help="Replace the files that are there; a copy of each is kept beside it.")
@click.pass_obj
def init(tether: Tether | None, root: Path, prompt: str, model: str | None, force: bool) -> int:
    """Let Codex propose spec, plan and tasks, and write them"""
    from bydawn.operations.dialects.codex_loop import beginning

    assert tether  # noqa: S101 - what starts an agent runs under a guardian
    kept = beginning.check(root, prompt, force=force)
    line("  Codex reads the project and proposes a plan; it cannot change anything.", err=True)
    proposal = beginning.ask(root, prompt, model, tether, _told)
    _show(proposal, kept.hooks.post_init)
    agreed = sys.stdin.isatty() and click.confirm("  May these commands run here after each iteration?")
    begun = beginning.write(root, kept, proposal, prompt, model, force=force, agreed=agreed)
    for name, fate in begun.files.items():
        line(f"  {fate:<9} {name}")
    for hook in begun.hooks:
        result = "passed" if hook.exit_code == 0 else plain(hook.output) or "failed"
        line(f"  post_init {plain(hook.command)}: {result}")
    for row in render.step_lines(begun.steps):
        line(row)
    return _WRONG if begun.failed else 0


def _told(event: Event) -> None:
    text = shorten(plain(readable(event)), 200)
    if text and not text.startswith("{"):  # the answer itself
        line(f"  · {text}", err=True)


def _show(proposal: "Proposal", after_init: tuple[str, ...]) -> None:
    rows = {"Project": proposal.name, "Goal": proposal.goal}
    for label, value in rows.items():
        render.field(label, plain(value), _COLUMN)
    for label, values in (
        ("Done when", proposal.done_when),
        ("Tasks", [f"{task.slug}: {task.title}" for task in proposal.tasks]),
        ("Verification", proposal.verification_commands),
        ("After init", after_init),
    ):
        for number, value in enumerate(values):
            render.field(label if number == 0 else "", plain(value), _COLUMN)


# -- run ---------------------------------------------------------------------------------------------------------------


@command()
@in_project
@option("--continuous", is_flag=True, help="Go on by itself, cycle after cycle, until all is done.")
@option("--retry-blocked", is_flag=True, help="Try blocked tasks again, in every cycle.")
@option(
    "--cycle-sleep-seconds",
    "sleep",
    metavar="N",
    type=click.FloatRange(0, 1e7),
    help="Between two cycles.  [default: 60]",
)
@option("--max-cycles", metavar="N", type=click.IntRange(1), help="At most so many cycles.")
@option("--retry-errors", is_flag=True, help="Begin another cycle after Codex itself failed, too.")
@option("--max-error-retries", metavar="N", type=click.IntRange(0), help="At most so many such cycles in a row.")
@option(
    "--heartbeat-path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Written every 60 seconds while this lasts.",
)
@click.pass_obj
def run(
    tether: Tether | None,
    root: Path,
    continuous: bool,
    retry_blocked: bool,
    sleep: float | None,
    max_cycles: int | None,
    retry_errors: bool,
    max_error_retries: int | None,
    heartbeat_path: Path | None,
) -> int:
    """Let Codex do one task after the other"""
    from bydawn.assemble import Cycles
    from bydawn.cli.dialects import running as front
    from bydawn.cli.foreground import be_trusted
    from bydawn.dialects.codex_loop import DIALECT
    from bydawn.operations.beating import Heartbeat
    from bydawn.operations.dialects import begin, loops
    from bydawn.operations.dialects.codex_loop import doctor, project, running
    from bydawn.operations.preconditions import refuse_inside_a_round

    assert tether  # noqa: S101 - what starts a loop runs under a guardian
    refuse_inside_a_round()
    alone = {
        "--cycle-sleep-seconds": sleep,
        "--max-cycles": max_cycles,
        "--retry-errors": retry_errors or None,
        "--max-error-retries": max_error_retries,
    }
    for flag in [flag for flag, given in alone.items() if given is not None and not continuous]:
        line(f"  ! {flag} has no effect without --continuous", err=True)
    running.refuse_beside_another(root)
    if errors := doctor.errors(root):
        for error in errors[1:]:
            line(f"  ✗ {plain(error)}", err=True)
        raise UserError("this project cannot run", cause=errors[0], hint=f"`{NAME} doctor` shows all that is wrong")
    config = project.config_of(root)
    asked = running.wanted(root, config)
    gathered = begin.gather(DIALECT, asked.start, root)
    for file in ("", asked.start.config):
        be_trusted(gathered, root, loops.registry_of(gathered).root.path, config=file)
    beat = Heartbeat(heartbeat_path) if heartbeat_path else None
    with beat or nullcontext():
        cycles = None
        if continuous:
            cycles = Cycles(
                sleep=_CYCLE_SLEEP if sleep is None else sleep,
                most=max_cycles,
                again=running.Again(blocked=retry_blocked, errors=retry_errors, most_errors=max_error_retries),
            )
        beats = (beat.beat,) if beat else ()
        screen = _Screen(beat, keeps_aside=not retry_blocked, cycles=cycles, beats=beats)
        planned = running.plan(root, asked, gathered)
        try:
            return front.resume(DIALECT, planned, tether, run=screen.run)
        except UserError as error:
            if error.exit_code == _OCCUPIED:
                raise running.occupied("another one was faster") from None
            raise
        finally:
            begin.give_back(asked.start, planned)


class _Screen(LogScreen):
    """A line per iteration, and what a person should know between them."""

    def __init__(self, beat: Any, **more: Any) -> None:
        from bydawn.dialects.codex_loop import DIALECT

        super().__init__(DIALECT, **more)
        self._others = (beat,) if beat else ()
        self._ended: RoundEnded | None = None

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        from bydawn.dialects.codex_loop.texts import iteration_line

        for other in self._others:
            other.saw(fact, loop, state)
        checks = fact if isinstance(fact, ChecksEnded) else None
        if self._ended and not isinstance(fact, CommitEnded):
            line(plain(iteration_line(self._ended, checks, state)))
            self._ended = None
        if isinstance(fact, RoundEnded):
            self._ended = fact
        if isinstance(fact, TaskSettled) and fact.status is TaskStatus.ASIDE:
            self._remark(f"▷ {plain(fact.task)} is blocked: {shorten(plain(fact.reason), 300)}")
        if isinstance(fact, RoundStarted | RoundEnded | ChecksEnded | TaskSettled):
            self._before = state
        else:
            super().saw(fact, loop, state)

    def _remark(self, text: str) -> None:
        from bydawn.dialects.codex_loop.texts import spoken

        super()._remark(spoken(text))

    def evidence(self, standing: "Standing") -> list[str]:
        others = [row for row in super().evidence(standing) if not row.startswith("set aside: ")]
        return [*others, *(f"blocked: {id_}" for id_ in standing.state.settled.aside)]

    def summary(self, standing: "Standing", stopped: LoopStopped) -> str:
        from bydawn.dialects.codex_loop import codes

        word, code, tree = codes.word(stopped), codes.code_of(stopped), standing.loop.worktree
        line(f"Outcome: {word}{f' ({code})' if code not in ('', word) else ''}")
        if tree:
            from bydawn.operations.worktrees import in_the_way, merge_command

            line(f"Branch: {tree.branch}")
            if standing.state.commit:
                if trouble := in_the_way(standing.loop):
                    self._say(plain(trouble))
                line(f"Merge: {merge_command(standing.loop)}")
        return super().summary(standing, stopped)


# -- look --------------------------------------------------------------------------------------------------------------


@command()
@in_project
@option("--summary", is_flag=True, help="The most important of it, a line each.")
def status(root: Path, summary: bool) -> int:
    """How it stands, as JSON"""
    from bydawn.dialects.codex_loop import document
    from bydawn.operations.dialects.codex_loop import standing

    now = standing.now(root)
    if not summary:
        click.echo(document.text_of(now), nl=False)
        return 0
    for name, value in document.summary_rows(now):
        click.echo(f"{name}: {shorten(plain(value), 1000)}")
    return 0


@command()
@in_project
@option("--repair", is_flag=True, help="Repair what can be repaired without you.")
def doctor(root: Path, repair: bool) -> int:
    """What is right and wrong here"""
    from bydawn.operations.dialects.codex_loop.doctor import examine

    found = examine(root, repair=repair)
    for heading, rows in found.sections.items():
        click.echo(f"{heading}:" if rows else f"{heading}: none")
        for row in rows:
            click.echo(f"  - {plain(row)}")
    return _WRONG if found.errors else 0


_lines = option("--lines", metavar="N", type=click.IntRange(1), default=40, help="How many.  [default: 40]")
_task = option("--task-id", metavar="ID", help="Of this task.  [default: of the last iteration]")


@command(name="tail")
@in_project
@_lines
@_task
def tail(root: Path, lines: int, task_id: str | None) -> int:
    """The last lines of Codex's events"""
    from bydawn.operations.dialects.codex_loop.logs import tail as last

    for each in last(root, lines, task_id):
        click.echo(each)
    return 0


logs = WithNameless(tail, name="logs", help="What Codex said and did", commands=[tail], context_settings=HELP)
_HELP = """A goal becomes tasks, tasks become commits on a branch, verification has the last word.

\b
Examples
  codex-loop init --prompt "Build a CLI that …"
  codex-loop doctor --repair
  codex-loop run
  codex-loop status --summary

\b
Exit codes
  0 completed  2 blocked  1 nothing was started, or doctor found errors
  8 another run  130 interrupted
"""
install_skill = skill_command(NAME, "Build a parser for our logs, overnight.", "--project-dir")
COMMANDS = _Commands(
    name=NAME,
    help=_HELP,
    commands=[init, run, status, doctor, logs, install_skill],
    context_settings=HELP,
)
