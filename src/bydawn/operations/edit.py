"""Open documents and settings in the person's editor, and check what they saved."""

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
from bydawn.settings.setting import Layer
from bydawn.settings.trust import Trusts, powers_of
from bydawn.system.reading import read_inside

# What `edit WORD` opens: the setting that names the file, and the default file.
DOCUMENTS = {
    "todo": ("tasks", "TODO.md"),
    "tasks": ("tasks", "TODO.md"),
    "progress": ("progress", "PROGRESS.md"),
    "opinions": ("opinions", "OPINIONS.md"),
    "prompt": ("prompt", "PROMPT.md"),
}
_NEW_FILE = """\
# Settings of this project. `bydawn config show --origin` shows what is in effect; docs/settings.md explains it.
# agent = "cmd:./agent.sh"
# check = ["make test"]
# tasks = "TODO.md"
# rounds = 30
"""


def document(word: str, folder: Path) -> tuple[Path, str]:
    """The file that a word means in a folder, and the setting that could name it, if none does yet."""
    key, usual = DOCUMENTS[word]
    given = gather(folder)[key]
    name = given.value if isinstance(given.value, str) else usual
    if key == "prompt" and given.value is not None:
        if not name.startswith("@"):
            raise UserError(
                "the prompt is not in a file",
                cause=f"it is set directly in {given.where}",
                hint="edit the settings: `bydawn edit config`",
            )
        name = name[1:]
    read_inside(folder, name)  # refuses a folder, and anything outside the workspace
    return folder / name, "" if given.value is not None else key


def edit_config(folder: Path, trusts: Trusts, *, user: bool) -> tuple[Path, bool]:
    """Open the settings; what a person writes into their own file is thereby trusted."""
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
    """The edited text, None if unchanged. The editor gets a copy: it may stay open for hours."""
    copy = Path(tempfile.mkdtemp(prefix="bydawn-edit-")) / path.name
    copy.write_text(text, encoding="utf-8", newline="")
    try:
        open_editor(copy, path)
        left = copy.read_bytes() if copy.exists() else text.encode()
        result = left.decode()
    except UserError as error:
        if copy.exists() and copy.read_bytes() != text.encode():
            raise UserError(error.what, cause=error.cause, hint=f"your text is saved in {copy}") from None
        shutil.rmtree(copy.parent, ignore_errors=True)
        raise
    except UnicodeDecodeError as error:
        cause = f"invalid byte at offset {error.start}"
        raise UserError(
            "the saved text is not UTF-8", cause=cause, hint=f"your text is saved in {copy}; nothing else was changed"
        ) from None
    shutil.rmtree(copy.parent, ignore_errors=True)
    return None if result == text else result


def _save(file: files.File, before: str | None, text: str) -> None:
    if files.checked_text(file) != before:
        aside = Path(tempfile.mkdtemp(prefix="bydawn-edit-")) / file.path.name
        aside.write_text(text, encoding="utf-8", newline="")
        raise UserError(
            f"{file.path} changed while you were editing it",
            cause="perhaps an agent wrote to it; your text is not lost",
            hint=f"your text is saved in {aside}; compare the two, then edit again",
        )
    files.replace(file, text)


def keeping_trust(file: files.File, folder: Path, trusts: Trusts, change: Callable[[], None]) -> bool:
    """Make a change. A project file that was trusted before stays trusted. Is it trusted now?"""
    refuse_inside_a_round()
    if file.layer is not Layer.PROJECT:
        change()
        return True
    now = datetime.now(UTC)
    settings = gather(folder)
    before = powers_of(settings, now)
    # A file that cannot be read was never trusted.
    agreed = not settings.problems and (before.empty or trusts.covers(folder, before))
    change()
    after = powers_of(gather(folder), now)
    if agreed and not after.empty and not trusts.covers(folder, after):
        trust.agree(after, folder, trusts)
    return agreed or after.empty


def open_editor(path: Path, known_as: Path | None = None) -> None:
    """Open the editor and wait until it is closed."""
    refuse_inside_a_round()
    editor = os.environ.get("EDITOR", "").strip() or "vi"
    shown = shlex.quote(str(known_as or path))
    try:
        code = subprocess.run([*shlex.split(editor), str(path)]).returncode
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot start the editor {editor!r}",
            cause=getattr(error, "strerror", None) or str(error),
            hint=f"export EDITOR=nano, or open the file yourself: {shown}",
        ) from None
    if code:
        hint = f"look at the file: {shown}"
        raise UserError(f"the editor {editor!r} exited with code {code}", cause="it may not have saved", hint=hint)
