"""What facts are made of: ends, tasks, changes, usage, verdicts; and what a person can do."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Self, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from bydawn.core.text import PLACEHOLDER, headline

T = TypeVar("T")
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class End(StrEnum):
    """The ways a run of a loop can end."""

    COMPLETE = "complete"
    UNVERIFIED = "unverified"
    BLOCKED = "blocked"
    LIMIT = "limit"
    CHECKPOINT = "checkpoint"
    FAILED = "failed"
    PAUSED = "paused"
    STOPPED = "stopped"


class Status(StrEnum):
    """The state of a loop now: how it ended, or what it is doing. Derived from ledger and lock, never stored."""

    COMPLETE = End.COMPLETE
    UNVERIFIED = End.UNVERIFIED
    BLOCKED = End.BLOCKED
    LIMIT = End.LIMIT
    CHECKPOINT = End.CHECKPOINT
    FAILED = End.FAILED
    PAUSED = End.PAUSED
    STOPPED = End.STOPPED
    RUNNING = "running"
    WAITING = "waiting"
    CRASHED = "crashed"  # the ledger says running, but the lock is free
    DAMAGED = "damaged"  # the ledger or the settings cannot be read

    @property
    def words(self) -> str:
        """`is paused`: the end of a sentence that starts with the loop's name."""
        words = {
            Status.LIMIT: "has reached a limit",
            Status.CHECKPOINT: "is at a checkpoint",
            Status.FAILED: "has failed",
            Status.CRASHED: "has crashed",
        }
        return words.get(self, f"is {self.value}")

    @property
    def already(self) -> str:
        """`is already blocked`, `has already reached a limit`."""
        verb, _, rest = self.words.partition(" ")
        return f"{verb} already {rest}"

    @property
    def sign(self) -> str:
        """One character in front of the word, or alone where there is little room."""
        return _SIGNS[self]


_SIGNS = {
    Status.COMPLETE: "✓",
    Status.UNVERIFIED: "~",  # nothing has proven it, so there is no tick
    Status.BLOCKED: "!",
    Status.LIMIT: "◷",
    Status.CHECKPOINT: "?",
    Status.FAILED: "✗",
    Status.PAUSED: "‖",
    Status.STOPPED: "■",
    Status.RUNNING: "▶",
    Status.WAITING: "…",
    Status.CRASHED: "✗",
    Status.DAMAGED: "✗",
}


class Result(StrEnum):
    """How a round came out, in one word: for a strip of the last rounds."""

    PASSED = "passed"  # its checks passed
    RED = "red"  # a check failed
    WORKED = "worked"  # it changed something, and no check has said anything about it
    IDLE = "idle"  # it changed nothing new
    FAILED = "failed"  # its agent failed
    CUT = "cut"  # cut short, limited or disturbed: it costs no round


EXIT_CODES: dict[End, int] = {
    End.COMPLETE: 0,
    End.UNVERIFIED: 0,
    End.BLOCKED: 3,
    End.LIMIT: 4,
    End.CHECKPOINT: 5,
    End.FAILED: 7,
    End.PAUSED: 130,
    End.STOPPED: 130,
}
FINISHED = {End.COMPLETE, End.UNVERIFIED}


class Promised(StrEnum):
    """Was the promise given, only mentioned, or absent?"""

    GIVEN = "given"
    MENTIONED = "mentioned"
    ABSENT = "absent"


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a fact."""


class Now(msgspec.Struct, frozen=True):
    """One reading of the clocks: `at` is UTC, `elapsed` the loop's own working time, which no clock change affects."""

    at: Moment
    elapsed: float


class Decided(Value, frozen=True, kw_only=True):
    """The rule behind an action, and the clock reading it used; a replay must agree."""

    rule: str
    at: Moment
    elapsed: float


class ReachedMark(Value, frozen=True, kw_only=True):
    """A checkpoint in the task file that has been reached: nothing above it is open."""

    id: str
    text: str


class TaskStatus(StrEnum):
    """The state of a task beyond what its file says."""

    DONE = "done"
    ASIDE = "aside"  # it failed too often; the loop goes on without it
    SKIPPED = "skipped"  # a person no longer wants it
    OPEN = "open"


class Line(Value, frozen=True, kw_only=True):
    """A line that came into a task list while a round ran, as it would be written."""

    text: str
    file: str = ""  # of a task folder
    times: int = 1  # how many lines there were that begin so
    round: int = 0  # the running round then, or the last one


