"""What rounds changed, file by file and line by line, from the trees in the loop's private git directory."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.history import Attempt
from bydawn.core.redact import Secrets
from bydawn.core.text import fit, plain, visible
from bydawn.operations.recent import the_round
from bydawn.operations.steer import secrets_of
from bydawn.store.registry import Standing
from bydawn.system.git import Git
from bydawn.worktree.trees import LINK, PROGRAM

FILES = 100  # that are shown
LINES = 400  # of a file that are shown, …
WHOLE = 20_000  # … and of one that a person wants to see whole
_LARGEST = 1 << 20  # bytes of a file that is compared
_MOST = 50_000  # lines of all files together that are compared
_LONGEST = 2_000  # characters of a line
_SECONDS = 5.0  # for each call of git
_NONE = "0" * 40
_TREE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_INDEX = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)", re.MULTILINE)
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")


class Kind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a file before (`-`), after (`+`) or in both; `\\` says that the last one has no newline."""

    sign: str
    text: str
    old: int | None  # its number before, …
    new: int | None  # … and after


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that follow each other."""

    first: int  # their numbers, in the file as it is after
    last: int
    within: str  # the nearest line above that begins a part of the file, such as a function
    lines: tuple[DiffLine, ...]

    @property
    def header(self) -> str:
        """`lines 28-36 · def prorate():`"""
        where = f"line {self.first}" if self.first >= self.last else f"lines {self.first}-{self.last}"
        return f"{where} · {self.within}" if self.within else where


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one file."""

    path: str  # as it can be shown: odd signs are spelled out
    kind: Kind
    added: int | None = None  # lines; None: unknown
    removed: int | None = None
    binary: bool = False
    too_large: bool = False
    remark: str = ""  # what else has changed: `now executable`
    hunks: tuple[Hunk, ...] = ()
    left_out: int = 0  # lines that are not in the hunks

    @property
    def why(self) -> str:
        """Why there are no lines to show; empty if there are."""
        if self.hunks:
            return ""
        if self.too_large:
            return "Too large to compare here."
        if self.binary:
            return "Not text, so there are no lines to compare."
        return f"{self.remark[:1].upper()}{self.remark[1:]}." if self.remark else "The file is empty."


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between the tree that one round found and the tree that the same or a later one left."""

    since: int
    number: int
    files: tuple[FileDiff, ...] = ()
    left_out: int = 0  # files that are not listed
    why: str = ""  # why there is nothing to show; empty if there is

    @property
    def added(self) -> int:
        """Lines, in the files that are listed."""
        return sum(each.added or 0 for each in self.files)

    @property
    def removed(self) -> int:
        return sum(each.removed or 0 for each in self.files)


def round_diff(standing: Standing, number: int, since: int | None = None, whole_file: str | None = None) -> Diff:
    """What a round changed, or all rounds from `since` to it; of `whole_file` every line."""
    last = the_round(standing, number).attempt
    first = last if since is None or since == number else the_round(standing, since).attempt
    if first.round > number:
        raise UserError(f"round {first.round} came after round {number}", hint="compare with an earlier round")
    empty = Diff(since=first.round, number=number)
    if why := _why_not(standing, first, last):
        return msgspec.structs.replace(empty, why=why)
    before, after = _trees(first, last)
    try:
        files, left_out = _Comparison(standing, before, after).files(whole_file)
    except UserError as error:
        told = plain(error.cause or error.what)
        return msgspec.structs.replace(empty, why=f"The changes cannot be shown: {told}")
    return msgspec.structs.replace(empty, files=files, left_out=left_out)


def _trees(first: Attempt, last: Attempt) -> tuple[str, str]:
    after = last.ended.found.tree if last.ended else ""
    return first.started.tree.partition("+")[0], after.partition("+")[0]


def _why_not(standing: Standing, first: Attempt, last: Attempt) -> str:
    """Why the two trees cannot be compared; empty if they can."""
    if last.ended is None:
        is_open = standing.alive and standing.state.open_round is not None
        return "What it changes is shown when the round ends." if is_open else "The round was interrupted."
    before, after = _trees(first, last)
    if not _TREE.fullmatch(before) or not _TREE.fullmatch(after) or last.ended.unseen:
        return "What the round changed is unknown: the files could not be saved at its end."
    if not standing.folder.git.is_dir():
        return "The saved files of this loop are gone."
    if before != after:
        return ""
    if first.started.tree != last.ended.found.tree:
        return "Only repositories inside the folder changed; their files are not saved."
    return "This round changed no files." if first is last else "These rounds changed no files."


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs: its modes and the ids of its contents."""

    path: bytes
    modes: tuple[str, str]
    ids: tuple[str, str]

    @property
    def kind(self) -> Kind:
        if _NONE.startswith(self.modes[0]):
            return Kind.ADDED
        return Kind.DELETED if _NONE.startswith(self.modes[1]) else Kind.CHANGED

    @property
    def remark(self) -> str:
        old, new = self.modes
        if self.kind is not Kind.CHANGED or old == new:
            return ""
        if LINK in (old, new):
            return "now a link" if new == LINK else "no longer a link"
        return "now executable" if new == PROGRAM else "no longer executable"


