"""What can be started without typing anything: folders whose own settings name a goal, if a person trusts them."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bydawn.core.digests import sha256
from bydawn.core.errors import UserError
from bydawn.core.loop import CHECKS
from bydawn.core.text import shorten, visible
from bydawn.operations.settings import gather, secrets
from bydawn.operations.trust import question
from bydawn.settings.files import workspace_above
from bydawn.settings.layers import Settings
from bydawn.settings.trust import Trusts
from bydawn.store.folder import StateFolder
from bydawn.store.registry import Standing

_GOAL = 300  # characters


class Startable(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, and what `bydawn run` would do there."""

    key: str  # stands for the folder with these very settings: others have another key
    folder: str
    goal: str
    agent: str
    checks: tuple[str, ...]
    ready: bool
    why_not: str = ""
    command: str = ""  # what a person can type instead, or first


def startable(loops: Iterable[Standing], here: Path, root: StateFolder) -> list[Startable]:
    """The folder of the server and those of known loops, each once; the ready ones first."""
    known = [*loops]
    busy = {each.loop.workspace: each.loop.id for each in known if each.alive}
    trusts = Trusts(root.trust)
    found = (_startable(folder, trusts, busy.get(str(folder), "")) for folder in _folders(known, here))
    return sorted((each for each in found if each), key=lambda each: not each.ready)


def _folders(loops: list[Standing], here: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in (here, *(Path(each.loop.workspace) for each in loops)):
        try:
            folder = workspace_above(path) if path == here else path
            real = folder.resolve(strict=True)
        except (OSError, UserError):
            continue
        if real.is_dir() and real not in seen:
            seen.add(real)
            yield real


def _startable(folder: Path, trusts: Trusts, busy: str) -> Startable | None:
    """None if its settings name no goal."""
    settings = gather(folder)
    prompt, tasks = settings.text("prompt"), settings.text("tasks")
    if not settings.has_project or not (prompt or tasks):
        return None
    hide, place = secrets().hide, shlex.quote(str(folder))
    why_not, command = _why_not(settings, folder, trusts, busy, place)
    goal = settings["prompt"].text or prompt or f"the tasks in {tasks}"
    return Startable(
        key=_key(settings, folder),
        folder=str(folder),
        goal=visible(shorten(hide(goal), _GOAL)),
        agent=visible(hide(", then ".join(settings.texts("agent")))) or "the first agent that is installed",
        checks=tuple(visible(hide(text)) for kind in CHECKS for text in settings.texts(kind.setting)),
        ready=not why_not,
        why_not=why_not,
        command=command,
    )


def _why_not(settings: Settings, folder: Path, trusts: Trusts, busy: str, place: str) -> tuple[str, str]:
    """Why it cannot be started from here, and the command that helps."""
    if settings.problems:
        first = settings.problems[0]
        return visible(secrets().hide(f"{first.where}: {first.what}")), f"bydawn config check -C {place}"
    if busy:
        return f"the loop {busy} is running there", f"bydawn show {busy} -C {place}"
    try:
        asking = question(settings, folder, trusts)
    except UserError as error:
        return visible(error.what), f"bydawn trust {place}"
    if asking is None:
        return "", f"bydawn run -C {place}"
    changed = (
        "has changed since you trusted it" if asking.changes else "can run commands, and you have not agreed to it"
    )
    return f"its {asking.file.name} {changed}", f"bydawn trust {place}"


def _key(settings: Settings, folder: Path) -> str:
    """Not the one that a person saw if anything in them is different by now."""
    rows = [(key, given[0].value, given[0].text) for key, given in sorted(settings.given.items())]
    return sha256(ascii([str(folder), rows]).encode()).hexdigest()[:20]
