"""Open what a person may want to change in their own editor, and look at it afterwards."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.operations import trust
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.operations.settings import gather
from bydawn.settings import files
from bydawn.settings.table import Layer
from bydawn.settings.trust import Trusts, powers_of
from bydawn.system.reading import read_inside

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
    read_inside(folder, name)  # refuses a folder, and whatever lies outside of the workspace
    return folder / name, "" if given.value is not None else key


def edit_config(folder: Path, trusts: Trusts, *, user: bool) -> tuple[Path, bool]:
    """Open the settings; what a person writes into a file of their own is trusted by that act."""
    refuse_inside_a_round()
    file = files.user_file() if user else files.project_file(folder)
    before = files.checked_text(file)
    text = _edited(file.path, _NEW_FILE if before is None else before)
    trusted = True
    if text is not None and (before is not None or text.strip()):
        trusted = keeping_trust(file, folder, trusts, lambda: _save(file, before, text))
    for problem in files.read(file).problems:
        raise problem.error()
    return file.path, trusted


def _edited(path: Path, text: str) -> str | None:
    """What a person made of a text, None if nothing. They get a copy: an editor may be open for long."""
    copy = Path(tempfile.mkdtemp(prefix="bydawn-edit-")) / path.name
    copy.write_text(text, encoding="utf-8", newline="")
    try:
        open_editor(copy, path)
        left = copy.read_bytes() if copy.exists() else text.encode()
        result = left.decode()
    except UserError as error:
        if copy.exists() and copy.read_bytes() != text.encode():
            raise UserError(error.what, cause=error.cause, hint=f"what was saved is in {copy}") from None
        shutil.rmtree(copy.parent, ignore_errors=True)
        raise
    except UnicodeDecodeError as error:
        cause = f"the byte at offset {error.start} cannot stand there"
        raise UserError(
            "what was saved is not UTF-8", cause=cause, hint=f"it is in {copy}; nothing else was changed"
        ) from None
    shutil.rmtree(copy.parent, ignore_errors=True)
    return None if result == text else result


def _save(file: files.File, before: str | None, text: str) -> None:
    if files.checked_text(file) != before:
        aside = Path(tempfile.mkdtemp(prefix="bydawn-edit-")) / file.path.name
        aside.write_text(text, encoding="utf-8", newline="")
        raise UserError(
            f"{file.path} was changed by somebody else meanwhile",
            cause="an agent at work, perhaps; nothing of yours is lost",
            hint=f"your text is in {aside}; look at both, then edit again",
        )
    files.replace(file, text)


def keeping_trust(file: files.File, folder: Path, trusts: Trusts, change: Callable[[], None]) -> bool:
    """Make a change; was all that the project's file held before agreed to, so is what it holds now. Is it?"""
    refuse_inside_a_round()
    if file.layer is not Layer.PROJECT:
        change()
        return True
    now = datetime.now(UTC)
    settings = gather(folder)
    before = powers_of(settings, now)
    # What could not be read cannot have been agreed to.
    agreed = not settings.problems and (before.empty or trusts.covers(folder, before))
    change()
    after = powers_of(gather(folder), now)
    if agreed and not after.empty and not trusts.covers(folder, after):
        trust.agree(after, folder, trusts)
    return agreed or after.empty


def open_editor(path: Path, known_as: Path | None = None) -> None:
    """Wait until the person has closed their editor."""
    refuse_inside_a_round()
    editor = os.environ.get("EDITOR", "").strip() or "vi"
    shown = shlex.quote(str(known_as or path))
    try:
        code = subprocess.run([*shlex.split(editor), str(path)]).returncode
    except (OSError, ValueError) as error:
        raise UserError(
            f"the editor {editor!r} cannot be started",
            cause=getattr(error, "strerror", None) or str(error),
            hint=f"export EDITOR=nano, or open it yourself: {shown}",
        ) from None
    if code:
        hint = f"look at it: {shown}"
        raise UserError(f"the editor {editor!r} ended with {code}", cause="it may not have saved", hint=hint)
