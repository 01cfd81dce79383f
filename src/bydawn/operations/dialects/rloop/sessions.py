"""The sessions of this user, from their ledgers."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bydawn.core import tasks
from bydawn.core.errors import UserError
from bydawn.core.loop import Sandbox
from bydawn.core.rules import Rule
from bydawn.core.text import near, plain
from bydawn.core.values import Status
from bydawn.dialects.rloop import DIALECT
from bydawn.dialects.rloop.config import NAME, STATE
from bydawn.dialects.rloop.files import COMPLETE, CRASHED, FAILED, RUNNING, session, words
from bydawn.operations.amounts import plural
from bydawn.operations.changed import changed
from bydawn.operations.dialects import loops
from bydawn.operations.dialects.rloop.configuration import config_folder
from bydawn.store.lock import is_held, wait_for_the_dying
from bydawn.store.registry import Standing
from bydawn.system import kernel, shared_file
from bydawn.system.reading import read_text


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    name: str
    fields: dict[str, Any]
    standing: Standing
    remaining: int | None  # open boxes, now; None if the file cannot be read

    @property
    def is_alive(self) -> bool:
        return self.standing.alive and self.standing.state.stopped is None

    @property
    def is_ending(self) -> bool:
        """Has it ended, but for a message that is being sent?"""
        return self.standing.alive and self.standing.state.stopped is not None

    @property
    def status(self) -> str:
        said = str(self.fields.get("status") or "?")
        return CRASHED if said == RUNNING and not self.is_alive else said

    @property
    def folder(self) -> str:
        return str(self.fields.get("dir") or "?")

    def count(self, key: str) -> str:
        return str(value) if isinstance(value := self.fields.get(key), int) else "?"


def state_file() -> Path:
    return config_folder() / STATE


def table(say: Callable[[str], None] = lambda _: None) -> list[Session]:
    """Every session, the oldest first."""
    return _table(say)[0]


def _table(say: Callable[[str], None]) -> tuple[list[Session], dict[str, dict[str, Any]]]:
    """Every session, and what the file says of those of other programs."""
    path = state_file()  # first: without a home there is nothing to look at
    ours: dict[str, Standing] = {}
    for each in sorted(loops.everywhere(DIALECT), key=lambda each: (each.alive, each.loop.created_at)):
        ours[words(each.loop).get("session", each.loop.id)] = each  # the newest, or one at work
    found = [_of_loop(name, each) for name, each in sorted(ours.items(), key=lambda row: row[1].loop.created_at)]
    entries = _entries(path, found, say)
    theirs = {name: row for name, row in entries.items() if name not in ours and isinstance(row, dict)}
    return [each for each in found if not each.standing.state.dismissed], theirs


def _of_loop(name: str, standing: Standing) -> Session:
    fields = session(standing.loop, standing.state) if standing.trouble is None else {"status": Status.DAMAGED}
    return Session(name=name, fields=fields, standing=standing, remaining=_remaining(standing))


def _remaining(standing: Standing) -> int | None:
    """Open boxes now. A list that no one has changed since the last fact is not read again."""
    loop, state = standing.loop, standing.state
    try:
        changed = Path(loop.workspace, loop.tasks or "").stat().st_ctime  # also of one that was moved there
        if state.tasks and state.updated_at and changed < state.updated_at.timestamp():
            return state.tasks.open
    except OSError:
        return None
    try:
        text = read_text(Path(loop.workspace), loop.tasks or "")
    except UserError:
        return None
    return None if text is None else sum(not task.done for task in tasks.read(text).items)


def _entries(path: Path, ours: list[Session], say: Callable[[str], None]) -> dict[str, Any]:
    """What the file says. What is missing or wrong of ours is written again, if it can be: it is only a view."""
    entries: dict[str, Any] = {}
    try:
        found = (shared_file.read(path) or {}).get("sessions")
        entries = found if isinstance(found, dict) else {}
        changes: shared_file.Changes = {
            ("sessions", name): None if standing.state.dismissed else fields
            for name, fields, standing in ((each.name, each.fields, each.standing) for each in ours)
            if isinstance(entry := entries.get(name), dict | None) and _is_wrong(standing, fields, entry)
        }
        if changes:
            shared_file.update(path, changes, say)
    except OSError as error:
        say(f"{path} cannot be used: {error.strerror or error}")
    return entries


def _is_wrong(standing: Standing, fields: dict[str, Any], entry: dict[str, Any] | None) -> bool:
    """Has an entry to be written again? A loop at work writes its own, and another program may have the name."""
    if standing.trouble or (entry is not None and entry.get("started_at") != fields["started_at"]):
        return False
    is_right = entry is None if standing.state.dismissed else entry == {**(entry or {}), **fields}
    return not is_right and not is_held(standing.folder.lock)


def find(name: str, say: Callable[[str], None]) -> Session:
    """The session of that name; refused with the names there are."""
    found, theirs = _table(say)
    for each in found:
        if each.name == name:
            return each
    if name in theirs:
        raise _anothers(name, theirs[name])
    names = [each.name for each in found]
    cause = f"the sessions are {', '.join(names)}" if len(names) > 1 else f"the only one is {names[0]}" if names else ""
    hint = near(name, names).rstrip() or f"`{NAME} status` lists them; `{NAME} start DIR` begins one"
    cause = cause or "there are no sessions yet"
    raise UserError(f"there is no session {name!r}", cause=cause, hint=hint)


def _anothers(name: str, row: dict[str, Any]) -> UserError:
    again = shlex.join([NAME, "start", str(row.get("dir") or "DIR"), "--name", f"{name}-2"])
    return UserError(
        f"{name} is a session of another program",
        cause=f"{state_file()} lists it as {row.get('status')}, and there is no record of it here",
        hint=f"end it there; or begin beside it, in a clone if it still runs: `{again}`",
        exit_code=8 if _is_alive(row) else 2,
    )


def _is_alive(row: dict[str, Any]) -> bool:
    pid = row.get("pid")
    return row.get("status") == RUNNING and isinstance(pid, int) and bool(kernel.stat_fields(pid))


def trouble(each: Session) -> str:
    """Why a session does not move, and what helps; nothing if it does, or has ended well."""
    stopped = each.standing.state.stopped
    waiting = each.standing.state.waiting if each.is_alive else None
    if waiting and waiting.decided.rule != Rule.PAUSE:
        until = f" until {waiting.until.astimezone():%a %H:%M}" if waiting.until else ""
        return f"{each.name} waits{until}: {plain(waiting.reason)}"
    if each.status == CRASHED:
        return f"{each.name} crashed, or the machine was shut down: `{NAME} resume {each.name}` goes on"
    if each.status == COMPLETE and (told := not_committed(each.standing)):
        return f"{each.name} is complete, but {told}"
    if stopped is None or each.status != FAILED:
        return ""
    steps = DIALECT.next_steps(each.standing.loop, each.standing.state, stopped)
    return f"{each.name} failed: {plain(DIALECT.reason(stopped))}; `{steps[-1].command}`"


def not_committed(standing: Standing) -> str:
    """What a session in a sandbox has changed and not committed, as its prompt asks; the sandbox may not let it."""
    loop = standing.loop
    if loop.sandbox is Sandbox.FULL or not words(loop).get("git"):
        return ""
    found = changed(standing)
    if found is None or not found.uncommitted:
        return ""
    return f"{plural(found.uncommitted, 'changed file')} not committed: `git -C {shlex.quote(loop.workspace)} status`"


def occupied(name: str, cause: str, *, here: bool = True) -> UserError:
    other = f"watch it: `{NAME} logs {name} --follow`" if here else f"give this one another name: --name {name}-2"
    hint = f"end it: `{NAME} stop {name}`; or {other}"
    return UserError(f"the session {name} is running already", cause=cause, hint=hint, exit_code=8)


def refuse_live(name: str, folder: Path) -> Session | None:
    """Names are unique for the user. One that does not run is returned: a new session takes its place."""
    known, theirs = _table(lambda _: None)
    for other, row in theirs.items():
        is_here = _is_alive(row) and row.get("dir") == str(folder)
        if is_here or (other == name and row.get("status") == RUNNING):
            raise _anothers(other, row)
    here = [each.standing.folder.lock for each in known if each.is_alive and each.name == name]
    known = known if all(map(wait_for_the_dying, here)) else table()
    found = next((each for each in known if each.name == name), None)
    beside = next((each for each in known if each.is_alive and each.folder == str(folder) and each.name != name), None)
    if found and found.is_alive:
        where = f"process {found.count('pid')} in {found.folder}"
        raise occupied(name, where, here=found.folder == str(folder))
    if beside:
        raise UserError(
            f"the session {beside.name} works in {folder} already",
            cause=f"it is process {beside.count('pid')}; two sessions would tick the same boxes and write one log",
            hint=f"end it: `{NAME} stop {beside.name}`; or start this one in a clone of its own",
            exit_code=8,
        )
    return found


def document(each: Session) -> dict[str, Any]:
    """A session as JSON, for scripts and for those who ask from elsewhere."""
    state = each.standing.state if each.standing.trouble is None else None
    return {
        **each.fields,
        "status": each.status,
        "current_remaining": each.remaining,
        "is_alive": each.is_alive,
        "usage": state.usage if state else None,
        "ticked_only": state.doubted if state else (),
    }
