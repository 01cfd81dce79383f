"""The documents of a loop: task list, notes and rules, which people read, tick and edit while agents do the same."""

import codecs
import errno
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from bydawn.core import merging, task_folder
from bydawn.core import tasks as checklist
from bydawn.core.errors import NotFound, UserError
from bydawn.core.facts import RoundEnded, RoundStarted
from bydawn.core.globs import ALWAYS_PROTECTED, is_protected
from bydawn.core.loop import Loop, OnTamper
from bydawn.core.merging import Kind
from bydawn.core.text import shorten, visible
from bydawn.operations import tasks
from bydawn.operations.amounts import size
from bydawn.operations.preconditions import gone, refuse_inside_a_round
from bydawn.operations.saving import last_saved, put, version_of
from bydawn.store.ledger import backwards
from bydawn.store.registry import Standing, free_name
from bydawn.system.git import check_there
from bydawn.system.paths import open_parent, regular_at
from bydawn.system.reading import markdown_in, real_inside

MOST = 1 << 20  # bytes that are shown and saved; documents are written by people
_TRIES = 5  # at ticking a box in a file that something else writes at the same time
_LOOKED_AT = 1000  # last facts, for the round that changed a document
_KEYS_NAMED = 20
_TODO, _TASK = "todo", "task-"


class DocumentName(msgspec.Struct, frozen=True, kw_only=True):
    """A document, without its text."""

    key: str
    path: str
    title: str
    editable: bool
    why_not: str = ""


class Document(DocumentName, frozen=True, kw_only=True):
    """A document as it is now; of a large one, `text` is only the beginning."""

    text: str
    version: str
    exists: bool
    size: int
    changed_at: datetime | None
    by: str = ""  # "round 12", if it was changed while that round worked, and not by a person through us
    working: int | None = None  # the round that works right now, and may change it too
    caution: str = ""  # what else a person should know before they change it


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """The document says what a person wanted it to say."""

    document: Document
    changed: bool  # False: it said so before
    warnings: tuple[str, ...] = ()  # what the loop will make of it, in sentences


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the two texts differ. Lines count from 1; if the last one is before the first, there are none."""

    kind: Kind
    first_line: int  # in theirs
    last_line: int
    merged_first: int  # in the merged text: the lines to replace by those of one side
    merged_last: int
    yours: str
    theirs: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was saved: the file is no longer the one that the person had in front of them."""

    document: Document  # as it is now
    base: str | None  # what the person had in front of them, if that is known
    yours: str
    theirs: str
    version: str  # of theirs
    clashes: tuple[Clash, ...]
    merged: str  # what fits, and both texts where they clash: theirs first, then yours


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A box of a Markdown list, and the words after it."""

    line: int
    text: str
    ticked: bool


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a document is: a path of the loop's settings, never one from a request."""

    key: str
    title: str
    root: str
    path: str
    only_read: bool = False


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was at one moment."""

    real: Path
    data: bytes | None = None  # None: there is no such file
    size: int = 0
    changed_at: datetime | None = None
    text: str = ""
    why_not: str = ""

    @property
    def version(self) -> str:
        return version_of(self.data)


# -- look --------------------------------------------------------------------------------------------------------------


def documents(standing: Standing) -> tuple[DocumentName, ...]:
    """All documents of a loop."""
    return tuple(_named(place, _look(place)) for place in _places(standing).values())


def read(standing: Standing, key: str) -> Document:
    """A document as it is now. What cannot be shown has a reason instead of a text."""
    place = _place(standing, key)
    return _document(standing, place, _look(place))


def boxes(text: str) -> tuple[Box, ...]:
    """The boxes of a checklist: those that a loop counts and that can be ticked."""
    return tuple(Box(line=task.line, text=task.text, ticked=task.done) for task in checklist.read(text).items)


def _named(place: _Place, look: _Look) -> DocumentName:
    why_not = look.why_not or ("it can only be read here" if place.only_read else "")
    title = place.title
    if place.key.startswith(_TASK) and not place.only_read and look.data and not look.why_not:
        found = task_folder.read({place.path.rpartition("/")[2]: look.text}).items
        title = next((task.title for task in found if task.title), title)
    return DocumentName(key=place.key, path=place.path, title=title, editable=not why_not, why_not=why_not)


def _document(standing: Standing, place: _Place, look: _Look) -> Document:
    named, working = _named(place, look), _working(standing, place)
    return Document(
        **msgspec.structs.asdict(named),
        text=look.text,
        version=look.version,
        exists=look.data is not None or bool(look.why_not),
        size=look.size,
        changed_at=look.changed_at,
        by=_by(standing, look),
        working=working,
        caution=_caution(standing.loop, place, working) if named.editable else "",
    )


def _by(standing: Standing, look: _Look) -> str:
    """Whether it was the round itself that changed it, no one can tell; but not if a person saved it just so."""
    if look.changed_at is None or look.version == last_saved(standing.folder.state_folder, look.real):
        return ""
    for record in islice(backwards(standing.folder), _LOOKED_AT):
        if isinstance(record.fact, RoundStarted) and record.at <= look.changed_at:
            return f"round {record.fact.round}"
        if isinstance(record.fact, RoundEnded) and record.at < look.changed_at:
            return ""
    return ""


def _working(standing: Standing, place: _Place) -> int | None:
    """The files of a task folder are not in the worktree where the agent works."""
    opened = standing.state.open_round if standing.alive else None
    return opened.round if opened and place.root == standing.loop.folder else None


def _caution(loop: Loop, place: _Place, working: int | None) -> str:
    """A change to a protected file counts as the round's: files do not say who wrote them."""
    if not working or not is_protected(place.path, (*ALWAYS_PROTECTED, *loop.protect)):
        return ""
    then = {OnTamper.RESTORE: "undo it", OnTamper.BLOCK: "block the loop", OnTamper.REPORT: "report it"}
    return (
        f"{place.path} is protected: until round {working} has ended, bydawn will take your change for the round's, "
        f"and {then[loop.on_tamper]}."
    )


