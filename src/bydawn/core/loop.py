"""What a loop is: one goal in one workspace, with the settings it was started with."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Self

import msgspec

from bydawn.core.breakers import Limits as Limits  # a part of a loop, beside the table that reads it
from bydawn.core.records import Recording

TASK_COMPLETE = "TASK_COMPLETE"
COOKIE = "BYDAWN_COOKIE"  # the variable that every child of a loop has in its environment


class Mode(StrEnum):
    """How a promise is written in a reply."""

    TAG = "tag"
    PLAIN = "plain"  # the text itself instead of a tag
    LINE = "line"
    REGEX = "regex"


class Match(StrEnum):
    """Where in a reply a promise counts."""

    END = "end"
    OWN_LINE = "own-line"
    ANYWHERE = "anywhere"


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """The words that claim completion."""

    text: str = TASK_COMPLETE
    mode: Mode = Mode.TAG
    match: Match = Match.END

    @property
    def token(self) -> str:
        """The promise as an agent has to write it."""
        return f"<promise>{self.text}</promise>" if self.mode is Mode.TAG else self.text


class Sandbox(StrEnum):
    """What an agent may do to this machine, from least to most."""

    READ_ONLY = "read-only"
    WORKSPACE = "workspace"
    FULL = "full"


class Sessions(StrEnum):
    """Does a round continue the conversation of the one before?"""

    FRESH = "fresh"
    RESUME = "resume"
    PER_TASK = "per-task"


class OnLimit(StrEnum):
    """What to do when a provider's usage limit is reached."""

    SWITCH = "switch"  # to the next agent that is free; wait only if there is none
    WAIT = "wait"
    STOP = "stop"


class OnBlockedTask(StrEnum):
    """What to do when the agent says that only a person can help with its task."""

    ASIDE = "aside"  # keep the question, and go on with tasks that do not depend on this one
    STOP = "stop"


class Ticks(StrEnum):
    """What boxes are worth that a round ticked without changing anything else."""

    DOUBT = "doubt"  # they count once checks or a later round confirm them
    COUNT = "count"  # at once; they are only listed


class CheckWhere(StrEnum):
    """Where checks run: in the work tree itself, or in a clean checkout of its snapshot."""

    WORKSPACE = "workspace"
    CLEAN = "clean"


class BoxMode(StrEnum):
    """Do checks run in a box, where they can write to little but the workspace?"""

    AUTO = "auto"  # where one can be made, and where it is not in a check's way
    ON = "on"
    OFF = "off"


class OnTamper(StrEnum):
    """What to do when a round changed a protected file."""

    REPORT = "report"
    BLOCK = "block"
    RESTORE = "restore"


class ChangedTests(StrEnum):
    """What to do when checks only pass because tests were changed that were there before."""

    HOLD = "hold"  # ask for reasons, and leave it to a person where the checks were red before
    REPORT = "report"


class WitnessMode(StrEnum):
    """Is it tried whether the checks would also pass without the work?"""

    OFF = "off"
    REPORT = "report"
    ASK = "ask"  # … and if a task's own tests would: ask the agent once for better ones


class CheckpointMode(StrEnum):
    """At a checkpoint: ask, if a person is there to answer, or always stop."""

    PAUSE = "pause"
    EXIT = "exit"


class OnInterrupt(StrEnum):
    """What the first Ctrl-C means."""

    FINISH = "finish"  # this round, then pause
    STOP = "stop"  # now


class CommitMode(StrEnum):
    """Does bydawn commit what each round changed?"""

    OFF = "off"
    ON = "on"
    REQUIRE = "require"  # … and a commit that cannot be made blocks the loop


