"""A project of codex-loop: where it is, what its file says, which loop is its own."""

import os
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.keys import checked
from bydawn.dialects.codex_loop import config
from bydawn.dialects.codex_loop.config import CONFIG, FOLDER, NAME, Config
from bydawn.operations.dialects import loops
from bydawn.operations.preconditions import checked_workspace
from bydawn.settings import yaml
from bydawn.store.registry import Standing
from bydawn.system.git import Git
from bydawn.system.reading import read_text
from bydawn.system.user_folders import folders_above

_IGNORED = f"{FOLDER}/"


def root_of(path: Path) -> Path:
    """The folder that a person named; for the current one, the project above it if it has no file of its own."""
    try:
        here = checked_workspace(path)
    except UserError as error:
        raise UserError(error.what, cause=error.cause, hint="give an existing folder: --project-dir PATH") from None
    above = folders_above(here) if path == Path() else ()
    return next((each for each in above if os.path.lexists(each / CONFIG)), here)


def config_of(root: Path) -> Config:
    """What the file says; refused with its line where it is wrong."""
    node = yaml.read(root, CONFIG)
    if node is None:
        hint = f'`{NAME} init --prompt "…"` sets it up'
        raise UserError(f"{CONFIG} is missing", cause=f"{root} is not set up", hint=hint)
    found = checked(node, config.KEYS, CONFIG)
    read = config.read(found)
    return msgspec.structs.replace(read, remarks=(*found.remarks, *read.remarks))


def standing_of(root: Path) -> Standing | None:
    """The loop of a project: the newest one, unless a new project has taken its place."""
    found = [each for each in loops.registry_of().in_workspace(root) if not each.state.dismissed]
    mine = [each for each in found if each.loop.dialect and each.loop.dialect.name == NAME]
    return max(mine, key=lambda each: (each.alive, each.loop.created_at), default=None)


def unignored(root: Path) -> dict[str, str]:
    """The files of git that do not name our folder yet, and what they should say: `.gitignore` and `info/exclude`."""
    exclude = Git(folder=root, seconds=20).answer("rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
    found = {}
    for path in (".gitignore", *([exclude.removesuffix("\n")] if exclude else ())):
        folder, name = (root, path) if path == ".gitignore" else (Path(path).parent, Path(path).name)
        text = (read_text(folder, name) if folder.is_dir() else None) or ""
        if not {line.strip().strip("/") for line in text.splitlines()} & {FOLDER}:
            newline = "\r\n" if "\r\n" in text else "\n"
            found[path] = f"{text}{newline if text and not text.endswith(newline) else ''}{_IGNORED}{newline}"
    return found
