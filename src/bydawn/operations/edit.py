"""Open what a person may want to change in their own editor, and look at it afterwards."""

import os
import shlex
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bydawn import config
from bydawn.core.errors import UserError
from bydawn.core.trust import powers_of
from bydawn.files import read_text
from bydawn.operations import trust
from bydawn.operations.settings import gather
from bydawn.operations.start import refuse_inside_a_round
from bydawn.trust import Trusts

# What each word opens: the setting that names the file, and the file if nothing does.
DOCUMENTS = {
    "todo": ("tasks", "TODO.md"),
    "tasks": ("tasks", "TODO.md"),
    "progress": ("progress", "PROGRESS.md"),
    "opinions": ("opinions", "OPINIONS.md"),
    "prompt": ("prompt", "PROMPT.md"),
}
_NEW_FILE = """\
# Settings of this project; `bydawn config show --origin` says what holds, docs: settings.md.
# agent = "cmd:./agent.sh"
# check = ["make test"]
# tasks = "TODO.md"
# rounds = 30
"""


def document(word: str, folder: Path) -> tuple[Path, str]:
    """The file that a word means in a folder; and, if no setting names it yet, the one that could."""
    key, usual = DOCUMENTS[word]
    given = gather(folder)[key]
    name = given.value if isinstance(given.value, str) else usual
    if key == "prompt" and given.value is not None:
        if not name.startswith("@"):
            raise UserError(
                "the prompt stands in the settings themselves",
                cause=given.where,
                hint="`bydawn edit config` opens them",
            )
        name = name[1:]
    read_text(folder, name)  # refuses a folder, and whatever lies outside of the workspace
    return folder / name, "" if given.value is not None else key


def edit_config(folder: Path, trusts: Trusts, *, user: bool) -> tuple[Path, bool]:
    """Open the settings; what a person writes into a file of their own is trusted by that act."""
    file = config.user_file() if user else config.project_file(folder)
    path = file.path
    new = not path.exists()
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_NEW_FILE)
    try:
        trusted = keeping_trust(folder, trusts, lambda: open_editor(path))
    finally:
        if new and path.exists() and path.read_text(errors="replace") == _NEW_FILE:
            path.unlink()  # nothing was written: nothing is left behind
    for problem in config.read(file).problems:
        raise problem.error()
    return path, trusted


def keeping_trust(folder: Path, trusts: Trusts, change: Callable[[], None]) -> bool:
    """Make a change; was all there was before agreed to, so is what is there now. Is it?"""
    refuse_inside_a_round()
    now = datetime.now(UTC)
    before = powers_of(gather(folder), now)
    agreed = not before.commands or trusts.covers(folder, before)
    change()
    after = powers_of(gather(folder), now)
    if agreed and not after.empty and not trusts.covers(folder, after):
        trust.agree(after, folder, trusts)
    return agreed or after.empty


def open_editor(path: Path) -> None:
    """Wait until the person has closed their editor."""
    refuse_inside_a_round()
    editor = os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(path)]).returncode
    except (OSError, ValueError) as error:
        raise UserError(
            f"the editor {editor!r} cannot be started",
            cause=getattr(error, "strerror", None) or str(error),
            hint=f"export EDITOR=nano, or open it yourself: {path}",
        ) from None
    if code:
        raise UserError(f"the editor {editor!r} ended with {code}", cause="it may not have saved", hint=f"look: {path}")