# -- change ------------------------------------------------------------------------------------------------------------


def save(standing: Standing, key: str, text: str, version: str, base_text: str | None = None) -> Saved | Conflict:
    """Replace a document, if it still has the version that the person began with.

    `base_text` is the text of that version, if the caller still has it. The text may come from a form: its line endings
    become those of the file.
    """
    refuse_inside_a_round()
    place = _place(standing, key)
    now = _editable(place)
    data = _encoded(place, now, text)
    if data == now.data:
        return _saved(standing, place, changed=False)
    if now.version == version and put(standing.folder.state_folder, now.real, data, now.data):
        return _saved(standing, place)
    return _conflict(standing, place, text, base_text)


def tick(
    standing: Standing, key: str, line: int, ticked: bool, version: str, shown: str | None = None
) -> Saved | Conflict:
    """Tick one box, or open it again. `shown` are the words after the box that the person saw.

    If the document has another version by now, and exactly one box has these words, that box is meant.
    """
    refuse_inside_a_round()
    place = _place(standing, key)
    for _ in range(_TRIES):
        now = _editable(place)
        found = line if now.version == version else _line_of(now.text, shown)
        if found is None:
            break
        text = checklist.ticked(now.text, found, done=ticked)
        if text is None:
            raise UserError(
                f"{place.path} has no box in line {found}",
                cause="only a box of a Markdown list can be ticked; in a code block it is just text",
                hint="reload the page, or edit the text",
            )
        if text == now.text:
            return _saved(standing, place, changed=False)
        if put(standing.folder.state_folder, now.real, _encoded(place, now, text), now.data):
            return _saved(standing, place)
    return _conflict(standing, place, None, None)


def _line_of(text: str, shown: str | None) -> int | None:
    """One of several equal boxes could be the wrong one, ticked or not."""
    found = [box.line for box in boxes(text) if box.text == shown]
    return found[0] if len(found) == 1 else None


def _editable(place: _Place) -> _Look:
    look = _look(place)
    named = _named(place, look)
    if not named.editable:
        hint = "use your own editor" if look.data is not None else "look at it in a terminal"
        raise UserError(f"{place.path} cannot be edited here", cause=named.why_not, hint=hint)
    return look


def _encoded(place: _Place, now: _Look, text: str) -> bytes:
    """A text as the file would have it: its line endings, and its byte order mark."""
    try:
        data = merging.with_endings_of(now.text, text.removeprefix("\ufeff")).encode()
    except UnicodeEncodeError:
        data = b"\0"
    if b"\0" in data:
        cause = "it has characters that no text file can have"
        raise UserError(f"{place.path} cannot be saved", cause=cause, hint="remove them")
    if now.data and now.data.startswith(codecs.BOM_UTF8):
        data = codecs.BOM_UTF8 + data
    if len(data) > MOST:
        cause = f"it has {size(len(data))}; {size(MOST)} can be saved here"
        raise UserError(f"this is too much for {place.path}", cause=cause, hint="shorten it, or use your own editor")
    return data


def _saved(standing: Standing, place: _Place, *, changed: bool = True) -> Saved:
    warnings = tuple(_warnings(standing)) if place.key == _TODO or place.key.startswith(_TASK) else ()
    return Saved(document=_document(standing, place, _look(place)), changed=changed, warnings=warnings)


def _warnings(standing: Standing) -> Iterator[str]:
    """The same as after `tasks edit`: a running loop cannot know that it was a person who removed a task."""
    if not standing.finished and (trouble := tasks.of_loop(standing).trouble):
        yield f"{trouble}."
        if standing.state.stopped is None:
            yield "The loop will be blocked because of that. To drop a task while it runs, skip it instead."


def _conflict(standing: Standing, place: _Place, yours: str | None, base: str | None) -> Conflict:
    """What both made of it; a tick that found no box brings no text of its own."""
    now = _look(place)
    mine = now.text if yours is None else merging.with_endings_of(now.text, yours)
    parts = merging.merge(base, mine, now.text)
    return Conflict(
        document=_document(standing, place, now),
        base=base,
        yours=mine,
        theirs=now.text,
        version=now.version,
        clashes=tuple(_clashes(parts)),
        merged=merging.with_endings_of(now.text, merging.merged(parts)),
    )


