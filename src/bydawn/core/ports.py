"""What the engine needs from the world, as small protocols; `assemble` supplies the real things."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from bydawn.core.facts import AnyFact, Record
from bydawn.core.loop import Check, Loop, Sandbox
from bydawn.core.outcome import Exit, Outcome
from bydawn.core.requests import Request
from bydawn.core.state import LoopState
from bydawn.core.values import Changes, Moment, Now, Usage, Verdict


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is asked to do once. The prompt is a file that becomes its stdin."""

    round: int
    workspace: str
    session: str | None = None  # the session to go on with
    new_session: str = ""  # the id that a fresh session is to have, for agents that can be told
    sandbox: Sandbox = Sandbox.WORKSPACE
    model: str | None = None
    profile: str | None = None
    effort: str | None = None
    arguments: tuple[str, ...] = ()  # as they are, for the agent itself
    commits: bool = False  # may it write to the repository's .git?
    is_root: bool = False


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start; `env` is added to ours."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}


class Message(msgspec.Struct, frozen=True):
    """Words of the agent."""

    text: str


class Activity(msgspec.Struct, frozen=True):
    """Something the agent does, as one short line (`editing src/settings.py`)."""

    text: str


class Retry(msgspec.Struct, frozen=True):
    """The agent has trouble with its provider and tries again by itself."""

    text: str


class Denied(msgspec.Struct, frozen=True):
    """The agent was not allowed to do something."""

    text: str


class LimitNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The provider says how much of a limit is used up."""

    text: str
    until: datetime | None = None


class Begun(msgspec.Struct, frozen=True):
    """The conversation has a name now, by which it can be gone on with."""

    session: str


class Spent(msgspec.Struct, frozen=True):
    """What this turn has used so far."""

    usage: Usage


class Hopeless(msgspec.Struct, frozen=True):
    """It goes on trying what cannot work: stop it. The reader knows the outcome."""

    text: str


class Finished(msgspec.Struct, frozen=True):
    """The agent's terminal event: it has nothing more to say and ought to exit."""


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
    reset: str = ""  # the moment of a reset in the agent's own words, where it has no better ones

    def __post_init__(self) -> None:
        # A moment without a zone could be compared with nothing, at every start from then on.
        if self.wait_until and self.wait_until.tzinfo is None:
            msgspec.structs.force_setattr(self, "wait_until", self.wait_until.replace(tzinfo=UTC))


class Reader(Protocol):
    """Understands an agent's output while it runs; tolerant of anything."""

    def read(self, line: bytes) -> Iterable[Event]: ...

    def skipped(self, size: int) -> None:
        """A line too long to be parsed went by."""

    def end(self, exit_: Exit, stderr_tail: str) -> Ended:
        """The verdict, in this order: terminal event, what we did to it (`outcome.imposed`), exit code, signal."""


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """How a child is stopped: seconds it gets after INT (0: it gets none), then after TERM; then KILL."""

    interrupt: float = 5.0
    terminate: float = 5.0


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked of an agent; what it does not know is refused, not ignored."""

    sandboxes: frozenset[Sandbox] = frozenset()  # the levels that it really holds itself to
    options: frozenset[str] = frozenset()  # of model, profile, effort, agent_args, agent_commits
    efforts: tuple[str, ...] = ()  # the ones it knows, where it would silently ignore others
    permissions: tuple[str, ...] = ()  # its own flags for what `--sandbox` says; given beside it they would overrule it
    resumes: bool = False  # can it go on with a session?
    chooses_session: bool = False  # can a session's id be given to it beforehand?
    prompt_length: int | None = None  # characters that it takes at most
    tells_cost: bool = False  # in dollars
    account: tuple[str, ...] = ()  # the variables that say whose limits it runs into
    litters: bool = False  # does it leave things in the temporary folder? then it gets one of its own


class Agent(Protocol):
    """A pure pair around one child: build the command, read the stream."""

    @property
    def name(self) -> str: ...

    @property
    def ladder(self) -> Ladder: ...

    @property
    def streams(self) -> bool:
        """Does it speak while it works? If not, the first-byte limit would be unfair."""

    @property
    def abilities(self) -> Abilities: ...

    def command(self, turn: Turn) -> Command: ...

    def reader(self, turn: Turn | None = None) -> Reader:
        """For one turn; without one (`logs`) nothing is verified."""

    def missing(self) -> tuple[str, str] | None:
        """Cause and hint if this agent cannot be started on this machine."""


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
