"""`logs` and `events`: what the agent said, and what was recorded."""

import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.agent import Activity, CommandEnded, Event, Message
from bydawn.core.errors import UserError
from bydawn.core.layout import REPLY, STDOUT
from bydawn.core.text import duration, fit, plain
from bydawn.core.values import Status
from bydawn.operations import outputs
from bydawn.operations.outputs import Line
from bydawn.operations.recent import the_round
from bydawn.operations.round_log import ON_STDERR, has_failed, kind_of, says_something, stderr_of, without_secrets
from bydawn.operations.round_output import RoundOutput
from bydawn.operations.rounds import files_words
from bydawn.operations.steer import secrets_of
from bydawn.store.ledger import records
from bydawn.store.registry import Registry, Standing, standing_of
from bydawn.system import kernel


@command()
@loop_argument
@option("--round", "round_", type=click.IntRange(1), metavar="N", help="Number of the round.  [default: the last]")
@option("--tail", type=click.IntRange(1), metavar="N", help="Show only the last N lines of output.")
@option("-f", "--follow", is_flag=True, help="Keep printing new output until the loop stops.")
@option("--raw", is_flag=True, help="Print the agent's raw output, without escape sequences.")
@cd
@as_json
@state_dir
def logs(
    loop: str | None,
    round_: int | None,
    tail: int | None,
    follow: bool,
    raw: bool,
    cd: Path | None,
    as_json: bool,
    state_dir: Path | None,
) -> None:
    """Print what the agent said in the last round, in readable form.

    \b
    Examples
      bydawn logs -f
      bydawn logs shop-api --round 3 --tail 50
    """
    if raw and as_json:
        cause = "--raw prints the agent's own output, --json what it means"
        raise UserError("--raw and --json cannot be combined", cause=cause, hint="drop one of them")
    standing = Registry(state_dir).find(loop, cd)
    if round_ is not None:
        the_round(standing, round_)
    number = round_ or standing.state.round
    shown = _Shown(standing, tail, raw=raw, as_json=as_json)
    if outputs.is_removed(standing, number) and not (follow and standing.alive):
        shown.removed(number)
        return
    for before in outputs.lines_before(standing.folder.round_file(number, STDOUT), tail):
        shown.hide(plain(before))  # the tail may begin inside a private key
    lines = _followed(standing, number, tail, round_, shown) if follow else _lines(standing, number, tail, shown)
    if raw:
        for line in lines:
            shown.line(line.data)
    else:
        for line, event in outputs.events_by_line(standing, lines):
            shown.event(event, line)


class _Shown:
    """Prints the output of a round, and a closing line when it is complete."""

    def __init__(self, standing: Standing, tail: int | None, *, raw: bool, as_json: bool) -> None:
        self._standing, self._tail, self._raw, self._json = standing, tail, raw, as_json
        self._said = False
        self._over: set[int] = set()
        self._secrets = secrets_of(standing)
        self.hide = self._secrets.line_by_line()  # the files of a running round are not masked yet
        self._output = RoundOutput(standing, 0)  # of the round that is shown

    @property
    def is_numbered(self) -> bool:
        """Are the numbers of lines shown? They take time to find if a round has no index."""
        return self._json

    def line(self, line: bytes) -> None:
        self._said = True
        click.echo(self.hide(plain(line.rstrip(b"\r\n"))))

    def event(self, event: Event, line: Line) -> None:
        event = without_secrets(event, self.hide)
        self._said |= says_something(event)
        if self._json:
            place = {"line": line.number, "at": self._at(line)}
            self._object(kind_of(event), place | msgspec.to_builtins(event))
        elif isinstance(event, Message | Activity):
            click.echo(event.text if isinstance(event, Message) else f"  · {event.text}")
        elif isinstance(event, CommandEnded):
            click.echo(f"  {event.text}")

    def _at(self, line: Line) -> datetime | None:
        if self._output.round != line.round:
            self._output.close()
            self._output = RoundOutput(self._standing, line.round)
        return self._output.at(line)

    def before(self, number: int) -> None:
        """A heading, for those who follow from round to round."""
        row = None if self._raw or self._json else the_round(self._standing, number)
        if row:
            task, began = plain(row.attempt.started.task or ""), row.attempt.started_at
            names = filter(None, [row.agent, self.hide(task)])
            parts = [f"round {number}", f"{began.astimezone():%H:%M:%S}", *names]
            click.echo(fit(f"── {' · '.join(parts)}", render.width()))

    def over(self, number: int) -> None:
        """How long a round took, what it changed, and what each check said; once they are known."""
        if self._raw or self._json or number in self._over:
            return
        attempt = the_round(self._standing, number).attempt
        if attempt.ended is None or attempt.ended_at is None:
            return
        self._over.add(number)
        took, files = duration(attempt.ended.seconds), files_words(attempt.ended)
        click.echo(f"  ended {attempt.ended_at.astimezone():%H:%M:%S} after {took}; files {files}")
        for verdict in attempt.checks.verdicts if attempt.checks else ():
            sign = (Status.COMPLETE if verdict.passed else Status.FAILED).sign
            said = "pass" if verdict.passed else verdict.told
            render.paragraph(f"{sign} {self.hide(plain(f'{verdict.check}: {said}'))}")

    def _object(self, kind: str, data: dict[str, Any]) -> None:
        click.echo(msgspec.json.encode({"schema": 1, "event": kind, **data}).decode())

    def after(self, number: int) -> None:
        """The end of a round's output; a program that fails usually says why on stderr."""
        failed, said = has_failed(self._standing, number), self._said
        self._said = False
        if failed or not said:
            said = self._stderr(number) or said
        if self._raw or self._json:
            return
        if not said:
            click.echo(f"  Round {number} printed nothing." if number else "  No agent has run yet.")
        if failed:
            row = the_round(self._standing, number)
            click.echo(f"  {Status.FAILED.sign} {row.result}: {row.why}")

    def removed(self, number: int) -> None:
        reply = outputs.place(self._standing.folder.round_file(number, REPLY))
        if self._json:
            self._object("removed", {"round": number, "reply": reply})
            return
        click.echo(f"  The output of round {number} was {outputs.REMOVED}.", err=self._raw)
        if reply != outputs.REMOVED:
            click.echo(f"  Its reply is still there: {reply}", err=self._raw)

    def _stderr(self, number: int) -> bool:
        """Print stderr; was there anything?"""
        texts = stderr_of(self._standing, number, self._secrets, self._tail)
        for text in texts:
            if self._json:
                self._object(ON_STDERR, {"line": None, "at": None, "text": text})
            else:
                click.echo(text)
        return any(text.strip() for text in texts)


