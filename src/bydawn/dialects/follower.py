"""Writes the files of a dialect while its loop runs, for people and scripts; bydawn never reads them back."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count, takewhile
from pathlib import Path
from stat import S_IMODE

from msgspec.structs import astuple

from bydawn.core.agent import Complaint, Event
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, LoopStopped, Record, RunStarted
from bydawn.core.history import History
from bydawn.core.layout import round_file
from bydawn.core.loop import Loop
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.dialects import of_loop
from bydawn.dialects.seam import (
    Append,
    Copy,
    Create,
    Dialect,
    Grow,
    Line,
    Remove,
    Replace,
    Rotate,
    Share,
    Source,
    View,
    draft,
)
from bydawn.dialects.written import Appended, Lines, Part, Written, digest_of
from bydawn.system import shared_file
from bydawn.system.live_file import LiveFile
from bydawn.system.paths import open_fd, open_parent, open_regular, regular_at, unlink_regular
from bydawn.system.reading import stamp
from bydawn.system.writing import replacing, write_all

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW  # read again for its digest
_COMPARED = 64 << 20  # bytes; more than that is rather written twice than read
_CHUNK = 1 << 20
_LONGEST_NAME = 200  # bytes; file systems have room for 255, and some encrypt names
_MODE = 0o644  # before the umask: like any other file of the repository


class DialectFollower:
    """A follower; what it cannot write it says once, and the loop goes on without it."""

    def __init__(
        self,
        dialect: Dialect,
        folder: Path,
        workspace: Path,
        past: Callable[[], Iterable[Record]],
        say: Callable[[str], None],
        *,
        grown: Callable[[str], None] = lambda _: None,
        secrets: Secrets | None = None,
        at_work: bool = True,
    ) -> None:
        """`grown` gets each line for a live file. A process that is not `at_work` leaves what others wrote since."""
        self._dialect = dialect
        self._folder = folder
        self._past = past
        self._workspace = str(workspace)
        self._say = say
        self._history: History | None = None
        self._last: dict[str, tuple[str, Hashable]] = {}  # texts, so that nothing is written twice
        self._shared: dict[tuple[str, ...], dict[str, object]] = {}  # the same for entries
        self._draft: Callable[[], str] = str
        self._left: set[str] = set()
        self._complained: set[str] = set()
        self._marks = Appended(folder)
        self._written = Written(folder)
        self._at_rest = False  # had the loop ended in good order before what happens now?
        self._at_work = at_work
        self._now: tuple[Loop, LoopState] | None = None
        self._live: dict[str, LiveFile] = {}
        self._lines = Lines(folder, workspace, ())
        self._owned: tuple[str, ...] = ()
        self._grown = grown
        hidden = secrets or Secrets({})
        # A key that is printed line by line on one stream goes on when the other stream has said something.
        self._hide, self._hide_complaint = hidden.line_by_line(), hidden.line_by_line()

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        self._now, history = (loop, state), self._history
        if history is None:  # the ledger has this fact already
            history = self._history = History(self._watched(self._past()) if self._dialect.needs_history else ())
            # Random, so that nothing can have been put there before.
            self._draft = lambda: draft(loop, int.from_bytes(os.urandom(8), "big"))
            files = self._dialect.files(loop)
            self._owned, self._lines = files.owned, Lines(self._folder, self._workspace, files.lines)
            owned = files.owned if self._at_work else ()  # there may be thousands of files
            sweep(Path(self._workspace), (*files.of([1]), *files.common, *owned), loop)
            self._leave_alone(loop, state)
            rotation = astuple(files.rotation) if files.rotation else ()
            self._live = {path: LiveFile(self._workspace, path, *rotation) for path in files.live}
            views = [*self._dialect.views(fact, loop, state, history)]
            self._perform(view for view in views if isinstance(view, Rotate))
            if not self._at_rest:
                self._catch_up(loop, state, history)
            self._close(loop, state, history)
            views = [*_without_growth(views)]
        else:
            self._remember(history, fact, state)
            views = [*self._dialect.views(fact, loop, state, history)]
        self._make_up(loop, state.seq - 1)
        self._lines.begin(state.seq)
        self._perform(views)
        self._lines.end()

    def heard(self, event: Event) -> None:
        """What streams by grows into the live files; all else is copied when its round has ended."""
        if not (self._live or self._lines.paths) or self._now is None or self._history is None:
            return
        self._make_up(self._now[0], self._now[1].seq)
        self._lines.begin(0)
        hide = self._hide_complaint if isinstance(event, Complaint) else self._hide
        event = rewritten(event, lambda text: hide(plain(text)))  # before the dialect cuts it into lines
        self._perform(self._dialect.heard(event, *self._now, self._history, datetime.now(UTC)))

    def _close(self, loop: Loop, state: LoopState, history: History) -> None:
        """End what a crash left open in the live files."""
        for path, file in self._live.items():
            with self._complaining(path):
                if self._at_work:
                    file.remove_old()
                lines = self._dialect.closing(path, file.last_lines(), loop, state, history)
                self._perform([Grow(path, lines)] if lines else ())

    def _watched(self, past: Iterable[Record]) -> Iterator[Record]:
        stopped = False
        for record in past:
            self._at_rest = stopped
            stopped = isinstance(record.fact, LoopStopped) or (stopped and not isinstance(record.fact, RunStarted))
            yield record

    def _leave_alone(self, loop: Loop, state: LoopState) -> None:
        """Find the files that a person has changed since the last run; these are not written again."""
        workspace, number, files = Path(self._workspace), self._dialect.counted(state), self._dialect.files(loop)
        paths = files.of(range(max(1, number), number + 2))
        there = {path: digest_at(workspace, path) for path in paths if os.path.lexists(workspace / path)}
        if not self._written:
            # A new loop, or one of an older version, which kept no digests: before it started these were looked at.
            self._written.note({path: digest for path, digest in there.items() if digest})
        if not self._at_work:
            there |= {path: digest_at(workspace, path) for path in files.common if os.path.lexists(workspace / path)}
        self._left = {path for path, digest in there.items() if not self._written.recognizes(path, digest)}
        if self._left & {*files.common}:  # another loop may be at work
            self._left |= {*files.live}

    def _catch_up(self, loop: Loop, state: LoopState, history: History) -> None:
        """After a crash between a fact and its views the last round's may be missing; to repeat them does no harm."""
        if history.attempts and (ended := history.attempts[-1].ended):
            self._perform(_without_growth(self._dialect.views(ended, loop, state, history)))

    def _remember(self, history: History, fact: AnyFact, state: LoopState) -> None:
        if self._dialect.needs_history:
            history.saw(fact, state)

    def _make_up(self, loop: Loop, last: int) -> None:
        """Write the lines that are missing up to this fact, after a crash or because a file is gone, from the ledger.

        Without a history, so are all other views of facts that no one has followed.
        """
        for path in self._lines.paths:
            with self._complaining(path):
                self._lines.fit(path, last)
        if (since := self._lines.since(last)) >= last:
            return
        past, history, done = LoopState(), History(), self._lines.done
        for record in self._past():
            past = after(past, record)
            self._remember(history, record.fact, past)
            if since < record.seq <= last:
                views = self._dialect.views(record.fact, loop, past, history)
                is_new = record.seq > done and not self._dialect.needs_history
                self._lines.begin(record.seq, again=True)
                self._perform(views if is_new else takewhile(lambda view: isinstance(view, Line), views))
                self._lines.end()

    def _perform(self, views: Iterable[View]) -> None:
        for view in views:
            with self._complaining(view.path):
                if view.path in self._left:
                    raise OSError(errno.EEXIST, "it has been changed since this loop wrote it")
                self._write(view)

    @contextmanager
    def _complaining(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if path not in self._complained:
                self._complained.add(path)
                self._say(f"{path} cannot be written: {error.strerror or error}; the loop goes on without it")

    def _write(self, view: View) -> None:
        match view:
            case Replace(path, text):
                if self._last.get(path) != (text, self._stamp(path)):
                    with self._new(path) as fd:
                        write_all(fd, _encoded(text))
                    self._last[path] = (text, self._stamp(path))
            case Create(path, text):
                if not os.path.lexists(Path(self._workspace, path)):  # whole or not at all, even if we die in between
                    self._write(Replace(path, text))
            case Copy(path, source):
                with self._new(path) as fd, self._source(source) as origin:
                    _copy(origin, fd)
            case Append(path, source):
                self._append(path, source)
            case Grow(path, lines):
                self._grow(path, lines)
            case Rotate(path):
                self._live[path].rotate()
            case Line(path):
                if self._lines.add(view):
                    self._say(f"{path} has lines that this loop did not write; they stay, and its own go on after them")
            case Share():
                self._share(view)
            case Remove(path):
                self._last.pop(path, None)
                with suppress(FileNotFoundError), open_parent(self._workspace, path) as (folder, name):
                    unlink_regular(folder, name)

    def _stamp(self, path: str) -> Hashable:
        """Of an owned file, which is written again if someone else has changed it."""
        return stamp(Path(self._workspace), path) if path.startswith(self._owned) else None

    def _share(self, view: Share) -> None:
        """Only news, or if the file is gone; where another process keeps the lock it is asked for only briefly."""
        path, key = Path(self._workspace, view.path), (view.path, *view.keys)
        if self._shared.get(key) == view.value and os.path.lexists(path):
            return
        if not self._at_work and _is_anothers(shared_file.read(path), view):
            return
        patience = shared_file.PATIENCE / (10 if view.path in self._complained else 1)
        shared_file.update(path, {view.keys: view.value}, self._say, patience=patience)
        self._shared[key] = view.value

    def _grow(self, path: str, lines: tuple[str, ...]) -> None:
        lines = tuple(map(plain, lines))
        try:
            self._live[path].add(lines)
        finally:  # people see it even if the disk is full
            for line in lines:
                self._grown(line)

    @contextmanager
    def _new(self, path: str) -> Iterator[int]:
        """A file that takes its place whole: no reader ever sees a part of it."""
        with (
            open_parent(self._workspace, path, make=True) as (folder, name),
            replacing(name, self._draft(), _NEW, _MODE, folder=folder) as fd,
        ):
            yield fd
            if not path.startswith(self._owned):
                self._written.note({path: digest_of(fd)})

    def _append(self, path: str, source: Source) -> None:
        """Once for each round, even if we die in the middle: where the file ended before is known."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        with (
            open_parent(self._workspace, path, make=True) as (folder, name),
            self._source(source) as origin,
            regular_at(folder, name, flags, _MODE) as fd,
        ):
            size, length, inode = os.fstat(fd).st_size, os.fstat(origin).st_size, os.fstat(fd).st_ino
            if not length:
                return
            part = self._marks.last(path)
            begun, was = (part.begin, part.inode) if part and part.round == source.round else (None, inode)
            if was != inode or (begun is not None and size >= begun + length):
                return  # it is all there, or was before the file was exchanged for another
            if begun is not None and begun < size and _is_part(fd, begun, size, origin):
                os.ftruncate(fd, begun)
                size = begun
            size += _on_a_new_line(fd, size)
            self._marks.note(path, Part(source.round, size, inode, length, digest_of(origin)))
            _copy(origin, fd)

    def _source(self, source: Source) -> AbstractContextManager[int]:
        path = self._folder / round_file(source.round, source.name)
        return open_fd(path if path.is_file() else os.devnull, os.O_RDONLY)


def _without_growth(views: Iterable[View]) -> Iterator[View]:
    """Whether these lines were written before a crash is not known; what closes the file stands for them."""
    return (view for view in views if not isinstance(view, Grow | Rotate))


def _is_anothers(found: object, view: Share) -> bool:
    for key in (*view.keys, view.owner):
        found = found.get(key) if isinstance(found, dict) else None
    return found not in (None, view.value.get(view.owner))


def _on_a_new_line(fd: int, size: int) -> int:
    """End the line that a killed agent left; how many bytes that took."""
    return os.write(fd, b"\n") if size and os.pread(fd, 1, size - 1) != b"\n" else 0


def _is_part(fd: int, begin: int, end: int, origin: int) -> bool:
    """Are these bytes the beginning of ours, and not another loop's?"""
    return end - begin <= _COMPARED and os.pread(fd, end - begin, begin) == os.pread(origin, end - begin, 0)


def _encoded(text: str) -> bytes:
    """A text as bytes; a character that cannot be encoded is replaced."""
    return text.encode("utf-8", "replace")


def _copy(origin: int, fd: int) -> None:
    with os.fdopen(os.dup(origin), "rb") as source, os.fdopen(os.dup(fd), "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)


def followers_of(
    loop: Loop,
    folder: Path,
    records: Callable[[], Iterable[Record]],
    say: Callable[[str], None],
    *,
    grown: Callable[[str], None] = lambda _: None,
    secrets: Secrets | None = None,
    at_work: bool = True,
) -> Sequence[DialectFollower]:
    """The follower that writes another tool's files, if the loop was started in its dialect."""
    if (dialect := of_loop(loop)) is None:
        return ()
    place = Path(loop.workspace)
    return (DialectFollower(dialect, folder, place, records, say, grown=grown, secrets=secrets, at_work=at_work),)


def digest_at(workspace: Path, path: str) -> str | None:
    """The digest of a regular file, through no link and without waiting; None for anything else."""
    with suppress(OSError), open_regular(workspace, path) as file:
        return digest_of(file.fileno())
    return None


def keep(workspace: Path, path: str) -> None:
    """Copy a regular file beside itself, as `NAME.original.ENDING`, unless such a copy is there already.

    A different file of that name stays: the copy is `NAME.original-2.ENDING` then, and so on.
    """
    digest, name = digest_at(workspace, path), Path(path)
    for number in count(1):
        again = f"-{number}" if number > 1 else ""
        copy = str(name.with_name(f"{name.stem}.original{again}{name.suffix}"))
        if digest and digest_at(workspace, copy) == digest:
            return
        if not os.path.lexists(workspace / copy):
            break
    try:
        with (
            open_regular(workspace, path) as origin,
            open_parent(workspace, copy) as (folder, new),
            open_fd(new, _NEW, S_IMODE(os.fstat(origin.fileno()).st_mode), folder=folder) as fd,
        ):
            _copy(origin.fileno(), fd)
            os.fsync(fd)  # what it is a copy of will be gone soon
    except OSError as error:
        hint = "nothing was changed; check its permissions and free disk space"
        raise UserError(f"cannot keep a copy of {path}", cause=error.strerror or str(error), hint=hint) from None


def has_grown(folder: Path, workspace: Path, path: str) -> bool:
    """Is what was appended to this file last still where it was appended?"""
    part = Appended(folder).last(path)
    if part is None or not part.digest:
        return False
    with suppress(OSError), open_regular(workspace, path) as file:
        return digest_of(file.fileno(), part.begin, part.length) == part.digest
    return False


def remove(workspace: Path, paths: Sequence[str], folder: str = "") -> tuple[list[str], dict[str, str]]:
    """Remove these files, and that folder if it is empty then; never through a link, and nothing but plain files.

    Which were removed, and which could not be, and why.
    """
    removed, stuck = [], {}
    for path in paths:
        try:
            with open_parent(workspace, path) as (place, name):
                if unlink_regular(place, name):
                    removed.append(path)
        except (FileNotFoundError, NotADirectoryError):  # gone, or exchanged for something that is not ours
            pass
        except OSError as error:
            stuck[path] = error.strerror or str(error)
    with suppress(OSError), open_parent(workspace, folder) as (place, name):  # files of other writers are still in it
        os.rmdir(name, dir_fd=place)
    return removed, stuck


def sweep(workspace: Path, paths: Sequence[str], loop: Loop) -> None:
    """Remove the drafts that killed writers of this loop left beside these files; no other process writes for it."""
    ours = re.compile(re.escape(draft(loop, "*")).replace(r"\*", "[0-9]+"))
    for path in {path.rpartition("/")[0]: path for path in paths}.values():
        with suppress(OSError), open_parent(workspace, path) as (folder, _):
            for name in filter(ours.fullmatch, _names(folder)):
                unlink_regular(folder, name)


def _names(folder: int) -> list[str]:
    with open_fd(".", os.O_RDONLY | os.O_DIRECTORY, folder=folder) as fd:
        return os.listdir(fd)


def refuse_unwritable(workspace: Path, paths: Sequence[str]) -> None:
    """Before anything is spent: can these files be written at all?"""
    for path in paths:
        place = (workspace / path).parent
        links = [] if path.startswith("/") else [each for each in (place, *place.parents) if each.is_symlink()]
        links = [each for each in links if each.is_relative_to(workspace)]
        there = next(each for each in (place, *place.parents) if os.path.lexists(each))
        if links:
            raise UserError(
                f"{path} leads through a link",
                cause=f"{links[0]} is one",
                hint="make it a folder, or give another path",
            )
        if os.path.lexists(target := place / Path(path).name) and not (target.is_file() or target.is_dir()):
            raise UserError(f"{path} is not a regular file", cause="a file is meant", hint="give another path")
        if len(os.fsencode(target.name)) > _LONGEST_NAME:
            raise UserError(
                f"{path} is too long a name", cause=f"{_LONGEST_NAME} bytes are room enough", hint="shorten it"
            )
        if target.is_dir():
            raise UserError(f"{path} is a folder", cause="a file is meant", hint="give a path in it")
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            cause = f"{there} is not a folder" if not there.is_dir() else f"you may not write to {there}"
            raise UserError(f"{path} cannot be written", cause=cause, hint="give another path")
