"""What the agents of a loop printed, and when they last did."""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bydawn.core.errors import UserError
from bydawn.core.facts import RoundStarted
from bydawn.core.layout import PROMPT, STDERR, STDOUT
from bydawn.core.state import OpenRound
from bydawn.core.text import left_out_line, plain, shorten
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import records
from bydawn.store.registry import Standing
from bydawn.system.tail import LONGEST_LINE

if TYPE_CHECKING:  # `status` has to be quick and never needs one
    from bydawn.core.agent import Event
    from bydawn.core.redact import Secrets

_BLOCK = 64 << 10
_TAIL = 16 << 20  # bytes of a file's end that are shown at most
_LAST = 40  # lines in which to look for what an agent does now
_SHORT = 160  # characters of that


REMOVED = "removed by `bydawn clean`"


def is_removed(standing: Standing, round_: int) -> bool:
    """Is the output of a round gone? The prompt was there before its agent; what is before round 1 has none."""
    opened = standing.state.open_round
    is_over = standing.folder.round(round_).is_dir() and not (opened and opened.round == round_)
    return round_ > 0 and is_over and not standing.folder.round_file(round_, PROMPT).exists()


def place(path: Path) -> str:
    """Where a person finds an output."""
    return str(path) if path.exists() else REMOVED


def _printed(folder: LoopFolder, round_: int) -> list[Path]:
    """The files with an agent's output that exist so far."""
    paths = (folder.round_file(round_, name) for name in (STDOUT, STDERR))
    return [path for path in paths if path.exists()]


def has_printed(standing: Standing, round_: int) -> bool:
    """Did the agent of a round print anything at all?"""
    return any(path.stat().st_size for path in _printed(standing.folder, round_))


def seconds_of_silence(folder: LoopFolder, opened: OpenRound) -> float:
    """How long the agent of a running round has printed nothing."""
    return max(0.0, (datetime.now(UTC) - max([opened.started_at, *_times(folder, opened)])).total_seconds())


def last_output_age(standing: Standing) -> float | None:
    """Seconds since the agent last printed something; None when no agent is running."""
    opened = standing.state.open_round
    return round(seconds_of_silence(standing.folder, opened), 1) if opened and standing.alive else None


def last_sign(standing: Standing) -> datetime:
    """When a loop last recorded a fact or its agent printed something."""
    opened = standing.state.open_round
    times = _times(standing.folder, opened) if opened else []
    return max([*times, standing.state.updated_at or standing.loop.created_at])


def _times(folder: LoopFolder, opened: OpenRound) -> list[datetime]:
    """When each file of a round that has not ended was last written."""
    return [datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in _printed(folder, opened.round)]


class Line(NamedTuple):
    """A line that an agent printed: in which round, which one, counted from 1, and where it ends in the file."""

    round: int
    data: bytes
    number: int = 0
    end: int = 0
    left_out: int = 0  # bytes, if it is too long to be an event: then it has no data


def events(standing: Standing, lines: Iterator[tuple[int, bytes]], agent: str = "") -> "Iterator[Event]":
    """What the agents said, read line by line with each round's own reader; `agent` is theirs, if that is known."""
    return (event for _, event in events_by_line(standing, (Line(*each) for each in lines), agent))


def events_by_line(standing: Standing, lines: Iterable[Line], agent: str = "") -> "Iterator[tuple[Line, Event]]":
    """The same, each with the line that it came from."""
    from bydawn import agents
    from bydawn.core.agent import Notice

    pool, current = agents.pool(standing.loop), 0
    for line in lines:
        if line.round != current:
            name = agent or _agent_of(standing, line.round)
            current, reader = line.round, (pool.get(name) or agents.find(name)).reader()  # it may have left the pool
        if line.left_out:
            reader.skipped(line.left_out)
            yield line, Notice(left_out_line(line.left_out))
        else:
            yield from ((line, event) for event in reader.read(line.data.rstrip(b"\n")))


def activity(standing: Standing) -> str:
    """What the agent of a running loop does or said last, on one line; empty if it has printed nothing readable."""
    opened = standing.state.open_round
    if opened is None or not standing.alive:
        return ""
    from bydawn.core.agent import Activity, CommandEnded, Message

    said = ""
    for event in last_events(standing, opened.round, _LAST, opened.started.agent)[0]:
        if isinstance(event, Message | Activity | CommandEnded):
            said = event.text.strip() or said
    return shorten(said, _SHORT)


def last_events(standing: Standing, round_: int, count: int, agent: str = "") -> "tuple[list[Event], bool]":
    """What the last lines of a round say, without secrets, and whether there were more before them."""
    from bydawn.core.redact import rewritten
    from bydawn.operations.steer import secrets_of

    path, hide = standing.folder.round_file(round_, STDOUT), secrets_of(standing).line_by_line()
    lines = last_lines(path, count)
    for line in lines_before(path, count) if len(lines) == count else ():
        hide(plain(line))  # a secret may have begun there
    found = events(standing, ((round_, line) for line in lines), agent)
    try:
        shown = [rewritten(each, lambda text: "\n".join(map(hide, plain(text).split("\n")))) for each in found]
    except (UserError, ValueError, KeyError):  # the agent's program, or its lines, are not what they were
        return [], bool(lines)
    return shown, len(lines) == count


def _agent_of(standing: Standing, round_: int) -> str:
    """The agent of a round; with one agent there is nothing to look up."""
    if not standing.loop.others:
        return standing.loop.agent
    facts = (record.fact for record in records(standing.folder))
    mine = (fact.agent for fact in facts if isinstance(fact, RoundStarted) and fact.round == round_)
    return next(mine, standing.loop.agent)


def lines_before(path: Path, count: int | None) -> list[bytes]:
    """The lines before the last `count`: a secret may have begun there."""
    return last_lines(path, count + 500)[:-count] if count else []


def masked_lines(path: Path, count: int, hidden: "Secrets") -> list[str]:
    """The last lines as a person may see them; a file of a running round is not masked yet."""
    hide = hidden.line_by_line()
    for line in lines_before(path, count):
        hide(plain(line))
    return [hide(plain(line)) for line in last_lines(path, count)]


def last_lines(path: Path, count: int, end: int | None = None) -> list[bytes]:
    """The end of a file, or of its first bytes, read from the end: a 1 GB log costs no more than a short one.

    A line that is too long to be an event is left out: half of it could begin in the middle of a secret.
    """
    return b"".join(last_pieces(path, count, end)).splitlines()


def last_pieces(path: Path, count: int, end: int | None = None) -> list[bytes]:
    """The same, each with what ends it."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return []
    blocks: list[bytes] = []
    found = size = first = 0  # `first`: bytes of the line that they begin with, which may be incomplete
    with file:
        position = file.seek(0, 2) if end is None else end
        while position > 0 and found <= count and first <= LONGEST_LINE and size < _TAIL:
            step = min(_BLOCK, position)
            position -= step
            blocks.append(block := os.pread(file.fileno(), step, position))
            newlines = block.count(b"\n")
            first = block.index(b"\n") if newlines else first + step
            found, size = found + newlines, size + step
    data = b"".join(reversed(blocks))
    if first > LONGEST_LINE:
        data = b"[a line of more than %d MB was left out here]" % (LONGEST_LINE >> 20) + data[first:]
    return data.splitlines(keepends=True)[-count:] if count else []
