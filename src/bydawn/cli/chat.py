"""`chat`: ask an agent about the repository of a loop."""

import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, state_dir
from bydawn.core.agent import Event, Message, readable
from bydawn.core.chat import Turn, TurnState
from bydawn.core.errors import UserError
from bydawn.core.text import shorten
from bydawn.core.values import Act, Advice
from bydawn.operations import chat as operation
from bydawn.operations.round_log import kind_of, without_secrets
from bydawn.operations.steer import secrets_of
from bydawn.process.guardian import Tether
from bydawn.store.registry import Registry, Standing, is_name

_ROOM = 10_000  # lines waiting for a reader that does not read; more are dropped
_PATIENCE = 1.0  # seconds for it, once a person has ended everything
_EXIT_CODES = {"answered": 0, "interrupted": 130}  # otherwise 7, as for every agent that failed


@command()
@click.argument("loop", required=False, metavar="[LOOP]")
@click.argument("text", required=False, metavar="[TEXT|-]")
@option(
    "--include", multiple=True, metavar="NAME", help="Document to send along: todo, progress, opinions, a path, none."
)
@option("--history", is_flag=True, help="Show what was asked and answered so far.")
@cd
@as_json
@state_dir
@click.pass_obj
def chat(
    tether: Tether | None,
    /,
    loop: str | None,
    text: str | None,
    include: tuple[str, ...],
    history: bool,
    cd: Path | None,
    as_json: bool,
    state_dir: Path | None,
) -> int:
    """Ask an agent about the repository of a loop; it reads and changes nothing.

    It is the loop's own agent, in a separate process, so the loop may run meanwhile. It knows the loop's state and
    documents, and the conversation so far. TEXT is your question; `-` reads it from standard input.

    \b
    Examples
      bydawn chat "why does round 3 fail?"
      git diff | bydawn chat shop-api -
      bydawn chat shop-api --history
    """
    if history:
        if text is not None or include:
            cause = "it shows what was said, and asks nothing"
            raise UserError("--history takes no question", cause=cause, hint=Advice(Act("chat", "LOOP", history=True)))
        return _show(Registry(state_dir).find(loop, cd), as_json=as_json)
    assert tether  # noqa: S101 - whatever starts an agent runs under a guardian
    name, question = (loop, text) if text is not None else (None, _only_a_question(loop))
    standing = Registry(state_dir).find(name, cd)
    if question == "-":  # read now, while we are still in the terminal's foreground group
        question = sys.stdin.buffer.read().decode(errors="replace")
    return _ask(standing, question or "", tether, include=include or None, as_json=as_json)


def _only_a_question(word: str | None) -> str:
    """A single word that can be the name of a loop is one whose question was forgotten."""
    if word is None or is_name(word.partition("@")[0]):
        cause = f"{word!r} is the name of a loop, and no question follows" if word else "no question was given"
        raise UserError("nothing to ask", cause=cause, hint=Advice(Act('chat LOOP "what is left to do?"')))
    return word


def _ask(standing: Standing, text: str, tether: Tether, *, include: tuple[str, ...] | None, as_json: bool) -> int:
    shown = _Shown(secrets_of(standing).line_by_line(), as_json=as_json)
    turn: Turn | None = None
    try:
        turn = operation.ask(standing, text, tether, shown.told, include)
        shown.ended(turn)
    finally:
        shown.close(hurried=turn is None or turn.state is TurnState.INTERRUPTED)
    if not as_json:
        _answer(standing, turn)
    return _EXIT_CODES.get(turn.state, 7)


