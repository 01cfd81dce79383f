"""Where settings stand: the user's file, the project's file, the environment. Reads them all; writes one key."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.layers import Given, Problem, Reading, near
from bydawn.core.settings import BY_KEY, TABLE, Layer, Setting
from bydawn.disk import others_can_write
from bydawn.files import read_regular, read_text

PROJECT = "bydawn.toml"
PYPROJECT = "pyproject.toml"
_AT_MOST = 1 << 20  # bytes; settings are written by people
_LONGEST_VALUE = 500  # lines; a value that goes on for longer is not looked for

# Variables of ours that are no settings.
OTHER_VARIABLES = {
    "BYDAWN_AS",
    "BYDAWN_COOKIE",
    "BYDAWN_DEBUG",
    "BYDAWN_DEMO_PACE",
    "BYDAWN_LOOP",
    "BYDAWN_ROUND",
    "BYDAWN_SESSION",
    "BYDAWN_TEST_JOBS",
}


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file of settings; `table` is where in it they stand (`tool.bydawn` of a pyproject.toml)."""

    path: Path
    layer: Layer
    table: tuple[str, ...] = ()
    owners: frozenset[int] = frozenset()  # who may have written it

    @property
    def name(self) -> str:
        """As people know it: short within the project, whole elsewhere."""
        return self.path.name if self.layer is Layer.PROJECT else str(self.path)


def user_file() -> File:
    return File(path=user_folder() / "config.toml", layer=Layer.USER, owners=frozenset({os.getuid(), 0}))


def user_folder() -> Path:
    if given := os.environ.get("XDG_CONFIG_HOME"):
        return Path(given) / "bydawn"
    home = os.environ.get("HOME")
    if sys.platform == "darwin" and home:
        import platformdirs

        return Path(platformdirs.user_config_dir("bydawn"))
    return Path(home or "/nonexistent") / ".config" / "bydawn"


def project_file(folder: Path) -> File:
    """The project's settings: `bydawn.toml`, or else `[tool.bydawn]` of a pyproject.toml that has one."""
    owners = frozenset({os.getuid(), 0, folder.stat().st_uid})
    if not (folder / PROJECT).exists() and (folder / PYPROJECT).exists():
        data = _parsed_quietly(folder)
        if "bydawn" in data.get("tool", {}):
            return File(path=folder / PYPROJECT, layer=Layer.PROJECT, table=("tool", "bydawn"), owners=owners)
    return File(path=folder / PROJECT, layer=Layer.PROJECT, owners=owners)


def _parsed_quietly(folder: Path) -> dict[str, Any]:
    """Somebody else's file: if it is broken, they will hear of it from others."""
    import tomllib

    try:
        data = tomllib.loads(read_text(folder, PYPROJECT) or "")
    except (UserError, tomllib.TOMLDecodeError, RecursionError):
        return {}
    return data if isinstance(data.get("tool", {}), dict) else {}


# -- reading -----------------------------------------------------------------------------------------------------------


def read(file: File) -> Reading:
    """What a file says, and what is wrong with it."""
    try:
        text = _text(file)
    except UserError as error:
        return Reading(problems=(Problem(where=file.name, what=error.what, cause=error.cause, hint=error.hint),))
    if text is None:
        return Reading()
    import tomllib  # nearly everybody starts with no file at all

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Reading(problems=(_broken(file, text, error),))
    for name in file.table:
        data = data[name] if isinstance(data[name], dict) else {}
    lines = _Lines(text, file.table)
    given: list[Given] = []
    problems: list[Problem] = []
    for key, found in _leaves(data):
        where = lines.where(file.name, key)
        result = _understood(key, found, file.layer, where)
        (given if isinstance(result, Given) else problems).append(result)  # type: ignore[arg-type]
    return Reading(given=tuple(given), problems=tuple(problems))


def _understood(key: str, found: object, layer: Layer, where: str) -> Given | Problem:
    setting = BY_KEY.get(key)
    if setting is None:
        hint = f"{near(key)}`bydawn config show` lists the settings there are"
        return Problem(where=where, what=f"there is no setting {key!r}", cause="nothing would obey it", hint=hint)
    if layer not in setting.layers:
        hint = f"take it out; it can stand in your own file: `bydawn config set --user {key} …`"
        return Problem(where=where, what=f"{key} cannot be set by a {layer}", cause="it is yours alone", hint=hint)
    try:
        return Given(key=key, value=setting.kind.from_file(found), layer=layer, where=where)
    except ValueError as error:
        what = f"{key} must be {setting.kind.wanted}"
        return Problem(where=where, what=what, cause=str(error), hint=f"write {_example(setting)}")


def _example(setting: Setting) -> str:
    quoted = setting.kind.example if str not in (setting.kind.literal or (str,)) else f'"{setting.kind.example}"'
    return f"{setting.key} = {f'[{quoted}]' if setting.kind.many else quoted}"