Counts = Mapping[bytes, tuple[int | None, int | None]]  # lines added and removed, by path
Sections = Mapping[tuple[str, str], bytes]  # the hunks as git writes them, by the ids before and after


class _Comparison:
    """Asks git how two trees differ. The repository is bare, so that no `.gitattributes` can hide anything."""

    def __init__(self, standing: Standing, before: str, after: str) -> None:
        workspace = Path(standing.loop.workspace)
        self._git = Git(
            folder=workspace if workspace.is_dir() else standing.folder.path,
            seconds=_SECONDS,
            config={"core.bigFileThreshold": str(_LARGEST)},  # git compares no larger file
            places={"GIT_DIR": str(standing.folder.git), "GIT_LITERAL_PATHSPECS": "1"},
        )
        self._trees = (before, after)
        self._secrets = secrets_of(standing)

    def files(self, whole: str | None) -> tuple[tuple[FileDiff, ...], int]:
        """The files that differ, and how many more there are."""
        rows = self._rows()
        shown = rows[:FILES]
        counts = self._counts(shown)
        small = [*_small(shown, counts)]
        sections = self._sections(small)
        large = self._large([row for row in shown if counts.get(row.path) == (None, None)])
        large |= {row.path for row in shown if row not in small and row.path in counts}
        hide = self._hiding(sections)
        found = [_file(row, counts, sections, row.path in large, whole, hide()) for row in shown]
        return tuple(found), len(rows) - len(shown)

    def _ask(self, *options: str, paths: list[bytes] | None = None) -> bytes:
        words = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", *options)
        return self._git.run(*words, *self._trees, "--", *map(os.fsdecode, paths or ()))

    def _rows(self) -> list[_Row]:
        words = self._ask("-z", "--raw", "--no-abbrev").split(b"\0")
        found = []
        for about, path in zip(words[:-1:2], words[1::2], strict=True):
            old_mode, new_mode, old, new, _ = about[1:].decode().split(" ")
            found.append(_Row(path=path, modes=(old_mode, new_mode), ids=(old, new)))
        return found

    def _counts(self, rows: list[_Row]) -> Counts:
        found: dict[bytes, tuple[int | None, int | None]] = {}
        output = self._ask("-z", "--numstat", paths=[row.path for row in rows]) if rows else b""
        for row in output.split(b"\0")[:-1]:
            added, removed, path = row.split(b"\t", 2)
            found[path] = (int(added), int(removed)) if added.isdigit() and removed.isdigit() else (None, None)
        return found

    def _sections(self, rows: list[_Row]) -> Sections:
        """By ids and not by path: a path in the middle of a patch could be anything."""
        found: dict[tuple[str, str], bytes] = {}
        output = self._ask("--patch", "--full-index", paths=[row.path for row in rows]) if rows else b""
        for section in re.split(rb"(?m)^diff --git ", output):
            head, mark, hunks = section.partition(b"\n@@ ")
            if mark and (ids := _INDEX.search(head)):
                found[ids[1].decode(), ids[2].decode()] = b"@@ " + hunks
        return found

    def _large(self, rows: list[_Row]) -> set[bytes]:
        """Which of these are too large; the others are not text."""
        ids = [id_ for row in rows for id_ in row.ids]
        if not ids:
            return set()
        asked = "\n".join(ids).encode() + b"\n"
        output = self._git.run("cat-file", "--batch-check=%(objectsize)", stdin=asked).splitlines()
        sizes = [int(size) if size.isdigit() else 0 for size in output]
        pairs = zip(sizes[::2], sizes[1::2], strict=True)
        return {row.path for row, pair in zip(rows, pairs, strict=True) if max(pair) > _LARGEST}

    def _hiding(self, sections: Sections) -> Callable[[], Callable[[str], str]]:
        """Makes what hides the secrets in the lines of one file; most changes have none."""
        data = b"".join(sections.values())
        if not self._secrets.spans(data) and b"PRIVATE KEY" not in data:
            return lambda: str
        secrets: Secrets = self._secrets
        return secrets.line_by_line


