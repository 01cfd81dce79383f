"""What a dialect is: words in, requests and files out. Nothing here, or in any dialect, touches the world."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from bydawn.core.breakers import Limits
from bydawn.core.facts import AnyFact, LoopAdopted, LoopStopped
from bydawn.core.history import Attempt, History
from bydawn.core.loop import Loop
from bydawn.core.state import LoopState

# -- its command line, as a table --------------------------------------------------------------------------------------


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option; without a metavar or choices it is a switch."""

    flag: str
    what: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    number: bool = False
    default: str | None = None

    @property
    def key(self) -> str:
        return self.flag.lstrip("-").replace("-", "_")

    @property
    def switch(self) -> bool:
        return not self.metavar and not self.choices


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One command; the one without a name is what is meant when no other is named."""

    name: str
    what: str
    options: tuple[Option, ...]
    argument: str = ""  # the one word that it takes, as it is shown
    examples: tuple[str, ...] = ()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when a command was typed; paths are absolute and real."""

    folder: str
    workspace: str
    now: datetime  # with the offset of the people who are there


# -- what is asked for -------------------------------------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A new loop. `settings` are ours, by key, and hold against every file, one without words as "none".

    `wanted` is what no setting says.
    """

    prompt: str
    name: str
    settings: dict[str, tuple[str, ...]]
    wanted: dict[str, Any]
    words: dict[str, str]
    paths: dict[str, str] = {}  # more of them, which lead to files or folders
    named: bool = False  # did a person choose that name?
    outside_git: bool = False  # may it work where there is no repository?
    remarks: tuple[str, ...] = ()


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None
    rounds: int | None = None
    sandbox: str = ""  # in the dialect's own word, for a loop that another program began


class Show(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None
    as_json: bool


class List(msgspec.Struct, frozen=True, kw_only=True):
    as_json: bool


class Cancel(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None
    cleanup: bool


class Install(msgspec.Struct, frozen=True, kw_only=True):
    force: bool


Request = Start | Resume | Show | List | Cancel | Install

# -- what is written ---------------------------------------------------------------------------------------------------


class Source(msgspec.Struct, frozen=True):
    """A file in the folder of a round."""

    round: int
    name: str


class Replace(msgspec.Struct, frozen=True):
    """The whole text of a file, there at once or not at all. A relative path begins in the workspace."""

    path: str
    text: str


class Create(msgspec.Struct, frozen=True):
    """The same, unless there is something already."""

    path: str
    text: str


class Copy(msgspec.Struct, frozen=True):
    """The same with what a round left; where it left nothing, an empty file."""

    path: str
    source: Source


class Append(msgspec.Struct, frozen=True):
    """More of a file that grows."""

    path: str
    source: Source


View = Replace | Create | Copy | Append


def draft(loop: Loop, number: int | str) -> str:
    """What a file of this loop's is called until it is whole; nobody else's is, so that leftovers are known by it."""
    return f".bydawn-{int.from_bytes(loop.uid.encode(), 'big')}-{number}.tmp"


class Helper(msgspec.Struct, frozen=True, kw_only=True):
    """A file for people or agents that is written once, on request."""

    home: bool  # below the agent's own folder (CODEX_HOME), or in the workspace
    path: str
    text: str
    remark: str = ""


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that another program began: what to start, and what it had done by then."""

    start: Start
    fact: LoopAdopted


class Dialect(Protocol):
    """One other tool."""

    name: str
    unit: str  # its word for a round
    commands: tuple[Command, ...]
    helpers: tuple[Helper, ...]
    shared: tuple[str, ...]  # files that are all its loops'

    def read_args(self, command: str, values: Mapping[str, Any], place: Place) -> Request:
        """What these words ask for; raises `UserError`."""

    def files(self, loop: Loop) -> tuple[str, ...]:
        """The very names that are written, and are no work of an agent's; a `*` is a number."""

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterable[View]:
        """What the files say once this has happened."""

    def written(self, loop: Loop, state: LoopState) -> tuple[str, ...]:
        """Every file that views may make up to this state, whether they are there or not."""

    def growing(self, loop: Loop) -> tuple[str, ...]:
        """Those that are appended to."""

    def is_line(self, line: bytes) -> bool:
        """Might this line of such a file be one that was appended?"""

    def copies(self, attempt: Attempt, loop: Loop) -> Iterable[Copy | Append]:
        """Those views of a round's end that copy its files."""

    def told(self, loop: Loop) -> tuple[str, ...]:
        """The files that say by themselves, as `loop_id` and `workspace_root`, whose they are."""

    def state(self, loop: Loop, state: LoopState) -> dict[str, Any]:
        """How this loop stands, in its own format."""

    def state_path(self, loop: Loop) -> str:
        """The file that says how this loop stands."""

    def adopt(self, text: str, request: Resume, place: Place) -> Adopted:
        """A loop that the original program left behind; raises `UserError`."""

    def original_path(self, name: str) -> str:
        """Where the original program would have kept it."""

    def word(self, stopped: LoopStopped) -> str:
        """The word for an end."""

    def reason(self, stopped: LoopStopped) -> str:
        """Why it stands still, in a sentence."""

    def exit_code(self, stopped: LoopStopped) -> int: ...

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[tuple[str, str]]:
        """Commands to be pasted in that folder, and what each does; advice without a command has an empty one."""

    def go_on(self, loop: Loop) -> list[str]:
        """The words of its own that go on past a checkpoint."""

    def raised(self, limits: Limits, request: Resume) -> Limits:
        """The limits that a resumed loop gets."""