def _lines(standing: Standing, number: int, tail: int | None, shown: _Shown) -> Iterator[Line]:
    path = standing.folder.round_file(number, STDOUT)
    if tail is not None:
        with RoundOutput(standing, number) as output:
            yield from output.last(tail, output.size, numbered=shown.is_numbered)
    elif path.exists():
        with path.open("rb") as file:
            end = 0
            for place, line in enumerate(file, 1):
                end += len(line)
                yield Line(number, line, place, end)
    shown.after(number)


def _followed(standing: Standing, number: int, tail: int | None, only: int | None, shown: _Shown) -> Iterator[Line]:
    """The output of each round while the loop runs, and how each one ended."""
    through = 0
    while True:
        path = standing.folder.round_file(number, STDOUT)
        if number > through and path.exists():
            shown.before(number)
            yield from _growing(path, standing, number, tail, shown)
            through = number
            shown.after(number)
        now = standing_of(standing.folder)
        if number == through and (only is not None or now is None or _is_settled(now, number)):
            shown.over(number)
        if only is not None or now is None:
            return
        if now.state.round > number:
            number, tail = number + 1, None
        elif not now.alive:
            return
        else:
            time.sleep(0.1)


def _is_settled(now: Standing, number: int) -> bool:
    """Is everything known about a round whose output is complete: have its checks run, or will none?"""
    state = now.state
    return not now.alive or state.round > number or state.verdict_round == number or state.waiting is not None


def _growing(path: Path, standing: Standing, number: int, tail: int | None, shown: _Shown) -> Iterator[Line]:
    """The lines of one round's output as they are written, until the round ends."""
    watch = kernel.Watch()
    watch.add(str(path))
    with path.open("rb") as file, RoundOutput(standing, number) as output:
        place, end = 1, 0
        if tail is not None:
            end = file.seek(output.end_of_lines)
            yield from output.last(tail, end, numbered=shown.is_numbered)
            place = output.line_at(end) if shown.is_numbered else 0
        while True:
            now = standing_of(standing.folder)
            over = now is None or not now.alive or not now.state.open_round or now.state.open_round.round != number
            while line := file.readline():
                if not line.endswith(b"\n") and not over:
                    # Read half a line again once it is complete: by then a secret in it may have been masked.
                    file.seek(-len(line), 1)
                    break
                end += len(line)
                yield Line(number, line, place, end)
                place += 1
            if over:
                watch.close()
                return
            watch.wait(0.5)


@command()
@loop_argument
@cd
@as_json
@state_dir
def events(loop: str | None, cd: Path | None, as_json: bool, state_dir: Path | None) -> None:
    """Print everything that was recorded, one event per line; with --json as JSON Lines.

    \b
    Examples
      bydawn events shop-api --json | jq .type
    """
    standing = Registry(state_dir).find(loop, cd)
    for record in records(standing.folder):
        data = msgspec.to_builtins(record.fact)
        kind = data.pop("type")
        if as_json:
            row = {"schema": 1, "seq": record.seq, "at": record.at, "type": kind, "data": data}
            click.echo(msgspec.json.encode(row).decode())
            continue
        fields = " ".join(f"{name}={value}" for name, value in data.items() if value not in (None, "", [], {}))
        line = f"  {record.seq:>5}  {record.at.astimezone():%H:%M:%S}  {kind:<16} {plain(fields)}"
        click.echo(fit(line.rstrip(), 4 * render.width()) if sys.stdout.isatty() else line.rstrip())
