"""Is everything there that a run needs? What can be repaired without a person is, when they ask for it."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.core import task_folder
from bydawn.core.errors import UserError
from bydawn.core.loop import Sandbox
from bydawn.core.values import Act, Advice
from bydawn.dialects import follower
from bydawn.dialects.codex_loop import DIALECT, config, document, texts
from bydawn.dialects.codex_loop.config import (
    CODEX,
    CONFIG,
    DAEMON,
    FOLDER,
    KEYS,
    LOCK,
    SANDBOXES,
    SERVICE,
    STATE,
    Config,
    Execution,
)
from bydawn.dialects.written import Written
from bydawn.operations import doctor as native
from bydawn.operations import first_files
from bydawn.operations.agents import look
from bydawn.operations.amounts import plural
from bydawn.operations.checked_loop import checked_agent
from bydawn.operations.dialects import config as own_config
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.codex_loop import others, project
from bydawn.operations.leftovers import with_leftovers
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.settings import yaml
from bydawn.store import watches
from bydawn.store.ledger import Damaged
from bydawn.store.registry import Standing
from bydawn.system.git import Git
from bydawn.system.paths import open_parent, unlink_regular
from bydawn.system.reading import read_folder
from bydawn.system.writing import replace_text

_ROOM = 200 << 20  # bytes
_REPAIRED = "--repair"


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence about each thing that was looked at."""

    checked: list[str]
    fixed: list[str]
    warnings: list[str]
    errors: list[str]

    @property
    def sections(self) -> dict[str, list[str]]:
        return {name.capitalize(): getattr(self, name) for name in self.__struct_fields__}


class _Project(msgspec.Struct, frozen=True):
    root: Path
    repair: bool
    config: Config | None  # if it is valid
    loop: Standing | None

    @property
    def execution(self) -> Execution:
        return self.config.execution if self.config else Execution()


Rows = Iterator[tuple[str, str]]  # the section, and the sentence
Look = Callable[[_Project], Rows]


def errors(root: Path) -> list[str]:
    """Why no run can begin. Codex is not started for this, and whether the file is trusted is another question."""
    return _found(root, _NEEDED, repair=False).errors


def examine(root: Path, *, repair: bool = False) -> Findings:
    """Look at everything; without `repair` nothing is changed."""
    if repair:
        refuse_inside_a_round()
    return _found(root, (*_NEEDED, _login, _trust, _worktree, _state, _record, _others, _ignored, _disk), repair=repair)


def _found(root: Path, looks: Sequence[Look], *, repair: bool) -> Findings:
    rows: dict[str, list[str]] = {name: [] for name in Findings.__struct_fields__}
    valid, loop = None, project.standing_of(root)
    with suppress(UserError):  # which has a row of its own
        valid = project.config_of(root)
    for each in looks:
        try:
            for section, sentence in each(_Project(root, repair, valid, loop)):
                rows[section].append(sentence)
        except UserError as error:
            error.hint = texts.spoken(error.hint)
            rows["errors"].append(error.sentence)
    return Findings(**rows)


# -- what a run needs --------------------------------------------------------------------------------------------------


def _repository(at: _Project) -> Rows:
    try:
        project.refuse_without_commit(at.root)
    except UserError as error:
        if at.execution.worktree.enabled:
            raise
        yield "warnings", f"{error.what}: nothing is committed, and changes are what Codex says they are"
        return
    git = Git(folder=at.root, seconds=60)
    branch = (git.answer("symbolic-ref", "--quiet", "--short", "HEAD") or "").strip()
    yield "checked", f"git repository: {f'on branch {branch}' if branch else 'no branch is checked out'}"
    if not branch:
        yield "warnings", "no branch is checked out (detached HEAD): check one out before you merge the work"
    look = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
    if at.execution.worktree.enabled and git.without_filters().answer(*look):
        yield "warnings", "some changes are not committed: the worktree starts from the last commit, without them"


def _configuration(at: _Project) -> Rows:
    if at.config is None:
        node = yaml.read(at.root, CONFIG)
        wrong = config.problems(node) if node else [project.missing(at.root)]
        yield from (("errors", error.sentence) for error in wrong)
        return
    yield "checked", f"{CONFIG} is valid"
    yield from (("warnings", remark) for remark in at.config.remarks)
    missing = sum(":" not in at.config.where[key.path] and key.default is not None for key in KEYS)
    if missing:
        yield "checked", f"{CONFIG} leaves out {plural(missing, 'key')}, and their defaults hold"


def _tasks(at: _Project) -> Rows:
    if at.config is None:
        return
    folder = at.config.tasks.source_dir
    files = read_folder(at.root, folder) or {}
    if odd := next((name for name in files if not name.isprintable()), ""):
        raise UserError(f"{folder}/ has {odd!r}", cause="its name cannot be shown in one line", hint="rename it")
    tasks = task_folder.read(files, at.loop.state.settled.done if at.loop else ())
    if not tasks.items:
        hint = f"write {folder}/001-….md: what to do, and when it is done"
        raise UserError(f"{folder}/ has no tasks", cause="each Markdown file in it is one", hint=hint)
    if tasks.problem:
        raise UserError(f"{folder}/ {tasks.problem}", hint="fix that file")
    yield "checked", f"{plural(len(tasks.items), 'task')} in {folder}/"


