"""The work tree, kept in a private git directory so that the user's own git is never touched.

The private index always equals the last snapshot. One look therefore shows what changed since then, and an unchanged
tree needs no other call.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import msgspec

from bydawn.core.digests import sha1
from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.globs import matches
from bydawn.core.layout import ref_of
from bydawn.core.ports import Difference
from bydawn.core.values import Act, Advice, LineCounts, Snapshot
from bydawn.system.git import Git, GitFailed
from bydawn.system.reading import FileTexts, real_inside
from bydawn.system.writing import make_private, replace_private, replace_unchanged, replacing, sync, write_all
from bydawn.worktree import nested
from bydawn.worktree.changes import Differences, Listing, lines_between, shown, split
from bydawn.worktree.documents import Documents
from bydawn.worktree.packing import pack
from bydawn.worktree.protected import ProtectedFiles
from bydawn.worktree.trees import Trees

MANY = 1024 * 1024  # bytes of an index, about 10,000 files: then two calls of git are faster than one
STORED_PER_CALL = 20_000  # so that the time limit means "git hangs" and never "this is a big tree"
PACKED_FROM = 1_000
ATTEMPTS = 3
COUNT_SECONDS = 5.0  # better no figure than a long wait

_PYTHON = ("bin/*", "lib/python*/site-packages/*.pth", "lib/python*/site-packages/*customize.py")
_TOOLS = {".venv": _PYTHON, "venv": _PYTHON, "node_modules": (".bin/*",), "vendor": ("bin/*",)}
_TOOLS |= dict.fromkeys(
    ("test", "tests", "spec", "__tests__"), ("**/*.*",)
)  # tests that git ignores are in no tree either
_MOST_TOOLS = 1_000

# The private `info/attributes` has the last word: bytes stay as they are and no filter runs. The encoding is
# reset with `!` because git crashes on `-working-tree-encoding`.
ATTRIBUTES = b"* -text -crlf -eol -ident -filter !working-tree-encoding\n"

# A killed git leaves these behind. The holder of the loop's lock is alone here, so they can only be stale.
LEFTOVERS = ("*.lock", "objects/tmp_*", "objects/pack/tmp_*", "objects/pack/.tmp-*")


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """The user's repository around the workspace; without one, `top` is the workspace itself."""

    top: Path
    prefix: str = ""  # from the top to the workspace: "" or "a/b/"
    common: Path | None = None
    objects: Path | None = None  # if their format matches ours

    @classmethod
    def around(cls, root: Path, git: Git) -> "Repository":
        """Ask git where we are; a repository it cannot read counts as none."""
        questions = ("--show-toplevel", "--git-common-dir", "--show-object-format")
        found = (git.answer("rev-parse", "--path-format=absolute", *questions) or "").split("\n")[:-1]
        if len(found) != len(questions) or not root.is_relative_to(found[0]):
            return cls(top=root)
        top, common, format_ = Path(found[0]), Path(found[1]), found[2]
        # A folder ignored by its repository is not part of it; under its rules nothing would ever be kept.
        if root != top and git.answer("check-ignore", "-q", "--", str(root)) is not None:
            return cls(top=root)
        prefix = "" if root == top else f"{root.relative_to(top)}/"
        objects = common / "objects" if format_ == "sha1" else None
        return cls(top=top, prefix=prefix, common=common, objects=objects)

    @property
    def exclude(self) -> Path | None:
        return self.common and self.common / "info" / "exclude"


