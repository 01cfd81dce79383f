"""The keys that decide which tests run and how, in files that hold other things too."""

import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from posixpath import basename
from typing import Any

_PACKAGE = ("jest", "mocha", "vitest", "type")
_TOOLS = re.compile(r"(?:pytest|tox|nox|coverage)")
_SECTIONS = re.compile(r"(?:tool:)?pytest|tox|testenv.*|coverage:.*")


def keys(path: str, data: bytes, commands: Sequence[str]) -> dict[str, Any]:
    """What matters in such a file, by key; nothing if it cannot be read, which is seen when a check reads it."""
    try:
        text = data.decode()
        match basename(path):
            case "package.json":
                return _of_package(json.loads(text), commands)
            case "pyproject.toml":
                return {
                    name: table for name, table in tomllib.loads(text).get("tool", {}).items() if _TOOLS.match(name)
                }
            case _:
                found = _ini(text)
                return {name: dict(found[name]) for name in found.sections() if _SECTIONS.fullmatch(name)}
    except (ValueError, AttributeError, TypeError, configparser.Error):
        return {}


def woven(path: str, now: bytes, then: bytes, commands: Sequence[str]) -> bytes:
    """The file as it is now, with these keys as they were then."""
    old, new = keys(path, then, commands), keys(path, now, commands)
    try:
        match basename(path):
            case "package.json":
                return _into_package(json.loads(now), old, new)
            case "pyproject.toml":
                return _into_toml(now, then, old, new)
            case _:
                found = _ini(now.decode())
                for name in new:
                    found.remove_section(name)
                found.read_dict(old)
                return "".join(map(_section, found.sections(), map(found.items, found.sections()))).encode()
    except (ValueError, AttributeError, TypeError, configparser.Error):
        return then


def _ini(text: str) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False)
    setattr(found, "optionxform", str)  # noqa: B010 - names keep their case, and mypy refuses the plain way
    found.read_string(text)
    return found


def _section(name: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"{key} = {value}".replace("\n", "\n\t") for key, value in rows)
    return "\n".join([f"[{name}]", *lines, "", ""])


def _of_package(package: Any, commands: Sequence[str]) -> dict[str, Any]:
    """`test`, what a check runs by name, and what these name, each with what runs before and after it."""
    scripts = package.get("scripts", {})
    words = re.findall(r"[\w:.-]+", " ".join(commands))
    wanted, left = set[str](), [name for name in scripts if name == "test" or name in words]
    while left:
        name = left.pop()
        if name in scripts and name not in wanted:
            wanted.add(name)
            named = re.findall(r"[\w:.-]+", str(scripts[name]))
            left += [each for each in (*named, f"pre{name}", f"post{name}") if each in scripts]
    kept = {f"scripts.{name}": scripts[name] for name in sorted(wanted)}
    return kept | {name: package[name] for name in _PACKAGE if name in package}


def _into_package(package: Any, old: dict[str, Any], new: dict[str, Any]) -> bytes:
    for name in new.keys() - old.keys():
        home = package["scripts"] if name.startswith("scripts.") else package
        del home[name.removeprefix("scripts.")]
    for name, value in old.items():
        home = package.setdefault("scripts", {}) if name.startswith("scripts.") else package
        home[name.removeprefix("scripts.")] = value
    return json.dumps(package, indent=2).encode() + b"\n"


def _into_toml(now: bytes, then: bytes, old: dict[str, Any], new: dict[str, Any]) -> bytes:
    import tomlkit  # slow to import, and few loops need it

    document, before = tomlkit.parse(now).unwrap(), tomlkit.parse(then).unwrap()
    tools = document.setdefault("tool", {})
    for name in new:
        del tools[name]
    tools |= {name: before["tool"][name] for name in old}
    return tomlkit.dumps(document).encode()