class OnHookFailure(StrEnum):
    IGNORE = "ignore"
    BLOCK = "block"


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """A person's own shell commands that run beside the loop, one after the other. One may be given as a text."""

    pre_round: tuple[str, ...] | str | None = ()
    post_round: tuple[str, ...] | str | None = ()
    on_complete: tuple[str, ...] | str | None = ()
    on_blocked: tuple[str, ...] | str | None = ()
    on_pause: tuple[str, ...] | str | None = ()
    on_failure: OnHookFailure = OnHookFailure.IGNORE

    def __post_init__(self) -> None:
        for name, commands in self.commands.items():
            msgspec.structs.force_setattr(self, name, commands)

    @property
    def commands(self) -> dict[str, tuple[str, ...]]:
        """The commands of each hook, by its name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name != "on_failure"}
        return {name: (each,) if isinstance(each, str) else tuple(each or ()) for name, each in given.items()}


class SpokenDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Another tool's command line and files, if this loop was started through them; only that dialect reads this."""

    name: str
    words: dict[str, str] = {}  # what the dialect has to remember
    files: tuple[
        str, ...
    ] = ()  # files in the workspace that are ours and not the agent's work: folders end with a slash, `*` is a number
    sections: tuple[str, ...] | None = None  # of ours that may follow its template; None: all that must not be lost
    numbers_cut: bool = False  # does a round that was cut short use up a number?
    unit: str = "round"  # its word for one, also in prompts


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A work tree of the repository, beside it and with a branch of its own, in which the agent works."""

    branch: str
    path: str  # its top
    folder: str  # in it, what the workspace is in the repository


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The words in a task file where a person must look before the loop goes on."""

    token: str = "HARD STOP"  # noqa: S105 - not a secret
    mode: CheckpointMode = CheckpointMode.PAUSE


class _Check(msgspec.Struct, frozen=True, kw_only=True):
    """A proof that a loop asks for. Its setting is written as its fields, with `::` in between."""

    setting: ClassVar[str]

    @classmethod
    def from_text(cls, text: str) -> Self:
        names = cls.__struct_fields__
        return msgspec.convert(dict(zip(names, text.split("::", len(names) - 1), strict=True)), cls)

    @property
    def as_text(self) -> str:
        return "::".join(msgspec.structs.astuple(self))

    def rewritten(self, words: Callable[[str], str], path: Callable[[str], str]) -> Self:
        """The same with each path and each other text as these make them."""
        changed = {name: (path if name == "path" else words)(getattr(self, name)) for name in self.__struct_fields__}
        return msgspec.structs.replace(self, **changed)


class CommandCheck(_Check, frozen=True, kw_only=True, tag="command"):
    """A shell command that must exit with 0."""

    setting: ClassVar[str] = "check"
    command: str

    @property
    def name(self) -> str:
        return self.command


class PathCheck(_Check, frozen=True, kw_only=True, tag="path"):
    """A path that must exist, relative to the workspace."""

    setting: ClassVar[str] = "require_path"
    path: str

    @property
    def name(self) -> str:
        return f"{self.path} exists"


class TextCheck(_Check, frozen=True, kw_only=True, tag="text"):
    """A text that a file must contain; the path is relative to the workspace."""

    setting: ClassVar[str] = "require_text"
    path: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.path} contains {self.text!r}"


