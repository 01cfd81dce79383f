"""The service that continues loops after a login or a boot: install it, remove it, see how it is."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bydawn.core.errors import UserError
from bydawn.core.values import Act, Next
from bydawn.host.units import Change, Manager, Unit, UnitState, Words, environment, home, manager
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.system.user_folders import state_folder

NAME = "bydawn"
WEB = "bydawn-web"
_RESUME = ("resume", "--all", "--foreground")
_SENTENCES = {
    Change.NEW: "Installed and started.",
    Change.REPLACED: "Replaced and started again.",
    Change.STARTED: "Already installed; it is started now.",
    Change.NOTHING: "Already installed and running; nothing was changed.",
}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, or what would be done: the text of a file, and commands."""

    sentence: str
    path: str
    text: str = ""
    commands: tuple[str, ...] = ()
    note: str = ""
    next: tuple[Next, ...] = ()


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The service now."""

    name: str
    manager: str
    unit: UnitState
    sentence: str
    lingering: bool | None  # does it run while you are logged out? None: unknown
    note: str
    logs: str  # a command
    next: tuple[Next, ...]


def install(state_dir: Path | None, *, with_web: bool = False, dry_run: bool = False) -> Told:
    """Install it and start it now; `with_web` the page too, as a service of its own."""
    found = _manager()
    units = [_unit(state_dir, found), *([_web_unit(state_dir, found)] if with_web else [])]
    path = str(found.place(NAME))
    if dry_run:
        commands = [words for each in units for words in found.starting(each.name, found.status(each.name))]
        text = "\n".join(found.text(each) for each in units)
        return Told(sentence="Nothing was changed.", path=path, text=text, commands=_lines(dict.fromkeys(commands)))
    refuse_inside_a_round()
    changes = [found.install(each) for each in units]
    sentence = _SENTENCES[changes[0]]
    note, linger = logout(found.lingers())
    link = (Next(Act("serve", link=True), "open the page"),) if with_web else ()
    return Told(
        sentence=sentence, path=path, note=note, next=(*link, Next(Act("service status"), "is it running?"), *linger)
    )


def remove(*, dry_run: bool = False) -> Told:
    """End it and remove it; the loops that it ran can go on, as after any shutdown."""
    found = _manager()
    state = found.status(NAME)
    there = [(name, each) for name in (NAME, WEB) if (each := found.status(name)).installed]
    if not there:
        return Told(sentence="Not installed; nothing was changed.", path=state.path)
    if dry_run:
        ends = [(*found.stopping(name, each), ("rm", each.path)) for name, each in there]
        commands = (*(words for each in ends for words in each), *found.reload)
        return Told(sentence="Nothing was changed.", path=state.path, commands=_lines(commands))
    refuse_inside_a_round()
    for name, _ in there:
        found.remove(name)
    again = Next(Act("resume", all=True), "continue the loops that it ran")
    return Told(sentence="Stopped and removed.", path=state.path, next=(again,))


def status() -> Service:
    """Installed, running, failed; and what happens when its user logs out."""
    found = _manager()
    state, lingering = found.status(NAME), found.lingers()
    note, linger = logout(lingering) if state.installed else ("", ())
    logs = found.logs(NAME) if state.installed else ""
    steps = [Next(logs, "what it printed")] if logs else []
    if not state.running:
        steps.append(_advice(found) or Next(Act("service install"), "start it, now and from now on"))
    return Service(
        name=NAME,
        manager=found.kind,
        unit=state,
        sentence=_sentence(state),
        lingering=lingering,
        note=note,
        logs=logs,
        next=(*steps, *linger),
    )


def _advice(found: Manager) -> Next | None:
    """What to do where no service can run; None where one can."""
    try:
        found.check()
    except UserError as error:
        return Next("", error.hint)
    return None


def _sentence(state: UnitState) -> str:
    if not state.installed:
        return "not installed"
    if state.running:
        return f"running (pid {state.pid})" + ("" if state.enabled else ", but it does not start by itself")
    return "failed" if state.failed else "installed, but not running"


def logout(lingers: bool | None) -> tuple[str, tuple[Next, ...]]:
    """What happens when its user logs out, and how to change that."""
    if lingers is None:
        return "", ()
    if lingers:
        return "It keeps running when you log out, and starts at boot.", ()
    linger = Next("loginctl enable-linger", "keep it running when you log out, and start it at boot")
    return "It ends when you log out and starts when you log in.", (linger,)


def _manager() -> Manager:
    return manager(shlex.join((NAME, *_RESUME)))


def _unit(state_dir: Path | None, found: Manager) -> Unit:
    folder = state_dir.absolute() if state_dir else None
    return Unit(
        name=NAME,
        what="Continues the loops of bydawn that crashed or that a shutdown ended",
        words=(program(NAME), *_RESUME, *(("--state-dir", str(folder)) if folder else ())),
        folder=str(home()),
        env=environment(os.environ),
        log=str((folder or state_folder()) / "service.log") if found.kind == "launchd" else "",
    )


def _web_unit(state_dir: Path | None, found: Manager) -> Unit:
    """The loops that are started from the page go on when its server ends."""
    unit = _unit(state_dir, found)
    words = (program(NAME), "serve", *unit.words[len(_RESUME) + 1 :])
    return replace(unit, name=WEB, what="The web page of bydawn", words=words, ends_alone=True)


def program(name: str) -> str:
    """The installed command, by the name that an upgrade does not change: the one on the PATH, if it is this one."""
    beside = Path(sys.executable).absolute().with_name(name)
    called = shutil.which(name) or sys.argv[0]
    for path in (Path(called).absolute().with_name(name), beside):
        if path.is_file() and os.access(path, os.X_OK) and (path.resolve() == beside.resolve() or not beside.exists()):
            return str(path)
    cause = f"there is no program {beside}"
    raise UserError(f"the installed {name} was not found", cause=cause, hint="install bydawn, and run that one")


def _lines(commands: Iterable[Words]) -> tuple[str, ...]:
    return tuple(shlex.join(words) for words in commands)
