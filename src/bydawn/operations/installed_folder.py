"""Install a folder of files, such as a skill, where an agent reads it. A new version replaces what no one changed."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.operations import first_files
from bydawn.operations.first_files import Fate, digest
from bydawn.system.reading import read_text

RECORD = ".installed"  # a digest for each file, so that a later version knows which ones are still as they were written
HOMES = {"codex": ("Codex", "CODEX_HOME", ".codex"), "claude": ("Claude Code", "CLAUDE_CONFIG_DIR", ".claude")}


def files_of(source: Path) -> dict[str, str]:
    """The texts of all files in a folder of this package."""
    found = sorted(path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in found}


def install(
    files: Mapping[str, str], folder: Path, target: str, *, force: bool = False, local: Mapping[str, str] | None = None
) -> dict[str, Fate]:
    """Write files to a folder, whose path is absolute or begins in `folder`; all of them, or none.

    `local` files are different on each machine: they are replaced whatever they say.
    """
    record = "".join(f"{digest(text.encode())}  {name}\n" for name, text in files.items())
    own = {**(local or {}), RECORD: record}
    there = {name: read_text(*first_files.reached(folder, f"{target}/{name}"), errors="replace") for name in own}
    known = {name: digest(text.encode()) for name, text in there.items() if text is not None}
    known |= {name: found for found, _, name in (line.partition("  ") for line in (there[RECORD] or "").splitlines())}
    texts = {f"{target}/{name}": text for name, text in {**files, **own}.items()}
    known = {f"{target}/{name}": found for name, found in known.items()}
    for path, fate in first_files.fates(folder, texts, force=force, known=known).items():
        if fate is Fate.LEFT:
            hint = "--force replaces it, and keeps a copy beside it"
            raise UserError(f"{folder / path} was changed", cause="nothing was written", hint=hint)
    found = first_files.write(folder, texts, force=force, known=known)
    return {name: found[f"{target}/{name}"] for name in files}


def home_of(agent: str) -> Path:
    """The folder of a person in which an agent keeps its settings."""
    name, variable, folder = HOMES[agent]
    if not (os.environ.get(variable) or os.environ.get("HOME")):
        raise UserError(f"{name} has no folder", cause=f"HOME and {variable} are unset", hint=f"export {variable}=…")
    home = Path(os.environ.get(variable) or Path(os.environ["HOME"]) / folder)
    if not home.is_absolute():
        cause = f"it means another folder wherever {name} is started"
        hint = f"export {variable}={shlex.quote(str(home.absolute()))}, if that is the one"
        raise UserError(f"{variable} is {str(home)!r}, which is not absolute", cause=cause, hint=hint)
    return home
