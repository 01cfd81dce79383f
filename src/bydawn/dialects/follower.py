"""Writes the files of a dialect while its loop runs, for people and scripts; bydawn never reads them back."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from itertools import count, takewhile
from mmap import ACCESS_READ, mmap
from pathlib import Path
from stat import S_IMODE

from bydawn.core.agent import Complaint, Event
from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, Record
from bydawn.core.history import History
from bydawn.core.layout import round_file
from bydawn.core.loop import Loop
from bydawn.core.redact import Secrets, rewritten
from bydawn.core.replay import after
from bydawn.core.state import LoopState
from bydawn.core.text import plain
from bydawn.dialects import of_loop
from bydawn.dialects.seam import Dialect, Entry, Log, Source, View, Whole, draft
from bydawn.dialects.written import Logs, Written, digest_of, marks_of
from bydawn.system import shared_file
from bydawn.system.paths import open_fd, open_parent, open_regular, unlink_regular
from bydawn.system.reading import stamp
from bydawn.system.writing import replacing, write_all

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW  # read again for its digest
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
        """`grown` gets each line for a log. A process that is not `at_work` leaves what others wrote since."""
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
        self._written = Written(folder)
        self._at_work = at_work
        self._now: tuple[Loop, LoopState] | None = None
        self._logs = Logs(folder, workspace, ())
        self._owned: tuple[str, ...] = ()
        self._grown = grown
        hidden = secrets or Secrets({})
        # A key that is printed line by line on one stream goes on when the other stream has said something.
        self._hide, self._hide_complaint = hidden.line_by_line(), hidden.line_by_line()

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        """The ledger has this fact already."""
        self._now = (loop, state)
        if self._history is None:
            self._begin(loop, state)
        self._history = history = self._made_up(loop, state.seq - 1)
        self._follow(fact, loop, state, history)

    def heard(self, event: Event) -> None:
        """What streams by grows into the logs; all else is copied when its round has ended."""
        if not self._logs or self._now is None or self._history is None:
            return
        self._history = self._made_up(self._now[0], self._now[1].seq)
        self._logs.begin(0)
        hide = self._hide_complaint if isinstance(event, Complaint) else self._hide
        event = rewritten(event, lambda text: hide(plain(text)))  # before the dialect cuts it into lines
        self._perform(self._dialect.heard(event, *self._now, self._history, datetime.now(UTC)))

    def _begin(self, loop: Loop, state: LoopState) -> None:
        # Random, so that nothing can have been put there before.
        self._draft = lambda: draft(loop, int.from_bytes(os.urandom(8), "big"))
        files = self._dialect.files(loop)
        self._owned, self._logs = files.owned, Logs(self._folder, self._workspace, files.logs)
        owned = files.owned if self._at_work else ()  # there may be thousands of files
        sweep(Path(self._workspace), (*files.of([1]), *files.common, *files.shared, *owned), loop)
        self._leave_alone(loop, state)
        for path, file in self._logs.live.items() if self._at_work else ():
            with self._complaining(path):
                file.remove_old()

    def _made_up(self, loop: Loop, last: int) -> History:
        """What has happened up to this fact; what no one has followed to its end is written now, from the ledger.

        So are lines of JSON that are missing: after a crash, or because their file was gone.
        """
        for path in self._logs.lines:
            with self._complaining(path):
                self._logs.fit(path, last)
        since, looks_back = self._logs.since(last), self._dialect.needs_history
        if since >= last and (self._history or not looks_back):
            return self._history or History()
        past, history = LoopState(), History()
        for record in self._past():
            if record.seq > last:
                break
            past = after(past, record)
            if record.seq > since:
                self._follow(record.fact, loop, past, history, again=True)
            elif looks_back:
                history.saw(record.fact, past)
        return history

    def _follow(self, fact: AnyFact, loop: Loop, state: LoopState, history: History, *, again: bool = False) -> None:
        if self._dialect.needs_history:
            history.saw(fact, state)
        views = self._dialect.views(fact, loop, state, history)
        if self._logs.is_done(state.seq):  # told again, because lines are gone, or to write the files once more
            lines, live = self._logs.lines, self._logs.live
            views = takewhile(lambda view: view.path in lines, views) if again else _without(live, views)
        self._logs.begin(state.seq, again=again)
        self._perform(views)
        self._logs.end()

    def _leave_alone(self, loop: Loop, state: LoopState) -> None:
        """Find the files that a person has changed since the last run; these are not written again."""
        workspace, number, files = Path(self._workspace), self._dialect.counted(state), self._dialect.files(loop)
        paths = files.of(range(max(1, number), number + 2))
        there = {path: digest_at(workspace, path) for path in paths if os.path.lexists(workspace / path)}
        if not self._written:
            # A new loop: before it started these were looked at.
            self._written.note({path: digest for path, digest in there.items() if digest})
        if not self._at_work:
            there |= {path: digest_at(workspace, path) for path in files.common if os.path.lexists(workspace / path)}
        self._left = {path for path, digest in there.items() if not self._written.recognizes(path, digest)}
        if self._left & {*files.common}:  # another loop may be at work
            self._left |= {*files.grown}

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
            case Whole():
                self._replace(view.path, view.text, once=view.once)
            case Log():
                self._add(view)
            case Entry():
                self._share(view)

    def _replace(self, path: str, text: str | Source | None, *, once: bool) -> None:
        if once and os.path.lexists(Path(self._workspace, path)):
            return
        if isinstance(text, Source):
            with self._new(path) as fd, self._source(text) as origin:
                _copy(origin, fd)
        elif text is None:
            self._last.pop(path, None)
            with suppress(FileNotFoundError), open_parent(self._workspace, path) as (folder, name):
                unlink_regular(folder, name)
        elif self._last.get(path) != (text, self._stamp(path)):
            with self._new(path) as fd:
                write_all(fd, text.encode("utf-8", "replace"))
            self._last[path] = (text, self._stamp(path))

    def _add(self, log: Log) -> None:
        path, more = log.path, log.more
        if isinstance(more, dict):
            if self._logs.add(log):
                self._say(f"{path} has lines that this loop did not write; they stay, and its own go on after them")
        elif isinstance(more, Source):
            with self._source(more) as origin, _mapped(origin) as data:
                self._logs.live[path].append(data)
        else:
            lines, is_news = tuple(map(plain, more)), True
            try:
                is_news = self._logs.live[path].add(lines, fresh=log.fresh)
            finally:  # people see it even if the disk is full
                for line in lines if is_news else ():
                    self._grown(line)

    def _stamp(self, path: str) -> Hashable:
        """Of an owned file, which is written again if someone else has changed it."""
        return stamp(Path(self._workspace), path) if path.startswith(self._owned) else None

    def _share(self, view: Entry) -> None:
        """Only news, or if the file is gone; where another process keeps the lock it is asked for only briefly."""
        path, key = Path(self._workspace, view.path), (view.path, *view.keys)
        if self._shared.get(key) == view.value and os.path.lexists(path):
            return
        if not self._at_work and _is_anothers(shared_file.read(path), view):
            return
        patience = shared_file.PATIENCE / (10 if view.path in self._complained else 1)
        shared_file.update(path, {view.keys: view.value}, self._say, patience=patience)
        self._shared[key] = view.value

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

    def _source(self, source: Source) -> AbstractContextManager[int]:
        path = self._folder / round_file(source.round, source.name)
        return open_fd(path if path.is_file() else os.devnull, os.O_RDONLY)


def _without(paths: Container[str], views: Iterable[View]) -> Iterator[View]:
    return (view for view in views if view.path not in paths)


def _is_anothers(found: object, view: Entry) -> bool:
    for key in (*view.keys, view.owner):
        found = found.get(key) if isinstance(found, dict) else None
    return found not in (None, view.value.get(view.owner))


def _mapped(fd: int) -> AbstractContextManager[bytes | mmap]:
    """All of a file; nothing of it is read yet."""
    return mmap(fd, 0, access=ACCESS_READ) if os.fstat(fd).st_size else nullcontext(b"")


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
    """Is what was appended to this file still there?"""
    mark = marks_of(folder).logs.get(path)
    with suppress(OSError), open_regular(workspace, path) as file:
        there = os.fstat(file.fileno())
        return mark is not None and there.st_ino == mark.inode and there.st_size >= mark.end
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
