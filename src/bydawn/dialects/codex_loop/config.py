"""What `codex-loop.yaml` says, in YAML or JSON."""

import re
from collections.abc import Iterator
from functools import reduce
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.keys import Checked, Key, Kind

NAME, CODEX = "codex-loop", "codex"
FOLDER, CONFIG = ".codex-loop", "codex-loop.yaml"
SPEC, PLAN = "spec/001-project-spec.md", "plan/001-implementation-plan.md"
STATE, SCHEMA = f"{FOLDER}/state.json", f"{FOLDER}/agent_result.schema.json"
LOCK, DAEMON = f"{FOLDER}/run.lock", f"{FOLDER}/daemon.json"  # of the original
VERSION = 1
SANDBOXES = {"read-only": "read-only", "workspace-write": "workspace", "danger-full-access": "full"}
APPROVALS = ("never", "on-request", "on-failure", "untrusted")
_PRUNED = ("logs", "runs", "prompts")


# -- the parts of the file; fields have the names and defaults of its keys ---------------------------------------------


class Project(msgspec.Struct, frozen=True):
    name: str | None = None  # the folder's


class Goal(msgspec.Struct, frozen=True):
    summary: str = ""
    done_when: tuple[str, ...] = ()


class Worktree(msgspec.Struct, frozen=True):
    enabled: bool = True
    branch_prefix: str = "codex-loop/"


class Execution(msgspec.Struct, frozen=True):
    """Limits of 0 are off."""

    sandbox: str = "workspace-write"
    approval: str = "never"
    max_iterations: int = 30  # of one run
    max_no_progress_iterations: int = 5
    max_consecutive_runner_failures: int = 3
    max_consecutive_verification_failures: int = 0
    max_consecutive_task_failures: int = 5
    iteration_timeout_seconds: float = 1800
    iteration_backoff_seconds: float = 0
    iteration_backoff_jitter_seconds: float = 0
    lock_stale_seconds: float = 21600  # kept, not needed: our lock cannot be stale
    resume_fallback_to_fresh: bool = True
    worktree: Worktree = Worktree()


class Codex(msgspec.Struct, frozen=True):
    model: str | None = None
    use_json: bool = True
    output_schema: str = SCHEMA


class Verification(msgspec.Struct, frozen=True):
    commands: tuple[str, ...] = ()
    pass_requires_all: bool = True
    timeout_seconds: float = 300


class Tasks(msgspec.Struct, frozen=True):
    strategy: str = "sequential"
    source_dir: str = "tasks"


class Logging(msgspec.Struct, frozen=True):
    save_prompts: bool = True
    save_jsonl: bool = True


