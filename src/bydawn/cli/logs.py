"""`logs` and `events`."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from bydawn.cli import render
from bydawn.cli.command import command, option
from bydawn.cli.options import as_json, cd, loop_argument, state_dir
from bydawn.core.redact import rewritten
from bydawn.core.text import plain
from bydawn.host.registry import Registry, Standing, standing_of
from bydawn.operations import look
from bydawn.operations.settings import secrets


@command()
@loop_argument
@option("--round", "round_", type=click.IntRange(1), help="That round; default: the last.")
@option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N lines of output.")
@option("-f", "--follow", is_flag=True, help="Go on as it is written, until the loop stops.")
@option("--raw", is_flag=True, help="The agent's own output, untouched but for escapes.")
@cd
@as_json
@state_dir
def logs(
    loop: str | None,
    round_: int | None,
    tail: int | None,
    follow: bool,
    raw: bool,
    cd: Path,
    as_json: bool,
    state_dir: Path | None,
) -> None:
    """What the agent said, readable; the last round unless --round says which.

    \b
    Examples
      bydawn logs -f
      bydawn logs shop-api --round 3 --tail 50
    """
    standing = Registry(state_dir).find(loop, cd.resolve())
    if round_ is not None:
        look.the_round(standing, round_)
    number = round_ or standing.state.round
    lines = _followed(standing, number, tail, round_) if follow else _lines(standing, number, tail)
    hide = secrets().line_by_line()  # a round that still runs has its secrets in its files
    for line in look.lines_before(look.round_folder(standing, number) / "stdout", tail):
        hide(plain(line))  # are we in the middle of a private key?
    if raw:
        for _, line in lines:
            click.echo(hide(plain(line)))
        return
    for event in look.events(standing, lines):
        _echo_event(rewritten(event, lambda text: hide(plain(text))), as_json)


def _lines(standing: Standing, number: int, tail: int | None) -> Iterator[tuple[int, bytes]]:
    path = look.round_folder(standing, number) / "stdout"
    if tail is not None:
        yield from ((number, line) for line in look.last_lines(path, tail))
    elif path.exists():
        with path.open("rb") as file:
            yield from ((number, line) for line in file)


def _followed(standing: Standing, number: int, tail: int | None, only: int | None) -> Iterator[tuple[int, bytes]]:
    """Round after round, while somebody runs the loop."""
    while True:
        path = look.round_folder(standing, number) / "stdout"
        if path.exists():
            yield from ((number, line) for line in _growing(path, standing, number, tail))
        now = standing_of(standing.folder)
        if only is not None or now is None:
            return
        if now.state.round > number:
            number, tail = number + 1, None
        elif not now.alive:
            return
        else:
            time.sleep(0.1)


def _growing(path: Path, standing: Standing, number: int, tail: int | None) -> Iterator[bytes]:
    """The lines of one round's output as they come, until that round is over."""
    from bydawn import kernel

    watch = kernel.Watch()
    watch.add(str(path))
    with path.open("rb") as file:
        if tail is not None:
            yield from look.last_lines(path, tail, _end_of_lines(file))
        while True:
            now = standing_of(standing.folder)
            over = now is None or not now.alive or not now.state.open_round or now.state.open_round.round != number
            while line := file.readline():
                if not line.endswith(b"\n") and not over:
                    # Half a line is read again when it is whole: by then a secret in it may have been masked.
                    file.seek(-len(line), 1)
                    break
                yield line
            if over:
                watch.close()
                return
            watch.wait(0.5)


def _end_of_lines(file: BinaryIO) -> int:
    """Where the last whole line ends, and where reading goes on."""
    end = file.seek(0, 2)
    while end > 0:
        start = max(0, end - 65536)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return file.seek(start + newline + 1)
        end = start
    return file.seek(0)


def _echo_event(event: Any, as_json: bool) -> None:
    kind = type(event).__name__.lower()
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode({"schema": 1, "event": kind, **msgspec.to_builtins(event)}).decode())
    elif kind == "message":
        click.echo(event.text)
    elif kind == "activity":
        click.echo(f"  · {event.text}")


@command()
@loop_argument
@cd
@as_json
@state_dir
def events(loop: str | None, cd: Path, as_json: bool, state_dir: Path | None) -> None:
    """The ledger, fact by fact; with --json as JSON Lines.

    \b
    Examples
      bydawn events shop-api --json | jq .type
    """
    import msgspec

    from bydawn.ledger import records

    standing = Registry(state_dir).find(loop, cd.resolve())
    for record in records(standing.folder):
        data = msgspec.to_builtins(record.fact)
        kind = data.pop("type")
        if as_json:
            row = {"schema": 1, "seq": record.seq, "at": record.at, "type": kind, "data": data}
            click.echo(msgspec.json.encode(row).decode())
            continue
        told = " ".join(f"{name}={value}" for name, value in data.items() if value not in (None, "", [], {}))
        line = f"  {record.seq:>5}  {record.at.astimezone():%H:%M:%S}  {kind:<16} {plain(told)}"
        click.echo(line.rstrip()[: 4 * render.width()])
