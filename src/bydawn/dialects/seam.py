"""What a dialect is: how it speaks and which files it writes. No dialect touches a file, a clock or a process."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Protocol

import msgspec

from bydawn.core.agent import Event
from bydawn.core.facts import AnyFact, LoopStopped, RoundsBefore
from bydawn.core.history import History
from bydawn.core.hooks import HookWords
from bydawn.core.keys import Checked, Key
from bydawn.core.loop import Loop, TaskByTask
from bydawn.core.records import Recording
from bydawn.core.state import LoopState
from bydawn.core.values import Act, Next

# -- a loop that is asked for ------------------------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when a command was typed; paths are absolute and real."""

    folder: str
    workspace: str
    now: datetime  # with the local offset


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A new loop. `settings` are ours, by key, and win over every file; one without words is set to nothing."""

    prompt: str
    name: str  # empty: the folder's
    settings: dict[str, tuple[str, ...]]
    template: str = ""  # the prompt of a round; the one of the settings unless given
    sections: tuple[str, ...] | None = None  # of ours that may follow the template; None: all that must not be lost
    numbers_cut: bool = False  # does a round that was cut short use up a number?
    tasks_required: bool = True
    promise_required: bool = True
    holds_tests: bool = False  # may changed tests keep it from its end? Most documents say what ends a run
    by_task: TaskByTask | None = None
    before: RoundsBefore | None = None  # by earlier loops
    worktrees: str = ""  # the name of the folder for work trees beside the repository; ours unless given
    recording: Recording | None = None  # may others record what they do for it?
    words: dict[str, str] = {}  # what the dialect has to remember
    paths: dict[str, str] = {}  # the same for paths, which may lead to files or folders
    named: bool = False  # did a person choose the name?
    remarks: tuple[str, ...] = ()
    config: str = ""  # the dialect's own file, from the workspace on
    # Where in that file a setting is: "config.yml:9"; all else is the dialect's own choice. What the file says of those
    # for which something stronger is in `settings` is kept too: it is part of what a person agrees to.
    origins: dict[str, str] = {}
    overridden: dict[str, tuple[str, ...]] = {}
    raised: tuple[str, ...] = ()  # of those, numbers above what the person has
    template_file: str = ""  # the text of the file's template as it is, if `template` is not


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
    """The same, unless the file exists."""

    path: str
    text: str


class Copy(msgspec.Struct, frozen=True):
    """The same with a file of a round; empty if the round has no such file."""

    path: str
    source: Source


class Append(msgspec.Struct, frozen=True):
    """More of a file that grows."""

    path: str
    source: Source


class Grow(msgspec.Struct, frozen=True):
    """More lines of a live file, without their newlines."""

    path: str
    lines: tuple[str, ...]


class Rotate(msgspec.Struct, frozen=True):
    """Move a live file away, so that another begins; with what begins a run, before anything is added to it."""

    path: str


class Line(msgspec.Struct, frozen=True):
    """One more line of JSON. `id`, which has no gaps, comes before these fields; the number of the fact, after them.

    `record` names what an agent recorded. Where a process in a sandbox has written its line before, there is none.
    """

    path: str
    value: dict[str, object]
    record: str = ""


class Remove(msgspec.Struct, frozen=True):
    """No such file any more."""

    path: str


class Share(msgspec.Struct, frozen=True):
    """What this loop says in a JSON file of all loops of its dialect: the fields of the entry at `keys`.

    Every field, each time: what others wrote into the entry stays, and so does what an earlier loop said there.
    Without keys these are fields of the file itself. `owner` names a field that tells whose entry it is: a process that
    is not at work leaves another loop's alone.
    """

    path: str
    keys: tuple[str, ...]
    value: dict[str, object]
    owner: str = ""


View = Replace | Create | Copy | Append | Grow | Rotate | Line | Remove | Share


class Rotation(msgspec.Struct, frozen=True):
    """Live files that pass these bytes move to `NAME.1`, `NAME.2` …; so many are kept, and none longer than that."""

    bytes: int
    days: int
    files: int = 10


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files of a loop are; a `*` stands for the number of a round."""

    whole: tuple[str, ...] = ()  # replaced, created or copied
    growing: tuple[str, ...] = ()  # appended to; other loops may append there later
    shared: tuple[str, ...] = ()  # created once, for all loops of the dialect
    common: tuple[str, ...] = ()  # replaced and removed by whichever loop of the dialect is at work, and never kept
    live: tuple[str, ...] = ()  # grow line by line while a round runs; other programs may add lines as well
    rotation: Rotation | None = None  # of the live ones; without it they only grow
    together: tuple[str, ...] = ()  # JSON files of all loops, at work or not, wherever; each has its own entry there
    exclusive: tuple[str, ...] = ()  # of the whole ones: no other loop may replace it, even after this one has ended
    claims: tuple[str, ...] = ()  # words that no two loops at work may have in common, such as "night-shift crew a"
    # Folders that are this loop's alone, with a slash, where files are replaced whatever they say now; nothing else of
    # theirs is known. And the files of JSON lines, in these folders or elsewhere.
    owned: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    folder: str = ""  # removed after the files, if it is empty by then

    def of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The whole files of these rounds and of the loop; the exclusive ones last."""
        numbered = [path for path in self.whole if "*" in path]
        single = [path for path in self.whole if "*" not in path]
        last = sorted(single, key=lambda path: path in self.exclusive)
        return (*(path.replace("*", str(number)) for number in numbers for path in numbered), *last)

    def names(self, loop: Loop) -> tuple[str, ...]:
        """Every name that is written for this loop and is not the agent's work, drafts included."""
        drafts = ("".join(path.rpartition("/")[:2]) + draft(loop, "*") for path in (*self.whole, *self.common))
        moved = (f"{path}.*" for path in self.live if self.rotation)
        ours = (*self.whole, *self.growing, *self.common, *self.live, *moved, *self.lines, *self.owned)
        return tuple(dict.fromkeys((*ours, *drafts)))


