"""Where a user keeps settings, where bydawn keeps everything about that user's loops, and which folder is meant."""

import os
import sys
from pathlib import Path

from bydawn.core.errors import UserError

PROJECT = "bydawn.toml"  # a project's settings


def settings_file() -> Path:
    return (_folder("config", ".config") or Path("/nonexistent")) / "config.toml"


def has_settings_file() -> bool:
    """Looked for without loading what reads it: few users have one, and `status` and `stop` must be quick."""
    return os.path.exists(settings_file())  # noqa: PTH110 - one that we may not look at does not count


def state_folder() -> Path:
    """Outside every work tree, where no agent writes."""
    if folder := _folder("state", ".local/state"):
        return folder
    raise UserError(
        "no state directory",
        cause="HOME and XDG_STATE_HOME are unset",
        hint="add --state-dir PATH",
    )


def folders_above(folder: Path) -> list[Path]:
    """A folder and those above it that it may be part of: up to one with settings of its own, or its repository's top.

    A home folder is not one project, and a repository that another user put above us is not ours.
    """
    for count, each in enumerate((folder, *folder.parents)):
        if each in (Path("/"), Path(os.environ.get("HOME") or "/")):
            break
        # An empty `.git` is not a repository: sandboxes leave such folders behind, in /tmp for example.
        is_top = (each / ".git").is_file() or os.path.lexists(each / ".git/HEAD")
        marks = [each / ".git"] * is_top + [each / PROJECT] * os.path.lexists(each / PROJECT)
        if owners := {os.lstat(path).st_uid for path in marks}:
            return [folder, *folder.parents[:count]] if owners == {os.getuid()} else [folder]
    return [folder]


def _folder(kind: str, below_home: str) -> Path | None:
    if given := os.environ.get(f"XDG_{kind.upper()}_HOME"):
        return Path(given) / "bydawn"
    home = os.environ.get("HOME")
    if sys.platform == "darwin" and home:
        import platformdirs

        return Path(getattr(platformdirs.PlatformDirs("bydawn"), f"user_{kind}_dir"))
    return Path(home) / below_home / "bydawn" if home else None


def tilde(path: str) -> str:
    """A path as people write it."""
    home = os.environ.get("HOME", "")
    return f"~{path.removeprefix(home)}" if home and path.startswith(home + "/") else path
