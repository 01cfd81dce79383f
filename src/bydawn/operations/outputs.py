"""What the agents of a loop printed, and when they last did."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bydawn.core.facts import RoundStarted
from bydawn.core.layout import PROMPT, STDERR, STDOUT
from bydawn.core.state import OpenRound
from bydawn.core.text import plain
from bydawn.store.folder import LoopFolder
from bydawn.store.ledger import records
from bydawn.store.registry import Standing
from bydawn.system.tail import LONGEST_LINE

if TYPE_CHECKING:  # `status` has to be quick and never needs one
    from bydawn.core.agent import Event
    from bydawn.core.redact import Secrets

_BLOCK = 64 << 10
_TAIL = 16 << 20  # bytes of a file's end that are shown at most


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


def events(standing: Standing, lines: Iterator[tuple[int, bytes]]) -> "Iterator[Event]":
    """What the agents said, read line by line with each round's own reader."""
    from bydawn import agents

    pool, current = agents.pool(standing.loop), 0
    for round_, line in lines:
        if round_ != current:
            current, reader = round_, pool[_agent_of(standing, round_)].reader()
        yield from reader.read(line.rstrip(b"\n"))


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
    return data.splitlines()[-count:] if count else []
