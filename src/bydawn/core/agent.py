"""An agent as the engine sees it: what it is asked, what it says meanwhile, what its figures mean."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Protocol

import msgspec

from bydawn.core import resets
from bydawn.core.layout import STDOUT
from bydawn.core.loop import Loop, Sandbox
from bydawn.core.outcome import Ending, Exit, Outcome
from bydawn.core.progress import Used
from bydawn.core.redact import rewritten
from bydawn.core.state import LoopState, Session
from bydawn.core.text import headline, plain, shorten
from bydawn.core.values import Commands, Usage
from bydawn.core.verdicts import of_failure

_LATE = 30.0  # seconds after a reset, at most
_ARGUMENT = 100_000  # bytes; Linux takes 131,072 in one argument
_READ_ONLY = "Read-only file system"
_FAILURES = 10  # failed commands of a round that are kept


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
    schema: str = ""  # of the reply, for agents that accept one: the JSON schema, …
    schema_file: str = ""  # … and a file with it
    last_message: str = ""  # a file for its last message, for agents that write one


def family(name: str) -> str:
    """The agent that a name means, whichever program it is: `codex` for `codex:/opt/codex/bin/codex`.

    >>> family("codex:/opt/codex"), family("codex"), family("cmd:sh -c x")
    ('codex', 'codex', 'cmd:sh -c x')
    """
    kind = name.partition(":")[0]
    return name if kind in ("cmd", "arg", "demo") else kind


class AgentCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start; `env` is added to ours."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    prompt_last: bool = False  # its last argument is the prompt, where that is possible, and its stdin is empty


class _Said(msgspec.Struct, frozen=True):
    text: str


class Message(_Said, frozen=True):
    """Text from the agent."""


class Activity(_Said, frozen=True):
    """Something the agent does, as one short line (`editing src/settings.py`)."""


class CommandStarted(Activity, frozen=True):
    """A command that the agent has started; `CommandEnded` will have the same command."""

    command: str
    beside: str = ""  # one that was running already, although agents should do one thing after the other


class Retry(_Said, frozen=True):
    """The agent has trouble with its provider and is retrying by itself."""


class Denied(_Said, frozen=True):
    """The agent was not allowed to do something."""


class LimitNotice(_Said, frozen=True, kw_only=True):
    """The provider reports how much of a limit is used."""

    until: datetime | None = None


class CommandEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A command that the agent ran has ended. Not shortened yet, because secrets in it are masked first."""

    command: str
    failed: bool
    exit_code: int | None = None  # if the agent says so
    output: str = ""  # the end of it, if the command failed

    @property
    def error(self) -> str:
        """The most telling line of its output, or else how it ended."""
        return headline(self.output) or self._ended

    @property
    def text(self) -> str:
        """`✗ pytest -q → exit 1: 3 failed`"""
        told = ": ".join(dict.fromkeys(filter(None, (self._ended, self.error))))
        return f"{'✗' if self.failed else '✓'} {shorten(self.command, 120)}" + (f" → {told}" if told else "")

    @property
    def _ended(self) -> str:
        if self.exit_code is not None:
            return f"exit {self.exit_code}"
        return "failed" if self.failed else ""


class Complaint(_Said, frozen=True):
    """A line that the agent wrote to stderr; only a loop of a dialect hears them while the round runs."""


class Notice(_Said, frozen=True):
    """What bydawn itself has to say about a round that runs."""


class Beat(msgspec.Struct, frozen=True):
    """The agent, or a check, is still at work; told every now and then if someone wants to know."""


class Begun(msgspec.Struct, frozen=True):
    """The conversation now has a name by which it can be continued."""

    session: str


class Spent(msgspec.Struct, frozen=True):
    """What this turn has used so far."""

    usage: Usage


class Hopeless(_Said, frozen=True):
    """The agent keeps retrying what cannot work: stop it. The reader knows the outcome."""


class Finished(msgspec.Struct, frozen=True):
    """The agent's terminal event: it has nothing more to say and should exit."""


Event = (
    Beat
    | Begun
    | Message
    | Activity
    | CommandEnded
    | Complaint
    | Notice
    | Retry
    | Denied
    | LimitNotice
    | Spent
    | Hopeless
    | Finished
)


def why_no_argument(text: str, *, has_secret: bool) -> str:
    """Why this prompt cannot be an argument, as the end of "the prompt …"; empty if it can."""
    if has_secret:
        return "contains a secret, and any user here can read command lines"
    if len(text.encode(errors="replace")) > _ARGUMENT:
        return f"is longer than {_ARGUMENT:,} bytes"
    return "contains a NUL byte" if "\0" in text else ""


