"""`resume --all`: many loops in the background, started by one command.

Everything is loaded here once; each loop's processes are forks that share it. When this process ends, they go on; with
`--foreground` it stays, starts them again if they die, and ends them when it ends.
"""

import ctypes  # noqa: F401 - this and others are loaded here once, for all loops
import gc
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
import markdown_it  # noqa: F401
from msgspec.structs import replace

from bydawn.cli import background, foreground, terminal  # noqa: F401
from bydawn.cli.program import shielded
from bydawn.cli.voice import Voice
from bydawn.core.errors import UserError
from bydawn.core.text import plain, shorten
from bydawn.core.values import Act, Advice, Restart
from bydawn.core.watching import BACK_OFF
from bydawn.host.watchdog import Kept, Phase, Watchdog
from bydawn.operations import keeping, many, places, resume, run_loop, settings  # noqa: F401
from bydawn.operations.many import Taken
from bydawn.operations.plan import Plan, shared
from bydawn.operations.preconditions import refuse_inside_a_round
from bydawn.process.guardian import Tether, await_start, run_guarded, send_away, start_viewer
from bydawn.store import watches
from bydawn.store.folder import LoopFolder
from bydawn.store.lock import Owned, is_held
from bydawn.store.registry import Registry, standing_of

_OVERTAKEN = 8  # the exit code if another process was faster


def resume_all(state_dir: Path | None, cd: Path | None, *, stopped: bool) -> int:
    """Continue all of them and say what became of each; the exit code."""
    gathered = settings.gather(None)
    gathered.refuse_problems()
    taken = many.take(Registry(state_dir), cd, settings.secrets_of(gathered), stopped=stopped)
    if not taken:
        click.echo("  No loop is unfinished.")
    return resume_these({each.standing.reference: each for each in taken}, Voice())


def keep_all(state_dir: Path | None, back_off: float = BACK_OFF) -> int:
    """Stay, and keep every loop running that crashed or that a shutdown ended; until we are asked to end."""
    refuse_inside_a_round()
    settings.gather(None).refuse_problems()
    registry = Registry(state_dir)
    try:
        held = watches.take(registry, None, watches.EVERY)
    except Owned as owned:
        cause, hint = f"{owned} keeps all loops running", Advice(Act("service status"), " tells about it")
        raise UserError("bydawn is already doing that", cause=cause, hint=hint, exit_code=_OVERTAKEN) from None
    known: set[LoopFolder] = set()

    def scan() -> list[Kept]:
        found = [each for each in keeping.due(registry) if each.standing.folder not in known]
        known.update(each.standing.folder for each in found)
        return [_kept(each) for each in found]

    def told(each: Kept) -> None:
        words = {Phase.RUNNING: "goes on", Phase.OVER: "has ended", Phase.STOPPED: "pauses"}
        if each.phase in words:
            say(f"{each.name} {words[each.phase]}")
        if each.phase is not Phase.RUNNING and each.phase is not Phase.RESTARTING:
            known.discard(folder) if (folder := each.folder()) else None

    say("keeping loops running; Ctrl-C pauses them and ends this")
    Watchdog(
        is_lost=keeping.is_lost_in, give_up=exhausted, say=say, told=told, scan=scan, held=held, back_off=back_off
    ).run()
    return 0


def say(text: str) -> None:
    with suppress(OSError):  # no one reads it
        click.echo(f"  {shorten(plain(text), 300)}")


def _kept(due: keeping.Due) -> Kept:
    folder = due.standing.folder
    return Kept(name=due.standing.loop.id, folder=lambda: folder, begin=partial(_begin, folder), restart=due.restart)


def _begin(folder: LoopFolder, restart: Restart | None) -> int:
    """In a child of the watchdog: run the loop under a guardian of its own."""

    def work(tether: Tether) -> int:
        return shielded(lambda: _go_on(tether, folder, restart))

    return run_guarded(work, os.open(os.devnull, os.O_WRONLY), raw=True)[0]


def _go_on(tether: Tether, folder: LoopFolder, restart: Restart | None) -> int:
    standing = standing_of(folder)
    if standing is None:
        raise UserError(
            f"the loop {folder.name} is gone", cause=f"{folder} has no record", hint="nothing to go on with"
        )
    planned = replace(resume.plan(standing, settings.secrets()), restart=restart)
    return _run(tether, planned, Voice())


def exhausted(each: Kept, restart: Restart) -> int:
    """In a child of the watchdog: write it down, and tell."""
    folder = each.folder()
    return shielded(lambda: keeping.give_up(folder, restart)) if folder else 0


def resume_these(taken: Mapping[str, Taken], voice: Voice) -> int:
    """Continue these, by the name that a person knows; one that cannot start does not keep the others from it."""
    foreground.warn_if_unbounded(*(each.plan for each in taken.values() if each.plan))
    gc.collect()
    gc.freeze()  # nothing that is here now is looked at again, or it would be copied for each loop
    begun = [send_away(partial(_guarded, each.plan, voice)) if each.plan else None for each in taken.values()]
    names = max(map(len, taken), default=0)
    worst = 0
    for (name, each), child in zip(taken.items(), begun, strict=True):
        what, why = "skipped", each.skipped
        if each.refused:
            what, why = "refused", " · ".join(filter(None, [each.refused.what, each.refused.cause, each.refused.hint]))
            worst = max(worst, each.refused.exit_code)
        elif child:
            _, viewer, status = await_start(*child)
            start_viewer(viewer)
            code = None if status is None else os.waitstatus_to_exitcode(status)
            after = "; ".join(filter(None, [voice.resumed(each.standing), shared(each.beside)]))
            what, why = ("resumed", after) if code is None else ("refused", "see above")
            if code == _OVERTAKEN:
                what, why = "skipped", "it is running"
            elif code:
                worst = max(worst, 1)
        click.echo(f"  {name:<{names}}  {what}  {shorten(plain(why), 300)}".rstrip())
    return worst


def _guarded(planned: Plan, voice: Voice, front: int) -> int:
    return run_guarded(lambda tether: shielded(lambda: _run(tether, planned, voice)), front)[0]


def _run(tether: Tether, planned: Plan, voice: Voice) -> int:
    try:
        return foreground.run_in_foreground(tether, planned, plain=True, voice=voice, detach=True, banner=False)
    except UserError as error:
        if error.exit_code == _OVERTAKEN and is_held(planned.folder.lock):  # what is wanted is so
            return _OVERTAKEN
        raise
