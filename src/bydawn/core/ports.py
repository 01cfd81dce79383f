"""What the engine needs from the outside, as small protocols; `assemble` supplies the real things."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from bydawn.core.agent import Agent, Event, Ladder
from bydawn.core.facts import AnyFact, CommitEnded, EventRecorded, IterationRecorded, Record
from bydawn.core.loop import Check, Loop, Timeouts
from bydawn.core.outcome import Exit
from bydawn.core.requests import Request
from bydawn.core.state import LoopState, Span
from bydawn.core.values import Moment, Now, Snapshot, Verdict

NONE: Mapping[str, str] = {}


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs between two trees; a form is its mode and its id in git, empty where there is no file."""

    path: str
    old: str = ""
    new: str = ""


class Texts(Protocol):
    """The files of a workspace."""

    def read_text(self, path: str, errors: str = "strict") -> str | None:
        """A file's text, None if there is no such file; raises `UserError`. `errors`: of its encoding."""

    def stamp(self, path: str) -> Hashable:
        """Another value whenever a file, or a Markdown file in a folder, was written or replaced."""

    def read_folder(self, path: str) -> dict[str, str] | None:
        """The Markdown files directly in a folder, by name, None if there is no such folder; raises `UserError`."""


class Workspace(Texts, Protocol):
    def snapshot(self) -> Snapshot: ...

    def keep(self, name: str, tree: str) -> None:
        """Make a tree durable, and findable by a name (`after/7`)."""

    def tidy(self) -> None:
        """Pack what is kept, if that is worth it; what fails stays as it is."""

    def watch(self) -> None:
        """Remember the protected files as they are now."""

    def rewritten(self) -> tuple[str, ...] | None:
        """The protected files that were written to since then, even if put back; None without a `watch` before."""

    def touched(self, before: str, after: str, globs: Sequence[str]) -> tuple[str, ...]:
        """The paths that match a glob and differ between two kept trees."""

    def read_bytes(self, path: str) -> bytes | None:
        """A file, None if there is no such file; raises `UserError`."""

    def put(self, path: str, data: bytes, before: bytes | None) -> bool:
        """Replace a file, unless it is no longer what it was `before` (None: there was none); raises `UserError`."""

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        """Restore files as they are in a kept tree; remove those it does not have."""

    def between(self, before: str, after: str) -> list[Difference]:
        """The files in which two kept trees differ."""

    def forms(self, tree: str) -> dict[str, str]:
        """All files of a kept tree, each with its form."""

    def tools(self, named: Iterable[str]) -> dict[str, str]:
        """What runs the checks in the workspace but is in no tree, each with a digest."""

    def woven(self, tree: str, forms: Mapping[str, str]) -> str:
        """A kept tree with other forms of some of its files; an empty one removes a file."""

    def read(self, form: str) -> bytes:
        """The content of a file in one of its forms."""

    def form(self, data: bytes) -> str:
        """The form of a file with this content."""


class Checks(Protocol):
    def run(
        self,
        checks: Sequence[Check],
        round_: int,
        tree: str,
        urgent: Callable[[], bool],
        again: bool = False,
        outside: Mapping[str, str] = NONE,
        aside: str = "",
    ) -> tuple[Verdict, ...]:
        """Run all checks on this tree; `again` keeps the output of the first run.

        Those in `outside` run outside the box, with the folder that each of them needs. `aside`: this is not the tree
        of the workspace but one that is only tried, under this name.
        """


class Commits(Protocol):
    """The person's own repository, with its hooks and settings."""

    def note(self, round_: int, spans: Sequence[Span], tree: str) -> None:
        """A round is about to start: remember which files are not committed as they are, if not because of these."""

    def commit(
        self, round_: int, message: str, spans: Sequence[Span], tree: str, urgent: Callable[[], bool]
    ) -> CommitEnded:
        """Commit what these rounds changed, and nothing else; what git knows of it. Raises `UserError`."""


class HookRunner(Protocol):
    def run(
        self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool], number: int = 1
    ) -> Exit:
        """Run a command of a hook; its output is kept in the round's folder, under its number."""


