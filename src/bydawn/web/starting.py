"""Start a loop from the page: the demo, or what the trusted settings of a folder say. Nothing else can be started."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from bydawn.core.errors import NotFound, OwnFailure, UserError
from bydawn.core.text import shorten
from bydawn.core.values import Act, Advice
from bydawn.operations.service import program
from bydawn.operations.startable import Startable, startable
from bydawn.process.refusals import Ear
from bydawn.store.folder import StateFolder
from bydawn.store.registry import Standing
from bydawn.web.calls import Site

TOKEN, LOOK_TOKEN = "BYDAWN_WEB_TOKEN", "BYDAWN_WEB_LOOK_TOKEN"  # variables that hold them
_START = 60.0  # seconds in which a loop must have begun
_LONGEST_WORD = 4096  # characters that a command is given as one word


def begin(words: Sequence[str], root: StateFolder) -> None:
    """Start a loop with a command of our own, as a person would; returns once it has begun."""
    refuse_odd(words)
    argv = [program("bydawn"), *words, "--state-dir", str(root.path)]
    with Ear() as ear:
        variables, quiet = ear.variables(environment()), subprocess.DEVNULL
        try:
            ended = subprocess.run(
                argv, env=variables, pass_fds=[ear.fd], stdin=quiet, capture_output=True, timeout=_START
            )
        except subprocess.TimeoutExpired:
            cause, hint = f"it took more than {_START:.0f} s", "look at it again in a moment"
            raise OwnFailure("the loop has not begun yet", cause=cause, hint=hint) from None
        if ended.returncode:
            raise ear.error(ended.returncode, ended.stderr)


def refuse_odd(words: Iterable[str]) -> None:
    """What no command can be given."""
    for word in words:
        if "\0" in word or len(word) > _LONGEST_WORD:
            cause = f"{shorten(word, 40)!r} is too long, or has a character that no text has (NUL)"
            raise UserError("this value cannot be used", cause=cause, hint="shorten it, or remove it")


def environment() -> dict[str, str]:
    """What loops inherit from us: not our tokens."""
    return {name: value for name, value in os.environ.items() if name not in (TOKEN, LOOK_TOKEN)}


def start(site: Site, *, key: str = "", demo: bool = False) -> Standing:
    """Start it in the background, and return the loop once it has begun."""
    refuse_elsewhere(site)
    root, before = site.loops.registry.root, {str(each.folder) for each in site.loops.all()}
    if demo:
        begin(["demo", "--detach"], root)
        return _begun(site, before)
    if not key:
        raise UserError("nothing to start", cause="neither the demo nor a folder was chosen", hint="choose one")
    for row in on_offer(site):
        if row.key == key:
            if not row.ready:
                raise UserError(row.why_not, cause="nothing was started", hint=f"in a terminal: `{row.command}`")
            begin(["run", "--detach", "-C", row.folder], root)
            return _begun(site, before, Path(row.folder))
    raise NotFound("this folder is not on offer", cause="its settings may have changed", hint="see what can be started")


def on_offer(site: Site) -> list[Startable]:
    """The folders whose settings name a goal."""
    return startable(site.loops.all(), site.folder, site.loops.registry.root)


def refuse_elsewhere(site: Site) -> None:
    """A server that speaks for another tool shows that tool's loops, which its own command starts."""
    if site.loops.is_narrowed:
        raise NotFound(
            f"loops are not started here, but with `{site.name}` in a terminal",
            cause=f"this server shows only loops of {site.name}",
            hint=Advice("for all loops: ", Act("serve")),
        )


def _begun(site: Site, before: set[str], folder: Path | None = None) -> Standing:
    """The loop that was not there before, or else the one that goes on in this folder."""
    found = site.loops.all()
    new = [each for each in found if str(each.folder) not in before]
    there = [each for each in found if folder and Path(each.loop.workspace) == folder and each.alive]
    for each in sorted((*there, *new), key=lambda each: each.loop.created_at, reverse=True):
        return each
    raise UserError("the loop has ended already", cause="it began and ended at once", hint="see the list of loops")
