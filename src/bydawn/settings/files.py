"""The user's file, the project's file and the environment: read all settings, write one."""

import codecs
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.text import near
from bydawn.core.values import Act, Advice
from bydawn.settings.layers import Given, Problem, Reading
from bydawn.settings.setting import Layer, Setting
from bydawn.settings.table import BY_KEY, TABLE
from bydawn.system.reading import read_inside, read_regular, read_text
from bydawn.system.user_folders import PROJECT, folders_above, settings_file
from bydawn.system.writing import others_can_write, replace_text

PYPROJECT = "pyproject.toml"
_AT_MOST = 1 << 20  # bytes; settings are written by people
_GUESSES = 200

# Variables of ours that are not settings.
OTHER_VARIABLES = {
    "BYDAWN_AGENT_NAME",
    "BYDAWN_AS",
    "BYDAWN_CHECKS",
    "BYDAWN_COOKIE",
    "BYDAWN_DEBUG",
    "BYDAWN_WEB_LOOK_TOKEN",
    "BYDAWN_WEB_TOKEN",
    "BYDAWN_DEMO_PACE",
    "BYDAWN_ERRORS",
    "BYDAWN_FOLDER",
    "BYDAWN_GIT",
    "BYDAWN_HOOK",
    "BYDAWN_LOOP",
    "BYDAWN_OUTCOME",
    "BYDAWN_PROGRESSED",
    "BYDAWN_REASON",
    "BYDAWN_RESUME_SESSION",
    "BYDAWN_ROUND",
    "BYDAWN_RULE",
    "BYDAWN_STATE",
    "BYDAWN_DEMO_SESSION",
    "BYDAWN_TASK",
    "BYDAWN_TASK_ID",
    "BYDAWN_TEST_JOBS",
    "BYDAWN_WORKSPACE",
}


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file; `table` is where in it the settings are (`tool.bydawn` in a pyproject.toml)."""

    path: Path
    layer: Layer
    table: tuple[str, ...] = ()
    owners: frozenset[int] = frozenset()  # who may have written it

    @property
    def name(self) -> str:
        """As people know it: short inside the project, in full elsewhere."""
        return self.path.name if self.layer is Layer.PROJECT else str(self.path)


def user_file() -> File:
    return File(path=settings_file(), layer=Layer.USER, owners=frozenset({os.getuid(), 0}))


def project_file(folder: Path) -> File:
    """The project's settings: `bydawn.toml`, or else `[tool.bydawn]` in a pyproject.toml that has it."""
    owners = frozenset({os.getuid(), 0, folder.stat().st_uid})
    if not os.path.lexists(folder / PROJECT) and (folder / PYPROJECT).exists() and _speaks_of_us(folder):
        return File(path=folder / PYPROJECT, layer=Layer.PROJECT, table=("tool", "bydawn"), owners=owners)
    return File(path=folder / PROJECT, layer=Layer.PROJECT, owners=owners)


def workspace_above(folder: Path) -> Path:
    """The workspace that a folder is in: the nearest one with settings, or the top of its repository."""
    *nearer, top = folders_above(folder)
    return next((each for each in nearer if project_file(each).path.exists()), top)


def _speaks_of_us(folder: Path) -> bool:
    """Another tool's file: if it is broken, other tools will say so, unless it was meant for us as well."""
    try:
        data = read_inside(folder, PYPROJECT) or b""
    except UserError:
        return False
    try:
        tool = _parsed(data.decode()).get("tool")
    except (ValueError, RecursionError):
        return b"bydawn" in data
    return isinstance(tool, dict) and "bydawn" in tool


# -- reading -----------------------------------------------------------------------------------------------------------


def read(file: File) -> Reading:
    """What a file sets, and what is wrong with it."""
    try:
        text = text_of(file)
    except UserError as error:
        return Reading(problems=(Problem(where=file.name, what=error.what, cause=error.cause, hint=error.hint),))
    if text is None:
        return Reading()
    try:
        data: Any = _parsed(text)
    except (ValueError, RecursionError) as error:
        return Reading(problems=(_broken(file, text, error),))
    lines = _Lines(text)
    for name in file.table:
        data = data[name]
    if not isinstance(data, dict):
        where = lines.where(file, ())
        return Reading(problems=(Problem(where=where, what="not a table", hint=f"write [{'.'.join(file.table)}]"),))
    given: list[Given] = []
    problems: list[Problem] = []
    for path, found in _leaves(data):
        key, where = ".".join(path), lines.where(file, path)
        if key not in BY_KEY:
            # "Did you mean" is for a person with a few mistakes, not for thousands.
            problems.append(_unknown(key, where, near(key, BY_KEY) if len(problems) < _GUESSES else ""))
            continue
        result = _understood(BY_KEY[key], found, file.layer, where)
        given.append(result) if isinstance(result, Given) else problems.append(result)
    return Reading(given=tuple(given), problems=tuple(problems))


