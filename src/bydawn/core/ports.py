"""What the engine needs from the world, as small protocols; `assemble` supplies the real things."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from bydawn.core.agent import Agent, Event, Ladder
from bydawn.core.facts import AnyFact, Record
from bydawn.core.loop import Check, Loop
from bydawn.core.outcome import Exit
from bydawn.core.requests import Request
from bydawn.core.state import LoopState
from bydawn.core.values import Changes, Moment, Now, Verdict


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The work tree at one moment."""

    tree: str
    work: str = ""  # the fingerprint without the documents; empty where it is the same
    changes: Changes = Changes()  # since the snapshot before
    left_out: tuple[str, ...] = ()  # files too big to keep


class Texts(Protocol):
    """What stands in a workspace."""

    def read_text(self, path: str) -> str | None:
        """A file, None if it is not there; raises `UserError`."""

    def read_folder(self, path: str) -> dict[str, str] | None:
        """The Markdown files right in a folder, by name, None if it is not there; raises `UserError`."""


class Workspace(Texts, Protocol):
    def snapshot(self) -> Snapshot: ...

    def keep(self, name: str, tree: str) -> None:
        """Make a tree durable and findable under a name (`round/7/after`)."""

    def touched(self, before: str, after: str, globs: Sequence[str]) -> tuple[str, ...]:
        """The paths that match a glob and differ between two kept trees."""

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        """Put files back as they are in a kept tree; what it does not have is removed."""


class Checks(Protocol):
    def run(
        self, checks: Sequence[Check], round_: int, tree: str, urgent: Callable[[], bool], again: bool = False
    ) -> tuple[Verdict, ...]:
        """All of them on this tree; `again` keeps the output of the first time."""


class Hooks(Protocol):
    def run(self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool]) -> Exit:
        """Run a person's own command; what it prints is kept in the round's folder."""


class Channel(Protocol):
    """Where requests from people and signals arrive."""

    def take(self) -> list[Request]:
        """What has arrived since the last call, oldest first."""

    def done(self, request: Request) -> None:
        """The request stands in the ledger; forget it."""


class ChildLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is held to, in seconds and bytes; None switches a limit off."""

    total: float | None = None
    silence: float | None = None
    first_byte: float | None = None
    linger: float | None = None  # after its terminal event
    output: int | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A child to run: its command, the files it reads and writes, and its limits."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: str
    stdout: str
    stderr: str
    limits: ChildLimits
    ladder: Ladder = Ladder()


class Processes(Protocol):
    """Runs one child at a time and lets nothing of it survive."""

    def run(
        self,
        job: Job,
        on_line: Callable[[bytes], bool],
        on_skip: Callable[[int], None],
        urgent: Callable[[], bool],
    ) -> Exit: ...

    def sleep(self, seconds: float, urgent: Callable[[], bool]) -> None: ...

    def sweep(self, mark: str) -> tuple[str, ...]:
        """End whatever still carries this mark; the names of what was found."""


class CoolDown(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a loop of this user ran into: until then nobody need try."""

    agent: str
    until: Moment
    detail: str
    loop: str


class CoolDowns(Protocol):
    """What all loops of this user know about their agents' limits."""

    def of(self, agent: Agent, now: datetime) -> CoolDown | None: ...

    def tell(self, agent: Agent, until: datetime, detail: str) -> None: ...


class RoundFiles(Protocol):
    """Where the bulk of a loop's rounds lives."""

    def folder(self, round_: int) -> str: ...

    def write(self, round_: int, name: str, text: str) -> str:
        """Write a file of a round; its path."""

    def tail(self, round_: int, name: str, size: int) -> str:
        """The end of a file of a round, as text."""

    def lines(self, round_: int, name: str) -> Iterator[bytes]:
        """A file of a round, line by line; what is too long to be an event is left out."""

    def last(self) -> int:
        """The highest number that has a folder."""

    def mask(self, round_: int, *names: str) -> None:
        """Overwrite the secrets in these files of a round, or in all of them, where they stand."""


class Clock(Protocol):
    def now(self) -> Now: ...

    def slept(self) -> float:
        """Seconds the machine was suspended since the last call."""


class Ledger(Protocol):
    """The one writer's hand on the truth."""

    @property
    def state(self) -> LoopState: ...

    @property
    def disk_full(self) -> bool: ...

    def append(self, fact: AnyFact) -> Record: ...

    def sync(self) -> None: ...


class Follower(Protocol):
    """A view fed with each fact."""

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None: ...

    def heard(self, event: Event) -> None: ...