class Channel(Protocol):
    """Where requests from people and signals arrive."""

    def take(self) -> list[Request]:
        """What has arrived since the last call, oldest first."""

    def done(self, request: Request) -> None:
        """The request is recorded in the ledger; forget it."""


class Drop(Protocol):
    """Where others leave what they record about their work."""

    def take(self, known: Collection[str]) -> Sequence[EventRecorded | IterationRecorded]:
        """The next few, oldest first, without those whose ids are `known`."""

    def done(self, fact: EventRecorded | IterationRecorded) -> None:
        """The record is in the ledger; forget it."""


class ChildLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a child, in seconds and bytes; None means no limit."""

    total: float | None = None
    silence: float | None = None
    first_byte: float | None = None
    linger: float | None = None  # after its terminal event
    output: int | None = None

    @classmethod
    def of(cls, timeouts: Timeouts, *, streams: bool) -> "ChildLimits":
        """Those of an agent's turn; one that prints nothing while it works has no limit for its first byte."""
        return cls(
            total=timeouts.round or None,
            silence=timeouts.silence or None,
            first_byte=(timeouts.first_byte or None) if streams else None,
            linger=timeouts.linger or None,
            output=timeouts.output or None,
        )


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A child to run: its command, the files it reads and writes, and its limits."""

    argv: tuple[str, ...]
    path: str = ""  # where its program is found; empty: on the PATH
    env: dict[str, str]
    without: frozenset[str] = frozenset()  # variables that it does not inherit
    boxed: bool = False  # its first process is a box, which takes everything in it along when it ends
    stdin: str
    stdout: str
    stderr: str
    times: str = ""  # a file for the times at which its lines came, if anyone wants to know
    limits: ChildLimits
    ladder: Ladder = Ladder()


class Processes(Protocol):
    """Runs one child at a time and lets none of its processes survive."""

    def run(
        self,
        job: Job,
        on_line: Callable[[bytes], bool],
        on_skip: Callable[[int], None],
        urgent: Callable[[], bool],
        on_error: Callable[[bytes], bool] | None = None,  # a line of stderr, if anyone wants them as they come
    ) -> Exit: ...

    def sleep(self, seconds: float, urgent: Callable[[], bool]) -> None: ...


class CoolDown(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that one of this user's loops ran into: until then, no loop need try."""

    agent: str
    until: Moment
    detail: str
    loop: str


class CoolDowns(Protocol):
    """What all of this user's loops know about their agents' limits."""

    def of(self, agent: Agent, now: datetime) -> CoolDown | None: ...

    def tell(self, agent: Agent, until: datetime, detail: str) -> None: ...


class RoundFiles(Protocol):
    """Where the large files of a loop's rounds are kept."""

    def folder(self, round_: int) -> str: ...

    def write(self, round_: int, name: str, text: str | bytes) -> str:
        """Write a file of a round and return its path."""

    def keep_list(self, data: bytes) -> None:
        """Remember the task list, durably."""

    def last_list(self) -> bytes: ...

    def tail(self, round_: int, name: str, size: int) -> str:
        """The end of a file of a round, as text."""

    def pieces(self, round_: int, name: str) -> Iterator[str] | None:
        """A file of a round, piece by piece, as text; None if it is above 4 MB."""

    def lines(self, round_: int, name: str) -> Iterator[bytes]:
        """A file of a round, line by line, without lines too long to be an event."""

    def last_lines(self, round_: int, name: str, size: int) -> tuple[list[bytes], bool]:
        """The whole lines in the last bytes of a file of a round; is anything before them?"""

    def last(self) -> int:
        """The highest number with a folder."""

    def mask(self, round_: int, *names: str) -> None:
        """Overwrite the secrets in these files of a round, or in all of them, in place."""


class Clock(Protocol):
    def now(self) -> Now: ...

    def slept(self) -> float:
        """Seconds the machine was suspended since the last call."""


class Ledger(Protocol):
    """What the one writer of a ledger can do."""

    @property
    def state(self) -> LoopState: ...

    @property
    def disk_full(self) -> bool: ...

    def append(self, fact: AnyFact) -> Record: ...

    def sync(self) -> None: ...


class Follower(Protocol):
    """A view that receives each fact."""

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None: ...

    def heard(self, event: Event) -> None: ...
