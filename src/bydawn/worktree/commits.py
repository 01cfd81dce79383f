"""Commits in the person's own repository, with their settings and hooks: what rounds changed, and nothing else.

`git commit --only` leaves what the person has staged as it is.
"""

import os
import shlex
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core.commits import LOOP, ROUND
from bydawn.core.digests import sha256
from bydawn.core.errors import UserError
from bydawn.core.facts import COMMIT, CommitEnded
from bydawn.core.layout import hook_output
from bydawn.core.loop import Loop
from bydawn.core.outcome import Ending, in_words
from bydawn.core.ports import HookRunner
from bydawn.core.state import Span
from bydawn.system import kernel
from bydawn.system.git import Git, program
from bydawn.system.reading import read_regular
from bydawn.system.writing import replace_private, write_private
from bydawn.worktree.changes import KEPT_AT_MOST, shown
from bydawn.worktree.nested import FIELDS_BEFORE_PATH

SECONDS = 120.0
DIRTY = "dirty"  # in a round's folder: paths that were not committed as they were when it began
STATUS = ("--porcelain=v2", "-z", "--branch", "--no-renames", "--untracked-files=all", "--ignore-submodules=all")
HARMLESS = ("branch.", "remote.", "user.")  # settings that run nothing in a commit
WAITS = (0, 0.5, 2)  # seconds, while another git holds the index
BUSY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}
BOT = {"NAME": "bydawn", "EMAIL": "bydawn@localhost"}
IN_PEACE = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false")  # nothing goes on later
NO_QUESTIONS = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "SSH_ASKPASS": "false", "GIT_PAGER": "cat"}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The repository around a workspace."""

    git: Git
    top: str
    directory: Path  # … of git, for this work tree, …
    common: Path  # … and for all work trees of the repository
    prefix: str  # from the top to the workspace

    @classmethod
    def around(cls, root: Path) -> "Place | None":
        git = Git(folder=root, seconds=SECONDS, deaf=False, trusting=True)
        questions = ("--show-toplevel", "--git-dir", "--git-common-dir", "--show-prefix")
        ask = ("rev-parse", "--path-format=absolute")
        found = git.answer(*ask, *questions)
        if found is None:
            return None
        rows = found.split("\n")[:-1]
        if len(rows) > len(questions):  # a folder has a line break in its name
            rows = [(git.answer(*ask, each) or "\n")[:-1] for each in questions]
        top, directory, common, prefix = rows
        return cls(git=git, top=top, directory=Path(directory), common=Path(common), prefix=prefix)

    def status(self, *, trusting: bool = False) -> "tuple[dict[bytes, bytes], bytes]":
        """What is not committed as it is, each path with its letter, and the branch."""
        git = self.git if trusting else self.git.without_filters()
        rows = git.run("status", *STATUS, "--", ".").split(b"\0")[:-1]
        paths = {row.split(b" ", FIELDS_BEFORE_PATH[row[:2]])[-1]: row[:1] for row in rows if row[:2] != b"# "}
        return paths, next((row.removeprefix(b"# branch.head ") for row in rows if b" branch.head " in row), b"")

    def busy(self, branch: bytes) -> str:
        """Why nothing should be committed right now."""
        if found := next((words for name, words in BUSY.items() if (self.directory / name).exists()), ""):
            return f"git is in the middle of {found}"
        return "no branch is checked out (detached HEAD)" if branch == b"(detached)" else ""


def trouble(root: Path) -> str:
    """Why nothing can be committed in a folder, if that is known before anything starts."""
    place = Place.around(root)
    if place is None:
        return "this folder is not in a git work tree"
    is_ignored = place.prefix and place.git.answer("check-ignore", "-q", "--", str(root)) is not None
    return "git ignores this folder" if is_ignored else place.busy(place.status()[1])


class GitCommits(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The commits of one run; the caller holds the loop's lock."""

    loop: Loop
    private: Path  # the loop's private git directory
    told: bool  # has a person seen that git's hooks or settings changed?
    folder: Callable[[int], str]  # of a round
    changed: Callable[[str, str], set[bytes]]  # paths that differ between two kept trees
    runner: HookRunner
    sleep: Callable[[float, Callable[[], bool]], None]
    is_secret: Callable[[bytes], bool]

    @cached_property
    def _documents(self) -> tuple[str, ...]:
        names = filter(None, (self.loop.tasks, self.loop.progress, self.loop.opinions))
        return tuple(f"{os.path.normpath(name)}/" for name in names)

    @cached_property
    def _place(self) -> Place:
        if place := Place.around(Path(self.loop.folder)):
            return place
        raise UserError("this folder is not in a git work tree")

    def look(self) -> None:
        """Before any code of the workspace runs, a check's included: what is agreed to from here on."""
        with suppress(UserError):
            assert self._agreed is not None  # noqa: S101 - it is remembered

    def note(self, round_: int, spans: Sequence[Span], tree: str) -> None:
        """Without this list nothing of the round is committed, so it may fail."""
        with suppress(UserError, OSError):
            if not self.loop.worktree and not self._distrusted():  # everything in a worktree is committed
                theirs = self._place.status(trusting=True)[0].keys() - self._sorted(spans, tree)[1]
                write_private(f"{self.folder(round_)}/{DIRTY}", b"\0".join(theirs))

    def commit(
        self, round_: int, message: str, spans: Sequence[Span], tree: str, urgent: Callable[[], bool]
    ) -> CommitEnded:
        self._release()
        if why := self._distrusted():  # even a look at the files could run a filter
            return CommitEnded(round=round_, failure=why, needs_person=True)
        status, branch = self._place.status(trusting=True)
        theirs, ours = self._sorted(spans, tree) if not self.loop.worktree else (set[bytes](), {*status})
        wanted = sorted(ours & status.keys())
        secrets = [path for path in wanted if self._holds_secret(path)]
        wanted = [path for path in wanted if path not in secrets]
        named = CommitEnded(
            round=round_,
            left_out=tuple(shown(path) for path in sorted(theirs & status.keys())),
            secrets=tuple(map(shown, secrets)),
            files=len(wanted),
            remark=self._strangers(status, wanted, spans),
        )
        if not wanted:
            return replace(named, commit=self._made_before(round_))
        if why := self._place.busy(branch) or self._astray(branch):
            return replace(named, failure=why, needs_person=self.loop.worktree is not None)
        new = [path for path in wanted if status[path] == b"?"]
        return self._run(round_, message, wanted, new, named, urgent)

    def _strangers(self, status: dict[bytes, bytes], wanted: Sequence[bytes], spans: Sequence[Span]) -> str:
        """New files in a worktree that no round has made: a check may have left them, and they would be merged."""
        new = [path for path in wanted if status[path] == b"?"] if self.loop.worktree else []
        if not new or any(not span.before for span in spans):
            return ""
        prefix = os.fsencode(self._place.prefix)
        made = {prefix + path for span in spans for path in self.changed(span.before, span.after)}
        names = [shown(path) for path in new if path not in made]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"with {names[0]}{more}, made by no round (see .gitignore)" if names else ""

    def _astray(self, branch: bytes) -> str:
        """Why a commit would not be found on the loop's own branch."""
        ours = self.loop.worktree.branch if self.loop.worktree else os.fsdecode(branch)
        return f"{os.fsdecode(branch)} is checked out instead of {ours}" if os.fsdecode(branch) != ours else ""

    def _sorted(self, spans: Sequence[Span], tree: str) -> tuple[set[bytes], set[bytes]]:
        """What rounds changed, from the top on: paths that someone else had changed too, and the others."""
        changed, theirs, last = set[bytes](), set[bytes](), ""
        prefix = os.fsencode(self._place.prefix)
        for span in spans:
            now, between = self.changed(span.before, span.after), self.changed(last or span.before, span.before)
            theirs |= (now & self._dirty(span.first, now)) | (changed & between)
            changed |= now
            last = span.after
        theirs |= changed & self.changed(last or tree, tree)
        theirs = {path for path in theirs if not f"{os.fsdecode(path)}/".startswith(self._documents)}
        return {prefix + path for path in theirs}, {prefix + path for path in changed - theirs}

    def _dirty(self, round_: int, otherwise: set[bytes]) -> set[bytes]:
        prefix = os.fsencode(self._place.prefix)
        try:
            paths = Path(self.folder(round_), DIRTY).read_bytes().split(b"\0")
        except FileNotFoundError:
            return otherwise
        return {path.removeprefix(prefix) for path in paths}

    def _holds_secret(self, path: bytes) -> bool:
        file, content = Path(self._place.top, os.fsdecode(path)), b""
        with suppress(OSError):
            content = os.fsencode(file.readlink()) if file.is_symlink() else read_regular(file, KEPT_AT_MOST) or b""
        return self.is_secret(path) or self.is_secret(content)

    def _made_before(self, round_: int) -> str:
        """The commit that was made just before a crash; or, in a worktree, by the agent itself; if there is one."""
        ours = ("--no-show-signature", f"--grep=^{LOOP}: .*/{self.loop.uid}$", f"--grep=^{ROUND}: {round_}$")
        since = f"--since=@{self.loop.created_at.timestamp() - 86400:.0f}"  # no need to search years of history
        found = (self._place.git.answer("log", "-1", "--format=%H", "--all-match", since, *ours) or "").strip()
        if found or not self.loop.worktree:
            return found
        others = ("--not", f"--exclude={self.loop.worktree.branch}", "--branches", "--remotes")
        return (self._place.git.answer("rev-list", "-1", "HEAD", *others) or "").strip()

    # -- the commit itself -----------------------------------------------------------------------------------------

    def _run(
        self,
        round_: int,
        message: str,
        wanted: list[bytes],
        new: list[bytes],
        named: CommitEnded,
        urgent: Callable[[], bool],
    ) -> CommitEnded:
        file, paths, added = (self.private / name for name in ("commit-message", "commit-paths", "commit-added"))
        replace_private(file, message.encode(errors="replace"))
        replace_private(paths, _pathspecs(wanted))
        replace_private(added, _pathspecs(new))
        git = [program(Path(self.loop.folder)), *IN_PEACE]
        add = shlex.join([*git, "add", "--intent-to-add", *_from(added)])
        commit = shlex.join([*git, "commit", "--only", "--quiet", "--no-edit", "--cleanup=verbatim", f"--file={file}"])
        command = (f"{add} && " if new else "") + f"exec {commit} {shlex.join(_from(paths))}"
        new_here = "_identity" not in vars(self)
        identity, failure, ran = self._identity, f"another git holds {self._lock}, or left it behind", False
        for seconds in WAITS:
            if seconds:
                self.sleep(seconds, urgent)
            if self._lock.exists() or urgent():
                continue
            ran = True
            self._began.touch(0o600)
            exit_ = self.runner.run(COMMIT, command, round_, NO_QUESTIONS | identity, urgent)
            if exit_.ending is not Ending.EXIT or exit_.signal:  # it could not clean up
                self._release()
            self._began.unlink(missing_ok=True)
            if exit_.went_well:
                if len(self._agreed) > 1:  # a hook may have committed more than the index knows
                    self._place.git.answer("reset", "--quiet", *_from(paths))
                id_ = self._place.git.run("rev-parse", "HEAD").decode().strip()
                remark = "as bydawn <bydawn@localhost>, because git has no user.name and user.email here"
                return replace(named, commit=id_, remark=remark if identity and new_here else named.remark)
            failure = in_words(exit_, self.loop.timeouts.hook)
            if exit_.ending is not Ending.EXIT or not self._lock.exists():
                break
        if new and ran:
            self._place.git.answer("reset", "--quiet", *_from(added))
        return replace(named, failure=failure, output=hook_output(COMMIT) if ran else None)

    @cached_property
    def _identity(self) -> dict[str, str]:
        """Variables for a person whom git does not know."""
        if all(self._place.git.answer("var", f"GIT_{role}_IDENT") for role in ("AUTHOR", "COMMITTER")):
            return {}
        return {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in BOT.items()}

    # -- locks -----------------------------------------------------------------------------------------------------

    @property
    def _lock(self) -> Path:
        return self._place.directory / "index.lock"

    @property
    def _began(self) -> Path:
        return self.private / "commit-began"

    def _release(self) -> None:
        """Remove what a commit of ours that was killed has locked. It is ours if we were committing when it was made,
        and no git is at work there."""
        with suppress(OSError):
            began = self._began.stat().st_mtime_ns
            for lock in self._locks() if not kernel.is_at_work("git", self._place.top) else ():
                if lock.stat().st_ctime_ns >= began:
                    lock.unlink()
            self._began.unlink()

    def _locks(self) -> list[Path]:
        """In git's directory for this work tree, and in no other's: another git may be at work there."""
        place = self._place
        if place.directory == place.common:
            others = place.common / "worktrees"
            return [path for path in place.common.rglob("*.lock") if others not in path.parents]
        ref = (place.directory / "HEAD").read_text().strip().removeprefix("ref: ")
        found = [*place.directory.rglob("*.lock"), place.common / f"{ref}.lock"]
        return [path for path in found if path.exists()]

    # -- what a commit runs ----------------------------------------------------------------------------------------

    @cached_property
    def _agreed(self) -> dict[str, str]:
        """Git's hooks and settings as they were when a person started the loop, or last saw that they changed.

        So this has to be asked first.
        """
        note = self.private / "commit-hooks"
        if not self.told and note.is_file():
            return msgspec.json.decode(note.read_bytes(), type=dict[str, str])
        found = dict[str, str]()
        with suppress(UserError):
            found = self._runs()
        replace_private(note, msgspec.json.encode(found))
        return found

    def _distrusted(self) -> str:
        """A commit runs hooks and filters. An agent, or a check, could have written those."""
        if Place.around(Path(self.loop.folder)) != self._place:
            return "git finds another repository here than when the run began, and a commit would run its hooks"
        now = self._runs()
        changed = [name for name in sorted({*now, *self._agreed}) if now.get(name) != self._agreed.get(name)]
        return f"git's {changed[0]} has changed since the loop began, and a commit would run it" if changed else ""

    def _runs(self) -> dict[str, str]:
        """Digests of the settings and hooks that a commit may run."""
        rows = os.fsdecode(self._place.git.run("config", "--list", "-z", "--show-origin")).split("\0")
        settings = [
            row for origin, row in zip(rows[::2], rows[1::2], strict=False) if not origin.startswith("command line")
        ]
        paths = [row.partition("\n")[2] for row in settings if row.startswith("core.hookspath\n")]
        hooks = Path(self._place.top, Path(paths[-1]).expanduser()) if paths else self._place.common / "hooks"
        found = {"configuration": sha256(repr([row for row in settings if not row.startswith(HARMLESS)]).encode())}
        for hook in hooks.iterdir() if hooks.is_dir() else ():
            if hook.suffix != ".sample" and hook.is_file() and os.access(hook, os.X_OK):
                found[f"{hook.name} hook"] = sha256(hook.read_bytes())
        return {name: digest.hexdigest() for name, digest in found.items()}


def _pathspecs(paths: Collection[bytes]) -> bytes:
    return b"".join(b":(top,literal)" + path + b"\0" for path in paths)


def _from(file: Path) -> tuple[str, str]:
    return (f"--pathspec-from-file={file}", "--pathspec-file-nul")