class GitWorkspace(FileTexts):
    """A loop's folder and the private git directory that remembers it; the caller holds the loop's lock."""

    _repository: Repository
    _git: Git
    _kept: Trees
    _differences: Differences
    _tree: str | None
    _packing: bool  # are many new files packed at once?

    def __init__(
        self,
        root: Path,
        private: Path,
        documents: Sequence[str] = (),
        *,
        protect: Sequence[str] = (),
        ours: Callable[[], Sequence[str]] = tuple,
        seen: Snapshot | None = None,
        seconds: float = 120.0,
    ) -> None:
        super().__init__(root)
        self._private, self._seconds = private, seconds
        self._documents = Documents(root, documents, seen)
        # What bydawn itself writes is not the agent's work, and in no snapshot.
        self._ours = ours
        self._protected = ProtectedFiles(root, private / "bydawn-protected", protect, ours)
        self._prepare()

    def snapshot(self) -> Snapshot:
        """Store the work tree as it is now."""
        if self._repository.top != self._root and os.path.lexists(self._root / ".git"):
            self._prepare()  # the folder became its own repository
        before = self._tree
        listing = self._store_differences()
        if self._tree is None:
            self._tree = self._write_tree()
        suffix = nested.fingerprint(self._git, self._root, listing.nested)
        work = self._documents.taken_from(self._tree, self._kept)
        tree, work = self._tree + suffix, work and work + suffix
        if note := self._protected.note(self._tree, self._indexed):  # not work: git ignores these files
            tree, work = f"{tree if suffix else tree + '+'}+{note}", work or tree
        changes = listing.changes(None if listing.has_lost else self._lines_since(before))
        return Snapshot(tree=tree, work=work, changes=changes)

    def _lines_since(self, before: str | None) -> LineCounts | None:
        """The lines that differ from the last snapshot; None if that is unknown, or would take long."""
        if before is None or self._tree is None:
            return None
        if before == self._tree:
            return LineCounts()
        git = msgspec.structs.replace(self._git, seconds=COUNT_SECONDS)
        with suppress(UserError):
            return LineCounts.total(lines_between(git, before, self._tree).values())
        return None

    def keep(self, name: str, tree: str) -> None:
        """Make a tree durable, and findable by a name (`after/7`).

        A ref is a short file. We write it as git does, by way of its lock, which a killed run may have left: that
        saves a call of git in every round.
        """
        ref = self._private / ref_of(name)
        try:
            make_private(ref.parent)
            with replacing(ref, f"{ref}.lock", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) as fd:
                write_all(fd, f"{tree.partition('+')[0]}\n".encode())
                os.fsync(fd)
        except OSError as error:
            hint = Advice("check free disk space and permissions, then run ", Act("resume"))
            raise OwnFailure(f"cannot write {ref}", cause=str(error.strerror), hint=hint) from error

    def watch(self) -> None:
        """Remember the protected files as they are now."""
        self._protected.watch()

    def rewritten(self) -> tuple[str, ...] | None:
        """The protected files that were written to since then; None without a `watch` before."""
        paths = self._protected.rewritten()
        return None if paths is None else tuple(self._kept.shown(path) for path in paths)

    def touched(self, before: str, after: str, globs: Sequence[str]) -> tuple[str, ...]:
        """The paths that match a glob and differ between two kept trees, or between what is noted beside them."""
        changes = self._kept.changes(before, after, globs)
        old, new = self._protected.noted(before), self._protected.noted(after)
        for path in {*old, *new} if old != new else ():
            if matches(path, globs):
                then, now = changes.get(path, (None, None))
                changes[path] = (old.get(path, then), new.get(path, now))
        return tuple(self._kept.shown(path) for path, (then, now) in sorted(changes.items()) if then != now)

    def changed(self, before: str, after: str) -> set[bytes]:
        """The paths that differ between two kept trees, from the workspace on."""
        return set(self._kept.changes(before, after, ["/"]))

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        """Restore files as they are in a kept tree; remove those it does not have."""
        self._kept.restore(tree, paths, unkept=self._protected.noted(tree))

    def between(self, before: str, after: str) -> list[Difference]:
        """The files in which two kept trees differ."""
        return [
            Difference(path=os.fsdecode(path), old=old.form if old else "", new=new.form if new else "")
            for path, (old, new) in self._kept.changes(before, after, ["/"]).items()
        ]

    def forms(self, tree: str) -> dict[str, str]:
        """All files of a kept tree, each with its form."""
        return {os.fsdecode(each.path): each.form for each in self._kept.entries(tree, "-r")}

    def woven(self, tree: str, forms: Mapping[str, str]) -> str:
        """A kept tree with other forms of some of its files; an empty one removes a file."""
        return self._kept.woven(tree, {os.fsencode(path): form for path, form in forms.items()})

    def read(self, form: str) -> bytes:
        """The content of a file in one of its forms."""
        return self._git.run("cat-file", "blob", form.partition(" ")[2])

    def form(self, data: bytes) -> str:
        """The form of a file with this content."""
        return f"100644 {self._git.run('hash-object', '-w', '--stdin', stdin=data).decode().strip()}"

    def ignored_folders(self) -> list[str]:
        """The folders in the workspace, and links to some, that git ignores as a whole."""
        return [path for path in self._ignored() if (self._root / path).is_dir()]

    def _ignored(self) -> list[str]:
        # Our own folder is not even entered: a repository may contain one, with a pipe as its `.gitignore`.
        ours = f"/{self._repository.prefix}.bydawn/"
        look = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "-x", ours)
        return [os.fsdecode(path).rstrip("/") for path in split(self._git.run(*look))]

    def tools(self, named: Iterable[str] = ()) -> dict[str, str]:
        """What runs the checks in the workspace but is in no tree, each with a short digest; `named` by the checks."""
        ignored = self._ignored()
        globs = [f"{folder}/{glob}" for folder in ignored for glob in _TOOLS.get(Path(folder).name, ())]
        ours = {self._root / path for path in named if any(f"{path}/".startswith(f"{each}/") for each in ignored)}
        found = sorted({path for path in ours if path.is_file()}.union(*(self._root.glob(glob) for glob in globs)))
        found = found[:_MOST_TOOLS]
        return {shown(os.fsencode(path.relative_to(self._root))): _short_digest(path) for path in found}

    def put(self, path: str, data: bytes, before: bytes | None) -> bool:
        """Replace a file, unless it is no longer what it was `before` (None: there was none)."""
        return replace_unchanged(real_inside(self._root, path), data, before)

    def checkout(self, tree: str) -> AbstractContextManager[Path]:
        """A temporary folder with the files of a kept tree."""
        return self._kept.checkout(tree)

    def tidy(self) -> None:
        """Pack what is kept, if that is worth it; what fails stays as it is."""
        if not pack(self._git, self._private):
            with suppress(OSError):
                self._clear_leftovers()

    def _indexed(self) -> list[bytes]:
        return split(self._git.run("ls-files", "-z"))

    # -- setting up: every step can be repeated, and the note that says "done" is written last ---------------------

    def _prepare(self) -> None:
        try:
            self._private.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._clear_leftovers()
            self._find_place()
        except OSError as error:
            hint = Advice("check free disk space and permissions, then run ", Act("resume"))
            raise OwnFailure(f"{self._private} cannot be set up", cause=str(error), hint=hint) from error

    def _clear_leftovers(self) -> None:
        for pattern in LEFTOVERS:
            for leftover in self._private.glob(pattern):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()

    def _find_place(self) -> None:
        """Where are we, and is the private directory set up for it?"""
        self._tree = None
        self._packing = True
        user = Git(folder=self._root, seconds=self._seconds, config=self._ignore_file())
        self._repository = Repository.around(self._root, user)
        # The work tree is the repository's top even when the workspace is a folder below it: then git itself
        # honors the ignore rules of the folders in between.
        places = {"GIT_DIR": str(self._private), "GIT_WORK_TREE": str(self._repository.top)}
        self._git = msgspec.structs.replace(user, places=places)
        self._kept = Trees(self._git, self._private)
        self._kept.clear()
        place = self._repository
        self._differences = Differences(self._root, self._git, place.prefix, place.exclude, ours=self._ours)
        note = self._private / "bydawn-ready"
        done = os.fsencode(f"prefix {self._repository.prefix}\n")
        if not note.is_file() or note.read_bytes() != done or not _is_sound(self._private / "index"):
            note.unlink(missing_ok=True)
            self._set_up(user)
            replace_private(note, done, durable=True)
        self._tree = self._recalled()

    def _ignore_file(self) -> dict[str, str]:
        """The one setting of the user that matters here; all others, and the repository's own, are turned off."""
        git = Git(folder=self._root, seconds=self._seconds, deaf=False)
        found = git.answer("config", "-z", "--show-scope", "--type=path", "--get-all", "core.excludesFile") or ""
        words = found.split("\0")
        files = [file for scope, file in zip(words[::2], words[1::2], strict=False) if scope in ("system", "global")]
        return {"core.excludesFile": files[-1]} if files else {}

    def _set_up(self, user: Git) -> None:
        (self._private / "index").unlink(missing_ok=True)
        # We write refs as files, which is not what a newer git would choose.
        made = msgspec.structs.replace(user, places={"GIT_DEFAULT_REF_FORMAT": "files"})
        made.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(self._private))
        (self._private / "info").mkdir(exist_ok=True)
        replace_private(self._private / "info" / "attributes", ATTRIBUTES, durable=True)
        for name in ("HEAD", "config"):  # written by git, which does not sync them
            sync(self._private / name)
        self._packing = not self._seed(user)
        if self._repository.common:
            # What the user tracks despite an ignore rule would never be listed as new.
            tracked = user.answer("ls-files", "-z", "--cached", "--ignored", "--exclude-standard") or ""
            self._store(self._differences.sort(b"C " + path for path in split(os.fsencode(tracked))))

    def _seed(self, user: Git) -> bool:
        """Copy the objects of the user's last commit, so that the first snapshot need not compress everything again.

        Measured with 100,000 files: 5 s instead of 34 s. A pack of our own, because the user's packs may be damaged
        (hard links to them with it) or collected (alternates); and git verifies what it copies. Only one commit,
        because copying 470 MB of history took four times as long as picking the 96 MB that are needed. Where it is
        impossible it just takes longer.
        """
        theirs, ours = self._repository.objects, self._private / "objects" / "pack" / "pack"
        if not theirs or not any(theirs.glob("pack/*.pack")):
            return False
        with suppress(OwnFailure):
            tree = user.run("rev-parse", "--verify", "HEAD^{tree}")
            places = self._git.places | {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(theirs)}
            git = msgspec.structs.replace(self._git, places=places)  # drafts, too, are made in our own directory
            git.run("pack-objects", "--quiet", "--revs", "--window=0", str(ours), stdin=tree)
            return True
        return False

    # -- listing and storing ---------------------------------------------------------------------------------------

    def _store_differences(self) -> Listing:
        """List and store; a file that changes in between can make git fail, so then look again."""
        for _ in range(ATTEMPTS - 1):
            with suppress(GitFailed):
                return self._look_and_store()
        return self._look_and_store()

    def _look_and_store(self) -> Listing:
        return self._store(self._differences.listed(by_two=self._has_many))

    def _store(self, listing: Listing) -> Listing:
        paths = listing.stored
        if paths or listing.dropped:
            self._tree = None  # first: from here on a failure leaves the index ahead of the tree we know
        if listing.dropped:
            self._git.run("update-index", "-z", "--force-remove", "--stdin", stdin=_joined(listing.dropped))
        for start in range(0, len(paths), STORED_PER_CALL):
            self._update_index(paths[start : start + STORED_PER_CALL])
        return listing

    def _update_index(self, paths: list[bytes]) -> None:
        git = self._git
        if self._packing and len(paths) >= PACKED_FROM:
            # Blobs above this size go straight into one pack: with 100,000 small files, 24 s instead of 80 s and
            # 18 MB instead of 413 MB. Not where the user's packs already hold most of them: it compresses first.
            git = msgspec.structs.replace(git, config=git.config | {"core.bigFileThreshold": "1"})
        # A file that was only touched would be read again by every later `ls-files`; with many files, the look at them
        # has taken care of that.
        refresh = () if self._has_many else ("-q", "--refresh")
        git.run("update-index", *refresh, "-z", "--add", "--remove", "--replace", "--stdin", stdin=_joined(paths))

    @property
    def _has_many(self) -> bool:
        index = self._private / "index"
        return index.is_file() and index.stat().st_size >= MANY

    def _write_tree(self) -> str:
        prefix = self._repository.prefix
        try:
            tree = self._git.run("write-tree", f"--prefix={prefix}")
        except GitFailed:
            if not prefix or self._git.run("ls-files", "-z"):
                raise
            tree = self._git.run("mktree")  # nothing is left below the prefix, and git has no name for nothing
        self._packing = True
        # Note which tree the index stands for, so that the next start need not ask git.
        id_ = tree.decode().strip()
        (self._private / "bydawn-tree").write_text(f"{_digest_of(self._private / 'index')} {id_}")
        return id_

    def _recalled(self) -> str | None:
        note = self._private / "bydawn-tree"
        digest, _, tree = note.read_text().partition(" ") if note.is_file() else ("", "", "")
        return tree if digest and digest == _digest_of(self._private / "index") else None


def _is_sound(index: Path) -> bool:
    """Does the index end with its own digest? After a power cut it may not, and git does not look."""
    data = index.read_bytes() if index.is_file() else b""
    return sha1(data[:-20], usedforsecurity=False).digest() == data[-20:]


def _digest_of(index: Path) -> str:
    """The digest that an index ends with."""
    if not index.is_file():
        return ""
    with index.open("rb") as file:
        file.seek(-20, os.SEEK_END)
        return file.read().hex()


def _short_digest(path: Path) -> str:
    """Of a link, of where it leads and of what is there."""
    try:
        data = os.fsencode(path.readlink()) if path.is_symlink() else b""
        data += path.read_bytes() if path.is_file() else b""
    except OSError:
        return ""
    return sha1(data, usedforsecurity=False).hexdigest()[:8]


def _joined(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