def _text(file: File) -> str | None:
    """The text of a file that is nobody else's; None if there is none."""
    try:
        status = file.path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError("it cannot be read", cause=str(error.strerror), hint="look at its permissions") from None
    if status.st_uid not in file.owners:
        cause = f"it belongs to user {status.st_uid}, who could make it run anything"
        raise UserError("it is somebody else's file", cause=cause, hint=f"if it is right: sudo chown $USER {file.path}")
    if file.layer is Layer.USER and others_can_write(status):
        raise UserError(
            "others can write to it", cause="they could make it run anything", hint=f"chmod go-w {file.path}"
        )
    if status.st_size > _AT_MOST:
        raise UserError("it is too big", cause=f"settings of {status.st_size} bytes", hint="is it the right file?")
    if file.layer is Layer.PROJECT:
        return read_text(file.path.parent, file.path.name)
    try:
        return (read_regular(Path(os.path.realpath(file.path)), _AT_MOST) or b"").decode()
    except OSError as error:
        raise UserError("it cannot be read", cause=str(error.strerror), hint="look at its permissions") from None
    except UnicodeDecodeError as error:
        raise UserError("it is not UTF-8 text", cause=f"byte {error.start}", hint="save it as UTF-8") from None


def _broken(file: File, text: str, error: Exception) -> Problem:
    """tomllib says where only in words."""
    said, _, place = str(error).partition(" (at ")
    line = place.removeprefix("line ").split(",")[0].rstrip(")")
    number = line if line.isdigit() else str(text.count("\n") + 1)
    return Problem(where=f"{file.name}:{number}", what="this is not TOML", cause=said, hint="mend that line")


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each key, dotted, down to what is no table of ours."""
    for name, value in data.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in BY_KEY and any(row.startswith(f"{key}.") for row in BY_KEY):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value


class _Lines:
    """On which line each key stands: the real parser is given one statement after the other."""

    def __init__(self, text: str, table: Sequence[str]) -> None:
        self._found: dict[str, int] = {}
        self._skip = f"{'.'.join(table)}." if table else ""
        rows = text.split("\n")
        number, header = 0, ""
        while number < len(rows):
            data, length = _statement(rows[number : number + _LONGEST_VALUE])
            if rows[number].lstrip().startswith("["):
                header = f"{_path(data)}."
            elif data:
                self._found.setdefault(f"{header}{_path(data)}", number + 1)
            number += length

    def where(self, name: str, key: str) -> str:
        wanted = f"{self._skip}{key}"
        lines = [line for found, line in self._found.items() if found == wanted or found.startswith(f"{wanted}.")]
        return f"{name}:{min(lines)}" if lines else name


def _statement(rows: Sequence[str]) -> tuple[dict[str, Any], int]:
    """What the first lines say, as few of them as make sense together."""
    import tomllib

    for length in range(1, len(rows) + 1):
        try:
            return tomllib.loads("\n".join(rows[:length])), length
        except tomllib.TOMLDecodeError:
            continue
    return {}, 1


def _path(data: Any) -> str:
    """The dotted key of a statement, down to the first thing that is not a table with one key."""
    names = []
    while isinstance(data, list | dict) and len(data) == 1:
        if isinstance(data, dict):
            [(name, data)] = data.items()
            names.append(name)
        else:
            data = data[0]
    return ".".join(names)


def read_environment(env: Mapping[str, str]) -> Reading:
    """What the `BYDAWN_*` variables say; an empty one says nothing."""
    given, problems = [], []
    for setting in TABLE:
        text = env.get(setting.variable, "")
        if not text.strip():
            continue
        try:
            value = setting.kind.from_text(text)
            given.append(Given(key=setting.key, value=value, layer=Layer.ENV, where=setting.variable))
        except ValueError as error:
            what = f"{setting.key} must be {setting.kind.wanted}"
            hint = f"export {setting.variable}={setting.kind.example}"
            problems.append(Problem(where=setting.variable, what=what, cause=str(error), hint=hint))
    return Reading(given=tuple(given), problems=tuple(problems))


def strange_variables(env: Mapping[str, str]) -> list[str]:
    """Warnings about variables that look like ours and mean nothing."""
    known = {setting.variable for setting in TABLE}
    strangers = (name for name in env if name.startswith("BYDAWN_") and name not in known | OTHER_VARIABLES)
    return [f"{name} means nothing; {near(name, known)}".rstrip("; ") for name in sorted(strangers)]


# -- writing -----------------------------------------------------------------------------------------------------------


def write(file: File, key: str, value: object | None) -> None:
    """Set one key, or take it out; comments, order and everything that we do not know stay as they are."""
    import tomllib

    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = _text(file) or ""
    try:
        tomllib.loads(text)
        document = tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError, RecursionError) as error:
        raise _broken(file, text, error).error() from None
    table: Any = document
    for name in file.table:
        table = table[name]
    *parents, last = key.split(".")
    for name in parents:
        table = table.setdefault(name, tomlkit.table())
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value
    _replace(file.path, tomlkit.dumps(document))


def _replace(path: Path, text: str) -> None:
    """All of it or nothing; a link stays a link, and whoever could read the file still can."""
    real = Path(os.path.realpath(path))
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o644
    real.parent.mkdir(parents=True, exist_ok=True)
    draft = real.with_name(f".{real.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(descriptor)
        draft.replace(real)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(
            f"{path} cannot be written", cause=str(error.strerror), hint="look at its permissions"
        ) from None
