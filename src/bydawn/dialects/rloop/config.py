"""What `config.yaml` and `.rloop.yaml` say, and what that means to us."""

from typing import Annotated, Any

import msgspec

from bydawn.core.keys import Checked, Configuration, Key, Kind, filled, keys_of

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


def _default(name: str, kind: Kind = Kind.LINE, **more: Any) -> Key:
    """One that a variable can set as well."""
    return Key(f"defaults.{name}", kind, variable=f"RLOOP_{name.upper()}", **more)


class _File(Configuration, frozen=True, kw_only=True):
    """What the files say. The last part of each key is its field."""

    max_iterations: Annotated[int, _default("max_iterations", least=1, most=MOST_ITERATIONS, asks_to_raise=True)] = 30
    task_file: Annotated[str, _default("task_file", Kind.PATH)] = "PRD.md"
    completion_marker: Annotated[str, _default("completion_marker", without="<>")] = "COMPLETE"
    backend: Annotated[str, _default("backend", Kind.CHOICE, choices=BACKENDS)] = CLAUDE
    model: Annotated[str | None, _default("model")] = None
    flags: Annotated[tuple[str, ...], Key("claude.flags")] = (SKIP,)
    env: Annotated[dict[str, str], Key("claude.env")] = msgspec.field(default_factory=lambda: {"IS_SANDBOX": "1"})
    on_complete: Annotated[bool, Key("notifications.on_complete")] = True
    webhook: Annotated[str | None, Key("notifications.webhook", Kind.ADDRESS, variable="RLOOP_WEBHOOK")] = None
    level: Annotated[str, Key("logging.level", Kind.CHOICE, choices=("info", "debug"))] = "info"
    retain_days: Annotated[int, Key("logging.retain_days", least=1, most=36_500)] = 7


KEYS = (*keys_of(_File),)


class Config(_File, frozen=True, kw_only=True):
    """All layers as one."""

    project: "Config | None" = None  # its file alone
    raised: tuple[str, ...] = ()  # the keys of numbers that its file raises above what the user has


def read(found: Checked) -> Config:
    """The configuration, from what its layers say."""
    alone = read(found.project) if found.project else None
    return msgspec.structs.replace(filled(Config, found, KEYS), raised=found.raised, project=alone)


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
