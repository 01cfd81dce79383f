"""A work tree of the repository, beside it and with a branch of its own: making it, finding it again, removing it."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.loop import Worktree
from bydawn.system.git import Git
from bydawn.system.paths import NEW_FILE, open_fd, open_parent, open_regular, remove_folder
from bydawn.system.writing import write_all
from bydawn.worktree.changes import KEPT_AT_MOST
from bydawn.worktree.commits import Place

SECONDS = 900.0  # a checkout of many files, or of files that a filter has to fetch
INCLUDED = ".worktreeinclude"  # names ignored files that every work tree needs, as other tools read it
_COPIED = 2_000  # files
_UNFINISHED = "initializing"  # git's own mark on a work tree that it has not filled yet
_UNBORN = "0" * 40


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """A work tree that git knows."""

    path: str
    head: str
    branch: str  # empty if none is checked out
    locked: str | None  # why, if it is


def repository(workspace: Path) -> Place:
    """The repository that can have work trees. Raises `UserError`."""
    what = "--worktree needs a git repository with a commit"
    place = Place.around(workspace)
    if place is None:
        git = Git(folder=workspace, seconds=20, trusting=True)
        bare = git.answer("rev-parse", "--is-bare-repository") == "true\n"
        cause = "this repository is bare: no files are checked out" if bare else f"{workspace} is in no repository"
        hint = "run this in a clone of it" if bare else "run `git init` and commit your files, or drop --worktree"
        raise UserError(what, cause=cause, hint=hint)
    if place.git.answer("rev-parse", "--quiet", "--verify", "HEAD^{commit}") is None:
        cause = "it has no commit yet, so a worktree would be empty"
        raise UserError(what, cause=cause, hint="commit your files first, or drop --worktree")
    return msgspec.structs.replace(place, git=msgspec.structs.replace(place.git, seconds=SECONDS))


def is_name(git: Git, branch: str) -> bool:
    """Does git accept it as the name of a branch?"""
    return (git.answer("check-ref-format", "--branch", branch) or "").strip() == branch


def exists(git: Git, branch: str) -> bool:
    return git.answer("show-ref", "--verify", "--quiet", f"refs/heads/{branch}") is not None


def has(git: Git, revision: str, path: str) -> bool:
    """Is a file or folder in a commit?"""
    return git.answer("cat-file", "-e", f"{revision}:{path.rstrip('/')}") is not None


def attached(git: Git) -> list[Attached]:
    found = []
    for block in os.fsdecode(git.run("worktree", "list", "--porcelain", "-z")).split("\0\0")[:-1]:
        rows = {word: rest for word, _, rest in (row.partition(" ") for row in block.split("\0"))}
        branch = rows.get("branch", "").removeprefix("refs/heads/")
        row = Attached(path=rows["worktree"], head=rows.get("HEAD", _UNBORN), branch=branch, locked=rows.get("locked"))
        found.append(row)
    return found


def refuse_taken(git: Git, tree: Worktree) -> Attached | None:
    """The work tree, if it is there; raises `UserError` if its folder or its branch is used for something else."""
    known = attached(git)
    mine = next((each for each in known if each.path == tree.path), None)
    other = next((each for each in known if each.branch == tree.branch and each is not mine), None)
    if other and Path(other.path).is_dir():
        raise UserError(
            f"the branch {tree.branch} is checked out in {other.path}",
            cause="git lets a branch be in one worktree only",
            hint="check out another branch there, or give another name: --worktree=BRANCH",
        )
    there = Path(tree.path)
    if mine and mine.locked == _UNFINISHED:
        return mine
    if mine and there.is_dir():
        if mine.branch != tree.branch or mine.head == _UNBORN:
            now = f"{mine.branch} is checked out there" if mine.branch else "no branch is checked out there"
            raise UserError(
                f"the worktree {tree.path} is not on the branch {tree.branch}",
                cause="that branch was deleted" if mine.branch == tree.branch else now,
                hint=f"run `git switch {tree.branch}` there, then try again",
            )
        return mine
    if os.path.lexists(there) and (not there.is_dir() or any(there.iterdir())):
        cause = "it is not a worktree of this repository"
        raise UserError(f"{there} already exists", cause=cause, hint="move it away, or use --worktree=BRANCH")
    if mine and mine.locked is not None:
        cause = f"it is locked ({mine.locked or 'no reason given'}), so it may be on a disk that is not mounted"
        raise UserError(
            f"the worktree {there} is not there", cause=cause, hint=f"mount it, or run `git worktree unlock {there}`"
        )
    return mine


def attach(git: Git, tree: Worktree) -> str:
    """Make the work tree, unless it is there; what was done, in words. A second try replaces what a crash left."""
    mine, there = refuse_taken(git, tree), Path(tree.path)
    if mine and mine.locked == _UNFINISHED:  # only git has written there
        git.run("worktree", "unlock", tree.path)
        remove_folder(there)
    elif mine and there.is_dir():
        return ""
    if mine:
        git.run("worktree", "remove", tree.path)  # its folder is gone
    there.parent.mkdir(parents=True, exist_ok=True)
    if exists(git, tree.branch):
        git.run("worktree", "add", "--quiet", tree.path, tree.branch)
        return f"on the branch {tree.branch}, which exists already"
    git.run("worktree", "add", "--quiet", "--no-track", "-b", tree.branch, tree.path, "HEAD")
    return f"on the new branch {tree.branch}, from the last commit"


def leads_elsewhere(place: Place, tree: Worktree) -> bool:
    """Has someone changed its `.git`, so that git would take another repository's word, and run its filters?"""
    found = Place.around(Path(tree.path))
    return found is None or found.directory.parent.resolve() != (place.common / "worktrees").resolve()