def _small(rows: list[_Row], counts: Counts) -> Iterator[_Row]:
    """The files whose lines are asked for: not those that make it too much."""
    left = _MOST
    for row in rows:
        added, removed = counts.get(row.path, (None, None))
        lines = (added or 0) + (removed or 0)
        if lines <= left:
            left -= lines
            yield row


def _file(
    row: _Row, counts: Counts, sections: Sections, large: bool, whole: str | None, hide: Callable[[str], str]
) -> FileDiff:
    added, removed = counts.get(row.path, (0, 0))
    path = _shown(row.path)
    room = WHOLE if path == whole else LINES
    hunks: list[Hunk] = []
    left_out = 0
    for ids in _ids(row):
        for hunk in _hunks(sections.get(ids, b""), hide):
            kept = hunk.lines[: max(0, room)]
            left_out += len(hunk.lines) - len(kept)
            room -= len(kept)
            hunks += [msgspec.structs.replace(hunk, lines=kept)] if kept else []
    return FileDiff(
        path=path,
        kind=row.kind,
        added=added,
        removed=removed,
        binary=added is None and not large,
        too_large=large,
        remark=row.remark,
        hunks=tuple(hunks),
        left_out=left_out,
    )


def _ids(row: _Row) -> list[tuple[str, str]]:
    """How git names its sections; of a file that became a link there are two."""
    old, new = row.ids
    nothing = "0" * len(old)
    return [(old, nothing), (nothing, new)] if "link" in row.remark else [(old, new)]


def _hunks(section: bytes, hide: Callable[[str], str]) -> Iterator[Hunk]:
    lines: list[DiffLine] = []
    about: re.Match[bytes] | None = None
    old = new = 0
    for line in section.split(b"\n"):
        if head := _HUNK.match(line):
            if about:
                yield _hunk(about, lines, hide)
            about, lines, old, new = head, [], int(head[1]), int(head[3])
        elif about and line:
            sign, text = line[:1].decode(errors="replace"), fit(hide(_text(line[1:])), _LONGEST)
            match sign:
                case "+":
                    lines.append(DiffLine("+", text, None, new))
                    new += 1
                case "-":
                    lines.append(DiffLine("-", text, old, None))
                    old += 1
                case "\\":
                    lines.append(DiffLine("\\", text.strip(), None, None))
                case _:
                    lines.append(DiffLine(" ", text, old, new))
                    old, new = old + 1, new + 1
    if about:
        yield _hunk(about, lines, hide)


def _hunk(about: re.Match[bytes], lines: list[DiffLine], hide: Callable[[str], str]) -> Hunk:
    count = int(about[4]) if about[4] is not None else 1
    first = int(about[3])
    return Hunk(first=first, last=first + max(count, 1) - 1, within=fit(hide(_text(about[5])), 80), lines=tuple(lines))


def _text(line: bytes) -> str:
    """With everything invisible spelled out, and tabs as they are."""
    return visible(line.decode(errors="backslashreplace"))


def _shown(path: bytes) -> str:
    """A path on one line."""
    return visible(path.decode(errors="backslashreplace")).replace("\n", "\\n").replace("\t", "\\t")