def _unknown(key: str, where: str, question: str) -> Problem:
    hint = Advice(question, Act("config show"), " lists all settings")
    return Problem(where=where, what=f"unknown setting {key!r}", cause="this key has no effect", hint=hint)


def _understood(setting: Setting, found: object, layer: Layer, where: str) -> Given | Problem:
    key = setting.key
    if layer not in setting.layers:
        hint = Advice("remove it, or set it in your own file: ", Act(f"config set --user {key} …"))
        return Problem(where=where, what=f"{key} cannot be set by a {layer}", cause="only you can set it", hint=hint)
    try:
        value = setting.kind.from_file(found)
        if layer is Layer.PROJECT and value in setting.never_in_project:
            hint = Advice(f"remove it; if you want it, add {setting.flags[-1]} {value}")
            cause = "a repository may not choose that, trusted or not"
            return Problem(where=where, what=f"{key} = {value} can only be set by a person", cause=cause, hint=hint)
        return Given(key=key, value=value, layer=layer, where=where)
    except ValueError as error:
        what = f"{key} must be {setting.kind.wanted}"
        return Problem(where=where, what=what, cause=_why(setting, error), hint=f"write {setting.assignment}")


def _why(setting: Setting, error: ValueError) -> str:
    """What is wrong with a value; one that may hold a secret is not quoted."""
    return f"it is not {setting.kind.wanted}" if setting.secret else str(error)


def checked_text(file: File) -> str | None:
    """The same before writing: an error names the file."""
    try:
        return text_of(file)
    except UserError as error:
        raise UserError(f"{file.path}: {error.what}", cause=error.cause, hint=error.hint) from None


def text_of(file: File) -> str | None:
    """The text of a file that only its owner can change; None if there is none."""
    try:
        status = file.path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if file.path.is_symlink():
            hint = "remove the link, or create its target"
            raise UserError("it is a dangling link", cause=os.fspath(file.path.readlink()), hint=hint) from None
        return None
    except OSError as error:
        raise UserError("it cannot be read", cause=str(error.strerror), hint="check its permissions") from None
    _refuse_unsafe(file, status)
    if file.layer is Layer.PROJECT:
        return read_text(file.path.parent, file.path.name)
    try:
        data = read_regular(Path(os.path.realpath(file.path)), _AT_MOST) or b""
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except OSError as error:
        raise UserError("it cannot be read", cause=str(error.strerror), hint="check its permissions") from None
    except UnicodeDecodeError as error:
        raise UserError("it is not UTF-8 text", cause=f"byte {error.start}", hint="save it as UTF-8") from None


def _refuse_unsafe(file: File, status: os.stat_result) -> None:
    path, owner = shlex.quote(str(file.path)), status.st_uid
    is_open = file.layer is Layer.USER and others_can_write(status)
    powers = "could make it run anything"
    own = f"if its content is right: sudo chown $USER {path}"
    for is_so, what, cause, hint in (
        (not stat.S_ISREG(status.st_mode), "it is not a regular file", "expected text", "remove or rename it"),
        (owner not in file.owners, "it belongs to another user", f"it belongs to user {owner}, who {powers}", own),
        (is_open, "other users can write to it", f"they {powers}", f"chmod go-w {path}"),
        (status.st_size > _AT_MOST, "it is too big", f"it has {status.st_size} bytes", "is it the right file?"),
    ):
        if is_so:
            raise UserError(what, cause=cause, hint=hint)


def _parsed(text: str) -> dict[str, Any]:
    """The text as TOML, unless it could keep the parser busy for hours."""
    import tomllib  # most people start without any file

    if found := _TOO_DEEP.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key of more than 60 parts (at line {line})")
    return tomllib.loads(text)


# Starts only where a name can start, or a long word would be scanned once per letter.
_TOO_DEEP = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){60}""")


def _broken(file: File, text: str, error: Exception) -> Problem:
    """tomllib only says where in words; for a number that is too long, not at all."""
    said, _, place = str(error).partition(" (at ")
    line = place.removeprefix("line ").split(",")[0].rstrip(")")
    number = line if line.isdigit() else _too_much(text) or str(text.count("\n") + 1)
    return Problem(where=f"{file.name}:{number}", what="invalid TOML", cause=said, hint="fix that line")


def _too_much(text: str) -> str:
    found = re.search(r"\d{1000}", text)
    return str(text.count("\n", 0, found.start()) + 1) if found else ""


def _leaves(data: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Each key, down to the first value that is not a table of ours."""
    for name, value in data.items():
        key = (*above, name)
        if isinstance(value, dict) and any(row.startswith(f"{'.'.join(key)}.") for row in BY_KEY):
            yield from _leaves(value, key)
        else:
            yield key, value


# What can hide a newline or an equals sign, and what separates statements.
_TOKENS = re.compile(
    r'#[^\n]*|"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[\[\]{}=\n]', re.DOTALL
)


