"""A project of codex-loop: where it is, what its file says, which loop is its own, and how that stands."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.history import History
from bydawn.core.keys import checked
from bydawn.core.redact import rewritten
from bydawn.core.text import plain, shorten
from bydawn.dialects.codex_loop import config, document
from bydawn.dialects.codex_loop.config import CONFIG, FOLDER, NAME, Config
from bydawn.operations import first_files, settings
from bydawn.operations.dialects import loops
from bydawn.operations.first_files import Fate
from bydawn.operations.preconditions import checked_workspace
from bydawn.settings import yaml
from bydawn.store.ledger import records
from bydawn.store.registry import Standing, slug
from bydawn.system.git import Git
from bydawn.system.reading import read_folder, read_inside, read_text
from bydawn.system.user_folders import folders_above

if TYPE_CHECKING:
    from bydawn.core.task_folder import FolderTask

T = TypeVar("T")
_IGNORED = f"{FOLDER}/"


def root_of(path: Path) -> Path:
    """The folder that a person named; for the current one, the project above it if it has no file of its own."""
    here = checked_workspace(path, "give an existing folder: --project-dir PATH")
    above = folders_above(here) if path == Path() else ()
    return next((each for each in above if os.path.lexists(each / CONFIG)), here)


def config_of(root: Path) -> Config:
    """What the file says; refused with its line where it is wrong."""
    node = yaml.read(root, CONFIG)
    if node is None:
        raise missing(root)
    found = checked(node, config.KEYS, CONFIG)
    read = config.read(found)
    return msgspec.structs.replace(read, remarks=(*found.remarks, *read.remarks))


def missing(root: Path) -> UserError:
    hint = f'`{NAME} init --prompt "…"` sets it up'
    return UserError(f"{CONFIG} is missing", cause=f"{root} is not set up", hint=hint)


def standing_of(root: Path) -> Standing | None:
    """The loop of a project: the newest one."""
    found = loops.registry_of().in_workspace(root)
    return next((each for each in reversed(found) if each.loop.dialect and each.loop.dialect.name == NAME), None)


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A project as it is now: from its ledger and its lock, never from the file that shows it."""

    root: Path
    document: document.Document
    standing: Standing

    def for_others(self, value: T) -> T:
        """Without secrets, and without what could steer a terminal."""
        hide = settings.secrets().knowing(self.standing.folder.secret_texts()).hide
        return rewritten(value, lambda text: hide(plain(text)))


def look(root: Path) -> Looked:
    standing = standing_of(root)
    if standing is None:
        hint = f"`{NAME} run` begins" if (root / CONFIG).exists() else f'`{NAME} init --prompt "…"` sets it up'
        raise UserError("nothing has run here yet", cause=f"{root} has no loop of {NAME}", hint=hint)
    if standing.trouble:
        raise standing.trouble
    found = document.document_of(standing.loop, standing.state, History(records(standing.folder)))
    return Looked(root=root, document=document.with_liveness(found, alive=standing.alive), standing=standing)


def tasks_of(root: Path, folder: str) -> "tuple[FolderTask, ...]":
    from bydawn.core import task_folder  # it brings a parser along

    return task_folder.read(read_folder(root, folder) or {}).items


def refuse_unknown_task(root: Path, standing: Standing | None, task: str, known: Iterable[str]) -> None:
    """One that has a file is known, too, before any iteration has worked on it."""
    folder = (standing and standing.loop.tasks) or config_of(root).tasks.source_dir
    every = {each.id: None for each in tasks_of(root, folder)} | dict.fromkeys(known)
    if task not in every:
        told = ", ".join(shorten(plain(each), 60) for each in [*every][:20]) or "none yet"
        hint = "give one of these, or leave --task-id out"
        raise UserError(f"there is no task {task!r}", cause=f"the tasks are: {told}", hint=hint)


def name_of(root: Path) -> str:
    """What people call the loop of a project."""
    standing = standing_of(root)
    if standing:
        return standing.loop.id
    try:
        return slug(config_of(root).project.name or root.name) or root.name
    except UserError:
        return root.name


def refuse_without_commit(root: Path) -> None:
    git = Git(folder=root, seconds=20)
    inside = git.answer("rev-parse", "--is-inside-work-tree") == "true\n"
    if not inside or git.answer("rev-parse", "--quiet", "--verify", "HEAD^{commit}") is None:
        raise UserError(
            "this repository has no commit yet" if inside else f"{root} is in no git repository",
            cause="Codex works on a branch of its own, which starts from a commit",
            hint=f"{'' if inside else '`git init`, then '}`git add -A && git commit --allow-empty -m Start`",
        )


def unignored(root: Path) -> dict[str, str]:
    """The files of git that do not name our folder yet, and what they should say: `.gitignore` and `info/exclude`."""
    exclude = Git(folder=root, seconds=20).answer("rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
    found = {}
    for path in (".gitignore", exclude.removesuffix("\n")) if exclude else ():
        folder, name = (root, path) if path == ".gitignore" else (Path(path).parent, Path(path).name)
        text = (read_text(folder, name) if folder.is_dir() else None) or ""
        if not {line.strip().strip("/") for line in text.splitlines()} & {FOLDER}:
            newline = "\r\n" if "\r\n" in text else "\n"
            found[path] = f"{text}{newline if text and not text.endswith(newline) else ''}{_IGNORED}{newline}"
    return found


def ignore(root: Path) -> dict[str, Fate]:
    """Have git ignore our folder; what became of each file."""
    return update(root, unignored(root))


def update(root: Path, texts: Mapping[str, str]) -> dict[str, Fate]:
    """Write files that only grow, without a copy of what was there."""
    places = {path: first_files.reached(root, path) for path in texts}
    known = {path: first_files.digest(read_inside(*place) or b"") for path, place in places.items()}
    return first_files.write(root, texts, known=known)
