"""Writes the files of a dialect while its loop runs, for people and scripts; bydawn never reads them back."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, LoopStopped, Record, RunStarted
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.ports import Event
from bydawn.core.state import LoopState
from bydawn.dialects.seam import Append, Copy, Create, Dialect, Replace, Source, View, draft
from bydawn.dialects.written import Appended, Part, Written, digest_of
from bydawn.system.writing import real_folder

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_GROWING = os.O_RDWR | os.O_NONBLOCK | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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
    ) -> None:
        self._dialect = dialect
        self._folder = folder
        self._past = past
        self._workspace = str(workspace)
        self._say = say
        self._history: History | None = None
        self._last: dict[str, str] = {}  # texts, so that nothing is written twice
        self._draft: Callable[[], str] = str
        self._left: set[str] = set()
        self._complained: set[str] = set()
        self._marks = Appended(folder)
        self._written = Written(folder)
        self._at_rest = False  # had the loop ended in good order before what happens now?

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        if self._history is None:  # the ledger has this fact already
            self._history = History(self._watched(self._past()))
            # Random, so that nothing can have been put there before.
            self._draft = lambda: draft(loop, int.from_bytes(os.urandom(8), "big"))
            sweep(Path(self._workspace), self._dialect.files(loop).of([1]), loop)
            self._leave_alone(loop, state)
            if not self._at_rest:
                self._catch_up(loop, state)
        else:
            self._history.saw(fact, state)
        self._perform(self._dialect.views(fact, loop, state, self._history))

    def heard(self, event: Event) -> None:
        """What streams by is copied when its round has ended."""

    def _watched(self, past: Iterable[Record]) -> Iterator[Record]:
        stopped = False
        for record in past:
            self._at_rest = stopped
            stopped = isinstance(record.fact, LoopStopped) or (stopped and not isinstance(record.fact, RunStarted))
            yield record

    def _leave_alone(self, loop: Loop, state: LoopState) -> None:
        """Find the files that a person has changed since the last run; these are not written again."""
        assert self._history is not None  # noqa: S101 - the caller has just made it
        workspace, number = Path(self._workspace), self._dialect.counted(state)
        first = number if self._history.attempts else number + 1  # earlier ones are another program's
        paths = self._dialect.files(loop).of(range(first, number + 2))
        there = {path: digest_at(workspace, path) for path in paths if os.path.lexists(workspace / path)}
        if not self._written:
            # A new loop, or one of an older version, which kept no digests: before it started these were looked at.
            self._written.note({path: digest for path, digest in there.items() if digest})
        self._left = {path for path, digest in there.items() if not self._written.recognizes(path, digest)}

    def _catch_up(self, loop: Loop, state: LoopState) -> None:
        """After a crash between a fact and its views the last round's may be missing; to repeat them does no harm."""
        assert self._history is not None  # noqa: S101 - the caller has just made it
        ended = next((each.ended for each in reversed(self._history.attempts) if each.ended), None)
        if ended and ended is self._history.attempts[-1].ended:
            self._perform(self._dialect.views(ended, loop, state, self._history))

    def _perform(self, views: Iterable[View]) -> None:
        for view in views:
            try:
                if view.path in self._left:
                    raise OSError(errno.EEXIST, "it has been changed since this loop wrote it")
                self._write(view)
            except OSError as error:
                if view.path not in self._complained:
                    self._complained.add(view.path)
                    self._say(f"{view.path} cannot be written: {error.strerror or error}; the loop goes on without it")

    def _write(self, view: View) -> None:
        match view:
            case Replace(path, text):
                if self._last.get(path) != text:
                    with self._new(path) as fd:
                        _pour(text, fd)
                    self._last[path] = text
            case Create(path, text):
                self._create(path, text)
            case Copy(path, source):
                with self._new(path) as fd, self._source(source) as origin:
                    _copy(origin, fd)
            case Append(path, source):
                self._append(path, source)

    def _create(self, path: str, text: str) -> None:
        with self._place(path) as (folder, name), suppress(FileExistsError):
            fd = os.open(name, _NEW, _MODE, dir_fd=folder)
            try:
                _pour(text, fd)
                self._written.note({path: digest_of(fd)})
            finally:
                os.close(fd)

    @contextmanager
    def _new(self, path: str) -> Iterator[int]:
        """A file that takes its place whole: no reader ever sees a part of it."""
        with self._place(path) as (folder, name):
            unfinished = self._draft()
            fd = os.open(unfinished, _NEW, _MODE, dir_fd=folder)
            try:
                yield fd
                self._written.note({path: digest_of(fd)})
                os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(unfinished, dir_fd=folder)
                raise
            finally:
                os.close(fd)

    def _append(self, path: str, source: Source) -> None:
        """Once for each round, even if we die in the middle: where the file ended before is known."""
        with self._place(path) as (folder, name), self._source(source) as origin:
            fd = os.open(name, _GROWING, _MODE, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise OSError(errno.EINVAL, "not a regular file")
                size, length = os.fstat(fd).st_size, os.fstat(origin).st_size
                if not length:
                    return
                inode = os.fstat(fd).st_ino
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
            finally:
                os.close(fd)

    @contextmanager
    def _place(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a file, made if it is missing, and its name there; through no link, wherever it is."""
        root, folders, name = _parts(self._workspace, path)
        opened = _way(folders, make=True) if root == "/" else real_folder(root, *folders)
        with opened as folder:
            yield folder, name

    @contextmanager
    def _source(self, source: Source) -> Iterator[int]:
        path = self._folder / "rounds" / f"{source.round:04}" / source.name
        fd = os.open(path if path.is_file() else os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


def _on_a_new_line(fd: int, size: int) -> int:
    """End the line that a killed agent left; how many bytes that took."""
    return os.write(fd, b"\n") if size and os.pread(fd, 1, size - 1) != b"\n" else 0


def _is_part(fd: int, begin: int, end: int, origin: int) -> bool:
    """Are these bytes the beginning of ours, and not another loop's?"""
    return end - begin <= _COMPARED and os.pread(fd, end - begin, begin) == os.pread(origin, end - begin, 0)


def _pour(text: str, fd: int) -> None:
    view = memoryview(text.encode("utf-8", "replace"))  # what cannot be written does not keep the rest from it
    while view:
        view = view[os.write(fd, view) :]


def _copy(origin: int, fd: int) -> None:
    with os.fdopen(os.dup(origin), "rb") as source, os.fdopen(os.dup(fd), "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)


def digest_at(workspace: Path, path: str) -> str | None:
    """The digest of a regular file, through no link and without waiting; None for anything else."""
    with suppress(OSError), _opened(workspace, path) as fd:
        return digest_of(fd)
    return None


@contextmanager
def _opened(workspace: Path, path: str) -> Iterator[int]:
    root, folders, name = _parts(str(workspace), path)
    with _existing(root, folders) as folder:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            yield fd
        finally:
            os.close(fd)


def keep(workspace: Path, path: str) -> None:
    """Copy a regular file beside itself, as `NAME.original.ENDING`, unless that copy is there already."""
    root, folders, name = _parts(str(workspace), path)
    stem, dot, ending = name.rpartition(".")
    copy = f"{stem}.original{dot}{ending}"
    try:
        with _existing(root, folders) as folder, suppress(FileExistsError):
            _copy_beside(folder, name, copy)
    except OSError as error:
        hint = "nothing was changed; look at its permissions and at free disk space"
        raise UserError(f"{path} cannot be kept", cause=error.strerror or str(error), hint=hint) from None
    if digest_at(workspace, path.removesuffix(name) + copy) != digest_at(workspace, path):
        hint = f"nothing was changed; move {copy} away"
        raise UserError(f"{path} cannot be kept", cause=f"{copy} is another file", hint=hint)


def _copy_beside(folder: int, name: str, copy: str) -> None:
    origin = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(origin).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        fd = os.open(copy, _NEW, _MODE, dir_fd=folder)
        try:
            _copy(origin, fd)
            os.fsync(fd)  # what it is a copy of will be gone soon
        finally:
            os.close(fd)
    finally:
        os.close(origin)


def has_grown(folder: Path, workspace: Path, path: str) -> bool:
    """Is what was appended to this file last still where it was appended?"""
    part = Appended(folder).last(path)
    if part is None or not part.digest:
        return False
    with suppress(OSError), _opened(workspace, path) as fd:
        return digest_of(fd, part.begin, part.length) == part.digest
    return False


def remove(workspace: Path, paths: Sequence[str], folder: str = "") -> tuple[list[str], dict[str, str]]:
    """Remove these files, and that folder if it is empty then; never through a link, and nothing but plain files.

    Which were removed, and which could not be, and why.
    """
    removed, stuck = [], {}
    for path in paths:
        root, folders, name = _parts(str(workspace), path)
        try:
            with _existing(root, folders) as place:
                if stat.S_ISREG(os.lstat(name, dir_fd=place).st_mode):
                    os.unlink(name, dir_fd=place)
                    removed.append(path)
        except (FileNotFoundError, NotADirectoryError):  # gone, or exchanged for something that is not ours
            pass
        except OSError as error:
            stuck[path] = error.strerror or str(error)
    root, folders, name = _parts(str(workspace), folder)
    with suppress(OSError), _existing(root, folders) as place:  # files of other writers are still in it
        os.rmdir(name, dir_fd=place)
    return removed, stuck


def sweep(workspace: Path, paths: Sequence[str], loop: Loop) -> None:
    """Remove the drafts that killed writers of this loop left beside these files; no other process writes for it."""
    ours = re.compile(re.escape(draft(loop, "*")).replace(r"\*", "[0-9]+"))
    for path in {path.rpartition("/")[0]: path for path in paths}.values():
        root, folders, _ = _parts(str(workspace), path)
        with suppress(OSError), _existing(root, folders) as folder:
            for name in filter(ours.fullmatch, _names(folder)):
                if stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode):
                    os.unlink(name, dir_fd=folder)


def _names(folder: int) -> list[str]:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _parts(workspace: str, path: str) -> tuple[str, list[str], str]:
    """Where to begin, the folders from there on, and the file's name."""
    *folders, name = path.split("/")
    if path.startswith("/"):
        return "/", [folder for folder in folders if folder], name
    return workspace, folders, name


@contextmanager
def _existing(root: str, folders: list[str]) -> Iterator[int]:
    """A folder that is there; nothing is made on the way to remove something."""
    if root == "/":
        with _way(folders, make=False) as folder:
            yield folder
        return
    for depth in range(len(folders)):
        if not os.path.lexists(os.path.join(root, *folders[: depth + 1])):  # noqa: PTH118
            raise FileNotFoundError
    with real_folder(root, *folders, follow=not folders) as folder:
        yield folder


@contextmanager
def _way(folders: list[str], *, make: bool) -> Iterator[int]:
    """A folder by its real path: where a person's links lead was found out when the loop began.

    Those above it may be closed to readers, so they are only gone through.
    """
    fd = os.open("/", _THROUGH)
    try:
        for name in folders:
            if make and not _is_there(name, fd):
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=fd)
            inner = os.open(name, _THROUGH, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _is_there(name: str, folder: int) -> bool:
    with suppress(FileNotFoundError):
        os.lstat(name, dir_fd=folder)
        return True
    return False


def refuse_unwritable(workspace: Path, paths: Sequence[str]) -> None:
    """Before anything is spent: can these files be written at all?"""
    for path in paths:
        place = Path(path).parent if path.startswith("/") else workspace / Path(path).parent
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