def lacks(tree: Worktree, commit: str) -> bool:
    """Is a commit not among those that the work tree is built on?"""
    git = Git(folder=Path(tree.path), seconds=SECONDS)
    return bool(commit) and git.answer("merge-base", "--is-ancestor", commit, "HEAD") is None


def is_dirty(tree: Worktree) -> bool:
    """Is there anything in it that no commit has?"""
    git = Git(folder=Path(tree.path), seconds=SECONDS, deaf=False, trusting=True)
    look = ("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    return bool(git.without_filters().run(*look))


# -- files that git does not have --------------------------------------------------------------------------------------


def include(place: Place, tree: Worktree) -> tuple[int, list[str]]:
    """Copy the ignored files that `.worktreeinclude` names: how many, and which were left out.

    Regular files only, through no link, and none over another.
    """
    if not Path(place.top, INCLUDED).is_file():
        return 0, []
    git = msgspec.structs.replace(place.git, folder=Path(place.top))
    named = git.run("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDED}")
    ignored = _ignored(git, named) if named else []
    # There, too: `.gitignore` may be newer than the last commit, and what git does not ignore there is committed.
    safe = {*_ignored(msgspec.structs.replace(git, folder=Path(tree.path)), b"\0".join(ignored))} if ignored else set()
    left = [os.fsdecode(path) for path in ignored if path not in safe]
    ignored = [path for path in ignored if path in safe]
    left += [os.fsdecode(path) for path in ignored[_COPIED:]]
    copied = 0
    for path in map(os.fsdecode, ignored[:_COPIED]):
        try:
            copied += _copy(place.top, tree.path, path)
        except OSError:
            left.append(path)
    return copied, left


def _ignored(git: Git, paths: bytes) -> list[bytes]:
    with suppress(UserError):  # it fails if it ignores none of them
        return git.run("check-ignore", "-z", "--stdin", stdin=paths).split(b"\0")[:-1]
    return []


def _copy(top: str, to: str, path: str) -> bool:
    """All or nothing; was there no such file yet?"""
    with open_regular(top, path) as file:
        mode, data = os.fstat(file.fileno()).st_mode & 0o777, file.read(KEPT_AT_MOST + 1)
    if len(data) > KEPT_AT_MOST:
        raise OSError(f"{path} is too big")
    with open_parent(to, path, make=True) as (folder, name):
        draft = f".{name[:200]}.bydawn-copy"
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)  # of a start that was killed
        with open_fd(draft, NEW_FILE, mode, folder=folder) as fd:
            write_all(fd, data)
        is_new = not _is_there(folder, name)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder) if is_new else os.unlink(draft, dir_fd=folder)
        return is_new


def _is_there(folder: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        os.lstat(name, dir_fd=folder)
        return True
    return False


def absent(place: Place, tree: Worktree) -> list[str]:
    """The names at the top of the repository that are not in the work tree, because git does not have them."""
    git = msgspec.structs.replace(place.git, folder=Path(place.top))
    rows = os.fsdecode(git.run("ls-files", "-z", "--others", "--directory", "--no-empty-directory")).split("\0")[:-1]
    names = dict.fromkeys(row.split("/")[0] for row in rows)
    return [name for name in names if name != ".bydawn" and not os.path.lexists(Path(tree.path, name))]


# -- the end -----------------------------------------------------------------------------------------------------------


def in_the_way(place: Place, branch: str) -> list[str]:
    """Files that a merge of the branch would change and that are not committed as they are, so that git refuses."""
    git = msgspec.structs.replace(place.git, folder=Path(place.top))
    theirs = git.run("diff", "--name-only", "-z", "--no-renames", f"HEAD...refs/heads/{branch}").split(b"\0")
    ours = msgspec.structs.replace(place, git=git).status()[0]
    return [os.fsdecode(path) for path in theirs if path in ours]


def unmerged(git: Git, branch: str) -> int:
    """How many commits are only on this branch."""
    others = ("--not", f"--exclude={branch}", "--branches", "--remotes", "HEAD")
    return int(git.run("rev-list", "--count", f"refs/heads/{branch}", *others))


def remove(git: Git, tree: Worktree) -> str:
    """Never by force: git, too, refuses if anything would be lost. What is left, if anything is."""
    if any(each.path == tree.path for each in attached(git)):
        git.run("worktree", "remove", tree.path)
    kept = exists(git, tree.branch) and git.answer("branch", "--delete", "--quiet", tree.branch) is None
    for folder in Path(tree.path).parents[:2]:
        with suppress(OSError):  # others are in it
            folder.rmdir()
    return f"only the branch {tree.branch} is left: it is not merged into the current branch" if kept else ""
