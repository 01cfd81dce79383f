"""Protected files as they are on disk: git's ignore rules, its size limit and its nested repositories hide none.

Those that no snapshot contains are listed in a note beside the trees, and the id of the note is part of the tree's.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from bydawn.core import globs
from bydawn.core.digests import sha1, sha256
from bydawn.core.errors import OwnFailure
from bydawn.core.values import Act, Advice
from bydawn.system.paths import open_regular
from bydawn.system.writing import replace_private
from bydawn.worktree.changes import written_by_us
from bydawn.worktree.trees import LINK, PROGRAM, Entry

# What changes when anything is written to a file, even if its time is set back: mode, inode, size and two times.
Stamp = tuple[int, int, int, int, int]

# Checks never read these, and whatever runs Python writes them: see "Protected files" in docs/proof.md.
_CACHES = re.compile(
    rb"(?:^|/)(?:__pycache__/[^/]*\.pyc(\.\d+)?|\.pytest_cache/(v/.*|README\.md|\.gitignore|CACHEDIR\.TAG))\Z",
    re.DOTALL,
)
_FILE, _CLOSED, _REPOSITORY, _SPECIAL, _NOTHING = "100644", "closed", "repository", "special", "-"
_UNREAD: Stamp = (0, 0, 0, 0, 0)


class ProtectedFiles:
    """Everything that some globs match in a folder, found without following links."""

    def __init__(
        self, root: Path, notes: Path, wanted: Sequence[str], ours: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._root, self._notes, self._ours = root, notes, ours
        self._wanted = globs.rests(wanted)
        self._ids: dict[bytes, tuple[Stamp, str]] = {}  # what was read is not read again
        self._noted: tuple[dict[bytes, Stamp], str, str] | None = None  # the last note, and what it was about
        self._watched: dict[bytes, Stamp] | None = None

    def watch(self) -> None:
        """Remember them as they are now."""
        self._watched = self.stamps()

    def rewritten(self) -> list[bytes] | None:
        """Those that were written to since then, even if they were put back; None without a `watch` before."""
        if self._watched is None:
            return None
        before, now = self._watched, self.stamps()
        return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))

    def note(self, tree: str, kept: Callable[[], Collection[bytes]]) -> str:
        """List those that a tree does not have; return the id of the list, empty if there are none."""
        stamps = self.stamps()
        if self._noted is None or self._noted[0] != stamps or (self._noted[2] and self._noted[1] != tree):
            paths = sorted(stamps.keys() - set(kept())) if stamps else []
            self._noted = (stamps, tree, self._write([self._entry(path, stamps[path]) for path in paths]))
        return self._noted[2]

    def noted(self, tree: str) -> dict[bytes, Entry]:
        """The files that a tree does not have, as they were."""
        id_ = tree.partition("+")[2].partition("+")[2]
        if not id_:
            return {}
        try:
            rows = [row.split(b" ", 2) for row in (self._notes / id_).read_bytes().split(b"\0")[:-1]]
        except OSError as error:
            what = "the list of protected files that git ignores cannot be read"
            raise OwnFailure(what, cause=str(error), hint=Advice("start a new loop: ", Act("run --new"))) from error
        return {path: Entry(mode.decode(), blob.decode(), path) for mode, blob, path in rows}

    def _write(self, entries: list[Entry]) -> str:
        if not entries:
            return ""
        data = b"".join(f"{entry.mode} {entry.id} ".encode() + entry.path + b"\0" for entry in entries)
        id_ = sha256(data).hexdigest()[:16]
        if not (self._notes / id_).is_file():
            self._notes.mkdir(mode=0o700, exist_ok=True)
            replace_private(self._notes / id_, data, durable=True)
        return id_

    def stamps(self) -> dict[bytes, Stamp]:
        """All of them, in one walk; a folder that cannot be read is part of what there is."""
        found: dict[bytes, Stamp] = {}
        folders = [(b"", self._wanted)] if self._wanted else []
        ours = written_by_us((".bydawn/", *self._ours())) if self._wanted else None
        while folders:
            folder, wanted = folders.pop()
            entries = self._entries(folder)
            if entries is None:
                found[folder] = _UNREAD
            for entry in entries or ():
                matched, below = globs.one_down(wanted, entry.name)
                path = folder + entry.name
                if path in (b".bydawn", b".git"):
                    continue
                if entry.is_dir(follow_symlinks=False) and entry.name != b".git":
                    if below:
                        folders.append((path + b"/", below))
                elif matched and not (ours and ours.match(path)) and (stamp := _stamp(path, entry)):
                    found[path] = stamp
        return found

    def _entries(self, folder: bytes) -> "list[os.DirEntry[bytes]] | None":
        try:
            with os.scandir(os.fsencode(self._root) + b"/" + folder) as entries:
                return list(entries)
        except (FileNotFoundError, NotADirectoryError):
            return []  # it is being removed
        except OSError:
            return None

    def _entry(self, path: bytes, stamp: Stamp) -> Entry:
        """As a tree would have it, so that a file that is no longer ignored is still the same file."""
        if path.endswith((b"/.git", b"/")):
            return Entry(_REPOSITORY if stamp[0] else _CLOSED, _NOTHING, path)
        if not (stat.S_ISREG(stamp[0]) or stat.S_ISLNK(stamp[0])):
            return Entry(_SPECIAL, _NOTHING, path)
        mode = LINK if stat.S_ISLNK(stamp[0]) else PROGRAM if stamp[0] & stat.S_IXUSR else _FILE
        known, id_ = self._ids.get(path, (_UNREAD, ""))
        if known != stamp:
            id_ = self._id_of(path, is_link=mode == LINK)
            self._ids[path] = (stamp, id_)
        return Entry(mode if id_ else _CLOSED, id_ or _NOTHING, path)

    def _id_of(self, path: bytes, *, is_link: bool) -> str:
        """The id that git would give its content; empty if it cannot be read."""
        try:
            if is_link:
                target = os.fsencode((self._root / os.fsdecode(path)).readlink())
                return sha1(b"blob %d\0" % len(target) + target, usedforsecurity=False).hexdigest()
            with open_regular(self._root, os.fsdecode(path)) as file:
                digest = sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
                while part := file.read(1 << 20):
                    digest.update(part)
                return digest.hexdigest()
        except OSError:
            return ""


def _stamp(path: bytes, entry: "os.DirEntry[bytes]") -> Stamp | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # it is being removed
        return None
    if entry.name == b".git":  # not what is in it: any look at a repository changes that
        return (stat.S_IFMT(status.st_mode), 0, 0, 0, 0)
    if stat.S_ISREG(status.st_mode) and _CACHES.search(path):
        return None
    return (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
