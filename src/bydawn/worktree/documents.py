"""The id of a tree without its loop's documents: notes, progress file, task list."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from bydawn.core.digests import sha1
from bydawn.core.values import Snapshot
from bydawn.worktree.trees import Entry, Trees

Rows = dict[bytes, list[Entry]]  # what is in a folder, by its path (`b""`, `b"docs/"`)


class Documents:
    """Files and folders of a workspace where a change is not progress."""

    def __init__(self, root: Path, names: Sequence[str], seen: Snapshot | None = None) -> None:
        self._root = root
        self._names = names
        self._known: tuple[str, frozenset[bytes], str] = ("", frozenset(), "")
        if seen and names:  # an earlier run has asked git
            tree, work = (id_.partition("+")[0] for id_ in (seen.tree, seen.work or seen.tree))
            self._known = (tree, frozenset(self._paths()), work)

    def taken_from(self, tree: str, kept: Trees) -> str:
        """The id of a tree without them, empty if that is the same; git is only asked after a change."""
        if not self._names:
            return ""
        paths = frozenset(self._paths())
        if self._known[:2] != (tree, paths):
            self._known = (tree, paths, _without(tree, paths, kept))
        return self._known[2] if self._known[2] != tree else ""

    def _paths(self) -> Iterator[bytes]:
        """Where they are, and where they lead if they are links: both count as the document."""
        real_root = Path(os.path.realpath(self._root))
        for name in self._names:
            path = os.path.normpath(self._root / name)
            for root, place in ((self._root, Path(path)), (real_root, Path(os.path.realpath(path)))):
                if place != root and place.is_relative_to(root):
                    yield os.fsencode(place.relative_to(root))


def _without(tree: str, paths: Collection[bytes], kept: Trees) -> str:
    """Computed by hand from the few folders that matter, so nothing is written and the tree may be big."""
    on_the_way = {path[: slash.end()] for path in paths for slash in re.finditer(b"/", path)}
    rows: Rows = {b"": kept.entries(tree)}
    for entry in kept.entries(tree, "-t", below=sorted(on_the_way)) if on_the_way else ():
        folder, slash, _ = entry.path.rpartition(b"/")
        if slash:  # those at the top are listed a second time, on the way to the others
            rows.setdefault(folder + slash, []).append(entry)
    return (_id_of_folder(b"", rows, paths) or _id_of(b"")).hex()


def _id_of_folder(folder: bytes, rows: Rows, left_out: Collection[bytes]) -> bytes | None:
    """None if nothing is left in it: git has no empty folders."""
    body = b""
    for entry in rows[folder]:
        inner = entry.path + b"/"
        id_ = _id_of_folder(inner, rows, left_out) if inner in rows else bytes.fromhex(entry.id)
        if id_ and entry.path not in left_out:
            body += entry.mode.lstrip("0").encode() + b" " + entry.path.removeprefix(folder) + b"\0" + id_
    return _id_of(body) if body else None


def _id_of(body: bytes) -> bytes:
    """The id git gives a tree with this content."""
    return sha1(b"tree %d\0" % len(body) + body, usedforsecurity=False).digest()
