"""`evidence`: what someone else needs to know about a task; and a folder in which it is collected."""

import os
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core.errors import UserError
from bydawn.core.layout import PROMPT, REPLY
from bydawn.core.redact import Secrets
from bydawn.core.text import plain
from bydawn.dialects.codex_loop.config import NAME
from bydawn.dialects.codex_loop.document import Document, current_task, text_of
from bydawn.dialects.codex_loop.events import Wanted
from bydawn.dialects.codex_loop.history import moment
from bydawn.dialects.codex_loop.sessions import every_task, latest_task, session_of
from bydawn.dialects.codex_loop.snapshots import INDEX, Evidence, Snapshot, indexed, snapshot_of
from bydawn.operations.dialects.codex_loop import logs, reports, standing
from bydawn.operations.dialects.codex_loop.standing import Looked
from bydawn.system import shared_file
from bydawn.system.paths import open_folder
from bydawn.system.reading import read_regular
from bydawn.system.writing import replace_text

_MOST = 4 << 20  # bytes of a prompt or an answer
_LONGEST_NAME = 150  # bytes of a task's id in the name of a file
_LONGEST_INDEX = 64 << 20  # bytes
_LOCK = ".index.lock"


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    prompt: int = 20
    log: int = 20
    events: int = 10


def evidence(root: Path, task: str | None, lengths: Lengths, *, latest: bool) -> Evidence:
    """About a task: the one that is named, that was worked on last, or that is up."""
    looked = standing.look(root)
    reports.refuse_unknown(looked, task)
    document, meta = looked.document, looked.document.meta
    id_ = task or _chosen(document, latest=latest)
    known, hidden = every_task(document).get(id_), looked.secrets
    found = Evidence(
        project_name=meta.project_name,
        project_dir=str(root),
        generated_at=moment(datetime.now(UTC)),
        selection="task_id" if task else "latest" if latest else "current_task",
        overall_status=meta.overall_status,
        last_blocker=meta.last_blocker,
        task_id=id_,
        session_id=known.session_id if known else None,
        session_snapshot=session_of(document, id_),
        last_verification_results=known.last_verification_results if known else (),
        recent_events=reports.recent(looked, Wanted(limit=lengths.events, task_id=id_)) if lengths.events else (),
        prompt_preview=None,
        log_tail=None,
        run_payload=None,
    )
    return _with_output(looked.for_others(found), looked, hidden, lengths)


def _chosen(document: Document, *, latest: bool) -> str:
    """The current task, or else what blocks, or else what was worked on last."""
    blocker, last = document.meta.last_blocker, latest_task(document)
    current = None if latest else current_task(document) or (blocker and blocker.task_id)
    if found := current or last or (None if latest else next(iter(document.tasks), None)):
        return found
    raise UserError("there is no evidence yet", cause="no iteration has run", hint=f"`{NAME} run` begins")


def _with_output(found: Evidence, looked: Looked, hidden: Secrets, lengths: Lengths) -> Evidence:
    """With what is in our own folder about its last iteration; the files in the project are only copies."""
    loop, number = looked.standing, found.session_snapshot.last_iteration
    if number is None:
        return found
    entries = reversed(looked.document.history)
    answered = next((each.iteration for each in entries if each.task_id == found.task_id and each.agent_status), number)
    place = loop.folder.round_file
    return msgspec.structs.replace(
        found,
        prompt_preview=_first_lines(place(number, PROMPT), lengths.prompt, hidden),
        log_tail="\n".join(logs.printed(loop, number, lengths.log, hidden)) or None,
        run_payload=_answer(place(answered, REPLY), hidden.hide),
    )


def _first_lines(path: Path, count: int, hidden: Secrets) -> str | None:
    if (data := _bytes(path)) is None:
        return None
    lines, hide = data.splitlines(), hidden.line_by_line()
    if len(data) == _MOST:
        lines = lines[:-1]  # half a line could be half a secret
    return "\n".join(hide(plain(line)) for line in lines[:count])


def _answer(path: Path, hide: Callable[[str], str]) -> Any:
    data = _bytes(path) or b""
    text = hide(plain(data)) if len(data) < _MOST else ""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text or None


def _bytes(path: Path) -> bytes | None:
    try:
        return read_regular(path, _MOST)
    except OSError:
        return None


# -- a folder of it ----------------------------------------------------------------------------------------------------


def collect(folder: Path, found: Evidence) -> Path:
    """Write it into a folder and add it to the index there; the file. Several can do so at once."""
    place = folder.resolve()
    if place.exists() and not place.is_dir():
        raise UserError(f"{folder} is not a folder", cause="a file is there", hint="give a folder: --output-dir DIR")
    try:
        place.mkdir(exist_ok=True)
        with open_folder(place, ()) as fd, shared_file.locked(fd, _LOCK, shared_file.PATIENCE):
            index, _ = _index(place) or ({"snapshots": []}, [])
            path = _free(place, found)
            replace_text(path, text_of(found), 0o644)
            index["snapshots"].append(snapshot_of(found, path.name))  # what others wrote there stays
            replace_text(place / INDEX, text_of(index), 0o644)
    except OSError as error:
        cause, hint = error.strerror or str(error), "give a folder that can be written, below one that is there"
        raise UserError(f"nothing can be written to {folder}", cause=cause, hint=hint) from None
    return path


def _free(place: Path, found: Evidence) -> Path:
    task = found.task_id.replace("/", "-").encode()[:_LONGEST_NAME].decode(errors="ignore")
    stem, number = f"{found.generated_at.replace(':', '')}-{task}", 1
    while os.path.lexists(path := place / f"{stem}{f'-{number}' if number > 1 else ''}.json"):
        number += 1
    return path


def collected(folder: Path) -> list[Snapshot]:
    """What is in such a folder, with the whole path of each."""
    place = folder.resolve()
    if (index := _index(place)) is None:
        raise UserError(
            f"there are no snapshots in {folder}",
            cause=f"it has no {INDEX}" if place.is_dir() else "there is no such folder",
            hint=f"`{NAME} evidence --output-dir {shlex.quote(str(folder))}` makes the first one",
        )
    return [msgspec.structs.replace(each, snapshot_path=str(place / each.snapshot_path)) for each in index[1]]


def _index(place: Path) -> tuple[dict[str, Any], list[Snapshot]] | None:
    path = place / INDEX
    try:
        return indexed(read_regular(path, _LONGEST_INDEX) or b"")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        cause, hint = getattr(error, "strerror", "") or str(error), "repair it, or move it away; nothing was changed"
        raise UserError(f"{path} cannot be read", cause=cause, hint=hint) from None


def write_report(path: Path, text: str) -> None:
    """A file that a person named; what was there is replaced, whole or not at all."""
    folder = path.absolute().parent
    if path.is_dir():
        raise UserError(
            f"{path} is a folder", cause="a report is one file", hint=f"name a file: --output {path / 'report'}"
        )
    if os.path.lexists(path) and not path.is_file():
        raise UserError(f"{path} is not a regular file", cause="it would be replaced", hint="name another file")
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", cause=f"{path} would be in it", hint="make it, or name another")
    replace_text(path, text, 0o644)
