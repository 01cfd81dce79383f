"""`init`: write what is missing, and agree to what it wrote."""

from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.dialects.codex_autorunner import DIALECT, texts
from bydawn.dialects.codex_autorunner.config import CONFIG, IGNORE, LOG, NAME, STATE, Config
from bydawn.dialects.codex_autorunner.files import State
from bydawn.operations import first_files
from bydawn.operations.dialects import config as own_config
from bydawn.operations.dialects.codex_autorunner import repository, running
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.store import lock
from bydawn.system.git import Git


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each file."""

    root: Path
    files: dict[str, str]
    remarks: tuple[str, ...] = ()


def init(path: Path, *, git_init: bool, force: bool) -> Begun:
    """Set up a repository; nothing that is there is replaced unless `force` asks for it."""
    refuse_inside_a_round()
    root, remarks = _root(path, git_init=git_init)
    if (standing := running.alive(root)) and lock.wait_for_the_dying(standing.folder.lock):
        raise UserError(
            f"{NAME} is running here", cause="its files are in use", hint=f"`{NAME} kill` ends it", exit_code=8
        )
    config = repository.config_of(root) if (root / CONFIG).exists() and not force else Config()
    documents = {
        config.todo: texts.TODO,
        config.progress: texts.PROGRESS,
        config.opinions: texts.OPINIONS,
        CONFIG: texts.CONFIG,
        IGNORE: texts.IGNORE,
    }
    # What happened here is never replaced, not even by force.
    records = {path: text for path, text in {STATE: State().text, LOG: ""}.items() if not (root / path).is_file()}
    fates = first_files.write(root, documents | records, force=force)
    if fates[CONFIG] in (first_files.Fate.CREATED, first_files.Fate.REPLACED):
        own_config.agree(DIALECT, root, [CONFIG])
    named = {path: str(fate) for path, fate in fates.items()} | {
        path: "left" for path in (STATE, LOG) if path not in records
    }
    return Begun(root=root, files=named, remarks=remarks)


def _root(path: Path, *, git_init: bool) -> tuple[Path, tuple[str, ...]]:
    """The repository that is meant, made if that was asked for."""
    if git_init and not path.exists():
        path.mkdir(parents=True)
    try:
        root = repository.root_of(path)
    except UserError:
        if not git_init or not path.is_dir() or repository.is_git(path):
            raise
        Git(folder=path, seconds=20, deaf=False).run("init", "--quiet")  # with the branch name that the person likes
        return repository.root_of(path), ("git repository made",)
    here = path.resolve()
    return root, () if here == root else (f"this is a folder of {root}, which is what is set up",)
