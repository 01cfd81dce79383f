"""A repository with codex-autorunner: where it is, what its files say, how its last run ended."""

import os
from pathlib import Path

from msgspec.structs import replace

from bydawn.core import tasks, template
from bydawn.core.errors import UserError
from bydawn.core.history import History
from bydawn.core.keys import checked
from bydawn.dialects.codex_autorunner import DIALECT, config
from bydawn.dialects.codex_autorunner.config import CONFIG, NAME, Config
from bydawn.dialects.codex_autorunner.files import ERROR, State, run_id, state_of
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_autorunner import logs
from bydawn.operations.preconditions import checked_workspace
from bydawn.settings import yaml
from bydawn.store.ledger import records
from bydawn.store.registry import Standing
from bydawn.system.git import Git
from bydawn.system.reading import read_text

_MOST = 10**9  # a number of runs; more is a mistake


def root_of(path: Path | None) -> Path:
    """The git root above a folder."""
    here = checked_workspace(path or Path(), "give an existing folder: --repo PATH")
    git = Git(folder=here, seconds=20)
    if git.answer("rev-parse", "--is-inside-work-tree") == "true\n" and (
        top := git.answer("rev-parse", "--show-toplevel")
    ):
        return checked_workspace(Path(top.removesuffix("\n")))
    bare = is_git(here)
    raise UserError(
        f"{here} is in no git repository" if not bare else f"{here} is inside git's own files, or a bare repository",
        cause=f"{NAME} works in the root of one",
        hint=f"`{NAME} init --git-init` makes one" if not bare else "go to a folder with a work tree, or use --repo",
    )


def is_git(folder: Path) -> bool:
    """A bare repository, or a folder of git's own. Nothing of it is used, so its configuration may be read."""
    git = Git(folder=folder, seconds=20, config={"safe.bareRepository": "all"})
    return git.answer("rev-parse", "--is-inside-git-dir") == "true\n"


def config_of(root: Path) -> Config:
    """What `config.yml` says; refused with its line where it is wrong."""
    node = yaml.read(root, CONFIG)
    if node is None:
        raise UserError(f"{CONFIG} is missing", cause=f"{root} is not set up", hint=f"`{NAME} init` sets it up")
    found = config.read(checked(node, config.KEYS, "config.yml"))
    if "/" in found.binary:  # from the repository on, wherever the command was typed
        found = replace(found, binary=str(root / os.path.expanduser(found.binary)))  # noqa: PTH111 - as it is where there is no such user
    return found


def template_of(root: Path, found: Config) -> str | None:
    """The text of `prompt.txt`, if there is one and it can be used."""
    text = read_text(root, found.template) if found.template else None
    written = config.template(replace(found, extras=()), text)  # lines are counted as in the file
    if text is not None and (trouble := template.problem(written, must_say_work=False)):
        trouble = trouble.replace(f"OUTPUT:{found.prev_run_max_chars}", "PREV_RUN_OUTPUT")  # as the person wrote it
        raise UserError(
            f"{found.template} {trouble}",
            hint="its markers are {{TODO}}, {{PROGRESS}}, {{OPINIONS}} and {{PREV_RUN_OUTPUT}}",
        )
    return text


# -- how the last run ended --------------------------------------------------------------------------------------------


def newest(root: Path) -> Standing | None:
    """The loop with the last run of this repository."""
    found = [each for each in loops.in_workspace(DIALECT, root) if each.trouble is None]
    return max(found, key=lambda each: (each.alive, run_id(each.state), each.loop.created_at), default=None)


def before(root: Path) -> State:
    """The state of this repository, from our own record. Runs that only the log knows still used up their numbers."""
    standing = newest(root)
    mine, last = _of_loop(standing), 0 if standing and standing.alive else logs.last_run(root) or 0
    return State(last_run_id=last) if (mine.last_run_id or 0) < last <= _MOST else mine


def _of_loop(standing: Standing | None) -> State:
    if standing is None:
        return State()
    history = History(records(standing.folder))
    found = state_of(standing.loop, standing.state, history)
    if standing.state.stopped or standing.alive:
        return found
    return replace(found, status=ERROR, reason="its process was killed or crashed")


def standing(root: Path) -> State:
    """The state as it is now, with how many tasks are open."""
    found = before(root)
    try:
        text = read_text(root, config_of(root).todo)
    except UserError:
        text = None
    open_ = None if text is None else sum(not task.done for task in tasks.read(text).items)
    return replace(found, outstanding=open_)
