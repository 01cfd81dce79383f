"""Put a dialect's prompt and skill where its agent finds them."""

import os
import shlex
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.dialects import follower
from bydawn.dialects.seam import Dialect, Install
from bydawn.operations import places
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.system.paths import open_parent
from bydawn.system.writing import replace_text


def install(dialect: Dialect, request: Install, workspace: Path) -> list[tuple[Path, str, str]]:
    """Write the helper files: path, what became of it, remark. Nothing that differs is overwritten unasked."""
    refuse_inside_a_round()
    if not (os.environ.get("CODEX_HOME") or os.environ.get("HOME")):
        raise UserError("Codex has no folder", cause="HOME and CODEX_HOME are unset", hint="export CODEX_HOME=…")
    home = Path(os.environ.get("CODEX_HOME") or Path(os.environ["HOME"]) / ".codex")
    if not home.is_absolute():
        cause = "it means another folder wherever Codex is started"
        hint = f"export CODEX_HOME={shlex.quote(str(home.absolute()))}, if that is the one"
        raise UserError(f"CODEX_HOME is {str(home)!r}, which is not absolute", cause=cause, hint=hint)
    paths = [str(home / each.path) if each.home else each.path for each in dialect.helpers]
    try:
        follower.refuse_unwritable(workspace, paths)
    except UserError as error:  # nobody chooses these paths, so no other can be given
        hint = "nothing was written; clear the way there, and ask again"
        raise UserError(error.what, cause=error.cause, hint=hint) from None
    targets = [((home if helper.home else workspace) / helper.path, helper) for helper in dialect.helpers]
    for path, helper in targets:
        if os.path.lexists(path) and not request.force and _text(path) != helper.text:
            raise UserError(
                f"{path} is there already, and differs",
                cause="nothing was written",
                hint=f"`{places.typed(dialect, workspace, 'install-helpers', '--force')}` overwrites it",
            )
    rows = []
    for path, helper in targets:
        same = os.path.lexists(path) and _text(path) == helper.text
        if not same and helper.home:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not same:
            with open_parent(workspace, helper.path, make=True):
                pass
        if not same:
            replace_text(path, helper.text, 0o644)
        rows.append((path, "is as it should be" if same else "written", helper.remark))
    return rows


def _text(path: Path) -> str | None:
    try:
        return path.read_text() if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None