def draft(loop: Loop, number: int | str) -> str:
    """The name of a file until it is whole; only this loop uses such names, so leftovers can be recognized."""
    return f".bydawn-{int.from_bytes(loop.uid.encode(), 'big')}-{number}.tmp"


class Dialect(Protocol):
    """One other tool: how it speaks, and which files it writes."""

    name: str
    unit: str  # its word for a round
    # Do its views look back at earlier rounds? If not, no start reads the ledger, however long it is. Such a dialect
    # has lines, and no files but these and what is owned, shared or together.
    needs_history: bool
    splits_output: bool  # does it show what checks print to stdout and to stderr apart?

    def check_env(self, loop: Loop) -> dict[str, str]:
        """The variables that its checks get besides those of any loop."""

    def counted(self, state: LoopState) -> int:
        """The number of the current or last round, as this tool counts them."""

    def word(self, stopped: LoopStopped) -> str:
        """The word for an end."""

    def reason(self, stopped: LoopStopped) -> str:
        """Why the loop stopped, in a sentence."""

    def exit_code(self, stopped: LoopStopped) -> int: ...

    def next_steps(self, loop: Loop, state: LoopState, stopped: LoopStopped, folder: str = "") -> list[Next]:
        """Commands to paste in that folder, and what each does; advice has no command."""

    def messages(self, loop: Loop, state: LoopState, stopped: LoopStopped, at: datetime) -> tuple[str, ...] | None:
        """The JSON for each address in `loop.notify`; an empty text sends nothing there. None: bydawn's own notices.

        What it is given is without secrets and control characters; only the addresses are as they are.
        """

    @property
    def hook_words(self) -> HookWords | None:
        """The variables that its hooks get besides ours; each becomes one short line without secrets."""

    def own(self, act: Act) -> Act | None:
        """Its own command for one of ours; None if it has none."""

    def go_on(self, loop: Loop) -> list[str]:
        """The words of its own command line that continue past a checkpoint."""

    def files(self, loop: Loop) -> Files:
        """Where its files are."""

    def is_line(self, line: bytes) -> bool:
        """Can this line of a growing file be one of its own?"""

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
        """What to write after this fact; lines come first, so that a file of them can be made again quickly."""

    def heard(self, event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:
        """What to write when the agent says or does something; only asked if there are live files, or lines."""

    def closing(
        self, path: str, tail: tuple[str, ...], loop: Loop, state: LoopState, history: History
    ) -> tuple[str, ...]:
        """The lines that close what a crash left open in a live file, by its last lines; asked when a run begins.

        They stand for every `Grow` of what has happened so far: whether those lines were written is not known. If
        the file is short, `tail` begins in the one that was moved away last, by an earlier loop perhaps.
        """


class Usual:
    """What a dialect does not have to say: it has all of its history, no live files, no notices of its own, no commands
    but those it names itself, and no more documents than other loops."""

    needs_history = True
    splits_output = False
    user_file = ("", "", "")
    hook_words: "HookWords | None" = None

    def check_env(self, loop: Loop) -> dict[str, str]:  # noqa: ARG002 - they get none
        return {}

    def messages(self, *_: Any) -> tuple[str, ...] | None:
        return None

    def own(self, act: Act) -> Act | None:  # noqa: ARG002 - none is its own
        return None

    def is_line(self, line: bytes) -> bool:  # noqa: ARG002 - no line of a growing file is its own
        return False

    def heard(self, *_: Any) -> Iterator[View]:
        return iter(())

    def closing(self, *_: Any) -> tuple[str, ...]:
        return ()

    def documents(self, _: Checked) -> dict[str, str]:
        return {}


class Configured(Dialect, Protocol):
    """One with a configuration file of its own, which `DialectRow.config` names."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """Those of the file."""

    @property
    def user_file(self) -> tuple[str, str, str]:
        """A person's own such file, if there is one: the variable that moves its folder, the folder, the name."""

    def from_config(self, found: Checked, read: Callable[[str], str | None]) -> Start:
        """The loop that the file asks for. `read` gives the text of another file that it names, if that is there.

        What the file sets has its origin in the result, so that a person is asked; that includes a template.
        """

    def documents(self, found: Checked) -> dict[str, str]:
        """The paths of further documents that the file names, by their names there: people can read them."""
