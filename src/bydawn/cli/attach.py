"""`attach`: watch a loop that runs elsewhere, as if it had been started in this terminal."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
from msgspec.structs import replace

from bydawn import dialects
from bydawn.cli.command import command
from bydawn.cli.foreground import plain
from bydawn.cli.keys import single_keys, wants_to_leave
from bydawn.cli.options import cd, loop_argument, state_dir
from bydawn.cli.render import typed
from bydawn.cli.terminal import Terminal
from bydawn.cli.voice import DialectVoice, Voice
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, RoundStarted, RunStarted
from bydawn.core.layout import STDOUT
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.core.values import Act, Advice, Status
from bydawn.operations import outputs
from bydawn.operations.plan import Plan
from bydawn.operations.settings import secrets
from bydawn.store.ledger import read
from bydawn.store.lock import is_held
from bydawn.store.registry import Registry, Standing, standing_of

_LOOK = 0.3  # seconds between looks at its files
_ROUNDS = 50  # that have been, shown at most
_BACK = 64 << 10  # bytes of output from before that are read


@command()
@loop_argument
@cd
@plain
@state_dir
def attach(loop: str | None, cd: Path | None, plain: bool, state_dir: Path | None) -> None:
    """Watch a running loop live; `q` or Ctrl-C leaves, and the loop goes on.

    \b
    Examples
      bydawn attach shop-api
    """
    standing = Registry(state_dir).find(loop, cd)
    if not standing.alive or standing.state.stopped:
        hint = Advice(Act("show", standing.reference), " tells what happened")
        raise UserError(
            f"{standing.loop.id} {standing.status.words}", cause="only a running loop has a view", hint=hint
        )
    gc.enable()  # this may take all night
    with suppress(KeyboardInterrupt), single_keys():
        _watch(standing, plain=plain)
    now = standing_of(standing.folder)
    if now and now.status in (Status.RUNNING, Status.WAITING):
        click.echo(f"  {now.loop.id} goes on. Watch it again: {typed(Act('attach', standing.reference))}")
    elif now and now.status is Status.CRASHED:
        click.echo(f"  {now.loop.id} has crashed. Continue: {typed(Act('resume', standing.reference))}")


def _watch(standing: Standing, *, plain: bool) -> None:
    """Show this run from its start on, until the loop ends or the person leaves."""
    state, offset, before, run = LoopState(), 0, LoopState(), list[tuple[AnyFact, LoopState]]()
    for record, end in read(standing.folder.ledger):
        offset = end
        if isinstance(record.fact, RunStarted):
            before, run = state, []
        state = after(state, record)
        run.append((record.fact, state))
    known = replace(standing, state=before) if before.runs else None
    planned = Plan(loop=standing.loop, folder=standing.folder, secrets=secrets(), standing=known)
    dialect = dialects.of_loop(standing.loop)
    voice = DialectVoice(dialect) if dialect else Voice()
    terminal = Terminal(planned, plain=plain, voice=voice, on_ctrl_c="leave, as with q; the loop goes on")
    try:
        for fact, then in _recent(run):
            terminal.saw(fact, standing.loop, then)
        for event in outputs.events(standing, _lines(standing, terminal, state, offset)):
            terminal.heard(event)
    finally:
        terminal.close()


def _recent(run: list[tuple[AnyFact, LoopState]]) -> list[tuple[AnyFact, LoopState]]:
    """Its start and its last rounds: a terminal cannot show a thousand at once."""
    rounds = [place for place, (fact, _) in enumerate(run) if isinstance(fact, RoundStarted)]
    return run if len(rounds) <= _ROUNDS else [run[0], *run[rounds[-_ROUNDS] :]]


def _lines(standing: Standing, terminal: Terminal, state: LoopState, offset: int) -> Iterator[tuple[int, bytes]]:
    """What the agents print; facts go to the terminal on the way."""
    folder, round_, read_to = standing.folder, 0, 0
    alive = True
    while alive and not state.stopped and not wants_to_leave(_LOOK):
        alive = is_held(folder.lock)  # asked first: what it wrote before its end is read below
        for record, end in read(folder.ledger, offset, state.seq):
            state, offset = after(state, record), end
            terminal.saw(record.fact, standing.loop, state)
        if opened := state.open_round:
            if opened.round != round_:
                round_, read_to = opened.round, 0
            lines, read_to = _new_lines(folder.round_file(round_, STDOUT), read_to)
            yield from ((round_, line) for line in lines)


def _new_lines(path: Path, position: int) -> tuple[list[bytes], int]:
    """The complete lines after a position, and where they end; of very many the last."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return [], position
    with file:
        start = max(position, file.seek(0, 2) - _BACK)
        file.seek(start)
        data = file.read()
    skipped = data.find(b"\n") + 1 if start > position else 0  # half a line could begin inside a secret
    end = data.rfind(b"\n") + 1
    return data[skipped:end].splitlines(), start + end
