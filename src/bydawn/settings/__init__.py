"""Every setting: the table, its layers and files, and what a person has agreed to."""

import os
import sys
from pathlib import Path


def user_folder() -> Path:
    """Where a person keeps their own settings."""
    if given := os.environ.get("XDG_CONFIG_HOME"):
        return Path(given) / "bydawn"
    home = os.environ.get("HOME")
    if sys.platform == "darwin" and home:
        import platformdirs

        return Path(platformdirs.user_config_dir("bydawn"))
    return Path(home or "/nonexistent") / ".config" / "bydawn"


def has_user_file() -> bool:
    """Known without loading what reads it: few have one, and `status` and `stop` have to be quick."""
    return (user_folder() / "config.toml").exists()
