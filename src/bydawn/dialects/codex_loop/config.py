"""What `codex-loop.yaml` says, in YAML or JSON."""

import re
from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Configuration, Key, Kind, Node, checked, filled, keys_of

NAME, CODEX = "codex-loop", "codex"
FOLDER, CONFIG = ".codex-loop", "codex-loop.yaml"
SPEC, PLAN = "spec/001-project-spec.md", "plan/001-implementation-plan.md"
STATE, SCHEMA = f"{FOLDER}/state.json", f"{FOLDER}/agent_result.schema.json"
METRICS = f"{FOLDER}/metrics.json"
LOCK = f"{FOLDER}/run.lock"
DAEMON, SERVICE = f"{FOLDER}/daemon.json", f"{FOLDER}/service.json"
VERSION = 1
SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}


def _one_of(*words: str) -> Key:
    return Key(kind=Kind.CHOICE, choices=words)


N = TypeVar("N", int, float)
AtLeastOne = Annotated[N, Key(least=1)]


# -- the parts of the file; fields have the names and defaults of its keys ---------------------------------------------


class Project(msgspec.Struct, frozen=True):
    name: str | None = None  # the folder's


class Goal(msgspec.Struct, frozen=True):
    summary: Annotated[str, Key(kind=Kind.TEXT, must=True)] = ""
    done_when: Annotated[tuple[str, ...], Key(must=True)] = ()


class Worktree(msgspec.Struct, frozen=True):
    enabled: bool = True
    branch_prefix: str = "codex-loop/"


class Execution(msgspec.Struct, frozen=True):
    """Limits of 0 are off."""

    sandbox: Annotated[str, _one_of(*SANDBOXES)] = "workspace-write"
    approval: Annotated[str, _one_of("never", "on-request", "on-failure", "untrusted")] = "never"
    max_iterations: AtLeastOne[int] = 30  # of one run
    max_no_progress_iterations: int = 5
    max_consecutive_runner_failures: int = 3
    max_consecutive_verification_failures: int = 0
    max_consecutive_task_failures: int = 5
    iteration_timeout_seconds: AtLeastOne[float] = 1800.0
    iteration_backoff_seconds: float = 0.0
    iteration_backoff_jitter_seconds: float = 0.0
    lock_stale_seconds: float = 21600.0  # kept, not needed: our lock cannot be stale
    resume_fallback_to_fresh: bool = True
    worktree: Worktree = Worktree()


class Codex(msgspec.Struct, frozen=True):
    model: str | None = None
    use_json: bool = True
    output_schema: str = SCHEMA


class Verification(msgspec.Struct, frozen=True):
    commands: Annotated[tuple[str, ...], Key(must=True)] = ()
    pass_requires_all: bool = True
    timeout_seconds: AtLeastOne[float] = 300.0


class Tasks(msgspec.Struct, frozen=True):
    strategy: Annotated[str, _one_of("sequential")] = "sequential"
    source_dir: Annotated[str, Key(kind=Kind.PATH)] = "tasks"


class Logging(msgspec.Struct, frozen=True):
    save_prompts: bool = True
    save_jsonl: bool = True


class Events(msgspec.Struct, frozen=True):
    default_limit: AtLeastOne[int] = 20


class Pruned(msgspec.Struct, frozen=True):
    """Numbers for single folders."""

    logs: int | None = None
    runs: int | None = None
    prompts: int | None = None


class Cleanup(msgspec.Struct, frozen=True):
    keep: int = 10
    older_than_days: int | None = None
    directory_keep: Pruned = Pruned()
    directory_older_than_days: Pruned = Pruned()


class Operator(msgspec.Struct, frozen=True):
    events: Events = Events()
    cleanup: Cleanup = Cleanup()


class Hooks(msgspec.Struct, frozen=True):
    post_init: tuple[str, ...] = ()
    pre_iteration: tuple[str, ...] = ()
    post_iteration: tuple[str, ...] = ()
    on_completed: tuple[str, ...] = ()
    on_blocked: tuple[str, ...] = ()
    failure_policy: Annotated[str, _one_of("ignore", "block")] = "ignore"
    timeout_seconds: AtLeastOne[float] = 300.0


class Config(Configuration, frozen=True, kw_only=True):
    """The whole file."""

    version: int = VERSION
    project: Project = Project()
    goal: Goal = Goal()
    execution: Execution = Execution()
    codex: Codex = Codex()
    verification: Verification = Verification()
    tasks: Tasks = Tasks()
    logging: Logging = Logging()
    operator: Operator = Operator()
    hooks: Hooks = Hooks()


KEYS = (*keys_of(Config),)


def read(found: Checked) -> Config:
    """The configuration, from what the file says. Unknown keys are remarks of `found`."""
    config = filled(Config, found, KEYS)
    for error in _troubles(config, found):
        raise error
    return msgspec.structs.replace(config, remarks=tuple(_remarks(config, found)))


def problems(top: Node) -> list[UserError]:
    """Everything that is wrong with the file."""
    found: dict[str, UserError] = {}
    for key in KEYS:
        try:
            checked(top, [key], CONFIG)
        except UserError as error:
            found.setdefault(error.what, error)
    if found:
        return [*found.values()]
    read = checked(top, KEYS, CONFIG)
    return [*_troubles(filled(Config, read, KEYS), read)]


# What git refuses in the name of a branch that something is added to.
_NO_PREFIX = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)\.|\.lock/|\./|^[-/]")


def _troubles(config: Config, found: Checked) -> Iterator[UserError]:
    """About values that are of the right kind and still wrong."""

    def wrong(path: str, cause: str, hint: str) -> UserError:
        return UserError(f"{found.where(path)}: {path} cannot be used", cause=cause, hint=hint)

    if config.version != VERSION:
        cause = f"it is {config.version}; this program reads version {VERSION}"
        yield wrong("version", cause, f"write `version: {VERSION}`, and look at every key: `{NAME} doctor` checks them")
    if not config.goal.done_when:
        yield wrong("goal.done_when", "the list is empty", 'say how one sees that the work is done: done_when: ["…"]')
    if not config.verification.pass_requires_all:
        hint = 'remove it; alternatives go into one command: "make test || make old-test"'
        yield wrong("verification.pass_requires_all", "a task is only done when every command passes", hint)
    if not config.codex.use_json:
        yield wrong("codex.use_json", "sessions, answers and errors are read from Codex's JSON events", "remove it")
    if refused := _NO_PREFIX.search(config.execution.worktree.branch_prefix):
        cause, hint = f"git allows no {refused[0]!r} there", f"write branch_prefix: {Worktree().branch_prefix}"
        yield wrong("execution.worktree.branch_prefix", cause, hint)
    if (top := config.tasks.source_dir.split("/")[0]) in (".git", FOLDER):
        yield wrong("tasks.source_dir", f"{top} is not for tasks", f"write source_dir: {Tasks().source_dir}")


def _remarks(config: Config, found: Checked) -> list[str]:
    approval, schema = config.execution.approval, config.codex.output_schema
    unverified = "is empty: nothing but Codex's word will say that a task is done"
    rows = (
        (not config.verification.commands, "verification.commands", unverified),
        (approval != "never", "execution.approval", f"{approval} has no effect: a loop asks no one"),
        (schema != SCHEMA, "codex.output_schema", f"{schema} has no effect: the schema is {SCHEMA}"),
    )
    return [f"{found.where(path)}: {path} {what}" for odd, path, what in rows if odd]