def _answer(standing: Standing, turn: Turn) -> None:
    """Print the answer, and what else there is to say; raises if there is none."""
    kept = Advice("your question is kept: ", Act("chat", standing.reference, history=True))
    if turn.state is TurnState.FAILED:
        raise UserError(f"{turn.agent} did not answer", cause=turn.detail, hint=kept, exit_code=7)
    if turn.state is TurnState.INTERRUPTED:
        click.echo(f"  Interrupted; {render.as_typed(kept)}", err=True)
        return
    _print(turn.answer or "(The agent said nothing.)")
    click.echo(_dim(f"  {operation.about(turn)}"), err=True)
    if turn.detail:
        click.echo(f"  ! {turn.detail}", err=True)


def _print(text: str) -> None:
    """As it is, or on a terminal with its headings, lists and code set apart."""
    if not (sys.stdout.isatty() and render.colored()):
        click.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    # A link shows where it leads: the words in front of it are an agent's.
    Console(width=render.width(), highlight=False).print(Markdown(text, hyperlinks=False))


def _dim(text: str) -> str:
    return click.style(text, dim=True) if sys.stderr.isatty() and render.colored() else text


def _show(standing: Standing, *, as_json: bool) -> int:
    """The conversation so far."""
    turns, used = operation.history(standing), operation.spent(standing)
    if as_json:
        render.emit_json({"loop": standing.loop.id, "turns": turns, "usage": used})
        return 0
    for turn in turns:
        click.echo(f"── {turn.at.astimezone():%Y-%m-%d %H:%M}")
        click.echo(f"{turn.question}\n")
        click.echo(f"── {operation.about(turn)}")
        for words in filter(None, (turn.answer, f"  ! {turn.detail}" if turn.detail else "")):
            click.echo(words)
        click.echo("")
    click.echo(f"  {operation.summary(turns, used)}")
    return 0


class _Shown:
    """What is printed while an agent works: for programs all of it, for people what it does."""

    def __init__(self, hide: Callable[[str], str], *, as_json: bool) -> None:
        self._json, self._hide = as_json, hide
        self._lines = _Lines(sys.stdout if as_json else sys.stderr)

    def told(self, event: Turn | Event) -> None:
        if isinstance(event, Turn):
            if self._json:
                self._object(event.state, {"id": event.id, "agent": event.agent})
            return
        event = without_secrets(event, self._hide)
        if self._json:
            self._object(kind_of(event), msgspec.to_builtins(event))
        elif not isinstance(event, Message) and (text := readable(event)):
            self._lines.line(_dim(f"  · {shorten(text, render.width() - 4)}"))

    def ended(self, turn: Turn) -> None:
        if self._json:
            self._object(turn.state, msgspec.to_builtins(turn), last=True)

    def close(self, *, hurried: bool) -> None:
        self._lines.close(_PATIENCE if hurried else None)

    def _object(self, kind: str, data: dict[str, Any], *, last: bool = False) -> None:
        line = msgspec.json.encode({"schema": 1, "event": kind, **data}).decode()
        self._lines.line(line, needed=last)


class _Lines:
    """Prints lines in a thread: a reader that does not read must not keep Ctrl-C from ending the agent."""

    def __init__(self, stream: TextIO) -> None:
        self._waiting: queue.Queue[str | None] = queue.Queue(_ROOM)
        self._out = os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", errors="replace")
        self._thread = threading.Thread(target=self._run, daemon=True, name="lines")
        self._thread.start()

    def line(self, text: str, *, needed: bool = False) -> None:
        """A reader that is too slow misses some of what the agent does, never what is `needed`."""
        with suppress(queue.Full):
            self._waiting.put(text, timeout=_PATIENCE if needed else 0.0)

    def close(self, patience: float | None) -> None:
        """Print what is still waiting; with a limit if a person wants us to end."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=patience)
        self._thread.join(patience)

    def _run(self) -> None:
        is_open = True
        while (text := self._waiting.get()) is not None:
            if is_open:
                try:
                    self._out.write(f"{text}\n")
                    self._out.flush()
                except (OSError, ValueError):  # no one reads any more; the answer is kept
                    is_open = False
        with suppress(OSError, ValueError):
            self._out.close()
