"""Where rloop's configuration is, what all of its layers say, and how one value is changed."""

import os
from collections.abc import Mapping
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.dialects.rloop.config import KEYS, PROJECT, USER, Config
from bydawn.dialects.rloop.config import read as read_config
from bydawn.operations.dialects import config as own_config

_FOLDER, _TASKS = "RLOOP_CONFIG_DIR", "defaults.task_file"


def config_folder() -> Path:
    """Of this user; it need not exist."""
    if given := os.environ.get(_FOLDER):
        return Path(given).absolute()
    if home := os.environ.get("HOME"):
        return Path(home) / ".config/rloop"
    cause = f"HOME and {_FOLDER} are unset"
    raise UserError("there is no folder for rloop's files", cause=cause, hint=f"export {_FOLDER}=/path/to/a/folder")


def read(folder: Path | None, flags: Mapping[str, str] = {}) -> Config:
    """What applies in a folder; `flags` are options by key. An absolute task file is fine if it is in the folder."""
    path = Path(flags.get(_TASKS, ""))
    if folder and path.is_absolute() and (parent := path.parent.resolve()).is_relative_to(folder.resolve()):
        flags = {**flags, _TASKS: str(parent.relative_to(folder.resolve()) / path.name)}
    return read_config(own_config.layered(KEYS, config_folder() / USER, folder, PROJECT, flags))
