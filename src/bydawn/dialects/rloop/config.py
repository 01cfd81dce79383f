"""What `config.yaml` and `.rloop.yaml` say, and what that means to us."""

import msgspec

NAME, CLAUDE = "rloop", "claude"
BACKENDS = (CLAUDE, "codex", "opencode", "gemini")
FOLDER = ".rloop"
PROJECT = ".rloop.yaml"
LOG, TEMPLATE, IGNORE = f"{FOLDER}/ralph.log", f"{FOLDER}/prompt-template.txt", f"{FOLDER}/.gitignore"
SKIP = "--dangerously-skip-permissions"


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
