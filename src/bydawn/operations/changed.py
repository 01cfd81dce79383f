"""What a loop has changed in its folder since its first round, and how to look at it."""

import shlex
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import RoundStarted
from bydawn.core.values import LineCounts, Next
from bydawn.operations.amounts import plural
from bydawn.store.ledger import records
from bydawn.store.registry import Standing
from bydawn.system.git import Git
from bydawn.worktree.changes import lines_between

_SECONDS = 5.0  # for each look; better no figure than a long wait
_NAMED = 500  # paths that git is asked about by name; with more, about the whole folder


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between the tree that the first round found and the last one seen."""

    files: int
    lines_added: int
    lines_removed: int
    uncommitted: int | None  # of these files; None: not in a git repository
    untracked: int  # … and of those, the ones that git does not know
    before: str  # the two trees, in the loop's private git directory
    after: str

    @property
    def words(self) -> str:
        """`6 files, +44 -38 lines, not committed`"""
        lines = LineCounts(added=self.lines_added, removed=self.lines_removed)
        parts = [plural(self.files, "file"), lines.words]
        if self.uncommitted is not None:
            many = "not committed" if self.uncommitted == self.files else f"{self.uncommitted} of them not committed"
            parts.append(many if self.uncommitted else "committed")
        return ", ".join(parts)


def changed(standing: Standing) -> Changed | None:
    """None if nothing has changed, or if that cannot be found out quickly."""
    facts = (record.fact for record in records(standing.folder))
    first = next((fact.tree for fact in facts if isinstance(fact, RoundStarted)), "")
    before, after = first.partition("+")[0], standing.state.tree.partition("+")[0]
    if before in ("", after) or not standing.folder.git.is_dir():
        return None
    try:
        places = {"GIT_DIR": str(standing.folder.git)}
        git = Git(folder=Path(standing.loop.workspace), seconds=_SECONDS, places=places)
        files = lines_between(git, before, after)
        states = _uncommitted(Path(standing.loop.folder), [*files]) if files else None
    except UserError:  # the folder or a tree is gone, or git takes too long
        return None
    if not files:
        return None
    lines = LineCounts.total(files.values())
    return Changed(
        files=len(files),
        lines_added=lines.added,
        lines_removed=lines.removed,
        uncommitted=None if states is None else len(states),
        untracked=(states or []).count("??"),
        before=before,
        after=after,
    )


def _uncommitted(workspace: Path, paths: list[str]) -> list[str] | None:
    """What the person's own git says of each path that is not committed as it is; None without a repository."""
    git = Git(folder=workspace, seconds=_SECONDS, places={"GIT_LITERAL_PATHSPECS": "1"})
    found = git.without_filters().answer(
        *("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", "--"),
        *(paths if len(paths) <= _NAMED else ["."]),
    )
    return None if found is None else [row[:2] for row in found.split("\0")[:-1]][: len(paths)]


def look(standing: Standing, found: Changed, here: Path) -> Next:
    """A command that shows every change file by file, typed in this folder."""
    workspace = Path(standing.loop.folder)
    why = "what changed, file by file"
    if not found.uncommitted or found.uncommitted < found.files:  # git's own answer would leave something out
        trees = [found.before[:12], found.after[:12]]
        return Next(command=shlex.join(["git", f"--git-dir={standing.folder.git}", "diff", "--stat", *trees]), why=why)
    git = "git" if here.is_relative_to(workspace) else f"git -C {shlex.quote(str(workspace))}"
    return Next(command=(f"{git} status -s && " if found.untracked else "") + f"{git} diff --stat", why=why)
