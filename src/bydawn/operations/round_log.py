"""The log of a round, page by page: what its agent said and did, as people may see it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain

import msgspec

from bydawn.core.agent import Activity, CommandEnded, Event, Message, readable
from bydawn.core.layout import STDERR
from bydawn.core.outcome import Outcome
from bydawn.core.redact import HIDDEN, Secrets, rewritten
from bydawn.core.text import is_plain, plain
from bydawn.operations import outputs
from bydawn.operations.outputs import Line
from bydawn.operations.recent import the_round
from bydawn.operations.round_output import RoundOutput
from bydawn.operations.steer import secrets_of
from bydawn.store.registry import Standing

LINES = 500  # of a page
STDERR_LINES = 200
ON_STDERR = "stderr"  # the event of a line that is there
_PAGE = 4 << 20  # bytes of a page
_NEWS = 256 << 10  # bytes that a follower is given at once
_BEHIND = 512 << 10  # bytes that a follower may be behind; of more it is given only the end
_SEARCHED = 64 << 20  # bytes, from the end
_HITS = 1000  # that are counted
# What is read before the first line that is shown: a private key may have begun there, and a reader knows a command
# only from its start.
_LINES_BEFORE, _PAGE_BEFORE, _NEWS_BEFORE = 500, 1 << 20, 128 << 10


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an agent said or did; `event` is the word that `logs --json` has for it."""

    line: int | None  # of stdout, counted from 1; None on stderr
    at: datetime | None
    event: str
    text: str
    hit: bool = False


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of some lines that follow each other."""

    round: int
    first: int  # the number of the first line, also if it has no row, …
    last: int  # … and of the last; smaller than `first` if there are no lines
    lines_before: bool
    lines_after: bool
    is_open: bool  # the round still runs
    rows: tuple[LogRow, ...] = ()
    hits: int = 0  # rows in the whole log that have the text; more than 1000 are not counted
    hit_lines: tuple[int, ...] = ()  # where they are, if they are on stdout
    searched_all: bool = True  # or only the end, because the log is so long
    removed: bool = False  # by `bydawn clean`
    next_offset: int = 0  # where line `last` + 1 begins: `new_rows` goes on from there


# -- what is shown, also by `logs` -------------------------------------------------------------------------------------


def without_secrets(event: Event, hide: Callable[[str], str]) -> Event:
    """An event as people may see it; the files of a running round are not masked yet."""
    return rewritten(event, lambda text: hide(plain(text)))


def kind_of(event: Event) -> str:
    """`message`, `activity`, …"""
    return type(event).__name__.lower()


def says_something(event: Event) -> bool:
    """Does the agent say or do something?"""
    return isinstance(event, Message | Activity | CommandEnded)


def has_failed(standing: Standing, round_: int) -> bool:
    """Has a round ended, and not well?"""
    ended = the_round(standing, round_).attempt.ended if round_ else None
    return ended is not None and ended.outcome is not Outcome.OK


def stderr_of(standing: Standing, round_: int, hidden: Secrets, count: int | None = None) -> list[str]:
    """The last lines that the agent of a round wrote to stderr, without secrets."""
    path = standing.folder.round_file(round_, STDERR)
    return outputs.masked_lines(path, count or STDERR_LINES, hidden)


# -- a page ------------------------------------------------------------------------------------------------------------


def log_page(
    standing: Standing, round_: int, *, first: int | None = None, count: int = LINES, search: str = ""
) -> LogPage:
    """The lines from `first` on, or else those around the last that has the text, or else the last ones.

    `search` is plain text that is looked for in what is shown; capital letters do not matter.
    """
    with RoundOutput(standing, round_) as output:
        if not outputs.is_removed(standing, round_):
            return _Log(standing, output, search).page(first, count)
    return LogPage(round=round_, first=1, last=0, lines_before=False, lines_after=False, is_open=False, removed=True)


def place_of(standing: Standing, round_: int, offset: int) -> tuple[int, int]:
    """Where the line at an offset begins, and its number. A reader may name any offset: half a secret is not masked."""
    with RoundOutput(standing, round_) as output:
        line = output.line_at(min(offset, output.size))
        return output.start_of(line), line


def near_end(standing: Standing, round_: int, offset: int, line: int, until: int | None = None) -> tuple[int, int, int]:
    """Where a follower goes on (offset and line), and where the lines end for now.

    One that is far behind leaves out lines: an agent may print faster than anyone can be told.
    """
    with RoundOutput(standing, round_) as output:
        end = output.end if until is None else min(until, output.end)
        if end - offset > _BEHIND:
            number = output.line_at(end - _BEHIND)
            begin = output.start_of(number)
            if begin > offset:
                return begin, number, end
        return offset, line, end


def new_rows(
    standing: Standing, round_: int, offset: int, line: int, until: int | None = None
) -> tuple[tuple[LogRow, ...], int, int]:
    """What came after an offset at which the line of this number begins; and the offset and number that follow.

    Only whole lines and not very many at once; and none after `until`, an offset at which a line begins, too.
    """
    with RoundOutput(standing, round_) as output:
        end = output.end if until is None else min(until, output.end)
        lines = [*_some(output.lines(offset, line, end), _NEWS)]
        if not lines:
            return (), offset, line
        rows = _Log(standing, output).rows(lines, offset, _NEWS_BEFORE)
        return tuple(rows), lines[-1].end, lines[-1].number + 1


def _some(lines: Iterable[Line], most: int, count: int | None = None) -> Iterator[Line]:
    """The first lines: so many, or as many as have room in so many bytes; one in any case."""
    for taken, line in enumerate(lines):
        most -= len(line.data) + 1
        if taken == count or (taken and most < 0):
            return
        yield line


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found on stdout."""

    hits: int = 0
    lines: tuple[int, ...] = ()  # the last ones
    all: bool = True


