"""Kept trees: what differs between two of them, and how to restore one, or a file of it."""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.core.layout import CHECKOUTS
from bydawn.core.values import Act, Advice
from bydawn.system.git import Git, GitFailed
from bydawn.system.paths import NEW_FILE, open_fd, open_folder, remove_folder

CHECKOUT_SECONDS = 900.0  # a clean checkout may be big and the disk slow
READ_AT_ONCE = 32 * 1024 * 1024  # bytes of content requested from one git process
LINK, PROGRAM, _NOTHING = "120000", "100755", "000000"


class Entry(msgspec.Struct, frozen=True):
    """A file, a link or a folder in a tree."""

    mode: str
    id: str
    path: bytes

    @property
    def form(self) -> str:
        return f"{self.mode} {self.id}"


class Trees:
    """The trees in a loop's private git directory; each is one of the workspace, even below a repository's top."""

    def __init__(self, git: Git, private: Path) -> None:
        self._git, self._private = git, private
        self._odd: dict[str, set[bytes]] = {}  # names that are not text, by how they are shown

    def entries(self, tree: str, *switches: str, below: Sequence[bytes] = ()) -> list[Entry]:
        """What is in a tree, at its top or in all (`-r`), or only below some folders (`docs/`)."""
        git = msgspec.structs.replace(self._git, places=self._git.places | {"GIT_LITERAL_PATHSPECS": "1"})
        paths = map(os.fsdecode, below)
        output = self._ask("ls-tree", "-z", "--full-tree", *switches, _id(tree), "--", *paths, git=git, of=tree)
        rows = (row.partition(b"\t") for row in output.split(b"\0")[:-1])
        return [Entry(mode, id_, path) for about, _, path in rows for mode, _, id_ in [about.decode().split(" ")]]

    def changes(self, before: str, after: str, globs: Sequence[str]) -> dict[bytes, tuple[Entry | None, Entry | None]]:
        """The paths that match a glob and differ between two trees in content, mode or existence."""
        specs = [spec for glob in globs for spec in _pathspecs(glob)]
        if not specs or _id(before) == _id(after):
            return {}
        options = ("-r", "-z", "--no-renames", "--no-abbrev")
        words = self._ask("diff-tree", *options, _id(before), _id(after), "--", *specs, of=before).split(b"\0")
        found = {}
        for about, path in zip(words[:-1:2], words[1::2], strict=True):
            modes, ids = about[1:].decode().split(" ")[:2], about.decode().split(" ")[2:4]
            old, new = (Entry(*each, path) if each[0] != _NOTHING else None for each in zip(modes, ids, strict=True))
            found[path] = (old, new)
        return found

    def restore(self, tree: str, paths: Sequence[str], unkept: Collection[bytes] = ()) -> None:
        """Restore files as they are in a tree; remove those it does not have. A failure does not stop the others.

        `unkept`: these were there, but their content is not in the tree.
        """
        wanted = {raw for path in paths for raw in self._odd.get(path, {os.fsencode(path)})}
        failed = [(path, "snapshots cannot contain such a path") for path in wanted if not _can_be_kept(path)]
        failed += [
            (path, "git ignores it or it is too big, so no snapshot has it") for path in wanted.intersection(unkept)
        ]
        wanted -= {path for path, _ in failed}
        entries = [entry for entry in self.entries(tree, "-r") if entry.path in wanted]
        root = os.path.realpath(self._git.folder)
        for path in sorted(wanted - {entry.path for entry in entries}):
            with _noting(failed, path):
                _remove(root, path)
        for entry, content in self._contents(entries):
            with _noting(failed, entry.path):
                if content is None:
                    raise OSError(errno.EIO, f"its content is missing or damaged in {self._called(tree)}")
                _put(root, entry, content)
        if failed:
            path, cause = failed[0]
            others = f" and {len(failed) - 1} other protected files" if failed[1:] else ""
            hint = Advice("make room for it or restore it by hand, then run ", Act("resume"))
            raise UserError(f"{self.shown(path)}{others} cannot be restored", cause=cause, hint=hint)

    def woven(self, tree: str, forms: Mapping[bytes, str]) -> str:
        """The tree with other forms of some of its files, made in an index of its own; an empty one removes a file."""
        private = str(self._private)  # git wants a work tree, but looks at no file in it
        places = {"GIT_DIR": private, "GIT_WORK_TREE": private, "GIT_INDEX_FILE": str(self._index)}
        git = msgspec.structs.replace(self._git, places=places)
        rows = sorted((form or f"0 {'0' * 40}").encode() + b"\t" + path for path, form in forms.items())
        try:
            git.run("read-tree", "--reset", _id(tree))
            git.run("update-index", "--replace", "-z", "--index-info", stdin=b"".join(row + b"\0" for row in rows))
            return git.run("write-tree").decode().strip()
        except GitFailed as error:
            raise self._unreadable(tree, error.cause) from error
        finally:
            self._index.unlink(missing_ok=True)

    @contextmanager
    def checkout(self, tree: str) -> Iterator[Path]:
        """A folder with exactly the files of a tree; removed afterwards."""
        place = self._new_place()
        try:
            self._fill(place, _id(tree))
            yield place
        finally:
            self.clear()

    def clear(self) -> None:
        """Remove what a checkout needed, and the checkout of a process that was killed."""
        remove_folder(self._checkouts)
        self._index.unlink(missing_ok=True)

    @property
    def _checkouts(self) -> Path:
        """Beside the private git directory: tools look for settings and packages in all folders above, and no agent
        may write there. In the temporary folder, many may.
        """
        return self._private.parent / CHECKOUTS

    @property
    def _index(self) -> Path:
        return self._private / "checkout-index"

    def _new_place(self) -> Path:
        try:
            self._checkouts.mkdir(mode=0o700, exist_ok=True)
            # A new name each time: a check may have left files there that only another user can remove.
            return Path(os.path.realpath(tempfile.mkdtemp(prefix="by-", dir=self._checkouts)))
        except OSError as error:
            hint = Advice("check free disk space, then run ", Act("resume"))
            raise OwnFailure("cannot create a clean checkout", cause=str(error), hint=hint) from error

    def _fill(self, place: Path, tree: str) -> None:
        self._index.unlink(missing_ok=True)
        places = {"GIT_DIR": str(self._private), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(self._index)}
        git = msgspec.structs.replace(self._git, places=places, seconds=max(self._git.seconds, CHECKOUT_SECONDS))
        try:
            git.run("read-tree", "--reset", "-u", tree)
        except GitFailed as error:
            contents = self._contents(self.entries(tree, "-r"))
            lost = next((self.shown(entry.path) for entry, content in contents if content is None), "")
            cause = f"the content of {lost} is missing or damaged" if lost else error.cause
            raise self._unreadable(tree, cause) from error

    # -- what git says -----------------------------------------------------------------------------------------------

    def _contents(self, entries: list[Entry]) -> Iterator[tuple[Entry, bytes | None]]:
        """Each file with its bytes, None if they are lost; in portions, because there may be many big ones."""
        if not entries:
            return
        sizes = self._git.run("cat-file", "--batch-check=%(objectsize)", stdin=_lines(entries)).split(b"\n")
        portion: list[Entry] = []
        total = 0
        for entry, size in zip(entries, sizes, strict=False):
            if not size.isdigit():  # "… missing"
                yield entry, None
                continue
            if portion and total + int(size) > READ_AT_ONCE:
                yield from self._portion(portion)
                portion, total = [], 0
            portion.append(entry)
            total += int(size)
        if portion:
            yield from self._portion(portion)

    def _portion(self, entries: list[Entry]) -> Iterator[tuple[Entry, bytes | None]]:
        try:
            output = memoryview(self._git.run("cat-file", "--batch=%(objectsize)", stdin=_lines(entries)))
        except GitFailed:  # one of them is damaged: which?
            if len(entries) == 1:
                yield entries[0], None
            else:
                for entry in entries:
                    yield from self._portion([entry])
            return
        start = 0
        for entry in entries:
            size = bytes(output[start : start + 20]).partition(b"\n")[0]
            start += len(size) + 1
            yield entry, bytes(output[start : start + int(size)])
            start += int(size) + 1

    def _ask(self, *arguments: str, git: Git | None = None, of: str) -> bytes:
        try:
            return (git or self._git).run(*arguments)
        except GitFailed as error:
            raise self._unreadable(of, error.cause) from error

    def _unreadable(self, tree: str, cause: str) -> OwnFailure:
        hint = f"check free disk space, and that nothing in {self._private} was removed"
        return OwnFailure(f"cannot read {self._called(tree)}", cause=cause, hint=hint)

    def _called(self, tree: str) -> str:
        """A tree by the round it belongs to, which its ref tells."""
        found = self._git.answer("for-each-ref", "--format=%(refname:lstrip=2)", f"--points-at={_id(tree)}") or ""
        when, _, number = found.partition("\n")[0].partition("/")
        return f"the tree kept {when} round {number}" if number else "a kept tree"

    def shown(self, path: bytes) -> str:
        """A name fit for the ledger, which only takes text."""
        shown = path.decode("utf-8", "replace")
        if shown.encode() != path:
            self._odd.setdefault(shown, set()).add(path)
        return shown


