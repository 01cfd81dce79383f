"""Read files of a workspace, and nothing outside it."""

import codecs
import os
import stat
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path

from bydawn.core.errors import UserError
from bydawn.system.git import check_there
from bydawn.system.paths import open_fd

READ_AT_MOST = 20 * 1024 * 1024
FILES_AT_MOST = 1_000


def read_text(root: Path, path: str, at_most: int = READ_AT_MOST, errors: str = "strict") -> str | None:
    """A file of a workspace with its newlines unchanged, None if there is no such file."""
    data = read_inside(root, path, at_most)
    if data is None:
        return None
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        return text.decode(errors=errors)
    except UnicodeDecodeError as error:
        offset = len(data) - len(text) + error.start
        cause = f"the byte at offset {offset} is {data[offset]:#04x}, which is not valid there"
        raise UserError(f"{path} is not UTF-8 text", cause=cause, hint="save it as UTF-8") from error


class FileTexts:
    """The files of a workspace; alone, for commands that only read."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read_text(self, path: str, errors: str = "strict") -> str | None:
        return read_text(self._root, path, errors=errors)

    def read_bytes(self, path: str) -> bytes | None:
        return read_inside(self._root, path)

    def read_folder(self, path: str) -> dict[str, str] | None:
        return read_folder(self._root, path)

    def stamp(self, path: str) -> Hashable:
        return stamp(self._root, path)


def stamp(root: Path, path: str) -> Hashable:
    """Another value whenever a file, or a Markdown file in a folder, was written or replaced; None if it is gone."""
    full = f"{root}/{path}"
    try:
        now = os.stat(full)
        names = os.listdir(full) if stat.S_ISDIR(now.st_mode) else []
    except OSError:
        return None
    found = [("", now.st_mtime_ns, now.st_size, now.st_ino)]
    for name in names:
        if name.lower().endswith(".md"):
            with suppress(OSError):
                now = os.stat(f"{full}/{name}")
                found.append((name, now.st_mtime_ns, now.st_size, now.st_ino))
    return tuple(found)


def read_folder(root: Path, path: str) -> dict[str, str] | None:
    """The Markdown files directly in a folder of a workspace, by name, None if there is no such folder."""
    names = markdown_in(root, path)
    if names is None:
        return None
    if len(names) > FILES_AT_MOST:
        cause = f"it has {len(names):,} Markdown files; the limit is {FILES_AT_MOST:,}"
        raise UserError(f"{path} has too many files", cause=cause, hint="is it the right folder?")
    texts: dict[str, str] = {}
    size = 0
    for name in names:
        text = read_text(root, f"{path}/{name}")
        if text is None:  # a dangling link, or a file removed just now
            continue
        texts[name] = text
        size += len(text)
        if size > READ_AT_MOST:
            cause = f"its Markdown files are larger than {READ_AT_MOST // 1024**2} MB in total"
            raise UserError(f"{path} is too big", cause=cause, hint="is it the right folder?")
    return texts


def markdown_in(root: Path, path: str) -> list[str] | None:
    """The names of the Markdown files directly in a folder, None if there is no such folder."""
    real = real_inside(root, path)
    try:
        found = [entry for entry in os.scandir(real) if entry.name.lower().endswith(".md") and entry.name[0] != "."]
    except FileNotFoundError:
        check_there(root)
        return None
    except NotADirectoryError as error:
        raise UserError(f"{path} is not a folder", cause="expected a folder", hint="name a folder") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read", cause=str(error), hint="check its permissions") from error
    names = sorted(entry.name for entry in found if not entry.is_dir())
    for name in names:
        if not name.isascii() and os.fsencode(name).decode(errors="replace") != name:
            cause = f"the name {name!a} is not UTF-8"
            raise UserError(f"a file in {path} has an unreadable name", cause=cause, hint="rename it")
    return names


def real_inside(root: Path, path: str) -> Path:
    """Where a path of a workspace leads; never outside."""
    real = Path(os.path.realpath(root / path))
    if not real.is_relative_to(os.path.realpath(root)):
        raise UserError(f"{path} is not in the workspace", cause=f"it leads to {real}", hint="name a file inside it")
    return real


def read_inside(root: Path, path: str, at_most: int = READ_AT_MOST) -> bytes | None:
    """The bytes of a file in a workspace, None if there is no such file; never waits for a pipe."""
    real = real_inside(root, path)
    if real.is_dir():
        raise UserError(f"{path} is a folder", cause="expected a file", hint="name a file inside it")
    try:
        data = read_regular(real, at_most + 1)
    except (FileNotFoundError, NotADirectoryError):
        check_there(root)
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read", cause=str(error), hint="check its permissions") from error
    if data is not None and len(data) > at_most:
        cause = f"it is larger than {at_most // 1024**2} MB"
        raise UserError(f"{path} is too big", cause=cause, hint="is it the right file?")
    return data


def read_regular(path: Path, at_most: int) -> bytes | None:
    """The first bytes of a regular file, None for anything else; never waits for a pipe."""
    with open_fd(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(at_most)
