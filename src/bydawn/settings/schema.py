"""The settings table for others to read: as JSON Schema for editors, as a page for people."""

from collections.abc import Iterator
from typing import Any

from bydawn.settings.setting import Layer, Setting
from bydawn.settings.table import TABLE


def schema() -> dict[str, Any]:
    """JSON Schema of `bydawn.toml` and of the user's file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bydawn",
        "type": "object",
        "properties": {setting.key: _property(setting) for setting in TABLE},
        "additionalProperties": False,
    }


def _property(setting: Setting) -> dict[str, Any]:
    found = {"description": setting.what, **dict(setting.kind.schema)}
    if setting.default is not None:
        found["default"] = setting.default
    return found


def page() -> str:
    """docs/settings.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from ("# Settings", "", "Generated from the table of settings by `scripts/docs`; do not edit.", "")
    yield (
        "Set any of these with a flag, an environment variable, the project's `bydawn.toml` (or `[tool.bydawn]` in "
        "`pyproject.toml`) or your own `config.toml`; the first in this order wins. How that works, "
        "what trust means and what happens to secrets: [configuration.md](configuration.md)."
    )
    for setting in TABLE:
        yield from ("", f"## {setting.key}", "", setting.what, "")
        yield from (f"- {row}" for row in _rows(setting))


def _rows(setting: Setting) -> Iterator[str]:
    several = ", repeatable" if setting.kind.many else ""
    yield f"Value: {setting.kind.wanted}{several}; for example `{setting.assignment}`"
    if setting.usual:
        yield f"Default: `{setting.usual}`"
    if setting.flags:
        yield f"Flag: {', '.join(f'`{flag}`' for flag in setting.flags)}"
    yield f"Variable: `{setting.variable}`{', one value per line' if setting.kind.many else ''}"
    if Layer.PROJECT not in setting.layers:
        yield "Not allowed in a project's file"
    if setting.commands:
        yield "In a project's file it has no effect until you trust the project"
    if setting.tighter:
        yield f"A project's file may only make your own value stricter: {setting.tighter} is stricter"
    if setting.secret:
        yield "May hold secrets: never shown, and no program that bydawn starts gets the variable"
