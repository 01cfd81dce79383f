"""Write files on request: those that a dialect installs, and the other program's own."""

import os
from collections.abc import Mapping
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.dialects import follower
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.system.paths import open_parent
from bydawn.system.writing import replace_text


def install(workspace: Path, texts: Mapping[str, str], *, force: bool, overwriting: str) -> dict[str, bool]:
    """Write these files; was each written, or was it as it should be? Nothing that differs is overwritten unasked.

    A relative path begins in the workspace and leads through no link. `overwriting` is the command that forces it.
    """
    refuse_inside_a_round()
    try:
        follower.refuse_unwritable(workspace, [*texts])
    except UserError as error:  # no one chooses these paths, so there is no other to give
        hint = "nothing was written; clear the way there, and ask again"
        raise UserError(error.what, cause=error.cause, hint=hint) from None
    needed = {path: _text(workspace / path) != text for path, text in texts.items()}
    for path in texts:
        if needed[path] and os.path.lexists(workspace / path) and not force:
            raise UserError(
                f"{workspace / path} is there already, and differs",
                cause="nothing was written",
                hint=f"`{overwriting}` overwrites it",
            )
    for path, text in texts.items():
        if needed[path]:
            _write(workspace, path, text)
    return needed


def rewrite(workspace: Path, path: str, text: str) -> None:
    """Replace a file that the other program wrote."""
    refuse_inside_a_round()
    follower.refuse_unwritable(workspace, [path])
    replace_text(workspace / path, text, 0o644)


def _write(workspace: Path, path: str, text: str) -> None:
    full = workspace / path
    if path.startswith("/"):
        full.parent.mkdir(parents=True, exist_ok=True)
    else:
        with open_parent(workspace, path, make=True):
            pass
    replace_text(full, text, 0o644)


def _text(path: Path) -> str | None:
    try:
        return path.read_text() if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None
