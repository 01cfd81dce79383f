"""Files in another tool's format, written as a loop goes on, for people and scripts; nobody here reads them."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.facts import AnyFact, Record
from bydawn.core.history import History
from bydawn.core.loop import Loop
from bydawn.core.ports import Event
from bydawn.core.state import LoopState
from bydawn.dialects.seam import Append, Copy, Create, Dialect, Replace, Source, View
from bydawn.disk import real_folder, write_private

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_GROWING = os.O_RDWR | os.O_NONBLOCK | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_COMPARED = 64 << 20  # bytes; more than that is rather written twice than read
_CHUNK = 1 << 20
_LONGEST_NAME = 200  # bytes, so that there is room for a draft beside it
_MODE = 0o644  # before the umask: like any other file of the repository


class Views:
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
        self._complained: set[str] = set()
        self._marks = _Marks(folder / "appended.json")

    def saw(self, fact: AnyFact, loop: Loop, state: LoopState) -> None:
        if self._history is None:  # the ledger has this fact already
            self._history = History(self._past())
            self._catch_up(loop, state)
        else:
            self._history.saw(fact, state)
        self._perform(self._dialect.views(fact, loop, state, self._history))

    def heard(self, event: Event) -> None:
        """What streams by is copied when its round has ended."""

    def _catch_up(self, loop: Loop, state: LoopState) -> None:
        """After a crash between a fact and its views the last round's may be missing; to repeat them does no harm."""
        assert self._history is not None  # noqa: S101 - the caller has just made it
        ended = next((each.ended for each in reversed(self._history.attempts) if each.ended), None)
        if ended and ended is self._history.attempts[-1].ended:
            self._perform(self._dialect.views(ended, loop, state, self._history))

    def _perform(self, views: Iterable[View]) -> None:
        for view in views:
            try:
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
                        _pour(text.encode("utf-8", "replace"), fd)
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
                _pour(text.encode(), fd)
            finally:
                os.close(fd)

    @contextmanager
    def _new(self, path: str) -> Iterator[int]:
        """A file that takes its place whole: no reader ever sees a part of it."""
        with self._place(path) as (folder, name):
            draft = f".{name}.tmp"
            with suppress(FileNotFoundError):  # one loop has one writer: a killed one, or somebody with a pipe, left it
                os.unlink(draft, dir_fd=folder)
            fd = os.open(draft, _NEW, _MODE, dir_fd=folder)
            try:
                yield fd
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise
            finally:
                os.close(fd)

    def _append(self, path: str, source: Source) -> None:
        """Once for each round, even if we die in the middle: where the file ended before is known."""
        with self._place(path) as (folder, name), self._source(source) as origin:
            fd = os.open(name, _GROWING, _MODE, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise OSError(errno.EINVAL, "no plain file")
                size, length = os.fstat(fd).st_size, os.fstat(origin).st_size
                inode = os.fstat(fd).st_ino
                begun, was = self._marks.of(path, source.round) or (None, inode)
                if was != inode or (begun is not None and size >= begun + length):
                    return  # it is all there, or was before the file was exchanged for another
                if begun is not None and begun < size and _is_part(fd, begun, size, origin):
                    os.ftruncate(fd, begun)
                    size = begun
                self._marks.note(path, source.round, size, inode)
                _copy(origin, fd)
            finally:
                os.close(fd)

    @contextmanager
    def _place(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a file, made if it is missing, and its name there."""
        root, folders, name = _parts(self._workspace, path)
        if path.startswith("/"):
            Path(root).mkdir(parents=True, exist_ok=True)
        with real_folder(root, *folders, follow=path.startswith("/")) as folder:
            yield folder, name

    @contextmanager
    def _source(self, source: Source) -> Iterator[int]:
        path = self._folder / "rounds" / f"{source.round:04}" / source.name
        fd = os.open(path if path.is_file() else os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


class _Marks:
    """Where each file ended before a round's part was added; in the loop's own folder, out of an agent's reach."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, path: str, round_: int) -> tuple[int, int] | None:
        """Where it ended and which file it was, if this round's part has been begun."""
        number, size, inode = self._known().get(path, (0, 0, 0))
        return (size, inode) if number == round_ else None

    def note(self, path: str, round_: int, size: int, inode: int) -> None:
        write_private(self._path, msgspec.json.encode({**self._known(), path: (round_, size, inode)}))

    def _known(self) -> dict[str, tuple[int, int, int]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, tuple[int, int, int]])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}


def _is_part(fd: int, begin: int, end: int, origin: int) -> bool:
    """Is what stands there the beginning of ours, and not another loop's?"""
    return end - begin <= _COMPARED and os.pread(fd, end - begin, begin) == os.pread(origin, end - begin, 0)


def _pour(data: bytes, fd: int) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _copy(origin: int, fd: int) -> None:
    with os.fdopen(os.dup(origin), "rb") as source, os.fdopen(os.dup(fd), "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)


def is_copy(workspace: Path, path: str, origin: Path) -> bool:
    """Does this file still say what was copied there? One that is gone by now left an empty copy."""
    root, folders, name = _parts(str(workspace), path)
    source = origin if origin.is_file() else Path(os.devnull)
    with suppress(OSError), _existing(root, folders) as folder:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(fd, "rb") as copy, source.open("rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return False
            while (part := copy.read(_CHUNK)) == file.read(_CHUNK):
                if not part:
                    return True
    return False


def remove(workspace: Path, paths: Sequence[str], folder: str) -> list[str]:
    """Remove these files, and that folder if it is empty then; never through a link, and nothing but plain files."""
    removed = []
    for path in paths:
        root, folders, name = _parts(str(workspace), path)
        with suppress(OSError), _existing(root, folders) as place:
            if stat.S_ISREG(os.lstat(name, dir_fd=place).st_mode):
                os.unlink(name, dir_fd=place)
                removed.append(path)
    with suppress(OSError):  # somebody else's files are still in it
        (workspace / folder).rmdir()
    return removed


def _parts(workspace: str, path: str) -> tuple[str, list[str], str]:
    """Where to begin, the folders from there on, and the file's name."""
    *folders, name = path.split("/")
    if path.startswith("/"):
        return str(Path(path).parent), [], name
    return workspace, folders, name


@contextmanager
def _existing(root: str, folders: list[str]) -> Iterator[int]:
    """A folder that is there; nothing is made on the way to remove something."""
    for depth in range(len(folders)):
        if not os.path.lexists(os.path.join(root, *folders[: depth + 1])):  # noqa: PTH118
            raise FileNotFoundError
    with real_folder(root, *folders, follow=not folders) as folder:
        yield folder


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
            raise UserError(f"{path} is no plain file", cause="a file is meant", hint="give another path")
        if len(os.fsencode(target.name)) > _LONGEST_NAME:
            raise UserError(
                f"{path} is too long a name", cause=f"{_LONGEST_NAME} bytes are room enough", hint="shorten it"
            )
        if target.is_dir():
            raise UserError(f"{path} is a folder", cause="a file is meant", hint="give a path in it")
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            cause = f"{there} is no folder" if not there.is_dir() else f"nobody may write to {there}"
            raise UserError(f"{path} cannot be written", cause=cause, hint="give another path")