def readable(event: Event) -> str:
    """An event as a person reads it in a log; empty if it says nothing to people."""
    match event:
        case Denied():
            return f"not allowed: {event.text}"
        case Hopeless():
            return ""  # the last retry has said it
        case CommandEnded() | _Said():
            return event.text
        case _:
            return ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The one result of a turn."""

    outcome: Outcome
    reply: str = ""
    detail: str = ""
    words: str = ""  # the agent's own, where the detail is ours
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
    answers: bool = False  # can it be given a schema for its reply?
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

    def command(self, turn: Turn) -> AgentCommand: ...

    def reader(self, turn: Turn | None = None) -> Reader:
        """For one turn; without one (`logs`), nothing is verified."""

    def missing(self, workspace: str) -> tuple[str, str] | None:
        """Cause and hint if this agent cannot be started in a workspace on this machine."""


def turn_of(
    loop: Loop, round_: int, session: str | None, new_session: str, *, is_root: bool, schema_file: str = ""
) -> Turn:
    """What the loop's settings ask of its agent, identical on every call: sessions do not remember permissions.

    `schema_file` has the schema of an answer, if the loop wants one.
    """
    if session and session.startswith("-"):
        session = None  # no agent uses such a name; as an argument it would be an option
    schema = ""
    if schema_file:
        from bydawn.core.answers import SCHEMA as schema  # noqa: N811 - few loops want one
    return Turn(
        round=round_,
        workspace=loop.folder,
        session=session,
        new_session="" if session else new_session,
        sandbox=loop.sandbox or Sandbox.WORKSPACE,
        model=loop.model,
        profile=loop.profile,
        effort=loop.effort,
        arguments=loop.agent_args,
        commits=loop.agent_commits,
        is_root=is_root,
        schema=schema,
        schema_file=schema_file,
    )


def used_by(ended: Ended, before: Session | None, seen: Usage | None = None) -> Used:
    """What this turn used, or what was `seen` of it before it was stopped."""
    used = ended.usage or seen
    if used and ended.usage_is_total and before and before.id == ended.session:
        used = used.minus(before.usage)  # the agent has said that part of it before
    return Used(turn=used, session=ended.usage if ended.usage_is_total else None)


def spent_unseen(
    loop: Loop, state: LoopState, pool: Mapping[str, Agent], lines_of: Callable[[int, str], Iterator[bytes]]
) -> Used:
    """What a turn had used if its end was lost: its output is kept, and says so."""
    opened = state.open_round
    agent = pool.get(opened.started.agent) if opened else None
    lines = lines_of(opened.round, STDOUT) if opened else iter(())
    first = next(lines, None)
    if opened is None or agent is None or first is None:
        return Used()
    reader = agent.reader(turn_of(loop, opened.round, opened.session, "", is_root=False))
    listener = Listener(reader, lambda _: None, lambda _: False)
    for line in chain([first], lines):
        listener.on_line(line)
    return used_by(reader.end(Exit(ending=Ending.ASKED), ""), state.conversation(opened.session), listener.spent)


def reset_of(ended: Ended, now: datetime, chance: float) -> datetime | None:
    """When a limited agent is free again. A little later than it says, because all loops come back at that time."""
    until = resets.clamped(ended.wait_until, now) if ended.wait_until else resets.moment(ended.reset, now)
    return later(until, now, chance) if until else None


def later(until: datetime, now: datetime, chance: float) -> datetime:
    """A future time, delayed a little."""
    return until + timedelta(seconds=chance * min(_LATE, 0.1 * max(0.0, (until - now).total_seconds())))


class Listener:
    """Passes an agent's lines to its reader, and what they mean to everyone else."""

    def __init__(self, reader: Reader, tell: Callable[[Event], None], overspent: Callable[[Usage], bool]) -> None:
        self._reader = reader
        self._tell = tell
        self._overspent = overspent
        self.hopeless = False  # it keeps retrying what cannot work, or exceeds the budget
        self.denied: list[str] = []
        self.ran = self.failed = 0  # commands
        self._running: list[str] = []
        self.failures: deque[CommandEnded] = deque(maxlen=_FAILURES)
        self.spent: Usage | None = None

    def on_line(self, line: bytes) -> bool:
        """True once the agent has finished talking."""
        finished = False
        for event in self._reader.read(line):
            match event:
                case Finished():
                    finished = True
                case Hopeless():
                    self.hopeless = True
                case Spent():
                    self.spent = event.usage
                    self.hopeless = self.hopeless or self._overspent(event.usage)
                case Denied():
                    self.denied.append(event.text)
                case CommandStarted():
                    event = msgspec.structs.replace(event, beside=self._running[-1] if self._running else "")
                    self._running.append(event.command)
                case CommandEnded():
                    if event.command in self._running:
                        self._running.remove(event.command)
                    self.ran += 1
                    if event.failed:
                        self.failed += 1
                        self.failures.append(event)
                case _:
                    pass
            self._tell(event)
        return finished

    def commands(self, hide: Callable[[str], str]) -> Commands:
        """The commands heard so far, without secrets."""
        failures = [rewritten(each, lambda text: hide(plain(text))) for each in self.failures]
        error = failures[-1].error if failures else ""
        return Commands(
            ran=self.ran,
            failed=self.failed,
            error=error,
            fingerprint=of_failure(error) if error else "",
            failures=tuple(each.text for each in failures),
            read_only=any(_READ_ONLY in each.output for each in failures),
        )
