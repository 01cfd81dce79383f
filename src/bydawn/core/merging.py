"""Two edits of one text, brought together line by line so that nothing of either is lost."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import groupby

import msgspec

_MOST = 5_000  # lines that differ; comparing more could take minutes, and no person edits that much
_END = re.compile(r"(\r\n|\n|\r)")
_TICKED = re.compile(r"([ \t>]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[)[xX](?=\])")

Lines = tuple[str, ...]


class Kind(StrEnum):
    """Who changed a part of a text?"""

    SAME = "same"  # no one, or both in the same way
    YOURS = "yours"
    THEIRS = "theirs"
    CLASH = "clash"  # both, or it is not known who


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that follow each other, as each side has them."""

    kind: Kind
    yours: Lines
    theirs: Lines

    @property
    def merged(self) -> Lines:
        """Where both changed it, both: the other's lines first."""
        if self.kind is Kind.CLASH:
            return self.theirs + self.yours
        return self.yours if self.kind is Kind.YOURS else self.theirs


class _Edit(msgspec.Struct, frozen=True):
    """Lines that one side has in place of `first` up to, but without, `last` of the lines that both began with."""

    first: int
    last: int
    lines: Lines
    is_yours: bool


def lines_of(text: str) -> Lines:
    """The lines of a text without their endings; the last one is empty if the text ends with a newline."""
    return tuple(_END.split(text)[::2])


def merge(base: str | None, yours: str, theirs: str) -> tuple[Part, ...]:
    """The parts of both texts, in order. Without the text that both began with, every difference is a clash."""
    mine, other = lines_of(yours), lines_of(theirs)
    if base is None:
        return tuple(_compared(mine, other))
    return tuple(_joined(_parts(lines_of(base), mine, other)))


def merged(parts: Iterable[Part]) -> str:
    return "\n".join(line for part in parts for line in part.merged)


def with_endings_of(original: str, text: str) -> str:
    """A text with the line endings of another: lines that both have keep theirs, all others get the usual one.

    >>> with_endings_of("a\\r\\nb\\r\\n", "a\\nnew\\nb\\n")
    'a\\r\\nnew\\r\\nb\\r\\n'
    """
    kinds: Counter[str] = Counter(_END.findall(original))
    [(usual, _)] = kinds.most_common(1) or [("\n", 0)]
    lines = lines_of(text)
    if len(kinds) < 2:
        return usual.join(lines)
    before = _END.split(original)
    known, ends = [*before[1::2], usual], [usual] * len(lines)
    for first, now, count in _matches(before[::2], lines):
        ends[now : now + count] = known[first : first + count]
    mixed = "".join(line + end for line, end in zip(lines, [*ends[:-1], ""], strict=True))
    return mixed if lines_of(mixed) == lines else usual.join(lines)  # `\r` before an empty line that ends with `\n`


def _parts(base: Lines, yours: Lines, theirs: Lines) -> Iterator[Part]:
    at = 0
    for first, last, edits in _groups(sorted([*_edits(base, yours, True), *_edits(base, theirs, False)], key=_place)):
        yield Part(kind=Kind.SAME, yours=base[at:first], theirs=base[at:first])
        mine, other = (_applied(base, first, last, edits, is_yours=is_yours) for is_yours in (True, False))
        if mine == base[first:last]:
            yield Part(kind=Kind.THEIRS, yours=mine, theirs=other)
        elif other == base[first:last]:
            yield Part(kind=Kind.YOURS, yours=mine, theirs=other)
        else:
            yield from _compared(mine, other)
        at = last
    yield Part(kind=Kind.SAME, yours=base[at:], theirs=base[at:])


def _place(edit: _Edit) -> tuple[int, int]:
    return edit.first, edit.last


def _groups(edits: Sequence[_Edit]) -> Iterator[tuple[int, int, list[_Edit]]]:
    """Edits of the same lines, or new lines of both in the same place. Edits that only touch do not clash."""
    group: list[_Edit] = []
    first = last = 0
    for edit in edits:
        if group and not (edit.first < last or _place(edit) == (first, last)):
            yield first, last, group
            group = []
        first, last = (first, max(last, edit.last)) if group else _place(edit)
        group.append(edit)
    if group:
        yield first, last, group


def _applied(base: Lines, first: int, last: int, edits: Iterable[_Edit], *, is_yours: bool) -> Lines:
    """One side's lines in the place of these."""
    lines: Lines = ()
    for edit in edits:
        if edit.is_yours is is_yours:
            lines += base[first : edit.first] + edit.lines
            first = edit.last
    return lines + base[first:last]


def _edits(base: Lines, new: Lines, is_yours: bool) -> Iterator[_Edit]:
    """What was changed. A box that was ticked is one changed line, whatever was changed around it."""
    at = to = 0
    for first, now, count in _matches([*map(_unticked, base)], [*map(_unticked, new)]):
        if (at, to) != (first, now):
            yield _Edit(at, first, new[to:now], is_yours)
        at, to = first + count, now + count
        for number in range(count):
            if base[first + number] != new[now + number]:
                yield _Edit(first + number, first + number + 1, (new[now + number],), is_yours)


def _unticked(line: str) -> str:
    return _TICKED.sub(r"\1 ", line, count=1) if "]" in line else line


def _compared(yours: Lines, theirs: Lines) -> Iterator[Part]:
    """What both have is there once."""
    at = to = 0
    for first, now, count in _matches(theirs, yours):
        if (at, to) != (first, now):
            yield Part(kind=Kind.CLASH, yours=yours[to:now], theirs=theirs[at:first])
        at, to = first + count, now + count
        yield Part(kind=Kind.SAME, yours=yours[now:to], theirs=theirs[first:at])


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Neighbors of one kind as one part, without empty ones. Two clashes stay apart, so that each can be decided."""
    for kind, group in groupby((part for part in parts if part.yours or part.theirs), key=lambda part: part.kind):
        if kind is Kind.CLASH:
            yield from group
            continue
        rows = [*group]
        yours, theirs = (tuple(line for row in rows for line in getattr(row, side)) for side in ("yours", "theirs"))
        yield Part(kind=kind, yours=yours, theirs=theirs)


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Where equal lines begin in both, and how many follow; the last ones are at the end, and may be none."""
    shorter = min(len(old), len(new))
    head = next((number for number in range(shorter) if old[number] != new[number]), shorter)
    rest = shorter - head
    tail = next((number for number in range(rest) if old[-1 - number] != new[-1 - number]), rest)
    yield 0, 0, head
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(left), len(right)) <= _MOST:
        for first, now, count in SequenceMatcher(None, left, right).get_matching_blocks()[:-1]:
            yield head + first, head + now, count
    yield len(old) - tail, len(new) - tail, tail
