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


class Whole(msgspec.Struct, frozen=True):
    """All that a file says, there at once or not at all. A relative path begins in the workspace.

    A text, or a file of a round, which is empty if the round has none; None: there is no such file any more. `once`:
    unless it exists.
    """

    path: str
    text: str | Source | None
    once: bool = False


class Log(msgspec.Struct, frozen=True):
    """More of a file that only grows: lines without their newlines, a file of a round, or the fields of a JSON line.

    `fresh`: another file begins with it, and the one that is there moves away. `id`, which has no gaps, comes before
    the fields of a JSON line; the number of the fact, after them. `record` names what an agent recorded: where a
    process in a sandbox has written its line before, there is none.
    """

    path: str
    more: tuple[str, ...] | Source | dict[str, object]
    record: str = ""
    fresh: bool = False


class Entry(msgspec.Struct, frozen=True):
    """What this loop says in a JSON file of all loops of its dialect: the fields of the entry at `keys`.

    Every field, each time: what others wrote into the entry stays, and so does what an earlier loop said there.
    Without keys these are fields of the file itself. `owner` names a field that tells whose entry it is: a process that
    is not at work leaves another loop's alone.
    """

    path: str
    keys: tuple[str, ...]
    value: dict[str, object]
    owner: str = ""


View = Whole | Log | Entry


class Rotation(msgspec.Struct, frozen=True):
    """A file that passes these bytes moves to `NAME.1`, `NAME.2` …; so many are kept, and none longer than that."""

    bytes: int = 0
    days: int = 0
    files: int = 0


class LogFile(msgspec.Struct, frozen=True):
    """A file that grows, perhaps line by line while a round runs. Other loops and programs may add lines as well."""

    path: str
    is_json: bool = False  # numbered lines, all there: made again from the ledger if they are gone
    rotation: Rotation = Rotation()  # this one: the file only grows
    is_line: Callable[[bytes], bool] | None = None  # a person chose the path: can this line there be one of ours?


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files of a loop are; a `*` stands for the number of a round."""

    whole: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()  # of these: no other loop may replace it, even after this one has ended
    common: tuple[str, ...] = ()  # replaced and removed by whichever loop of the dialect is at work, and never kept
    # Folders that are this loop's alone, with a slash, where files are replaced whatever they say now; nothing else of
    # theirs is known.
    owned: tuple[str, ...] = ()
    logs: tuple[LogFile, ...] = ()
    shared: tuple[str, ...] = ()  # created once, for all loops of the dialect
    together: tuple[str, ...] = ()  # JSON files of all loops, at work or not, wherever; each has its own entry there
    claims: tuple[str, ...] = ()  # words that no two loops at work may have in common, such as "night-shift crew a"
    folder: str = ""  # removed after the files, if it is empty by then

    @property
    def grown(self) -> tuple[str, ...]:
        return tuple(log.path for log in self.logs)

    @property
    def chosen(self) -> dict[str, Callable[[bytes], bool]]:
        """The logs for which a person gave the path, and what can be a line of ours there."""
        return {log.path: log.is_line for log in self.logs if log.is_line}

    def of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The whole files of these rounds and of the loop; the exclusive ones last."""
        numbered = [path for path in self.whole if "*" in path]
        single = [path for path in self.whole if "*" not in path]
        last = sorted(single, key=lambda path: path in self.exclusive)
        return (*(path.replace("*", str(number)) for number in numbers for path in numbered), *last)

    def names(self, loop: Loop) -> tuple[str, ...]:
        """Every name that is written for this loop and is not the agent's work, drafts included."""
        replaced = (*self.whole, *self.common, *self.shared)
        drafts = ("".join(path.rpartition("/")[:2]) + draft(loop, "*") for path in replaced)
        moved = (f"{log.path}.*" for log in self.logs if log.rotation.files)
        return tuple(dict.fromkeys((*self.whole, *self.common, *self.grown, *moved, *self.owned, *drafts)))


def draft(loop: Loop, number: int | str) -> str:
    """The name of a file until it is whole; only this loop uses such names, so leftovers can be recognized."""
    return f".bydawn-{int.from_bytes(loop.uid.encode(), 'big')}-{number}.tmp"


class Dialect(Protocol):
    """One other tool: how it speaks, and which files it writes."""

    name: str
    unit: str  # its word for a round
    # Do its views look back at earlier rounds? If not, a start reads no ledger, however long it is, unless something is
    # missing. Such a dialect has no files but JSON lines and what is owned, shared or together.
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

    def views(self, fact: AnyFact, loop: Loop, state: LoopState, history: History) -> Iterator[View]:
        """What to write after this fact, the same each time. JSON lines come first: they can be made again alone."""

    def heard(self, event: Event, loop: Loop, state: LoopState, history: History, at: datetime) -> Iterator[View]:
        """What to write when the agent says or does something; only asked if there are logs."""


class Usual:
    """What a dialect does not have to say: it has all of its history, no logs, no notices of its own, no commands
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

    def heard(self, *_: Any) -> Iterator[View]:
        return iter(())

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