def _program(at: _Project) -> Rows:
    checked_agent(CODEX, at.root, Sandbox(SANDBOXES[at.execution.sandbox]))
    yield from ()


_NEEDED = (_repository, _configuration, _tasks, _program)


# -- what a person should know -----------------------------------------------------------------------------------------


def _login(at: _Project) -> Rows:
    found = look(CODEX, at.root)
    if found.logged_in is False:
        yield "warnings", f"Codex says that no one is logged in: run `{found.login}`, unless it has a key of its own"
    elif found.path:
        tested = "" if found.is_tested else f" (tested with {found.tested}x)"
        yield "checked", f"Codex {found.version or 'of unknown version'}{tested}"


def _trust(at: _Project) -> Rows:
    if at.config and not own_config.is_trusted(DIALECT, at.root):
        hint = Advice(Act("trust", program=config.NAME), " shows them, and asks")
        yield "warnings", f"the commands in {CONFIG} do not run before you have agreed to them: {hint}"


def _worktree(at: _Project) -> Rows:
    if (loop := at.loop) is None or (tree := loop.loop.worktree) is None:
        return
    if Git(folder=at.root, seconds=20).answer("show-ref", "--verify", "--quiet", f"refs/heads/{tree.branch}") is None:
        if loop.state.round:
            yield "warnings", f"the branch {tree.branch} is gone: the next run begins a new one at the last commit"
    elif not os.path.isdir(tree.folder):  # noqa: PTH112 - one look
        yield "warnings", f"the worktree {tree.path} is gone: the next run makes it again from {tree.branch}"
    else:
        yield "checked", f"worktree {tree.path}, branch {tree.branch}"


def _state(at: _Project) -> Rows:
    """The file is a view: what others wrote there has no effect, and is not replaced by itself."""
    if (loop := at.loop) is None or loop.trouble or loop.alive:
        return
    written = Written(loop.folder.path)
    if STATE not in written or written.recognizes(STATE, follower.digest_at(at.root, STATE)):
        return
    if not at.repair:
        yield "warnings", f"{STATE} was changed or removed. It only shows what happened ({_REPAIRED} writes it again)"
        return
    if os.path.lexists(at.root / STATE):
        follower.keep(at.root, STATE)
    text = document.text_of(project.look(at.root).document)
    written.note({STATE: first_files.digest(text.encode())})
    replace_text(at.root / STATE, text, 0o644)
    yield "fixed", f"{STATE} is written again; the changed one is kept beside it"


def _record(at: _Project) -> Rows:
    """Who keeps it running, and what bydawn's own doctor says of its loop."""
    if watch := watches.of(loops.registry_of(), at.root):
        yield "checked", f"a {watch.kind} (process {watch.pid}) keeps it running"
    for loop in with_leftovers([at.loop] if at.loop else []):
        try:
            found = native.of_loop(loop)
        except Damaged:
            if not at.repair:
                raise
            yield "fixed", f"the record was damaged: {native.repair(loop).detail}"
            continue
        said = texts.spoken(found.detail.removeprefix(f"{loop.status}; "))
        yield "checked" if found.ok else "warnings", said + (f" → {texts.spoken(found.hint)}" if found.hint else "")


def _others(at: _Project) -> Rows:
    """Files of other programs, and of strict-agent-loop, in the same folder."""
    if os.path.lexists(at.root / FOLDER / "registry.json"):
        yield "checked", f"strict-agent-loop has files in {FOLDER}/, too; they are left alone"
    if (at.loop and at.loop.alive) or watches.of(loops.registry_of(), at.root):
        return
    others.refuse_live(at.root)
    if at.loop is None and at.config:
        others.refuse_begun(at.root, at.config.tasks.source_dir)
    for path in (LOCK, DAEMON, SERVICE):
        if follower.digest_at(at.root, path) is None:
            continue
        if at.repair:
            with open_parent(at.root, path) as (folder, name):
                unlink_regular(folder, name)
            yield "fixed", f"removed {path}, which names no process that lives"
        else:
            yield "warnings", f"{path} names no process that lives ({_REPAIRED} removes it)"


def _ignored(at: _Project) -> Rows:
    if not os.path.lexists(at.root / CONFIG):  # not a project yet
        return
    if at.repair:
        yield from (("fixed", f"{path} names {FOLDER}/") for path in project.ignore(at.root))
    yield from (
        ("warnings", f"{path} does not name {FOLDER}/ ({_REPAIRED} adds it)") for path in project.unignored(at.root)
    )


def _disk(at: _Project) -> Rows:
    free = shutil.disk_usage(at.root).free
    if free < _ROOM:
        yield "warnings", f"only {free >> 20} MB are free on the disk of {at.root}"