class TaskReading(Value, frozen=True, kw_only=True):
    """What the task file, or folder, said when it was read; `open_ids` names the open tasks.

    Tasks that a person skipped are not open; those set aside are, but are never `next`.
    """

    open: int
    done: int
    next: str | None = None
    open_ids: tuple[str, ...] = ()
    problem: str | None = None
    text: str = ""  # the digest of the file, to recognize it without parsing Markdown
    disbelieved: str = ""  # the digest of a file that has a problem
    next_id: str | None = None
    marks: tuple[str, ...] = ()  # every checkpoint, by id
    above: tuple[int, ...] = ()  # for each open task, how many of those are above it
    reached: tuple[ReachedMark, ...] = ()
    ahead: tuple[ReachedMark, ...] = ()  # the others
    texts: tuple[str, ...] = ()  # for each open task in a folder, the digest of its file
    stranded: tuple[str, ...] = ()  # titles of open tasks that wait for one that was set aside
    absent: tuple[str, ...] = ()  # tasks of a folder that are done or set aside, and whose file is gone
    gone: tuple[Line, ...] = ()  # lines that a round took out again; nothing is complete without them
    # On record, a long list only says how it differs from the reading before: the open tasks of that one, without
    # these, and then those of this one.
    follows: int = 0  # how many open tasks that one had; 0: this one is whole
    without: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.open + self.done


_LONG = 50  # open tasks; a shorter list is always recorded whole


def recorded(now: TaskReading, before: TaskReading | None) -> TaskReading:
    """A reading as it is recorded: if the list is long, without the open tasks that the one before already names."""
    if before is None or min(len(before.open_ids), len(now.open_ids)) < _LONG:
        return now
    here = {*now.open_ids}
    without = tuple(id_ for id_ in before.open_ids if id_ not in here)
    left = len(before.open_ids) - len(without)
    short = replace(
        now,
        open_ids=now.open_ids[left:],
        above=now.above[left:],
        texts=now.texts[left:],
        follows=len(before.open_ids),
        without=without,
    )
    return short if whole(short, before) == now else now  # such as a list in another order


def whole(reading: TaskReading, before: TaskReading | None) -> TaskReading:
    """A recorded reading with all its open tasks."""
    if not reading.follows or before is None:
        return reading
    gone = {*reading.without}

    def rows(known: tuple[T, ...], new: tuple[T, ...]) -> tuple[T, ...]:
        if gone:
            known = tuple(row for row, id_ in zip(known, before.open_ids, strict=False) if id_ not in gone)
        return (*known, *new) if new else known

    return replace(
        reading,
        open_ids=rows(before.open_ids, reading.open_ids),
        above=rows(before.above, reading.above),
        texts=rows(before.texts, reading.texts),
        follows=0,
        without=(),
    )


class Failing(Value, frozen=True, kw_only=True):
    """The agent's failures in a row, since the work tree last changed or a usage limit came between."""

    times: int = 0
    since: float = 0.0  # when the first one ended, in working time
    seconds: float = 0.0  # how much later the last one did


class LineCounts(Value, frozen=True, kw_only=True):
    """How many lines were added and removed; those of binary files do not count."""

    added: int = 0
    removed: int = 0

    @classmethod
    def total(cls, counts: "Iterable[LineCounts]") -> "LineCounts":
        added = removed = 0
        for each in counts:
            added, removed = added + each.added, removed + each.removed
        return cls(added=added, removed=removed)

    @property
    def words(self) -> str:
        """`+14 -6 lines`"""
        return f"+{self.added:,} -{self.removed:,} lines"


class Changes(Value, frozen=True, kw_only=True):
    """What git says a round did to the work tree."""

    added: int = 0
    modified: int = 0
    deleted: int = 0
    paths: tuple[str, ...] = ()  # the first few, for people
    lines: LineCounts | None = None  # None: unknown

    @property
    def total(self) -> int:
        return self.added + self.modified + self.deleted