def _clashes(parts: tuple[merging.Part, ...]) -> Iterator[Clash]:
    line = merged = 1
    for part in parts:
        next_line, next_merged = line + len(part.theirs), merged + len(part.merged)
        if part.kind is not Kind.SAME:
            yield Clash(
                kind=part.kind,
                first_line=line,
                last_line=next_line - 1,
                merged_first=merged,
                merged_last=next_merged - 1,
                yours="\n".join(part.yours),
                theirs="\n".join(part.theirs),
            )
        line, merged = next_line, next_merged


# -- where they are ----------------------------------------------------------------------------------------------------


def _place(standing: Standing, key: str) -> _Place:
    places = _places(standing)
    if key in places:
        return places[key]
    known = [*places]
    more = f" and {len(known) - _KEYS_NAMED} more" if len(known) > _KEYS_NAMED else ""
    raise NotFound(
        f"{standing.loop.id} has no document {shorten(visible(key), 40)!r}",
        cause=f"it has {', '.join(map(visible, known[:_KEYS_NAMED]))}{more}" if known else "it only has a prompt",
        hint="choose one of these" if known else "give its settings a task list, or a file for notes",
    )


def _places(standing: Standing) -> dict[str, _Place]:
    """Every document, by its key."""
    if standing.trouble:
        raise standing.trouble
    if error := gone(standing):
        raise error
    loop = standing.loop
    check_there(Path(loop.folder))
    listed = {} if loop.task_folder else {_TODO: loop.tasks}
    named = {**listed, "progress": loop.progress, "opinions": loop.opinions}
    found = {
        key: _Place(key=key, title="Tasks" if key == _TODO else key.capitalize(), root=loop.folder, path=path)
        for key, path in named.items()
        if path
    }
    for name in _task_files(loop):
        id_, path = task_folder.id_of(name), f"{(loop.tasks or '').rstrip('/')}/{name}"
        key = _free(f"{_TASK}{id_}", found)
        found[key] = _Place(key=key, title=id_, root=loop.list_root, path=path)
    for name, path in _extras(loop).items():
        key = _free(name.lower(), found)
        found[key] = _Place(key=key, title=name, root=loop.folder, path=path, only_read=True)
    return found


def _free(key: str, taken: Collection[str]) -> str:
    return free_name(key, [*taken]) if key in taken else key


def _task_files(loop: Loop) -> list[str]:
    if not loop.tasks or not loop.task_folder:
        return []
    with suppress(UserError):  # the list itself says what is wrong with its folder; the other documents are still there
        names = markdown_in(Path(loop.list_root), loop.tasks) or []
        return sorted(filter(task_folder.is_task, names), key=task_folder.natural)
    return []


def _extras(loop: Loop) -> dict[str, str]:
    if not loop.dialect:
        return {}
    from bydawn.operations.dialects import config  # most loops have no dialect

    return config.documents(loop)


# -- one file ----------------------------------------------------------------------------------------------------------


def _look(place: _Place) -> _Look:
    """Read a file through no link that leads out of the workspace; never waits for a pipe."""
    root = Path(place.root)
    try:
        real = real_inside(root, place.path)
    except UserError:
        return _Look(real=root, why_not="it leads outside the workspace")
    try:
        with open_parent("/", str(real)) as (folder, name), regular_at(folder, name) as fd:
            status = os.fstat(fd)
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(MOST + 1)
            writable = all(os.access(each, os.W_OK, dir_fd=folder) for each in (".", name))
    except FileNotFoundError:
        return _Look(real=real)
    except OSError as error:
        return _Look(real=real, why_not=_reason(error))
    text, why_not = _text_of(data, status.st_size)
    return _Look(
        real=real,
        data=data,
        size=status.st_size,
        changed_at=datetime.fromtimestamp(status.st_mtime, UTC),
        text=text,
        why_not=why_not or ("" if writable else "you may not write to it"),
    )


def _reason(error: OSError) -> str:
    if error.errno in (errno.EINVAL, errno.ENXIO):  # a folder, a pipe, a socket
        return "it is not a regular file"
    if error.errno in (errno.ELOOP, errno.ENOTDIR):  # a link came into the path just now, or there was a circle of them
        return "a link in its path leads nowhere"
    return f"it cannot be read: {error.strerror}"


def _text_of(data: bytes, whole: int) -> tuple[str, str]:
    """The text of a file, and why it cannot be edited."""
    is_large = len(data) > MOST
    why_not = f"{size(max(whole, len(data)))}: too large to edit here" if is_large else ""
    data = data[:MOST].removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        return "", "not text"
    try:
        return codecs.utf_8_decode(data, "strict", not is_large)[0], why_not
    except UnicodeDecodeError:
        return data.decode(errors="replace"), "not text"
