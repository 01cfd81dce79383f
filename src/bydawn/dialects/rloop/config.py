"""What `config.yaml` and `.rloop.yaml` say, and what that means to us."""

from typing import Any

import msgspec

from bydawn.core.keys import Checked, Key, Kind

NAME, CLAUDE = "rloop", "claude"
BACKENDS = (CLAUDE, "codex", "opencode", "gemini")
FOLDER = ".rloop"
USER_FOLDER, MOVES = ".config/rloop", "RLOOP_CONFIG_DIR"
USER, PROJECT, STATE = "config.yaml", ".rloop.yaml", "state.json"
LOG, TEMPLATE, IGNORE = f"{FOLDER}/ralph.log", f"{FOLDER}/prompt-template.txt", f"{FOLDER}/.gitignore"
SKIP = "--dangerously-skip-permissions"
MOST_ITERATIONS = 1_000_000
DEFAULT_FILE = """\
# Settings of rloop for all projects; .rloop.yaml in a project's folder is stronger.
# `rloop config` shows what applies and where it is set, `rloop config set KEY VALUE` changes this file.
defaults:
  max_iterations: 30
  task_file: PRD.md
  completion_marker: COMPLETE
  backend: claude  # or codex, opencode, gemini
  # model: claude-sonnet-4-20250514

claude:
  # Full access to this machine. Without that flag, Claude works in a sandbox that lets it write to the project only.
  flags: [--dangerously-skip-permissions]
  env: {IS_SANDBOX: "1"}

notifications:
  on_complete: true
  # webhook: https://hooks.example.com/notify

logging:
  level: info  # or debug
  retain_days: 7
"""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All layers as one; `where` says for each key of the files where its value is from."""

    max_iterations: int = 30
    task_file: str = "PRD.md"
    completion_marker: str = "COMPLETE"
    backend: str = CLAUDE
    model: str | None = None
    flags: tuple[str, ...] = (SKIP,)
    env: dict[str, str] = msgspec.field(default_factory=lambda: {"IS_SANDBOX": "1"})
    on_complete: bool = True
    webhook: str | None = None
    level: str = "info"
    retain_days: int = 7
    where: dict[str, str] = {}
    remarks: tuple[str, ...] = ()
    project: "Config | None" = None  # its file alone
    raised: tuple[str, ...] = ()  # the keys of numbers that its file raises above what the user has


_USUAL = Config()


def _default(name: str, kind: Kind, **more: Any) -> Key:
    """One that a variable can set as well."""
    return Key(f"defaults.{name}", kind, getattr(_USUAL, name), variable=f"RLOOP_{name.upper()}", **more)


# The last part of each path is its field in `Config`.
KEYS = (
    _default("max_iterations", Kind.COUNT, least=1, most=MOST_ITERATIONS, asks_to_raise=True),
    _default("task_file", Kind.PATH),
    _default("completion_marker", Kind.LINE, without="<>"),
    _default("backend", Kind.CHOICE, choices=BACKENDS),
    _default("model", Kind.LINE, nullable=True),
    Key("claude.flags", Kind.TEXTS, _USUAL.flags),
    Key("claude.env", Kind.VARIABLES, _USUAL.env),
    Key("notifications.on_complete", Kind.SWITCH, _USUAL.on_complete),
    Key("notifications.webhook", Kind.ADDRESS, nullable=True, variable="RLOOP_WEBHOOK"),
    Key("logging.level", Kind.CHOICE, _USUAL.level, choices=("info", "debug")),
    Key("logging.retain_days", Kind.COUNT, _USUAL.retain_days, least=1, most=36_500),
)


def read(found: Checked) -> Config:
    """The configuration, from what its layers say."""
    return msgspec.structs.replace(
        msgspec.convert({key.name: found.values[key.path] for key in KEYS}, Config),
        where={key.path: found.where(key.path) for key in KEYS},
        remarks=found.remarks,
        raised=found.raised,
        project=read(found.project) if found.project else None,
    )


def from_project(config: Config, key: str) -> bool:
    """Is the value of a key the one of the project's own file?"""
    return config.where.get(key, "").startswith(f"{PROJECT}:")


# -- what that means to us ---------------------------------------------------------------------------------------------

_FORMAT = "--output-format"
_OURS = ("-p", "--print", "--verbose", _FORMAT, SKIP)  # what Claude is told anyway
_RAISED = {"defaults.max_iterations": "rounds"}
_SOURCES = {
    "agent": "defaults.backend",
    "model": "defaults.model",
    "agent_args": "claude.flags",
    "agent_env": "claude.env",
    "notify": "notifications.webhook",
}


def agent_settings(config: Config) -> dict[str, tuple[str, ...]]:
    """Our settings of the agent and its notices; `claude.*` is about Claude alone, the others have full access."""
    is_claude = config.backend == CLAUDE
    rest = tuple(
        flag
        for before, flag in zip(("", *config.flags), config.flags, strict=False)
        if flag not in _OURS and not flag.startswith(f"{_FORMAT}=") and before != _FORMAT
    )
    return {
        "agent": (config.backend,),
        "model": (config.model,) if config.model else (),
        "sandbox": ("workspace",) if is_claude and SKIP not in config.flags else ("full",),
        "agent_args": rest if is_claude else (),
        "agent_env": tuple(f"{name}={value}" for name, value in config.env.items()) if is_claude else (),
        "notify": (config.webhook,) if config.webhook else (),
    }


def origins(config: Config) -> dict[str, str]:
    """Where the project's file sets one of these, in force or not; all others are the user's."""
    return _from_project(config.project or config) | {
        _RAISED[path]: f"{path} in {config.where[path]}" for path in config.raised
    }


def overridden(config: Config) -> dict[str, tuple[str, ...]]:
    """What the project's file says of those that something stronger sets."""
    alone = config.project or config
    # Another backend can be chosen each time, so what a person agrees to does not depend on it.
    asked = agent_settings(msgspec.structs.replace(alone, backend=CLAUDE)) | {"agent": (alone.backend,)}
    asked |= {} if alone.backend == CLAUDE else {"sandbox": ("full",)}
    now, in_force = agent_settings(config), _from_project(config)
    return {key: asked[key] for key in _from_project(alone) if key not in in_force or asked[key] != now[key]}


def _from_project(config: Config) -> dict[str, str]:
    sources = _SOURCES | {"sandbox": "claude.flags" if config.backend == CLAUDE else "defaults.backend"}
    return {key: f"{path} in {config.where[path]}" for key, path in sources.items() if from_project(config, path)}