class Usage(Value, frozen=True, kw_only=True):
    """What a turn cost, if the agent reports it; None is unknown, never zero."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        if self.cost_usd is not None:  # sums and agents' own figures: 0.30000000000000004
            force_setattr(self, "cost_usd", round(self.cost_usd, 6))

    @property
    def tokens(self) -> int | None:
        """In and out together."""
        known = [count for count in (self.tokens_in, self.tokens_out) if count is not None]
        return sum(known) if known else None

    @property
    def unpriced(self) -> bool:
        return bool(self.tokens) and self.cost_usd is None

    def plus(self, other: "Usage | None") -> "Usage":
        """The sum; if only one side knows a figure, that one."""
        if other is None:
            return self
        return Usage(
            tokens_in=total(self.tokens_in, other.tokens_in),
            tokens_cached=total(self.tokens_cached, other.tokens_cached),
            tokens_out=total(self.tokens_out, other.tokens_out),
            cost_usd=total(self.cost_usd, other.cost_usd),
        )

    def minus(self, other: "Usage | None") -> "Usage":
        """The difference; never below zero."""
        if other is None:
            return self
        return Usage(
            tokens_in=_since(self.tokens_in, other.tokens_in),
            tokens_cached=_since(self.tokens_cached, other.tokens_cached),
            tokens_out=_since(self.tokens_out, other.tokens_out),
            cost_usd=_since(self.cost_usd, other.cost_usd),
        )


Number = TypeVar("Number", int, float)


def total(mine: Number | None, theirs: Number | None) -> Number | None:
    """The sum of what is known."""
    return mine if theirs is None else (mine or 0) + theirs


def _since(mine: Number | None, theirs: Number | None) -> Number | None:
    return mine if theirs is None else max(0, (mine or 0) - theirs)


class Counts(Value, frozen=True, kw_only=True):
    """The tests of all runs that one output reports; where go names no tests, its packages."""

    ran: int = 0  # failed ones too, skipped ones not; an error outside a test is none
    skipped: int = 0  # or marked as something to do: no one looks at how those end
    failed: int = 0  # failures and errors: a test can have several


class Verdict(Value, frozen=True, kw_only=True):
    """What one check said."""

    check: str
    passed: bool
    detail: str
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    output: str | None = None  # the file in the round's folder with all its output
    excerpt: str = ""  # the last useful part of it
    flaky: bool = False  # it failed and passed on the same tree, so it proves nothing
    outside: bool = False  # it runs outside the box, which is in its way
    needs: str = ""  # a folder that the box does not let it write to, as a person would type it
    fingerprint: str = ""  # identifies this failure, ignoring times and addresses in it
    stdout: str = ""  # the end of each, where a dialect wants them apart
    stderr: str = ""
    counts: Counts | None = None  # the tests that it ran, if its output says so
    fewer: str = ""  # how many less than before, in words
    uncounted: bool = False  # its output is too long for that

    @property
    def tests_nothing(self) -> bool:
        """Is it known to have run no test? One that was skipped did not run."""
        return self.counts is not None and not self.counts.ran

    @property
    def never_ran(self) -> bool:
        """Is the program missing, or not executable? These are the shell's codes for it."""
        return not self.passed and self.exit_code in (126, 127)

    @property
    def told(self) -> str:
        """How it ended, and the most telling line of its output; for people only, because that line is just data."""
        said = headline(self.excerpt)
        return f"{self.detail}: {said}" if said and said != self.detail else self.detail


class Snapshot(Value, frozen=True, kw_only=True):
    """The work tree at one moment: what git says, not what an agent says."""

    tree: str
    work: str = ""  # the tree without documents and task list; empty if it is the same
    changes: Changes = Changes()  # since the snapshot before


class Findings(Snapshot, frozen=True, kw_only=True):
    """What is found in the workspace after a round, or when a run begins."""

    tampered: tuple[str, ...] = ()  # protected files that were changed
    restored: bool = False  # and they are as they were before
    tasks: TaskReading | None = None
    closed: tuple[str, ...] = ()  # tasks that were completed, …
    doubted: tuple[str, ...] = ()  # … those of them for which nothing but the list was changed, …
    rewritten: tuple[str, ...] = ()  # … and open ones of a folder, not the round's own, whose text was changed
    progress: bool = False

    @property
    def still_tampered(self) -> tuple[str, ...]:
        return () if self.restored else self.tampered

    @property
    def put_back(self) -> tuple[str, ...]:
        return self.tampered if self.restored else ()


class Commands(Value, frozen=True, kw_only=True):
    """The commands that an agent ran in a round, if it reports them."""

    ran: int = 0
    failed: int = 0
    error: str = ""  # of the last one that failed
    fingerprint: str = ""  # identifies that error, ignoring times and addresses in it
    failures: tuple[str, ...] = ()  # the last few, for people
    read_only: bool = False  # did one fail because the file system is read-only?

    @property
    def all_failed(self) -> bool:
        return 0 < self.ran == self.failed

    @property
    def told(self) -> str:
        """Nothing unless all of them failed: some usually do, as tests before a fix."""
        return f"every command failed: {self.error}" if self.all_failed else ""


UNCLEAR = "unclear"  # the status in a reply that could not be understood; its line is in the summary


class TaskClaim(Value, frozen=True, kw_only=True):
    """What an agent says about its task; only a claim."""

    status: str
    summary: str = ""
    blockers: tuple[str, ...] = ()  # what it needs from a person
    files: tuple[str, ...] = ()  # that it says it changed
    odd: tuple[str, ...] = ()  # what is wrong with the answer


# -- what a person can do ----------------------------------------------------------------------------------------------

