"""Trees that were kept: what differs between two of them, and how one, or a file of it, comes back."""

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn.core.errors import OwnFailure, UserError
from bydawn.system.git import Git, GitFailed
from bydawn.system.paths import NEW_FILE, open_fd, open_folder

CHECKOUT_SECONDS = 900.0  # a clean checkout may be big and the disk slow
READ_AT_ONCE = 32 * 1024 * 1024  # bytes of content that are asked of one git
LINK, PROGRAM = "120000", "100755"


class Entry(msgspec.Struct, frozen=True):
    """A file, a link or a folder in a tree."""

    mode: str
    id: str
    path: bytes


class Trees:
    """The trees in a loop's private git directory; each is one of the workspace, even below a repository's top."""

    def __init__(self, git: Git, private: Path) -> None:
        self._git, self._private = git, private
        self._odd: dict[str, set[bytes]] = {}  # names that are no text, by how they are shown

    def entries(self, tree: str, *switches: str, below: Sequence[bytes] = ()) -> list[Entry]:
        """What is in a tree, at its top or in all (`-r`), or only below some folders (`docs/`)."""
        git = msgspec.structs.replace(self._git, places=self._git.places | {"GIT_LITERAL_PATHSPECS": "1"})
        paths = map(os.fsdecode, below)
        output = self._ask("ls-tree", "-z", "--full-tree", *switches, _id(tree), "--", *paths, git=git)
        rows = (row.partition(b"\t") for row in output.split(b"\0")[:-1])
        return [Entry(mode, id_, path) for about, _, path in rows for mode, _, id_ in [about.decode().split(" ")]]

    def touched(self, before: str, after: str, globs: Sequence[str]) -> tuple[str, ...]:
        """The paths that match a glob and differ between two trees: content, mode, there or not."""
        specs = [spec for glob in globs for spec in _pathspecs(glob)]
        if not specs or _id(before) == _id(after):
            return ()
        options = ("-r", "-z", "--no-renames", "--name-only")
        found = self._ask("diff-tree", *options, _id(before), _id(after), "--", *specs).split(b"\0")[:-1]
        return tuple(self._shown(path) for path in found)

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        """Put files back as they are in a tree; what it does not have is removed. One that fails stops no other."""
        wanted = {raw for path in paths for raw in self._odd.get(path, {os.fsencode(path)})}
        failed = [(path, "no snapshot ever has such a path") for path in wanted if not _can_be_kept(path)]
        wanted -= {path for path, _ in failed}
        entries = [entry for entry in self.entries(tree, "-r") if entry.path in wanted]
        root = os.path.realpath(self._git.folder)
        for path in sorted(wanted - {entry.path for entry in entries}):
            with _noting(failed, path):
                _remove(root, path)
        for entry, content in self._contents(entries):
            with _noting(failed, entry.path):
                _put(root, entry, content)
        if failed:
            path, cause = failed[0]
            others = f" and {len(failed) - 1} other protected files" if failed[1:] else ""
            hint = "clear the way or put it back by hand, then go on with `bydawn resume`"
            raise UserError(f"{self._shown(path)}{others} cannot be put back", cause=cause, hint=hint)

    @contextmanager
    def checkout(self, tree: str) -> Iterator[Path]:
        """A folder of its own with nothing in it but the files of a tree; it is gone afterwards."""
        place = self._new_place()
        try:
            self._fill(place, _id(tree))
            yield place
        finally:
            _remove_folder(place)
            self.clear()

    def clear(self) -> None:
        """Remove what a checkout needed, and the whole of it if its worker was killed."""
        if self._note.is_file() and (place := Path(self._note.read_text())).name.startswith("by-"):
            _remove_folder(place)
        self._note.unlink(missing_ok=True)
        self._index.unlink(missing_ok=True)

    @property
    def _note(self) -> Path:
        return self._private / "bydawn-checkout"

    @property
    def _index(self) -> Path:
        return self._private / "checkout-index"

    def _outside(self) -> str:
        """Where temporary things go, unless that is in the workspace itself."""
        place = os.path.realpath(tempfile.gettempdir())
        inside = Path(place).is_relative_to(os.path.realpath(self._git.folder))
        return str(self._private.parent) if inside else place

    def _new_place(self) -> Path:
        try:
            place = Path(os.path.realpath(tempfile.mkdtemp(prefix="by-", dir=self._outside())))
            self._note.write_text(str(place))
        except OSError as error:
            hint = "look at free disk space and at TMPDIR, then go on with `bydawn resume`"
            raise OwnFailure("there is no place for a clean checkout", cause=str(error), hint=hint) from error
        return place

    def _fill(self, place: Path, tree: str) -> None:
        self._index.unlink(missing_ok=True)
        places = {"GIT_DIR": str(self._private), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(self._index)}
        git = msgspec.structs.replace(self._git, places=places, seconds=max(self._git.seconds, CHECKOUT_SECONDS))
        self._ask("read-tree", "--reset", "-u", tree, git=git)

    # -- what git says -----------------------------------------------------------------------------------------------

    def _contents(self, entries: list[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """Each file with its bytes; in portions, as there may be many and big ones."""
        sizes = self._ask("cat-file", "--batch-check=%(objectsize)", stdin=_lines(entries)).split() if entries else []
        portion: list[Entry] = []
        total = 0
        for entry, size in zip(entries, sizes, strict=True):
            if portion and total + int(size) > READ_AT_ONCE:
                yield from self._portion(portion)
                portion, total = [], 0
            portion.append(entry)
            total += int(size)
        if portion:
            yield from self._portion(portion)

    def _portion(self, entries: list[Entry]) -> Iterator[tuple[Entry, bytes]]:
        output = memoryview(self._ask("cat-file", "--batch=%(objectsize)", stdin=_lines(entries)))
        start = 0
        for entry in entries:
            size = bytes(output[start : start + 20]).partition(b"\n")[0]
            start += len(size) + 1
            yield entry, bytes(output[start : start + int(size)])
            start += int(size) + 1

    def _ask(self, *arguments: str, git: Git | None = None, stdin: bytes = b"") -> bytes:
        try:
            return (git or self._git).run(*arguments, stdin=stdin)
        except GitFailed as error:
            what = f"a tree that was kept in {self._private} cannot be read or written out"
            hint = "look at free disk space, and whether somebody removed something there"
            raise OwnFailure(what, cause=error.cause, hint=hint) from error

    def _shown(self, path: bytes) -> str:
        """A name fit for the ledger, which takes nothing but text."""
        shown = path.decode("utf-8", "replace")
        if shown.encode() != path:
            self._odd.setdefault(shown, set()).add(path)
        return shown


def _id(tree: str) -> str:
    """The part that git knows; what may follow stands for repositories inside of the workspace."""
    id_ = tree.partition("+")[0]
    if not re.fullmatch("[0-9a-f]{40}", id_):
        raise OwnFailure(f"{tree!r} is no tree", cause="the id of one has 40 digits", hint="is the ledger damaged?")
    return id_


def _pathspecs(glob: str) -> list[str]:
    """A glob as git understands it. It counts as a plain name, too: `app/[id].tsx` is a file that people have."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    if not glob or ".." in parts or "\0" in glob:
        return []  # nothing in a tree is called that
    name = "/".join(parts)
    if not name:
        return [":(top,glob)**"]
    return [f":(top,literal){name}", f":(top,glob){name}" + ("/**" if glob.endswith("/") else "")]


def _lines(entries: list[Entry]) -> bytes:
    return "".join(entry.id + "\n" for entry in entries).encode()


# -- files, through no link --------------------------------------------------------------------------------------------


def _can_be_kept(path: bytes) -> bool:
    """Does it lie in the workspace, and in nothing that is git's or ours?"""
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
    # Behind a link or a file there is nothing of ours.
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
    """Remove what stands in the place of a file: anything but a folder in which there is something."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return
        try:
            _remove_hollow(folder, name)
        except (NotADirectoryError, RecursionError):
            raise OSError(errno.ENOTEMPTY, "a folder with other files stands in its place") from None


def _remove_hollow(outer: int, name: str) -> None:
    """Remove a folder with nothing but empty folders in it."""
    with open_fd(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, folder=outer) as folder:
        for inner in os.listdir(folder):
            _remove_hollow(folder, inner)
    os.rmdir(name, dir_fd=outer)


def _remove_folder(folder: Path) -> None:
    """As far as that is possible; a check may have locked doors behind it."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError, RecursionError):
        folder.chmod(0o700)
        for outer, inner, _ in os.walk(folder):
            for path in (Path(outer, name) for name in inner):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