class Events(msgspec.Struct, frozen=True):
    default_limit: int = 20


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
    failure_policy: str = "ignore"
    timeout_seconds: float = 300


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The file, checked. `where` says in which line a key is, `remarks` what has no effect."""

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
    where: dict[str, str] = {}
    remarks: tuple[str, ...] = ()


_USUAL = Config()


def _key(path: str, kind: Kind, **more: Any) -> Key:
    return Key(path, kind, reduce(getattr, path.split("."), _USUAL), **more)  # type: ignore[arg-type] # a field of it


KEYS = (
    _key("version", Kind.COUNT),
    _key("project.name", Kind.LINE, nullable=True),
    Key("goal.summary", Kind.TEXT),
    Key("goal.done_when", Kind.TEXTS),
    _key("execution.sandbox", Kind.CHOICE, choices=tuple(SANDBOXES)),
    _key("execution.approval", Kind.CHOICE, choices=APPROVALS),
    _key("execution.max_iterations", Kind.COUNT, least=1),
    _key("execution.max_no_progress_iterations", Kind.COUNT),
    _key("execution.max_consecutive_runner_failures", Kind.COUNT),
    _key("execution.max_consecutive_verification_failures", Kind.COUNT),
    _key("execution.max_consecutive_task_failures", Kind.COUNT),
    _key("execution.iteration_timeout_seconds", Kind.SECONDS, least=1),
    _key("execution.iteration_backoff_seconds", Kind.SECONDS),
    _key("execution.iteration_backoff_jitter_seconds", Kind.SECONDS),
    _key("execution.lock_stale_seconds", Kind.SECONDS),
    _key("execution.resume_fallback_to_fresh", Kind.SWITCH),
    _key("execution.worktree.enabled", Kind.SWITCH),
    _key("execution.worktree.branch_prefix", Kind.LINE),
    _key("codex.model", Kind.LINE, nullable=True),
    _key("codex.use_json", Kind.SWITCH),
    _key("codex.output_schema", Kind.LINE),
    Key("verification.commands", Kind.TEXTS),
    _key("verification.pass_requires_all", Kind.SWITCH),
    _key("verification.timeout_seconds", Kind.SECONDS, least=1),
    _key("tasks.strategy", Kind.CHOICE, choices=("sequential",)),
    _key("tasks.source_dir", Kind.PATH),
    _key("logging.save_prompts", Kind.SWITCH),
    _key("logging.save_jsonl", Kind.SWITCH),
    _key("operator.events.default_limit", Kind.COUNT, least=1),
    _key("operator.cleanup.keep", Kind.COUNT),
    _key("operator.cleanup.older_than_days", Kind.COUNT, nullable=True),
    *(_key(f"operator.cleanup.directory_keep.{each}", Kind.COUNT, nullable=True) for each in _PRUNED),
    *(_key(f"operator.cleanup.directory_older_than_days.{each}", Kind.COUNT, nullable=True) for each in _PRUNED),
    *(_key(f"hooks.{each}", Kind.TEXTS) for each in Hooks.__struct_fields__[:5]),
    _key("hooks.failure_policy", Kind.CHOICE, choices=("ignore", "block")),
    _key("hooks.timeout_seconds", Kind.SECONDS, least=1),
)


def read(found: Checked) -> Config:
    """The configuration, from what the file says. Unknown keys are remarks of `found`."""
    nested: dict[str, Any] = {}
    for key in KEYS:
        *sections, name = key.path.split(".")
        reduce(lambda inner, section: inner.setdefault(section, {}), sections, nested)[name] = found.values[key.path]
    config = msgspec.convert(nested, Config)
    for path, cause, hint in _troubles(config):
        raise UserError(f"{found.where(path)}: {path} cannot be used", cause=cause, hint=hint)
    return msgspec.structs.replace(
        config, where={key.path: found.where(key.path) for key in KEYS}, remarks=tuple(_remarks(config, found))
    )


# What git refuses in the name of a branch that something is added to.
_NO_PREFIX = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)\.|\.lock/|\./|^[-/]")


def _troubles(config: Config) -> Iterator[tuple[str, str, str]]:
    """Key, cause and hint of values that are of the right kind and still wrong."""
    if config.version != VERSION:
        cause = f"it is {config.version}; this program reads version {VERSION}"
        yield "version", cause, f"write `version: {VERSION}`, and look at every key: `{NAME} doctor` checks them"
    if not config.goal.done_when:
        yield "goal.done_when", "the list is empty", 'say how one sees that the work is done: done_when: ["…"]'
    if not config.verification.commands:
        cause = "the list is empty, so nothing would show that a task is done"
        yield (
            "verification.commands",
            cause,
            'name a command that fails while something is wrong: commands: ["make test"]',
        )
    if not config.verification.pass_requires_all:
        hint = 'remove it; alternatives go into one command: "make test || make old-test"'
        yield "verification.pass_requires_all", "a task is only done when every command passes", hint
    if not config.codex.use_json:
        yield "codex.use_json", "sessions, answers and errors are read from Codex's JSON events", "remove it"
    if found := _NO_PREFIX.search(config.execution.worktree.branch_prefix):
        cause, hint = f"git allows no {found[0]!r} there", f"write branch_prefix: {Worktree().branch_prefix}"
        yield "execution.worktree.branch_prefix", cause, hint
    if (top := config.tasks.source_dir.split("/")[0]) in (".git", FOLDER):
        yield "tasks.source_dir", f"{top} is not for tasks", f"write source_dir: {Tasks().source_dir}"


def _remarks(config: Config, found: Checked) -> list[str]:
    approval, schema = config.execution.approval, config.codex.output_schema
    rows = (
        (approval != "never", "execution.approval", f"{approval} has no effect: a loop asks no one"),
        (schema != SCHEMA, "codex.output_schema", f"{schema} has no effect: the schema is {SCHEMA}"),
    )
    return [f"{found.where(path)}: {path} {what}" for odd, path, what in rows if odd]