class _Log:
    """The log of a round, for one reader."""

    def __init__(self, standing: Standing, output: RoundOutput, search: str = "") -> None:
        self._standing, self._output = standing, output
        self._wanted = search.casefold() if search.strip() else ""
        self._is_about_secrets = self._wanted in HIDDEN or not {*HIDDEN[0], *HIDDEN[-1]}.isdisjoint(self._wanted)
        self._secrets = secrets_of(standing)
        self._said = False

    def page(self, first: int | None, count: int) -> LogPage:
        output, end = self._output, self._output.end
        found = self._found(end) if self._wanted else _Found()
        stderr = self._stderr() if self._wanted else []
        hits = found.hits + sum(row.hit for row in stderr)
        last_hit = found.lines[-1] if found.lines and hits == found.hits else None
        begin, number = self._begin(first, last_hit, count, end)
        lines = [*_some(output.lines(begin, number, end), _PAGE, count)]
        stop = lines[-1].end if lines else begin
        rows = self.rows(lines, begin, _PAGE_BEFORE)
        if stop == end:
            rows += stderr if self._wanted else self._stderr()
        return LogPage(
            round=output.round,
            first=number,
            last=number + len(lines) - 1,
            lines_before=begin > 0,
            lines_after=stop < end,
            is_open=output.is_open,
            rows=tuple(rows),
            hits=min(hits, _HITS),
            hit_lines=found.lines,
            searched_all=found.all,
            next_offset=stop,
        )

    def _begin(self, first: int | None, last_hit: int | None, count: int, end: int) -> tuple[int, int]:
        """Where the page begins, and with which line."""
        output = self._output
        if first is not None and (begin := output.start_of(max(1, first))) < end:
            return begin, max(1, first)
        begin = output.back(end, count, _PAGE)
        if begin == end:  # its last line alone is longer than a page
            begin = output.start_of(output.line_at(max(0, end - 1)))
        if first is None and last_hit is not None and (place := output.start_of(last_hit)) < begin:
            begin = output.back(place, max(1, count // 2), _PAGE // 2)
        return begin, output.line_at(begin)

    def _found(self, end: int) -> _Found:
        """Search the whole log, or as much of its end as does not take too long."""
        begin, number = max(0, end - _SEARCHED), 1
        if begin:
            number = self._output.line_at(begin - 1) + 1
            begin = self._output.start_of(number)
        hits, lines = 0, deque[int](maxlen=_HITS)
        for line, _, text in self._texts(self._output.lines(begin, number, end), self._may_be_hit):
            if self._is_hit(text):
                hits += 1
                lines.append(line.number)
        return _Found(hits=hits, lines=tuple(dict.fromkeys(lines)), all=begin == 0)

    def rows(self, lines: list[Line], begin: int, before: int) -> list[LogRow]:
        """The rows of these lines, the first of which begins there; so many bytes before them are read as well."""
        earlier = self._output.lines(self._output.back(begin, _LINES_BEFORE, before), 0, begin)
        return [
            LogRow(line=line.number, at=self._output.at(line), event=event, text=text, hit=self._is_hit(text))
            for line, event, text in self._texts(chain(earlier, lines))
            if line.end > begin
        ]

    def _texts(
        self, lines: Iterable[Line], matters: Callable[[str], bool] = lambda _: True
    ) -> Iterator[tuple[Line, str, str]]:
        """What the lines say to people, each with its line and the word for what happened.

        Only what `matters`: to hide secrets takes longer than all the rest.
        """
        opened, hide = self._standing.state.open_round, self._secrets.line_by_line()
        agent = opened.started.agent if opened and opened.round == self._output.round else ""
        for line, said in outputs.events_by_line(self._standing, lines, agent):
            self._said = self._said or says_something(said)
            if matters(readable(said)):
                event = without_secrets(said, hide)
                text = readable(event)
                if text or isinstance(event, Message):
                    yield line, kind_of(event), text

    def _stderr(self) -> list[LogRow]:
        """A program that fails usually says why on stderr; otherwise it is noise."""
        is_over = not self._output.is_open
        if self._said and not (is_over and has_failed(self._standing, self._output.round)):
            return []
        texts = stderr_of(self._standing, self._output.round, self._secrets)
        return [
            LogRow(line=None, at=None, event=ON_STDERR, text=text, hit=self._is_hit(text))
            for text in (texts if any(map(str.strip, texts)) else ())
        ]

    def _may_be_hit(self, text: str) -> bool:
        """Can it have what is searched for once it is shown, or does a private key begin or end in it?"""
        return self._is_hit(text) or "-----" in text or self._is_about_secrets or not is_plain(text)

    def _is_hit(self, text: str) -> bool:
        return bool(self._wanted) and self._wanted in text.casefold()