class _Lines:
    """The line of each key. The text is valid TOML, so looking at quotes and brackets is enough."""

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, ...], int] = {}
        self._first_inside: dict[tuple[str, ...], int] = {}
        header: tuple[str, ...] = ()
        for line, key, is_header in _statements(text):
            path = _path(key)
            header = path if is_header else header
            whole = path if is_header else (*header, *path)
            self._found[whole] = min(line, self._found.get(whole, line))
            for size in range(1, len(whole)):
                self._first_inside.setdefault(whole[:size], line)

    def where(self, file: File, key: tuple[str, ...]) -> str:
        """The file and line of a key: its own, that of the first thing in it, or that of what contains it."""
        wanted = (*file.table, *key)
        for size in range(len(wanted), 0, -1):
            part = wanted[:size]
            if line := self._found.get(part) or (self._first_inside.get(part) if size == len(wanted) else None):
                return f"{file.name}:{line}"
        return file.name


def _statements(text: str) -> Iterator[tuple[int, str, bool]]:
    """The line, the key and whether it is a header, of each statement."""
    line, depth, start, key = 1, 0, 0, ""
    for token in _TOKENS.finditer(text + "\n"):
        said = token[0]
        if said == "=" and depth == 0 and not key:
            key = text[start : token.start()].strip()
            yield line, key, False
        elif said in "[{":
            depth += 1
        elif said in "]}":
            depth -= 1
            if depth == 0 and not key and text[start : token.start()].lstrip().startswith("["):
                key = text[start : token.end()].strip().strip("[]")
                yield line, key, True
        elif said == "\n" and depth == 0:
            start, key = token.end(), ""
        line += said.count("\n")


def _path(key: str) -> tuple[str, ...]:
    """A dotted key, split by the real parser."""
    import tomllib

    data: Any = tomllib.loads(f"{key} = 0")
    names = []
    while isinstance(data, dict):
        [(name, data)] = data.items()
        names.append(name)
    return tuple(names)


def read_environment(env: Mapping[str, str]) -> Reading:
    """What the `BYDAWN_*` variables set; an empty one sets nothing."""
    given, problems = [], []
    for setting in TABLE:
        text = env.get(setting.variable, "")
        if not text.strip() or Layer.ENV not in setting.layers:
            continue
        try:
            value = setting.kind.from_text(text)
            given.append(Given(key=setting.key, value=value, layer=Layer.ENV, where=setting.variable))
        except ValueError as error:
            what = f"{setting.key} must be {setting.kind.wanted}"
            hint = f"export {setting.variable}={setting.kind.example}"
            problems.append(Problem(where=setting.variable, what=what, cause=_why(setting, error), hint=hint))
    return Reading(given=tuple(given), problems=tuple(problems))


def strange_variables(env: Mapping[str, str]) -> list[str]:
    """Warnings about variables that look like ours but have no effect."""
    known = {setting.variable.removeprefix("BYDAWN_"): setting.variable for setting in TABLE}
    strangers = {name for name in env if name.startswith("BYDAWN_")} - {*known.values()} - OTHER_VARIABLES
    questions = {name: near(name.removeprefix("BYDAWN_"), known, "BYDAWN_") for name in strangers}
    return [f"{name} has no effect; {question}".rstrip("; ") for name, question in sorted(questions.items())]


# -- writing -----------------------------------------------------------------------------------------------------------


def write(file: File, key: str, value: object | None) -> None:
    """Set or remove one key; comments, order and unknown keys stay."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = checked_text(file) or ""
    try:
        _parsed(text)
        document = tomlkit.parse(text)
    except (ValueError, TOMLKitError, RecursionError) as error:
        raise _broken(file, text, error).error() from None
    table: Any = document
    for name in file.table:
        table = table[name]
    if not isinstance(table, dict):
        raise UserError(
            f"{'.'.join(file.table)} in {file.path} is not a table", hint=Advice("fix it: ", Act("edit config"))
        )
    *parents, last = key.split(".")
    for name in parents:
        table = table.setdefault(name, tomlkit.table())
    if value is not None:
        table[last] = value
    elif last in table:
        del table[last]
    else:
        hint = Advice(Act("config get", key, origin=True), " says where it is set")
        raise UserError(f"{key} is not set in {file.path}", cause="nothing was changed", hint=hint)
    written = tomlkit.dumps(document)
    if text.count("\r\n") == text.count("\n") > 0:
        written = re.sub(r"(?<!\r)\n", "\r\n", written)
    replace(file, written)


def replace(file: File, text: str) -> None:
    """All or nothing; a link stays a link."""
    real = Path(os.path.realpath(file.path))
    real.parent.mkdir(parents=True, exist_ok=True)
    private = file.layer is Layer.USER  # a user's own file may contain secrets
    replace_text(real, text, 0o600 if private else 0o644)
