"""Where rloop's configuration is, what all of its layers say, and how one value is changed."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.keys import Key, checked
from bydawn.core.notices import place_of
from bydawn.core.redact import HIDDEN, looks_secret, rewritten
from bydawn.core.text import fit, near, visible
from bydawn.dialects.rloop import DIALECT
from bydawn.dialects.rloop.config import DEFAULT_FILE, KEYS, MOVES, NAME, PROJECT, USER, Config
from bydawn.dialects.rloop.config import read as read_config
from bydawn.operations.dialects import config as own_config
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.settings import secrets
from bydawn.settings import files, yaml
from bydawn.system.writing import make_private

_OURS = "RLOOP_"
_FOLDER, _TASKS = MOVES, "defaults.task_file"
_OTHERS = (_FOLDER, "RLOOP_HOME", "RLOOP_BIN", "RLOOP_SOURCE", "RLOOP_YES")  # the last four are of install.sh


def config_folder() -> Path:
    """Of this user; it need not exist."""
    folder, hint = own_config.user_folder(DIALECT), f"export {_FOLDER}=/path/to/a/folder"
    if folder is None:
        raise UserError("there is no folder for rloop's files", cause=f"HOME and {_FOLDER} are unset", hint=hint)
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        raise UserError(f"{folder} cannot have rloop's files", cause=f"{there} is not a folder", hint=hint)
    return folder


def read(folder: Path | None, flags: Mapping[str, str] = {}) -> Config:
    """What applies in a folder; `flags` are options by key. An absolute task file is fine if it is in the folder."""
    path = Path(flags.get(_TASKS, ""))
    if folder and path.is_absolute() and (parent := path.parent.resolve()).is_relative_to(folder.resolve()):
        flags = {**flags, _TASKS: str(parent.relative_to(folder.resolve()) / path.name)}
    found = read_config(own_config.layered(KEYS, config_folder() / USER, folder, PROJECT, flags))
    return msgspec.structs.replace(found, remarks=(*found.remarks, *_strange_variables()))


def _strange_variables() -> list[str]:
    known = [key.variable.removeprefix(_OURS) for key in KEYS if key.variable]
    names = [name.removeprefix(_OURS) for name in os.environ if name.startswith(_OURS) and name not in _OTHERS]
    strange = sorted({*names} - {*known})
    return [
        f"{_OURS}{visible(fit(name, 60))} has no effect; {near(name, known, _OURS)}".rstrip("; ") for name in strange
    ]


# -- one value ---------------------------------------------------------------------------------------------------------


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A key, its value without secrets, and where it is set."""

    key: str
    value: object
    where: str


def rows(config: Config) -> list[Row]:
    hide = secrets().hide
    shown = msgspec.structs.replace(
        config,
        webhook=config.webhook and f"{place_of(config.webhook)}/{HIDDEN}",
        env={name: HIDDEN if looks_secret(name) else value for name, value in config.env.items()},
    )
    values = {key.path: rewritten(getattr(shown, key.name), hide) for key in KEYS}
    return [Row(key=path, value=value, where=config.where[path]) for path, value in values.items()]


def value_of(config: Config, key: str) -> object:
    """As it is, even if it is a secret."""
    return getattr(config, _known(key).name)


def written(value: object) -> str:
    """A value as `config set` takes it."""
    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _known(path: str) -> Key:
    known = {key.path: key for key in KEYS}
    if path in known:
        return known[path]
    guess = near(path, known) or near(f"defaults.{path}", known)
    sections = dict.fromkeys(f"{each.partition('.')[0]}.…" for each in known)
    cause, hint = f"there are {', '.join(sections)}", f"{guess}`{NAME} config` lists them"
    raise UserError(f"there is no key {fit(path, 60)!r}", cause=cause, hint=hint)


def set_value(key: str, text: str) -> Path:
    """Write one value into the user's file, which is made if there is none; nothing is written if anything is wrong."""
    refuse_inside_a_round()
    known, file = _known(key), own_config.user_file(config_folder() / USER)
    value = None if known.nullable and text in ("", "null") else yaml.typed(text, known, key).values[key]
    before = files.checked_text(file)
    after = yaml.with_value(DEFAULT_FILE if before is None else before, key, value, USER)
    checked(yaml.parse(after, USER), KEYS, USER)  # or the other lines would be found wrong at the next start
    _write(file, after)
    return file.path


def init() -> tuple[Path, bool]:
    """The user's file, with the defaults if there was none; was it made now?"""
    refuse_inside_a_round()
    file = own_config.user_file(config_folder() / USER)
    is_new = files.checked_text(file) is None
    if is_new:
        _write(file, DEFAULT_FILE)
    return file.path, is_new


def _write(file: files.File, text: str) -> None:
    """It can have an address that is a secret: for its owner only, even if it was not before."""
    try:
        make_private(file.path.parent)
        if file.path.exists():
            file.path.chmod(0o600)
    except OSError as error:
        hint = f"check the permissions, or move it: export {_FOLDER}=/path/to/a/folder"
        raise UserError(f"{file.path} cannot be written", cause=str(error.strerror), hint=hint) from None
    files.replace(file, text)