def _id(tree: str) -> str:
    """The part git knows; anything after it describes repositories inside the workspace."""
    id_ = tree.partition("+")[0]
    if not re.fullmatch("[0-9a-f]{40}", id_):
        raise OwnFailure(f"{tree!r} is not a tree id", cause="a tree id has 40 digits", hint="is the ledger damaged?")
    return id_


def _pathspecs(glob: str) -> list[str]:
    """A glob as git understands it. It also counts as a plain name: `app/[id].tsx` is a real file name."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    if not glob or ".." in parts or "\0" in glob:
        return []  # nothing in a tree has such a name
    name = "/".join(parts)
    if not name:
        return [":(top,glob)**"]
    return [f":(top,literal){name}", f":(top,glob){name}" + ("/**" if glob.endswith("/") else "")]


def _lines(entries: list[Entry]) -> bytes:
    return "".join(entry.id + "\n" for entry in entries).encode()


# -- files, never through links ----------------------------------------------------------------------------------------


def _can_be_kept(path: bytes) -> bool:
    """Is it in the workspace, and not in anything of git's or ours?"""
    parts = path.lower().split(b"/")
    return not {b"", b".", b"..", b".git"} & set(parts) and parts[0] != b".bydawn" and b"\0" not in path


@contextmanager
def _noting(failed: list[tuple[bytes, str]], path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failed.append((path, error.strerror or str(error)))


def _remove(root: str, path: bytes) -> None:
    """Remove a file or a link, if it is there; a folder stays."""
    *folders, name = os.fsdecode(path).split("/")
    # Nothing of ours is behind a link or a file.
    with suppress(FileNotFoundError, NotADirectoryError), open_folder(root, folders) as folder:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)


def _put(root: str, entry: Entry, content: bytes) -> None:
    """Write a file or a link; a link in the place of one of its folders holds nothing that could be lost."""
    *folders, name = os.fsdecode(entry.path).split("/")
    with open_folder(root, folders, make=True, replace_links=True) as folder:
        _clear_way(folder, name)
        if entry.mode == LINK:
            os.symlink(content, name, dir_fd=folder)
            return
        fd = os.open(name, NEW_FILE, 0o777 if entry.mode == PROGRAM else 0o666, dir_fd=folder)
        with os.fdopen(fd, "wb") as file:
            file.write(content)


def _clear_way(folder: int, name: str) -> None:
    """Remove what is in the place of a file: anything except a folder with content."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return
        try:
            _remove_hollow(folder, name)
        except (NotADirectoryError, RecursionError):
            raise OSError(errno.ENOTEMPTY, "a folder with other files is in its place") from None


def _remove_hollow(outer: int, name: str) -> None:
    """Remove a folder that contains only empty folders."""
    with open_fd(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, folder=outer) as folder:
        for inner in os.listdir(folder):
            _remove_hollow(folder, inner)
    os.rmdir(name, dir_fd=outer)