Check = CommandCheck | PathCheck | TextCheck
CHECKS: tuple[type[Check], ...] = (CommandCheck, PathCheck, TextCheck)


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long, in seconds, a child may take, and how many bytes it may write."""

    round: float = 1800.0
    silence: float = 600.0
    first_byte: float = 300.0
    linger: float = 30.0
    check: float = 300.0
    hook: float = 60.0
    proof: float = 600.0  # for all runs with the tests as they were or without the work, or a tenth of the loop's time
    output: int = 1 << 30


class TaskByTask(msgspec.Struct, frozen=True, kw_only=True):
    """Each task is proved by itself, as another tool's documents want it.

    The checks run after each round, even if it changed nothing, and once more when all tasks are done: what fails opens
    the last one again. Nothing that fails is excused, and nothing else is a failure of the task.
    """

    rounds_each_run: int | None = None  # the most that one run may have, however it is started
    pause_jitter: float = 0.0  # seconds that a pause may be longer
    fresh_if_lost: bool = True  # in a new session if the agent no longer knows the old one; False: that is a failure


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """One goal in one workspace; frozen into `loop.json` when it starts."""

    v: int = 1
    id: str
    uid: str
    workspace: str
    created_at: datetime
    prompt: str
    agent: str
    others: tuple[str, ...] = ()  # agents that take over, in this order
    on_limit: OnLimit = OnLimit.SWITCH
    sandbox: Sandbox | None = None  # None: `workspace` if the agent supports it
    model: str | None = None
    profile: str | None = None
    effort: str | None = None
    agent_args: tuple[str, ...] = ()
    agent_json: tuple[str, ...] = ()  # where to find the fields in the JSON lines of a `cmd:` agent
    agent_env: tuple[str, ...] = ()  # NAME=VALUE, for the agent only; kept apart (core/secret_settings.py)
    agent_commits: bool = False
    pause: float = 0.0  # seconds between two rounds of one run, and at most a tenth more
    sessions: Sessions = Sessions.FRESH
    session_rounds: int = 20  # then a fresh session begins, before the old one chokes on its history
    tasks: str | None = None
    task_folder: bool = False  # is `tasks` a folder with one file per task?
    tasks_required: bool = True  # False: the list only marks checkpoints
    by_task: TaskByTask | None = None
    on_blocked_task: OnBlockedTask = OnBlockedTask.ASIDE
    ticks: Ticks = Ticks.DOUBT
    checkpoint: Checkpoint | None = None
    template: str | None = None  # the text the prompt is built from
    progress: str | None = None
    opinions: str | None = None
    checks: tuple[Check, ...] = ()
    check_where: CheckWhere = CheckWhere.WORKSPACE
    box: BoxMode = BoxMode.AUTO
    box_write: tuple[str, ...] = ()  # folders that checks in the box can write to
    pass_env: tuple[str, ...] = ()  # variables that checks and hooks get although they look like secrets
    protect: tuple[str, ...] = ()  # globs of files no round may change
    on_tamper: OnTamper = OnTamper.BLOCK
    tests: tuple[str, ...] = ()  # globs of files that are tests, beside those with usual names
    changed_tests: ChangedTests = ChangedTests.HOLD
    witness: WitnessMode = WitnessMode.REPORT
    hooks: Hooks = Hooks()
    notify: tuple[str, ...] = ()  # addresses, each a secret; kept apart
    commit: CommitMode = CommitMode.OFF
    commit_message: str | None = None  # a template; None: a usual message
    worktree: Worktree | None = None  # where the agent works, if not in the workspace
    promise: Promise | None = None
    promise_required: bool = True  # False: the rest decides, and a promise that comes too early is only answered
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    on_interrupt: OnInterrupt = OnInterrupt.FINISH
    keep_awake: bool = True
    recording: Recording | None = None  # may others record what they do for it?
    dialect: SpokenDialect | None = None

    @property
    def pool(self) -> tuple[str, ...]:
        """Every agent that may work, in order of preference."""
        return (self.agent, *self.others)

    @property
    def folder(self) -> str:
        """Where the agent works and checks and hooks run; the loop's own files are in the workspace."""
        return self.worktree.folder if self.worktree else self.workspace

    @property
    def fresh_if_lost(self) -> bool:
        """Does a round begin a new session if the agent no longer knows the old one? Otherwise it has failed."""
        return self.by_task is None or self.by_task.fresh_if_lost

    @property
    def unit(self) -> str:
        """What a round is called, in prompts as well."""
        return self.dialect.unit if self.dialect else "round"

    @property
    def list_root(self) -> str:
        """Where the work list is: boxes are ticked by the agent; the files of a task folder are only read."""
        return self.workspace if self.task_folder else self.folder

    @property
    def asks_if_done(self) -> bool:
        """Does it want the agent's word beside its checks? Nothing else says what the goal is made of; another tool's
        documents say what ends its loops."""
        listed, ours = self.tasks and self.tasks_required, self.changed_tests is ChangedTests.HOLD
        told = listed or self.promise or self.recording
        return bool(self.checks and self.promise_required and (ours or not self.dialect)) and not told

    @property
    def requires(self) -> tuple[str, ...]:
        """What completion needs; never empty (a loop with nothing else needs the promise)."""
        promise = self.promise and self.promise_required
        recorded = self.recording and not self.checks  # nothing else could end such a loop
        wanted = {
            "tasks": self.tasks and self.tasks_required,
            "checks": self.checks,
            "promise": promise,
            "record": recorded,
        }
        return tuple(name for name, given in wanted.items() if given) or ("promise",)


OF_THE_LOOP = {"v", "id", "uid", "created_at", "workspace"}  # the other fields are settings


def differences(old: Loop, new: Loop) -> list[str]:
    """The names of settings in which two loops differ, apart from who started them and when."""
    names = (name for name in old.__struct_fields__ if name not in OF_THE_LOOP)
    return [name for name in names if getattr(old, name) != getattr(new, name)]