OURS = "bydawn"
Flag = str | int | bool | None | Sequence[str]
_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # words that no shell changes


class Act(str):
    """A verb, what it is done to, and how. As text it is the command to paste: `bydawn tasks skip demo 3`."""

    __slots__ = ("flags", "loop", "names", "program", "verb")
    verb: str
    loop: str
    names: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]
    program: str

    def __new__(
        cls,
        verb: str,
        loop: str = "",
        *names: str,
        program: str = OURS,
        flags: Mapping[str, Flag] = MappingProxyType({}),
        **more: Flag,
    ) -> Self:
        """`round=3` is `--round 3`, `C=folder` is `-C folder`, `accept=True` is `--accept`; what is empty goes."""
        flags = {**flags, **more}
        words = [quoted(word) for word in (loop, *names) if word]
        self = super().__new__(cls, " ".join(filter(None, (program, verb, *words, spelled(flags)))))
        self.verb, self.loop, self.names, self.flags, self.program = verb, loop, names, tuple(_pairs(flags)), program
        return self

    @property
    def words(self) -> str:
        """What follows the program."""
        return self.removeprefix(f"{self.program} ")


class Advice(str):
    """A sentence that names acts; where it is shown, they are written as its reader has to type them."""

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        whole = tuple(each for part in parts for each in (part.parts if isinstance(part, Advice) else (part,)))
        self = super().__new__(cls, "".join(f"`{part}`" if isinstance(part, Act) else part for part in whole))
        self.parts = whole
        return self

    def __add__(self, more: str) -> "Advice":
        return Advice(self, more)


def written(text: str, write: Callable[[Act], str]) -> Advice:
    """The sentence with its acts as `write` has them."""
    parts = text.parts if isinstance(text, Advice) else (text,)
    return Advice(*(in_text(write(part)) if isinstance(part, Act) else part for part in parts))


def in_text(command: str) -> str:
    """A command as a part of a sentence."""
    return command if isinstance(command, Act) else f"`{command}`"


def git(folder: str, *words: str) -> str:
    """A command of git for that folder; without one, for where it is pasted."""
    return " ".join(map(quoted, ("git", *(("-C", folder) if folder else ()), *words)))


class Quoted(str):
    """Words as a shell has to be given them."""

    __slots__ = ()


def quoted(word: str) -> Quoted:
    """The word as a shell reads it; what stands for a person's own words looks like them. Nothing is quoted twice."""
    if isinstance(word, Quoted):
        return word
    if word == PLACEHOLDER:
        return Quoted(f'"{word}"')
    is_safe = not word or _SAFE.fullmatch(word)
    return Quoted(word if is_safe else "'" + word.replace("'", "'\"'\"'") + "'")


def spelled(flags: Mapping[str, Flag]) -> str:
    """`--rounds +20 --accept`"""
    words = [(f"-{name}" if len(name) == 1 else f"--{name}", quoted(value)) for name, value in _pairs(flags)]
    return " ".join(word for pair in words for word in pair if word)


def _pairs(flags: Mapping[str, Flag]) -> Iterator[tuple[str, str]]:
    """Each flag with its value, empty if it has none."""
    for name, given in flags.items():
        for value in (given,) if given is None or isinstance(given, str | int) else given:
            if value is not None and value is not False and value != "":
                yield name.replace("_", "-"), "" if value is True else str(value)


class Next(msgspec.Struct, frozen=True):
    """A command to paste, an `Act` if it is ours, and what it does; plain advice has no command."""

    command: str
    why: str


STALE = 300.0  # seconds without a sign of life after which a process hangs
MOST_RESTARTS = 10  # in a row


class Death(StrEnum):
    """How a process was lost."""

    EXITED = "exited"  # before the loop had ended
    HUNG = "hung"  # it gave no sign of life, and was killed
    FOUND = "found"  # no one saw it: a power cut, a reboot, or it was killed together with its parent


class Restart(Value, frozen=True, kw_only=True):
    """bydawn started the loop again by itself."""

    number: int  # in a row, from 1
    why: Death
    exit_code: int | None = None  # of the process before it; negative: the signal that killed it

    @property
    def words(self) -> str:
        """`it was killed (signal 9)`"""
        if self.why is Death.HUNG:
            return f"it gave no sign of life for {STALE / 60:.0f} minutes"
        if self.why is Death.FOUND or self.exit_code is None:
            return "it was gone, and no one saw how it ended"
        return f"it was killed (signal {-self.exit_code})" if self.exit_code < 0 else f"it exited with {self.exit_code}"

    @property
    def given_up(self) -> str:
        """Why a loop is not started again, if this would be one restart too many."""
        return f"its process died {self.number} times in a row; the last time {self.words}"
