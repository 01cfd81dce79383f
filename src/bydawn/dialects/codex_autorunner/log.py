"""The lines of the log: two markers around each run, and between them a stamp and the run's number on every line."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

LONGEST = 4000  # characters of a line; the round's own files have all of it
_MARKER = re.compile(r"=== run (?P<run>\d{1,12}) (?P<what>start|end \(code [^()]{0,40}\)) ===\Z")
_LINE = re.compile(r"\[[^\]]{1,40}\] run=(?P<run>\d{1,12}) (?P<rest>.*)\Z", re.DOTALL)
_SAID = "stdout:"


class Seen(msgspec.Struct, frozen=True):
    """A line of the log, ours or another program's."""

    run: int
    marker: str = ""  # "start", "end", or neither
    said: str | None = None  # what the agent said in it


def moment(at: datetime) -> str:
    """
    >>> moment(datetime(2025, 1, 1, 12, 34, 56, tzinfo=UTC))
    '2025-01-01T12:34:56Z'
    """
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def start(run: int) -> str:
    return f"=== run {run} start ==="


def end(run: int, code: int | str) -> str:
    return f"=== run {run} end (code {code}) ==="


def ours(run: int, at: datetime, text: str) -> str:
    """A line of our own; whatever is in it, it stays one line."""
    return f"[{moment(at)}] run={run} {' '.join(text.split())[:LONGEST]}"


def said(run: int, at: datetime, text: str) -> Iterator[str]:
    """What the agent said or did, each line with its stamp."""
    for line in text.splitlines():
        cut = line if len(line) <= LONGEST else f"{line[:LONGEST]} … [{len(line) - LONGEST:,} more characters]"
        yield f"[{moment(at)}] run={run} {_SAID} {cut}".rstrip()


def seen(line: str) -> Seen | None:
    """What a line is; None for anything else."""
    if found := _MARKER.match(line.rstrip()):
        return Seen(int(found["run"]), found["what"][:5].split()[0])
    if found := _LINE.match(line):
        before, is_said, said = found["rest"].partition(_SAID)
        return Seen(int(found["run"]), said=said.removeprefix(" ") if is_said and not before else None)
    return None


def spoken(lines: Iterable[str]) -> str:
    """What the agent said in a block, without stamps. Lines of an earlier release may have no `stdout:`."""
    texts = []
    for line in lines:
        found = seen(line)
        if found is None:
            texts.append(line.rstrip())
        elif found.said is not None:
            texts.append(found.said.rstrip())
    return "\n".join(texts)
