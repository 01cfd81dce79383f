"""What the engine needs from the outside, as small protocols; `assemble` supplies the real things."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from bydawn.core.facts import AnyFact, Changes, Now, Record, Usage, Verdict
from bydawn.core.loop import Check, Loop, Moment, Sandbox
from bydawn.core.outcome import Exit, Outcome
from bydawn.core.requests import Request
from bydawn.core.state import LoopState


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request to an agent. The prompt is a file that becomes its stdin."""

    round: int
    workspace: str
    session: str | None = None  # the session to continue
    new_session: str = ""  # the id for a fresh session, for agents that accept one
    sandbox: Sandbox = Sandbox.WORKSPACE
    model: str | None = None
    profile: str | None = None
    effort: str | None = None
    arguments: tuple[str, ...] = ()  # passed to the agent unchanged
    commits: bool = False  # may it write to the repository's .git?
    is_root: bool = False


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start; `env` is added to ours."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}


class Message(msgspec.Struct, frozen=True):
    """Text from the agent."""

    text: str


class Activity(msgspec.Struct, frozen=True):
    """Something the agent does, as one short line (`editing src/settings.py`)."""

    text: str


class Retry(msgspec.Struct, frozen=True):
    """The agent has trouble with its provider and is retrying by itself."""

    text: str


class Denied(msgspec.Struct, frozen=True):
    """The agent was not allowed to do something."""

    text: str


class LimitNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The provider reports how much of a limit is used."""

    text: str
    until: datetime | None = None


class Begun(msgspec.Struct, frozen=True):
    """The conversation now has a name by which it can be continued."""

    session: str


class Spent(msgspec.Struct, frozen=True):
    """What this turn has used so far."""

    usage: Usage


class Hopeless(msgspec.Struct, frozen=True):
    """The agent keeps retrying what cannot work: stop it. The reader knows the outcome."""

    text: str


class Finished(msgspec.Struct, frozen=True):
    """The agent's terminal event: it has nothing more to say and should exit."""


Event = Begun | Message | Activity | Retry | Denied | LimitNotice | Spent | Hopeless | Finished


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The one result of a turn."""

    outcome: Outcome
    reply: str = ""
    detail: str = ""
    session: str | None = None
    usage: Usage | None = None
    usage_is_total: bool = False  # of the whole session, not of this turn
    wait_until: datetime | None = None
    reset: str = ""  # when the limit resets, in the agent's own words, if there is nothing better

    def __post_init__(self) -> None:
        # A time without a zone could not be compared with anything, at every start from then on.
        if self.wait_until and self.wait_until.tzinfo is None:
            msgspec.structs.force_setattr(self, "wait_until", self.wait_until.replace(tzinfo=UTC))


class Reader(Protocol):
    """Reads an agent's output while it runs; tolerates anything."""

    def read(self, line: bytes) -> Iterable[Event]: ...

    def skipped(self, size: int) -> None:
        """A line too long to parse went by."""

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        """The result, decided in this order: terminal event, what we did (`outcome.imposed`), exit code, signal."""


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """How a child is stopped: seconds to wait after INT (0: skip INT), then after TERM; then KILL."""

    interrupt: float = 5.0
    terminate: float = 5.0


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent supports; anything else is refused, not ignored."""

    sandboxes: frozenset[Sandbox] = frozenset()  # the levels it really enforces
    options: frozenset[str] = frozenset()  # of model, profile, effort, agent_args, agent_commits
    efforts: tuple[str, ...] = ()  # the ones it accepts, if it would silently ignore others
    permissions: tuple[str, ...] = ()  # its own flags for what `--sandbox` says, which would override it
    resumes: bool = False  # can it continue a session?
    chooses_session: bool = False  # can it be given a session id beforehand?
    prompt_length: int | None = None  # the most characters it accepts
    tells_cost: bool = False  # in dollars
    account: tuple[str, ...] = ()  # the variables that say which account's limits apply
    litters: bool = False  # does it leave files in the temporary folder? then it gets its own


class Agent(Protocol):
    """A pure pair around one child: build the command, read the stream."""

    @property
    def name(self) -> str: ...

    @property
    def ladder(self) -> Ladder: ...

    @property
    def streams(self) -> bool:
        """Does it print anything while it works? If not, the first-byte limit would be unfair."""

    @property
    def abilities(self) -> Abilities: ...

    def command(self, turn: Turn) -> Command: ...

    def reader(self, turn: Turn | None = None) -> Reader:
        """For one turn; without one (`logs`), nothing is verified."""

    def missing(self) -> tuple[str, str] | None:
        """Cause and hint if this agent cannot be started on this machine."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The work tree at one moment."""

    tree: str
    work: str = ""  # the fingerprint without the documents; empty if it is the same
    changes: Changes = Changes()  # since the previous snapshot
    left_out: tuple[str, ...] = ()  # files too big to keep


class Texts(Protocol):
    """The files of a workspace."""

    def read_text(self, path: str) -> str | None:
        """A file's text, None if there is no such file; raises `UserError`."""

    def read_folder(self, path: str) -> dict[str, str] | None:
        """The Markdown files directly in a folder, by name, None if there is no such folder; raises `UserError`."""


class Workspace(Texts, Protocol):
    def snapshot(self) -> Snapshot: ...

    def keep(self, name: str, tree: str) -> None:
        """Make a tree durable, and findable by a name (`after/7`)."""

    def touched(self, before: str, after: str, globs: Sequence[str]) -> tuple[str, ...]:
        """The paths that match a glob and differ between two kept trees."""

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        """Restore files as they are in a kept tree; remove those it does not have."""


class Checks(Protocol):
    def run(
        self, checks: Sequence[Check], round_: int, tree: str, urgent: Callable[[], bool], again: bool = False
    ) -> tuple[Verdict, ...]:
        """Run all checks on this tree; `again` keeps the output of the first run."""


class Hooks(Protocol):
    def run(self, name: str, command: str, round_: int, env: dict[str, str], urgent: Callable[[], bool]) -> Exit:
        """Run a hook; its output is kept in the round's folder."""


class Channel(Protocol):
    """Where requests from people and signals arrive."""

    def take(self) -> list[Request]:
        """What has arrived since the last call, oldest first."""

    def done(self, request: Request) -> None:
        """The request is recorded in the ledger; forget it."""


class ChildLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a child, in seconds and bytes; None means no limit."""

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
    """Runs one child at a time and lets none of its processes survive."""

    def run(
        self,
        job: Job,
        on_line: Callable[[bytes], bool],
        on_skip: Callable[[int], None],
        urgent: Callable[[], bool],
    ) -> Exit: ...

    def sleep(self, seconds: float, urgent: Callable[[], bool]) -> None: ...

    def sweep(self, mark: str) -> tuple[str, ...]:
        """End every process that still carries this mark; return the names of those found."""


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

    def write(self, round_: int, name: str, text: str) -> str:
        """Write a file of a round and return its path."""

    def tail(self, round_: int, name: str, size: int) -> str:
        """The end of a file of a round, as text."""

    def lines(self, round_: int, name: str) -> Iterator[bytes]:
        """A file of a round, line by line, without lines too long to be an event."""

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
